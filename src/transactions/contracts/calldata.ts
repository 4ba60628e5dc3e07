import { hexToBytes } from '@noble/hashes/utils.js';
import { unreadable, type PolicyValue, type Unreadable } from '../../domain/policy/types.js';
import type { Steps } from '../../domain/steps.js';
import {
  SELECTOR_LENGTH,
  WORD_LENGTH,
  type AbiParameter,
  type AbiType,
  type EthereumInterface,
} from './ethereum-abi.js';
import { agreedText, hexOf, Malformed, orUnreadable, TOO_LONG } from './readable.js';

/** A call as policies read it. */
export interface DecodedCall {
  readonly name: string;
  readonly selector: string;
  readonly args: Readonly<Record<string, PolicyValue>> | Unreadable;
}

/** Bytes of a call that are read beside twice its length. */
const SPARE_BYTES = 2 ** 20;
/** Beyond any data, and safe to add to. */
const FAR = 2 ** 52;
const WRAP = 2n ** 256n;

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
