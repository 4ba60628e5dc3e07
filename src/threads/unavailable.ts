import { CoordinatorError } from '../domain/errors.js';

export const shuttingDown = 'the coordinator is shutting down';

/** What is refused because a thread was lost, or none is to begin: the same request may be sent again. */
export function unavailable(why: string): CoordinatorError {
  return new CoordinatorError('UNAVAILABLE', `${why}: send the same request again`, { retryAfterSeconds: 1 });
}
