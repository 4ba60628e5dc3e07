import { noteTime } from '../ledger/recorded-time.js';
import { tooMuchToRecord } from '../decide/refusals.js';
import { recordedForm } from '../domain/activity/recorded-form.js';
import { evolve, organizationStream, type OrganizationEvent } from '../domain/organization/organization.js';
import type { NewEvent } from '../ledger/event-store.js';
import { noteFingerprint, type LoadedOrganization } from '../ledger/loaded-organization.js';
import { seal } from '../ledger/seal.js';

/** Bytes of the events of one request at most, whatever the store could take: 4 MiB less the quotes and names around them. */
const maxActivityBytes = 4 * 1024 * 1024 - 4096;
/** Stands for the position of events of a batch that is not recorded yet. */
const unsettled = 2n ** 63n;

/** The folded state has some of a request's events: nothing can be decided on it any more. */
export class HalfApplied extends Error {
  constructor(override readonly cause: unknown) {
    super('an event could not be taken into the folded state');
  }
}

/**
 * Takes the events of one request into the folded state, before they are recorded, and gives them sealed.
 * @throws {HalfApplied} when the state can be decided on no more
 */
export function takeOn(
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

/** Links new events into the stream's hash chain and moves the loaded head on to the last of them. */
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
