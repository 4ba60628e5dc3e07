import { noteTime } from '../ledger/recorded-time.js';
import { tooMuchToRecord } from '../decide/refusals.js';
import { recordedForm } from '../domain/activity/recorded-form.js';
import { evolve, organizationStream, type OrganizationEvent } from '../domain/organization/organization.js';
import type { NewEvent } from '../ledger/event-store.js';
import { noteFingerprint, type LoadedOrganization } from '../ledger/loaded-organization.js';
import { seal } from '../ledger/seal.js';

/** Maximum bytes of the events of one request on any store: 4 MiB less the quotes and names around them. */
const maxActivityBytes = 4 * 1024 * 1024 - 4096;
/** Placeholder position for events of a batch that is not recorded yet. */
const unsettled = 2n ** 63n;

/** The folded state contains some of a request's events: no decision can be based on it any more. */
export class HalfApplied extends Error {
  constructor(override readonly cause: unknown) {
    super('an event could not be taken into the folded state');
  }
}

/**
 * Applies the events of one request to the folded state before they are recorded, and returns them sealed.
 * @throws {HalfApplied} if no decision can be based on the state any more
 */
export function applyAndSeal(
  loaded: LoadedOrganization,
  events: readonly OrganizationEvent[],
  activityId: string,
  causationId: string,
  at: number,
): readonly NewEvent[] {
  // Sealed before the state changes: what cannot be written must leave no trace in it.
  const sealed = sealEvents(loaded, events, activityId, causationId, at);
  try {
    noteTime(loaded.organization, at);
    for (const event of events) {
      evolve(loaded.organization, event, at);
      noteFingerprint(loaded, event, unsettled);
    }
  } catch (cause) {
    throw new HalfApplied(cause);
  }
  return sealed;
}

/** Adds new events to the stream's hash chain, and moves the loaded head to the last of them. */
function sealEvents(
  loaded: LoadedOrganization,
  events: readonly OrganizationEvent[],
  activityId: string,
  causationId: string,
  at: number,
): readonly NewEvent[] {
  const stream = organizationStream(loaded.organization.organizationId);
  const metadata = { at, $correlationId: activityId, $causationId: causationId };
  const facts = events.map(({ type, data }) => ({ type, data: recordedForm(type, data), metadata }));
  const sealed = seal(stream, loaded, facts);
  if (sealed.bytes > maxActivityBytes) throw tooMuchToRecord(sealed.bytes, maxActivityBytes);
  loaded.hash = sealed.tail.hash;
  loaded.revision = sealed.tail.revision;
  loaded.pending.push(...sealed.hashes);
  return sealed.events;
}
