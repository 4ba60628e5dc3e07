import { unreadable, type PolicyValue, type Unreadable } from '../../domain/policy/types.js';
import { OutOfSteps } from '../../domain/steps.js';
import { hex } from '../byte-reader.js';

export const TOO_LONG = 'the arguments take too long to read';

/** Each was uploaded to name what policies read, and which of them is right cannot be told. */
export function severalInterfaces(address: string): Unreadable {
  return unreadable(`there are several interfaces of ${address}; delete all but one`);
}

/** Thrown by what reads arguments and caught by `orUnreadable`: what is decoded was written by somebody else. */
export class Malformed extends Error {}

export function orUnreadable<T>(decode: () => T): T | Unreadable {
  try {
    return decode();
  } catch (error) {
    if (error instanceof Malformed) return unreadable(error.message);
    if (error instanceof OutOfSteps) return unreadable(TOO_LONG);
    throw error;
  }
}

/** Libraries leave NULs and byte order marks out, end at them, or show them: viem, for one, at the start of a text. */
export function agreedText(text: string): PolicyValue {
  if (text.includes('\0')) return unreadable('text with a NUL, which not everybody reads');
  if (text.startsWith('\ufeff')) return unreadable('text with a byte order mark, which not everybody reads');
  return text;
}

/** With 0x. */
export function hexOf(bytes: Uint8Array): string {
  return `0x${hex(bytes)}`;
}
