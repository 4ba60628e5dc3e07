import { recordedChild } from '../decide/found-organization.js';
import { vaultsEndedBy } from '../domain/organization/vaults.js';
import type { NewEvent } from '../ledger/event-store.js';
import type { LoadedOrganization } from '../ledger/loaded-organization.js';
import { foundingRefusal, storeRefusal } from '../ledger/store-refusals.js';
import type { DecidedBatch } from './decide-batch.js';
import type { CoordinatorPorts, Decided, SubmitResult } from './pending-request.js';
import type { BatchPorts } from './settle-batch.js';

/** Everything is durable: runs the follow-up work, and responds to each request of a batch. */
export async function respond(
  ports: BatchPorts,
  loaded: LoadedOrganization,
  { events, decided, refused, allowed, lost }: DecidedBatch,
  { revision, attempt }: { readonly revision: number; readonly attempt: number },
): Promise<void> {
  const { organization } = loaded;
  const { organizationId } = organization;
  for (const { pending, outcome } of allowed) pending.resolve(outcome);
  const inVain = refused.flatMap(({ pending }) => pending.attempt ?? []);
  const [founded] = await Promise.all([
    foundChildren(ports, revision, events),
    shredEnded(ports, decided),
    ports.preparations.lose(...lost, ...inVain),
  ]);
  for (const { pending, error } of refused) ports.refuse(pending, error, organizationId);
  // Also for requests that were known before: votes may have been recorded long after the submission.
  for (const { pending, result, refusal, afterwards } of decided) {
    try {
      if (refusal) throw refusal;
      if (pending.attempt) afterwards?.(ports.prepare(pending.attempt));
      const position = await founded.get(result.activityId)?.catch((error: unknown) => {
        throw foundingRefusal(error) ?? storeRefusal(error, organizationId, attempt);
      });
      pending.resolve({ kind: 'settled', result: resultAt(result, position ?? loaded.position) });
    } catch (error) {
      pending.reject(error);
    }
  }
  for (const one of decided) ports.onWaiting(one, organization);
}

/**
 * Writes the streams of sub-organizations that were just recorded, because callers may use them at once. Returns, by
 * the activity that created each, its position or why it does not exist yet.
 */
async function foundChildren(
  { children }: Pick<CoordinatorPorts, 'children'>,
  revision: number,
  events: readonly NewEvent[],
): Promise<ReadonlyMap<string, Promise<bigint>>> {
  const founded = new Map<string, Promise<bigint>>();
  for (const [index, event] of events.entries()) {
    const child = recordedChild(event, revision + 1 + index);
    if (child) founded.set(child.activityId, children.found(child));
  }
  await Promise.allSettled(founded.values());
  return founded;
}

/** Deleted secrets are gone before the response; after a crash here, the next start finds the rest. */
async function shredEnded({ shred }: Pick<CoordinatorPorts, 'shred'>, decided: readonly Decided[]): Promise<void> {
  const ended = decided.flatMap(({ added }) => added.flatMap(vaultsEndedBy));
  const unnamed = decided.flatMap(({ pending, added }) => pending.attempt?.end(added) ?? []);
  await Promise.all([...ended, ...unnamed].map((vaultId) => shred(vaultId)));
}

/** Member by member: members that follow a spread cost more than deciding (docs/performance.md). */
function resultAt(result: Decided['result'], position: bigint): SubmitResult {
  const { organizationId, organization, callerUserId, meter, activityId, record, appended } = result;
  return { organizationId, organization, callerUserId, meter, activityId, record, appended, position };
}
