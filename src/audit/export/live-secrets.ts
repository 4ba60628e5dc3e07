import { readableDenial, readableEvent } from '../../domain/activity/redaction.js';
import type { EventMetadata } from '../../ledger/chain.js';
import type { RecordedEvent } from '../../ledger/event-store.js';
import { readEvent } from '../../ledger/read-event.js';

/** What decides whether a secret is still usable. */
export interface Seen {
  /** Ids of completed activities: their codes are used up. */
  readonly completed: ReadonlySet<string>;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** A code, or a secret sealed to another installation, as far as any parameter's form goes: its decision is made again. */
const inPlace = '0'.repeat(44);

/** The data of an event without usable secrets (R3); the same object if it has none. */
export function withoutLiveSecrets(event: RecordedEvent, data: object, { completed, now }: Seen): object {
  if (event.type === 'ActivityDenied') return readableDenial(data as Parameters<typeof readableDenial>[0], now);
  const { $correlationId } = event.metadata as EventMetadata;
  const status = completed.has($correlationId) ? 'ACTIVITY_STATUS_COMPLETED' : 'ACTIVITY_STATUS_PENDING';
  return readableEvent({ type: event.type, data }, { status }, now, { inPlace }).data;
}

/** As readers see it, not as it is stored. */
export function dataOf(event: RecordedEvent): object {
  return readEvent(event).data as object;
}

/** Whether an event has a secret that is still usable. */
export function isWithheld(event: RecordedEvent, seen: Seen): boolean {
  const data = dataOf(event);
  return withoutLiveSecrets(event, data, seen) !== data;
}
