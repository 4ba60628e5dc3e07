import { parentPort } from 'node:worker_threads';
import { forgetNonce, signAllP256 } from './p256.js';
import type { ToSign } from './signing-thread.js';

/** Signs for `SigningThread`, one list of digests after the other. */

/** Out of shared memory before it is used: a signature with a key that is wiped meanwhile would give the key away. */
const taken = new Uint8Array(32);

parentPort?.on('message', ({ key, digests }: ToSign) => {
  taken.set(key);
  key.fill(0);
  try {
    const each = Array.from({ length: digests.length / 32 }, (_, at) => digests.subarray(32 * at, 32 * (at + 1)));
    parentPort?.postMessage(signAllP256(each, taken));
  } finally {
    taken.fill(0);
    forgetNonce();
  }
});
