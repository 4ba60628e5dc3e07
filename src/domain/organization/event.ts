import type { Organization } from './organization.js';

/** A fact in an organization's stream: a name in the past tense and plain JSON. Never edited, only superseded. */
export interface DomainEvent<Type extends string, Data> {
  readonly type: Type;
  readonly data: Data;
}

/**
 * One function per event of a noun. It changes the accumulator of a fold: maps in place, because a stream may be long;
 * the records inside are replaced, never edited, so that a record stays as it was when it was read. `at` is the
 * recorded time in milliseconds since the epoch.
 */
export type Evolvers<Event extends DomainEvent<string, unknown>> = {
  readonly [Type in Event['type']]: (
    organization: Organization,
    data: Extract<Event, { type: Type }>['data'],
    at: number,
  ) => void;
};

/** Only the members that are present: an event is hashed as JSON, which has no undefined. */
export function presentMembers<Members extends object>(
  members: Members,
): { [Name in keyof Members]?: Exclude<Members[Name], undefined> } {
  const present = Object.entries(members).filter(([, value]) => value !== undefined);
  return Object.fromEntries(present) as { [Name in keyof Members]?: Exclude<Members[Name], undefined> };
}
