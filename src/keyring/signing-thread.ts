import type { QueuePath } from '../fairness/fair-queue.js';
import { TaskPool } from '../threads/task-pool.js';
import { checkPrivateKey } from './curves.js';
import type * as tasks from './sign-digests.js';
import { checked, type KeyToSignWith, type Signature } from './signing.js';

interface SigningThreadOptions {
  /** Milliseconds until an unresponsive thread is ended. */
  readonly longestMs?: number;
  /** The module of the task, by default that of this build. */
  readonly file?: URL;
}

/** Digests signed before others may have a turn: 10 ms on P-256, 35 ms with BIP-340. */
const digestsATurn = 16;
/** Turns that are at the thread: with fewer, it would wait whenever the main thread is busy. */
const atOnce = 4;
/** They take 140 ms at most; the rest is for starting the thread, on a busy machine. */
const usualLongestMs = 30_000;
/** Turns in progress or waiting; so many take ten seconds on P-256. */
const mostWaiting = 1_024;
/** Memory of the thread, in MiB. */
const heapMib = 64;

/**
 * A thread for signatures that are made in JavaScript, which leaves the main one to others (docs/adr/0027). It is a pool of
 * its own: no decoder of what others send shares its memory. Callers take turns.
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
  async signAll(key: KeyToSignWith, digests: readonly Uint8Array[], path: QueuePath): Promise<Signature[]> {
    checkPrivateKey(key.curve, key.privateKey);
    digests.forEach(checked);
    const signatures: Signature[] = [];
    for (let from = 0; from < digests.length; from += digestsATurn) {
      signatures.push(...(await this.#signTurn(key, digests.slice(from, from + digestsATurn), path)));
    }
    return signatures;
  }

  /** Ends the thread; pending signatures are refused. */
  close(): Promise<void> {
    return this.#pool.close();
  }

  async #signTurn({ privateKey, ...key }: KeyToSignWith, digests: readonly Uint8Array[], path: QueuePath) {
    let shared: Uint8Array | undefined;
    try {
      return await this.#sign(path, () => {
        // Shared, so that there is one copy, which either side can wipe.
        shared = new Uint8Array(new SharedArrayBuffer(32));
        shared.set(privateKey);
        // A copy of their own: of a view, the whole memory behind it would go to the thread.
        return { ...key, privateKey: shared, digests: Uint8Array.from(Buffer.concat(digests)) };
      });
    } finally {
      shared?.fill(0);
    }
  }
}
