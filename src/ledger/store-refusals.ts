import { CoordinatorError } from '../domain/errors.js';
import { StoreLocked, StoreRefused, StoreUnavailable, WrongRevision, type TooLarge } from './event-store.js';

/** When a request may be sent again while another program has the lock of the store, in seconds. */
const lockedRetrySeconds = 5;

/** The error for callers if the store cannot be read. */
export function storeUnreadable(error: unknown): unknown {
  if (error instanceof StoreRefused) return refusedByStore(error);
  if (!(error instanceof StoreUnavailable)) return error;
  return new CoordinatorError('UNAVAILABLE', 'the event store did not respond; send the same request again shortly', {
    cause: error,
  });
}

/** An attempt that took longer than this, in milliseconds, was slow because of the store and not of other writers. */
const slowAttemptMs = 1_000;

/**
 * The error for callers if an append did not succeed.
 * @param elapsedMs how long all attempts took together
 */
export function storeRefusal(error: unknown, organizationId: string, attempts: number, elapsedMs = 0): unknown {
  if (error instanceof WrongRevision) {
    if (elapsedMs > attempts * slowAttemptMs) {
      return new CoordinatorError(
        'UNAVAILABLE',
        `the event store took ${(elapsedMs / 1_000).toFixed(1)} s, in which organization \`${organizationId}\` changed; send the ` +
          'same request again',
        { cause: error },
      );
    }
    return new CoordinatorError(
      'ABORTED',
      `organization \`${organizationId}\` changed ${attempts} times while this was being decided; send the same request again`,
      { cause: error },
    );
  }
  if (error instanceof StoreRefused) return refusedByStore(error);
  if (error instanceof StoreLocked) {
    return new CoordinatorError(
      'UNAVAILABLE',
      'nothing was recorded, because another program has locked the event store; send the same request again',
      { retryAfterSeconds: lockedRetrySeconds, cause: error },
    );
  }
  if (error instanceof StoreUnavailable) {
    return new CoordinatorError(
      'UNAVAILABLE',
      'the event store did not confirm the write; send the same request again: it takes effect at most once',
      { cause: error },
    );
  }
  return error;
}

/** The error for callers who needed what an organization has recorded, while its own appends kept failing. */
export function keptUnrecorded(organizationId: string): CoordinatorError {
  return new CoordinatorError(
    'UNAVAILABLE',
    `organization \`${organizationId}\` kept changing while it was being read; send the same request again`,
    { retryAfterSeconds: 1 },
  );
}

/** For callers whose sub-organization is recorded by its parent, but has a beginning too large for one append; else undefined. */
export function foundingRefusal(error: unknown): CoordinatorError | undefined {
  if (!(error instanceof StoreRefused) || error.refusal.kind !== 'too-large') return undefined;
  return new CoordinatorError(
    'UNAVAILABLE',
    `the sub-organization is recorded, but cannot be used yet: ${acceptedSize(error.refusal)}, and its first events take ` +
      `more. Ask the operator to raise ${settingOf(error.refusal)}: it is completed when somebody asks for it after that`,
    { cause: error },
  );
}

/** Repeating does not help until someone changes a setting; `errors.filter.ts` logs the cause. */
function refusedByStore(error: StoreRefused): CoordinatorError {
  const { refusal } = error;
  if (refusal.kind === 'too-large') {
    return new CoordinatorError(
      'OUT_OF_RANGE',
      `too large, nothing was recorded: ${acceptedSize(refusal)}, and an activity includes its body and the objects it ` +
        `creates; send less, or ask the operator to raise ${settingOf(refusal)}`,
      { category: 'REQUEST_INVALID', cause: error },
    );
  }
  return new CoordinatorError(
    'UNAVAILABLE',
    'the event store refuses access to this server, and sending the request again will not help: its operator must restore ' +
      'the right to read and write; requests sent again after that take effect at most once',
    { cause: error },
  );
}

function acceptedSize({ limit, setting }: TooLarge): string {
  const unit = setting === 'MaxAppendEventSize' ? 'event' : 'append';
  return `the event store accepts ${limit === undefined ? 'fewer' : limit} bytes in one ${unit}`;
}

function settingOf({ setting = 'MaxAppendSize' }: TooLarge): string {
  return `${setting} of the event store`;
}
