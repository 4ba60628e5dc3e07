import { ReadFirst } from '../decide/decision-context.js';
import { CoordinatorError } from '../domain/errors.js';
import { MeterSpent } from '../domain/steps.js';
import type { QueuePath } from '../fairness/fair-queue.js';
import { largeBody, thisThread } from '../fairness/turns.js';
import type { NewEvent } from '../ledger/event-store.js';
import type { LoadedOrganization } from '../ledger/loaded-organization.js';
import { HalfApplied } from './apply-and-seal.js';
import type { Attempt } from './attempts.js';
import type { RequestDecider } from './decide-request.js';
import type { Decided, PendingRequest, ToPrepare } from './pending-request.js';

/**
 * How long a batch is decided, not counting others' turns, before the rest moves to the next batch, in milliseconds:
 * that is how long its requests wait for costly requests of others.
 */
const longestBatchMs = 500;

/** Outcomes of the requests in a batch, before anything is recorded. */
export interface DecidedBatch {
  readonly events: NewEvent[];
  readonly decided: Decided[];
  readonly refused: { readonly pending: PendingRequest; readonly error: unknown }[];
  /** Allowed on a head that may be stale, and about to be prepared with side effects. */
  readonly allowed: { readonly pending: PendingRequest; readonly outcome: ToPrepare }[];
  /** Preparations whose output will not be recorded. */
  readonly lost: Attempt[];
  /** Not decided: they go into the next batch. */
  readonly postponed: readonly PendingRequest[];
}

/** What a batch is decided on. */
interface DecidedOn {
  readonly loaded: LoadedOrganization;
  /** As recorded. */
  readonly parent: LoadedOrganization | undefined;
  readonly readParent: () => Promise<LoadedOrganization | undefined>;
  readonly path: QueuePath;
  /** The head was just read. */
  readonly isNewest: boolean;
}

/**
 * Decides requests in order, each on the state left by the previous one. Those that only need something read, or
 * prepared without side effects, are sent off at once; they come back and are decided again.
 */
export async function decideBatch(
  decider: RequestDecider,
  requests: readonly PendingRequest[],
  { loaded, parent: parentBefore, readParent, path, isNewest }: DecidedOn,
): Promise<DecidedBatch> {
  let parent = parentBefore;
  const batch: DecidedBatch = { events: [], decided: [], refused: [], allowed: [], lost: [], postponed: [] };
  let spentMs = 0;
  for (const [index, pending] of requests.entries()) {
    // A batch is decided as one, but others' turns come in between.
    const turn = index > 0 ? thisThread.next(path, { alone: isLarge(pending) }) : undefined;
    if (turn) await turn;
    let started = performance.now();
    try {
      // It was decided on as well meanwhile, and its append may be refused.
      while (parent && parent.pending.length > 0) {
        parent = await readParent();
        started = performance.now();
      }
      const outcome = decider.decide(pending, loaded, parent, batch.events);
      if (outcome.kind === 'decided') batch.decided.push(outcome);
      else {
        if (pending.attempt) batch.lost.push(pending.attempt);
        if (outcome.hasSideEffects && !isNewest) batch.allowed.push({ pending, outcome });
        else pending.resolve(outcome);
      }
    } catch (error) {
      if (error instanceof HalfApplied) throw error.cause;
      if (error instanceof MeterSpent) {
        batch.refused.push({ pending, error: decidedTooOften(loaded.organization.organizationId) });
      } else if (error instanceof ReadFirst) {
        if (pending.attempt) batch.lost.push(pending.attempt);
        pending.resolve({ kind: 'read', ahead: error.ahead });
      } else batch.refused.push({ pending, error });
    }
    spentMs += performance.now() - started;
    if (spentMs >= longestBatchMs) return { ...batch, postponed: requests.slice(index + 1) };
  }
  return batch;
}

/** The requests of a batch that are still to be answered. */
export function requestsOf({ decided, refused, allowed, postponed }: DecidedBatch): readonly PendingRequest[] {
  return [...[...decided, ...refused, ...allowed].map(({ pending }) => pending), ...postponed];
}

/** A body so large that it takes a turn of its own. */
export function isLarge({ request }: PendingRequest): boolean {
  return request.body.length > largeBody;
}

function decidedTooOften(organizationId: string): CoordinatorError {
  return new CoordinatorError(
    'UNAVAILABLE',
    `organization \`${organizationId}\` changed while this was being decided, and its policies take too many steps to evaluate ` +
      'again: send the same request again',
    { retryAfterSeconds: 1 },
  );
}
