import { AbiCoder, Interface } from 'ethers';
import fc from 'fast-check';
import { createHash } from 'node:crypto';
import { toFunctionSelector } from 'viem';
import { CoordinatorError } from '../../src/domain/errors.js';
import { Unreadable, type PolicyValue } from '../../src/domain/policy/types.js';
import { decodeCalldata, decodeSolanaArgs, parseContractInterface } from './decoders.js';
import { fromHex } from '../keyring/read-vectors.js';
import { isLong } from '../long.js';

const hexOf = (bytes: Uint8Array): string => `0x${Buffer.from(bytes).toString('hex')}`;
const ethereum = (abi: unknown) => parseContractInterface('ETHEREUM', JSON.stringify(abi));
const solana = (idl: unknown) => parseContractInterface('SOLANA', JSON.stringify(idl));
const bytes = (min: number, max = min): fc.Arbitrary<string> =>
  fc.uint8Array({ minLength: min, maxLength: max }).map(hexOf);

interface Parameter {
  readonly name: string;
  readonly type: string;
  readonly components?: readonly Parameter[];
}

/** A parameter, what it is given as, and what policies read. */
interface Sample {
  readonly parameter: Parameter;
  readonly value: fc.Arbitrary<{ readonly given: unknown; readonly read: PolicyValue }>;
}

const same = <T extends PolicyValue>(value: fc.Arbitrary<T>) => value.map((given) => ({ given, read: given }));
const integer = fc.tuple(fc.boolean(), fc.integer({ min: 1, max: 32 })).map(([signed, size]): Sample => {
  const bits = BigInt(8 * size) - (signed ? 1n : 0n);
  const value = fc.bigInt(signed ? -(2n ** bits) : 0n, 2n ** bits - 1n);
  return { parameter: { name: '', type: `${signed ? 'int' : 'uint'}${8 * size}` }, value: same(value) };
});
const fixedBytes = fc
  .integer({ min: 1, max: 32 })
  .map((size): Sample => ({ parameter: { name: '', type: `bytes${size}` }, value: same(bytes(size)) }));
const others = fc.constantFrom<Sample>(
  { parameter: { name: '', type: 'address' }, value: same(bytes(20)) },
  { parameter: { name: '', type: 'bool' }, value: same(fc.boolean()) },
  { parameter: { name: '', type: 'bytes' }, value: same(bytes(0, 70)) },
  { parameter: { name: '', type: 'string' }, value: same(fc.string({ unit: 'grapheme', maxLength: 40 })) },
);
const sample: fc.Arbitrary<Sample> = fc.letrec<{ any: Sample; basic: Sample; list: Sample; tuple: Sample }>((tie) => ({
  any: fc.oneof({ depthSize: 'small', withCrossShrink: true }, tie('basic'), tie('list'), tie('tuple')),
  basic: fc.oneof(integer, fixedBytes, others),
  list: fc.tuple(tie('any'), fc.nat(3)).map(([{ parameter, value }, length]): Sample => {
    const items = fc.array(value, length === 0 ? { maxLength: 3 } : { minLength: length, maxLength: length });
    return {
      parameter: { ...parameter, type: `${parameter.type}[${length === 0 ? '' : length}]` },
      value: items.map((all) => ({ given: all.map(({ given }) => given), read: all.map(({ read }) => read) })),
    };
  }),
  tuple: fc.array(tie('any'), { minLength: 1, maxLength: 3 }).map((parts): Sample => {
    const components = parts.map(({ parameter }, at) => ({ ...parameter, name: `part${at}` }));
    return {
      parameter: { name: '', type: 'tuple', components },
      value: fc.tuple(...parts.map(({ value }) => value)).map((all) => ({
        given: all.map(({ given }) => given),
        read: Object.fromEntries(all.map(({ read }, at) => [`part${at}`, read])),
      })),
    };
  }),
})).any;

const call = fc.array(sample, { maxLength: 4 }).chain((parts) =>
  fc.tuple(...parts.map(({ value }) => value)).map((values) => ({
    abi: [
      {
        type: 'function',
        name: 'act',
        stateMutability: 'nonpayable',
        inputs: parts.map(({ parameter }, at) => ({ ...parameter, name: `arg${at}` })),
        outputs: [],
      },
    ],
    given: values.map(({ given }) => given),
    read: Object.fromEntries(values.map(({ read }, at) => [`arg${at}`, read])),
  })),
);

describe('calls of Ethereum contracts', () => {
  test('what ethers encodes of random types is decoded, under the selector of ethers and viem', () => {
    fc.assert(
      fc.property(call, ({ abi, given, read }) => {
        const oracle = new Interface(abi);
        const data = oracle.encodeFunctionData('act', given);
        const { selector, signature } = { selector: data.slice(0, 10), signature: oracle.getFunction('act')!.format() };
        const parsed = ethereum(abi);
        expect([...parsed.functions]).toMatchObject([[selector, { name: 'act', signature }]]);
        expect(toFunctionSelector(signature)).toBe(selector);
        expect(decodeCalldata(parsed, data)).toEqual({ name: 'act', selector, args: read });
        // The Solidity decoder does not look at what follows the arguments.
        expect(decodeCalldata(parsed, `${data}c0ffee`)).toEqual({ name: 'act', selector, args: read });
      }),
      { numRuns: isLong ? 3_000 : 100 },
    );
  }, 120_000);

  test('of broken calls none throws, and what ethers reads of one is what is read here', () => {
    const calls = fc.sample(call, { numRuns: isLong ? 1_000 : 40, seed: 11 });
    let decoded = 0;
    const random = pseudoRandom(5);
    for (const { abi, given } of calls) {
      const whole = fromHex(new Interface(abi).encodeFunctionData('act', given));
      const parsed = ethereum(abi);
      for (let round = 0; round < 200; round += 1) {
        const copy = Buffer.from(whole);
        for (let change = 0; change <= random(3) && copy.length > 4; change += 1) {
          // Heads of dynamic values are where a decoder loses its way: mostly small numbers there.
          const at = 4 + random(copy.length - 4);
          copy[at] = random(2) === 0 ? random(256) : [0, 1, 0x20, 0x40, 0x7f, 0xff][random(6)]!;
        }
        const data = hexOf(copy.subarray(0, copy.length - (random(4) === 0 ? random(copy.length - 3) : 0)));
        const ours = decodeCalldata(parsed, data);
        if (round % 20 !== 0 || ours?.args === undefined) continue;
        const theirs = orUndefined((): unknown => new Interface(abi).decodeFunctionData('act', data).toArray(true));
        if (theirs === undefined) continue;
        decoded += 1;
        expect(comparable(Object.values(ours.args), theirs)).toEqual(comparable(theirs));
      }
    }
    expect(decoded).toBeGreaterThan(2 * calls.length);
  }, 120_000);

  const word = (number: number | bigint): string => BigInt.asUintN(256, BigInt(number)).toString(16).padStart(64, '0');
  const argsOfCall = (type: string, ...words: string[]): unknown => {
    const parsed = ethereum([{ type: 'function', name: 'f', inputs: [{ name: 'a', type }] }]);
    const args = decodeCalldata(parsed, [...parsed.functions.keys()][0] + words.join(''))?.args;
    return args instanceof Unreadable ? args.reason : args;
  };
  const TOO_LONG = 'the arguments take too long to read';

  test('what many offsets share is read once: a short call can say a large tree', () => {
    // Each list has 40 elements, and all are the next list: 40^10 numbers in 13 kB.
    const level = word(40) + word(40 * 32).repeat(40);
    const args = argsOfCall(`uint8${'[]'.repeat(10)}`, word(32), level.repeat(9), word(40), word(1).repeat(40));
    let list = (args as { a: unknown[] }).a;
    for (let depth = 1; depth < 10; depth += 1) {
      expect(new Set(list).size).toBe(1);
      list = list[39] as unknown[];
    }
    expect(list).toEqual(Array.from({ length: 40 }, () => 1n));
    // 40 elements, one blob of 4 KiB.
    const blob = 'ab'.repeat(4096);
    const shared = argsOfCall('bytes[]', word(32), word(40), word(40 * 32).repeat(40), word(4096), blob);
    expect(shared).toEqual({ a: Array.from({ length: 40 }, () => `0x${blob}`) });
  });

  test('what takes too long to read is unreadable: overlapping lists, and lists of nothing that is there', () => {
    // Each list begins one word after the one before; its length and its elements are words of the same region.
    const lists = Array.from({ length: 2_000 }, (_, at) => word((2_000 + at) * 32));
    expect(argsOfCall('uint16[][]', word(32), word(2_000), ...lists, word(2_000).repeat(4_000))).toBe(TOO_LONG);
    for (const type of ['uint8[999999999][999999999]', 'string[999999999]', 'uint8[]', 'bytes', 'bytes[]']) {
      expect(argsOfCall(type, word(0), word(0xffffffff))).toEqual(
        type === 'uint8[]' || type.startsWith('bytes') ? { a: type === 'bytes' ? '0x' : [] } : TOO_LONG,
      );
      expect(argsOfCall(type, word(32), word(2n ** 255n))).toBe(TOO_LONG);
    }
  });

  test('what is missing is zero, and offsets wrap around, as the machine has it', () => {
    expect(argsOfCall('uint256', '01')).toEqual({ a: 1n << 248n });
    expect(argsOfCall('uint256[2]')).toEqual({ a: [0n, 0n] });
    expect(argsOfCall('bytes', word(32), word(3), 'ab')).toEqual({ a: '0xab0000' });
    expect(argsOfCall('bytes', word(2n ** 200n))).toEqual({ a: '0x' });
    expect(argsOfCall('uint8[]', word(32), word(3), word(7))).toEqual({ a: [7n, 0n, 0n] });
    // Before the data there is nothing but zeros; what points back to the arguments reads them again.
    expect(argsOfCall('uint8[]', word(-36))).toEqual({ a: [] });
    expect(argsOfCall('uint8[2][]', word(-36), word(1))).toEqual({ a: [] });
    expect(argsOfCall('string[1]', word(-32), word(0))).toEqual({ a: [''] });
    expect(argsOfCall('bytes[1]', word(32), word(-32))).toEqual({ a: [`0x${word(-32)}`] });
  });

  test('bits beyond a type: contracts cut them, refuse them or take them, so the value is unreadable and others are not', () => {
    const types = ['address', 'uint8', 'bool', 'bytes2', 'int16', 'uint256', 'int256'];
    const parsed = ethereum([
      { type: 'function', name: 'f', inputs: types.map((type, at) => ({ name: `a${at}`, type })) },
    ]);
    const data = `${[...parsed.functions.keys()][0]}${'f'.repeat(types.length * 64)}`;
    expect(decodeCalldata(parsed, data)?.args).toEqual({
      a0: new Unreadable('a value of type address has bits beyond its type'),
      a1: new Unreadable('a value of type uint8 has bits beyond its type'),
      a2: new Unreadable('a value of type bool has bits beyond its type'),
      a3: new Unreadable('a value of type bytes2 has bits beyond its type'),
      a4: -1n,
      a5: 2n ** 256n - 1n,
      a6: -1n,
    });
  });

  test('overloaded functions are told apart by their signatures', () => {
    const abi = [
      'function mint(address to)',
      'function mint(address to, uint256 amount)',
      'function mint((address to, uint256[2] amounts)[] orders)',
    ];
    const oracle = new Interface(abi);
    const parsed = parseContractInterface('ETHEREUM', oracle.formatJson());
    const to = `0x${'12'.repeat(20)}`;
    expect(decodeCalldata(parsed, oracle.encodeFunctionData('mint(address)', [to]))?.args).toEqual({ to });
    const second = oracle.encodeFunctionData('mint(address,uint256)', [to, 7]);
    expect(decodeCalldata(parsed, second)?.args).toEqual({ to, amount: 7n });
    const third = oracle.encodeFunctionData('mint((address,uint256[2])[])', [[[to, [1, 2]]]]);
    expect(decodeCalldata(parsed, third)).toEqual({
      name: 'mint',
      selector: third.slice(0, 10),
      args: { orders: [{ to, amounts: [1n, 2n] }] },
    });
    expect(decodeCalldata(parsed, third.toUpperCase().replace('0X', '0x'))?.name).toBe('mint');
  });

  test('parameters without a name are decoded and left out; the one of a proxy twice is one', () => {
    const allowance = {
      type: 'function',
      name: 'allowance',
      inputs: [{ name: '', type: 'address' }, { type: 'address' }, { name: 'x', type: 'uint' }],
    };
    const parsed = ethereum([
      allowance,
      allowance,
      { type: 'fallback' },
      { type: 'event', name: 'E', inputs: [{ type: '?' }] },
      { name: 'old' },
    ]);
    expect([...parsed.functions.values()].map(({ signature }) => signature)).toEqual([
      'allowance(address,address,uint256)',
      'old()',
    ]);
    const data = new Interface(['function allowance(address,address,uint256)']).encodeFunctionData('allowance', [
      `0x${'1'.repeat(40)}`,
      `0x${'2'.repeat(40)}`,
      3,
    ]);
    expect(decodeCalldata(parsed, data)?.args).toEqual({ x: 3n });
  });

  test.each([
    ['is not UTF-8', '0x41ff42', 'text that is not UTF-8'],
    ['begins with a NUL, which viem leaves out', '0x006576696c', 'text with a NUL, which not everybody reads'],
    ['has a NUL in it, at which others end', '0x6576696c0041', 'text with a NUL, which not everybody reads'],
    ['begins with a byte order mark', '0xefbbbf41', 'text with a byte order mark, which not everybody reads'],
  ])('text that %s is unreadable', (_what, bytes, reason) => {
    const encoded = AbiCoder.defaultAbiCoder().encode(['bytes'], [bytes]).slice(2);
    expect(argsOfCall('string', encoded)).toEqual({ a: new Unreadable(reason) });
  });

  const of = (...inputs: unknown[]): unknown => [{ type: 'function', name: 'f', inputs }];
  test.each<[string, unknown, RegExp]>([
    ['an artifact', { abi: [] }, /is no list; send the list in its member `abi`/],
    ['an object', {}, /is no list; send a JSON ABI/],
    ['a text', [['function f()']], /\[0\] is .*; send a function, constructor/],
    ['an unknown entry', [{ type: 'method' }], /\[0\] is .*method.*; send a function/],
    ['no name', [{ type: 'event' }, { type: 'function' }], /\[1\].name is `undefined`; send the name/],
    ['a forged name', [{ type: 'function', name: 'f(a)' }], /\[0\].name is `f\(a\)`/],
    ['inputs that are no list', [{ type: 'function', name: 'f', inputs: {} }], /\[0\].inputs is `{}`/],
    ['an input without a type', of({ name: 'x' }), /\[0\].inputs\[0\].type is `undefined`/],
    ['an unknown type', of({ name: 'x', type: 'uint7' }), /\[0\].inputs\[0\].type `uint7` is not known/],
    ['fixed point', of({ name: 'x', type: 'fixed128x18' }), /`fixed128x18` is not known/],
    ['an array of none', of({ name: 'x', type: 'bool[0]' }), /arrays are T\[\] or T\[n\]/],
    ['a tuple of nothing', of({ name: 'x', type: 'tuple', components: [] }), /components is empty/],
    ['a tuple without components', of({ name: 'x', type: 'tuple' }), /components is `undefined`/],
    ['a name twice', of({ name: 'x', type: 'bool' }, { name: 'x', type: 'bool' }), /inputs\[1\].name `x` is taken/],
    ['a name that is no text', of({ name: 1, type: 'bool' }), /inputs\[0\].name is `1`/],
    ['dimensions', of({ name: 'x', type: `bool${'[]'.repeat(33)}` }), /more than 32 dimensions/],
    ['depth', of(nested(40)), /is nested deeper than 32 levels/],
    // keccak256 of both begins with 0xa9059cbb.
    [
      'one selector for two functions',
      [
        { name: 'transfer', inputs: [{ type: 'address' }, { type: 'uint256' }] },
        { name: 'many_msg_babbage', inputs: [{ type: 'bytes1' }] },
      ],
      /\[1\] `many_msg_babbage\(bytes1\)` has the selector of `transfer/,
    ],
  ])('ABI refused: %s', (_what, abi, message) => {
    expect(() => ethereum(abi)).toThrow(message);
    expect(() => ethereum(abi)).toThrow(CoordinatorError);
    expect(() => ethereum(abi)).toThrow(/smartContractInterface/);
  });
});

test('an interface has at most 400 000 characters and is JSON', () => {
  const padded = (length: number): string => `[]${' '.repeat(length - 2)}`;
  expect(parseContractInterface('ETHEREUM', padded(400_000)).functions.size).toBe(0);
  for (const type of ['ETHEREUM', 'SOLANA'] as const) {
    expect(() => parseContractInterface(type, padded(400_001))).toThrow(/has `400001` characters; at most 400000/);
    expect(() => parseContractInterface(type, '[')).toThrow(/is not valid JSON/);
    expect(() => parseContractInterface(type, '['.repeat(400_000))).toThrow(CoordinatorError);
    expect(() => parseContractInterface(type, 'null')).toThrow(CoordinatorError);
  }
});

const u8 = (number: number): string => number.toString(16).padStart(2, '0');
const little = (number: bigint, size: number): string =>
  Buffer.from(
    BigInt.asUintN(8 * size, number)
      .toString(16)
      .padStart(2 * size, '0'),
    'hex',
  )
    .reverse()
    .toString('hex');
const text = (value: string): string =>
  little(BigInt(Buffer.byteLength(value)), 4) + Buffer.from(value).toString('hex');
const anchor = (name: string): string => createHash('sha256').update(`global:${name}`).digest('hex').slice(0, 16);

describe('instructions of Solana programs', () => {
  const key = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA';
  const keyHex = '06ddf6e1d765a193d9cbe146ceeb79ac1cb485ed5f5b37913a8cf5857eff00a9';
  const argsOf = (program: ReturnType<typeof solana>, data: string): ReturnType<typeof decodeSolanaArgs> =>
    decodeSolanaArgs(program, fromHex(data));
  const one = (type: unknown, types: unknown[] = []): ReturnType<typeof solana> =>
    solana({ instructions: [{ name: 'go', accounts: [], args: [{ name: 'x', type }] }], types });
  const read = (type: unknown, data: string, types: unknown[] = []): PolicyValue | undefined =>
    argOf(argsOf(one(type, types), anchor('go') + data));

  test('before Anchor 0.30 have names in camel case, and discriminators are calculated', () => {
    const program = solana({
      version: '0.1.0',
      name: 'swap',
      instructions: [
        {
          name: 'sharedAccountsRoute',
          accounts: [
            { name: 'tokenProgram', isMut: false, isSigner: false },
            {
              name: 'user',
              accounts: [
                { name: 'owner', isMut: true, isSigner: true },
                { name: 'vault', isMut: true },
              ],
            },
          ],
          args: [
            { name: 'id', type: 'u8' },
            { name: 'inAmount', type: 'u64' },
            { name: 'receiver', type: 'publicKey' },
          ],
        },
      ],
      metadata: { address: key },
    });
    expect(program.programId).toBe(key);
    // As published for Jupiter v6, whose IDL has this instruction.
    expect(program.instructions[0]?.discriminatorHex).toBe('c1209b3341d69c81');
    expect(argsOf(program, `c1209b3341d69c81${u8(7)}${little(995_500_000n, 8)}${keyHex}`)).toEqual({
      instructionName: 'sharedAccountsRoute',
      discriminator: 'c1209b3341d69c81',
      accountNames: ['tokenProgram', 'user.owner', 'user.vault'],
      programCallArgs: { id: 7n, inAmount: 995_500_000n, receiver: key },
    });
    expect(argsOf(program, '00'.repeat(8))).toBeUndefined();
    expect(argsOf(program, 'c1209b')).toBeUndefined();
    // Cut short: the instruction is known, and what it says is not.
    expect(argsOf(program, `c1209b3341d69c81${u8(7)}`)).toMatchObject({
      instructionName: 'sharedAccountsRoute',
      programCallArgs: new Unreadable('the arguments of the instruction do not decode'),
    });
  });

  test('before Anchor 0.30 may have had a digit behind an underscore, which camel case does not show', () => {
    const names = ['deposit2Pools', 'closeV2', 'go', 'a1234'];
    const program = solana({ instructions: names.map((name) => ({ name, accounts: [], args: [] })) });
    const nameOf = (rust: string) => argsOf(program, anchor(rust))?.instructionName;
    expect(['deposit2_pools', 'deposit_2_pools', 'close_v2', 'close_v_2'].map(nameOf)).toEqual([
      'deposit2Pools',
      'deposit2Pools',
      'closeV2',
      'closeV2',
    ]);
    expect(argsOf(program, anchor('close_v_2'))?.discriminator).toBe(anchor('close_v_2'));
    // Of four digits, which have 16 spellings, only one is tried.
    expect(['a1234', 'a_1234', 'deposit2pools', 'g_o'].map(nameOf)).toEqual(['a1234', undefined, undefined, undefined]);
  });

  test('since Anchor 0.30 have discriminators of any length, of which the longest that fits counts', () => {
    const program = solana({
      address: key,
      metadata: { name: 'idl', version: '0.1.0', spec: '0.1.0' },
      instructions: [
        { name: 'short', discriminator: [1], accounts: [{ name: 'payer', writable: true, signer: true }], args: [] },
        { name: 'long', discriminator: [1, 2], accounts: [], args: [{ name: 'to', type: 'pubkey' }] },
      ],
    });
    expect(argsOf(program, '0103')).toMatchObject({ instructionName: 'short', accountNames: ['payer'] });
    expect(argsOf(program, `0102${keyHex}`)).toMatchObject({ instructionName: 'long', programCallArgs: { to: key } });
  });

  const points = [
    {
      name: 'Point',
      type: {
        kind: 'struct',
        fields: [
          { name: 'a', type: 'u8' },
          { name: 'b', type: { option: 'i16' } },
        ],
      },
    },
    { name: 'Pair', type: { kind: 'struct', fields: ['u8', 'bool'] } },
    { name: 'Unit', type: { kind: 'struct' } },
    { name: 'Amount', type: { kind: 'type', alias: 'u64' } },
    { name: 'OldAmount', type: { kind: 'alias', value: 'u64' } },
    {
      name: 'Side',
      type: {
        kind: 'enum',
        variants: [
          { name: 'Bid' },
          { name: 'At', fields: [{ name: 'price', type: 'u16' }] },
          { name: 'Both', fields: ['u8', { defined: 'Point' }] },
        ],
      },
    },
    {
      name: 'Box',
      generics: [
        { kind: 'type', name: 'T' },
        { kind: 'const', name: 'N', type: 'usize' },
      ],
      type: { kind: 'struct', fields: [{ name: 'items', type: { array: [{ generic: 'T' }, { generic: 'N' }] } }] },
    },
  ];

  test.each<[unknown, string, PolicyValue | undefined]>([
    ['bool', '01', true],
    ['u8', 'ff', 255n],
    ['i8', 'ff', -1n],
    ['u16', '0102', 513n],
    ['i32', 'feffffff', -2n],
    ['u64', 'ffffffffffffffff', 2n ** 64n - 1n],
    ['i64', '0000000000000080', -(2n ** 63n)],
    ['u128', 'ff'.repeat(16), 2n ** 128n - 1n],
    ['i128', 'ff'.repeat(16), -1n],
    ['u256', `01${'00'.repeat(31)}`, 1n],
    ['f32', '0000c03f', '1.5'],
    ['f64', '000000000000f8bf', '-1.5'],
    ['string', text('héllo'), 'héllo'],
    ['bytes', `${little(2n, 4)}ABCD`, 'abcd'],
    ['pubkey', keyHex, key],
    [{ vec: 'u16' }, `${little(2n, 4)}01000200`, [1n, 2n]],
    [{ array: ['u8', 3] }, '010203', [1n, 2n, 3n]],
    [{ option: 'u8' }, '0105', 5n],
    [{ option: 'u8' }, '00', undefined],
    [{ vec: { option: 'u8' } }, `${little(2n, 4)}000105`, [{}, 5n]],
    [{ defined: 'Point' }, '0701feff', { a: 7n, b: -2n }],
    [{ defined: 'Point' }, '0700', { a: 7n }],
    [{ defined: { name: 'Pair' } }, '0701', [7n, true]],
    [{ defined: 'Unit' }, '', {}],
    [{ defined: 'Amount' }, '0100000000000000', 1n],
    [{ defined: 'OldAmount' }, '0100000000000000', 1n],
    [{ defined: 'Side' }, '00', 'Bid'],
    [{ defined: 'Side' }, '012a00', { At: { price: 42n } }],
    [{ defined: 'Side' }, '02090700', { Both: [9n, { a: 7n }] }],
    [
      {
        defined: {
          name: 'Box',
          generics: [
            { kind: 'type', type: 'u16' },
            { kind: 'const', value: '2' },
          ],
        },
      },
      '01000200',
      { items: [1n, 2n] },
    ],
    [{ vec: { defined: 'Point' } }, `${little(2n, 4)}07000800`, [{ a: 7n }, { a: 8n }]],
    // Data that ends too soon, and values that a type has not.
    ['u64', '00', undefined],
    ['bool', '02', undefined],
    ['string', '05000000ab', undefined],
    ['string', '01000000ff', undefined],
    [{ option: 'u8' }, '0205', undefined],
    [{ defined: 'Side' }, '03', undefined],
    [{ vec: 'u8' }, 'ffffffff', undefined],
    [{ vec: { defined: 'Unit' } }, 'ffffffff', undefined],
    [{ array: [{ defined: 'Unit' }, 999_999_999] }, '', undefined],
  ])('%j of %s', (type, data, value) => {
    expect(read(type, data, points)).toEqual(value);
    if (value !== undefined) expect(read(type, `${data}00`, points)).toEqual(value);
  });

  test('two instances of one generic type are two types', () => {
    const box = (type: unknown, value: string): unknown => ({
      defined: {
        name: 'Box',
        generics: [
          { kind: 'type', type },
          { kind: 'const', value },
        ],
      },
    });
    const args = [box('u8', '1'), box('u16', '1'), box('u8', '2'), box({ vec: 'u8' }, '1')].map((type, at) => ({
      name: `x${at}`,
      type,
    }));
    const program = solana({ instructions: [{ name: 'go', args }], types: points });
    expect(argsOf(program, `${anchor('go')}010200030401000000ff`)?.programCallArgs).toEqual({
      x0: { items: [1n] },
      x1: { items: [2n] },
      x2: { items: [3n, 4n] },
      x3: { items: [[255n]] },
    });
  });

  test('types that use one another many times over are as large as their text, and bounded to decode', () => {
    const doubling = Array.from({ length: 28 }, (_, at) => ({
      name: `D${at}`,
      type: {
        kind: 'struct',
        fields: at === 0 ? [] : ['a', 'b'].map((name) => ({ name, type: { defined: `D${at - 1}` } })),
      },
    }));
    expect(read({ defined: 'D14' }, '', doubling)).toBeUndefined();
    expect(read({ defined: 'D3' }, '', doubling)).toEqual({
      a: { a: { a: {}, b: {} }, b: { a: {}, b: {} } },
      b: { a: { a: {}, b: {} }, b: { a: {}, b: {} } },
    });
    // Each is read before the one that uses it, so that none of them is deep when it is read.
    const chain = Array.from({ length: 1_500 }, (_, at) => ({
      name: `C${at}`,
      type: { kind: 'struct', fields: [at === 0 ? 'u8' : { defined: `C${at - 1}` }] },
    }));
    const instructions = chain.map(({ name }) => ({
      name: `go_${name.toLowerCase()}`,
      args: [{ name: 'x', type: { defined: name } }],
    }));
    const program = solana({ instructions, types: chain });
    expect(argsOf(program, `${anchor('go_c2')}07`)?.programCallArgs).toEqual({ x: [[[7n]]] });
    expect(argsOf(program, `${anchor('go_c1499')}07`)?.programCallArgs).toBeInstanceOf(Unreadable);
  });

  test('of 20 000 random instructions none throws', () => {
    const args = points
      .filter(({ name }) => name !== 'Box')
      .map(({ name }) => ({ name, type: { vec: { defined: name } } }));
    const program = solana({ instructions: [{ name: 'go', discriminator: [1], args }], types: points });
    const random = pseudoRandom(3);
    let whole = 0;
    for (let round = 0; round < 20_000; round += 1) {
      const data = Uint8Array.from({ length: 1 + random(120) }, (_, at) =>
        at === 0 ? 1 : random(12) > 0 ? 0 : random(4),
      );
      const { programCallArgs } = decodeSolanaArgs(program, data)!;
      if (!(programCallArgs instanceof Unreadable)) whole += 1;
    }
    expect(whole).toBeGreaterThan(500);
  }, 120_000);

  const go = (more: object): unknown => ({ instructions: [{ name: 'go', accounts: [], args: [], ...more }] });
  const typed = (type: unknown, types: unknown[] = points): unknown => ({
    ...(go({ args: [{ name: 'x', type }] }) as object),
    types,
  });
  test.each<[string, unknown, RegExp]>([
    ['a list', [], /is no object; send an Anchor IDL/],
    ['no instructions', {}, /instructions is `undefined`; send a list/],
    ['an instruction that is none', { instructions: [1] }, /instructions\[0\] is `1`/],
    ['no name', go({ name: '' }), /instructions\[0\].name is ``; send a name/],
    ['a discriminator that is none', go({ discriminator: [256] }), /instructions\[0\].discriminator is `\[256\]`/],
    ['an empty discriminator', go({ discriminator: [] }), /discriminator is `\[\]`; send a list of bytes/],
    ['accounts', go({ accounts: {} }), /instructions\[0\].accounts is `{}`/],
    ['an account', go({ accounts: [{}] }), /instructions\[0\].accounts\[0\] is `{}`; send { name }/],
    ['arguments', go({ args: [{}] }), /instructions\[0\].args\[0\] is `{}`; send { name, type }/],
    [
      'an argument twice',
      go({
        args: [
          { name: 'x', type: 'u8' },
          { name: 'x', type: 'u8' },
        ],
      }),
      /args\[1\].name `x` is taken/,
    ],
    ['an unknown type', typed('u7'), /instructions\[0\].args\[0\].type is `u7`, which is no type of an Anchor IDL/],
    ['a name of Object', typed('constructor'), /type is `constructor`, which is no type/],
    ['an option of C', typed({ coption: 'u8' }), /which is no type of an Anchor IDL/],
    ['an unknown kind', typed({ hashMap: ['u8', 'u8'] }), /which is no type of an Anchor IDL/],
    ['an unknown inner type', typed({ vec: { option: 'u7' } }), /args\[0\].type.vec.option is `u7`/],
    ['an undefined type', typed({ defined: 'Nobody' }), /args\[0\].type.defined is `Nobody`, which is not in types/],
    ['an array without a length', typed({ array: ['u8'] }), /type.array is .*; send \[type, length\]/],
    ['a generic that nobody bound', typed({ generic: 'T' }), /which is no type/],
    ['too few generics', typed({ defined: 'Box' }), /has generic arguments `\[\]` for the parameters/],
    ['types that are no list', { instructions: [], types: {} }, /types is `{}`; send a list/],
    ['a type that is none', { instructions: [], types: [{}] }, /types\[0\] is `{}`; send { name, type }/],
    ['a type twice', { instructions: [], types: [points[0], points[0]] }, /types\[1\].name `Point` is taken/],
    [
      'an unknown definition',
      typed({ defined: 'U' }, [{ name: 'U', type: { kind: 'union' } }]),
      /type U has the kind `union`/,
    ],
    [
      'a type in itself',
      typed({ defined: 'R' }, [
        { name: 'R', type: { kind: 'struct', fields: [{ name: 'r', type: { option: { defined: 'R' } } }] } },
      ]),
      /is `R`, which contains itself/,
    ],
    [
      'depth',
      typed(Array.from({ length: 40 }).reduce((type: unknown) => ({ vec: type }), 'u8')),
      /is nested deeper than 32/,
    ],
    [
      'two of one discriminator',
      {
        instructions: [
          { name: 'a', discriminator: [1] },
          { name: 'b', discriminator: [1] },
        ],
      },
      /instructions `a` and `b` have the same discriminator/,
    ],
  ])('IDL refused: %s', (_what, idl, message) => {
    expect(() => solana(idl)).toThrow(message);
    expect(() => solana(idl)).toThrow(CoordinatorError);
  });
});

test('of 3 000 interfaces that are nearly right each is read, or refused as the caller can understand', () => {
  const abi = JSON.stringify(
    JSON.parse(new Interface(['function f((uint8 a, string[2] b)[] x, bytes4 y)', 'event E(uint8 a)']).formatJson()),
  );
  const idl = JSON.stringify({
    instructions: [
      {
        name: 'go',
        discriminator: [1, 2],
        accounts: [{ name: 'a', accounts: [] }],
        args: [{ name: 'x', type: { defined: { name: 'T' } } }],
      },
    ],
    types: [
      {
        name: 'T',
        type: { kind: 'enum', variants: [{ name: 'V', fields: [{ name: 'f', type: { array: [{ vec: 'u8' }, 2] } }] }] },
      },
    ],
  });
  const random = pseudoRandom(9);
  const replacements = ['null', '{}', '[]', '1', '"x"', 'true', '[[]]', '"__proto__"'];
  for (let round = 0; round < 3_000; round += 1) {
    const [type, whole] = round % 2 === 0 ? (['ETHEREUM', abi] as const) : (['SOLANA', idl] as const);
    // One value of the JSON becomes another.
    const places = [...whole.matchAll(/"[^"]*"(?!:)|\d+|\[\]/g)];
    const place = places[random(places.length)]!;
    const json =
      whole.slice(0, place.index) +
      replacements[random(replacements.length)]! +
      whole.slice(place.index + place[0].length);
    try {
      parseContractInterface(type, json);
    } catch (error) {
      expect(error).toBeInstanceOf(CoordinatorError);
      expect(error).toMatchObject({ code: 'INVALID_ARGUMENT' });
    }
  }
});

/** The same numbers in every run (mulberry32): a failure must be repeatable. */
function pseudoRandom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}

/** A tuple in a tuple in a tuple. */
function nested(depth: number): Parameter {
  return depth === 0 ? { name: 'x', type: 'bool' } : { name: 'x', type: 'tuple', components: [nested(depth - 1)] };
}

/** ethers has checksums in addresses and lists for tuples. What is in doubt here may be anything there. */
function comparable(value: unknown, theirs?: unknown): unknown {
  if (value instanceof Unreadable) return comparable(theirs);
  if (typeof value === 'string') return value.toLowerCase();
  if (typeof value !== 'object' || value === null) return value;
  const others = Array.isArray(theirs) ? (theirs as unknown[]) : [];
  return Object.values(value).map((one, at) => comparable(one, others[at]));
}

function argOf(call: ReturnType<typeof decodeSolanaArgs>): PolicyValue | undefined {
  const args = call?.programCallArgs;
  return args instanceof Unreadable ? undefined : args?.['x'];
}

function orUndefined<T>(action: () => T): T | undefined {
  try {
    return action();
  } catch {
    return undefined;
  }
}
