import { isMap } from 'node:util/types';
import { apply, nothingLoaded, type LoadedOrganization } from '../ledger/loaded-organization.js';
import { organizationStream, type Organization, type OrganizationView } from '../domain/organization/organization.js';
import type { EventReader } from '../ledger/event-store.js';
import type { Point } from '../read-models/states.js';
import { isBy } from './points.js';

/**
 * An organization as it was when its stream ended at a revision, its chain checked so far.
 * @throws {BrokenChain} when an event is not the one that was recorded
 * @throws {RangeError} when the stream ends before the revision
 */
export async function foldTo(
  store: Pick<EventReader, 'read'>,
  organizationId: string,
  revision: number,
): Promise<Pick<LoadedOrganization, 'organization' | 'revision'>> {
  const loaded = await foldToPoint(store, organizationId, { by: 'revision', revision });
  if (loaded.revision !== revision) {
    throw new RangeError(
      `organization \`${organizationId}\` has no revision ${revision}: the last one is ${loaded.revision}`,
    );
  }
  return loaded;
}

/**
 * An organization as it was at a point, its chain checked so far; at revision -1 when it has no event by then.
 * @param from what is folded already, and is changed
 * @throws {BrokenChain} when an event is not the one that was recorded
 */
export async function foldToPoint(
  store: Pick<EventReader, 'read'>,
  organizationId: string,
  point: Point,
  from: LoadedOrganization = nothingLoaded(),
): Promise<LoadedOrganization> {
  for await (const recorded of store.read(organizationStream(organizationId), from.revision + 1)) {
    if (!isBy(point, recorded)) break;
    apply(from, recorded);
    // Only whoever answers repeated requests needs those.
    from.recent.clear();
  }
  return from;
}

/** The state as it is now, which stays so: its maps change with each event, the records in them never do. */
export function keptState(organization: OrganizationView): OrganizationView {
  const entries = Object.entries(organization).map(([slice, value]: [string, unknown]) => {
    return [slice, isMap(value) ? new Map<unknown, unknown>(value) : value] as const;
  });
  return Object.fromEntries(entries) as unknown as Organization;
}
