import type { LoadedOrganization } from './loaded-organization.js';
import { foundingRefusal, storeUnreadable } from './store-refusals.js';

/** What parents have recorded about their sub-organizations. */
export interface ParentsRecords {
  /** Founds a sub-organization without a stream if its parent has recorded it; returns whether the parent has. */
  finish(organizationId: string): Promise<boolean>;
  /** Whether the parent has recorded one that was founded before it was decided on. */
  isConfirmed(organizationId: string): Promise<boolean>;
}

/** Which organizations exist: one that was decided but never recorded by its parent does not. */
export class Existence {
  /** Folded sub-organizations of earlier releases whose parents have recorded them. */
  private readonly confirmed = new WeakSet<LoadedOrganization>();

  constructor(private readonly parents: ParentsRecords | undefined) {}

  /** Whether its parent has recorded it, and a crash kept its own stream from being written. */
  async finish(organizationId: string): Promise<boolean> {
    try {
      return (await this.parents?.finish(organizationId)) ?? false;
    } catch (error) {
      throw foundingRefusal(error) ?? storeUnreadable(error);
    }
  }

  /** Whether its own stream says that it exists; a deleted one can do nothing, even for those who knew it. */
  isSaidBy(loaded: LoadedOrganization): boolean {
    const { parentOrganizationId, parentRevision, isDeleted } = loaded.organization;
    return (
      parentOrganizationId === undefined || parentRevision !== undefined || isDeleted || this.confirmed.has(loaded)
    );
  }

  /** Whether its parent says so. */
  async isConfirmed(loaded: LoadedOrganization): Promise<boolean> {
    try {
      if (!(await this.parents?.isConfirmed(loaded.organization.organizationId))) return false;
    } catch (error) {
      throw storeUnreadable(error);
    }
    this.confirmed.add(loaded);
    return true;
  }
}
