import { sha256 } from '@noble/hashes/sha2.js';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { bytesToHex, hexToBytes, utf8ToBytes } from '@noble/hashes/utils.js';
import { base58 } from '@scure/base';
import { invalidField } from '../domain/errors.js';
import { limitTable } from '../domain/organization/limits.js';
import { unreadable, type PolicyValue, type Unreadable } from '../domain/policy/types.js';
import { OutOfSteps, type Steps } from '../domain/steps.js';
import { checkDepth, isObject, quoted, takeKeccak, takeSha256 } from './refusals.js';

/** The functions of an Ethereum contract by selector: 0x and 8 hex digits, lower case. */
export interface EthereumInterface {
  readonly functions: ReadonlyMap<string, AbiFunction>;
}

/** `signature` is canonical, as the selector hashes it: `transfer(address,uint256)`. */
interface AbiFunction {
  readonly name: string;
  readonly signature: string;
  readonly inputs: readonly AbiParameter[];
}

/** `name` is empty for a parameter without one. */
interface AbiParameter {
  readonly name: string;
  readonly type: AbiType;
}

type AbiShape =
  | { readonly kind: 'uint' | 'int'; readonly bits: number }
  | { readonly kind: 'address' | 'bool' | 'string' | 'bytes' }
  | { readonly kind: 'fixedBytes'; readonly length: number }
  | { readonly kind: 'array'; readonly of: AbiType; readonly length?: number }
  | { readonly kind: 'tuple'; readonly components: readonly AbiParameter[] };

/** `headLength` counts the bytes in the head of the enclosing tuple; a dynamic value has an offset there. */
type AbiType = AbiShape & { readonly isDynamic: boolean; readonly headLength: number };

/**
 * A Solana program as its Anchor IDL says it. `programId` is base58, if the IDL has it. An account in a group is named
 * `group.account`.
 */
export interface SolanaInterface {
  readonly programId?: string;
  readonly instructions: readonly SolanaInstruction[];
  /** By what data begins with: as the IDL says it, and what it leaves open, which is asked where the first has nothing. */
  readonly beginnings: readonly [Beginnings, Beginnings];
}

/** Instructions by their discriminator, in lower-case hex, and how many digits there may be, the most first. */
interface Beginnings {
  readonly instructions: ReadonlyMap<string, SolanaInstruction>;
  readonly lengths: readonly number[];
}

/**
 * `discriminatorHex` is what the data of the instruction begins with: lower case, without 0x. `otherDiscriminators` are
 * what it may begin with instead, where the IDL leaves that open.
 */
interface SolanaInstruction {
  readonly name: string;
  readonly discriminatorHex: string;
  readonly otherDiscriminators: readonly string[];
  readonly accounts: readonly string[];
  readonly args: readonly BorshField[];
}

interface BorshField {
  readonly name: string;
  readonly type: BorshType;
}

type BorshType =
  | { readonly kind: 'bool' | 'string' | 'bytes' | 'publicKey' }
  | { readonly kind: 'unsigned' | 'signed' | 'float'; readonly size: number }
  | { readonly kind: 'option' | 'vec'; readonly of: BorshType }
  | { readonly kind: 'array'; readonly of: BorshType; readonly length: number }
  | { readonly kind: 'struct'; readonly fields: BorshFields }
  | { readonly kind: 'enum'; readonly variants: readonly { readonly name: string; readonly fields: BorshFields }[] };

/** Named fields, or the unnamed ones of a tuple. */
type BorshFields = readonly BorshField[] | { readonly tuple: readonly BorshType[] };

/** A call as policies read it. */
export interface DecodedCall {
  readonly name: string;
  readonly selector: string;
  readonly args: Readonly<Record<string, PolicyValue>> | Unreadable;
}

/** An instruction as policies read it, with the names of its accounts in their order. `discriminator` has no 0x. */
export interface SolanaCall {
  readonly instructionName: string;
  readonly discriminator: string;
  readonly accountNames: readonly string[];
  readonly programCallArgs: Readonly<Record<string, PolicyValue>> | Unreadable;
}

/** Client protocol 4.3.7 limits an interface to 400 000 characters; here they are UTF-16 code units. */
const MAX_INTERFACE_LENGTH = 400_000;
/** Names of functions, instructions, parameters, fields, types, variants and accounts; real ones have fewer than 60. */
const MAX_NAME_LENGTH = 128;
/** Functions of a contract or instructions of a program; the largest that are known have about 300. */
const MAX_FUNCTIONS = limitTable.smartContractInterfaceFunctions.value;
/** Types made of other types, each instance of a generic one counted; the largest IDLs that are known make about 600. */
const MAX_TYPES = limitTable.smartContractInterfaceTypes.value;
/** Parameters, fields, variants and accounts in all, counted in each instance of a generic type. */
const MAX_PARTS = 16_384;
const MAX_NESTING = 32;
const WORD_LENGTH = 32;
const SELECTOR_LENGTH = 4;
const DISCRIMINATOR_LENGTH = 8;
/** Bytes of a call that are read beside twice its length. */
const SPARE_BYTES = 2 ** 20;
/** Beyond any data, and safe to add to. */
const FAR = 2 ** 52;
/** Digits in the name of an instruction of an old IDL for which every spelling is tried. */
const MAX_DIGITS = 3;
/** What the index of an account can tell apart, and it is a byte. */
const MAX_ACCOUNTS = 256;
/** In all instructions of a transaction together: the chain itself allows 1 232 bytes. */
const MAX_BORSH_VALUES = 16_384;
const MAX_BORSH_DEPTH = 128;

const IDENTIFIER = /^[A-Za-z_$][A-Za-z0-9_$]*$/;
const ABI_ENTRIES: ReadonlySet<unknown> = new Set(['function', 'constructor', 'receive', 'fallback', 'event', 'error']);

/**
 * Reads the `smartContractInterface` of a contract: the JSON ABI of an Ethereum contract (a list), or the Anchor IDL of
 * a Solana program (an object, of either format), at most 400 000 characters.
 * @throws {CoordinatorError} INVALID_ARGUMENT that names the place in the interface
 */
export function parseContractInterface(type: 'ETHEREUM', json: string, steps: Steps): EthereumInterface;
export function parseContractInterface(type: 'SOLANA', json: string, steps: Steps): SolanaInterface;
export function parseContractInterface(
  type: 'ETHEREUM' | 'SOLANA',
  json: string,
  steps: Steps,
): EthereumInterface | SolanaInterface;
export function parseContractInterface(
  type: 'ETHEREUM' | 'SOLANA',
  json: string,
  steps: Steps,
): EthereumInterface | SolanaInterface {
  if (json.length > MAX_INTERFACE_LENGTH) {
    throw bad(`has \`${json.length}\` characters; at most ${MAX_INTERFACE_LENGTH} are taken`);
  }
  const problem = checkDepth(json, steps);
  if (problem !== undefined) throw bad(problem);
  let parsed: unknown;
  try {
    parsed = JSON.parse(json);
  } catch {
    throw bad('is not valid JSON');
  }
  const size = new InterfaceSize(steps);
  return type === 'ETHEREUM' ? readAbi(parsed, size) : new IdlReader(parsed, size).read();
}

/** Counts what an interface is made of, before it is made: a text of 8 kB could say a million types. */
class InterfaceSize {
  #types = 0;
  #parts = 0;

  constructor(readonly steps: Steps) {}

  type(): void {
    this.steps.take('typeInstantiated');
    this.#types += 1;
    if (this.#types > MAX_TYPES) {
      throw bad(
        `makes more than ${MAX_TYPES} types, with each instance of a generic one; leave out what is not needed`,
      );
    }
  }

  part(): void {
    this.steps.take('nameBuilt');
    this.#parts += 1;
    if (this.#parts > MAX_PARTS) {
      throw bad(`has more than ${MAX_PARTS} parameters, fields and accounts in all; leave out what is not needed`);
    }
  }
}

function checkName(name: string, place: string): string {
  if (name.length <= MAX_NAME_LENGTH) return name;
  throw bad(`${place} is ${quoted(name)}, of \`${name.length}\` characters; a name has at most ${MAX_NAME_LENGTH}`);
}

function checkCount(count: number, what: string): void {
  if (count > MAX_FUNCTIONS) throw bad(`has \`${count}\` ${what}; at most ${MAX_FUNCTIONS} are taken`);
}

/**
 * Decodes the data of a call (hex with 0x) as the Ethereum Virtual Machine reads it: what is missing at the end is zero,
 * offsets are added modulo 2^256, values may share their place, and data after the arguments is not looked at. Undefined
 * when the interface has no such function. Never throws. A value is unreadable where contracts disagree about it (bits
 * beyond its type are set, text is not UTF-8), all of the arguments are where they would take too long to read, or more
 * steps than are left. Arguments without a name are left out.
 */
export function decodeCalldata(contract: EthereumInterface, data: string, steps: Steps): DecodedCall | undefined {
  const selector = data.slice(0, 2 + 2 * SELECTOR_LENGTH).toLowerCase();
  const called = contract.functions.get(selector);
  if (called === undefined) return undefined;
  const args = orUnreadable(() => {
    steps.take('byteRead', data.length);
    return new AbiReader(hexToBytes(data.slice(2)), steps).record(called.inputs, SELECTOR_LENGTH);
  });
  return { name: called.name, selector, args };
}

/**
 * Decodes the data of an instruction by the one whose discriminator it begins with, as policies read it. Undefined when
 * there is none. Never throws; its time is bounded. Public keys are base58, bytes lower-case hex without 0x, floats
 * decimal text. A variant of an enum is its name, or an object of its name and its fields. A missing option is
 * absent, or an empty object in a list. Arguments that do not decode are unreadable. Data after the arguments is not
 * looked at, as Anchor does.
 */
export function decodeSolanaArgs(
  program: SolanaInterface,
  data: Uint8Array,
  budget: BorshBudget,
): SolanaCall | undefined {
  const found = instructionOf(program, bytesToHex(data));
  if (found === undefined) return undefined;
  const { instruction, discriminator } = found;
  const { name, accounts, args } = instruction;
  const reader = new BorshReader(data.subarray(discriminator.length / 2), budget);
  // No more than an instruction can name: the IDL may have many for each.
  const accountNames = accounts.slice(0, MAX_ACCOUNTS);
  return {
    instructionName: name,
    discriminator,
    accountNames,
    programCallArgs: orUnreadable(() => reader.record(args)),
  };
}

/** The instruction with the longest discriminator that the data begins with, one that the IDL says before one it leaves open. */
function instructionOf({ beginnings }: SolanaInterface, hex: string) {
  for (const { instructions, lengths } of beginnings) {
    for (const length of lengths) {
      const discriminator = hex.slice(0, length);
      const instruction = discriminator.length === length ? instructions.get(discriminator) : undefined;
      if (instruction !== undefined) return { instruction, discriminator };
    }
  }
  return undefined;
}

/** What all instructions of one transaction may be read for. */
export class BorshBudget {
  #values = 0;

  constructor(readonly steps: Steps) {}

  value(): void {
    this.#values += 1;
    if (this.#values > MAX_BORSH_VALUES) throw new Malformed(TOO_LONG);
    this.steps.take('valueDecoded');
  }

  /** Before any of them is read: there are elements without bytes, so the data alone bounds nothing. */
  checkList(count: number): void {
    if (count > MAX_BORSH_VALUES - this.#values) throw new Malformed(TOO_LONG);
  }
}

/** Thrown by the readers below and caught by `orUnreadable`: what is decoded was written by somebody else. */
class Malformed extends Error {}

function orUnreadable<T>(decode: () => T): T | Unreadable {
  try {
    return decode();
  } catch (error) {
    if (error instanceof Malformed) return unreadable(error.message);
    if (error instanceof OutOfSteps) return unreadable(TOO_LONG);
    throw error;
  }
}

/** Contract ABI specification, "Formal Specification of the Encoding", read as CALLDATALOAD and CALLDATACOPY do. */
class AbiReader {
  /** The whole call data: offsets count modulo 2^256, so that one may point before the arguments. */
  readonly #data: Uint8Array;
  readonly #view: DataView;
  /**
   * Bytes that may still be read. Lists may overlap, and what is not there is zero, so that a short call could say an
   * endless one; an honest call reads no byte more than twice.
   */
  #budget: number;
  /** By type and place: offsets may point to the same place many times, each of which is the same value. */
  readonly #known = new Map<AbiType, Map<number, PolicyValue>>();

  readonly #steps: Steps;

  constructor(data: Uint8Array, steps: Steps) {
    this.#steps = steps;
    this.#data = data;
    this.#view = new DataView(data.buffer, data.byteOffset, data.length);
    this.#budget = 2 * data.length + SPARE_BYTES;
  }

  /** The values of a tuple that begins at `base`; the offsets in it count from there. */
  record(parameters: readonly AbiParameter[], base: number): Record<string, PolicyValue> {
    const values: [string, PolicyValue][] = [];
    let head = base;
    for (const { name, type } of parameters) {
      const value = this.#at(type, head, base);
      if (name !== '') values.push([name, value]);
      head += type.headLength;
    }
    return Object.fromEntries(values);
  }

  /** The value whose head is at `head`. */
  #at(type: AbiType, head: number, base: number): PolicyValue {
    if (!type.isDynamic) return this.#value(type, head);
    const start = placeOf(BigInt(base) + this.#integer(head));
    const known = this.#known.get(type) ?? new Map<number, PolicyValue>();
    this.#known.set(type, known);
    const before = known.get(start);
    if (before !== undefined) return before;
    const value = this.#value(type, start);
    known.set(start, value);
    return value;
  }

  #value(type: AbiType, start: number): PolicyValue {
    this.#steps.take('valueDecoded');
    switch (type.kind) {
      case 'uint': {
        const value = this.#integer(start);
        return value >> BigInt(type.bits) === 0n ? value : beyond(`uint${type.bits}`);
      }
      case 'int': {
        const value = BigInt.asIntN(256, this.#integer(start));
        return BigInt.asIntN(type.bits, value) === value ? value : beyond(`int${type.bits}`);
      }
      case 'bool': {
        const value = this.#integer(start);
        return value > 1n ? beyond('bool') : value === 1n;
      }
      case 'address': {
        const word = this.#read(start, WORD_LENGTH);
        return isZero(word.subarray(0, 12)) ? hexOf(word.subarray(12)) : beyond('address');
      }
      case 'fixedBytes': {
        const word = this.#read(start, WORD_LENGTH);
        const { length } = type;
        return isZero(word.subarray(length)) ? hexOf(word.subarray(0, length)) : beyond(`bytes${length}`);
      }
      case 'bytes':
        return hexOf(this.#content(start));
      case 'string':
        return textOf(this.#content(start));
      case 'tuple':
        return this.record(type.components, start);
      case 'array': {
        const first = type.length === undefined ? start + WORD_LENGTH : start;
        return this.#elements(type.of, first, type.length ?? this.#count(start));
      }
    }
  }

  #elements(type: AbiType, first: number, count: number): PolicyValue[] {
    // Before the first element is read: a count is four bytes to write and could be an hour to read.
    if (count * type.headLength > this.#budget) throw new Malformed(TOO_LONG);
    return Array.from({ length: count }, (_, at) => this.#at(type, first + at * type.headLength, first));
  }

  #content(start: number): Uint8Array {
    return this.#read(start + WORD_LENGTH, this.#count(start));
  }

  #count(start: number): number {
    const count = this.#integer(start);
    if (count > BigInt(this.#budget)) throw new Malformed(TOO_LONG);
    return Number(count);
  }

  #integer(start: number): bigint {
    if (start < 0 || start + WORD_LENGTH > this.#data.length) {
      return BigInt(hexOf(this.#read(start, WORD_LENGTH)));
    }
    this.#spend(WORD_LENGTH);
    const view = this.#view;
    const low = view.getBigUint64(start + 24);
    const high = view.getBigUint64(start + 16);
    const rest = [view.getBigUint64(start), view.getBigUint64(start + 8)] as const;
    if (rest[0] === 0n && rest[1] === 0n) return high === 0n ? low : (high << 64n) | low;
    return (rest[0] << 192n) | (rest[1] << 128n) | (high << 64n) | low;
  }

  #read(start: number, length: number): Uint8Array {
    this.#spend(length);
    this.#steps.take('byteWritten', length);
    const end = start + length;
    if (start >= 0 && end <= this.#data.length) return this.#data.subarray(start, end);
    const padded = new Uint8Array(length);
    if (start >= 0) padded.set(this.#data.subarray(start, end));
    return padded;
  }

  #spend(bytes: number): void {
    this.#budget -= bytes;
    if (this.#budget < 0) throw new Malformed(TOO_LONG);
  }
}

const TOO_LONG = 'the arguments take too long to read';
const WRAP = 2n ** 256n;

/** Where a sum of 256 bits points to: what wraps around is counted below zero, where nothing is but zeros. */
function placeOf(sum: bigint): number {
  const place = BigInt.asUintN(256, sum);
  if (place < BigInt(FAR)) return Number(place);
  return place > WRAP - BigInt(FAR) ? Number(place - WRAP) : FAR;
}

/** Contracts of newer compilers refuse such a value, older ones cut it, and some written by hand do neither. */
function beyond(type: string): Unreadable {
  return unreadable(`a value of type ${type} has bits beyond its type`);
}

function isZero(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0);
}

function textOf(bytes: Uint8Array): PolicyValue {
  try {
    return agreedText(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch {
    return unreadable('text that is not UTF-8');
  }
}

/** Libraries leave NULs and byte order marks out, end at them, or show them: viem, for one, at the start of a text. */
function agreedText(text: string): PolicyValue {
  if (text.includes('\0')) return unreadable('text with a NUL, which not everybody reads');
  if (text.startsWith('\ufeff')) return unreadable('text with a byte order mark, which not everybody reads');
  return text;
}

function abiType(shape: AbiShape): AbiType {
  const isDynamic = isDynamicShape(shape);
  return { ...shape, isDynamic, headLength: isDynamic ? WORD_LENGTH : staticLength(shape) };
}

function isDynamicShape(shape: AbiShape): boolean {
  switch (shape.kind) {
    case 'string':
    case 'bytes':
      return true;
    case 'array':
      return shape.length === undefined || shape.of.isDynamic;
    case 'tuple':
      return shape.components.some(({ type }) => type.isDynamic);
    default:
      return false;
  }
}

function staticLength(shape: AbiShape): number {
  if (shape.kind === 'array') return (shape.length ?? 0) * shape.of.headLength;
  if (shape.kind === 'tuple') return shape.components.reduce((sum, { type }) => sum + type.headLength, 0);
  return WORD_LENGTH;
}

function readAbi(abi: unknown, size: InterfaceSize): EthereumInterface {
  if (!Array.isArray(abi)) {
    const hint =
      isObject(abi) && Array.isArray(abi.abi) ? 'send the list in its member `abi`' : 'send a JSON ABI, a list';
    throw bad(`is no list; ${hint}`);
  }
  const functions = new Map<string, AbiFunction>();
  checkCount(abi.length, 'functions, events and errors');
  abi.forEach((entry: unknown, at) => {
    const place = `[${at}]`;
    // The type may be left out for a function (Contract ABI specification, "JSON").
    const type = isObject(entry) ? (entry.type ?? 'function') : undefined;
    if (!isObject(entry) || !ABI_ENTRIES.has(type)) {
      throw bad(`${place} is ${quoted(entry)}; send a function, constructor, receive, fallback, event or error`);
    }
    if (type !== 'function') return;
    const read = readAbiFunction(entry, place, size);
    takeKeccak(size.steps, read.signature.length);
    const selector = hexOf(keccak_256(utf8ToBytes(read.signature)).subarray(0, SELECTOR_LENGTH));
    const known = functions.get(selector);
    if (known !== undefined && known.signature !== read.signature) {
      throw bad(`${place} ${quoted(read.signature)} has the selector of ${quoted(known.signature)}; leave one out`);
    }
    if (known === undefined) functions.set(selector, read);
  });
  return { functions };
}

function readAbiFunction(entry: Readonly<Record<string, unknown>>, place: string, size: InterfaceSize): AbiFunction {
  const { name } = entry;
  if (typeof name !== 'string' || !IDENTIFIER.test(name)) {
    throw bad(`${place}.name is ${quoted(name)}; send the name of the function`);
  }
  checkName(name, `${place}.name`);
  const inputs = readAbiParameters(entry.inputs ?? [], `${place}.inputs`, 0, size);
  return { name, signature: `${name}${canonicalTuple(inputs)}`, inputs };
}

function readAbiParameters(
  parameters: unknown,
  place: string,
  depth: number,
  size: InterfaceSize,
): readonly AbiParameter[] {
  if (depth > MAX_NESTING) throw bad(`${place} is nested deeper than ${MAX_NESTING} levels`);
  if (!Array.isArray(parameters)) throw bad(`${place} is ${quoted(parameters)}; send a list of { name, type }`);
  const names = new Set<string>();
  return parameters.map((parameter: unknown, at): AbiParameter => {
    const inner = `${place}[${at}]`;
    size.part();
    if (!isObject(parameter)) throw bad(`${inner} is ${quoted(parameter)}; send { name, type }`);
    const name = parameter.name ?? '';
    if (typeof name !== 'string') throw bad(`${inner}.name is ${quoted(name)}; send a text`);
    checkName(name, `${inner}.name`);
    if (name !== '' && names.has(name)) throw bad(`${inner}.name ${quoted(name)} is taken by another parameter`);
    names.add(name);
    return { name, type: readAbiType(parameter, inner, depth, size) };
  });
}

function readAbiType(
  parameter: Readonly<Record<string, unknown>>,
  place: string,
  depth: number,
  size: InterfaceSize,
): AbiType {
  const text = parameter.type;
  if (typeof text !== 'string') throw bad(`${place}.type is ${quoted(text)}; send the name of a type`);
  const [base, ...dimensions] = text.split('[');
  if (depth + dimensions.length > MAX_NESTING) throw bad(`${place}.type has more than ${MAX_NESTING} dimensions`);
  let type = elementaryAbiType(base ?? '');
  if (base === 'tuple') {
    size.type();
    const inside = depth + dimensions.length + 1;
    const components = readAbiParameters(parameter.components, `${place}.components`, inside, size);
    // Solidity has no empty structs, and a list of them would have elements without end in no bytes at all.
    if (components.length === 0) throw bad(`${place}.components is empty; a tuple has components`);
    type = abiType({ kind: 'tuple', components });
  }
  if (type === undefined) throw bad(`${place}.type ${quoted(text)} is not known; send a type of the contract ABI`);
  for (const dimension of dimensions) {
    const length = /^([1-9]\d{0,8})?\]$/.exec(dimension);
    if (length === null) throw bad(`${place}.type is ${quoted(text)}; arrays are T[] or T[n], n from 1`);
    size.type();
    type = abiType({ kind: 'array', of: type, ...(length[1] !== undefined && { length: Number(length[1]) }) });
  }
  return type;
}

function elementaryAbiType(name: string): AbiType | undefined {
  if (name === 'address' || name === 'bool' || name === 'string' || name === 'bytes') return abiType({ kind: name });
  const parts = /^(uint|int|bytes)([1-9]\d{0,2})?$/.exec(name);
  const size = Number(parts?.[2] ?? 256);
  if (parts?.[1] === 'bytes') return size <= WORD_LENGTH ? abiType({ kind: 'fixedBytes', length: size }) : undefined;
  if (parts === null || size % 8 !== 0 || size > 256) return undefined;
  return abiType({ kind: parts[1] as 'uint' | 'int', bits: size });
}

function canonicalTuple(parameters: readonly AbiParameter[]): string {
  return `(${parameters.map(({ type }) => canonicalName(type)).join(',')})`;
}

function canonicalName(type: AbiShape): string {
  switch (type.kind) {
    case 'uint':
    case 'int':
      return `${type.kind}${type.bits}`;
    case 'fixedBytes':
      return `bytes${type.length}`;
    case 'array':
      return `${canonicalName(type.of)}[${type.length ?? ''}]`;
    case 'tuple':
      return canonicalTuple(type.components);
    default:
      return type.kind;
  }
}

/** Borsh specification. */
class BorshReader {
  readonly #data: Uint8Array;
  readonly #budget: BorshBudget;
  #position = 0;
  #depth = 0;

  constructor(data: Uint8Array, budget: BorshBudget) {
    this.#data = data;
    this.#budget = budget;
  }

  record(fields: readonly BorshField[]): Record<string, PolicyValue> {
    const values = fields.map(({ name, type }) => [name, this.#value(type)] as const);
    return Object.fromEntries(values.filter((entry): entry is [string, PolicyValue] => entry[1] !== undefined));
  }

  /** Undefined for an option that is missing. */
  #value(type: BorshType): PolicyValue | undefined {
    this.#budget.value();
    this.#depth += 1;
    // A type that is used by many can be nested deeper than the text of any one place in the IDL.
    if (this.#depth > MAX_BORSH_DEPTH) throw new Malformed(TOO_LONG);
    const value = this.#read(type);
    this.#depth -= 1;
    return value;
  }

  #read(type: BorshType): PolicyValue | undefined {
    switch (type.kind) {
      case 'bool':
        return this.#tag();
      case 'unsigned':
        return this.#unsigned(type.size);
      case 'signed':
        return BigInt.asIntN(8 * type.size, this.#unsigned(type.size));
      case 'float':
        return this.#float(type.size);
      case 'publicKey':
        return base58.encode(this.#take(32));
      case 'bytes':
        return bytesToHex(this.#take(this.#count()));
      case 'string':
        return this.#string();
      case 'option':
        return this.#tag() ? this.#value(type.of) : undefined;
      case 'vec':
        return this.#list(type.of, this.#count());
      case 'array':
        return this.#list(type.of, type.length);
      case 'struct':
        return this.#fields(type.fields);
      case 'enum': {
        const variant = type.variants[Number(this.#unsigned(1))];
        if (variant === undefined) throw new Malformed('the arguments of the instruction do not decode');
        const isUnit = 'tuple' in variant.fields ? variant.fields.tuple.length === 0 : variant.fields.length === 0;
        return isUnit ? variant.name : Object.fromEntries([[variant.name, this.#fields(variant.fields)]]);
      }
    }
  }

  #fields(fields: BorshFields): PolicyValue {
    return 'tuple' in fields ? fields.tuple.map((type) => this.#value(type) ?? {}) : this.record(fields);
  }

  #list(type: BorshType, count: number): PolicyValue[] {
    this.#budget.checkList(count);
    return Array.from({ length: count }, () => this.#value(type) ?? {});
  }

  #tag(): boolean {
    const tag = this.#unsigned(1);
    if (tag > 1n) throw new Malformed('the arguments of the instruction do not decode');
    return tag === 1n;
  }

  #count(): number {
    return Number(this.#unsigned(4));
  }

  #unsigned(size: number): bigint {
    return BigInt(hexOf(this.#take(size).toReversed()));
  }

  #float(size: number): string {
    const bytes = this.#take(size);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    return String(size === 4 ? view.getFloat32(0, true) : view.getFloat64(0, true));
  }

  #string(): PolicyValue {
    try {
      return agreedText(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(this.#take(this.#count())));
    } catch {
      throw new Malformed('the arguments of the instruction do not decode');
    }
  }

  #take(length: number): Uint8Array {
    if (length > this.#data.length - this.#position)
      throw new Malformed('the arguments of the instruction do not decode');
    this.#position += length;
    return this.#data.subarray(this.#position - length, this.#position);
  }
}

const PRIMITIVES: Readonly<Record<string, BorshType>> = {
  bool: { kind: 'bool' },
  string: { kind: 'string' },
  bytes: { kind: 'bytes' },
  publicKey: { kind: 'publicKey' },
  pubkey: { kind: 'publicKey' },
  f32: { kind: 'float', size: 4 },
  f64: { kind: 'float', size: 8 },
  ...Object.fromEntries(
    [8, 16, 32, 64, 128, 256].flatMap((bits): [string, BorshType][] => [
      [`u${bits}`, { kind: 'unsigned', size: bits / 8 }],
      [`i${bits}`, { kind: 'signed', size: bits / 8 }],
    ]),
  ),
};

/** What the generic parameters of a type stand for: types, and lengths of arrays. */
type Generics = ReadonlyMap<string, BorshType | number>;
const NO_GENERICS: Generics = new Map();

/**
 * An IDL of Anchor, before 0.30 (`isMut`, `publicKey`, no discriminators) or since. Types are read where an instruction
 * uses them; those of accounts and events only need not be known here.
 */
class IdlReader {
  readonly #idl: unknown;
  readonly #definitions = new Map<string, Readonly<Record<string, unknown>>>();
  /** By name and generic arguments: a type used in many places is one object, so that the whole is no larger than the IDL. */
  readonly #types = new Map<string, BorshType>();
  readonly #beingRead = new Set<string>();
  readonly #typeIds = new Map<BorshType, number>();
  readonly #size: InterfaceSize;

  constructor(idl: unknown, size: InterfaceSize) {
    this.#idl = idl;
    this.#size = size;
  }

  read(): SolanaInterface {
    const idl = this.#idl;
    if (!isObject(idl)) throw bad('is no object; send an Anchor IDL');
    const { instructions, types = [], metadata } = idl;
    if (!Array.isArray(instructions)) throw bad(`instructions is ${quoted(instructions)}; send a list`);
    if (!Array.isArray(types)) throw bad(`types is ${quoted(types)}; send a list`);
    checkCount(instructions.length, 'instructions');
    types.forEach((definition: unknown, at) => this.#define(definition, `types[${at}]`));
    const programId = idl.address ?? (isObject(metadata) ? metadata.address : undefined);
    const read = instructions.map((instruction: unknown, at) => this.#instruction(instruction, `instructions[${at}]`));
    const said = new Map<string, SolanaInstruction>();
    for (const instruction of read) {
      const other = said.get(instruction.discriminatorHex);
      if (other !== undefined) {
        const names = `${quoted(other.name)} and ${quoted(instruction.name)}`;
        throw bad(`instructions ${names} have the same discriminator; leave one out`);
      }
      said.set(instruction.discriminatorHex, instruction);
    }
    const open = new Map<string, SolanaInstruction>();
    for (const instruction of read) {
      for (const other of instruction.otherDiscriminators) if (!open.has(other)) open.set(other, instruction);
    }
    return {
      ...(typeof programId === 'string' && { programId }),
      instructions: read,
      beginnings: [beginningsOf(said), beginningsOf(open)],
    };
  }

  #define(definition: unknown, place: string): void {
    if (!isObject(definition) || typeof definition.name !== 'string' || !isObject(definition.type)) {
      throw bad(`${place} is ${quoted(definition)}; send { name, type }`);
    }
    this.#size.part();
    checkName(definition.name, `${place}.name`);
    if (this.#definitions.has(definition.name)) throw bad(`${place}.name ${quoted(definition.name)} is taken`);
    this.#definitions.set(definition.name, definition);
  }

  #instruction(instruction: unknown, place: string): SolanaInstruction {
    if (!isObject(instruction)) throw bad(`${place} is ${quoted(instruction)}; send { name, accounts, args }`);
    const { name, discriminator, accounts, args } = instruction;
    if (typeof name !== 'string' || name === '') throw bad(`${place}.name is ${quoted(name)}; send a name`);
    checkName(name, `${place}.name`);
    takeSha256(this.#size.steps, 2 * MAX_NAME_LENGTH);
    const [discriminatorHex, ...otherDiscriminators] = readDiscriminators(
      discriminator,
      name,
      `${place}.discriminator`,
    );
    return {
      name,
      discriminatorHex,
      otherDiscriminators,
      accounts: readAccounts(accounts ?? [], '', `${place}.accounts`, 0, this.#size),
      args: this.#namedFields(args ?? [], `${place}.args`, NO_GENERICS, 0),
    };
  }

  #namedFields(fields: unknown, place: string, generics: Generics, depth: number): readonly BorshField[] {
    if (!Array.isArray(fields)) throw bad(`${place} is ${quoted(fields)}; send a list of { name, type }`);
    const names = new Set<string>();
    return fields.map((field: unknown, at): BorshField => {
      const inner = `${place}[${at}]`;
      this.#size.part();
      if (!isObject(field) || typeof field.name !== 'string') {
        throw bad(`${inner} is ${quoted(field)}; send { name, type }`);
      }
      checkName(field.name, `${inner}.name`);
      if (names.has(field.name)) throw bad(`${inner}.name ${quoted(field.name)} is taken by another field`);
      names.add(field.name);
      return { name: field.name, type: this.#type(field.type, `${inner}.type`, generics, depth + 1) };
    });
  }

  /** The fields of a struct or of a variant: named ones, types only, or none. */
  #fields(fields: unknown, place: string, generics: Generics, depth: number): BorshFields {
    if (fields === undefined || fields === null) return [];
    if (!Array.isArray(fields)) throw bad(`${place} is ${quoted(fields)}; send a list`);
    const isNamed = fields.every((field: unknown) => isObject(field) && typeof field.name === 'string');
    if (isNamed) return this.#namedFields(fields, place, generics, depth);
    return {
      tuple: fields.map((type: unknown, at) => {
        this.#size.part();
        return this.#type(type, `${place}[${at}]`, generics, depth + 1);
      }),
    };
  }

  #type(type: unknown, place: string, generics: Generics, depth: number): BorshType {
    if (depth > MAX_NESTING) throw bad(`${place} is nested deeper than ${MAX_NESTING} levels`);
    if (typeof type === 'string' && Object.hasOwn(PRIMITIVES, type)) return PRIMITIVES[type]!;
    const [kind, ...others] = isObject(type) ? Object.keys(type) : [];
    if (isObject(type) && kind !== undefined && others.length === 0) {
      const content = type[kind];
      switch (kind) {
        case 'vec':
        case 'option':
          return this.#made(kind, this.#type(content, `${place}.${kind}`, generics, depth + 1));
        case 'array':
          return this.#array(content, `${place}.array`, generics, depth);
        case 'defined':
          return this.#defined(content, `${place}.defined`, generics, depth);
        case 'generic': {
          const meant = typeof content === 'string' ? generics.get(content) : undefined;
          if (meant !== undefined && typeof meant !== 'number') return meant;
        }
      }
    }
    throw bad(`${place} is ${quoted(type)}, which is no type of an Anchor IDL`);
  }

  #array(content: unknown, place: string, generics: Generics, depth: number): BorshType {
    const [of, size, ...rest] = Array.isArray(content) ? (content as unknown[]) : [];
    const length = isObject(size) && typeof size.generic === 'string' ? generics.get(size.generic) : size;
    if (typeof length !== 'number' || !Number.isSafeInteger(length) || length < 0 || rest.length > 0) {
      throw bad(`${place} is ${quoted(content)}; send [type, length]`);
    }
    return this.#made('array', this.#type(of, place, generics, depth + 1), length);
  }

  /** The same types make the same type: instances of generic types are told apart by what they are made of. */
  #made(kind: 'option' | 'vec', of: BorshType): BorshType;
  #made(kind: 'array', of: BorshType, length: number): BorshType;
  #made(kind: 'option' | 'vec' | 'array', of: BorshType, length = 0): BorshType {
    const key = JSON.stringify([kind, this.#idOf(of), length]);
    const known = this.#types.get(key);
    if (known !== undefined) return known;
    this.#size.type();
    const made: BorshType = kind === 'array' ? { kind, of, length } : { kind, of };
    this.#types.set(key, made);
    return made;
  }

  #defined(content: unknown, place: string, generics: Generics, depth: number): BorshType {
    const name = isObject(content) ? content.name : content;
    const definition = typeof name === 'string' ? this.#definitions.get(name) : undefined;
    if (typeof name !== 'string' || definition === undefined || !isObject(definition.type)) {
      throw bad(`${place} is ${quoted(content)}, which is not in types`);
    }
    const given = isObject(content) ? (content.generics ?? []) : [];
    const bound = this.#bind(definition.generics ?? [], given, place, generics, depth);
    const key = JSON.stringify(['defined', name, ...[...bound.values()].map((value) => this.#idOf(value))]);
    const known = this.#types.get(key);
    if (known !== undefined) return known;
    // Such a type could be nested without end, and no limit would be the right one for it.
    if (this.#beingRead.has(name)) throw bad(`${place} is ${quoted(name)}, which contains itself`);
    this.#size.type();
    this.#beingRead.add(name);
    const type = this.#definition(definition.type, `type ${name}`, bound, depth);
    this.#beingRead.delete(name);
    this.#types.set(key, type);
    return type;
  }

  #bind(declared: unknown, given: unknown, place: string, generics: Generics, depth: number): Generics {
    if (!Array.isArray(declared) || !Array.isArray(given) || declared.length !== given.length) {
      throw bad(`${place} has generic arguments ${quoted(given)} for the parameters ${quoted(declared)}`);
    }
    return new Map(
      declared.map((parameter: unknown, at): [string, BorshType | number] => {
        const argument: unknown = given[at];
        this.#size.part();
        if (!isObject(parameter) || typeof parameter.name !== 'string' || !isObject(argument)) {
          throw bad(`${place} has the generic argument ${quoted(argument)}; send { kind, type } or { kind, value }`);
        }
        if (parameter.kind === 'const') return [parameter.name, Number(argument.value)];
        return [parameter.name, this.#type(argument.type, `${place}.generics[${at}]`, generics, depth + 1)];
      }),
    );
  }

  #definition(
    definition: Readonly<Record<string, unknown>>,
    place: string,
    generics: Generics,
    depth: number,
  ): BorshType {
    switch (definition.kind) {
      case 'struct':
        return { kind: 'struct', fields: this.#fields(definition.fields, `${place}.fields`, generics, depth) };
      case 'enum':
        return { kind: 'enum', variants: this.#variants(definition.variants, `${place}.variants`, generics, depth) };
      case 'type':
        return this.#type(definition.alias, `${place}.alias`, generics, depth + 1);
      case 'alias':
        return this.#type(definition.value, `${place}.value`, generics, depth + 1);
      default:
        throw bad(`${place} has the kind ${quoted(definition.kind)}; send struct, enum or type`);
    }
  }

  #variants(
    variants: unknown,
    place: string,
    generics: Generics,
    depth: number,
  ): { readonly name: string; readonly fields: BorshFields }[] {
    if (!Array.isArray(variants)) throw bad(`${place} is ${quoted(variants)}; send a list`);
    return variants.map((variant: unknown, at) => {
      const inner = `${place}[${at}]`;
      this.#size.part();
      if (!isObject(variant) || typeof variant.name !== 'string') {
        throw bad(`${inner} is ${quoted(variant)}; send { name, fields }`);
      }
      checkName(variant.name, `${inner}.name`);
      return { name: variant.name, fields: this.#fields(variant.fields, `${inner}.fields`, generics, depth) };
    });
  }

  #idOf(value: BorshType | number): string {
    if (typeof value === 'number') return String(value);
    const id = this.#typeIds.get(value) ?? this.#typeIds.size;
    this.#typeIds.set(value, id);
    return `#${id}`;
  }
}

/**
 * Given, or Anchor's own: the first 8 bytes of SHA-256 of `global:` and the function's name in Rust. An old IDL has that
 * in camel case, where nobody can see any more whether an underscore stood before a digit.
 */
function readDiscriminators(discriminator: unknown, name: string, place: string): readonly [string, ...string[]] {
  if (discriminator === undefined || discriminator === null) {
    const snakeCase = name.replace(/[A-Z]/g, (letter, at: number) => `${at === 0 ? '' : '_'}${letter.toLowerCase()}`);
    return [anchorDiscriminator(snakeCase), ...otherSpellings(snakeCase).map(anchorDiscriminator)];
  }
  const isByte = (byte: unknown): byte is number => Number.isInteger(byte) && Number(byte) >= 0 && Number(byte) < 256;
  if (!Array.isArray(discriminator) || discriminator.length === 0 || !discriminator.every(isByte)) {
    throw bad(`${place} is ${quoted(discriminator)}; send a list of bytes`);
  }
  return [bytesToHex(Uint8Array.from(discriminator))];
}

function anchorDiscriminator(snakeCase: string): string {
  return bytesToHex(sha256(utf8ToBytes(`global:${snakeCase}`)).subarray(0, DISCRIMINATOR_LENGTH));
}

/** The name with an underscore before some of its digits. Of a name with more digits, none is tried. */
function otherSpellings(snakeCase: string): readonly string[] {
  const pieces = snakeCase.split(/(?<=[^_])(?=\d)/);
  if (pieces.length > 1 + MAX_DIGITS) return [];
  const [first = '', ...rest] = pieces;
  const spellings = rest.reduce<readonly string[]>(
    (begun, piece) => begun.flatMap((text) => [text + piece, `${text}_${piece}`]),
    [first],
  );
  return spellings.filter((spelling) => spelling !== snakeCase);
}

function beginningsOf(instructions: ReadonlyMap<string, SolanaInstruction>): Beginnings {
  const lengths = [...new Set([...instructions.keys()].map(({ length }) => length))].sort((a, b) => b - a);
  return { instructions, lengths };
}

function readAccounts(
  accounts: unknown,
  group: string,
  place: string,
  depth: number,
  size: InterfaceSize,
): readonly string[] {
  if (depth > MAX_NESTING) throw bad(`${place} is nested deeper than ${MAX_NESTING} levels`);
  if (!Array.isArray(accounts)) throw bad(`${place} is ${quoted(accounts)}; send a list`);
  return accounts.flatMap((account: unknown, at): readonly string[] => {
    const inner = `${place}[${at}]`;
    size.part();
    if (!isObject(account) || typeof account.name !== 'string') {
      throw bad(`${inner} is ${quoted(account)}; send { name }`);
    }
    const name = checkName(`${group}${account.name}`, `${inner}.name, with its group,`);
    if (account.accounts === undefined) return [name];
    return readAccounts(account.accounts, `${name}.`, `${inner}.accounts`, depth + 1, size);
  });
}

function hexOf(bytes: Uint8Array): string {
  return `0x${bytesToHex(bytes)}`;
}

function bad(what: string): Error {
  return invalidField('smartContractInterface', what);
}
