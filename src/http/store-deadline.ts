import type { CallHandler, ExecutionContext, NestInterceptor } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { from, lastValueFrom, type Observable } from 'rxjs';
import { CoordinatorError } from '../domain/errors.js';
import type { EventStore } from '../ledger/event-store.js';

/** How long a request may take while a remote store does not respond, from its first byte, in milliseconds. */
const longestMs = 8_500;
const recheckMs = 250;

type RemoteStore = Pick<NonNullable<EventStore['remote']>, 'isStalled'>;

/**
 * No request takes longer than 10 s because a remote store does not respond, however many calls it makes. Requests that are slow
 * for other reasons, such as a full queue, have limits of their own.
 */
export class StoreDeadline implements NestInterceptor {
  constructor(private readonly remote: RemoteStore) {}

  intercept(context: ExecutionContext, next: CallHandler<unknown>): Observable<unknown> {
    const { elapsedTime } = context.switchToHttp().getResponse<FastifyReply>();
    return from(inTime(lastValueFrom(next.handle()), this.remote, longestMs - elapsedTime));
  }
}

/**
 * The outcome of a request; the error for callers if it has taken too long and the store does not respond. The work continues, and
 * the same request finds what has become of it.
 */
export function inTime<T>(work: Promise<T>, remote: RemoteStore, limitMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const check = (): void => {
      if (remote.isStalled()) return reject(outcomeUnknown());
      timer = setTimeout(check, recheckMs);
    };
    let timer = setTimeout(check, Math.max(0, limitMs));
    work.finally(() => clearTimeout(timer)).then(resolve, reject);
  });
}

function outcomeUnknown(): CoordinatorError {
  return new CoordinatorError(
    'UNAVAILABLE',
    'the event store does not respond, and the outcome of this request is unknown; send the same request again',
  );
}
