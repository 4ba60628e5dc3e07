import { invalidField, type CoordinatorError } from '../domain/errors.js';
import type { Steps } from '../domain/steps.js';
import { quoted } from './refusals.js';

/**
 * A signature as the keyring returns it: r and s are 64 hex digits each, v is the recovery id `00` or `01` (ECDSA), and
 * r ‖ s is the 64-byte signature of Ed25519 and BIP-340.
 */
export interface TransactionSignature {
  readonly r: string;
  readonly s: string;
  readonly v: string;
}

/** The 64 bytes r ‖ s. */
export function signatureBytes({ r, s }: TransactionSignature): Uint8Array {
  return Uint8Array.from(Buffer.from(r + s, 'hex'));
}

/** The refusal of an `unsignedTransaction`: INVALID_ARGUMENT. */
export function malformed(description: string): CoordinatorError {
  return invalidField('unsignedTransaction', description);
}

/**
 * The bytes of an `unsignedTransaction`: hex in either case, with or without 0x. Throws INVALID_ARGUMENT naming the
 * place.
 */
export function unsignedTransactionBytes(text: string, steps: Steps): Uint8Array {
  steps.take('byteRead', text.length);
  const digits = /^0x/i.test(text) ? text.slice(2) : text;
  const at = digits.search(/[^0-9a-fA-F]/);
  if (at !== -1) throw malformed(`expected hex, but digit ${at + 1} is ${quoted(digits.charAt(at))}`);
  if (digits === '') throw malformed('the transaction is empty');
  if (digits.length % 2 !== 0) throw malformed(`expected two hex digits for each byte, got ${digits.length} digits`);
  return Uint8Array.from(Buffer.from(digits, 'hex'));
}

/** Lower-case hex, by Node.js: a loop over a long transaction leaves a tree of strings, with a node for each byte. */
export function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex');
}

/** Reads bytes from first to last. Every method throws INVALID_ARGUMENT that says what was expected at which byte. */
export class ByteReader {
  position = 0;

  constructor(private readonly bytes: Uint8Array) {}

  get isAtEnd(): boolean {
    return this.position === this.bytes.length;
  }

  peek(what: string): number {
    const byte = this.bytes[this.position];
    if (byte === undefined) throw malformed(`it ends at byte ${this.position}, where ${what} was expected`);
    return byte;
  }

  byte(what: string): number {
    const byte = this.peek(what);
    this.position += 1;
    return byte;
  }

  take(length: number, what: string): Uint8Array {
    const left = this.bytes.length - this.position;
    if (length > left) throw tooShort(what, this.position, length, left);
    this.position += length;
    return this.bytes.slice(this.position - length, this.position);
  }

  /** Like `take`, without a copy. */
  view(length: number, what: string): Uint8Array {
    const left = this.bytes.length - this.position;
    if (length > left) throw tooShort(what, this.position, length, left);
    this.position += length;
    return this.bytes.subarray(this.position - length, this.position);
  }

  pass(length: number, what: string): void {
    this.view(length, what);
  }

  end(what: string): void {
    const left = this.bytes.length - this.position;
    if (left > 0) throw malformed(`${left} bytes follow the end of ${what} at byte ${this.position}`);
  }
}

function tooShort(what: string, position: number, length: number, left: number): CoordinatorError {
  return malformed(`${what} at byte ${position} should be ${length} bytes long, but only ${left} are left`);
}
