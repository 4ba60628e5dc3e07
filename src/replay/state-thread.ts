import { Worker } from 'node:worker_threads';
import { CoordinatorError, type ErrorCode } from '../domain/errors.js';
import { organizationStream } from '../domain/organization/organization.js';
import type { EventReader, RecordedEvent } from '../ledger/event-store.js';
import { Families } from '../read-models/families.js';
import { packEvents, type PackedEvents } from '../read-models/packed-events.js';
import type { StateAnswer, StateQuestion } from '../read-models/states.js';
import { workerFile } from '../worker-file.js';

/** Questions of one family of organizations that are answered or wait. */
const mostOfFamily = 4;
/** Milliseconds until a thread that does not answer is ended. */
const usualLongestMs = 30_000;
/** Memory of the thread, in MiB. */
const heapMib = 512;
/** Events that cross together: so many are read between two looks at who else waits. */
const together = 500;

export type ToStateWorker =
  | {
      readonly kind: 'question';
      readonly organizationId: string;
      readonly question: StateQuestion;
      readonly now: number;
    }
  | { readonly kind: 'events'; readonly events: PackedEvents }
  | { readonly kind: 'end' };

export type FromStateWorker =
  | { readonly kind: 'go-on' | 'enough' }
  | { readonly kind: 'answer'; readonly answer: StateAnswer }
  | { readonly kind: 'refused'; readonly code: ErrorCode; readonly message: string }
  | { readonly kind: 'failed'; readonly reason: string };

interface StateThreadOptions {
  readonly longestMs?: number;
  /** The worker's file; the one of this build unless told. */
  readonly file?: URL;
}

/**
 * Answers questions about the states of organizations, in a thread of its own: folding a history takes long. One question
 * of a family, a parent with its sub-organizations, at a time. A thread that dies or does not answer is replaced.
 */
export class StateThread {
  private readonly families = new Families(mostOfFamily, 'questions about states that are answered or wait');
  private thread: Worker | undefined;
  private last: Promise<unknown> = Promise.resolve();
  private isClosed = false;

  constructor(
    private readonly store: Pick<EventReader, 'read'>,
    private readonly options: StateThreadOptions = {},
  ) {}

  /**
   * @param family the parent's id, of a parent and of its sub-organizations
   * @param turn is awaited between two runs of events: others may have theirs
   * @throws {CoordinatorError} NOT_FOUND for a point that is not there; RESOURCE_EXHAUSTED when too many of the family wait, or
   *   the history is too long; UNAVAILABLE when the thread was lost
   */
  async answer(
    family: string,
    asked: { readonly organizationId: string; readonly question: StateQuestion; readonly now: number },
    turn: () => Promise<void> | undefined,
  ): Promise<StateAnswer> {
    const { organizationId } = asked;
    return this.families.inTurn({ family, organizationId }, () => {
      const answered = this.last.then(() => this.ask(asked, turn));
      this.last = answered.catch(() => undefined);
      return answered;
    });
  }

  private async ask(
    asked: { readonly organizationId: string; readonly question: StateQuestion; readonly now: number },
    turn: () => Promise<void> | undefined,
  ): Promise<StateAnswer> {
    if (this.isClosed) throw unavailable('the coordinator is shutting down');
    const talk = new Talk((this.thread ??= this.newThread()), this.options.longestMs ?? usualLongestMs);
    try {
      await talk.say({ kind: 'question', ...asked });
      let waiting: RecordedEvent[] = [];
      const hand = async () => {
        const events = packEvents(waiting);
        waiting = [];
        await turn();
        return talk.say({ kind: 'events', events });
      };
      let isEnough = false;
      for await (const event of this.store.read(organizationStream(asked.organizationId))) {
        if (waiting.push(event) < together) continue;
        isEnough = (await hand()).kind === 'enough';
        if (isEnough) break;
      }
      if (!isEnough && waiting.length > 0) await hand();
      const said = await talk.say({ kind: 'end' });
      if (said.kind !== 'answer') throw new Error(`the thread that answers about states said \`${said.kind}\``);
      return said.answer;
    } catch (error) {
      if (talk.isLost) {
        const { thread } = this;
        this.thread = undefined;
        void thread?.terminate();
      }
      throw error;
    } finally {
      talk.end();
    }
  }

  private newThread(): Worker {
    const { file = workerFile('./state-worker.js', import.meta.url) } = this.options;
    const resourceLimits = { maxOldGenerationSizeMb: heapMib };
    const thread = new Worker(file, { name: 'states', execArgv: [], resourceLimits });
    thread.unref();
    // Told of while it answers nothing, or late: neither must end the process.
    thread.on('error', () => undefined);
    thread.once('exit', () => {
      if (this.thread === thread) this.thread = undefined;
    });
    return thread;
  }

  async close(): Promise<void> {
    this.isClosed = true;
    await this.thread?.terminate();
  }
}

/** One question, word by word, in a time that is given to all of it. */
class Talk {
  private readonly timer: NodeJS.Timeout;
  private heard: ((message: FromStateWorker) => void) | undefined;
  private failed: ((error: unknown) => void) | undefined;
  private loss: Error | undefined;

  constructor(
    private readonly thread: Worker,
    longestMs: number,
  ) {
    thread.on('message', this.hear).on('error', this.fail).on('exit', this.fail);
    this.timer = setTimeout(() => this.lose(`the state was not there in ${longestMs / 1_000} s`), longestMs);
  }

  get isLost(): boolean {
    return this.loss !== undefined;
  }

  /** @throws {CoordinatorError} as the thread refuses; UNAVAILABLE when it is lost */
  async say(message: ToStateWorker): Promise<FromStateWorker> {
    if (this.loss) throw this.loss;
    const said = await new Promise<FromStateWorker>((resolve, reject) => {
      [this.heard, this.failed] = [resolve, reject];
      this.thread.postMessage(message);
    });
    if (said.kind === 'refused') throw new CoordinatorError(said.code, said.message);
    if (said.kind === 'failed') throw new Error(said.reason);
    return said;
  }

  end(): void {
    clearTimeout(this.timer);
    this.thread.off('message', this.hear).off('error', this.fail).off('exit', this.fail);
  }

  private readonly hear = (message: FromStateWorker): void => this.heard?.(message);

  private readonly fail = (): void => this.lose('the thread that answers about states has ended');

  private lose(why: string): void {
    this.loss ??= unavailable(why);
    this.failed?.(this.loss);
  }
}

function unavailable(why: string): CoordinatorError {
  return new CoordinatorError('UNAVAILABLE', `${why}: send the same request again`, { retryAfterSeconds: 1 });
}
