import { isDeepStrictEqual } from 'node:util';
import { beginningOf, recordedChild } from '../decide/found-organization.js';
import { organizationStream } from '../domain/organization/organization.js';
import type { EventMetadata } from '../ledger/chain.js';
import type { EventReader, RecordedEvent } from '../ledger/event-store.js';

/**
 * A sub-organization must match what its parent recorded about it.
 * @returns what is wrong, as a sentence
 */
export async function foundingProblem(
  store: EventReader,
  organizationId: string,
  recorded: RecordedEvent,
): Promise<string | undefined> {
  const { parentOrganizationId, parentRevision } = recorded.data as {
    readonly parentOrganizationId?: string;
    readonly parentRevision?: number;
  };
  if (parentOrganizationId === undefined || parentRevision === undefined) return undefined;
  for await (const said of store.read(organizationStream(parentOrganizationId), parentRevision)) {
    const child = recordedChild(said, parentRevision);
    if (child?.subOrganizationId !== organizationId) break;
    const beginning = beginningOf(child).map(factOf);
    const stored = await firstOf(store, recorded.stream, beginning.length);
    const isAlike = isDeepStrictEqual(stored.map(factOf), beginning);
    return isAlike ? undefined : `it does not begin as \`${parentOrganizationId}\` recorded it`;
  }
  return `organization \`${parentOrganizationId}\` has not recorded this sub-organization at its revision ${parentRevision}`;
}

async function firstOf(store: EventReader, stream: string, count: number): Promise<RecordedEvent[]> {
  const events: RecordedEvent[] = [];
  for await (const event of store.read(stream)) {
    if (events.push(event) === count) break;
  }
  return events;
}

function factOf({ type, data, metadata }: Pick<RecordedEvent, 'type' | 'data' | 'metadata'>): unknown {
  return { type, data, hash: (metadata as EventMetadata).hash };
}
