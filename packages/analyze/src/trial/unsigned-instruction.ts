import { base58 } from '@scure/base';
import { sha256 } from '@noble/hashes/sha2.js';
import { utf8ToBytes } from '@noble/hashes/utils.js';
import { CannotBeWritten } from 'countersign/internal';

/** A value of an argument: 32 bytes in base58 are a public key, a struct has its fields by name. */
export type InstructionValue =
  bigint | boolean | string | readonly InstructionValue[] | { readonly [name: string]: InstructionValue };

/** A type as an Anchor IDL has it. */
type IdlType = string | { readonly vec: IdlType } | { readonly defined: { readonly name: string } };

/** An argument of an instruction, or a field of a struct. */
export interface IdlField {
  readonly name: string;
  readonly type: IdlType;
}

interface Written {
  readonly type: IdlType;
  readonly bytes: Uint8Array;
}

const keyLength = 32;
const discriminatorLength = 8;

/** What the data of an instruction begins with as Anchor has it: the first 8 bytes of a hash of its name, which is in snake case. */
export function discriminatorOf(name: string): Uint8Array {
  return sha256(utf8ToBytes(`global:${name}`)).subarray(0, discriminatorLength);
}

/** Writes values in Borsh, and collects the structs among their types. */
export class BorshWriter {
  /** Names, by the JSON of the fields. */
  private readonly structs = new Map<string, string>();

  /** `types` of an IDL. */
  get types(): readonly object[] {
    return Array.from(this.structs, ([fields, name]) => ({
      name,
      type: { kind: 'struct', fields: JSON.parse(fields) as unknown },
    }));
  }

  /** Values one after another, as fields of the narrowest type. @throws {CannotBeWritten} for a value that no type has */
  fields(values: Readonly<Record<string, InstructionValue>>): {
    readonly fields: readonly IdlField[];
    readonly bytes: Uint8Array;
  } {
    const written = Object.entries(values).map(([name, value]) => ({ name, ...this.written(name, value) }));
    return {
      fields: written.map(({ name, type }) => ({ name, type })),
      bytes: Buffer.concat(written.map(({ bytes }) => bytes)),
    };
  }

  private written(name: string, value: InstructionValue): Written {
    if (typeof value === 'boolean') return { type: 'bool', bytes: Uint8Array.of(value ? 1 : 0) };
    if (typeof value === 'bigint') return integer(name, value);
    if (typeof value === 'string') return text(value);
    if (isList(value)) {
      const elements = value.map((one) => this.written(name, one));
      const [type = 'string', ...others] = elements.map((one) => one.type);
      if (others.some((other) => JSON.stringify(other) !== JSON.stringify(type)))
        throw new CannotBeWritten(`the argument \`${name}\``, value, 'no list has elements as different as these');
      return {
        type: { vec: type },
        bytes: Buffer.concat([length(value.length), ...elements.map(({ bytes }) => bytes)]),
      };
    }
    const { fields, bytes } = this.fields(value);
    const key = JSON.stringify(fields);
    const struct = this.structs.get(key) ?? `Part${this.structs.size}`;
    this.structs.set(key, struct);
    return { type: { defined: { name: struct } }, bytes };
  }
}

function integer(name: string, value: bigint): Written {
  const isSigned = value < 0n;
  const bits = [64, 128, 256].find(
    (width) => (isSigned ? BigInt.asIntN(width, value) : BigInt.asUintN(width, value)) === value,
  );
  if (bits === undefined) throw new CannotBeWritten(`the argument \`${name}\``, value, 'it has 256 bits at most');
  const digits = BigInt.asUintN(bits, value)
    .toString(16)
    .padStart(bits / 4, '0');
  return { type: `${isSigned ? 'i' : 'u'}${bits}`, bytes: Buffer.from(digits, 'hex').reverse() };
}

function text(value: string): Written {
  const key = keyIn(value);
  if (key !== undefined) return { type: 'pubkey', bytes: key };
  const content = utf8ToBytes(value);
  return { type: 'string', bytes: Buffer.concat([length(content.length), content]) };
}

function keyIn(value: string): Uint8Array | undefined {
  try {
    const bytes = base58.decode(value);
    return bytes.length === keyLength ? bytes : undefined;
  } catch {
    return undefined;
  }
}

function length(count: number): Uint8Array {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(count);
  return bytes;
}

const isList = (value: InstructionValue): value is readonly InstructionValue[] => Array.isArray(value);
