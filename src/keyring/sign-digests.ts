import type { Outcome } from '../threads/task.js';
import { payloadSigner, type KeyToSignWith, type Signature } from './signing.js';

/** A key, its bytes in shared memory, which the thread takes and wipes, and digests one after the other. */
export interface ToSign extends KeyToSignWith {
  readonly digests: Uint8Array;
}

/** Out of shared memory before it is used: a signature with a key that is wiped meanwhile would give the key away. */
const taken = new Uint8Array(32);

/** The task of `SigningThread`. */
export function sign({ privateKey, digests, ...key }: ToSign): Promise<Outcome<readonly Signature[]>> {
  taken.set(privateKey);
  privateKey.fill(0);
  try {
    const signer = payloadSigner({ ...key, privateKey: taken });
    try {
      const each = Array.from({ length: digests.length / 32 }, (_, at) => digests.subarray(32 * at, 32 * (at + 1)));
      return Promise.resolve({ value: each.map((digest) => signer.sign(digest)) });
    } finally {
      signer.forget();
    }
  } catch {
    // An error may be about the key: it stays here.
    throw new Error('the digests were not signed');
  } finally {
    taken.fill(0);
  }
}
