import type { Steps } from '../domain/steps.js';
import { ByteReader, hex, malformed } from './byte-reader.js';
import { takeSha256 } from './refusals.js';

/** BIP-174: `psbt` and 0xff. */
const PSBT_MAGIC = '70736274ff';
export const PSBT_MAGIC_LENGTH = 5;
const GLOBAL_UNSIGNED_TX = 0x00;
const GLOBAL_VERSION = 0xfb;
const OUTPOINT_LENGTH = 36;
const AMOUNT_LENGTH = 8;

/**
 * The cost of a record in addition to its bytes, by its type (BIP-174, BIP-371, BIP-373), in the map of the
 * transaction, an input or an output.
 */
type RecordCost = (value: Uint8Array, steps: Steps) => void;
type Costs = Readonly<Record<number, RecordCost>>;

const COMPRESSED_KEY_LENGTH = 33;
const aKey: RecordCost = (value, steps) => {
  steps.take('pointDecoded');
  steps.take('valueDecoded', value.length / 4);
};
const keys: RecordCost = (value, steps) => steps.take('pointDecoded', 1 + value.length / COMPRESSED_KEY_LENGTH);
const tweakedKey: RecordCost = (value, steps) => {
  steps.take('pointDecoded');
  steps.take('curveOperation');
  takeSha256(steps, 4 * value.length);
};
const parts: RecordCost = (value, steps) => steps.take('previousTransactionPart', value.length);

const GLOBAL_COSTS: Costs = { 0x01: aKey };
const INPUT_COSTS: Costs = {
  0x00: (value, steps) => {
    countTransaction(value, steps, true);
    takeSha256(steps, 2 * value.length);
  },
  0x02: aKey,
  0x06: aKey,
  // Items of a witness: each may be empty.
  0x08: parts,
  0x14: aKey,
  0x15: tweakedKey,
  0x16: aKey,
  0x17: tweakedKey,
  0x1a: keys,
  0x1b: keys,
  0x1c: keys,
};
const OUTPUT_COSTS: Costs = { 0x02: aKey, 0x05: tweakedKey, 0x06: parts, 0x07: aKey, 0x08: keys };

/**
 * Counts the parts of a version 0 PSBT before a library parses it, because the library checks every key and creates
 * objects for every output of every previous transaction. Requires one map for the transaction and each of its inputs
 * and outputs, no repeated key, and nothing after them.
 * @throws {CoordinatorError} INVALID_ARGUMENT, also for version 2; OutOfSteps
 */
export function countPsbt(psbt: Uint8Array, steps: Steps): void {
  const reader = new ByteReader(psbt);
  if (hex(psbt.subarray(0, PSBT_MAGIC_LENGTH)) !== PSBT_MAGIC) {
    throw malformed(`not a PSBT that can be signed: it does not begin with ${PSBT_MAGIC}`);
  }
  reader.pass(PSBT_MAGIC_LENGTH, 'the magic');
  let size: { readonly inputs: number; readonly outputs: number } | undefined;
  countMap(reader, 'the global map', steps, GLOBAL_COSTS, ([type, ...rest], value) => {
    // A signer for version 2 (BIP-370) would also have to maintain the modifiable flags; bitcoinjs and others write
    // version 0.
    if (type === GLOBAL_VERSION && value[0] === 2) {
      throw malformed('PSBT version 2 is not supported: convert it to version 0');
    }
    if (type !== GLOBAL_UNSIGNED_TX) return;
    // Otherwise this would count something other than the library parses.
    if (rest.length > 0)
      throw malformed('not a PSBT that can be signed: the key of its unsigned transaction is longer than a byte');
    size = countTransaction(value, steps, false);
  });
  if (size === undefined) throw malformed('not a PSBT that can be signed: it has no unsigned transaction');
  if (size.inputs === 0) throw malformed('the transaction has no inputs');
  if (size.outputs === 0) throw malformed('the transaction has no outputs');
  for (let at = 0; at < size.inputs; at++) countMap(reader, `the map of input ${at}`, steps, INPUT_COSTS);
  for (let at = 0; at < size.outputs; at++) countMap(reader, `the map of output ${at}`, steps, OUTPUT_COSTS);
  reader.end('the PSBT');
}

function countMap(
  reader: ByteReader,
  what: string,
  steps: Steps,
  costs: Costs,
  each?: (key: Uint8Array, value: Uint8Array) => void,
): void {
  const known = new Set<string>();
  for (let length = readCompactSize(reader); length > 0; length = readCompactSize(reader)) {
    steps.take('nameBuilt', 2);
    steps.take('itemByteRead', length);
    const key = reader.view(length, `a key of ${what}`);
    const text = hex(key);
    if (known.has(text)) throw malformed(`${what} has the key \`${text.slice(0, 80)}\` twice`);
    known.add(text);
    const value = reader.view(readCompactSize(reader), `a value of ${what}`);
    const type = key[0]!;
    steps.take('itemByteRead', value.length);
    costs[type]?.(value, steps);
    each?.(key, value);
  }
}

/** Walks a serialized transaction (BIP-144) without building anything; the library reports what is wrong with it. */
function countTransaction(
  transaction: Uint8Array,
  steps: Steps,
  isPrevious: boolean,
): { readonly inputs: number; readonly outputs: number } {
  const reader = new ByteReader(transaction);
  reader.pass(4, 'the version');
  const [inputWork, outputWork] = isPrevious
    ? (['previousTransactionPart', 'previousTransactionPart'] as const)
    : (['transactionInput', 'transactionOutput'] as const);
  // BIP-174 has the unsigned transaction without witnesses, and what looks like their marker is no input and one output.
  const hasWitness = isPrevious && transaction[4] === 0x00 && transaction[5] === 0x01;
  if (hasWitness) reader.pass(2, 'the segwit marker');
  const inputs = readCompactSize(reader);
  for (let at = 0; at < inputs; at++) {
    steps.take(inputWork);
    reader.pass(OUTPOINT_LENGTH, `input ${at}`);
    reader.pass(readCompactSize(reader) + 4, `the script of input ${at}`);
  }
  const outputs = readCompactSize(reader);
  for (let at = 0; at < outputs; at++) {
    steps.take(outputWork);
    reader.pass(AMOUNT_LENGTH, `output ${at}`);
    reader.pass(readCompactSize(reader), `the script of output ${at}`);
  }
  if (!hasWitness) return { inputs, outputs };
  for (let at = 0; at < inputs; at++) {
    const items = readCompactSize(reader);
    for (let item = 0; item < items; item++) {
      steps.take(inputWork);
      reader.pass(readCompactSize(reader), `the witness of input ${at}`);
    }
  }
  return { inputs, outputs };
}

/** Bitcoin's CompactSize. */
export function readCompactSize(reader: ByteReader): number {
  const first = reader.byte('a length');
  if (first < 0xfd) return first;
  const bytes = reader.view({ 0xfd: 2, 0xfe: 4 }[first] ?? 8, 'a length');
  return bytes.reduceRight((value, byte) => value * 256 + byte, 0);
}
