import type { Worker } from 'node:worker_threads';
import { linkIn } from '../../chain.js';
import { StoreUnavailable } from '../../event-store.js';
import type { RecordedEvent } from '../../event-store.js';
import { startThread } from '../../../threads/start-thread.js';
import { threadError } from '../../../threads/thread-error.js';
import { checkedEvent, parseEvent } from '../../stored-event.js';
import { SEPARATOR, storedIn } from './sqlite-protocol.js';
import type {
  Answer,
  ChainedElement,
  ChainedPage,
  ChainedRun,
  Fault,
  OpenedFor,
  Page,
  Request,
} from './sqlite-protocol.js';

/** The worker thread that has the file open. Every request is answered, even if the thread dies. */
export class StoreThread {
  readonly #file: string;
  readonly #worker: Worker;
  readonly #exited: Promise<void>;
  /** INVARIANT: the worker answers each request once and in order, so the next answer belongs to the first one here. */
  readonly #waiting: ((answer: Answer) => void)[] = [];
  readonly #lost: (error: StoreUnavailable, isExpected: boolean) => void;
  #isClosing = false;
  /** Why no further requests are possible. */
  #gone: StoreUnavailable | undefined;

  /**
   * @param lost called once when no further requests are possible, after all waiting callers got their error; also when it is
   *   closed, as expected
   */
  constructor(file: string, openedFor: OpenedFor, lost: (error: StoreUnavailable, isExpected: boolean) => void) {
    this.#file = file;
    this.#lost = lost;
    const lose = (reason: string) => this.#lose(this.#unavailable(reason));
    const { thread, hasEnded } = startThread(new URL('./sqlite-worker.js', import.meta.url), {
      name: 'event-store',
      workerData: { file, openedFor },
      hear: (message: Answer | Fault) => {
        if (message.kind === 'fault') this.#lose(new StoreUnavailable(message.message));
        else this.#waiting.shift()?.(message);
      },
      failed: (error) => lose(threadError(error).message),
      ended: () => lose(this.#isClosing ? 'it is closed' : 'its thread has ended'),
    });
    [this.#worker, this.#exited] = [thread, hasEnded];
  }

  /**
   * Position of the last event of the file, once it is open.
   * @throws {StoreUnavailable} if it cannot be opened; the thread has then ended
   */
  async opened(): Promise<number> {
    const answer = await new Promise<Answer>((resolve) => this.#waiting.push(resolve));
    if (answer.kind === 'opened') return answer.head;
    this.expectEnd();
    await this.#exited;
    throw new StoreUnavailable(answer.kind === 'failed' ? answer.message : `unexpected answer ${answer.kind}`);
  }

  /** @throws {StoreUnavailable} if the thread is gone */
  checkThere(): void {
    if (this.#gone) throw this.#gone;
  }

  ask(request: Request): Promise<Answer> {
    return new Promise((resolve) => this.send(request, resolve));
  }

  send(request: Request, onAnswer: (answer: Answer) => void): void {
    if (this.#gone) {
      onAnswer({ kind: 'failed', message: this.#gone.message });
      return;
    }
    this.#waiting.push(onAnswer);
    this.#worker.postMessage(request);
  }

  /** A page of events as they are stored. */
  async page(request: Request): Promise<Page> {
    const answer = await this.ask(request);
    if (answer.kind !== 'page') throw this.unexpected(answer);
    return answer;
  }

  /** A page of events whose chain was checked, or a page if there is something that whoever reads them has to check. */
  async chainedPage(request: Request & { readonly kind: 'read-chained' }): Promise<ChainedPage | Page> {
    const answer = await this.ask(request);
    if (answer.kind !== 'chained-page' && answer.kind !== 'page') throw this.unexpected(answer);
    return answer;
  }

  /** The error for an unexpected answer. */
  unexpected(answer: Answer): StoreUnavailable {
    return new StoreUnavailable(
      answer.kind === 'failed' ? answer.message : `the event store \`${this.#file}\` answered ${answer.kind}`,
    );
  }

  /** Refuses everything from here on. */
  fail(message: string): void {
    this.#lose(new StoreUnavailable(message));
  }

  /** From now on it does not keep the process alive; callers that wait for an answer must do so themselves. */
  unref(): void {
    this.#worker.unref();
  }

  /** From now on the thread may end. */
  expectEnd(): void {
    this.#isClosing = true;
  }

  /** Finishes all requests, closes the file and ends the thread. */
  async close(): Promise<void> {
    // After a fault as well: the thread has the file open until it ends.
    this.#worker.postMessage({ kind: 'close' } satisfies Request);
    await this.#exited;
  }

  #unavailable(reason: string): StoreUnavailable {
    return new StoreUnavailable(`the event store \`${this.#file}\` is not available: ${reason}`);
  }

  /** Everybody who waits gets an error. */
  #lose(error: StoreUnavailable): void {
    if (this.#gone) return;
    this.#gone = error;
    for (const onAnswer of this.#waiting.splice(0)) onAnswer({ kind: 'failed', message: error.message });
    this.#lost(error, this.#isClosing);
  }
}

/** The events of a page. */
export function eventsOf({ runs }: Page): readonly RecordedEvent[] {
  const events: RecordedEvent[] = [];
  for (const run of runs) for (const stored of storedIn(run)) events.push(parseEvent(stored));
  return events;
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

/** The link of a page's last event; whoever goes on from there checks that it follows from the events before. */
export function lastLink({ runs }: Page | ChainedPage): string | undefined {
  const run = runs.at(-1);
  if (run === undefined) return undefined;
  if (typeof run === 'object' && 'links' in run) return run.links.at(-1);
  const metadata = typeof run === 'string' ? run.slice(run.lastIndexOf(SEPARATOR) + 1) : run.at(-1);
  return linkIn({ metadata: String(metadata) });
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
