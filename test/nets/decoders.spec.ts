import { isUtf8 } from 'node:buffer';
import { isDeepStrictEqual } from 'node:util';
import {
  address,
  getAddressDecoder,
  getCompiledTransactionMessageDecoder,
  getCompiledTransactionMessageEncoder,
  getStructDecoder,
  getTransactionDecoder,
  getU32Decoder,
  getU64Decoder,
  getU8Decoder,
  getUtf8Decoder,
  type CompiledTransactionMessage,
  type CompiledTransactionMessageWithLifetime,
} from '@solana/kit';
import { AbiCoder, Interface, ParamType } from 'ethers';
import fc from 'fast-check';
import { bytesToHex, decodeAbiParameters, encodeAbiParameters, parseAbiParameters, type Hex } from 'viem';
import { AmbiguousText, Doubt, type PolicyValue } from '../../src/domain/policy/types.js';
import { solanaTransfers } from '../../src/transactions/solana-transfers.js';
import { type SolanaTransaction } from '../../src/transactions/solana.js';
import {
  decodeCalldata,
  decodeSolanaArgs,
  parseContractInterface,
  parseUnsignedSolana,
} from '../transactions/decoders.js';
import { mutationsOf } from '../transactions/mutations.js';
import { isLong } from '../long.js';

/** Calls, and Solana messages; `LONG=1` reads many. */
const wanted = isLong ? 200_000 : 2_000;
const run = { numRuns: wanted, seed: 24, endOnFailure: true };
/** Milliseconds, on a slow and busy machine. */
const limit = isLong ? 3_600_000 : 120_000;

function told(what: string): void {
  process.stdout.write(`decoders: ${what}\n`);
}

function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** Whether a policy that names what another decoder read would have seen it, or been in doubt. */
function isSeen(ours: PolicyValue | undefined, theirs: unknown): boolean {
  if (theirs === UNREAD || ours === undefined || ours instanceof Doubt || ours instanceof AmbiguousText) return true;
  if (typeof theirs === 'number') return ours === BigInt(theirs);
  if (typeof ours !== 'object') return ours === theirs;
  const [own, others] = [Object.values(ours), Object.values(theirs as object) as readonly unknown[]];
  return own.length === others.length && own.every((one, at) => isSeen(one, others[at]));
}

/** What a decoder refused, where it read the rest. */
const UNREAD = Symbol('unread');
/** What contracts or libraries disagree about, so that policies must be in doubt. */
const DISPUTED = Symbol('disputed');

describe('calls of contracts', () => {
  interface Parameter {
    readonly name?: string;
    readonly type: string;
    readonly components?: readonly Parameter[];
  }

  const functions = [
    'address to, bytes[] calls, uint256[2][] limits, string note',
    '(address to, uint256 value, bytes data)[] calls, bool all',
    'string[2] names, uint8 kind, (bytes32 id, string[] tags) about',
    'int64 first, bool second, bytes4 third, uint48[3] fourth, (int8 x, address y) fifth',
    'bytes[][] many, string last',
    '((string text, uint16[] numbers)[2] inner)[] outer',
  ].map((text) => {
    const inputs = parseAbiParameters(text) as readonly Parameter[];
    const abi = [{ type: 'function', name: 'run', stateMutability: 'nonpayable', inputs, outputs: [] }];
    const contract = parseContractInterface('ETHEREUM', JSON.stringify(abi));
    return { inputs, contract, selector: Interface.from(abi).getFunction('run')!.selector as Hex };
  });

  const hex = (range: fc.IntArrayConstraints) => fc.uint8Array(range).map((bytes) => bytesToHex(bytes));
  const oddText = fc.array(fc.constantFrom('a', '\0', '\ufeff', 'é', ' '), { maxLength: 5 }).map((all) => all.join(''));

  function valuesOf({ type, components = [] }: Parameter): fc.Arbitrary<unknown> {
    const [, of, length] = /^(.*)\[(\d*)\]$/.exec(type) ?? [];
    if (of !== undefined) {
      const range = length === '' ? { maxLength: 3 } : { minLength: Number(length), maxLength: Number(length) };
      return fc.array(valuesOf({ type: of, components }), range);
    }
    const [, kind, size] = /^([a-z]+)(\d*)$/.exec(type)!;
    const bits = BigInt(size || 256);
    switch (kind) {
      case 'tuple':
        return fc.record(Object.fromEntries(components.map((one) => [one.name!, valuesOf(one)])));
      case 'address':
        return hex({ minLength: 20, maxLength: 20 });
      case 'bool':
        return fc.boolean();
      case 'string':
        return fc.oneof(fc.string({ maxLength: 40 }), oddText);
      case 'bytes':
        return size === '' ? hex({ maxLength: 40 }) : hex({ minLength: Number(size), maxLength: Number(size) });
      case 'int':
        return fc
          .bigInt(-(2n ** (bits - 1n)), 2n ** (bits - 1n) - 1n)
          .map((value) => (bits > 48n ? value : Number(value)));
      default:
        return fc.bigInt(0n, 2n ** bits - 1n).map((value) => (bits > 48n ? value : Number(value)));
    }
  }

  const WORD = 32n;
  const WRAP = 2n ** 256n;
  /** What becomes of one word: an offset or a length that leads elsewhere, or anything. */
  const word = fc.oneof(
    fc.integer({ min: 0, max: 20 }).map((words) => WORD * BigInt(words)),
    fc.integer({ min: 1, max: 20 }).map((words) => WRAP - WORD * BigInt(words)),
    fc.bigInt(0n, 64n),
    fc.bigInt(0n, WRAP - 1n),
  );
  const change = fc.record({ at: fc.nat(24), word });
  const end = fc.oneof(fc.constant(0), fc.integer({ min: -80, max: 40 }));
  const call = fc.constantFrom(...functions).chain((one) =>
    fc
      .tuple(fc.tuple(...one.inputs.map(valuesOf)), fc.array(change, { maxLength: 3 }), end)
      .map(([values, changes, more]) => {
        const args = Buffer.from(encodeAbiParameters(one.inputs, values).slice(2), 'hex');
        for (const changed of changes) {
          const place = (Number(WORD) * changed.at) % Math.max(Number(WORD), args.length);
          args.set(
            Buffer.from(changed.word.toString(16).padStart(64, '0'), 'hex').subarray(0, args.length - place),
            place,
          );
        }
        const cut =
          more < 0 ? args.subarray(0, Math.max(0, args.length + more)) : Buffer.concat([args, Buffer.alloc(more, 7)]);
        return { ...one, args: cut, data: `${one.selector}${cut.toString('hex')}` as Hex };
      }),
  );

  /**
   * The arguments as a contract gets them by CALLDATALOAD and CALLDATACOPY: written for the shortest text, without a
   * thought of time.
   */
  function asExecuted(inputs: readonly Parameter[], data: Uint8Array): readonly unknown[] {
    let words = 0;
    const bytes = (place: bigint, length: bigint): Uint8Array => {
      if (length > 20_000n || (words += 1) > 3_000) throw new Error('too long to read');
      const from = BigInt.asUintN(256, place);
      return Uint8Array.from({ length: Number(length) }, (_, at) => data[Number(from) + at] ?? 0);
    };
    const integer = (place: bigint) => BigInt(bytesToHex(bytes(place, WORD)));
    const fits = (value: unknown, back: bigint, original: bigint) => (back === original ? value : DISPUTED);
    const isDynamic = ({ type, components = [] }: Parameter): boolean =>
      /^(string|bytes)\b(?!\d)|\[\]/.test(type) || components.some(isDynamic);
    const headOf = (one: Parameter): bigint => {
      if (isDynamic(one)) return WORD;
      const [, of, length] = /^(.*)\[(\d+)\]$/.exec(one.type) ?? [];
      if (of !== undefined) return BigInt(length!) * headOf({ ...one, type: of });
      return (one.components ?? []).reduce((sum, part) => sum + headOf(part), one.components ? 0n : WORD);
    };
    const listed = (types: readonly Parameter[], base: bigint) => {
      let head = base;
      return types.map((one) => {
        const value = read(one, isDynamic(one) ? base + integer(head) : head);
        head += headOf(one);
        return value;
      });
    };
    const read = (one: Parameter, place: bigint): unknown => {
      const [, of, length] = /^(.*)\[(\d*)\]$/.exec(one.type) ?? [];
      if (of !== undefined) {
        const count = length === '' ? integer(place) : BigInt(length!);
        if (count > 3_000n) throw new Error('too long to read');
        const types = Array.from({ length: Number(count) }, () => ({ ...one, type: of }));
        return listed(types, length === '' ? place + WORD : place);
      }
      if (one.components) return listed(one.components, place);
      const [, kind, size] = /^([a-z]+)(\d*)$/.exec(one.type)!;
      if (size === '' && (kind === 'string' || kind === 'bytes')) {
        const content = Buffer.from(bytes(place + WORD, integer(place)));
        if (kind === 'bytes') return bytesToHex(content);
        const isOdd = !isUtf8(content) || content.includes(0) || content.subarray(0, 3).equals(Buffer.from('\ufeff'));
        return isOdd ? DISPUTED : content.toString('utf8');
      }
      const value = integer(place);
      const text = value.toString(16).padStart(64, '0');
      switch (kind) {
        case 'address':
          return fits(`0x${text.slice(24)}`, BigInt.asUintN(160, value), value);
        case 'bool':
          return fits(value === 1n, BigInt.asUintN(1, value), value);
        case 'bytes':
          return /^0*$/.test(text.slice(2 * Number(size))) ? `0x${text.slice(0, 2 * Number(size))}` : DISPUTED;
        case 'int': {
          const signed = BigInt.asIntN(Number(size || 256), value);
          return fits(signed, BigInt.asUintN(256, signed), value);
        }
        default:
          return fits(value, BigInt.asUintN(Number(size || 256), value), value);
      }
    };
    return listed(inputs, 4n);
  }

  /** The same, and in doubt where that is due and nowhere else. */
  function isSame(ours: PolicyValue | undefined, executed: unknown): boolean {
    if (executed === DISPUTED) return ours instanceof Doubt;
    if (!Array.isArray(executed)) return ours === executed;
    if (typeof ours !== 'object' || ours instanceof Doubt) return false;
    const own = Object.values(ours) as readonly PolicyValue[];
    return own.length === executed.length && own.every((one, at) => isSame(one, executed[at]));
  }

  /** What ethers reads; it reads text that is broken only when it is looked at. */
  function byEthers(inputs: readonly Parameter[], args: Uint8Array, loose: boolean): unknown {
    const types = inputs.map((one) => ParamType.from(one));
    const values = (list: readonly unknown[]): unknown[] =>
      Array.from({ length: list.length }, (_, at) => {
        try {
          const value = list[at];
          return Array.isArray(value) ? values(value as readonly unknown[]) : caseless(value);
        } catch {
          return UNREAD;
        }
      });
    const decoded = attempt(() => AbiCoder.defaultAbiCoder().decode(types, args, loose));
    return decoded && values(decoded);
  }

  /** Addresses in lower case. */
  function caseless(value: unknown): unknown {
    if (typeof value === 'string') return /^0x[0-9a-f]{40}$/i.test(value) ? value.toLowerCase() : value;
    if (typeof value !== 'object' || value === null) return value;
    return Object.values(value).map(caseless);
  }

  test(
    'what viem or ethers reads, policies read too, or are in doubt; what a contract gets, they read',
    () => {
      const read = { viem: 0, ethers: 0, 'ethers, loosely': 0, contracts: 0 };
      fc.assert(
        fc.property(call, ({ inputs, contract, args, data }) => {
          const decoded = decodeCalldata(contract, data)!.args;
          const others = {
            viem: caseless(attempt(() => decodeAbiParameters(inputs, bytesToHex(args)))),
            ethers: byEthers(inputs, args, false),
            'ethers, loosely': byEthers(inputs, args, true),
          };
          for (const [name, theirs] of Object.entries(others) as [keyof typeof others, unknown][]) {
            if (theirs === undefined) continue;
            read[name] += 1;
            if (!isSeen(decoded, theirs)) throw new Error(`${name} reads something else`);
          }
          const executed = attempt(() => asExecuted(inputs, Buffer.from(data.slice(2), 'hex')));
          if (executed === undefined) return;
          read.contracts += 1;
          if (!isSame(decoded, executed)) throw new Error('a contract gets something else');
        }),
        run,
      );
      told(`${wanted} calls of ${functions.length} functions, read by ${JSON.stringify(read)}`);
      expect(Math.min(...Object.values(read))).toBeGreaterThan(wanted / 5);
    },
    limit,
  );
});

describe('calls of contracts whose values share their place', () => {
  const types = { 'bytes[]': 1, 'bytes[][]': 2, 'bytes[][][]': 3 } as const;
  const shared = fc.record({
    type: fc.constantFrom(...(Object.keys(types) as (keyof typeof types)[])),
    width: fc.integer({ min: 2, max: 40 }),
    blob: fc.uint8Array({ minLength: 33, maxLength: 2_048 }),
    to: fc.uint8Array({ minLength: 20, maxLength: 20 }),
  });
  const word = (value: number) => value.toString(16).padStart(64, '0');

  /** A list of so many offsets to one place, where there is another such list, or the blob. */
  function tree(depth: number, width: number, blob: Uint8Array): string {
    if (depth > 0) return word(width) + word(32 * width).repeat(width) + tree(depth - 1, width, blob);
    const content = Buffer.from(blob).toString('hex');
    return word(blob.length) + content.padEnd(Math.ceil(content.length / 64) * 64, '0');
  }

  test(
    'are read like values of their own, however many they are',
    () => {
      let largest = 0;
      fc.assert(
        fc.property(shared, ({ type, width, blob, to }) => {
          const inputs = parseAbiParameters(`address to, ${type} calls`) as readonly { name?: string; type: string }[];
          const abi = [{ type: 'function', name: 'run', stateMutability: 'nonpayable', inputs, outputs: [] }];
          const contract = parseContractInterface('ETHEREUM', JSON.stringify(abi));
          const selector = Interface.from(abi).getFunction('run')!.selector;
          const depth = types[type];
          const address = Buffer.from(to).toString('hex');
          const data = `${selector}${address.padStart(64, '0')}${word(64)}${tree(depth, width, blob)}`;
          const { args } = decodeCalldata(contract, data)!;
          if (args instanceof Doubt) throw new Error('it is in doubt');
          const read = args;
          expect(read['to']).toBe(`0x${address}`);
          let value = read['calls']!;
          for (let level = 0; level < depth; level++) {
            const list = Object.values(value as object) as readonly PolicyValue[];
            expect([list.length, new Set(list).size]).toEqual([width, 1]);
            value = list.at(-1)!;
          }
          expect(value).toBe(bytesToHex(blob));
          largest = Math.max(largest, width ** depth * blob.length);
        }),
        { ...run, numRuns: wanted / 40 },
      );
      told(`${wanted / 40} calls with values that share their place, of up to ${largest} bytes if each had its own`);
      expect(largest).toBeGreaterThan(1_000_000);
    },
    limit,
  );
});

describe('Solana', () => {
  const keys = Array.from({ length: 12 }, (_, at) => getAddressDecoder().decode(new Uint8Array(32).fill(at + 1)));
  const indexes = (max: number) => fc.array(fc.nat(max), { maxLength: 5 });
  const instruction = fc.record({
    programAddressIndex: fc.integer({ min: 1, max: 6 }),
    accountIndices: indexes(9),
    data: fc.uint8Array({ maxLength: 40 }),
  });
  const lookup = fc.record({
    lookupTableAddress: fc.constantFrom(...keys),
    writableIndexes: indexes(255),
    readonlyIndexes: fc.array(fc.nat(255), { minLength: 1, maxLength: 3 }),
  });
  const parts = {
    header: fc.constantFrom([1, 0, 1], [2, 1, 3], [3, 0, 0], [1, 0, 6]).map(([signers, signed, other]) => ({
      numSignerAccounts: signers,
      numReadonlySignerAccounts: signed,
      numReadonlyNonSignerAccounts: other,
    })),
    staticAccounts: fc.integer({ min: 7, max: 12 }).map((count) => keys.slice(0, count)),
    lifetimeToken: fc.constant(keys[9] as string),
    instructions: fc.array(instruction, { maxLength: 4 }),
  };
  const message: fc.Arbitrary<CompiledTransactionMessage & CompiledTransactionMessageWithLifetime> = fc.oneof(
    fc.record({ version: fc.constant('legacy' as const), ...parts }),
    fc.record({ version: fc.constant(0 as const), ...parts, addressTableLookups: fc.array(lookup, { maxLength: 2 }) }),
  );
  const hostile = message.chain((one) => {
    const bytes = Uint8Array.from(getCompiledTransactionMessageEncoder().encode(one));
    const signers = one.header.numSignerAccounts;
    const whole = Uint8Array.from([signers, ...new Uint8Array(64 * signers), ...bytes]);
    return fc.constantFrom(bytes, whole).chain((start) => fc.oneof(fc.constant(start), mutationsOf(start)));
  });

  /** A message as @solana/kit reads it, in the form of ours. */
  function byKit(bytes: Uint8Array) {
    const read = getCompiledTransactionMessageDecoder().decode(bytes);
    if (read.version === 1) throw new Error('is of another version');
    const { numSignerAccounts: signers, numReadonlySignerAccounts, numReadonlyNonSignerAccounts } = read.header;
    const lookups = 'addressTableLookups' in read ? (read.addressTableLookups ?? []) : [];
    return {
      version: read.version,
      accounts: read.staticAccounts.map((key, at) => ({
        key,
        signer: at < signers,
        writable:
          at < signers
            ? at < signers - numReadonlySignerAccounts
            : at < read.staticAccounts.length - numReadonlyNonSignerAccounts,
      })),
      recentBlockhash: read.lifetimeToken,
      instructions: read.instructions.map((one) => ({
        programKey: read.staticAccounts[one.programAddressIndex],
        accountIndexes: one.accountIndices ?? [],
        data: bytesToHex(Uint8Array.from(one.data ?? [])),
      })),
      lookups: lookups.map((one) => [one.lookupTableAddress, one.writableIndexes, one.readonlyIndexes]),
    };
  }

  function asKit(read: SolanaTransaction): ReturnType<typeof byKit> {
    return {
      version: read.version,
      accounts: read.accounts.slice(0, read.staticAccountCount) as ReturnType<typeof byKit>['accounts'],
      recentBlockhash: read.recentBlockhash,
      instructions: read.instructions.map((one) => ({
        programKey: address(one.programKey),
        accountIndexes: [...one.accountIndexes],
        data: bytesToHex(one.data),
      })),
      lookups: read.addressTableLookups.map((one) => [
        address(one.tableKey),
        [...one.writableIndexes],
        [...one.readonlyIndexes],
      ]),
    };
  }

  test(
    'what @solana/kit reads of the message that is signed, policies read too',
    () => {
      let [signed, refused] = [0, 0];
      fc.assert(
        fc.property(hostile, (bytes) => {
          const ours = attempt(() => parseUnsignedSolana(bytesToHex(bytes).slice(2)));
          if (ours === undefined) {
            refused += 1;
            return;
          }
          signed += 1;
          if (!isDeepStrictEqual(asKit(ours), byKit(ours.message))) throw new Error('@solana/kit reads something else');
          const whole = (bytes[0]! & 0x80) === 0 && attempt(() => getTransactionDecoder().decode(bytes));
          const isWhole = bytes.length > ours.message.length;
          if (whole && isWhole) expect(bytesToHex(Uint8Array.from(whole.messageBytes))).toBe(bytesToHex(ours.message));
        }),
        run,
      );
      told(`${wanted} Solana messages and transactions, ${signed} read, ${refused} refused`);
      expect(Math.min(signed, refused)).toBeGreaterThan(wanted / 10);
    },
    limit,
  );

  const SYSTEM = '11111111111111111111111111111111';
  const TOKENS = ['TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA', 'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb'];
  const u64 = (value: bigint): number[] => [...Buffer.from(value.toString(16).padStart(16, '0'), 'hex').reverse()];
  interface Movement {
    readonly from: string | undefined;
    readonly to: string | undefined;
    readonly amount: bigint;
  }

  /** What the programs themselves move, read with the codecs of @solana/kit: more bytes than are due do not matter. */
  function movedBy(programKey: string, data: Uint8Array, accounts: readonly string[]): readonly Movement[] {
    const [from, second, third] = accounts;
    if (programKey === SYSTEM) {
      const read = attempt(() =>
        getStructDecoder([
          ['tag', getU32Decoder()],
          ['amount', getU64Decoder()],
        ]).decode(data),
      );
      if (read === undefined || ![0, 2, 5, 11].includes(read.tag)) return [];
      return [{ from, to: read.tag === 11 ? third : second, amount: read.amount }];
    }
    if (data[0] === 255) {
      const header = getStructDecoder([
        ['accounts', getU8Decoder()],
        ['length', getU8Decoder()],
      ]);
      let [rest, left] = [data.subarray(1), accounts];
      const all: Movement[] = [];
      while (rest.length >= 2) {
        const { accounts: count, length } = header.decode(rest);
        all.push(...movedBy(programKey, rest.subarray(2, 2 + length), left.slice(0, count)));
        [rest, left] = [rest.subarray(2 + length), left.slice(count)];
      }
      return all;
    }
    const read = attempt(() =>
      getStructDecoder([
        ['tag', getU8Decoder()],
        ['amount', getU64Decoder()],
      ]).decode(data),
    );
    if (read === undefined || (read.tag !== 3 && read.tag !== 12)) return [];
    return [{ from, to: read.tag === 12 ? third : second, amount: read.amount }];
  }

  const amount = fc.bigInt(0n, 2n ** 64n - 1n);
  const more = fc.uint8Array({ maxLength: 6 });
  const simple = fc.oneof(
    fc.tuple(fc.constantFrom(3, 12), amount, more).map(([tag, value, rest]) => [tag, ...u64(value), ...rest]),
    fc.constantFrom<number[][]>([22], [17], [0, 9], [4, 1]),
  );
  const batchOf = (part: fc.Arbitrary<number[]>) =>
    fc
      .array(part, { minLength: 1, maxLength: 3 })
      .map((all) => [255, ...all.flatMap((one) => [4, one.length & 0xff, ...one])]);
  const system = fc
    .tuple(fc.constantFrom(0, 2, 5, 11), amount, fc.constantFrom(0, 40, 50))
    .map(([tag, value, rest]) => [tag, 0, 0, 0, ...u64(value), ...new Uint8Array(rest)]);
  const moving = fc.oneof(
    fc.tuple(fc.constant(SYSTEM), system),
    fc.tuple(fc.constantFrom(...TOKENS), fc.oneof(simple, batchOf(simple), batchOf(batchOf(simple)))),
  );
  const transfer = moving.chain(([programKey, data]) => {
    const start = Uint8Array.from(data);
    return fc.record({
      programKey: fc.constant(programKey),
      data: fc.oneof(fc.constant(start), mutationsOf(start)),
      accounts: fc.array(fc.constantFrom(...(keys as readonly string[])), { maxLength: 13 }),
    });
  });

  test(
    'what the system and token programs move, lists of transfers show, or are in doubt',
    () => {
      let [moved, shown] = [0, 0];
      fc.assert(
        fc.property(transfer, ({ programKey, data, accounts }) => {
          const expected = movedBy(programKey, data, accounts);
          if (expected.length > 0) moved += 1;
          const told = solanaTransfers([
            { programKey, data, accounts: accounts.map((key) => ({ key, signer: true })) },
          ]);
          const list = programKey === SYSTEM ? told.transfers : told.spl_transfers;
          if (list instanceof Doubt) return;
          if (expected.length > 0) shown += 1;
          // Others that move something, a closed account among them, are shown as well.
          const all = Object.values(list);
          for (const one of expected) expect(all).toContainEqual(expect.objectContaining(one));
        }),
        run,
      );
      told(`${wanted} instructions of the system and token programs, ${moved} move something, ${shown} were shown`);
      expect(shown).toBeGreaterThan(wanted / 10);
    },
    limit,
  );

  test(
    'text that @solana/kit reads otherwise than it is written is in doubt',
    () => {
      const program = parseContractInterface(
        'SOLANA',
        JSON.stringify({
          instructions: [{ name: 'note', discriminator: [1], accounts: [], args: [{ name: 'text', type: 'string' }] }],
        }),
      );
      const bytes = fc.oneof(
        fc.string({ unit: fc.constantFrom('a', '\0', '\ufeff', 'é'), maxLength: 6 }).map((text) => Buffer.from(text)),
        fc.uint8Array({ maxLength: 8 }),
      );
      fc.assert(
        fc.property(bytes, (text) => {
          const data = Uint8Array.from([1, text.length, 0, 0, 0, ...text]);
          const theirs = attempt(() => getUtf8Decoder().decode(text));
          const ours = decodeSolanaArgs(program, data)!.programCallArgs;
          if (theirs !== undefined && !isSeen(ours, [theirs]))
            throw new Error(`@solana/kit reads ${JSON.stringify(theirs)}`);
        }),
        run,
      );
    },
    limit,
  );
});
