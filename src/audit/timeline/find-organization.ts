import { CoordinatorError } from '../../domain/errors.js';
import type { EventMetadata } from '../../ledger/chain.js';
import type { EventReader, RecordedEvent } from '../../ledger/event-store.js';
import { allEvents } from './all-events.js';

const organizationName = /^organization-(.+)$/;

/** The organization that the store recorded first: the root of its installation. */
export async function firstOrganization(store: EventReader): Promise<string | undefined> {
  return organizationOf(store, () => true);
}

/** The organization that an activity was submitted to. */
export async function organizationOfActivity(store: EventReader, activityId: string): Promise<string | undefined> {
  const wanted = activityId.toLowerCase();
  return organizationOf(store, ({ type, metadata }) => {
    return type === 'ActivitySubmitted' && (metadata as EventMetadata).$correlationId === wanted;
  });
}

async function organizationOf(
  store: EventReader,
  fits: (event: RecordedEvent) => boolean,
): Promise<string | undefined> {
  for await (const event of allEvents(store)) {
    const organizationId = organizationName.exec(event.stream)?.[1];
    if (organizationId !== undefined && fits(event)) return organizationId;
  }
  return undefined;
}

/** The refusal of a question about an activity that an organization's stream does not have. */
export function noEventsOf(activityId: string, organizationId: string): CoordinatorError {
  return new CoordinatorError(
    'NOT_FOUND',
    `organization \`${organizationId}\` has no events of activity \`${activityId}\`: if it was denied, see \`list_denials\``,
  );
}
