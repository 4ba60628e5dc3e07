import type { EventReader, RecordedEvent } from '../../src/ledger/event-store.js';

/** A store with one stream, and with that of a parent under its own name. */
export function storeWith(
  stream: readonly RecordedEvent[],
  parent?: { readonly organizationId: string; readonly events: readonly RecordedEvent[] },
): Pick<EventReader, 'read'> {
  return {
    async *read(name, from = 0) {
      const events = name === `organization-${parent?.organizationId}` ? parent!.events : stream;
      yield* await Promise.resolve(events.slice(from));
    },
  };
}
