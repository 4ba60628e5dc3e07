import { hash } from 'node:crypto';
import type { Clock } from '../ports/clock.js';
import type { Randomness } from '../ports/randomness.js';

/** A UUID version 7 (RFC 9562, 5.7): sorts by time, which lets clients use activity ids as cursors. */
export function uuidV7(clock: Clock, randomness: Randomness): string {
  const bytes = Buffer.alloc(16);
  bytes.writeUIntBE(clock.now(), 0, 6);
  bytes.set(randomness.bytes(10), 6);
  return formatUuid(bytes.toString('hex'), '7');
}

/**
 * A UUID version 8 (RFC 9562, 5.8) from SHA-256 of its parts. Whatever an activity creates gets an id from the
 * activity's id and a running number, so that deciding it again gives the same ids.
 */
export function derivedId(...parts: readonly string[]): string {
  return idFromHash(hash('sha256', parts.join('\0'), 'hex'));
}

/** The same from the SHA-256, in hex, of the parts with zero bytes between them. */
export function idFromHash(hex: string): string {
  return formatUuid(hex, '8');
}

/** Digits whose first two bits are those of the variant (RFC 9562, 4.1). */
const variants = '89ab';

/** From the first 32 digits. Not from bytes: a separate buffer for each name would cost as much as its hash. */
function formatUuid(hex: string, version: string): string {
  const variant = variants[parseInt(hex[16]!, 16) % variants.length]!;
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${version}${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
