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
  /** The same, including everything recorded by now. @throws {CoordinatorError} UNAVAILABLE if it is far behind */
  recordedByNow(organizationId: string): Promise<ParentsWord | undefined>;
  /** Ids of those that a parent has recorded and that have no stream yet. */
  unfounded(): readonly string[];
  /** Ids of those that have a stream but that no parent has recorded. */
  unconfirmed(): readonly string[];
}
