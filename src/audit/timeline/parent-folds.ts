import type { Decision } from '../../domain/activity/events.js';
import type { EventReader } from '../../ledger/event-store.js';
import { nothingLoaded, type LoadedOrganization } from '../../ledger/loaded-organization.js';
import { foldToPoint } from './fold-to.js';

/** A parent as decisions in its sub-organization saw it: one state, folded on from one decision to the next. */
export class ParentFolds {
  private loaded: LoadedOrganization = nothingLoaded();

  constructor(private readonly store: Pick<EventReader, 'read'>) {}

  /** The same object at every revision; the next call changes it. */
  async at({ organizationId, revision }: NonNullable<Decision['authority']>): Promise<LoadedOrganization> {
    const isOther = this.loaded.organization.organizationId !== organizationId;
    if (isOther || this.loaded.revision > revision) this.loaded = nothingLoaded();
    return (this.loaded = await foldToPoint(this.store, organizationId, { by: 'revision', revision }, this.loaded));
  }
}
