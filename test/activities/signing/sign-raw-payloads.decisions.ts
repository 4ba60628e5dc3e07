import { createPublicKey, verify } from 'node:crypto';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { signRawPayloads } from '../../../src/activities/signing/sign-raw-payloads.js';
import { eip712Type, eip7702AuthorizationType } from '../../../src/domain/policy/resource-namespaces.js';
import { unreadable } from '../../../src/domain/policy/types.js';
import { conforms } from '../../domain/policy/conforms.js';
import { fromHex, readVectors } from '../../keyring/read-vectors.js';
import { id } from '../given.js';
import { Signers } from './signers.js';

let signers: Signers;
let ethereum: string;
let solana: string;
let wallet: Awaited<ReturnType<Signers['addWallet']>>;

describe('sign_raw_payloads', () => {
  beforeAll(async () => {
    signers = await Signers.open();
    wallet = await signers.addWallet(100, [
      { curve: 'CURVE_SECP256K1', path: "m/44'/60'/0'/0/0", addressFormat: 'ADDRESS_FORMAT_ETHEREUM' },
      { curve: 'CURVE_ED25519', path: "m/44'/501'/0'/0'", addressFormat: 'ADDRESS_FORMAT_SOLANA' },
    ]);
    ethereum = wallet.accounts[0]!.address;
    solana = wallet.accounts[1]!.address;
  });

  const request = (payloads: readonly string[], more: object = {}) => ({
    signWith: ethereum,
    payloads,
    encoding: 'PAYLOAD_ENCODING_HEXADECIMAL',
    hashFunction: 'HASH_FUNCTION_NO_OP',
    ...more,
  });
  const digests = (count: number) =>
    Array.from({ length: count }, (_, index) => Buffer.from(sha256(Buffer.from(`${index}`))).toString('hex'));
  const joined = ({ r, s }: { r: string; s: string }): Buffer => fromHex(r + s);

  describe('sign raw payloads', () => {
    it('signs each, in order', async () => {
      const payloads = digests(20);
      const { signatures } = await signers.sign(signRawPayloads, request(payloads));
      expect(signatures).toHaveLength(20);
      expect(new Set(signatures.map((signature) => JSON.stringify(signature))).size).toBe(20);
      const publicKey = fromHex(wallet.accounts[0]!.publicKey);
      for (const [index, signature] of signatures.entries()) {
        expect(secp256k1.verify(joined(signature), fromHex(payloads[index]!), publicKey, { prehash: false })).toBe(
          true,
        );
      }
    });

    it('signs what is there twice, twice', async () => {
      const [payload] = digests(1);
      const { signatures } = await signers.sign(signRawPayloads, request([payload!, payload!]));
      expect(signatures[0]).toEqual(signatures[1]);
    });

    it('signs messages with Ed25519', async () => {
      const payloads = ['one', 'two', 'grüß dich'];
      const { signatures } = await signers.sign(
        signRawPayloads,
        request(payloads, {
          signWith: solana,
          encoding: 'PAYLOAD_ENCODING_TEXT_UTF8',
          hashFunction: 'HASH_FUNCTION_NOT_APPLICABLE',
        }),
      );
      const spki = Buffer.concat([fromHex('302a300506032b6570032100'), fromHex(wallet.accounts[1]!.publicKey)]);
      const key = createPublicKey({ key: spki, format: 'der', type: 'spki' });
      for (const [index, signature] of signatures.entries()) {
        expect(verify(null, Buffer.from(payloads[index]!), key, joined(signature))).toBe(true);
      }
    });

    it.each<[string, () => object, RegExp]>([
      [
        'one bad payload among good ones, by its place',
        () => request([...digests(3), 'abcd', ...digests(2)]),
        /parameters\.payloads\[3\]: expected a 32-bytes-long digest with HASH_FUNCTION_NO_OP, got 2 bytes/,
      ],
      [
        'an empty one',
        () => request([...digests(1), '']),
        /parameters\.payloads\[1\]: is empty: send what is to be signed/,
      ],
      ['none', () => request([]), /parameters\.payloads: must have 1 to 1000 elements, has 0/],
      [
        'more than a thousand',
        () => request(digests(1_001)),
        /parameters\.payloads: must have 1 to 1000 elements, has 1001/,
      ],
      [
        'other things than text',
        () => ({ ...request([]), payloads: [1] }),
        /parameters\.payloads: must be a list of strings/,
      ],
      [
        'broken typed data, by its place',
        () => request([JSON.stringify(mail()), '{}'], { encoding: 'PAYLOAD_ENCODING_EIP712' }),
        /parameters\.payloads\[1\]: typed data primaryType/,
      ],
    ])('refuses %s', (_name, intent, message) =>
      signers.when(signRawPayloads, intent()).thenRefused('INVALID_ARGUMENT', message),
    );

    it('refuses a key that is gone', () =>
      signers
        .when(signRawPayloads, request(digests(2)), {
          after: [{ type: 'WalletDeleted', data: { walletId: wallet.walletId, vaultId: wallet.vaultId } }],
        })
        .thenRefused('NOT_FOUND', /^Could not find any resource to sign with/));

    it('refuses a key whose name another one has taken while it signed', async () => {
      const intent = request(digests(2));
      const prepared = await signers.prepare(signRawPayloads, intent);
      const { walletId, vaultId, accounts } = wallet;
      signers
        .when(signRawPayloads, intent, {
          prepared,
          after: [
            { type: 'WalletDeleted', data: { walletId, vaultId } },
            { type: 'WalletCreated', data: { walletId: id(99), walletName: 'again', vaultId: id(98), imported: true } },
            { type: 'WalletAccountsCreated', data: { walletId: id(99), accounts } },
          ],
        })
        .thenRefused('ABORTED', /now refers to a different key/);
    });

    it('signs nothing of a request with a bad payload', () =>
      expect(signers.prepare(signRawPayloads, request([...digests(1), 'ab']))).rejects.toThrow(/payloads\[1\]/));
  });

  type Json = Readonly<Record<string, unknown>>;
  interface Mail {
    readonly types: Json;
    readonly domain: Json;
    readonly message: Json;
  }
  const example = readVectors<{ typedData: Mail }>('ethereum/eip712_example.json').typedData;
  function mail(message: object = {}, domain: object = {}): object {
    return { ...example, message: { ...example.message, ...message }, domain: { ...example.domain, ...domain } };
  }

  describe('lets policies read, of several payloads,', () => {
    const typed = (...values: readonly object[]) =>
      request(
        values.map((value) => JSON.stringify(value)),
        { encoding: 'PAYLOAD_ENCODING_EIP712' },
      );
    const eip712 = (...values: readonly object[]) =>
      Object.entries(signers.payloads(signRawPayloads, typed(...values))).map(([name, { eth }]) => {
        const { eip_712 } = eth as { eip_712: Json };
        expect(conforms(eip712Type, eip_712 as never)).toEqual([]);
        return [name, eip_712['message']];
      });

    it('of each what it says itself, once of those that are alike', () => {
      const read = eip712(mail(), mail({ contents: 'Bye' }), mail());
      expect(read).toMatchObject([
        ['parameters.payloads[0]', { contents: 'Hello, Bob!' }],
        ['parameters.payloads[1]', { contents: 'Bye' }],
      ]);
    });

    it('authorizations: the same contract on two chains', () => {
      const authorization = (chainId: number) => JSON.stringify({ address: `0x${'Be'.repeat(20)}`, chainId, nonce: 7 });
      const read = signers.payloads(
        signRawPayloads,
        request([authorization(1), authorization(10)], { encoding: 'PAYLOAD_ENCODING_EIP7702_AUTHORIZATION' }),
      );
      const values = Object.values(read).map(({ eth }) => eth as { eip_7702_authorization: never });
      expect(values.map(({ eip_7702_authorization }) => eip_7702_authorization)).toEqual(
        [1n, 10n].map((chain_id) => ({ address: `0x${'be'.repeat(20)}`, chain_id, nonce: 7n })),
      );
      for (const value of values) expect(conforms(eip7702AuthorizationType, value.eip_7702_authorization)).toEqual([]);
    });

    it('of digests, only the key, and that the rest is hidden', () => {
      const hidden = unreadable('a digest does not show what it is a digest of');
      expect(signers.payloads(signRawPayloads, request(digests(2)))).toEqual({
        'parameters.payloads[0]': {
          wallet: expect.anything() as unknown,
          wallet_account: expect.anything() as unknown,
          eth: { tx: hidden, eip_712: hidden, eip_7702_authorization: hidden },
          tron: { tx: hidden },
          bitcoin: { tx: hidden },
        },
      });
    });
  });
});
