import { createPublicKey, verify } from 'node:crypto';
import { p256 } from '@noble/curves/nist.js';
import { schnorr, secp256k1 } from '@noble/curves/secp256k1.js';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { toPrefixedMessage, type Hex } from 'viem';
import { signRawPayload } from '../../../src/activities/signing/sign-raw-payload.js';
import type { AccountToDerive } from '../../../src/ports/keyring.js';
import {
  eip712Type,
  eip7702AuthorizationType,
  privateKeyType,
  walletAccountType,
  walletType,
} from '../../../src/domain/policy/resource-namespaces.js';
import { unreadable } from '../../../src/domain/policy/types.js';
import { conforms } from '../../domain/policy/conforms.js';
import { fromHex, readVectors } from '../../keyring/read-vectors.js';
import { id } from '../given.js';
import { lifted } from '../lifted.js';
import { Signers } from './signers.js';

const accounts: readonly AccountToDerive[] = [
  { curve: 'CURVE_SECP256K1', path: "m/44'/60'/0'/0/0", addressFormat: 'ADDRESS_FORMAT_ETHEREUM' },
  { curve: 'CURVE_SECP256K1', path: "m/86'/0'/0'/0/0", addressFormat: 'ADDRESS_FORMAT_BITCOIN_MAINNET_P2TR' },
  { curve: 'CURVE_SECP256K1', path: "m/8797555'/0'/0'", addressFormat: 'ADDRESS_FORMAT_SPARK_MAINNET' },
  { curve: 'CURVE_ED25519', path: "m/44'/501'/0'/0'", addressFormat: 'ADDRESS_FORMAT_SOLANA' },
  { curve: 'CURVE_P256', path: "m/0'/0", addressFormat: 'ADDRESS_FORMAT_COMPRESSED' },
];

let signers: Signers;
let wallet: Awaited<ReturnType<Signers['addWallet']>>;
/** Address by format or curve. */
let ethereum: string;
let taproot: string;
let spark: string;
let solana: string;
let p256Address: string;

describe('sign_raw_payload', () => {
  beforeAll(async () => {
    signers = await Signers.open();
    wallet = await signers.addWallet(100, accounts);
    [ethereum, taproot, spark, solana, p256Address] = wallet.accounts.map(({ address }) => address) as [
      string,
      string,
      string,
      string,
      string,
    ];
  });

  const digest = 'ab'.repeat(32);
  const hexadecimal = (
    signWith: string,
    payload: string,
    hashFunction = 'HASH_FUNCTION_NO_OP',
    encoding = 'PAYLOAD_ENCODING_HEXADECIMAL',
  ) => ({ signWith, payload, encoding, hashFunction });
  const text = (signWith: string, payload: string, hashFunction: string) =>
    hexadecimal(signWith, payload, hashFunction, 'PAYLOAD_ENCODING_TEXT_UTF8');
  const typed = (signWith: string, value: unknown, hashFunction = 'HASH_FUNCTION_NO_OP') =>
    hexadecimal(signWith, JSON.stringify(value), hashFunction, 'PAYLOAD_ENCODING_EIP712');
  const authorization = (signWith: string, value: unknown, hashFunction = 'HASH_FUNCTION_NO_OP') =>
    hexadecimal(signWith, JSON.stringify(value), hashFunction, 'PAYLOAD_ENCODING_EIP7702_AUTHORIZATION');

  const joined = ({ r, s }: { r: string; s: string }): string => r + s;
  const publicKeyOf = (address: string): Buffer =>
    fromHex(wallet.accounts.find((account) => account.address === address)!.publicKey);
  const isSignedBy = (publicKey: Uint8Array, message: Uint8Array, signature: { r: string; s: string }): boolean => {
    const spki = Buffer.concat([fromHex('302a300506032b6570032100'), publicKey]);
    return verify(
      null,
      message,
      createPublicKey({ key: spki, format: 'der', type: 'spki' }),
      fromHex(joined(signature)),
    );
  };

  const mail = readVectors<{ typedData: { types: object; domain: object; message: object; primaryType: string } }>(
    'ethereum/eip712_example.json',
  ).typedData;
  const delegation = { address: `0x${'Be'.repeat(20)}`, chainId: 1, nonce: 40 };

  describe('published vectors', () => {
    it('signs digests on secp256k1 as RFC 6979 says, with the recovery id', async () => {
      const { valid } = readVectors<{ valid: { d: string; m: string; signature: string }[] }>(
        'ecdsa/secp256k1_ecdsa_deterministic.json',
      );
      const recoveryIds = new Set<string>();
      for (const [index, { d, m, signature }] of valid.slice(0, 12).entries()) {
        const key = await signers.addPrivateKey(1_000 + index, 'CURVE_SECP256K1', fromHex(d));
        const result = await signers.sign(signRawPayload, hexadecimal(key.privateKeyId, m));
        expect(joined(result)).toBe(signature);
        const recovered = secp256k1.Signature.fromBytes(fromHex(joined(result)), 'compact')
          .addRecoveryBit(Number(result.v))
          .recoverPublicKey(fromHex(m));
        expect(Buffer.from(recovered.toBytes(true))).toEqual(key.publicKey);
        recoveryIds.add(result.v);
      }
      expect(recoveryIds).toEqual(new Set(['00', '01']));
    });

    it('signs text on P-256 as RFC 6979 says, hashed with SHA-256, with a low s', async () => {
      const vector = readVectors<{ d: string; cases: { message: string; r: string; s: string }[] }>(
        'ecdsa/rfc6979_p256_sha256.json',
      );
      const { privateKeyId } = await signers.addPrivateKey(20, 'CURVE_P256', fromHex(vector.d));
      for (const { message, r, s } of vector.cases) {
        const result = await signers.sign(signRawPayload, text(privateKeyId, message, 'HASH_FUNCTION_SHA256'));
        const low = [BigInt(`0x${s}`), p256.Point.Fn.ORDER - BigInt(`0x${s}`)].sort((a, b) => (a < b ? -1 : 1))[0]!;
        expect(result).toMatchObject({ r, s: low.toString(16).padStart(64, '0') });
      }
    });

    it('signs the bytes of Ethereum messages, hashed with Keccak-256', async () => {
      const vectors = readVectors<
        { messageUtf8?: string; messageHex?: Hex; privateKey?: string; signature?: string }[]
      >('ethereum/eip191_personal_sign.json').filter(({ signature }) => signature);
      expect(vectors).toHaveLength(8);
      for (const [index, { messageUtf8, messageHex, privateKey, signature }] of vectors.entries()) {
        const key = await signers.addPrivateKey(30 + index, 'CURVE_SECP256K1', fromHex(privateKey!));
        const prefixed = toPrefixedMessage(messageUtf8 ?? { raw: messageHex! });
        const intent = hexadecimal(key.privateKeyId, prefixed, 'HASH_FUNCTION_KECCAK256');
        const { r, s, v } = await signers.sign(signRawPayload, intent);
        expect([`0x${r}${s}`, 27 + Number(v)]).toEqual([
          signature!.slice(0, 130),
          Number(`0x${signature!.slice(130)}`),
        ]);
      }
    });

    it('signs the example of EIP-712', async () => {
      const { typedData, expected } = readVectors<{ typedData: unknown; expected: { signature: string } }>(
        'ethereum/eip712_example.json',
      );
      const { privateKeyId } = await signers.addPrivateKey(50, 'CURVE_SECP256K1', keccak_256(Buffer.from('cow')));
      const { r, s, v } = await signers.sign(signRawPayload, typed(privateKeyId, typedData));
      expect(`0x${r}${s}${(27 + Number(v)).toString(16)}`).toBe(expected.signature);
    });

    it('signs EIP-7702 authorizations as three other implementations do', async () => {
      const vectors = readVectors<{ privateKey?: string; signature?: string }[]>(
        'ethereum/eip7702_authorizations.json',
      ).filter(({ signature }) => signature);
      expect(vectors).toHaveLength(3);
      for (const [index, vector] of vectors.entries()) {
        const { address, chainId, nonce, privateKey, signature } = vector as Record<string, string>;
        const key = await signers.addPrivateKey(60 + index, 'CURVE_SECP256K1', fromHex(privateKey!));
        const { r, s, v } = await signers.sign(
          signRawPayload,
          authorization(key.privateKeyId, { address, chainId, nonce }),
        );
        expect([`0x${r}${s}`, Number(v)]).toEqual([
          signature!.slice(0, 130),
          Number(`0x${signature!.slice(130)}`) % 27,
        ]);
      }
    });

    it('signs with the tweaked key of a taproot address, as BIP-341 says', async () => {
      interface Input {
        readonly given: { readonly internalPrivkey: string; readonly merkleRoot: string | null };
        readonly intermediary: { readonly sigHash: string };
        readonly expected: { readonly witness: readonly string[] };
      }
      const { keyPathSpending } = readVectors<{ keyPathSpending: { inputSpending: Input[] }[] }>(
        'bitcoin/bip341_wallet-test-vectors.json',
      );
      const input = keyPathSpending[0]!.inputSpending.find(({ given }) => given.merkleRoot === null)!;
      const { addresses } = await signers.addPrivateKey(70, 'CURVE_SECP256K1', fromHex(input.given.internalPrivkey), [
        'ADDRESS_FORMAT_BITCOIN_MAINNET_P2TR',
      ]);
      const result = await signers.sign(signRawPayload, hexadecimal(addresses[0]!, input.intermediary.sigHash));
      expect(joined(result)).toBe(input.expected.witness[0]!.slice(0, 128));
      expect(result.v).toBe('00');
    });
  });

  describe('signs with the key of an address', () => {
    it('of a wallet account, in any letter case', async () => {
      const results = [];
      for (const signWith of [ethereum, ethereum.toLowerCase(), ethereum.toUpperCase().replace('0X', '0x')]) {
        results.push(await signers.sign(signRawPayload, hexadecimal(signWith, digest)));
      }
      expect(new Set(results.map((result) => JSON.stringify(result))).size).toBe(1);
      expect(
        secp256k1.verify(fromHex(joined(results[0]!)), fromHex(digest), publicKeyOf(ethereum), { prehash: false }),
      ).toBe(true);
    });

    it('of Spark, with BIP-340 and the key as it is', async () => {
      const result = await signers.sign(signRawPayload, hexadecimal(spark, digest));
      expect(schnorr.verify(fromHex(joined(result)), fromHex(digest), publicKeyOf(spark).subarray(1))).toBe(true);
      expect(result.v).toBe('00');
    });

    it('of P-256, which its public key names', async () => {
      const result = await signers.sign(signRawPayload, text(p256Address, 'a text', 'HASH_FUNCTION_SHA256'));
      expect(p256.verify(fromHex(joined(result)), Buffer.from('a text'), publicKeyOf(p256Address))).toBe(true);
    });

    it.each([
      ['text', 'PAYLOAD_ENCODING_TEXT_UTF8', 'grüß dich 👋', Buffer.from('grüß dich 👋')],
      ['bytes', 'PAYLOAD_ENCODING_HEXADECIMAL', '0x00FFab', Buffer.from([0, 255, 171])],
      ['no bytes', 'PAYLOAD_ENCODING_HEXADECIMAL', '0x', Buffer.alloc(0)],
    ])('signs the message itself on Ed25519: %s', async (_name, encoding, payload, message) => {
      const intent = hexadecimal(solana, payload, 'HASH_FUNCTION_NOT_APPLICABLE', encoding);
      const result = await signers.sign(signRawPayload, intent);
      expect(isSignedBy(publicKeyOf(solana), message, result)).toBe(true);
      expect(result.v).toBe('00');
    });
  });

  describe('what is signed', () => {
    const message = 'grüß dich 👋';
    it.each([
      ['hexadecimal, with 0x', hexadecimal('', `0x${digest}`), fromHex(digest)],
      ['hexadecimal, with 0X and in upper case', hexadecimal('', `0X${digest.toUpperCase()}`), fromHex(digest)],
      ['bytes, SHA-256', hexadecimal('', '00ff', 'HASH_FUNCTION_SHA256'), sha256(Uint8Array.of(0, 255))],
      ['bytes, Keccak-256', hexadecimal('', '00ff', 'HASH_FUNCTION_KECCAK256'), keccak_256(Uint8Array.of(0, 255))],
      ['text, SHA-256', text('', message, 'HASH_FUNCTION_SHA256'), sha256(Buffer.from(message))],
      ['text, Keccak-256', text('', message, 'HASH_FUNCTION_KECCAK256'), keccak_256(Buffer.from(message))],
      ['text of 32 bytes', text('', `${message}${'.'.repeat(32 - 16)}`, 'HASH_FUNCTION_NO_OP'), undefined],
    ])('is what was asked for: %s', async (_name, intent, expected) => {
      const result = await signers.sign(signRawPayload, { ...intent, signWith: ethereum });
      const signed = expected ?? Buffer.from(intent.payload);
      expect(signed).toHaveLength(32);
      const publicKey = publicKeyOf(ethereum);
      expect(secp256k1.verify(fromHex(joined(result)), signed, publicKey, { prehash: false })).toBe(true);
    });
  });

  describe('refuses', () => {
    const keccak = 'HASH_FUNCTION_KECCAK256';
    it.each<[string, () => object, RegExp]>([
      [
        'a hash function for Ed25519',
        () => hexadecimal(solana, digest),
        /parameters\.hashFunction: HASH_FUNCTION_NO_OP cannot be used with a key on CURVE_ED25519.*send HASH_FUNCTION_NOT_APPLICABLE/,
      ],
      [
        'none for secp256k1',
        () => hexadecimal(ethereum, digest, 'HASH_FUNCTION_NOT_APPLICABLE'),
        /parameters\.hashFunction: HASH_FUNCTION_NOT_APPLICABLE is for keys on CURVE_ED25519, the key is on CURVE_SECP256K1/,
      ],
      [
        'none for taproot',
        () => hexadecimal(taproot, digest, 'HASH_FUNCTION_NOT_APPLICABLE'),
        /parameters\.hashFunction: HASH_FUNCTION_NOT_APPLICABLE is for keys on CURVE_ED25519/,
      ],
      [
        'none for P-256',
        () => text(p256Address, 'text', 'HASH_FUNCTION_NOT_APPLICABLE'),
        /the key is on CURVE_P256: send HASH_FUNCTION_SHA256/,
      ],
      [
        '31 bytes as a digest',
        () => hexadecimal(ethereum, 'ab'.repeat(31)),
        /parameters\.payload: expected a 32-bytes-long digest with HASH_FUNCTION_NO_OP, got 31 bytes: hash the payload/,
      ],
      ['33 bytes as a digest', () => hexadecimal(taproot, 'ab'.repeat(33)), /a 32-bytes-long digest .* got 33 bytes/],
      [
        'an odd number of digits',
        () => hexadecimal(ethereum, 'abc', keccak),
        /parameters\.payload: expected two hexadecimal digits for each byte, got 3 digits/,
      ],
      [
        'no hexadecimal',
        () => hexadecimal(ethereum, '0xabxy', keccak),
        /parameters\.payload: expected hexadecimal, but digit 3 is `x`: correct it, or send PAYLOAD_ENCODING_TEXT_UTF8/,
      ],
      [
        'nothing',
        () => hexadecimal(ethereum, '', keccak),
        /parameters\.payload: must have 1 to 2000000 characters, has 0/,
      ],
      [
        'typed data for P-256',
        () => typed(p256Address, mail),
        /parameters\.encoding: PAYLOAD_ENCODING_EIP712 needs a key on CURVE_SECP256K1, not on CURVE_P256/,
      ],
      ['typed data for Ed25519', () => typed(solana, mail, 'HASH_FUNCTION_NOT_APPLICABLE'), /not on CURVE_ED25519/],
      [
        'typed data for taproot',
        () => typed(taproot, mail),
        /PAYLOAD_ENCODING_EIP712 needs an ECDSA signature, and keys of ADDRESS_FORMAT_BITCOIN_MAINNET_P2TR addresses sign with BIP-340/,
      ],
      [
        'an authorization for Spark',
        () => authorization(spark, delegation),
        /of ADDRESS_FORMAT_SPARK_MAINNET addresses/,
      ],
      [
        'typed data to be hashed once more',
        () => typed(ethereum, mail, keccak),
        /parameters\.hashFunction: PAYLOAD_ENCODING_EIP712 is hashed as it says itself: send HASH_FUNCTION_NO_OP/,
      ],
      [
        'typed data that lacks a member',
        () => typed(ethereum, { ...mail, message: { ...mail.message, contents: undefined } }),
        /parameters\.payload: typed data message\.contents is missing/,
      ],
      [
        'typed data that is no JSON',
        () => ({ ...typed(ethereum, 0), payload: '{' }),
        /parameters\.payload: typed data .*JSON/,
      ],
      [
        'an authorization of no contract',
        () => authorization(ethereum, { ...delegation, address: '0x12' }),
        /parameters\.payload: EIP-7702 authorization address is `0x12`/,
      ],
      [
        'no hash function',
        () => ({ ...hexadecimal(ethereum, digest), hashFunction: undefined }),
        /hashFunction: is required/,
      ],
      [
        'an encoding of another world',
        () => hexadecimal(ethereum, digest, undefined, 'PAYLOAD_ENCODING_BASE64'),
        /parameters\.encoding: must be one of PAYLOAD_ENCODING_HEXADECIMAL/,
      ],
    ])('%s', (_name, intent, message) =>
      signers.when(signRawPayload, intent()).thenRefused('INVALID_ARGUMENT', message),
    );

    it('a key that is not there', () =>
      signers
        .when(signRawPayload, hexadecimal(`0x${'12'.repeat(20)}`, digest))
        .thenRefused('NOT_FOUND', /^Could not find any resource to sign with\..*`0x1212/));

    it('a key that went while it signed', async () => {
      const intent = hexadecimal(ethereum, digest);
      const prepared = await signers.prepare(signRawPayload, intent);
      const { walletId, vaultId } = wallet;
      signers
        .when(signRawPayload, intent, { prepared, after: [{ type: 'WalletDeleted', data: { walletId, vaultId } }] })
        .thenRefused('NOT_FOUND', /^Could not find any resource to sign with/);
    });

    it('a key whose name another one has taken while it signed', async () => {
      const intent = hexadecimal(ethereum, digest);
      const prepared = await signers.prepare(signRawPayload, intent);
      const { walletId, vaultId, accounts: facts } = wallet;
      // The same seed, deleted and imported again: another wallet, of which the policies may say otherwise.
      signers
        .when(signRawPayload, intent, {
          prepared,
          after: [
            { type: 'WalletDeleted', data: { walletId, vaultId } },
            { type: 'WalletCreated', data: { walletId: id(99), walletName: 'again', vaultId: id(98), imported: true } },
            { type: 'WalletAccountsCreated', data: { walletId: id(99), accounts: facts } },
          ],
        })
        .thenRefused('ABORTED', /^`0x\w{40}` now refers to a different key: send the same request again$/);
    });
  });

  describe('the older version', () => {
    it('names a private key by its id', () =>
      expect(
        lifted('ACTIVITY_TYPE_SIGN_RAW_PAYLOAD', {
          privateKeyId: id(20),
          payload: digest,
          encoding: 'PAYLOAD_ENCODING_HEXADECIMAL',
          hashFunction: 'HASH_FUNCTION_NO_OP',
        }),
      ).toEqual(hexadecimal(id(20), digest)));

    it('takes no address', () =>
      expect(() =>
        lifted('ACTIVITY_TYPE_SIGN_RAW_PAYLOAD', {
          privateKeyId: ethereum,
          payload: digest,
          encoding: 'PAYLOAD_ENCODING_HEXADECIMAL',
          hashFunction: 'HASH_FUNCTION_NO_OP',
        }),
      ).toThrow(/parameters\.privateKeyId: must be a UUID/));
  });

  describe('lets policies read', () => {
    it('the wallet and the account', () => {
      const resources = signers.resources(signRawPayload, hexadecimal(ethereum.toLowerCase(), digest));
      const hidden = unreadable('a digest does not show what it is a digest of');
      expect(resources).toEqual({
        wallet: { id: wallet.walletId, label: 'wallet 100', imported: false, exported: false },
        wallet_account: {
          address: ethereum,
          path_indexes: [44n, 60n, 0n, 0n, 0n],
          path_hardened: [true, true, true, false, false],
        },
        eth: { tx: hidden, eip_712: hidden, eip_7702_authorization: hidden },
        tron: { tx: hidden },
        bitcoin: { tx: hidden },
      });
      expect(conforms(walletType, resources['wallet'])).toEqual([]);
      expect(conforms(walletAccountType, resources['wallet_account'])).toEqual([]);
    });

    it('the private key', async () => {
      const { privateKeyId } = await signers.addPrivateKey(80, 'CURVE_P256', new Uint8Array(32).fill(5));
      const resources = signers.resources(signRawPayload, hexadecimal(privateKeyId, digest));
      expect(resources).toEqual({
        private_key: { id: id(80), tags: [id(500)], imported: true, exported: false, label: 'key 80' },
      });
      expect(conforms(privateKeyType, resources['private_key'])).toEqual([]);
    });

    it('typed data', () => {
      const { eth } = signers.resources(signRawPayload, typed(ethereum, mail)) as { eth: { eip_712: object } };
      expect(eth).toEqual({
        eip_712: {
          primary_type: 'Mail',
          domain: {
            name: 'Ether Mail',
            version: '1',
            chain_id: 1n,
            verifying_contract: '0xcccccccccccccccccccccccccccccccccccccccc',
          },
          message: {
            from: { name: 'Cow', wallet: '0xcd2a3d9f938e13cd947ec05abc7fe734df8dd826' },
            to: { name: 'Bob', wallet: '0xbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb' },
            contents: 'Hello, Bob!',
          },
        },
      });
      expect(conforms(eip712Type, eth.eip_712 as never)).toEqual([]);
    });

    it('an authorization', () => {
      const resources = signers.resources(signRawPayload, authorization(ethereum, delegation));
      const { eth } = resources as { eth: { eip_7702_authorization: never } };
      expect(eth).toEqual({ eip_7702_authorization: { address: `0x${'be'.repeat(20)}`, chain_id: 1n, nonce: 40n } });
      expect(conforms(eip7702AuthorizationType, eth.eip_7702_authorization)).toEqual([]);
    });

    it('nothing of a payload that cannot be signed: it is refused before any policy is asked', () =>
      expect(() => signers.resources(signRawPayload, hexadecimal(solana, digest))).toThrow(/CURVE_ED25519/));
  });
});
