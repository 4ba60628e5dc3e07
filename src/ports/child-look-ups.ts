export const CHILD_LOOK_UPS = Symbol('ChildLookUps');

/** Where a parent recorded a sub-organization: an event of the parent's stream. */
export interface ParentsWord {
  readonly parentId: string;
  readonly revision: number;
}

/** The read model of sub-organizations. */
export interface ChildLookUps {
  /** As far as the read model has come. */
  recorded(organizationId: string): ParentsWord | undefined;
  /** Ids of those that a parent has recorded and that have no stream yet. */
  unfounded(): readonly string[];
}
