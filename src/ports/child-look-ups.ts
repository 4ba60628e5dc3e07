export const CHILD_LOOK_UPS = Symbol('ChildLookUps');

/** Where a parent has recorded a sub-organization: an event of the parent's stream. */
export interface ParentsWord {
  readonly parentId: string;
  readonly revision: number;
}

/** What the read model of sub-organizations knows of them. */
export interface ChildLookUps {
  /** As far as the read model has come. */
  recorded(organizationId: string): ParentsWord | undefined;
  /** The same, of everything that is recorded by now. @throws {CoordinatorError} UNAVAILABLE when it is far behind */
  recordedByNow(organizationId: string): Promise<ParentsWord | undefined>;
  /** Ids of those that a parent has recorded, and that have no stream yet. */
  unfounded(): readonly string[];
  /** Ids of those that have a stream, which no parent has recorded. */
  unconfirmed(): readonly string[];
}
