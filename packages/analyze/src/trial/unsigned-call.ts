import { keccak_256 } from '@noble/hashes/sha3.js';
import { utf8ToBytes } from '@noble/hashes/utils.js';
import { CannotBeWritten, hexBytes } from 'countersign/internal';

/** A parameter as a JSON ABI has it; `components` are those of a tuple. */
export interface CallParameter {
  readonly name: string;
  readonly type: string;
  readonly components?: readonly CallParameter[];
}

/** A value of an argument: addresses and bytes are `0x…`, a tuple has its members by name. What is missing is zero, or empty. */
export type CallValue = bigint | boolean | string | readonly CallValue[] | { readonly [name: string]: CallValue };

interface Encoded {
  readonly isDynamic: boolean;
  readonly bytes: Uint8Array;
}

const wordLength = 32;
const selectorLength = 4;

/** The first four bytes of the hash of a signature such as `transfer(address,uint256)`: 0x and 8 digits. */
export function selectorOf(signature: string): string {
  return `0x${Buffer.from(keccak_256(utf8ToBytes(signature)).subarray(0, selectorLength)).toString('hex')}`;
}

/** Of a function, as its selector hashes it. */
export function signatureOf(name: string, inputs: readonly CallParameter[]): string {
  return `${name}${canonical(inputs)}`;
}

/**
 * The data of a call, `0x…` (Contract ABI specification). Types are integers, bool, address, string, bytes, bytes32, tuples, and lists
 * of these without a length.
 * @throws {CannotBeWritten} for a value that is not of its type
 */
export function callData(name: string, inputs: readonly CallParameter[], values: readonly (CallValue | undefined)[]) {
  const { bytes } = together(inputs.map((input, at) => encoded(input, input.type, values[at])));
  return `${selectorOf(signatureOf(name, inputs))}${Buffer.from(bytes).toString('hex')}`;
}

/** The type of a parameter, as a signature has it. */
export function typeOf({ type, components }: CallParameter): string {
  return components === undefined ? type : `${canonical(components)}${type.slice('tuple'.length)}`;
}

function canonical(inputs: readonly CallParameter[]): string {
  return `(${inputs.map(typeOf).join(',')})`;
}

function encoded(parameter: CallParameter, type: string, value: CallValue | undefined): Encoded {
  if (type.endsWith('[]')) {
    const list = isList(value) ? value : [];
    const { bytes } = together(list.map((one) => encoded(parameter, type.slice(0, -2), one)));
    if (value === undefined || isList(value))
      return { isDynamic: true, bytes: Buffer.concat([word(BigInt(list.length)), bytes]) };
  } else if (type === 'tuple' && (value === undefined || (typeof value === 'object' && !isList(value)))) {
    return together((parameter.components ?? []).map((one) => encoded(one, one.type, value?.[one.name])));
  } else if ((type === 'string' || type === 'bytes') && (value === undefined || typeof value === 'string')) {
    const content = type === 'bytes' ? hexBytes(parameter.name, value ?? '0x', '0x') : utf8ToBytes(value ?? '');
    const padding = new Uint8Array((wordLength - (content.length % wordLength)) % wordLength);
    return { isDynamic: true, bytes: Buffer.concat([word(BigInt(content.length)), content, padding]) };
  } else {
    const number = numberOf(type, value);
    if (number !== undefined) return { isDynamic: false, bytes: word(number) };
  }
  throw new CannotBeWritten(`the argument \`${parameter.name}\``, value, `it is of the type ${type}`);
}

function numberOf(type: string, value: CallValue | undefined): bigint | undefined {
  const [, kind, bits] = /^(uint|int)(\d+)$/.exec(type) ?? [];
  if (kind !== undefined) {
    const requested = value ?? 0n;
    const within = kind === 'int' ? BigInt.asIntN : BigInt.asUintN;
    return typeof requested === 'bigint' && within(Number(bits), requested) === requested ? requested : undefined;
  }
  if (type === 'bool' && (value === undefined || typeof value === 'boolean')) return value === true ? 1n : 0n;
  const digits = { address: 40, bytes32: 64 }[type];
  if (digits === undefined) return undefined;
  if (value === undefined) return 0n;
  return typeof value === 'string' && new RegExp(`^0x[0-9a-f]{${digits}}$`, 'i').test(value)
    ? BigInt(value)
    : undefined;
}

/** Values one after another: what is of no certain length comes behind all of them, and its place is said. */
function together(parts: readonly Encoded[]): Encoded {
  const headOf = ({ isDynamic, bytes }: Encoded): number => (isDynamic ? wordLength : bytes.length);
  let place = parts.reduce((sum, part) => sum + headOf(part), 0);
  const heads = parts.map(({ isDynamic, bytes }) => {
    if (!isDynamic) return bytes;
    const head = word(BigInt(place));
    place += bytes.length;
    return head;
  });
  const tails = parts.filter(({ isDynamic }) => isDynamic).map(({ bytes }) => bytes);
  return { isDynamic: tails.length > 0, bytes: Buffer.concat([...heads, ...tails]) };
}

function word(value: bigint): Uint8Array {
  return Buffer.from(
    BigInt.asUintN(256, value)
      .toString(16)
      .padStart(2 * wordLength, '0'),
    'hex',
  );
}

const isList = (value: CallValue | undefined): value is readonly CallValue[] => Array.isArray(value);
