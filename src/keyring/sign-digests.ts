import type { Outcome } from '../threads/task.js';
import { forgetNonce, signAllP256, type P256Signature } from './p256.js';

/** A key in shared memory, which the thread takes and wipes, and digests one after the other. */
export interface ToSign {
  readonly key: Uint8Array;
  readonly digests: Uint8Array;
}

/** Out of shared memory before it is used: a signature with a key that is wiped meanwhile would give the key away. */
const taken = new Uint8Array(32);

/** The task of `SigningThread`. */
export function sign({ key, digests }: ToSign): Promise<Outcome<readonly P256Signature[]>> {
  taken.set(key);
  key.fill(0);
  try {
    const each = Array.from({ length: digests.length / 32 }, (_, at) => digests.subarray(32 * at, 32 * (at + 1)));
    return Promise.resolve({ value: signAllP256(each, taken) });
  } catch {
    // An error may be about the key: it stays here.
    throw new Error('the digests were not signed');
  } finally {
    taken.fill(0);
    forgetNonce();
  }
}
