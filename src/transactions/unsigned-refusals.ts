import { errorMessage } from '../domain/errors.js';

type Shown = bigint | number | boolean | string | object | undefined;

/** A value that the format of a transaction does not have. It is about the value, not about who asks for it to be written. */
export class CannotBeWritten extends Error {
  /** @param why what the field has instead */
  constructor(field: string, value: Shown, why: string, options?: ErrorOptions) {
    super(`${field} cannot be \`${shown(value)}\`: ${why}`, options);
    this.name = 'CannotBeWritten';
  }
}

/** What a library makes of the value of a field. @throws {CannotBeWritten} with the library's reason */
export function byLibrary<Made>(field: string, value: Shown, make: () => Made): Made {
  try {
    return make();
  } catch (cause) {
    const why = errorMessage(cause);
    throw new CannotBeWritten(field, value, why, { cause });
  }
}

/** The bytes of pairs of hex digits after a prefix. @throws {CannotBeWritten} */
export function hexBytes(field: string, text: string, prefix: '0x' | '' = ''): Uint8Array {
  const digits = text.slice(prefix.length);
  if (!text.startsWith(prefix) || !/^(?:[0-9a-f]{2})*$/i.test(digits))
    throw new CannotBeWritten(field, text, `it is ${prefix && `${prefix} and `}pairs of hex digits`);
  return Buffer.from(digits, 'hex');
}

/** The value, if it is an integer from 0 to 2^bits - 1. @throws {CannotBeWritten} */
export function unsigned<Value extends bigint | number>(field: string, value: Value, bits: number): Value {
  if (value < 0 || value >= 2n ** BigInt(bits)) throw new CannotBeWritten(field, value, `it has ${bits} bits`);
  return value;
}

const shown = (value: Shown): string =>
  typeof value === 'object'
    ? JSON.stringify(value, (_, one: unknown) => (typeof one === 'bigint' ? String(one) : one))
    : String(value);
