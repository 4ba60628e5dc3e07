import { Transaction, Wallet, encodeRlp, keccak256, type TransactionLike } from 'ethers';
import fc from 'fast-check';
import {
  parseTransaction,
  recoverTransactionAddress,
  serializeTransaction,
  type Hex,
  type TransactionSerializable,
  type TransactionSerialized,
} from 'viem';
import { hashAuthorization } from 'viem/utils';
import { CoordinatorError } from '../../src/domain/errors.js';
import { signPayload } from '../../src/keyring/signing.js';
import { notApplicable, Unreadable, type PolicyValue } from '../../src/domain/policy/types.js';
import { assembleEthereum } from '../../src/transactions/ethereum.js';
import {
  ethereumDigest,
  ethereumPolicyValue,
  parseContractInterface,
  parseEip7702Authorization,
  parseUnsignedEthereum,
} from './decoders.js';
import { fromHex, readVectors } from '../keyring/read-vectors.js';
import { blocksEntered } from './blocks-entered.js';

const hexOf = (bytes: Uint8Array): string => `0x${Buffer.from(bytes).toString('hex')}`;

const wallet = new Wallet('0x4646464646464646464646464646464646464646464646464646464646464646');
const privateKey = fromHex(wallet.privateKey);

/** The whole walk of a signature: read, hash, sign, put together. With 0x, as clients make of the result. */
const sign = (unsigned: string, key = privateKey): string => {
  const transaction = parseUnsignedEthereum(unsigned);
  return `0x${assembleEthereum(transaction, signPayload({ curve: 'CURVE_SECP256K1', privateKey: key }, ethereumDigest(transaction)))}`;
};

const bytes = (minLength: number, maxLength = minLength): fc.Arbitrary<string> =>
  fc.uint8Array({ minLength, maxLength }).map(hexOf);
const address = bytes(20);
/** Of every length in bytes, so that zeros and leading zeros occur. */
const amount = fc.integer({ min: 0, max: 16 }).chain((length) => fc.bigInt(0n, 256n ** BigInt(length) - 1n));
const chainId = fc.oneof(fc.constantFrom(1n, 10n, 137n, 8453n, 11155111n), fc.bigInt(1n, 2n ** 45n));
const accessList = fc.array(fc.record({ address, storageKeys: fc.array(bytes(32), { maxLength: 3 }) }), {
  maxLength: 3,
});
const common = {
  nonce: fc.integer({ min: 0, max: 2 ** 40 }),
  gasLimit: fc.bigInt(0n, 2n ** 40n),
  value: amount,
  data: fc.oneof(bytes(0), bytes(1, 4), bytes(4, 300)),
};
const to = fc.oneof(address, fc.constant(null));
const priorityAndMax = fc.tuple(amount, amount).map(([a, b]): [bigint, bigint] => (a < b ? [a, b] : [b, a]));

const legacy = fc.record({
  ...common,
  to,
  type: fc.constant(0),
  gasPrice: amount,
  chainId: fc.oneof(chainId, fc.constant(0n)),
});
const eip2930 = fc.record({ ...common, to, type: fc.constant(1), gasPrice: amount, chainId, accessList });
const feeMarket = (type: number, receiver: fc.Arbitrary<string | null>): fc.Arbitrary<TransactionLike> =>
  fc
    .record({ ...common, to: receiver, type: fc.constant(type), fees: priorityAndMax, chainId, accessList })
    .map(({ fees, ...rest }) => ({ ...rest, maxPriorityFeePerGas: fees[0], maxFeePerGas: fees[1] }));
const eip1559 = feeMarket(2, to);
const eip4844 = fc
  .tuple(
    feeMarket(3, address),
    amount,
    fc.array(
      bytes(31).map((hash) => `0x01${hash.slice(2)}`),
      { minLength: 1, maxLength: 3 },
    ),
  )
  .map(([fields, maxFeePerBlobGas, blobVersionedHashes]) => ({ ...fields, maxFeePerBlobGas, blobVersionedHashes }));
const authorization = fc
  .record({ address, chainId: fc.oneof(chainId, fc.constant(0n)), nonce: fc.bigInt(0n, 2n ** 40n) })
  .map((request) => wallet.authorizeSync(request));
const eip7702 = fc
  .tuple(feeMarket(4, address), fc.array(authorization, { minLength: 1, maxLength: 2 }))
  .map(([fields, authorizationList]) => ({ ...fields, authorizationList }));

const kinds: readonly [string, fc.Arbitrary<TransactionLike>][] = [
  ['legacy', legacy],
  ['EIP-2930', eip2930],
  ['EIP-1559', eip1559],
  ['EIP-4844', eip4844],
  ['EIP-7702', eip7702],
];

describe.each(kinds)('%s', (_name, arbitrary) => {
  test('what ethers writes: read alike, hashed alike, and signed so that ethers and viem find the signer', async () => {
    await fc.assert(
      fc.asyncProperty(arbitrary, fc.boolean(), async (fields, withPrefix) => {
        const oracle = Transaction.from(fields);
        const unsigned = oracle.unsignedSerialized;
        const transaction = parseUnsignedEthereum(withPrefix ? unsigned : unsigned.slice(2));
        expect(hexOf(ethereumDigest(transaction))).toBe(oracle.unsignedHash);
        expect(transaction).toMatchObject({
          nonce: BigInt(oracle.nonce),
          gasLimit: oracle.gasLimit,
          value: oracle.value,
          data: oracle.data,
        });
        expect(transaction.to).toBe(oracle.to?.toLowerCase());
        expect(transaction.chainId ?? 0n).toBe(oracle.chainId);
        expect(transaction.maxFeePerGas ?? null).toBe(oracle.maxFeePerGas);
        expect(transaction.maxPriorityFeePerGas ?? null).toBe(oracle.maxPriorityFeePerGas);
        expect(transaction.maxFeePerBlobGas ?? null).toBe(oracle.maxFeePerBlobGas);
        if (oracle.type !== null && oracle.type < 2) expect(transaction.gasPrice).toBe(oracle.gasPrice);

        const signed = sign(unsigned);
        expect(signed).toMatch(/^0x[0-9a-f]+$/);
        const signedByOracle = Transaction.from(signed);
        expect(signedByOracle.from).toBe(wallet.address);
        expect(signedByOracle.unsignedSerialized).toBe(unsigned);
        expect(signedByOracle.serialized).toBe(signed);
        const serializedTransaction = signed as TransactionSerialized;
        expect(await recoverTransactionAddress({ serializedTransaction })).toBe(wallet.address);
      }),
      { numRuns: 50 },
    );
  }, 120_000);

  test('what viem writes', () => {
    fc.assert(
      fc.property(arbitrary, (fields) => {
        const request = forViem(fields);
        const unsigned = serializeTransaction(request);
        const transaction = parseUnsignedEthereum(unsigned);
        expect(hexOf(ethereumDigest(transaction))).toBe(keccak256(unsigned));
        const parsed = parseTransaction(sign(unsigned) as Hex);
        expect(parsed.r).toBeDefined();
        expect(parsed.nonce ?? 0).toBe(Number(transaction.nonce));
        expect(parsed.value ?? 0n).toBe(transaction.value);
      }),
      { numRuns: 50 },
    );
  }, 120_000);
});

/** The same transaction in viem's words. */
function forViem(fields: TransactionLike): TransactionSerializable {
  const { gasLimit, nonce, to: receiver, type, authorizationList, ...rest } = fields;
  const types = ['legacy', 'eip2930', 'eip1559', 'eip4844', 'eip7702'];
  return {
    ...rest,
    type: types[type ?? 0],
    nonce,
    gas: gasLimit,
    to: receiver,
    chainId: Number(fields.chainId) === 0 ? undefined : Number(fields.chainId),
    ...(authorizationList && {
      authorizationList: authorizationList.map((item) => ({
        address: item.address,
        chainId: Number(item.chainId),
        nonce: Number(item.nonce),
        r: (item.signature as { r: string }).r,
        s: (item.signature as { s: string }).s,
        yParity: (item.signature as { yParity: number }).yParity,
      })),
    }),
  } as unknown as TransactionSerializable;
}

describe('published vectors', () => {
  test('come out: the example of EIP-155', () => {
    const vector =
      readVectors<Record<'signingData' | 'signingHash' | 'privateKey' | 'signed', string>>(
        'ethereum/eip155_example.json',
      );
    const transaction = parseUnsignedEthereum(vector.signingData);
    expect(hexOf(ethereumDigest(transaction))).toBe(vector.signingHash);
    expect(transaction).toMatchObject({
      type: 'LEGACY',
      chainId: 1n,
      nonce: 9n,
      gasPrice: 20_000_000_000n,
      gasLimit: 21_000n,
      to: '0x3535353535353535353535353535353535353535',
      value: 10n ** 18n,
      data: '0x',
    });
    expect(sign(vector.signingData, fromHex(vector.privateKey))).toBe(vector.signed);
  });

  test('come out: all types of ethers, byte for byte', () => {
    const vectors = readVectors<Record<string, string>[]>('ethereum/ethers_transactions_sample.json');
    let checked = 0;
    for (const vector of vectors) {
      for (const kind of ['Legacy', 'Eip155', 'Berlin', 'London', 'Cancun']) {
        const unsigned = vector[`unsigned${kind}`];
        const signed = vector[`signed${kind}`];
        // 0x stands for what a transaction cannot be, such as one with blobs and without a receiver.
        if (!unsigned || !signed || unsigned === '0x') continue;
        expect([vector.name, kind, sign(unsigned, fromHex(vector.privateKey!))]).toEqual([vector.name, kind, signed]);
        checked += 1;
      }
    }
    expect(checked).toBeGreaterThan(200);
  });

  test('come out: the hashes of EIP-7702 authorizations', () => {
    const vectors = readVectors<{ address: string; chainId: number; nonce: number; hash?: string }[]>(
      'ethereum/eip7702_authorizations.json',
    ).filter(({ hash }) => hash !== undefined);
    expect(vectors).toHaveLength(6);
    for (const { address: contract, chainId: chain, nonce, hash } of vectors) {
      const { digest, policy } = parseEip7702Authorization(
        JSON.stringify({ address: contract, chainId: chain, nonce }),
      );
      expect(hexOf(digest)).toBe(hash);
      expect(policy).toEqual({ address: contract.toLowerCase(), chain_id: BigInt(chain), nonce: BigInt(nonce) });
    }
  });
});

test('an EIP-7702 authorization has the hash of viem, however its numbers are written', () => {
  const request = fc.record({ address, chainId: fc.nat(2 ** 31), nonce: fc.nat(2 ** 31) });
  fc.assert(
    fc.property(request, ({ address: contract, chainId: chain, nonce }) => {
      const hash = hashAuthorization({ address: contract as Hex, chainId: chain, nonce });
      const spellings = [chain, String(chain), `0x${chain.toString(16)}`];
      for (const chainId of spellings) {
        const payload = JSON.stringify({ chainId, nonce, address: contract });
        expect(hexOf(parseEip7702Authorization(payload).digest)).toBe(hash);
      }
    }),
  );
});

describe('refused', () => {
  const receiver = `0x${'35'.repeat(20)}`;
  const legacyHex = `ec098504a817c80082520894${'35'.repeat(20)}880de0b6b3a764000080018080`;
  /** nonce, gas price, gas limit, receiver, value, data, and what replaces them. */
  const legacyOf = (changes: Record<number, string | string[]>, ...more: string[]): string =>
    encodeRlp(['0x09', '0x01', '0x01', receiver, '0x', '0x'].map((field, at) => changes[at] ?? field).concat(more));
  const word = `0x${'01'.repeat(32)}`;
  /** Type 1 to 4 with these fields after the data. */
  const typedOf = (type: number, to: string, ...lists: (string | unknown[])[]): string => {
    const fees = type === 1 ? ['0x01'] : ['0x01', '0x02'];
    return `0x0${type}${encodeRlp(['0x01', '0x', ...fees, '0x05', to, '0x', '0x', ...lists] as string[]).slice(2)}`;
  };

  test.each<[string, string, RegExp]>([
    ['nothing', '', /is empty; send the unsigned transaction in hex/],
    ['0x alone', '0x', /is empty/],
    ['no hex', '0xzz', /is `0xzz`, which is not hex/],
    ['half a byte', '0xec0', /`3` hex digits, an odd number/],
    ['an unknown type', '0x05c0', /starts with the byte `0x05`/],
    ['the reserved type 0', '0x00c0', /starts with the byte `0x00`/],
    ['a text', '0x80', /starts with the byte `0x80`/],
    ['bytes after the end', `${legacyHex}00`, /not canonical RLP: unread bytes left/],
    ['bytes missing', legacyHex.slice(0, -2), /not canonical RLP: out of range/],
    ['a long form of a short length', '0xf80109', /not canonical RLP: length less than 56/],
    ['a byte in the form of a string', '0xc781098080808080', /not canonical RLP: wrong string length/],
    ['a leading zero', legacyOf({ 0: '0x0009' }), /nonce is `0x0009`; integers have no leading zeros/],
    ['a zero written as a byte', legacyOf({ 4: '0x00' }), /value is `0x00`; integers have no leading zeros/],
    ['33 bytes', legacyOf({ 1: `${word}01` }), /gasPrice is `0x01.*at most 32 bytes/],
    ['an address of 19 bytes', legacyOf({ 3: receiver.slice(0, -2) }), /to is `0x35.*an address has 20 bytes/],
    ['seven fields', legacyOf({}, '0x01'), /has `7` fields; type LEGACY has 6: nonce, gasPrice/],
    ['a list where bytes are due', legacyOf({ 0: [] }), /nonce is a list; send bytes/],
    ['a chain id of 0', legacyOf({}, '0x', '0x', '0x'), /chainId is `0`/],
    ['half a signature', legacyOf({}, '0x01', '0x01', '0x'), /is already signed/],
    ['the other half', legacyOf({}, '0x01', '0x', '0x01'), /is already signed/],
    ['too large a nonce', legacyOf({ 0: '0xffffffffffffffff' }), /nonce is `18446744073709551615`; it is at most/],
    ['a creation with blobs', typedOf(3, '0x', [], '0x01', [word]), /to is empty; type TYPE_3 cannot create/],
    ['a creation with authorizations', typedOf(4, '0x', [], []), /to is empty; type TYPE_4 cannot create/],
    ['blobs', `0x03${encodeRlp([['0x01'], [], [], []]).slice(2)}`, /carries its blobs; send the transaction without/],
    ['a short blob hash', typedOf(3, receiver, [], '0x01', ['0x01']), /blobVersionedHashes has `0x01` where 32 bytes/],
    ['an access list of bytes', typedOf(1, receiver, '0x01'), /accessList has bytes where a list is due/],
    ['an access list of addresses', typedOf(2, receiver, [receiver]), /accessList has bytes where a list is due/],
    ['a short storage key', typedOf(2, receiver, [[receiver, ['0x01']]]), /accessList has `0x01` where 32 bytes/],
    ['too long an entry', typedOf(2, receiver, [[receiver, [], []]]), /accessList has an entry of more than/],
    [
      'an unsigned authorization',
      typedOf(4, receiver, [], [['0x01', receiver, '0x']]),
      /authorizationList has an entry that lacks fields/,
    ],
    [
      'too long an authorization',
      typedOf(4, receiver, [], [['0x', receiver, '0x', '0x', '0x', '0x', '0x']]),
      /six fields/,
    ],
    ['a string for a typed list', '0x0280', /is RLP of a string/],
    ['no fields', '0x02c0', /has `0` fields; type TYPE_2 has 9/],
  ])('%s', (_what, unsigned, message) => {
    expect(() => parseUnsignedEthereum(unsigned)).toThrow(message);
    expect(() => parseUnsignedEthereum(unsigned)).toThrow(CoordinatorError);
  });

  test.each(kinds)('a signed one: %s', (_name, arbitrary) => {
    const [fields] = fc.sample(arbitrary, { numRuns: 1, seed: 7 });
    const signed = sign(Transaction.from(fields).unsignedSerialized);
    expect(() => parseUnsignedEthereum(signed)).toThrow(/is already signed; send it without a signature/);
  });

  test('no garbage throws anything else', () => {
    const valid = fc
      .oneof(...kinds.map(([, kind]) => kind))
      .map((fields) => fromHex(Transaction.from(fields).unsignedSerialized));
    const broken = fc
      .tuple(valid, fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { maxLength: 3 }), fc.nat(3))
      .map(([whole, changes, cut]) => {
        const copy = Buffer.from(whole);
        for (const [at, byte] of changes) copy[at % copy.length] = byte;
        return hexOf(copy.subarray(0, copy.length - cut));
      });
    fc.assert(
      fc.property(fc.oneof(broken, bytes(0, 60), fc.string()), (text) => {
        try {
          const transaction = parseUnsignedEthereum(text);
          // Whatever is accepted has one encoding, so that what was approved is what is signed.
          expect(hexOf(transaction.signingPayload)).toBe(`0x${text.replace(/^0x/i, '').toLowerCase()}`);
        } catch (error) {
          expect(error).toBeInstanceOf(CoordinatorError);
          expect(error).toMatchObject({ code: 'INVALID_ARGUMENT' });
        }
      }),
      { numRuns: 1_000 },
    );
  }, 120_000);

  test.each<[string, string, RegExp]>([
    ['no JSON', '{', /EIP-7702 authorization is not valid JSON/],
    ['a list', '[]', /is `\[\]`; send an object/],
    ['an unknown member', '{"address":"0x","gas":1}', /has `gas`, which would not be signed/],
    ['a short address', '{"address":"0x12","chainId":1,"nonce":0}', /address is `0x12`; send 0x and 40 hex digits/],
    ['no nonce', `{"address":"0x${'12'.repeat(20)}","chainId":1}`, /nonce is `undefined`; send an integer/],
    ['a negative chain', `{"address":"0x${'12'.repeat(20)}","chainId":-1,"nonce":0}`, /chainId is `-1`/],
    [
      'a rounded number',
      `{"address":"0x${'12'.repeat(20)}","chainId":9007199254740993,"nonce":0}`,
      /chainId is `9007199254740992`/,
    ],
  ])('an authorization: %s', (_what, json, message) => {
    expect(() => parseEip7702Authorization(json)).toThrow(message);
    expect(() => parseEip7702Authorization(json)).toThrow(CoordinatorError);
  });
});

describe('policies read', () => {
  const token = '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48';
  const abi = parseContractInterface(
    'ETHEREUM',
    JSON.stringify([
      {
        type: 'function',
        name: 'transfer',
        inputs: [
          { name: 'to', type: 'address' },
          { name: 'value', type: 'uint256' },
        ],
      },
    ]),
  );
  const data = `0xa9059cbb${wallet.address.slice(2).toLowerCase().padStart(64, '0')}${5n.toString(16).padStart(64, '0')}`;
  const policyValue = (fields: TransactionLike, interfaces = [{ address: token, interface: abi }]): unknown =>
    ethereumPolicyValue(parseUnsignedEthereum(Transaction.from(fields).unsignedSerialized), wallet.address, interfaces);

  test('a call of a contract whose ABI was uploaded', () => {
    const fields = {
      type: 2,
      chainId: 8453,
      nonce: 3,
      gasLimit: 60_000,
      maxFeePerGas: 7,
      maxPriorityFeePerGas: 2,
      to: token,
      data,
    };
    expect(policyValue(fields)).toEqual({
      type: 'TYPE_2',
      from: wallet.address.toLowerCase(),
      to: token.toLowerCase(),
      data,
      value: 0n,
      gas: 60_000n,
      gas_price: 7n,
      chain_id: 8453n,
      nonce: 3n,
      max_fee_per_gas: 7n,
      max_priority_fee_per_gas: 2n,
      max_fee_per_blob_gas: undefined,
      function_name: 'transfer',
      function_signature: '0xa9059cbb',
      contract_call_args: { to: wallet.address.toLowerCase(), value: 5n },
    });
  });

  const unknown = (value: PolicyValue) => ({ function_name: value, contract_call_args: value });

  test('no call, or of a contract without an interface: the function is no part of it; the first four bytes always are', () => {
    const call = { type: 2, chainId: 1, to: token, data };
    const selector = { function_signature: '0xa9059cbb' };
    expect(policyValue({ ...call, to: wallet.address })).toMatchObject({ ...unknown(notApplicable), ...selector });
    expect(policyValue(call, [])).toMatchObject({ ...unknown(notApplicable), ...selector });
    expect(policyValue({ ...call, to: null })).toMatchObject({ ...unknown(notApplicable), ...selector });
    expect(policyValue({ ...call, data: '0x' })).toMatchObject({ ...unknown(notApplicable), function_signature: '' });
  });

  test('another function than the interface has, or less than four bytes of it: there, and unreadable', () => {
    const call = { type: 2, chainId: 1, to: token, data };
    expect(policyValue({ ...call, data: '0x12345678' })).toMatchObject({
      ...unknown(new Unreadable('no interface of the contract has the function 0x12345678')),
      function_signature: '0x12345678',
    });
    // Compilers of old read three bytes with a zero after them.
    const short = policyValue({ ...call, data: '0xa9059c' }) as Record<string, PolicyValue>;
    for (const name of ['function_name', 'function_signature', 'contract_call_args']) {
      expect(short[name]).toBeInstanceOf(Unreadable);
    }
    expect(policyValue({ ...call, data: '0xa9059c' }, [])).toMatchObject(unknown(notApplicable));
  });

  test('several interfaces of a contract: none counts, whether they agree or not', () => {
    const call = { type: 2, chainId: 1, to: token, data };
    const other = parseContractInterface('ETHEREUM', '[{"name":"other","inputs":[]}]');
    const several = new Unreadable(`there are several interfaces of ${token.toLowerCase()}; delete all but one`);
    for (const second of [abi, other]) {
      for (const pair of [
        [abi, second],
        [second, abi],
      ]) {
        const interfaces = pair.map((one) => ({ address: token, interface: one }));
        expect(policyValue(call, interfaces)).toMatchObject(unknown(several));
      }
    }
  });

  test('what a call leaves out at its end is zero', () => {
    const call = { type: 2, chainId: 1, to: token, data: data.slice(0, -2) };
    expect(policyValue(call)).toMatchObject({ contract_call_args: { to: wallet.address.toLowerCase(), value: 0n } });
  });

  test('legacy without a chain, and the creation of a contract; one gas price is both fees', () => {
    const fees = { gas_price: 9n, max_fee_per_gas: 9n, max_priority_fee_per_gas: 9n };
    const legacyValue = policyValue({ type: 0, gasPrice: 9, to: null, data: '0x6000' }) as Record<string, PolicyValue>;
    expect(legacyValue).toMatchObject({ type: 'LEGACY', to: '', ...fees });
    expect(legacyValue['chain_id']).toBeInstanceOf(Unreadable);
    expect(policyValue({ type: 1, chainId: 5, gasPrice: 9 })).toMatchObject({ type: 'TYPE_1', chain_id: 5n, ...fees });
  });
});

describe('a signed transaction', () => {
  test.each([0, 1, 2])('of type %i is put together as ethers does, at every length of its prefix', (type) => {
    const below = (length: number, step: number) => Array.from({ length: 130 / step }, (_, at) => length - at * step);
    for (const length of [...below(130, 1), ...below(260, 1), ...below(65_540, 26)]) {
      for (const chainId of type === 0 ? [0n, 1n, 11155111n] : [1n]) {
        const fees = type === 2 ? { maxFeePerGas: 1n, maxPriorityFeePerGas: 0n } : { gasPrice: 1n };
        const fields = { type, chainId, nonce: 0, gasLimit: 21_000n, ...fees, data: `0x${'80'.repeat(length)}` };
        const oracle = Transaction.from(fields);
        oracle.signature = wallet.signingKey.sign(oracle.unsignedHash);
        expect(sign(oracle.unsignedSerialized)).toBe(oracle.serialized);
      }
    }
  });

  test('of many items takes a small part of what reading them took', () => {
    // The RLP of zeros, and of an address, 36,000 times: a megabyte in 250,000 items.
    const entry = `da8094${'11'.repeat(20)}80808080`;
    const content = `018001010194${'11'.repeat(20)}8080c0fa` + (36_000 * 27).toString(16).padStart(6, '0');
    const length = content.length / 2 + 36_000 * 27;
    const unsigned = `04fa${length.toString(16).padStart(6, '0')}${content}${entry.repeat(36_000)}`;
    const transaction = parseUnsignedEthereum(unsigned);
    const [r, s] = ['11'.repeat(32), '22'.repeat(32)];

    const read = blocksEntered(() => parseUnsignedEthereum(unsigned));
    expect(blocksEntered(() => assembleEthereum(transaction, { r, s, v: '01' }))).toBeLessThan(read / 4);
  });
});
