import type { Worker } from 'node:worker_threads';
import { linkIn } from '../../chain.js';
import { StoreLocked, StoreUnavailable } from '../../event-store.js';
import type { RecordedEvent } from '../../event-store.js';
import { startThread } from '../../../threads/start-thread.js';
import { threadError } from '../../../threads/thread-error.js';
import { checkedEvent, parseEvent } from '../../stored-event.js';
import { storedEvent } from './sqlite-protocol.js';
import type {
  Answer,
  Call,
  ChainedElement,
  ChainedPage,
  ChainedRun,
  Fault,
  FileCalls,
  OpenedFor,
  Page,
} from './sqlite-protocol.js';

interface Waiting {
  resolve(result: unknown): void;
  reject(error: StoreUnavailable): void;
}

/** The worker thread that has the file open. Every call is answered, even if the thread dies. */
export class StoreThread {
  readonly #file: string;
  readonly #worker: Worker;
  readonly #exited: Promise<void>;
  /** INVARIANT: the worker answers each call once and in order, so the next answer belongs to the first one here. */
  readonly #waiting: Waiting[] = [];
  readonly #lost: (error: StoreUnavailable, isExpected: boolean) => void;
  #isClosing = false;
  /** Why no further calls are possible. */
  #gone: StoreUnavailable | undefined;

  /**
   * @param lost called once when no further calls are possible, and all waiting callers get their error; also when it is closed, as
   *   expected
   */
  constructor(file: string, openedFor: OpenedFor, lost: (error: StoreUnavailable, isExpected: boolean) => void) {
    this.#file = file;
    this.#lost = lost;
    const lose = (reason: string) => this.fail(`the event store \`${file}\` is not available: ${reason}`);
    const { thread, hasEnded } = startThread(new URL('./sqlite-worker.js', import.meta.url), {
      name: 'event-store',
      workerData: { file, openedFor },
      hear: (message: Answer | Fault) => {
        if (message.kind === 'fault') this.fail(message.message);
        else this.#answered(message);
      },
      failed: (error) => lose(threadError(error).message),
      ended: () => lose(this.#isClosing ? 'it is closed' : 'its thread has ended'),
    });
    [this.#worker, this.#exited] = [thread, hasEnded];
  }

  #answered(answer: Answer): void {
    const waiting = this.#waiting.shift();
    if (answer.kind === 'done') waiting?.resolve(answer.result);
    else if (answer.kind === 'failed') waiting?.reject(new StoreUnavailable(answer.message));
    else waiting?.reject(this.locked());
  }

  /**
   * Position of the last event of the file, once it is open.
   * @throws {StoreUnavailable} if it cannot be opened; the thread has then ended
   */
  async opened(): Promise<number> {
    try {
      return await this.#answer<number>();
    } catch (error) {
      this.expectEnd();
      await this.#exited;
      throw error;
    }
  }

  #answer<T>(): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve: (result) => resolve(result as T), reject });
    });
  }

  /** @throws {StoreUnavailable} if the thread is gone */
  checkThere(): void {
    if (this.#gone) throw this.#gone;
  }

  /**
   * @throws {StoreLocked} if another program has the lock for writing
   * @throws {StoreUnavailable} if the thread has failed, or is gone
   */
  async call<M extends keyof FileCalls>(
    method: M,
    ...args: Parameters<FileCalls[M]>
  ): Promise<ReturnType<FileCalls[M]>> {
    this.checkThere();
    this.#worker.postMessage({ method, args } satisfies Call);
    return this.#answer();
  }

  locked(): StoreLocked {
    return new StoreLocked(`another program has the write lock of \`${this.#file}\`: nothing was written`);
  }

  /** Refuses everything from here on. Everybody who waits gets an error. */
  fail(message: string): void {
    if (this.#gone) return;
    const error = new StoreUnavailable(message);
    this.#gone = error;
    for (const { reject } of this.#waiting.splice(0)) reject(error);
    this.#lost(error, this.#isClosing);
  }

  /** From now on it does not keep the process alive; callers that wait for an answer must do so themselves. */
  unref(): void {
    this.#worker.unref();
  }

  /** From now on the thread may end. */
  expectEnd(): void {
    this.#isClosing = true;
  }

  /** Finishes all calls, closes the file and ends the thread. */
  async close(): Promise<void> {
    // After a fault as well: the thread has the file open until it ends.
    this.#worker.postMessage({ method: 'close', args: [] } satisfies Call);
    await this.#exited;
  }
}

/** The events of a page. */
export function eventsOf({ rows }: Page): readonly RecordedEvent[] {
  return rows.map((row) => parseEvent(storedEvent(row)));
}

/**
 * The events of a run whose chain was checked; undefined if their links cover something that is no list of events.
 * @param after link before the first of them
 */
export function chainedEventsOf({ list, links }: ChainedRun, after: string): readonly RecordedEvent[] | undefined {
  const elements = elementsOf(list);
  if (elements?.length !== links.length) return undefined;
  const events: RecordedEvent[] = [];
  let link = after;
  for (const { position, hash, record } of elements) {
    // It is what was checked, unless it has another name, or a text put into the event's data says it once more.
    const next = links[events.length]!;
    if (hash !== next) return undefined;
    events.push(checkedEvent(record, BigInt(position), next, link));
    link = next;
  }
  return events;
}

/** Where the next page begins: behind the last event of this one, whose link the next event has to follow. */
export function endOf(
  page: Page | ChainedPage,
  from: number,
): { readonly next: number; readonly link: string | undefined } {
  if (page.kind === 'chained-page') {
    const count = page.runs.reduce((sum, { links }) => sum + links.length, 0);
    return { next: from + count, link: page.runs.at(-1)?.links.at(-1) };
  }
  const row = page.rows.at(-1);
  if (row === undefined) return { next: from, link: undefined };
  const last = storedEvent(row);
  return { next: last.revision + 1, link: linkIn(last) };
}

function elementsOf(json: Uint8Array<ArrayBuffer>): readonly ChainedElement[] | undefined {
  try {
    const elements = JSON.parse(Buffer.from(json.buffer, json.byteOffset, json.length).toString()) as ChainedElement[];
    return elements.every(({ record: { metadata } }) => typeof metadata === 'object' && metadata !== null)
      ? elements
      : undefined;
  } catch {
    return undefined;
  }
}
