import { setTimeout as pause } from 'node:timers/promises';
import { errorMessage } from '../../../domain/errors.js';
import { StoreRefused, StoreUnavailable, type TooLarge } from '../../event-store.js';

/**
 * What an error of the EventStoreDB client means for a call:
 * `passing`: it may work the next time, and may have worked this time; `final`: it will never work.
 */
export type Failure = 'wrong-revision' | 'stream-deleted' | 'stream-not-found' | 'passing' | 'final';

/** No response in time; whether the server has done the work is unknown. */
export class NoAnswer extends Error {
  constructor(milliseconds: number) {
    super(`no response within ${milliseconds} ms`);
    this.name = 'NoAnswer';
  }
}

/** `type` of the client's errors for which repeating does not help. */
const FINAL_TYPES = new Set([
  'access-denied',
  'invalid-argument',
  'invalid-transaction',
  'maximum-append-size-exceeded',
  'missing-required-metadata-property',
  'unsupported',
]);

/** gRPC status codes of the same kind: INVALID_ARGUMENT, PERMISSION_DENIED, OUT_OF_RANGE, UNIMPLEMENTED, UNAUTHENTICATED. */
const FINAL_CODES = new Set([3, 7, 11, 12, 16]);

/** gRPC status code of a message over the limit of the server, or of a proxy in front of it. */
const RESOURCE_EXHAUSTED = 8;
/** No limit of messages is this low, in bytes: the refused message was another one on the same stream. */
const SMALL = 64 * 1024;

/** Errors after which the client opens a new connection by itself; after all others it may continue with a dead one. */
const HEALED_TYPES = new Set(['unavailable', 'cancelled', 'not-leader']);

const LONGEST_PAUSE_MS = 1_000;

/**
 * Classifies an error of the client, which is one of its own (with `type`), a raw gRPC one (with `code`) or a plain one
 * (failed discovery). Anything not known to be final counts as passing: a server that starts, elects a leader or goes
 * away responds in ways that the client reports as unknown errors, and repeating with the same ids is safe.
 */
export function failureOf(error: unknown): Failure {
  if (error instanceof StoreUnavailable || error instanceof TypeError || error instanceof RangeError) return 'final';
  const { type, code } = fields(error);
  if (type === 'wrong-expected-version') return 'wrong-revision';
  if (type === 'stream-deleted') return 'stream-deleted';
  if (type === 'stream-not-found') return 'stream-not-found';
  if (typeof type === 'string' && FINAL_TYPES.has(type)) return 'final';
  return typeof code === 'number' && FINAL_CODES.has(code) ? 'final' : 'passing';
}

/** True if nothing was answered: after this, others on the same connection may wait in vain too. */
export function isSilence(error: unknown): boolean {
  return error instanceof NoAnswer || fields(error).type === 'deadline-exceeded';
}

/** True if the client may continue with what has just failed, such as a stream that nobody answers any more. */
export function leavesClientStuck(error: unknown): boolean {
  const { type } = fields(error);
  return failureOf(error) === 'passing' && !(typeof type === 'string' && HEALED_TYPES.has(type));
}

/** True if the server says that there is no event at a position: gRPC INVALID_ARGUMENT. */
export function isInvalidPosition(error: unknown): boolean {
  const { type, code } = fields(error);
  return type === 'invalid-argument' || code === 3;
}

/** True if the server refuses the user: a wrong login, or a missing right. */
export function isDenied(error: unknown): boolean {
  const { type, code } = fields(error);
  return type === 'access-denied' || code === 7 || code === 16;
}

/** A final failure for callers of the port: what was refused, and what the operator has to do. */
export function refused(what: string, error: unknown): StoreUnavailable {
  if (error instanceof StoreUnavailable) return error;
  const refusing = `the event store refused ${what}`;
  if (isDenied(error)) {
    return new StoreRefused(
      `${refusing}: access is denied; check user and password, and that the user may read $all and write our streams`,
      { kind: 'access-denied' },
      { cause: error },
    );
  }
  const reason = errorMessage(error);
  return new StoreUnavailable(`${refusing}: ${reason}`, { cause: error });
}

/**
 * Why an append is too large, undefined for other errors. The client knows only the limit of an append. It
 * reports KurrentDB's limit of one event as an unknown error, with the number in its text or, in a batch, without it.
 */
export function tooLarge(stream: string, error: unknown, bytes: () => number): StoreRefused | undefined {
  const refusal = sizeRefusal(error, bytes);
  if (refusal === undefined) return undefined;
  const { limit, setting } = refusal;
  return new StoreRefused(
    `the event store refused an append to stream \`${stream}\`: it is larger than ` +
      `${limit === undefined ? 'the server accepts' : `${limit} bytes`}; raise ${setting} of the server`,
    refusal,
    { cause: error },
  );
}

function sizeRefusal(error: unknown, bytes: () => number): (TooLarge & { readonly setting: string }) | undefined {
  const { type, code, maxAppendSize } = fields(error);
  if (type === 'maximum-append-size-exceeded') {
    return { kind: 'too-large', limit: Number(maxAppendSize), setting: 'MaxAppendSize' };
  }
  const message = error instanceof Error ? error.message : '';
  const found = /MaximumAppendEventSizeExceeded|exceeds Maximum Append Event Size of (\d+)/.exec(message);
  if (found) {
    const [, limit] = found;
    return { kind: 'too-large', ...(limit ? { limit: Number(limit) } : {}), setting: 'MaxAppendEventSize' };
  }
  return code === RESOURCE_EXHAUSTED && bytes() > SMALL ? { kind: 'too-large', setting: 'MaxAppendSize' } : undefined;
}

/** How long a call is retried, and how fast. */
export interface Patience {
  readonly giveUpAfterMs: number;
  readonly retryAfterMs: number;
  /** How long the server has not answered anybody, in milliseconds, if that is known: the call does not wait longer for it. */
  readonly silentMs?: () => number;
}

/** How long nobody may have been answered, in milliseconds, before calls are no longer sent. */
const LONGEST_SILENCE_MS = 7_000;

/** True if there is no point in another call now. */
export function isTooSilent({ giveUpAfterMs, silentMs }: Patience): boolean {
  return giveUpAfterMs < Infinity && (silentMs?.() ?? 0) > LONGEST_SILENCE_MS;
}

/** The attempts of one call: the pauses grow, with jitter so that many callers do not retry at once. */
export class Tries {
  readonly #what: string;
  readonly #patience: Patience;
  #since = performance.now();
  #failed = 0;

  constructor(what: string, patience: Patience) {
    this.#what = what;
    this.#patience = patience;
  }

  /** Call this when something has arrived: the time limit starts again. */
  progress(): void {
    this.#since = performance.now();
    this.#failed = 0;
  }

  /**
   * Waits until the next attempt is due, or the signal ends the wait.
   * @throws {StoreUnavailable} if there is no point in one, or no time left
   */
  async again(error: unknown, signal?: AbortSignal): Promise<void> {
    if (failureOf(error) === 'final') throw refused(this.#what, error);
    const pauseMs =
      Math.min(LONGEST_PAUSE_MS, this.#patience.retryAfterMs * 2 ** this.#failed++) * (0.5 + Math.random() / 2);
    const elapsed = performance.now() - this.#since;
    if (elapsed + pauseMs > this.#patience.giveUpAfterMs || isTooSilent(this.#patience)) {
      const reason = errorMessage(error);
      throw new StoreUnavailable(
        `the event store has not responded to ${this.#what} for ${Math.round(elapsed)} ms, so its outcome is unknown: ${reason}`,
        { cause: error },
      );
    }
    // The signal ends the wait.
    await pause(pauseMs, undefined, signal ? { signal } : {}).catch(() => undefined);
  }
}

/**
 * What an attempt resolves to, repeated while that can help; undefined if the signal ends it before.
 * @throws {StoreUnavailable} as `Tries.again` does
 */
export async function retry<T>(
  what: string,
  patience: Patience,
  attempt: () => Promise<T>,
  signal?: AbortSignal,
): Promise<T | undefined> {
  const tries = new Tries(what, patience);
  while (!signal?.aborted) {
    try {
      return await attempt();
    } catch (error) {
      await tries.again(error, signal);
    }
  }
  return undefined;
}

/**
 * The promise's outcome.
 * @param waiting has its rejection meanwhile: whoever knows that there will be no outcome calls it
 * @throws {NoAnswer} if it has none in time; a later one is ignored
 */
export function within<T>(
  promise: Promise<T>,
  milliseconds: number,
  waiting?: Set<(error: unknown) => void>,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const end = (): void => {
      clearTimeout(timer);
      waiting?.delete(lose);
    };
    const lose = (error: unknown): void => {
      end();
      reject(error instanceof Error ? error : new Error(String(error)));
    };
    const timer = setTimeout(() => lose(new NoAnswer(milliseconds)), milliseconds);
    waiting?.add(lose);
    promise.then((value) => {
      end();
      resolve(value);
    }, lose);
  });
}

function fields(error: unknown): { type?: unknown; code?: unknown; maxAppendSize?: unknown } {
  return typeof error === 'object' && error !== null ? error : {};
}
