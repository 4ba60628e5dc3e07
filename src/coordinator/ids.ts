import { hash } from 'node:crypto';
import type { Clock, Randomness } from './ports.js';

/** A UUID version 7 (RFC 9562, 5.7): sorts by time, which lets clients use activity ids as cursors. */
export function uuidV7(clock: Clock, randomness: Randomness): string {
  const bytes = Buffer.alloc(16);
  bytes.writeUIntBE(clock.now(), 0, 6);
  bytes.set(randomness.bytes(10), 6);
  return formatUuid(bytes, 0x70);
}

/**
 * A UUID version 8 (RFC 9562, 5.8) from SHA-256 of its parts. Whatever an activity creates is named by the activity's id
 * and a running number, so that deciding it again names everything alike.
 */
export function derivedId(...parts: readonly string[]): string {
  return formatUuid(hash('sha256', parts.join('\0'), 'buffer'), 0x80);
}

function formatUuid(bytes: Buffer, version: number): string {
  bytes[6] = (bytes[6]! & 0x0f) | version;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = bytes.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20, 32)}`;
}
