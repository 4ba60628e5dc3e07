import { keccak_256 } from '@noble/hashes/sha3.js';
import { utf8ToBytes } from '@noble/hashes/utils.js';
import { isObject, quoted, takeKeccak } from '../refusals.js';
import { bad, checkCount, checkName, MAX_NESTING, type InterfaceSize } from './interface-size.js';
import { hexOf } from './readable.js';

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
export interface AbiParameter {
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
export type AbiType = AbiShape & { readonly isDynamic: boolean; readonly headLength: number };

/** Bytes of a word of the Ethereum Virtual Machine. */
export const WORD_LENGTH = 32;
/** Bytes that say which function is called. */
export const SELECTOR_LENGTH = 4;

const IDENTIFIER = /^[A-Za-z_$][A-Za-z0-9_$]*$/;
const ABI_ENTRIES: ReadonlySet<unknown> = new Set(['function', 'constructor', 'receive', 'fallback', 'event', 'error']);

/** Reads the JSON ABI of a contract. @throws {CoordinatorError} INVALID_ARGUMENT that names the place in it */
export function readAbi(abi: unknown, size: InterfaceSize): EthereumInterface {
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
