import { packedTypes, readForm } from '../domain/activity/recorded-form.js';
import type { EventMetadata } from './chain.js';
import type { RecordedEvent } from './event-store.js';

/** From one version of a type's `data` to the next. */
type Lift = (data: unknown) => unknown;

const unchanged: Lift = (data) => data;

/** The types that hold a decision. */
const decidedTypes: ReadonlySet<string> = new Set(['ActivitySubmitted', 'ActivityApproved']);

/**
 * For each type whose shape has changed, the lifts from version 1 to 2, 2 to 3 and so on: the current version of a type
 * is one more than its number of lifts. Never edit or remove a released lift: the events of that time still exist.
 */
const LIFTS: ReadonlyMap<string, readonly Lift[]> = new Map(
  packedTypes.map((type) => [
    type,
    [
      // Version 2 omits what can be read from the signed body, which contains everything that version 1 says.
      unchanged,
      // Version 3 has outcomes only of the policies that could apply, and `policySet` for the others. Version 2 has all.
      ...(decidedTypes.has(type) ? [unchanged] : []),
    ],
  ]),
);

/** The current version of a type's `data`, for new events. */
export const schemaVersionOf = (type: string): number => (LIFTS.get(type)?.length ?? 0) + 1;

/** What folding reads of an event. */
export interface ReadEvent {
  readonly type: string;
  /** In the current shape of its type. */
  readonly data: unknown;
}

/**
 * What a recorded event says as readers see it: `data` lifted to the current version of its type, and what the store keeps
 * once put where readers look for it. Pure; call it after `verifyChain`, which covers what is recorded.
 * @throws {Error} if the event has no schema version, or one that only a newer release knows
 */
export function readEvent(event: RecordedEvent, lifts: ReadonlyMap<string, readonly Lift[]> = LIFTS): ReadEvent {
  const { metadata, type } = event;
  const version = isObject(metadata) ? metadata['schemaVersion'] : undefined;
  const steps = lifts.get(type) ?? [];
  const today = steps.length + 1;
  if (version === today) return { type, data: readForm(type, event.data) };

  const where = `the event \`${type}\` at revision ${event.revision} of stream \`${event.stream}\``;
  if (typeof version !== 'number' || !Number.isSafeInteger(version) || version < 1) {
    throw new Error(`${where} has the schema version \`${String(version)}\`, which is not a whole number from 1`);
  }
  if (version > today) {
    throw new Error(
      `${where} has schema version ${version}, but this release supports at most ${today}: start the release that wrote it, or a newer one`,
    );
  }
  const data = steps.slice(version - 1).reduce((lifted, lift) => lift(lifted), event.data);
  return { type, data: readForm(type, data) };
}

/**
 * The recorded event with what it says as readers see it, and `metadata.schemaVersion` raised.
 * @throws {Error} as `readEvent` does
 */
export function upcast(event: RecordedEvent, lifts: ReadonlyMap<string, readonly Lift[]> = LIFTS): RecordedEvent {
  const { data } = readEvent(event, lifts);
  const metadata = event.metadata as EventMetadata;
  const schemaVersion = (lifts.get(event.type)?.length ?? 0) + 1;
  if (data === event.data && metadata.schemaVersion === schemaVersion) return event;
  return { ...event, data, metadata: { ...metadata, schemaVersion } };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
