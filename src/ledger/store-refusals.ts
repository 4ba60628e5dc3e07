import { CoordinatorError } from '../domain/errors.js';
import { StoreRefused, StoreUnavailable, WrongRevision } from './event-store.js';

/** What a caller is told when the store cannot be read. */
export function storeUnreadable(error: unknown): unknown {
  if (error instanceof StoreRefused) return refusedByStore(error);
  if (!(error instanceof StoreUnavailable)) return error;
  return new CoordinatorError('UNAVAILABLE', 'the event store did not answer; send the same request again shortly', {
    cause: error,
  });
}

/** What a caller is told when an append did not succeed. */
export function storeRefusal(error: unknown, organizationId: string, attempts: number): unknown {
  if (error instanceof WrongRevision) {
    return new CoordinatorError(
      'ABORTED',
      `organization \`${organizationId}\` changed ${attempts} times while this was decided; send the same request again`,
      { cause: error },
    );
  }
  if (error instanceof StoreRefused) return refusedByStore(error);
  if (error instanceof StoreUnavailable) {
    return new CoordinatorError(
      'UNAVAILABLE',
      'the event store did not confirm the write; send the same request again: it takes effect once at most',
      { cause: error },
    );
  }
  return error;
}

/** What no repetition helps against, until somebody changes a setting; `errors.filter.ts` logs the cause. */
function refusedByStore(error: StoreRefused): CoordinatorError {
  const { refusal } = error;
  if (refusal.kind === 'too-large') {
    return new CoordinatorError(
      'OUT_OF_RANGE',
      `too large to be recorded, and nothing was: the event store takes ${refusal.limit} bytes in one append, and an ` +
        'activity has its body and what it creates; send less, or ask the operator to raise MaxAppendSize of the event store',
      { category: 'REQUEST_INVALID', cause: error },
    );
  }
  return new CoordinatorError(
    'UNAVAILABLE',
    'the event store refuses access to this server, which sending again does not change: its operator has to give back ' +
      'the right to read and write; what is sent again after that takes effect once at most',
    { cause: error },
  );
}
