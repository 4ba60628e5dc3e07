import { Worker } from 'node:worker_threads';
import type { CoordinatorError } from '../domain/errors.js';
import { FairQueue, type QueuePath } from '../fairness/fair-queue.js';
import { shuttingDown, unavailable } from '../threads/unavailable.js';
import { checkPrivateKey } from './curves.js';
import type { P256Signature } from './p256.js';
import { checkDigest, p256SignatureText, type Signature } from './signing.js';

/** A message to the thread: a key in shared memory, which the thread takes and wipes, and digests one after the other. */
export interface ToSign {
  readonly key: Uint8Array;
  readonly digests: Uint8Array;
}

interface Waiting {
  readonly privateKey: Uint8Array;
  readonly digests: Uint8Array;
  readonly resolve: (signatures: readonly P256Signature[]) => void;
  readonly reject: (error: CoordinatorError) => void;
}

interface Sent extends Waiting {
  readonly key: Uint8Array;
  readonly timer: NodeJS.Timeout;
}

interface SigningThreadOptions {
  /** Milliseconds until an unresponsive thread is ended. */
  readonly longestMs?: number;
  /** The worker's file, by default that of this build. */
  readonly file?: URL;
}

/** Digests signed before others may have a turn: 1.4 ms; the more of them share an inversion, the cheaper is each. */
const digestsATurn = 64;
/** Turns that are at the thread: with fewer, it would wait whenever the main thread is busy. */
const mostSent = 4;
/** They take 6 ms; the rest is for starting the thread, on a busy machine. */
const usualLongestMs = 30_000;
/** Memory of the thread, in MiB. */
const heapMib = 64;

/**
 * A thread that signs several digests on P-256, which leaves the main one to others. Whoever asks takes turns. The
 * thread is started when it is first needed, and replaced when it dies or stops responding (docs/adr/0126).
 */
export class SigningThread {
  readonly #waiting = new FairQueue<Waiting>();
  readonly #sent: Sent[] = [];
  readonly #longestMs: number;
  readonly #file: URL;
  #thread: Worker | undefined;
  #isClosed = false;

  constructor({
    longestMs = usualLongestMs,
    file = new URL('./signing-worker.js', import.meta.url),
  }: SigningThreadOptions = {}) {
    this.#longestMs = longestMs;
    this.#file = file;
  }

  /**
   * Signs each digest as `signPayload` does. The caller wipes the key, once this is over.
   * @throws {CoordinatorError} INVALID_ARGUMENT for a digest of another length or an invalid key; UNAVAILABLE if the thread was lost
   */
  async signAll(privateKey: Uint8Array, digests: readonly Uint8Array[], path: QueuePath): Promise<Signature[]> {
    checkPrivateKey('CURVE_P256', privateKey);
    digests.forEach(checkDigest);
    const signatures: Signature[] = [];
    for (let from = 0; from < digests.length; from += digestsATurn) {
      const made = await this.#sign(privateKey, digests.slice(from, from + digestsATurn), path);
      signatures.push(...made.map(p256SignatureText));
    }
    return signatures;
  }

  /** Ends the thread; pending signatures are refused. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const thread = this.#thread;
    this.#lose(thread, shuttingDown);
    for (let one = this.#waiting.shift(); one; one = this.#waiting.shift()) one.reject(unavailable(shuttingDown));
    await thread?.terminate();
  }

  #sign(privateKey: Uint8Array, digests: readonly Uint8Array[], path: QueuePath): Promise<readonly P256Signature[]> {
    if (this.#isClosed) return Promise.reject(unavailable(shuttingDown));
    // A copy of its own: of a view, the whole memory behind it would go to the thread.
    const together = new Uint8Array(32 * digests.length);
    digests.forEach((digest, at) => together.set(digest, 32 * at));
    return new Promise((resolve, reject) => {
      this.#waiting.push(path, { privateKey, digests: together, resolve, reject });
      this.#send();
    });
  }

  #send(): void {
    while (!this.#isClosed && this.#sent.length < mostSent) {
      const next = this.#waiting.shift();
      if (!next) return;
      const thread = (this.#thread ??= this.#newThread());
      // Shared, so that there is one copy, which either side can wipe.
      const key = new Uint8Array(new SharedArrayBuffer(32));
      key.set(next.privateKey);
      const late = () => this.#lose(thread, `it was not signed within ${this.#longestMs / 1_000} s`);
      this.#sent.push({ ...next, key, timer: setTimeout(late, this.#longestMs).unref() });
      thread.postMessage({ key, digests: next.digests } satisfies ToSign);
    }
  }

  #newThread(): Worker {
    const resourceLimits = { maxOldGenerationSizeMb: heapMib };
    const thread = new Worker(this.#file, { name: 'signing', execArgv: [], resourceLimits });
    thread.on('message', (signatures: readonly P256Signature[]) => {
      if (thread !== this.#thread) return;
      const sent = this.#sent.shift();
      if (sent) end(sent).resolve(signatures);
      this.#send();
    });
    // The error is nobody's to read: it may be about the key.
    thread.on('error', () => this.#lose(thread, 'the thread that signs failed'));
    thread.once('exit', () => this.#lose(thread, 'the thread that signs ended'));
    // After the listeners: one for messages keeps the process alive.
    thread.unref();
    return thread;
  }

  /** Refuses what was sent; what a lost thread still returns is ignored. */
  #lose(thread: Worker | undefined, why: string): void {
    if (thread === undefined || thread !== this.#thread) return;
    this.#thread = undefined;
    void thread.terminate();
    for (const sent of this.#sent.splice(0)) end(sent).reject(unavailable(why));
    this.#send();
  }
}

function end(sent: Sent): Sent {
  clearTimeout(sent.timer);
  sent.key.fill(0);
  return sent;
}
