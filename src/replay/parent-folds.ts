import type { Decision } from '../domain/activity/events.js';
import type { EventReader } from '../ledger/event-store.js';
import { nothingLoaded, type LoadedOrganization } from '../ledger/loaded-organization.js';
import { foldToPoint } from './fold-to.js';

/** A parent as decisions in its sub-organization have seen it: one state, which is folded on from one to the next. */
export class ParentFolds {
  private loaded: LoadedOrganization = nothingLoaded();

  constructor(private readonly store: EventReader) {}

  /** It is the same object at every revision, and is changed by the next call. */
  async at({ organizationId, revision }: NonNullable<Decision['authority']>): Promise<LoadedOrganization> {
    const isOther = this.loaded.organization.organizationId !== organizationId;
    if (isOther || this.loaded.revision > revision) this.loaded = nothingLoaded();
    return (this.loaded = await foldToPoint(this.store, organizationId, { by: 'revision', revision }, this.loaded));
  }
}
