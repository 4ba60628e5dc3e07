import { Worker } from 'node:worker_threads';
import { StoreUnavailable } from '../../event-store.js';
import type { RecordedEvent } from '../../event-store.js';
import { linkIn } from '../../chain.js';
import { parseEvent } from '../../stored-event.js';
import { workerFile } from '../../../threads/worker-file.js';
import { FIELDS_PER_ROW, SEPARATOR } from './sqlite-protocol.js';
import type { Answer, Fields, OpenedFor, Request, Run } from './sqlite-protocol.js';

/** The worker thread that has the file open: each request is answered, also when the thread is gone. */
export class StoreThread {
  readonly #file: string;
  readonly #worker: Worker;
  readonly #exited: Promise<void>;
  /** INVARIANT: the worker answers each request once and in order, so the first one here is whose answer is next. */
  readonly #waiting: ((answer: Answer) => void)[] = [];
  #isClosing = false;
  /** Why nothing can be asked any more. */
  #gone: string | undefined;

  /** @param lost is told once when nothing can be asked any more, after everybody who waits */
  constructor(file: string, openedFor: OpenedFor, lost: (error: StoreUnavailable) => void) {
    this.#file = file;
    // Flags of the process such as --input-type or --watch are not meant for the thread, and some would stop it.
    const options = { workerData: { file, openedFor }, name: 'event-store', execArgv: [] };
    const worker = new Worker(workerFile('./sqlite-worker.js', import.meta.url), options);
    this.#worker = worker;
    worker.on('message', (answer: Answer) => this.#waiting.shift()?.(answer));
    worker.on('error', (error) => this.#lose(error.message, lost));
    this.#exited = new Promise((resolve) => {
      worker.once('exit', () => {
        this.#lose(this.#isClosing ? 'it is closed' : 'its thread has ended', lost);
        resolve();
      });
    });
  }

  /**
   * Position of the last event of the file, once it is open.
   * @throws {StoreUnavailable} when it cannot be opened; the thread has ended then
   */
  async opened(): Promise<number> {
    const answer = await new Promise<Answer>((resolve) => this.#waiting.push(resolve));
    if (answer.kind === 'opened') return answer.head;
    await this.#exited;
    throw new StoreUnavailable(answer.kind === 'failed' ? answer.message : `unexpected answer ${answer.kind}`);
  }

  /** @throws {StoreUnavailable} when the thread is gone */
  checkThere(): void {
    if (this.#gone !== undefined) throw this.#isGone(this.#gone);
  }

  ask(request: Request): Promise<Answer> {
    return new Promise((resolve) => this.send(request, resolve));
  }

  send(request: Request, onAnswer: (answer: Answer) => void): void {
    if (this.#gone !== undefined) {
      onAnswer({ kind: 'failed', message: this.#isGone(this.#gone).message });
      return;
    }
    this.#waiting.push(onAnswer);
    this.#worker.postMessage(request);
  }

  /** A page of events, whether it is the last one, and the link of its last event where the chain was checked. */
  async page(request: Request): Promise<{ events: RecordedEvent[]; last: boolean; link?: string }> {
    const answer = await this.ask(request);
    if (answer.kind !== 'page') throw this.unexpected(answer);
    const { runs, last, link } = answer;
    const checked = link !== undefined && 'after' in request ? String(request.after) : undefined;
    return { events: eventsOf(runs, checked), last, ...(link === undefined ? {} : { link }) };
  }

  /** What to throw for an answer that is not the one asked for. */
  unexpected(answer: Answer): StoreUnavailable {
    return new StoreUnavailable(
      answer.kind === 'failed' ? answer.message : `the event store \`${this.#file}\` answered ${answer.kind}`,
    );
  }

  /** It no longer keeps the process alive: whoever waits for an answer has to. */
  unref(): void {
    this.#worker.unref();
  }

  /** From now on an end of the thread is no accident. */
  expectEnd(): void {
    this.#isClosing = true;
  }

  /** Closes the file after everything that was asked, and ends the thread. */
  async close(): Promise<void> {
    if (this.#gone === undefined) void this.ask({ kind: 'close' });
    await this.#exited;
  }

  #isGone(reason: string): StoreUnavailable {
    return new StoreUnavailable(`the event store \`${this.#file}\` is not available: ${reason}`);
  }

  /** The worker is gone: nobody may wait for it any longer. */
  #lose(reason: string, lost: (error: StoreUnavailable) => void): void {
    if (this.#gone !== undefined) return;
    this.#gone = reason;
    const error = this.#isGone(reason);
    for (const onAnswer of this.#waiting.splice(0)) onAnswer({ kind: 'failed', message: error.message });
    lost(error);
  }
}

/** @param after the link before the first event, where each is known to follow */
function eventsOf(runs: readonly Run[], after: string | undefined): RecordedEvent[] {
  const events: RecordedEvent[] = [];
  let link = after;
  for (const run of runs) {
    const fields: Fields = typeof run === 'string' ? run.split(SEPARATOR) : run;
    for (let at = 0; at < fields.length; at += FIELDS_PER_ROW) {
      const stored = {
        position: BigInt(fields[at]!),
        stream: fields[at + 1] as string,
        revision: Number(fields[at + 2]),
        id: fields[at + 3] as string,
        type: fields[at + 4] as string,
        data: fields[at + 5] as string,
        metadata: fields[at + 6] as string,
      };
      events.push(parseEvent(stored, link));
      if (link !== undefined) link = linkIn(stored);
    }
  }
  return events;
}
