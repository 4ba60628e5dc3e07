import { keccak_256 } from '@noble/hashes/sha3.js';
import { concatBytes, hexToBytes } from '@noble/hashes/utils.js';
import { RLP } from 'micro-eth-signer/core/rlp.js';
import { invalidField } from '../domain/errors.js';
import { notApplicable, unreadable, Unreadable, type PolicyValue } from '../domain/policy/types.js';
import type { Steps } from '../domain/steps.js';
import { decodeCalldata } from './contracts/calldata.js';
import type { EthereumInterface } from './contracts/ethereum-abi.js';
import { severalInterfaces } from './contracts/readable.js';
import { isObject, parseJson, quoted, refusal, takeKeccak, toInteger } from './refusals.js';
import { hex } from './byte-reader.js';

/** Types as policies name them: before EIP-2718, EIP-2930, EIP-1559, EIP-4844, EIP-7702. */
type EthereumTransactionType = 'LEGACY' | 'TYPE_1' | 'TYPE_2' | 'TYPE_3' | 'TYPE_4';

/**
 * An unsigned transaction. Amounts are wei, `gasLimit` units of gas, `to` and `data` lower-case hex with 0x. Without
 * `chainId` it is legacy and valid on every chain (before EIP-155); without `to` it creates a contract.
 */
export interface EthereumTransaction {
  readonly type: EthereumTransactionType;
  readonly chainId?: bigint;
  readonly nonce: bigint;
  readonly gasPrice?: bigint;
  readonly maxPriorityFeePerGas?: bigint;
  readonly maxFeePerGas?: bigint;
  readonly maxFeePerBlobGas?: bigint;
  readonly gasLimit: bigint;
  readonly to?: string;
  readonly value: bigint;
  readonly data: string;
  /** What is hashed to be signed: the whole unsigned encoding, type byte included. */
  readonly signingPayload: Uint8Array;
}

/** An interface uploaded for a contract, or why it cannot be read. */
export type DeployedInterface = EthereumInterface | Unreadable;

/** The function that a transaction calls, as policies see it. */
export interface EthereumCall {
  readonly function_name: PolicyValue;
  readonly contract_call_args: PolicyValue;
}

type RlpItem = Uint8Array | RlpItem[];

const FEE_MARKET = ['chainId', 'nonce', 'maxPriorityFeePerGas', 'maxFeePerGas', 'gasLimit', 'to', 'value', 'data'];

/** The fields of each type, in the order of its EIP. */
const FIELDS: Readonly<Record<EthereumTransactionType, readonly string[]>> = {
  LEGACY: ['nonce', 'gasPrice', 'gasLimit', 'to', 'value', 'data'],
  TYPE_1: ['chainId', 'nonce', 'gasPrice', 'gasLimit', 'to', 'value', 'data', 'accessList'],
  TYPE_2: [...FEE_MARKET, 'accessList'],
  TYPE_3: [...FEE_MARKET, 'accessList', 'maxFeePerBlobGas', 'blobVersionedHashes'],
  TYPE_4: [...FEE_MARKET, 'accessList', 'authorizationList'],
};
const TYPES = Object.keys(FIELDS) as EthereumTransactionType[];

const ADDRESS_LENGTH = 20;
/** Four bytes in hex, with 0x. */
const SELECTOR_DIGITS = 10;
const WORD_LENGTH = 32;
/** v, r and s, or yParity, r and s; EIP-155 puts the chain id and two zeros in their place to be hashed. */
const SIGNATURE_FIELDS = 3;
/** RLP (Yellow Paper, appendix B): what the first byte of an item says. */
const SHORT_STRING_PREFIX = 0x80;
const FIRST_LIST_PREFIX = 0xc0;
const LONG_LIST_PREFIX = 0xf7;
/** EIP-2681. */
const MAX_NONCE = 2n ** 64n - 2n;
const AUTHORIZATION_MAGIC = 0x05;

/**
 * Parses an unsigned transaction as ethers (`unsignedSerialized`) and viem (`serializeTransaction`) write it, with or
 * without 0x: legacy with or without a chain id (EIP-155), EIP-2930, EIP-1559, EIP-4844 without its blobs, EIP-7702.
 * The RLP must be the canonical encoding of its content (Yellow Paper, appendix B).
 * @throws {CoordinatorError} INVALID_ARGUMENT that names the field and its value
 */
export function parseUnsignedEthereum(hex: string, steps: Steps): EthereumTransaction {
  // An item of RLP may be one byte long.
  steps.take('itemByteRead', hex.length / 2);
  const bytes = readHex(hex);
  const first = bytes[0] ?? 0;
  if (first >= FIRST_LIST_PREFIX) return readLegacy(decodeRlp(bytes), bytes);
  const type = TYPES[first];
  if (type === undefined || type === 'LEGACY') {
    throw bad(
      `starts with the byte ${quoted(hexOf(bytes.subarray(0, 1)))}; send an RLP list, or type 0x01 to 0x04 and one`,
    );
  }
  return readTyped(type, decodeRlp(bytes.subarray(1)), bytes);
}

/** Number of leading characters that contain a transaction's recipient: nothing before it is long. */
const HEAD_LENGTH = 1_024;

/** The address that a transaction calls, in lower case, from its beginning alone; undefined if it cannot be found. */
export function recipientOf(hex: string): string | undefined {
  const bytes = Buffer.from(hex.slice(0, HEAD_LENGTH).replace(/^0x/i, ''), 'hex');
  const [first = 0] = bytes;
  const type = first >= FIRST_LIST_PREFIX ? 'LEGACY' : TYPES[first];
  if (type === undefined || (type === 'LEGACY' && first < FIRST_LIST_PREFIX)) return undefined;
  const list = type === 'LEGACY' ? 0 : 1;
  const prefix = bytes[list] ?? 0;
  let at = list + 1 + Math.max(0, prefix - LONG_LIST_PREFIX);
  for (let before = FIELDS[type].indexOf('to'); before > 0; before--) {
    const item = bytes[at] ?? 0;
    // One byte, or up to 55 with their number before them.
    at += item < SHORT_STRING_PREFIX ? 1 : 1 + item - SHORT_STRING_PREFIX;
  }
  const isAddress = bytes[at] === SHORT_STRING_PREFIX + ADDRESS_LENGTH && bytes.length > at + ADDRESS_LENGTH;
  return isAddress ? hexOf(bytes.subarray(at + 1, at + 1 + ADDRESS_LENGTH)) : undefined;
}

/** The 32 bytes to sign: Keccak-256 of the unsigned encoding (Yellow Paper, EIP-155, EIP-2718). */
export function ethereumDigest(transaction: EthereumTransaction, steps: Steps): Uint8Array {
  takeKeccak(steps, transaction.signingPayload.length);
  return keccak_256(transaction.signingPayload);
}

/**
 * The signed transaction in lower-case hex without 0x, which the published clients prepend. `r` and `s` are 64 hex
 * digits, `v` is the recovery id `00` or `01`. Legacy transactions get v = 35 + 2 · chain id + recovery id (EIP-155),
 * or 27 + recovery id without a chain id.
 */
export function assembleEthereum(
  transaction: EthereumTransaction,
  signature: { readonly r: string; readonly s: string; readonly v: string },
): string {
  const recoveryId = BigInt(`0x${signature.v}`);
  if (recoveryId > 1n) throw new Error('a recovery id above 1 has no encoding in an Ethereum transaction');
  const { type, chainId, signingPayload } = transaction;
  const isLegacy = type === 'LEGACY';
  // Its items are put in place as they are: a long list of them takes as long to decode again as it took to read.
  const content = contentOf(isLegacy ? signingPayload : signingPayload.subarray(1));
  // EIP-155: the chain id and two zeros, of a byte each, stand where the signature goes.
  const placeholders = isLegacy && chainId !== undefined ? RLP.encode(chainId).length + 2 : 0;
  const items = content.subarray(0, content.length - placeholders);
  const legacyBase = chainId === undefined ? 27n : 35n + 2n * chainId;
  const v = isLegacy ? legacyBase + recoveryId : recoveryId;
  const signatureItems = [v, BigInt(`0x${signature.r}`), BigInt(`0x${signature.s}`)].map((item) => RLP.encode(item));
  const length = signatureItems.reduce((sum, item) => sum + item.length, items.length);
  const parts = [listPrefix(length), items, ...signatureItems];
  return hex(concatBytes(...(isLegacy ? [] : [signingPayload.subarray(0, 1)]), ...parts));
}

/** What the items of a list are encoded as (Yellow Paper, appendix B). */
function contentOf(list: Uint8Array): Uint8Array {
  const [first = 0] = list;
  return list.subarray(1 + Math.max(0, first - LONG_LIST_PREFIX));
}

/** What an encoded list of items of this length begins with. */
function listPrefix(length: number): Uint8Array {
  if (length <= LONG_LIST_PREFIX - FIRST_LIST_PREFIX) return Uint8Array.of(FIRST_LIST_PREFIX + length);
  const digits = length.toString(16);
  const bytes = hexToBytes(digits.padStart(digits.length + (digits.length % 2), '0'));
  return Uint8Array.of(LONG_LIST_PREFIX + bytes.length, ...bytes);
}

/**
 * `eth.tx` as policies see it (docs/protocol.md, policy namespaces), sent by `from`. Hex is lower case, `to` is empty if a contract is
 * created. For types with one gas price, it counts as both fees; for the others, `gas_price` is `max_fee_per_gas`
 * (EIP-1559).
 */
export function ethereumPolicyValue(transaction: EthereumTransaction, from: string, call: EthereumCall): PolicyValue {
  const { gasPrice } = transaction;
  return {
    type: transaction.type,
    from: from.toLowerCase(),
    to: transaction.to ?? '',
    data: transaction.data,
    value: transaction.value,
    gas: transaction.gasLimit,
    gas_price: gasPrice ?? transaction.maxFeePerGas,
    chain_id: transaction.chainId ?? unreadable('a transaction from before EIP-155 is valid on every chain'),
    nonce: transaction.nonce,
    max_fee_per_gas: transaction.maxFeePerGas ?? gasPrice,
    max_priority_fee_per_gas: transaction.maxPriorityFeePerGas ?? gasPrice,
    max_fee_per_blob_gas: transaction.maxFeePerBlobGas,
    function_signature: selectorOf(transaction),
    ...call,
  };
}

const NO_SELECTOR = 'the data is shorter than the four bytes that name a function';

/** The first four bytes of the data. A contract may read fewer as padded with zeros, or as not calling a function. */
function selectorOf({ data }: EthereumTransaction): PolicyValue {
  if (data === '0x') return '';
  return data.length < SELECTOR_DIGITS ? unreadable(NO_SELECTOR) : data.slice(0, SELECTOR_DIGITS);
}

/**
 * The function called and its arguments: not applicable to a call without data, or to a contract without an interface.
 * `interfaces` are those of the contract: one, as more are refused when they are uploaded (`checkNewContractInterface`).
 * Should there be several, none counts.
 */
export function ethereumCall(
  { to = '', data }: EthereumTransaction,
  interfaces: readonly DeployedInterface[],
  steps: Steps,
): EthereumCall {
  const [deployed, ...others] = interfaces;
  if (data === '0x' || deployed === undefined) return both(notApplicable);
  if (data.length < SELECTOR_DIGITS) return both(unreadable(NO_SELECTOR));
  if (others.length > 0) return both(severalInterfaces(to));
  if (deployed instanceof Unreadable) return both(deployed);
  const call = decodeCalldata(deployed, data, steps);
  if (call !== undefined) return { function_name: call.name, contract_call_args: call.args };
  return both(unreadable(`no interface of the contract has the function ${data.slice(0, SELECTOR_DIGITS)}`));
}

function both(value: PolicyValue): EthereumCall {
  return { function_name: value, contract_call_args: value };
}

/**
 * The EIP7702_AUTHORIZATION payload: JSON text of `{ address, chainId, nonce }`, numbers as numbers or as decimal or 0x
 * text. Returns the 32 bytes to sign, Keccak-256 of 0x05 ‖ RLP([chain id, address, nonce]) (EIP-7702), and what
 * `authorizationPolicyValue` makes of it.
 * @throws {CoordinatorError} INVALID_ARGUMENT
 */
export function parseEip7702Authorization(
  json: string,
  steps: Steps,
): { readonly digest: Uint8Array; readonly policy: Readonly<Record<string, PolicyValue>> } {
  const payload = parseJson(json, 'EIP-7702 authorization', steps);
  if (!isObject(payload))
    throw badAuthorization(`is ${quoted(payload)}; send an object with address, chainId and nonce`);
  for (const member of Object.keys(payload)) {
    if (member !== 'address' && member !== 'chainId' && member !== 'nonce') {
      throw badAuthorization(`has ${quoted(member)}, which would not be signed; send address, chainId and nonce`);
    }
  }
  const { address } = payload;
  if (typeof address !== 'string' || !/^0x[0-9a-fA-F]{40}$/.test(address)) {
    throw badAuthorization(`address is ${quoted(address)}; send 0x and 40 hex digits`);
  }
  const chainId = readAuthorizationNumber(payload, 'chainId', 2n ** 256n - 1n);
  const nonce = readAuthorizationNumber(payload, 'nonce', MAX_NONCE);
  const message = RLP.encode([chainId, hexToBytes(address.slice(2)), nonce]);
  return {
    digest: keccak_256(concatBytes(Uint8Array.of(AUTHORIZATION_MAGIC), message)),
    policy: { address: address.toLowerCase(), chain_id: chainId, nonce },
  };
}

/**
 * `eth.eip_7702_authorization` as policies see it. For chain 0 it is valid on every chain (EIP-7702), so no comparison of the
 * chain can be answered.
 * @param read `policy` of `parseEip7702Authorization`
 */
export function authorizationPolicyValue(
  read: Readonly<Record<string, PolicyValue>>,
): Readonly<Record<string, PolicyValue>> {
  if (read['chain_id'] !== 0n) return read;
  return { ...read, chain_id: unreadable('an authorization for chain 0 is valid on every chain') };
}

/**
 * What is signed after the magic of an EIP-7702 authorization, RLP([chain id, address, nonce]), for
 * `authorizationPolicyValue`.
 * @throws {CoordinatorError} INVALID_ARGUMENT
 */
export function readAuthorizationPreimage(list: Uint8Array, steps: Steps): Readonly<Record<string, PolicyValue>> {
  steps.take('itemByteRead', list.length);
  const [chainId, address, nonce, ...rest] = decodeRlp(list);
  checkLength(address, ADDRESS_LENGTH, 'address');
  const number = readInteger(nonce, 'nonce');
  if (rest.length > 0 || number > MAX_NONCE) throw badAuthorization('has more than an address, a chain id and a nonce');
  return { address: hexOf(readBytes(address, 'address')), chain_id: readInteger(chainId, 'chainId'), nonce: number };
}

/** Whether all of these bytes are one list in canonical RLP. */
export function isRlpList(bytes: Uint8Array, steps: Steps): boolean {
  const [first = 0] = bytes;
  if (first < FIRST_LIST_PREFIX) return false;
  const digits = Math.max(0, first - LONG_LIST_PREFIX);
  const content = bytes.subarray(1, 1 + digits).reduce((length, byte) => length * 256 + byte, 0);
  if (bytes.length !== 1 + (digits > 0 ? digits + content : first - FIRST_LIST_PREFIX)) return false;
  steps.take('itemByteRead', bytes.length);
  try {
    RLP.decode(bytes);
    return true;
  } catch {
    return false;
  }
}

function readAuthorizationNumber(payload: Readonly<Record<string, unknown>>, member: string, max: bigint): bigint {
  const number = toInteger(payload[member]);
  if (number === undefined || number < 0n || number > max) {
    throw badAuthorization(`${member} is ${quoted(payload[member])}; send an integer from 0 to ${max}`);
  }
  return number;
}

function readLegacy(items: RlpItem[], signingPayload: Uint8Array): EthereumTransaction {
  const names = FIELDS.LEGACY;
  if (items.length === names.length) return readFields('LEGACY', items, signingPayload);
  if (items.length !== names.length + SIGNATURE_FIELDS) throw wrongCount('LEGACY', items);
  const [chainId, r, s] = ['chainId', 'r', 's'].map((name, at) => readInteger(items[names.length + at], name));
  if (r !== 0n || s !== 0n) throw bad('is already signed; send it without a signature');
  if (chainId === undefined || chainId === 0n) {
    throw bad('chainId is `0`; send the id of a chain, or the first six fields only');
  }
  return { ...readFields('LEGACY', items.slice(0, names.length), signingPayload), chainId };
}

function readTyped(type: EthereumTransactionType, items: RlpItem[], signingPayload: Uint8Array): EthereumTransaction {
  const names = FIELDS[type];
  if (type === 'TYPE_3' && Array.isArray(items[0])) throw bad('carries its blobs; send the transaction without them');
  if (items.length === names.length + SIGNATURE_FIELDS) throw bad('is already signed; send it without a signature');
  if (items.length !== names.length) throw wrongCount(type, items);
  return readFields(type, items, signingPayload);
}

function wrongCount(type: EthereumTransactionType, items: readonly RlpItem[]): Error {
  const expected = FIELDS[type];
  return bad(`has \`${items.length}\` fields; type ${type} has ${expected.length}: ${expected.join(', ')}`);
}

function readFields(
  type: EthereumTransactionType,
  items: readonly RlpItem[],
  signingPayload: Uint8Array,
): EthereumTransaction {
  const names = FIELDS[type];
  const item = (name: string): RlpItem | undefined => items[names.indexOf(name)];
  const integer = (name: string): bigint => readInteger(item(name), name);
  const integers = (...wanted: string[]): Record<string, bigint> =>
    Object.fromEntries(wanted.filter((name) => names.includes(name)).map((name) => [name, integer(name)]));
  const nonce = integer('nonce');
  if (nonce > MAX_NONCE) throw bad(`nonce is \`${nonce}\`; it is at most ${MAX_NONCE} (EIP-2681)`);
  const to = readBytes(item('to'), 'to');
  if (to.length !== ADDRESS_LENGTH && to.length > 0) throw bad(`to is ${quoted(hexOf(to))}; an address has 20 bytes`);
  if (to.length === 0 && (type === 'TYPE_3' || type === 'TYPE_4')) {
    throw bad(`to is empty; type ${type} cannot create a contract`);
  }
  if (names.includes('accessList')) checkAccessList(item('accessList'));
  if (type === 'TYPE_3') {
    for (const hash of readList(item('blobVersionedHashes'), 'blobVersionedHashes')) {
      checkLength(hash, WORD_LENGTH, 'blobVersionedHashes');
    }
  }
  if (type === 'TYPE_4') checkAuthorizationList(item('authorizationList'));
  return {
    type,
    ...integers('chainId', 'gasPrice', 'maxPriorityFeePerGas', 'maxFeePerGas', 'maxFeePerBlobGas'),
    nonce,
    gasLimit: integer('gasLimit'),
    ...(to.length > 0 && { to: hexOf(to) }),
    value: integer('value'),
    data: hexOf(readBytes(item('data'), 'data')),
    signingPayload,
  };
}

function checkAccessList(item: RlpItem | undefined): void {
  for (const entry of readList(item, 'accessList')) {
    const [address, keys, ...rest] = readList(entry, 'accessList');
    if (rest.length > 0) throw bad('accessList has an entry of more than an address and its storage keys');
    checkLength(address, ADDRESS_LENGTH, 'accessList');
    for (const key of readList(keys, 'accessList')) checkLength(key, WORD_LENGTH, 'accessList');
  }
}

function checkAuthorizationList(item: RlpItem | undefined): void {
  for (const entry of readList(item, 'authorizationList')) {
    const [chainId, address, nonce, yParity, r, s, ...rest] = readList(entry, 'authorizationList');
    if (rest.length > 0) throw bad('authorizationList has an entry of more than six fields');
    checkLength(address, ADDRESS_LENGTH, 'authorizationList');
    for (const number of [chainId, nonce, yParity, r, s]) readInteger(number, 'authorizationList');
  }
}

function readHex(hex: string): Uint8Array {
  const digits = hex.replace(/^0x/i, '');
  if (digits === '') throw bad('is empty; send the unsigned transaction in hex');
  if (!/^[0-9a-fA-F]*$/.test(digits)) throw bad(`is ${quoted(hex)}, which is not hex`);
  if (digits.length % 2 !== 0) throw bad(`has \`${digits.length}\` hex digits, an odd number`);
  return hexToBytes(digits);
}

function decodeRlp(bytes: Uint8Array): RlpItem[] {
  let item: RlpItem;
  try {
    item = RLP.decode(bytes) as RlpItem;
  } catch (error) {
    const why = error instanceof Error ? error.message.replace(/^RLP\.decode: /, '') : 'unreadable';
    throw bad(`is not canonical RLP: ${why}`);
  }
  if (!Array.isArray(item)) throw bad('is RLP of a string; send the list of the fields');
  return item;
}

function readBytes(item: RlpItem | undefined, name: string): Uint8Array {
  if (item === undefined) throw bad(`${name} has an entry that lacks fields`);
  if (!(item instanceof Uint8Array)) throw bad(`${name} is a list; send bytes`);
  return item;
}

function readList(item: RlpItem | undefined, name: string): RlpItem[] {
  if (item === undefined) throw bad(`${name} has an entry that lacks fields`);
  if (!Array.isArray(item)) throw bad(`${name} has bytes where a list is due`);
  return item;
}

function checkLength(item: RlpItem | undefined, length: number, name: string): void {
  const bytes = readBytes(item, name);
  if (bytes.length !== length) throw bad(`${name} has ${quoted(hexOf(bytes))} where ${length} bytes are due`);
}

function readInteger(item: RlpItem | undefined, name: string): bigint {
  const bytes = readBytes(item, name);
  if (bytes.length === 0) return 0n;
  if (bytes[0] === 0) throw bad(`${name} is ${quoted(hexOf(bytes))}; integers have no leading zeros`);
  if (bytes.length > WORD_LENGTH) throw bad(`${name} is ${quoted(hexOf(bytes))}; integers have at most 32 bytes`);
  return BigInt(hexOf(bytes));
}

function hexOf(bytes: Uint8Array): string {
  return `0x${hex(bytes)}`;
}

function bad(what: string): Error {
  return invalidField('unsignedTransaction', what);
}

function badAuthorization(what: string): Error {
  return refusal(`EIP-7702 authorization ${what}`);
}
