import { isMap } from 'node:util/types';
import { fold, nothingLoaded, type LoadedOrganization } from '../../ledger/loaded-organization.js';
import {
  organizationStream,
  type Organization,
  type OrganizationView,
} from '../../domain/organization/organization.js';
import type { EventReader } from '../../ledger/event-store.js';
import type { Point } from '../../read-models/states.js';
import { isBy } from './point-reached.js';

/**
 * An organization as of a revision of its stream, with the chain verified so far.
 * @throws {BrokenChain} if an event is not the one that was recorded
 * @throws {RangeError} if the stream ends before the revision
 */
export async function foldTo(
  store: Pick<EventReader, 'read'>,
  organizationId: string,
  revision: number,
): Promise<Pick<LoadedOrganization, 'organization' | 'revision' | 'hash'>> {
  const loaded = await foldToPoint(store, organizationId, { by: 'revision', revision });
  if (loaded.revision !== revision) {
    throw new RangeError(
      `organization \`${organizationId}\` has no revision ${revision}: the last one is ${loaded.revision}`,
    );
  }
  return loaded;
}

/**
 * An organization as of a point, with the chain verified so far; at revision -1 if it has no event by then.
 * @param from the state folded so far, which is changed
 * @throws {BrokenChain} if an event is not the one that was recorded
 */
export async function foldToPoint(
  store: Pick<EventReader, 'read'>,
  organizationId: string,
  point: Point,
  from: LoadedOrganization = nothingLoaded(),
): Promise<LoadedOrganization> {
  for await (const recorded of store.read(organizationStream(organizationId), from.revision + 1, from.hash)) {
    if (!isBy(point, recorded)) break;
    fold(from, recorded);
  }
  return from;
}

/**
 * A snapshot of the current state: its maps change with each event, but the records in them never do, nor does a map that is empty
 * (`slices.ts`).
 */
export function keptState(organization: OrganizationView): Organization {
  const entries = Object.entries(organization).map(([slice, value]: [string, unknown]) => {
    return [slice, isMap(value) && value.size > 0 ? new Map<unknown, unknown>(value) : value] as const;
  });
  return Object.fromEntries(entries) as unknown as Organization;
}
