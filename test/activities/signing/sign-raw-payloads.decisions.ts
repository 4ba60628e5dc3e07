import { createPublicKey, verify } from 'node:crypto';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { signRawPayloads } from '../../../src/activities/signing/sign-raw-payloads.js';
import { eip712Type, eip7702AuthorizationType } from '../../../src/domain/policy/resource-namespaces.js';
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

    it('messages of Ed25519', async () => {
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

    it('refuses a key that another has taken the name of while it signed', async () => {
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
        .thenRefused('ABORTED', /came to name another key/);
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

  describe('what policies read of several payloads', () => {
    const typed = (...values: readonly object[]) =>
      request(
        values.map((value) => JSON.stringify(value)),
        { encoding: 'PAYLOAD_ENCODING_EIP712' },
      );
    const eip712 = (...values: readonly object[]) =>
      (signers.resources(signRawPayloads, typed(...values)) as { eth: { eip_712: Record<string, unknown> } }).eth
        .eip_712;

    it('of one, everything', () => {
      expect(eip712(mail())).toMatchObject({ primary_type: 'Mail', message: { contents: 'Hello, Bob!' } });
    });

    it('of several, what they have in common', () => {
      const value = eip712(mail(), mail({ contents: 'Hello again' }), mail({ contents: 'Bye' }));
      expect(value).toEqual({
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
          contents: undefined,
        },
      });
      expect(conforms(eip712Type, value as never)).toEqual([]);
    });

    it('of a struct of which a part differs, nothing', () => {
      const other = { name: 'Cow', wallet: `0x${'11'.repeat(20)}` };
      expect(eip712(mail(), mail({ from: other }))['message']).toMatchObject({
        from: undefined,
        contents: 'Hello, Bob!',
      });
    });

    it('of several that differ, nothing at all beside a DENY that reads them: they must come one by one', () => {
      signers.history.push({
        type: 'PolicyCreated',
        data: {
          policyId: id(700),
          policyName: 'no Bob',
          effect: 'EFFECT_DENY',
          condition: "eth.eip_712.message['contents'] == 'Bye'",
          notes: '',
        },
      });
      const differing = typed(mail(), mail({ contents: 'Bye' }));
      expect(() => signers.resources(signRawPayloads, differing)).toThrow(
        expect.objectContaining({
          code: 'FAILED_PRECONDITION',
          message: expect.stringContaining(id(700)) as string,
        }) as Error,
      );
      expect(eip712(mail(), mail())).toMatchObject({ primary_type: 'Mail' });
      signers.history.pop();
    });

    it('of another contract, not the contract', () => {
      const { domain } = eip712(mail(), mail({}, { verifyingContract: `0x${'11'.repeat(20)}` }));
      expect(domain).toEqual({ name: 'Ether Mail', version: '1', chain_id: 1n, verifying_contract: undefined });
    });

    it('of a domain that lacks a member, not that member', () => {
      const { EIP712Domain: _domain, ...types } = example.types;
      const { version: _version, ...domain } = example.domain;
      const { version, name } = eip712({ ...example, types }, { ...example, types, domain })['domain'] as Json;
      expect([version, name]).toEqual([undefined, 'Ether Mail']);
      expect(eip712({ ...example, types, domain }, { ...example, types })['domain']).toMatchObject({
        version: undefined,
      });
    });

    it('of another type, not the type, nor what only one of them has', () => {
      const person = { ...example, primaryType: 'Person', message: { name: 'Bob', wallet: `0x${'11'.repeat(20)}` } };
      expect(eip712(mail(), person)).toMatchObject({ primary_type: undefined, message: {} });
      expect(eip712(person, mail())['message']).toEqual({});
    });

    it('of a message whose members are named like those of every object', () => {
      const types = {
        T: [
          { name: '__proto__', type: 'string' },
          { name: 'toString', type: 'string' },
        ],
      };
      const odd = (text: string) =>
        `{"types":${JSON.stringify(types)},"domain":{},"primaryType":"T","message":{"__proto__":"${text}","toString":"same"}}`;
      const { eth } = signers.resources(
        signRawPayloads,
        request([odd('one'), odd('two')], { encoding: 'PAYLOAD_ENCODING_EIP712' }),
      ) as { eth: { eip_712: { message: object } } };
      const members = Object.getOwnPropertyDescriptors(eth.eip_712.message) as Record<string, PropertyDescriptor>;
      expect(members['toString']?.value).toBe('same');
      expect(Object.hasOwn(eth.eip_712.message, '__proto__')).toBe(true);
      expect(members['__proto__']?.value).toBeUndefined();
    });

    it('authorizations: the same contract on two chains', () => {
      const authorization = (chainId: number) => JSON.stringify({ address: `0x${'Be'.repeat(20)}`, chainId, nonce: 7 });
      const { eth } = signers.resources(
        signRawPayloads,
        request([authorization(1), authorization(10)], { encoding: 'PAYLOAD_ENCODING_EIP7702_AUTHORIZATION' }),
      ) as { eth: { eip_7702_authorization: never } };
      expect(eth.eip_7702_authorization).toEqual({ address: `0x${'be'.repeat(20)}`, chain_id: undefined, nonce: 7n });
      expect(conforms(eip7702AuthorizationType, eth.eip_7702_authorization)).toEqual([]);
    });

    it('of digests, only the key', () => {
      expect(Object.keys(signers.resources(signRawPayloads, request(digests(2))))).toEqual([
        'wallet',
        'wallet_account',
      ]);
    });
  });
});
