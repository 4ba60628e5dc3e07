import { hash } from 'node:crypto';

/** `sha256:` and the lower-case hex of SHA-256 over the request body as received (client protocol 2.5). */
export function fingerprintOf(body: Uint8Array): string {
  return `sha256:${hash('sha256', body, 'hex')}`;
}
