export const CHILD_INDEX = Symbol('ChildIndex');

/** Where a parent recorded a sub-organization: an event of the parent's stream. */
export interface ParentRecord {
  readonly parentId: string;
  readonly revision: number;
}

/** The read model of sub-organizations. */
export interface ChildIndex {
  /** As far as the read model has come. */
  recorded(organizationId: string): ParentRecord | undefined;
  /** Ids of those that a parent has recorded and that have no stream yet. */
  unfounded(): readonly string[];
}
