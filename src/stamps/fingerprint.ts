import { hash } from 'node:crypto';

/** `sha256:` and the lower-case hex of SHA-256 over the signed body (docs/protocol.md, fingerprints). */
export function fingerprintOf(body: string | Uint8Array): string {
  return `sha256:${hash('sha256', body, 'hex')}`;
}
