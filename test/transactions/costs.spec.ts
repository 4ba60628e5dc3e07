import { createHash } from 'node:crypto';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { Psbt, Transaction, payments } from 'bitcoinjs-lib';
import { encodeFunctionData, serializeTransaction, type Hex } from 'viem';
import { decodingSteps, mainThreadSteps, Meter, OutOfSteps, readingSteps, Steps } from '../../src/domain/steps.js';
import { unreadable, Unreadable } from '../../src/domain/policy/types.js';
import { BorshBudget, decodeSolanaArgs } from '../../src/transactions/contracts/borsh.js';
import { decodeCalldata } from '../../src/transactions/contracts/calldata.js';
import { parseContractInterface } from '../../src/transactions/contracts/parse-interface.js';
import type { PayloadsToRead } from '../../src/transactions/payloads.js';
import { read, readIfShort, type ToRead } from '../../src/transactions/reading.js';
import { programsOf } from '../../src/transactions/solana.js';
import { doublingTypes } from '../nets/costly-shapes.js';

/*
 * What reading costs is counted before it is done: what is small to write and large to read is refused or unreadable, and
 * what real applications sign is read. Steps, not time: they are the same on every machine.
 */

const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const all = () => new Steps(decodingSteps);
const readProgram = (text: string) => parseContractInterface('SOLANA', text, all());
const program = (idl: unknown) => readProgram(JSON.stringify(idl));
const contract = (abi: unknown) => parseContractInterface('ETHEREUM', JSON.stringify(abi), all());
const word = (value: number): string => value.toString(16).padStart(64, '0');

describe('an interface', () => {
  it('of generic types that double at each level is refused for the types it makes', () => {
    expect(() => readProgram(doublingTypes(24))).toThrow(/makes more than 4096 types/);
    expect(() => readProgram(doublingTypes(6))).not.toThrow();
  });

  it('makes each type once: instances of the same types are the same', () => {
    const args = Array.from({ length: 1_000 }, (_, at) => ({
      name: `x${at}`,
      type: { defined: { name: 'Box', generics: [{ kind: 'type', type: { vec: 'u8' } }] } },
    }));
    const box = {
      name: 'Box',
      generics: [{ kind: 'type', name: 'T' }],
      type: { kind: 'struct', fields: [{ name: 'items', type: { vec: { generic: 'T' } } }] },
    };
    const { instructions } = program({ instructions: [{ name: 'go', args }], types: [box] });
    expect(new Set(instructions[0]!.args.map(({ type }) => type)).size).toBe(1);
  });

  const long = 'n'.repeat(129);
  it.each<[string, () => unknown]>([
    ['an account', () => program({ instructions: [{ name: 'go', accounts: [{ name: long }], args: [] }] })],
    [
      'an account in its group',
      () =>
        program({
          instructions: [{ name: 'go', accounts: [{ name: 'g'.repeat(100), accounts: [{ name: 'a'.repeat(40) }] }] }],
        }),
    ],
    ['an instruction', () => program({ instructions: [{ name: long, accounts: [], args: [] }] })],
    ['an argument', () => program({ instructions: [{ name: 'go', args: [{ name: long, type: 'u8' }] }] })],
    ['a type', () => program({ instructions: [], types: [{ name: long, type: { kind: 'struct', fields: [] } }] })],
    ['a function', () => contract([{ type: 'function', name: long, inputs: [] }])],
    ['a parameter', () => contract([{ type: 'function', name: 'go', inputs: [{ name: long, type: 'bool' }] }])],
  ])('has names of at most 128 characters: %s', (_what, parse) => {
    expect(parse).toThrow(/a name has at most 128/);
  });

  it('has at most 16 384 parameters, 2 048 functions', () => {
    const components = Array.from({ length: 16_400 }, () => ({ type: 'bool' }));
    expect(() => contract([{ name: 'go', inputs: [{ type: 'tuple[][]', components }] }])).toThrow(/more than 16384/);
    const functions = Array.from({ length: 2_049 }, (_, at) => ({ name: `f${at}`, inputs: [] }));
    expect(() => contract(functions)).toThrow(/`2049` functions/);
    const instructions = functions.map(({ name }) => ({ name, accounts: [], args: [] }));
    expect(() => program({ instructions })).toThrow(/`2049` instructions/);
  });
});

describe('a call', () => {
  it('of lists of one empty list of tuples with many members takes steps by its length', () => {
    const components = Array.from({ length: 10_000 }, () => ({ type: 'uint8' }));
    const abi = contract([{ name: 'go', inputs: [{ name: 'x', type: 'tuple[][]', components }] }]);
    const [selector] = abi.functions.keys();
    const count = 15_000;
    // Every offset of the outer list points to the same empty list behind it.
    const data = `${selector}${word(32)}${word(count)}${word(count * 32).repeat(count)}${word(0)}`;
    const steps = all();
    expect(decodeCalldata(abi, data, steps)?.args).not.toBeInstanceOf(Unreadable);
    expect(steps.spent).toBeLessThan(300_000);
  });

  it('that cannot be read in the steps that are left is unreadable', () => {
    const abi = contract([{ name: 'go', inputs: [{ name: 'x', type: 'uint256[]' }] }]);
    const [selector] = abi.functions.keys();
    const data = `${selector}${word(32)}${word(1_000)}${word(7).repeat(1_000)}`;
    expect(decodeCalldata(abi, data, new Steps(1_000))?.args).toBeInstanceOf(Unreadable);
    expect(decodeCalldata(abi, data, all())?.args).not.toBeInstanceOf(Unreadable);
  });
});

it('instructions of one transaction are read for as many values together as a single one', () => {
  const empty = { name: 'Empty', type: { kind: 'struct', fields: [] } };
  const args = [{ name: 'x', type: { array: [{ defined: 'Empty' }, 10_000] } }];
  const idl = program({ instructions: [{ name: 'go', discriminator: [1], accounts: [], args }], types: [empty] });
  const budget = new BorshBudget(all());
  const read = () => decodeSolanaArgs(idl, Uint8Array.of(1), budget)?.programCallArgs;
  expect(read()).not.toBeInstanceOf(Unreadable);
  expect(read()).toBeInstanceOf(Unreadable);
});

it('of the accounts that an interface names, an instruction has no more than an index can tell apart', () => {
  const accounts = Array.from({ length: 10_000 }, (_, at) => ({ name: `a${at}` }));
  const idl = program({ instructions: [{ name: 'go', discriminator: [1], accounts, args: [] }] });
  expect(decodeSolanaArgs(idl, Uint8Array.of(1), new BorshBudget(all()))?.accountNames).toHaveLength(256);
});

it('what is longer than any transaction of Solana is not read for the programs that it calls', () => {
  // Before its steps are counted: milliseconds would be spent on a body of 2 MiB, microseconds are.
  const long = '00'.repeat(1_000_000);
  const took = Array.from({ length: 5 }, () => {
    const began = performance.now();
    expect(programsOf(long)).toEqual(new Set());
    return performance.now() - began;
  });
  expect(Math.min(...took)).toBeLessThan(0.5);
});

describe('the arguments of an instruction', () => {
  const go = (type: unknown, types: readonly unknown[] = []) =>
    program({ instructions: [{ name: 'go', discriminator: [1], accounts: [], args: [{ name: 'x', type }] }], types });
  const argsOf = (idl: ReturnType<typeof program>, data: string, steps: Steps) =>
    decodeSolanaArgs(idl, Buffer.from(`01${data}`, 'hex'), new BorshBudget(steps))?.programCallArgs;
  const struct = (name: string, fields: readonly unknown[]) => ({ name, type: { kind: 'struct', fields } });

  it('that are said to be more values than are read are unreadable before the first is', () => {
    const idl = go({ vec: { defined: 'Empty' } }, [struct('Empty', [])]);
    const steps = all();
    // 4 294 967 295 elements, none of which has a byte.
    expect(argsOf(idl, 'ffffffff', steps)).toBeInstanceOf(Unreadable);
    expect(steps.spent).toBeLessThan(100);
    expect(argsOf(idl, '05000000', steps)).not.toBeInstanceOf(Unreadable);
  });

  it('are 16 384 values at most, those in structs of lists counted', () => {
    const fields = Array.from({ length: 10 }, (_, at) => ({ name: `f${at}`, type: { defined: 'Empty' } }));
    const idl = (count: number) =>
      go({ array: [{ defined: 'Ten' }, count] }, [struct('Empty', []), struct('Ten', fields)]);
    expect(argsOf(idl(1_000), '', all())).not.toBeInstanceOf(Unreadable);
    expect(argsOf(idl(2_000), '', all())).toBeInstanceOf(Unreadable);
  });

  it('are nested 128 levels deep at most, also by types of which none is nested so deep by itself', () => {
    const field = (at: number) => ({ name: 'x', type: { defined: `T${at}` } });
    const idl = (levels: number) => {
      const types = Array.from({ length: levels }, (_, at) => struct(`T${at}`, at === 0 ? [] : [field(at - 1)]));
      // Each of these is read when the one below it is known, so no text is nested deeper than twenty levels.
      const below = Array.from({ length: Math.floor(levels / 20) }, (_, at) => 20 * at);
      const called = (name: string, at: number) => ({ name, discriminator: [2 + at], accounts: [], args: [field(at)] });
      const go = { ...called('go', levels - 1), discriminator: [1] };
      return program({ instructions: [...below.map((at) => called(`t${at}`, at)), go], types });
    };
    expect(argsOf(idl(128), '', all())).not.toBeInstanceOf(Unreadable);
    expect(argsOf(idl(129), '', all())).toBeInstanceOf(Unreadable);
  });
});

const key = secp256k1.getPublicKey(new Uint8Array(32).fill(7));
const p2wpkh = payments.p2wpkh({ pubkey: key }).output!;
const p2pkh = payments.p2pkh({ pubkey: key }).output!;

/** A PSBT that spends outputs of `script`, each with its whole previous transaction of so many outputs. */
function psbtOf(inputs: number, script: Uint8Array, previousOutputs: number, add?: (psbt: Psbt, at: number) => void) {
  const psbt = new Psbt();
  for (let at = 0; at < inputs; at++) {
    const previous = new Transaction();
    previous.addInput(new Uint8Array(32).fill(1), at);
    for (let index = 1; index < previousOutputs; index++) previous.addOutput(p2wpkh, 1_000n);
    previous.addOutput(script, 1_000n);
    psbt.addInput({ hash: previous.getId(), index: previousOutputs - 1, nonWitnessUtxo: previous.toBuffer() });
    add?.(psbt, at);
  }
  psbt.addOutput({ script: p2wpkh, value: 500n });
  return psbt.toHex();
}

/** The record of a PSBT as its magic and global map are followed by it. */
const compact = (length: number) =>
  length < 253
    ? [length]
    : length < 65_536
      ? [253, length & 255, length >> 8]
      : [254, ...new Uint8Array(Uint32Array.of(length).buffer)];

function previousOfEmptyOutputs(count: number): string {
  const unsigned = new Transaction();
  unsigned.addInput(new Uint8Array(32).fill(3), 0);
  unsigned.addOutput(p2wpkh, 500n);
  const previous = Buffer.concat([
    Uint8Array.of(1, 0, 0, 0, 1, ...new Uint8Array(36), 0, 255, 255, 255, 255, ...compact(count)),
    new Uint8Array(9 * count),
    new Uint8Array(4),
  ]);
  const transaction = unsigned.toBuffer();
  return hexOf(
    Buffer.concat([
      Buffer.from('70736274ff', 'hex'),
      Uint8Array.of(1, 0, ...compact(transaction.length), ...transaction, 0),
      Uint8Array.of(1, 0, ...compact(previous.length)),
      previous,
      Uint8Array.of(0, 0),
    ]),
  );
}

const bitcoin = (unsignedTransaction: string): ToRead => ({
  kind: 'transaction',
  chain: 'BITCOIN',
  unsignedTransaction,
  publicKey: hexOf(key),
  interfaces: [],
  owner: '',
});
const ethereum = (unsignedTransaction: string, json: string): ToRead => ({
  kind: 'transaction',
  chain: 'ETHEREUM',
  unsignedTransaction,
  publicKey: hexOf(key),
  interfaces: [{ address: token, json }],
  owner: '',
});
const payloads = (...texts: string[]): PayloadsToRead => ({
  kind: 'payloads',
  encoding: 'PAYLOAD_ENCODING_EIP712',
  hashFunction: 'HASH_FUNCTION_NO_OP',
  payloads: texts,
  fields: texts.map(() => 'payload'),
});
const token: Hex = '0x6b175474e89094c44da98b954eedeac495271d0f';

describe('nothing is read before it is counted', () => {
  const structs = (count: number) =>
    JSON.stringify({
      types: { S: [{ name: 's', type: 'S[]' }], Root: [{ name: 'all', type: 'S[]' }] },
      domain: {},
      primaryType: 'Root',
      message: { all: [] },
    }).replace('"all":[]', `"all":[${Array.from({ length: count }, () => '{"s":[]}').join(',')}]`);
  const manyTypes = () => {
    const names = Array.from({ length: 100 }, (_, at) => `T${at}`);
    const types = Object.fromEntries(
      names.map((name) => [
        name,
        names.map((other) => ({ name: other.toLowerCase(), type: `${other}[]` })).slice(0, 20),
      ]),
    );
    const empty = Object.fromEntries(names.slice(0, 20).map((name) => [name.toLowerCase(), []]));
    return JSON.stringify({ types, domain: {}, primaryType: 'T0', message: empty });
  };
  const tron = (unsignedTransaction: string): ToRead => ({
    kind: 'transaction',
    chain: 'TRON',
    unsignedTransaction,
    publicKey: hexOf(key),
    interfaces: [],
    owner: '',
  });
  const field = (number: number, content: Uint8Array) => {
    const length = [];
    let rest = content.length;
    for (; rest > 127; rest >>>= 7) length.push((rest & 127) | 128);
    return Buffer.concat([Uint8Array.of((number << 3) | 2, ...length, rest), content]);
  };
  const actives = (count: number) => {
    const address = Uint8Array.of(0x41, ...new Uint8Array(20));
    const update = Buffer.concat([field(1, address), Buffer.from('2200'.repeat(count), 'hex')]);
    const url = Buffer.from('type.googleapis.com/protocol.AccountPermissionUpdateContract');
    const any = field(2, Buffer.concat([field(1, url), field(2, update)]));
    const contract = Buffer.concat([Uint8Array.of(8, 46), any]);
    return hexOf(Buffer.concat([field(1, new Uint8Array(2)), field(4, new Uint8Array(8)), field(11, contract)]));
  };
  const solanaKeys = (count: number) => {
    const keys = Buffer.alloc(32 * count);
    for (let at = 0; at < count; at++) keys.writeUInt32LE(at + 1, 32 * at);
    return hexOf(
      Buffer.concat([Uint8Array.of(1, 0, 0, 0x80 | (count & 127), 0x80 | ((count >> 7) & 127), count >> 14), keys]),
    );
  };

  it.each<[string, () => ToRead, RegExp]>([
    ['typed data of many structs without content', () => payloads(structs(200_000)), /more than 10000000 steps/],
    [
      'many payloads of typed data, together',
      () => payloads(...Array.from({ length: 400 }, (_, at) => structs(500 + at))),
      /steps/,
    ],
    [
      'a previous transaction of 100 000 outputs',
      () => bitcoin(previousOfEmptyOutputs(100_000)),
      /more than 10000000 steps/,
    ],
    [
      'keys of a PSBT, each of which is checked to be a point',
      () =>
        bitcoin(
          psbtOf(1, p2wpkh, 1, (psbt) => {
            const derivations = Array.from({ length: 12_000 }, (_, at) => ({
              masterFingerprint: new Uint8Array(4),
              pubkey: Uint8Array.of(2, ...new Uint8Array(28), at >> 16, (at >> 8) & 255, at & 255, 1),
              path: 'm',
            }));
            psbt.updateInput(0, { bip32Derivation: derivations });
          }),
        ),
      /more than 10000000 steps/,
    ],
    ['400 000 empty permissions', () => tron(actives(400_000)), /actives is there more than 64 times/],
    [
      'a Solana transaction of 30 000 keys',
      () => ({
        kind: 'transaction',
        chain: 'SOLANA',
        unsignedTransaction: solanaKeys(30_000),
        publicKey: '',
        interfaces: [],
        owner: '',
      }),
      /is 9600\d\d bytes long, the network takes 1232/,
    ],
  ])('is refused: %s', (_what, job, reason) => {
    expect(() => read(job())).toThrow(reason);
  });

  it('and what is short and says much is left to another thread', () => {
    const short = (job: ToRead) => readIfShort(job, new Meter().reading);
    expect(short(payloads(structs(3_000)))).toBeUndefined();
    expect(short(payloads(structs(10)))).toBeDefined();
    expect(short(payloads(manyTypes()))).toBeUndefined();
    expect(short(bitcoin(psbtOf(100, p2wpkh, 2)))).toBeUndefined();
    expect(short(bitcoin(psbtOf(5, p2wpkh, 2)))).toBeDefined();
  });

  it('and a hundred digests for Ed25519 are not, though half of them begin like messages of later versions', () => {
    const digests = Array.from({ length: 100 }, (_, at) => createHash('sha256').update(String(at)).digest('hex'));
    const { reading } = new Meter();
    const job = {
      ...payloads(...digests),
      encoding: 'PAYLOAD_ENCODING_HEXADECIMAL',
      hashFunction: 'HASH_FUNCTION_NOT_APPLICABLE',
      signer: { scheme: 'ED25519', interfaces: [], owner: '' },
    } as const;
    const { value } = readIfShort(job, reading) ?? {};
    expect(value?.distinct.map(({ content }) => content)).toEqual([
      undefined,
      { resources: { solana: { tx: unreadable('the payload may be a transaction, and cannot be decoded as one') } } },
    ]);
    expect(reading.spent).toBeLessThan(4_000);
  });

  it('of all that a request is about no more than 2 ms on the main thread, on its meter', () => {
    const meter = new Meter();
    const one = payloads(structs(10));
    const { length } = Array.from({ length: 1_000 }).filter(() => readIfShort(one, meter.reading));
    expect(length).toBeGreaterThan(2);
    expect(length).toBeLessThan(200);
    // What was tried in vain is on it as far as it was done.
    expect(readIfShort(payloads(manyTypes()), meter.reading)).toBeUndefined();
    expect([meter.spent, meter.left]).toEqual([readingSteps, mainThreadSteps - readingSteps]);
  });
});

describe('what applications sign is read', () => {
  const multicall = [
    {
      type: 'function',
      name: 'multicall',
      stateMutability: 'payable',
      inputs: [{ name: 'data', type: 'bytes[]' }],
      outputs: [],
    },
    ...Array.from({ length: 300 }, (_, at) => ({
      type: 'function',
      name: `function${at}`,
      inputs: ['from', 'to', 'amount', 'deadline'].map((name) => ({ name, type: 'uint256' })),
    })),
  ] as const;
  const call = (parts: number, length: number) =>
    serializeTransaction({
      type: 'eip1559',
      chainId: 1,
      to: token,
      data: encodeFunctionData({
        abi: [multicall[0]] as const,
        functionName: 'multicall',
        args: [Array.from({ length: parts }, (): Hex => `0x${'ab'.repeat(length)}`)],
      }),
    });
  const order = JSON.stringify({
    types: {
      EIP712Domain: ['name', 'version'].map((name) => ({ name, type: 'string' })),
      OrderComponents: [
        { name: 'offerer', type: 'address' },
        { name: 'offer', type: 'OfferItem[]' },
        { name: 'salt', type: 'uint256' },
      ],
      OfferItem: ['itemType', 'token', 'identifier', 'startAmount', 'endAmount'].map((name) => ({
        name,
        type: 'uint256',
      })),
    },
    domain: { name: 'Seaport', version: '1.6' },
    primaryType: 'OrderComponents',
    message: {
      offerer: `0x${'ab'.repeat(20)}`,
      salt: '1',
      offer: Array.from({ length: 20 }, () => ({ itemType: 1, token: 2, identifier: 3, startAmount: 4, endAmount: 5 })),
    },
  });

  it.each<[string, () => ToRead]>([
    ['a PSBT of 500 inputs with their whole previous transactions', () => bitcoin(psbtOf(500, p2wpkh, 4))],
    ['a PSBT of 500 inputs of the oldest kind', () => bitcoin(psbtOf(500, p2pkh, 4))],
    ['a PSBT that spends an output of a batch of 2 000', () => bitcoin(psbtOf(1, p2wpkh, 2_000))],
    [
      'a multicall of 100 kB, of a contract with 300 functions',
      () => ethereum(call(200, 500), JSON.stringify(multicall)),
    ],
    ['a call of 900 kB', () => ethereum(call(9, 100_000), JSON.stringify(multicall))],
    [
      '1 000 orders of 20 items',
      () => payloads(...Array.from({ length: 1_000 }, (_, at) => order.replace('"1"', `"${at}"`))),
    ],
    [
      'an interface of 400 000 characters',
      () => ({ kind: 'interface', type: 'ETHEREUM', json: JSON.stringify(multicall).padEnd(400_000) }),
    ],
  ])('within its steps: %s', (_what, job) => {
    expect(() => read(job())).not.toThrow(OutOfSteps);
    expect(read(job())).toBeDefined();
  });
});
