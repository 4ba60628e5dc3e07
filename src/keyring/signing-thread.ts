import type { QueuePath } from '../fairness/fair-queue.js';
import { TaskPool } from '../threads/task-pool.js';
import { checkPrivateKey } from './curves.js';
import type * as tasks from './sign-digests.js';
import { checkDigest, p256SignatureText, type Signature } from './signing.js';

interface SigningThreadOptions {
  /** Milliseconds until an unresponsive thread is ended. */
  readonly longestMs?: number;
  /** The module of the task, by default that of this build. */
  readonly file?: URL;
}

/** Digests signed before others may have a turn: 1.4 ms; the more of them share an inversion, the cheaper is each. */
const digestsATurn = 64;
/** Turns that are at the thread: with fewer, it would wait whenever the main thread is busy. */
const atOnce = 4;
/** They take 6 ms; the rest is for starting the thread, on a busy machine. */
const usualLongestMs = 30_000;
/** Turns in progress or waiting; so many take six seconds. */
const mostWaiting = 4_096;
/** Memory of the thread, in MiB. */
const heapMib = 64;

/**
 * A thread that signs several digests on P-256, which leaves the main one to others (docs/adr/0027). It is a pool of its own: no
 * decoder of what others send shares its memory. Whoever asks takes turns.
 */
export class SigningThread {
  readonly #pool: TaskPool<typeof tasks>;
  readonly #sign;

  constructor({
    longestMs = usualLongestMs,
    file = new URL('./sign-digests.js', import.meta.url),
  }: SigningThreadOptions = {}) {
    this.#pool = new TaskPool({ file, heapMib, atOnce });
    const noun = { one: 'the signature', many: 'requests for several signatures' };
    this.#sign = this.#pool.kind('sign', { most: atOnce, mostWaiting, longestMs, noun });
  }

  /**
   * Signs each digest as `signPayload` does. The caller wipes the key, once this is over.
   * @throws {CoordinatorError} INVALID_ARGUMENT for a digest of another length or an invalid key; RESOURCE_EXHAUSTED if too many
   * wait; UNAVAILABLE if the thread was lost
   */
  async signAll(privateKey: Uint8Array, digests: readonly Uint8Array[], path: QueuePath): Promise<Signature[]> {
    checkPrivateKey('CURVE_P256', privateKey);
    digests.forEach(checkDigest);
    const signatures: Signature[] = [];
    for (let from = 0; from < digests.length; from += digestsATurn) {
      const made = await this.#signTurn(privateKey, digests.slice(from, from + digestsATurn), path);
      signatures.push(...made.map(p256SignatureText));
    }
    return signatures;
  }

  /** Ends the thread; pending signatures are refused. */
  close(): Promise<void> {
    return this.#pool.close();
  }

  async #signTurn(privateKey: Uint8Array, digests: readonly Uint8Array[], path: QueuePath) {
    let key: Uint8Array | undefined;
    try {
      return await this.#sign(path, () => {
        // Shared, so that there is one copy, which either side can wipe.
        key = new Uint8Array(new SharedArrayBuffer(32));
        key.set(privateKey);
        // A copy of their own: of a view, the whole memory behind it would go to the thread.
        return { key, digests: Uint8Array.from(Buffer.concat(digests)) };
      });
    } finally {
      key?.fill(0);
    }
  }
}
