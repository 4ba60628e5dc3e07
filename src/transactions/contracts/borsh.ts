import { base58 } from '@scure/base';
import type { PolicyValue, Unreadable } from '../../domain/policy/types.js';
import type { Steps } from '../../domain/steps.js';
import type { SolanaInterface } from './anchor-idl.js';
import type { BorshField, BorshFields, BorshType } from './anchor-types.js';
import { agreedText, hexOf, Malformed, orUnreadable, TOO_LONG } from './readable.js';
import { hex } from '../byte-reader.js';

/** An instruction as policies read it, with the names of its accounts in their order. `discriminator` has no 0x. */
export interface SolanaCall {
  readonly instructionName: string;
  readonly discriminator: string;
  readonly accountNames: readonly string[];
  readonly programCallArgs: Readonly<Record<string, PolicyValue>> | Unreadable;
}

/** What the index of an account can tell apart, and it is a byte. */
const MAX_ACCOUNTS = 256;
/** In all instructions of a transaction together: the chain itself allows 1 232 bytes. */
const MAX_BORSH_VALUES = 16_384;
const MAX_BORSH_DEPTH = 128;

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
  const found = instructionOf(program, hex(data));
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
        return hex(this.#take(this.#count()));
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
