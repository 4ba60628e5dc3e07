import { apply, nothingLoaded, type LoadedOrganization } from '../ledger/load-organization.js';
import { organizationStream } from '../domain/organization/organization.js';
import type { EventReader } from '../ledger/event-store.js';

/**
 * An organization as it was when its stream ended at a revision, its chain checked so far.
 * @throws {BrokenChain} when an event is not the one that was recorded
 * @throws {RangeError} when the stream ends before the revision
 */
export async function foldTo(
  store: EventReader,
  organizationId: string,
  revision: number,
): Promise<Pick<LoadedOrganization, 'organization' | 'revision'>> {
  const loaded = nothingLoaded();
  for await (const recorded of store.read(organizationStream(organizationId))) {
    if (recorded.revision > revision) break;
    apply(loaded, recorded);
  }
  if (loaded.revision !== revision) {
    throw new RangeError(
      `organization \`${organizationId}\` has no revision ${revision}: the last one is ${loaded.revision}`,
    );
  }
  return loaded;
}
