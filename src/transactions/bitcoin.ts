import { schnorr, secp256k1 } from '@noble/curves/secp256k1.js';
import { ripemd160 } from '@noble/hashes/legacy.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { Transaction, utils } from '@scure/btc-signer';
import { CoordinatorError, errorMessage } from '../domain/errors.js';
import { unreadable, type PolicyValue } from '../domain/policy/types.js';
import type { Steps } from '../domain/steps.js';
import { outputAddress, type BitcoinNetwork, type KnownHashes } from './bitcoin-addresses.js';
import { ByteReader, hex, malformed, signatureBytes, unsignedTransactionBytes } from './byte-reader.js';
import type { TransactionSignature } from './byte-reader.js';
import { countPsbt, PSBT_MAGIC_LENGTH, readCompactSize } from './psbt-parts.js';
import { takeSha256 } from './refusals.js';

/** How one of our keys can own an output: the script types of the address formats (P2SH is P2SH-P2WPKH). */
export type BitcoinScript = 'P2PKH' | 'P2SH' | 'P2WPKH' | 'P2WSH' | 'P2TR';

interface BitcoinOutput {
  readonly amount: bigint;
  readonly script: Uint8Array;
}

/**
 * `txid` is in the order of explorers; `spent` is proven if the PSBT contains the whole previous transaction, and
 * otherwise the sender's claim; `signedBy` are the hex keys with a signature in the PSBT.
 */
interface BitcoinInput {
  readonly txid: Uint8Array;
  readonly vout: number;
  readonly sequence: number;
  readonly spent: BitcoinOutput;
  readonly isProven: boolean;
  readonly sighashType: number | undefined;
  readonly isFinal: boolean;
  readonly hasKeyPathSignature: boolean;
  readonly hasRedeemScript: boolean;
  readonly hasWitnessScript: boolean;
  readonly hasTapInternalKey: boolean;
  readonly signedBy: readonly string[];
}

interface PreviousTransaction {
  readonly outputs: readonly BitcoinOutput[];
}

/** A parsed PSBT. Amounts are satoshis; `psbt` are its bytes, to which signatures are added. */
export interface BitcoinTransaction {
  readonly psbt: Uint8Array;
  readonly version: number;
  readonly lockTime: number;
  readonly inputs: readonly BitcoinInput[];
  readonly outputs: readonly BitcoinOutput[];
  readonly fee: bigint;
}

/** One digest to sign: 32 bytes, with ECDSA, or with BIP-340 by the key tweaked as in BIP-341 without a script tree. */
export interface BitcoinSigningInput {
  readonly index: number;
  readonly script: BitcoinScript;
  readonly scheme: 'ecdsa' | 'schnorr-taproot';
  readonly sighashType: 0 | 1;
  readonly digest: Uint8Array;
}

const SIGHASH_DEFAULT = 0;
const SIGHASH_ALL = 1;
// BIP-65: a lock time below it is a block height, otherwise seconds since the epoch.
const LOCK_TIME_THRESHOLD = 500_000_000;
/** An outpoint, the length of no script, a sequence. */
const BARE_INPUT_LENGTH = 41;
/** What is hashed for one input under BIP-143 or BIP-341, with the hashes it contains. */
const DIGEST_BYTES = 512;
const BASE64_MAGIC = 'cHNidP';
const ANY_SCRIPTS = { unknown: 'ignore', allowUnknownInputs: true, allowUnknownOutputs: true } as const;
// MAX_STANDARD_TX_WEIGHT of Bitcoin Core in bytes without witness: anything longer is not relayed. It bounds no cost: what
// a PSBT takes to read is counted before it is read.
const MAX_UNSIGNED_LENGTH = 100_000;
// BIP-174 and BIP-371: the types of records.
const PSBT_IN_PARTIAL_SIG = 0x02;
const PSBT_IN_REDEEM_SCRIPT = 0x04;
const PSBT_IN_WITNESS_SCRIPT = 0x05;
const PSBT_IN_TAP_KEY_SIG = 0x13;
const PSBT_IN_TAP_INTERNAL_KEY = 0x17;

const { taggedHash } = schnorr.utils;

/**
 * Parses hex of a PSBT of version 0 (BIP-174), as the published clients send it. Throws INVALID_ARGUMENT.
 */
export function parseUnsignedBitcoin(unsignedTransaction: string, steps: Steps): BitcoinTransaction {
  if (unsignedTransaction.startsWith(BASE64_MAGIC)) throw malformed('the PSBT is in base64, expected hex');
  const psbt = unsignedTransactionBytes(unsignedTransaction, steps);
  countPsbt(psbt, steps);
  return orMalformed(() => readPsbt(psbt));
}

function readPsbt(psbt: Uint8Array): BitcoinTransaction {
  const transaction = Transaction.fromPSBT(psbt, ANY_SCRIPTS);
  const inputs = Array.from({ length: transaction.inputsLength }, (_, at) => readInput(transaction, at));
  const outputs = Array.from({ length: transaction.outputsLength }, (_, at) => readOutput(transaction, at));
  const { length } = transaction.unsignedTx;
  if (length > MAX_UNSIGNED_LENGTH) {
    throw malformed(`its transaction is ${length} bytes long, the network relays ${MAX_UNSIGNED_LENGTH}`);
  }
  const outpoints = new Set(inputs.map(({ txid, vout }) => `${hex(txid)}:${vout}`));
  if (outpoints.size < inputs.length) throw malformed('two inputs spend the same output');
  const spent = inputs.reduce((sum, input) => sum + input.spent.amount, 0n);
  const paid = outputs.reduce((sum, { amount }) => sum + amount, 0n);
  if (paid > spent) throw malformed(`its outputs are ${paid} satoshis, more than the ${spent} of its inputs`);
  const { version, lockTime } = transaction;
  return { psbt, version, lockTime, inputs, outputs, fee: spent - paid };
}

/** The library throws errors of many kinds; all of them are about the PSBT it was given. */
function orMalformed<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof CoordinatorError) throw error;
    const reason = errorMessage(error);
    const oneLine = reason.slice(0, 200).replace(/[\p{Cc}\p{Surrogate}]+/gu, ' ');
    throw malformed(`not a PSBT that can be signed: ${oneLine}`);
  }
}

function readInput(transaction: Transaction, at: number): BitcoinInput {
  const input = transaction.getInput(at);
  const { txid, index, witnessUtxo } = input;
  const nonWitnessUtxo: PreviousTransaction | undefined = input.nonWitnessUtxo;
  if (!txid || index === undefined) throw malformed(`input ${at} spends nothing`);
  const spent = nonWitnessUtxo?.outputs[index] ?? witnessUtxo;
  if (!spent) {
    throw malformed(`input ${at} says nothing of the output it spends: add a non-witness UTXO (BIP-174)`);
  }
  return {
    txid,
    vout: index,
    sequence: input.sequence ?? 0xffffffff,
    spent: { amount: spent.amount, script: spent.script },
    isProven: nonWitnessUtxo !== undefined,
    sighashType: input.sighashType,
    isFinal: Boolean(input.finalScriptSig?.length) || Boolean(input.finalScriptWitness?.length),
    hasKeyPathSignature: input.tapKeySig !== undefined,
    hasRedeemScript: input.redeemScript !== undefined,
    hasWitnessScript: input.witnessScript !== undefined,
    hasTapInternalKey: input.tapInternalKey !== undefined,
    signedBy: (input.partialSig ?? []).map(([publicKey]) => hex(publicKey)),
  };
}

function readOutput(transaction: Transaction, at: number): BitcoinOutput {
  const { amount, script } = transaction.getOutput(at);
  if (amount === undefined || !script) throw malformed(`output ${at} has no amount or no script`);
  return { amount, script };
}

/**
 * What a compressed secp256k1 key (33 bytes) has to sign: every input whose output the key owns by P2PKH, P2SH-P2WPKH,
 * P2WPKH, P2WSH (`<key> OP_CHECKSIG`) or P2TR, or only by `script`, except inputs that it has already signed. Digests
 * follow the original design, BIP-143 and BIP-341. Throws INVALID_ARGUMENT if there is none, and if the transaction
 * could differ from what policies see: a sighash type other than ALL and DEFAULT, or a spent output that nothing
 * proves.
 */
export function bitcoinSigningInputs(
  transaction: BitcoinTransaction,
  publicKey: Uint8Array,
  steps: Steps,
  script?: BitcoinScript,
): readonly BitcoinSigningInput[] {
  steps.take('curveOperation');
  const owned = ownScripts(publicKey).filter((own) => script === undefined || own.script === script);
  const digests = new SignatureDigests(transaction, steps);
  const keyText = hex(publicKey);
  const unproven = transaction.inputs.flatMap(({ isProven }, at) => (isProven ? [] : [at]));
  let isSigned = false;
  const signing = transaction.inputs.flatMap((input, index): BitcoinSigningInput[] => {
    const own = owned.find((candidate) => isSame(candidate.outputScript, input.spent.script));
    if (!own) return [];
    const isTaproot = own.script === 'P2TR';
    if (input.isFinal || (isTaproot ? input.hasKeyPathSignature : input.signedBy.includes(keyText))) {
      isSigned = true;
      return [];
    }
    const sighashType = checkSighashType(input.sighashType, index, isTaproot);
    if (!isTaproot) checkSpentOutputs(unproven, index, own.script);
    const digest = isTaproot
      ? digests.taproot(index, sighashType)
      : own.script === 'P2PKH'
        ? digests.legacy(index, own.scriptCode)
        : digests.segwit(index, own.scriptCode);
    return [{ index, script: own.script, scheme: isTaproot ? 'schnorr-taproot' : 'ecdsa', sighashType, digest }];
  });
  if (signing.length > 0) return signing;
  const what = script === undefined ? 'the key' : `the ${script} address of the key`;
  throw malformed(
    isSigned
      ? `${what} \`${keyText}\` has signed all of its inputs already`
      : `none of the inputs spends an output of ${what} \`${keyText}\``,
  );
}

/** A transaction as a signature from before segwit covers it. */
export type LegacyPreimage = Pick<BitcoinTransaction, 'version' | 'lockTime' | 'outputs'> & {
  readonly inputs: readonly Pick<BitcoinInput, 'txid' | 'vout' | 'sequence'>[];
};

/**
 * Reads what is hashed twice for a legacy signature: the transaction, and the sighash type. `partial` says why it is
 * not all of a transaction, or `total` too long, which is the length of all payloads.
 * @throws {CoordinatorError} INVALID_ARGUMENT for anything else
 */
export function readLegacyPreimage(
  preimage: Uint8Array,
  total: number,
  steps: Steps,
): LegacyPreimage | { readonly partial: string } {
  const reader = new ByteReader(preimage);
  const number = (what: string): number => Buffer.from(reader.take(4, what)).readUInt32LE();
  const version = number('the version');
  const inputs = repeated(reader, 'input', () => {
    steps.take('transactionInput');
    const txid = reader.take(32, 'the id of a transaction').toReversed();
    const vout = number('the number of an output');
    reader.pass(readCompactSize(reader), 'a script');
    return { txid, vout, sequence: number('a sequence') };
  });
  const outputs = repeated(reader, 'output', () => {
    steps.take('transactionOutput');
    const amount = Buffer.from(reader.take(8, 'an amount')).readBigUInt64LE();
    return { amount, script: reader.take(readCompactSize(reader), 'a script') };
  });
  const lockTime = number('the lock time');
  const sighashType = number('the sighash type');
  reader.end('the preimage');
  if (inputs.length === 0) throw malformed('the transaction has no inputs');
  if (sighashType !== SIGHASH_ALL) {
    return { partial: `the sighash type ${sighashType} does not sign the whole transaction` };
  }
  if (total > MAX_UNSIGNED_LENGTH)
    return { partial: `the payloads are longer than the ${MAX_UNSIGNED_LENGTH} bytes that the network relays` };
  return { version, lockTime, inputs, outputs };
}

function repeated<T>(reader: ByteReader, what: string, one: () => T): T[] {
  const count = readCompactSize(reader);
  if (count > MAX_UNSIGNED_LENGTH) throw malformed(`it has ${count} times an ${what}`);
  const all: T[] = [];
  while (all.length < count) all.push(one());
  return all;
}

/** Before and after the script code of BIP-143. */
const SEGWIT_BEFORE_SCRIPT = 104;
const SEGWIT_AFTER_SCRIPT = 52;

/** Whether these bytes have the parts of a preimage of BIP-143: hashes around the script code. */
export function mayBeSegwitPreimage(bytes: Uint8Array): boolean {
  if (bytes.length <= SEGWIT_BEFORE_SCRIPT + SEGWIT_AFTER_SCRIPT) return false;
  const reader = new ByteReader(bytes);
  reader.pass(SEGWIT_BEFORE_SCRIPT, 'the hashes');
  const length = readCompactSize(reader);
  return reader.position + length + SEGWIT_AFTER_SCRIPT === bytes.length;
}

const TAPROOT_TAG = sha256(Buffer.from('TapSighash'));
const TAPROOT_PREFIX = concat(TAPROOT_TAG, TAPROOT_TAG);
const TAPROOT_SIGHASH_TYPES: ReadonlySet<number | undefined> = new Set([0, 1, 2, 3, 0x81, 0x82, 0x83]);
const SHORTEST_TAPROOT_MESSAGE = 94;
const LONGEST_TAPROOT_MESSAGE = 244;

/** Whether these bytes begin a tagged hash of BIP-341, or are what such a hash is of: an epoch of 0, a sighash type, hashes. */
export function mayBeTaprootPreimage(bytes: Uint8Array): boolean {
  if (isSame(bytes.subarray(0, TAPROOT_PREFIX.length), TAPROOT_PREFIX)) return true;
  const [epoch, sighashType] = bytes;
  const hasLength = bytes.length >= SHORTEST_TAPROOT_MESSAGE && bytes.length <= LONGEST_TAPROOT_MESSAGE;
  return epoch === 0 && TAPROOT_SIGHASH_TYPES.has(sighashType) && hasLength;
}

function checkSighashType(type: number | undefined, index: number, isTaproot: boolean): 0 | 1 {
  if (type === undefined) return isTaproot ? SIGHASH_DEFAULT : SIGHASH_ALL;
  if (type === SIGHASH_ALL || (isTaproot && type === SIGHASH_DEFAULT)) return type;
  throw malformed(
    `input ${index} asks for the sighash type ${type}, which does not sign the whole transaction: ` +
      `use SIGHASH_ALL (1)${isTaproot ? ' or SIGHASH_DEFAULT (0)' : ''}`,
  );
}

/**
 * A taproot signature commits to every spent output, one of segwit version 0 to the amount of its own, a legacy one to
 * none. What a signature does not commit to must be proven by the previous transaction. Otherwise two requests that
 * each lie about another input would give two valid signatures, and together a fee that no policy has seen.
 */
function checkSpentOutputs(unproven: readonly number[], index: number, script: BitcoinScript): void {
  const doubtful = unproven.find((at) => at !== index || script === 'P2PKH');
  if (doubtful === undefined) return;
  throw malformed(
    `input ${doubtful} has no non-witness UTXO (BIP-174), so nothing proves the amount it spends when input ${index} is ` +
      'signed: add its whole previous transaction',
  );
}

/** The output of each script type for a key, and what represents it in a signature (BIP-143: scriptCode). */
function ownScripts(publicKey: Uint8Array): readonly {
  readonly script: BitcoinScript;
  readonly outputScript: Uint8Array;
  readonly scriptCode: Uint8Array;
}[] {
  const keyHash = hash160(publicKey);
  const payToKeyHash = concat([0x76, 0xa9, 0x14], keyHash, [0x88, 0xac]);
  const witnessKeyHash = redeemScriptOf(publicKey);
  const witnessScript = witnessScriptOf(publicKey);
  const [outputKey] = utils.taprootTweakPubkey(publicKey.subarray(1), new Uint8Array());
  return [
    { script: 'P2PKH', outputScript: payToKeyHash, scriptCode: payToKeyHash },
    { script: 'P2SH', outputScript: concat([0xa9, 0x14], hash160(witnessKeyHash), [0x87]), scriptCode: payToKeyHash },
    { script: 'P2WPKH', outputScript: witnessKeyHash, scriptCode: payToKeyHash },
    { script: 'P2WSH', outputScript: concat([0x00, 0x20], sha256(witnessScript)), scriptCode: witnessScript },
    { script: 'P2TR', outputScript: concat([0x51, 0x20], outputKey), scriptCode: new Uint8Array() },
  ];
}

function redeemScriptOf(publicKey: Uint8Array): Uint8Array {
  return concat([0x00, 0x14], hash160(publicKey));
}

function witnessScriptOf(publicKey: Uint8Array): Uint8Array {
  return concat([publicKey.length], publicKey, [0xac]);
}

/**
 * Digests for SIGHASH_ALL. What inputs have in common is hashed once, so that the time is not quadratic in their
 * number.
 */
class SignatureDigests {
  private readonly version: Uint8Array;
  private readonly lockTime: Uint8Array;
  private readonly outpoints: readonly Uint8Array[];
  private readonly sequences: readonly Uint8Array[];
  private readonly outputs: Uint8Array;
  private hashes:
    Readonly<Record<'outpoints' | 'amounts' | 'scripts' | 'sequences' | 'outputs', Uint8Array>> | undefined;

  /** The inputs as they appear in a legacy signature of another one, in order, and the length of each. */
  private readonly bareInputs: Uint8Array;

  constructor(
    private readonly transaction: BitcoinTransaction,
    private readonly steps: Steps,
  ) {
    const { version, lockTime, inputs, outputs } = transaction;
    this.version = uint32(version);
    this.lockTime = uint32(lockTime);
    this.outpoints = inputs.map(({ txid, vout }) => concat(txid.toReversed(), uint32(vout)));
    this.sequences = inputs.map(({ sequence }) => uint32(sequence));
    this.outputs = concat(...outputs.map(({ amount, script }) => concat(uint64(amount), withLength(script))));
    this.bareInputs = concat(...this.outpoints.map((outpoint, at) => concat(outpoint, [0x00], this.sequences[at]!)));
  }

  /** BIP-341, key path, no annex. */
  taproot(index: number, sighashType: 0 | 1): Uint8Array {
    const { outpoints, amounts, scripts, sequences, outputs } = this.commonHashes();
    takeSha256(this.steps, DIGEST_BYTES);
    const epochAndType = [0x00, sighashType];
    const common = concat(epochAndType, this.version, this.lockTime, outpoints, amounts, scripts, sequences, outputs);
    return taggedHash('TapSighash', concat(common, [0x00], uint32(index)));
  }

  /** BIP-143. */
  segwit(index: number, scriptCode: Uint8Array): Uint8Array {
    const { outpoints, sequences, outputs } = this.commonHashes();
    takeSha256(this.steps, DIGEST_BYTES);
    return sha256Twice(
      this.version,
      sha256(outpoints),
      sha256(sequences),
      this.outpoints[index]!,
      withLength(scriptCode),
      uint64(this.transaction.inputs[index]!.spent.amount),
      this.sequences[index]!,
      sha256(outputs),
      this.lockTime,
      uint32(SIGHASH_ALL),
    );
  }

  /** As before segwit: the transaction with the script in place of the only signature. */
  legacy(index: number, scriptCode: Uint8Array): Uint8Array {
    const { inputs, outputs } = this.transaction;
    const { bareInputs } = this;
    takeSha256(this.steps, bareInputs.length + this.outputs.length);
    const [begin, end] = [index * BARE_INPUT_LENGTH, (index + 1) * BARE_INPUT_LENGTH];
    const signed = concat(this.outpoints[index]!, withLength(scriptCode), this.sequences[index]!);
    const around = [bareInputs.subarray(0, begin), signed, bareInputs.subarray(end)];
    const counted = [compactSize(inputs.length), ...around, compactSize(outputs.length), this.outputs];
    return sha256Twice(this.version, ...counted, this.lockTime, uint32(SIGHASH_ALL));
  }

  private commonHashes(): NonNullable<typeof this.hashes> {
    const { inputs } = this.transaction;
    if (!this.hashes) takeSha256(this.steps, 2 * (this.bareInputs.length + this.outputs.length));
    this.hashes ??= {
      outpoints: sha256(concat(...this.outpoints)),
      amounts: sha256(concat(...inputs.map(({ spent }) => uint64(spent.amount)))),
      scripts: sha256(concat(...inputs.map(({ spent }) => withLength(spent.script)))),
      sequences: sha256(concat(...this.sequences)),
      outputs: sha256(this.outputs),
    };
    return this.hashes;
  }
}

/**
 * Hex of the PSBT with a signature for each of its inputs: partial signatures in DER and taproot key path signatures,
 * not finalized, because the published clients finalize and extract it themselves. The key's own scripts and its
 * internal key are added if missing, for the finalizer. Every other byte stays as it was sent.
 */
export function assembleBitcoin(
  transaction: BitcoinTransaction,
  publicKey: Uint8Array,
  signed: readonly { readonly input: BitcoinSigningInput; readonly signature: TransactionSignature }[],
): string {
  const records = new Map<number, readonly Uint8Array[]>();
  for (const { input, signature } of signed) {
    const { index, script, sighashType } = input;
    const { hasRedeemScript, hasWitnessScript, hasTapInternalKey } = transaction.inputs[index]!;
    const compact = signatureBytes(signature);
    if (script === 'P2TR') {
      // BIP-341: SIGHASH_DEFAULT is expressed by omitting its byte.
      const ending = sighashType === SIGHASH_DEFAULT ? [] : [sighashType];
      records.set(index, [
        record([PSBT_IN_TAP_KEY_SIG], concat(compact, ending)),
        ...(hasTapInternalKey ? [] : [record([PSBT_IN_TAP_INTERNAL_KEY], publicKey.subarray(1))]),
      ]);
      continue;
    }
    const der = secp256k1.Signature.fromBytes(compact, 'compact').toBytes('der');
    records.set(index, [
      record([PSBT_IN_PARTIAL_SIG, ...publicKey], concat(der, [sighashType])),
      ...(script === 'P2SH' && !hasRedeemScript ? [record([PSBT_IN_REDEEM_SCRIPT], redeemScriptOf(publicKey))] : []),
      ...(script === 'P2WSH' && !hasWitnessScript
        ? [record([PSBT_IN_WITNESS_SCRIPT], witnessScriptOf(publicKey))]
        : []),
    ]);
  }
  return hex(withRecords(transaction, records));
}

/** BIP-174: a record is a key and a value, each with its length; a map of records ends with an empty key. */
function record(key: readonly number[], value: Uint8Array): Uint8Array {
  return concat(compactSize(key.length), key, withLength(value));
}

/** The PSBT with records added at the end of the maps of some inputs. */
function withRecords(
  { psbt, inputs }: BitcoinTransaction,
  records: ReadonlyMap<number, readonly Uint8Array[]>,
): Uint8Array {
  const reader = new ByteReader(psbt);
  const parts: Uint8Array[] = [];
  let from = 0;
  reader.take(PSBT_MAGIC_LENGTH, 'the magic');
  skipMap(reader);
  inputs.forEach((_, index) => {
    skipMap(reader);
    const end = reader.position - 1;
    parts.push(psbt.subarray(from, end), ...(records.get(index) ?? []));
    from = end;
  });
  return concat(...parts, psbt.subarray(from));
}

/** Skips one map, which was checked when the PSBT was parsed. */
function skipMap(reader: ByteReader): void {
  for (let length = readCompactSize(reader); length > 0; length = readCompactSize(reader)) {
    reader.pass(length, 'a key');
    reader.pass(readCompactSize(reader), 'a value');
  }
}

/**
 * The value of `bitcoin.tx` (docs/protocol.md, policy namespaces), with addresses of `network`, which a PSBT does not name: whether an
 * output also belongs to an address on another network is in doubt.
 */
export function bitcoinPolicyValue(
  transaction: BitcoinTransaction | LegacyPreimage,
  network: BitcoinNetwork,
): PolicyValue {
  const { version, inputs, outputs, lockTime } = transaction;
  const known: KnownHashes = new Map();
  return {
    version: String(version),
    inputs: inputs.map(({ txid, vout, sequence }) => ({
      tx_id: hex(txid),
      vout: BigInt(vout),
      sequence: BigInt(sequence),
    })),
    outputs: outputs.map(({ amount, script }) => ({
      value: amount,
      script_pubkey: hex(script),
      ...outputAddress(script, network, known),
    })),
    locktime: { amount: BigInt(lockTime), type: lockTime < LOCK_TIME_THRESHOLD ? 'Blocks' : 'Seconds' },
    fee:
      'fee' in transaction
        ? transaction.fee
        : unreadable('a legacy signature does not cover the amounts that the inputs spend'),
  };
}

function hash160(content: Uint8Array): Uint8Array {
  return ripemd160(sha256(content));
}

function sha256Twice(...parts: readonly Uint8Array[]): Uint8Array {
  return sha256(sha256(concat(...parts)));
}

function concat(...parts: readonly (Uint8Array | readonly number[])[]): Uint8Array {
  return Uint8Array.from(
    Buffer.concat(parts.map((part) => (part instanceof Uint8Array ? part : Uint8Array.from(part)))),
  );
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}

function uint32(value: number): Uint8Array {
  const bytes = Buffer.alloc(4);
  // A version may be negative; its four bytes are those of the unsigned number with the same bits.
  bytes.writeUInt32LE(value >>> 0);
  return Uint8Array.from(bytes);
}

function uint64(value: bigint): Uint8Array {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(value);
  return Uint8Array.from(bytes);
}

/** Bitcoin's CompactSize. */
function compactSize(value: number): Uint8Array {
  if (value < 0xfd) return Uint8Array.of(value);
  if (value <= 0xffff) return Uint8Array.of(0xfd, value & 0xff, value >> 8);
  return concat([0xfe], uint32(value));
}

function withLength(script: Uint8Array): Uint8Array {
  return concat(compactSize(script.length), script);
}
