import type { Worker } from 'node:worker_threads';
import { startThread } from '../threads/start-thread.js';
import { shuttingDown } from '../threads/unavailable.js';
import {
  GuardedFetchError,
  type GuardedFetch,
  type GuardedRequest,
  type GuardedResponse,
  type GuardRule,
} from './guarded-request.js';

/** What the thread is sent: a request to make, a URL only to check, or the id of a request to end. */
export type ToThread =
  | { readonly id: number; readonly url: string; readonly request: ThreadRequest | undefined }
  | { readonly cancelled: number };
type ThreadRequest = Omit<GuardedRequest, 'signal'>;

/** What it returns for each: a response, none for a check, or a failure, whose cause is only named. */
export interface FromThread {
  readonly id: number;
  readonly response?: GuardedResponse;
  readonly failure?: { readonly rule: GuardRule; readonly message: string; readonly code?: string };
}

export interface ThreadData {
  readonly allowPrivateNetwork: boolean;
  readonly trustedCertificates?: string;
}

interface Pending {
  resolve(response: GuardedResponse | undefined): void;
  reject(error: GuardedFetchError): void;
}

interface Options extends ThreadData {
  /** Milliseconds beyond a request's own limit until the thread is taken to be stuck; it is replaced then. */
  readonly graceMs?: number;
  /** The worker's file, by default that of this build. */
  readonly file?: URL;
}

/** Memory of the thread, in MiB, beside what buffers take. */
const heapMib = 128;
/** For starting the thread on a busy machine. */
const usualGraceMs = 15_000;
const defaultTimeoutMs = 5_000;

/**
 * HTTP to hosts that others choose, in a thread of its own: whatever such a host sends, it keeps only that thread busy
 * (docs/adr/0025). The thread is started when it is first needed, and replaced when it dies or stops responding.
 */
export class OutboundHttp {
  readonly #pending = new Map<number, Pending>();
  readonly #options: Options;
  #thread: Worker | undefined;
  #lastId = 0;
  #isClosed = false;

  constructor(options: Options) {
    this.#options = options;
  }

  /** See `guardedFetch`. */
  readonly fetch: GuardedFetch = async (url, { signal, ...request } = {}) => {
    // A copy of its own: of a view, the whole memory behind it would go to the thread.
    const body = typeof request.body === 'object' ? Uint8Array.from(request.body) : request.body;
    const sent = body === undefined ? request : { ...request, body };
    return (await this.#ask(url, sent, signal))!;
  };

  /** See `guardedTarget`. */
  readonly check = async (url: string): Promise<void> => {
    await this.#ask(url, undefined, undefined);
  };

  /** Ends the thread; pending requests fail. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const thread = this.#thread;
    this.#lose(thread, shuttingDown);
    await thread?.terminate();
  }

  #ask(
    url: string,
    request: ThreadRequest | undefined,
    signal: AbortSignal | undefined,
  ): Promise<GuardedResponse | undefined> {
    if (this.#isClosed) return Promise.reject(interrupted(shuttingDown));
    const thread = (this.#thread ??= this.#newThread());
    const id = ++this.#lastId;
    const { graceMs = usualGraceMs } = this.#options;
    const cancel = (): void => thread.postMessage({ cancelled: id } satisfies ToThread);
    return new Promise<GuardedResponse | undefined>((resolve, reject) => {
      const stuck = (): void => this.#lose(thread, 'the thread that makes requests stopped responding');
      const timer = setTimeout(stuck, (request?.timeoutMs ?? defaultTimeoutMs) + graceMs).unref();
      const end = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', cancel);
      };
      this.#pending.set(id, {
        resolve: (response) => (end(), resolve(response)),
        reject: (error) => (end(), reject(error)),
      });
      thread.postMessage({ id, url, request } satisfies ToThread);
      signal?.addEventListener('abort', cancel);
      if (signal?.aborted) cancel();
    });
  }

  #newThread(): Worker {
    const { graceMs: _grace, file = new URL('./outbound-worker.js', import.meta.url), ...workerData } = this.#options;
    const { thread } = startThread(file, {
      name: 'outbound',
      workerData,
      heapMib,
      hear: ({ id, response, failure }: FromThread) => {
        const pending = this.#pending.get(id);
        this.#pending.delete(id);
        if (!failure) return pending?.resolve(response);
        const { rule, message, code } = failure;
        const cause = code === undefined ? undefined : Object.assign(new Error(code), { code });
        pending?.reject(new GuardedFetchError(rule, message, { cause }));
      },
      // The error is nobody's to read: it may be about what was sent.
      failed: () => this.#lose(thread, 'the thread that makes requests failed'),
      ended: () => this.#lose(thread, 'the thread that makes requests ended'),
    });
    // After the listeners: one for messages keeps the process alive.
    thread.unref();
    return thread;
  }

  /** Fails everything that the thread was sent. */
  #lose(thread: Worker | undefined, why: string): void {
    if (thread === undefined || thread !== this.#thread) return;
    this.#thread = undefined;
    void thread.terminate();
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    for (const { reject } of pending) reject(interrupted(why));
  }
}

const interrupted = (why: string): GuardedFetchError =>
  new GuardedFetchError('connection', `the request was interrupted: ${why}`);
