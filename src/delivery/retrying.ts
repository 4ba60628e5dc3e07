import { randomUUID } from 'node:crypto';
import { CoordinatorError } from '../domain/errors.js';
import { FairQueue, strangersOf, type QueuePath } from '../fairness/fair-queue.js';
import { checkMessage } from './check-message.js';
import {
  DeliveryFailed,
  placesOfChannel,
  type AcceptedMessage,
  type Carrier,
  type Channel,
  type Delivery,
  type DeliveryReport,
  type Message,
  type Receipt,
} from './delivery.js';

/** How long and how often. All times in milliseconds. */
export interface Patience {
  /** Attempts for one message, including the first. */
  readonly attempts: number;
  /** Wait before the second attempt; it doubles each time, less a random part of up to half. */
  readonly firstDelayMs: number;
  readonly maxDelayMs: number;
  /** Longest time of one attempt. */
  readonly attemptMs: number;
  /** Longest time that `send` waits for its first attempt before it returns `queued`. */
  readonly firstAnswerMs: number;
  /** Parallel attempts, per channel. */
  readonly concurrency: number;
  /** Maximum open messages, waiting or being sent. */
  readonly maxOpen: number;
  /** Longest time that `close` waits for open messages. */
  readonly drainMs: number;
}

const patience: Patience = {
  attempts: 8,
  firstDelayMs: 1_000,
  maxDelayMs: 30_000,
  attemptMs: 30_000,
  firstAnswerMs: 5_000,
  concurrency: placesOfChannel,
  maxOpen: 1_000,
  drainMs: 5_000,
};

/** The sender of messages without one. */
const installation: QueuePath = ['installation'];

/** A message on its way. */
interface Job {
  readonly message: AcceptedMessage;
  readonly from: QueuePath;
  attempts: number;
  /** Ends the wait for the next attempt, or for a free slot, now. */
  wake: (() => void) | undefined;
  /** Ends the running attempt. */
  attempt: AbortController | undefined;
  readonly done: Promise<Receipt>;
}

/**
 * Sends through one carrier per channel, and retries: limited in attempts, in messages and in time. Messages wait only
 * in memory, because they contain codes. Each ends in exactly one report `sent`, `failed` or `abandoned`.
 */
export class RetryingDelivery implements Delivery {
  readonly #carriers: Readonly<Record<Channel, Carrier>>;
  readonly #report: (report: DeliveryReport) => void;
  readonly #patience: Patience;
  readonly #now: () => number;
  readonly #open = new Set<Job>();
  /** Those that have a slot. */
  readonly #running: Record<Channel, Set<Job>> = { email: new Set(), sms: new Set() };
  readonly #queues: Record<Channel, FairQueue<Job>> = { email: new FairQueue(), sms: new FairQueue() };
  #stopping = false;
  #stopped = false;
  #closed: Promise<void> | undefined;

  constructor(
    carriers: Readonly<Record<Channel, Carrier>>,
    report: (report: DeliveryReport) => void,
    options: Partial<Patience> & { readonly now?: () => number } = {},
  ) {
    const { now = Date.now, ...changed } = options;
    this.#carriers = carriers;
    this.#report = report;
    this.#now = now;
    this.#patience = { ...patience, ...changed };
  }

  /** Messages that were accepted and are not finished. */
  get open(): number {
    return this.#open.size;
  }

  async send(message: Message, from: QueuePath = installation): Promise<Receipt> {
    let answer: (receipt: Receipt) => void;
    const first = new Promise<Receipt>((resolve) => (answer = resolve));
    const { message: accepted } = this.#accept(message, from, (receipt) => answer(receipt));
    const late = setTimeout(() => answer({ id: accepted.id, status: 'queued' }), this.#patience.firstAnswerMs);
    try {
      return await first;
    } finally {
      clearTimeout(late);
    }
  }

  enqueue(message: Message, from: QueuePath = installation): Receipt {
    const job = this.#accept(message, from, () => undefined);
    return { id: job.message.id, status: 'queued' };
  }

  /** Gives each open message one more attempt within the time limit, reports the rest, and releases the carriers. */
  close(): Promise<void> {
    this.#closed ??= this.#drain();
    return this.#closed;
  }

  check(message: Message, from: QueuePath = installation): void {
    checkMessage(message);
    if (this.#stopping) {
      throw new CoordinatorError(
        'UNAVAILABLE',
        'messages are no longer accepted, because the process is stopping: try again',
      );
    }
    const { maxOpen } = this.#patience;
    const refuse = (most: number, whose: string): never => {
      throw new CoordinatorError(
        'RESOURCE_EXHAUSTED',
        `${most} messages${whose} are waiting for delivery: try again later, and see the log for the reason`,
        { retryAfterSeconds: 60 },
      );
    };
    if (this.#open.size >= maxOpen) refuse(maxOpen, '');
    const family = strangersOf(from);
    if (family === undefined) return;
    const ofStrangers = [...this.#open].filter((job) => strangersOf(job.from) === family);
    const { ofFamily, ofOne } = { ofFamily: Math.ceil(maxOpen / 2), ofOne: Math.ceil(maxOpen / 8) };
    if (ofStrangers.length >= ofFamily) refuse(ofFamily, ' of the sub-organizations and the auth proxy of one parent');
    if (ofStrangers.filter((job) => job.from.join(' ') === from.join(' ')).length >= ofOne)
      refuse(ofOne, ' of one sub-organization, or one caller of an auth proxy,');
  }

  #accept(message: Message, from: QueuePath, onFirst: (receipt: Receipt) => void): Job {
    this.check(message, from);
    const job: Job = {
      message: { ...message, id: randomUUID() },
      from,
      attempts: 0,
      wake: undefined,
      attempt: undefined,
      // In a later turn, so that the job is complete and accepting takes no time.
      done: Promise.resolve().then(() => this.#run(job, onFirst)),
    };
    this.#open.add(job);
    return job;
  }

  async #run(job: Job, onFirst: (receipt: Receipt) => void): Promise<Receipt> {
    const { id } = job.message;
    const end = (outcome: 'sent' | 'failed' | 'abandoned', reason?: string): Receipt => {
      this.#open.delete(job);
      this.#tell(job, outcome, reason);
      const receipt: Receipt =
        outcome === 'sent' ? { id, status: 'sent' } : { id, status: 'failed', reason: reason ?? outcome };
      onFirst(receipt);
      return receipt;
    };
    for (;;) {
      await this.#takePlace(job);
      if (this.#stopped) return end('abandoned', 'the process stopped before its delivery');
      if (this.#isExpired(job, 0)) {
        this.#freePlace(job);
        return end('failed', 'it expired before it could be delivered');
      }
      const failure = await this.#attempt(job);
      this.#freePlace(job);
      if (failure === undefined) return end('sent');
      if (!failure.retryable) return end('failed', failure.message);
      if (this.#stopping) return end('abandoned', failure.message);
      if (job.attempts >= this.#patience.attempts) {
        return end('failed', `${failure.message}; given up after ${job.attempts} attempts`);
      }
      const delay = this.#delay(job.attempts, failure.retryAfterMs);
      if (this.#isExpired(job, delay))
        return end('failed', `${failure.message}; it would expire before the next attempt`);
      this.#tell(job, 'retrying', failure.message);
      onFirst({ id, status: 'queued' });
      await this.#wait(job, delay);
    }
  }

  async #attempt(job: Job): Promise<DeliveryFailed | undefined> {
    const { attemptMs } = this.#patience;
    job.attempts += 1;
    const attempt = new AbortController();
    job.attempt = attempt;
    const late = setTimeout(() => attempt.abort(), attemptMs);
    const input = new Promise<DeliveryFailed>((resolve) => {
      const giveUp = (): void => {
        const why = this.#stopped ? 'the process stopped during its delivery' : `no answer within ${attemptMs} ms`;
        resolve(new DeliveryFailed(why, { retryable: true }));
      };
      attempt.signal.addEventListener('abort', giveUp, { once: true });
    });
    const carried = this.#carriers[job.message.channel].carry(job.message, attempt.signal).then(
      () => undefined,
      // Errors not known to be harmless are not repeated: they could contain the text.
      (error: unknown) =>
        error instanceof DeliveryFailed ? error : new DeliveryFailed('the carrier is defective', { retryable: true }),
    );
    try {
      return await Promise.race([carried, input]);
    } finally {
      clearTimeout(late);
      job.attempt = undefined;
    }
  }

  #delay(attempts: number, retryAfterMs = 0): number {
    const { firstDelayMs, maxDelayMs } = this.#patience;
    const delay = Math.min(firstDelayMs * 2 ** (attempts - 1), maxDelayMs);
    // Messages that failed together must not be retried together.
    return Math.max(delay * (1 - Math.random() / 2), Math.min(retryAfterMs, maxDelayMs));
  }

  #isExpired({ message: { expiresAt } }: Job, inMs: number): boolean {
    return expiresAt !== undefined && this.#now() + inMs >= expiresAt;
  }

  /** Returns after `ms`, or as soon as the process stops. */
  async #wait(job: Job, ms: number): Promise<void> {
    if (this.#stopping) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      job.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    job.wake = undefined;
  }

  /** INVARIANT: a job returns from here with a slot, unless everything has stopped. */
  async #takePlace(job: Job): Promise<void> {
    const { channel } = job.message;
    if (this.#stopped) return;
    if (this.#hasPlace(channel, job.from)) {
      this.#running[channel].add(job);
      return;
    }
    await new Promise<void>((resolve) => {
      job.wake = resolve;
      this.#queues[channel].push(job.from, job);
    });
    job.wake = undefined;
  }

  /** Whether there is a slot for this path: strangers of one parent have half of them together. */
  #hasPlace(channel: Channel, path: QueuePath): boolean {
    const running = this.#running[channel];
    const { concurrency } = this.#patience;
    if (running.size >= concurrency) return false;
    const family = strangersOf(path);
    if (family === undefined) return true;
    const ofFamily = [...running].filter(({ from }) => strangersOf(from) === family).length;
    return ofFamily < Math.ceil(concurrency / 2);
  }

  /** Passes the slot to the next in the queue that may have it, if there is one. */
  #freePlace(job: Job): void {
    const { channel } = job.message;
    this.#running[channel].delete(job);
    const next = this.#queues[channel].shift((path) => this.#hasPlace(channel, path));
    if (!next) return;
    this.#running[channel].add(next);
    next.wake?.();
  }

  async #drain(): Promise<void> {
    this.#stopping = true;
    const queued = new Set(Object.values(this.#queues).flatMap((queue) => [...queue]));
    for (const job of this.#open) if (!queued.has(job)) job.wake?.();
    const ended = Promise.allSettled([...this.#open].map(({ done }) => done));
    let late: NodeJS.Timeout | undefined;
    const tooLate = new Promise<void>((resolve) => (late = setTimeout(resolve, this.#patience.drainMs)));
    await Promise.race([ended, tooLate]);
    clearTimeout(late);
    this.#stopped = true;
    for (const job of this.#open) {
      job.attempt?.abort();
      job.wake?.();
    }
    await ended;
    await Promise.all([...new Set(Object.values(this.#carriers))].map((carrier) => carrier.close()));
  }

  #tell({ message, attempts }: Job, outcome: DeliveryReport['outcome'], reason?: string): void {
    const { id, channel, otpId } = message;
    const about = { id, channel, ...(otpId === undefined ? {} : { otpId }) };
    try {
      this.#report({ ...about, outcome, attempts, ...(reason === undefined ? {} : { reason }) });
    } catch (error) {
      // A listener that throws must not stop the message that it is told about.
      process.emitWarning(
        `a delivery report could not be recorded: ${error instanceof Error ? error.name : 'unknown error'}`,
      );
    }
  }
}
