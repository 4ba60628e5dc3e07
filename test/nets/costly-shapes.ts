import { secp256k1 } from '@noble/curves/secp256k1.js';
import { Psbt, Transaction, payments } from 'bitcoinjs-lib';
import { base58 } from '@scure/base';
import { serializeTransaction, type Hex } from 'viem';

/** Shapes that are small to write and large to read: each froze a coordinator, or ended it, when it was found. */

const publicKey = secp256k1.getPublicKey(new Uint8Array(32).fill(7));
const script = payments.p2wpkh({ pubkey: publicKey }).output!;
const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const word = (value: number): string => value.toString(16).padStart(64, '0');

/** Anchor types of which each uses the one before it for two instances of what it is given itself. */
export function doublingTypes(levels: number): string {
  const generic = (kind: string, at: number) => ({
    name: kind,
    type: { defined: { name: `D${at - 1}`, generics: [{ kind: 'type', type: { [kind]: { generic: 'T' } } }] } },
  });
  return JSON.stringify({
    instructions: [
      {
        name: 'go',
        accounts: [],
        args: [{ name: 'x', type: { defined: { name: `D${levels}`, generics: [{ kind: 'type', type: 'u8' }] } } }],
      },
    ],
    types: Array.from({ length: levels + 1 }, (_, at) => ({
      name: `D${at}`,
      generics: [{ kind: 'type', name: 'T' }],
      type: {
        kind: 'struct',
        fields: at === 0 ? [{ name: 'a', type: { generic: 'T' } }] : ['vec', 'option'].map((kind) => generic(kind, at)),
      },
    })),
  });
}

/** A group of accounts with long names, whose full names are longer still. */
export function longAccountNames(levels: number, characters: number): string {
  let accounts: object[] = Array.from({ length: 1_000 }, (_, at) => ({ name: `a${at}` }));
  for (let level = 0; level < levels; level++) accounts = [{ name: 'g'.repeat(characters), accounts }];
  return JSON.stringify({ instructions: [{ name: 'go', accounts, args: [] }] });
}

/** Typed data of many structs without content. */
export function emptyStructs(count: number): string {
  const types = { S: [{ name: 's', type: 'S[]' }], Root: [{ name: 'all', type: 'S[]' }] };
  const all = Array.from({ length: count }, () => '{"s":[]}').join(',');
  const text = JSON.stringify({ types, domain: {}, primaryType: 'Root', message: { all: [] } });
  return text.replace('"all":[]', `"all":[${all}]`);
}

/** Typed data that is nested. */
export function nestedStructs(depth: number): string {
  const types = { A: [{ name: 'a', type: 'uint8' }] };
  const text = JSON.stringify({ types, domain: {}, primaryType: 'A', message: { a: 0 } });
  return text.replace('{"a":0}', `{"a":${'['.repeat(depth)}${']'.repeat(depth)}}`);
}

/** A function of lists of tuples with many members. */
export function manyMembers(members: number): string {
  const components = Array.from({ length: members }, () => ({ type: 'uint8' }));
  return JSON.stringify([{ type: 'function', name: 'go', inputs: [{ name: 'x', type: 'tuple[][]', components }] }]);
}

/** A call whose offsets all lead to the same empty list. */
export function sharedOffsets(to: Hex, selector: string, count: number): string {
  const data: Hex = `0x${selector}${word(32)}${word(count)}${word(count * 32).repeat(count)}${word(0)}`;
  return serializeTransaction({
    chainId: 1,
    to,
    nonce: 0,
    gas: 21_000n,
    maxFeePerGas: 1n,
    maxPriorityFeePerGas: 1n,
    data,
  });
}

const compact = (length: number) =>
  length < 253
    ? [length]
    : length < 65_536
      ? [253, length & 255, length >> 8]
      : [254, ...new Uint8Array(Uint32Array.of(length).buffer)];

/** A PSBT whose previous transaction has so many outputs of nine bytes. */
export function previousOutputs(count: number): string {
  const unsigned = new Transaction();
  unsigned.addInput(new Uint8Array(32).fill(3), 0);
  unsigned.addOutput(script, 500n);
  const transaction = unsigned.toBuffer();
  const previous = Buffer.concat([
    Uint8Array.of(1, 0, 0, 0, 1, ...new Uint8Array(36), 0, 255, 255, 255, 255, ...compact(count)),
    new Uint8Array(9 * count),
    new Uint8Array(4),
  ]);
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

/** A PSBT with so many keys, each of which is to be checked to be a point. */
export function keysOfPsbt(count: number): string {
  const previous = new Transaction();
  previous.addInput(new Uint8Array(32).fill(1), 0);
  previous.addOutput(script, 1_000n);
  const psbt = new Psbt();
  psbt.addInput({ hash: previous.getId(), index: 0, nonWitnessUtxo: previous.toBuffer() });
  psbt.updateInput(0, {
    bip32Derivation: Array.from({ length: count }, (_, at) => ({
      masterFingerprint: new Uint8Array(4),
      pubkey: Uint8Array.of(2, ...new Uint8Array(28), at >> 16, (at >> 8) & 255, at & 255, 1),
      path: 'm',
    })),
  });
  psbt.addOutput({ script, value: 500n });
  return psbt.toHex();
}

/** A Tron permission update with so many empty permissions. */
export function emptyPermissions(count: number): string {
  const field = (number: number, content: Uint8Array) => {
    const length = [];
    let rest = content.length;
    for (; rest > 127; rest >>>= 7) length.push((rest & 127) | 128);
    return Buffer.concat([Uint8Array.of((number << 3) | 2, ...length, rest), content]);
  };
  const address = Uint8Array.of(0x41, ...new Uint8Array(20));
  const update = Buffer.concat([field(1, address), Buffer.from('2200'.repeat(count), 'hex')]);
  const url = Buffer.from('type.googleapis.com/protocol.AccountPermissionUpdateContract');
  const contract = Buffer.concat([Uint8Array.of(8, 46), field(2, Buffer.concat([field(1, url), field(2, update)]))]);
  return hexOf(Buffer.concat([field(1, new Uint8Array(2)), field(4, new Uint8Array(8)), field(11, contract)]));
}

/** A condition of so many characters, each part of which is evaluated. */
export function longCondition(characters: number, salt: number): string {
  const part = ` || activity.type == 'ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2'`;
  return `activity.action == 'DELETE' || ${salt} == ${salt + 1}${part.repeat(Math.floor((characters - 80) / part.length))}`;
}

/** Typed data that costs little to read. */
export function typedName(name: string): string {
  const types = { EIP712Domain: [{ name: 'name', type: 'string' }], Note: [{ name: 'text', type: 'string' }] };
  return JSON.stringify({ types, primaryType: 'Note', domain: { name }, message: { text: '' } });
}

/** An interface whose one instruction takes so many values that have no bytes. */
export function manyEmpties(count: number): string {
  const args = [{ name: 'x', type: { array: [{ defined: 'Empty' }, count] } }];
  const types = [{ name: 'Empty', type: { kind: 'struct', fields: [] } }];
  return JSON.stringify({ instructions: [{ name: 'go', discriminator: [1], accounts: [], args }], types });
}

/** A Solana transaction that calls an instruction of one byte so many times. */
export function repeatedInstruction(payer: string, program: string, count: number): string {
  const calls = Buffer.alloc(4 * count, Uint8Array.of(1, 0, 1, 1));
  const accounts = Buffer.concat([base58.decode(payer), base58.decode(program)]);
  const message = [Uint8Array.of(1, 0, 1, 2), accounts, new Uint8Array(32).fill(9)];
  const lengths = count < 128 ? Uint8Array.of(count) : Uint8Array.of((count & 127) | 128, count >> 7);
  return hexOf(Buffer.concat([Uint8Array.of(1), new Uint8Array(64), ...message, lengths, calls]));
}
