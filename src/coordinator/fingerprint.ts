import { createHash } from 'node:crypto';

/** `sha256:` and the lower-case hex of SHA-256 over the request body as it came (client protocol 2.5). */
export function fingerprintOf(body: Uint8Array): string {
  return `sha256:${createHash('sha256').update(body).digest('hex')}`;
}

/** The form of a fingerprint, as votes name their target. */
export const fingerprintPattern = /^sha256:[0-9a-f]{64}$/;
