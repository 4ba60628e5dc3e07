import { readableEvent } from '../../domain/activity/redaction.js';
import type { OrganizationView } from '../../domain/organization/organization.js';
import { told } from './state-members.js';
import { maps, scalars, type Maps, type Scalars, type SliceTold } from './state-slices.js';

/* An organization's state as documents for people. */

/** The organization itself, without its contents. */
export function organizationTold(organization: OrganizationView, now: number): Record<string, unknown> {
  return readable(told(scalars, organization as Scalars, now), now);
}

/**
 * What was sent may still be usable until it is known to be done, wherever it was recorded, and a code that is named
 * may be live.
 */
function readable(data: Record<string, unknown>, now: number): Record<string, unknown> {
  return readableEvent({ type: '', data }, { status: 'ACTIVITY_STATUS_PENDING' }, now, { at: now }).data;
}

/** Something in the state, not described yet. */
export interface Thing {
  readonly list: string;
  readonly noun: string;
  readonly id: string;
  readonly name: string | undefined;
  readonly begins: string;
  readonly ends: string;
  /** The record itself; the same object as long as nothing has changed it. */
  readonly value: unknown;
  readonly told: (now: number) => Readonly<Record<string, unknown>>;
}

/** The things of one map. */
function* thingsOf(slice: keyof Maps, organization: OrganizationView): Generator<Thing> {
  const kind = maps[slice] as SliceTold<unknown, unknown> | 'told elsewhere';
  if (kind === 'told elsewhere') return;
  const { list, noun, begins, ends } = kind;
  for (const [key, value] of organization[slice] as ReadonlyMap<unknown, unknown>) {
    yield {
      list,
      noun,
      id: kind.id(key, value),
      name: kind.name(value, key),
      begins,
      ends,
      value,
      told: (now) => readable(kind.told(value, now, key), now),
    };
  }
}

const slices = Object.keys(maps) as readonly (keyof Maps)[];

/** Everything in an organization, in an order that is the same for the same history. */
export function* allThings(organization: OrganizationView): Generator<Thing> {
  for (const slice of slices) yield* thingsOf(slice, organization);
}

/** Names of the lists in a document. */
export const listNames: readonly string[] = slices.flatMap((slice) => {
  const kind = maps[slice];
  return kind === 'told elsewhere' ? [] : [kind.list];
});

/** The records in which two states differ, by list: what each has, and whether it is the same record. */
export function* differing(
  before: OrganizationView,
  after: OrganizationView,
): Generator<{ readonly old: Thing | undefined; readonly now: Thing | undefined }> {
  for (const slice of slices) {
    const earlier = new Map([...thingsOf(slice, before)].map((thing) => [thing.id, thing]));
    for (const thing of thingsOf(slice, after)) {
      const old = earlier.get(thing.id);
      earlier.delete(thing.id);
      if (!old || old.value !== thing.value) yield { old, now: thing };
    }
    for (const old of earlier.values()) yield { old, now: undefined };
  }
}

/** The whole state as one document: the organization, and its things by list. */
export function documentOf(organization: OrganizationView, now: number): Record<string, unknown> {
  const lists: Record<string, unknown[]> = {};
  for (const { list, told: tell } of allThings(organization)) (lists[list] ??= []).push(tell(now));
  return { organization: organizationTold(organization, now), ...lists };
}
