import { packedTypes, readForm } from '../domain/activity/recorded-form.js';
import type { RecordedEvent } from './event-store.js';

/** From one version of a type's `data` to the next. */
type Lift = (data: unknown) => unknown;

/**
 * For each type whose shape has changed, the lifts from version 1 to 2, 2 to 3 and so on: the current version of a type
 * is one more than its number of lifts. Never edit or remove a released lift: the events of that time still exist.
 */
const LIFTS: ReadonlyMap<string, readonly Lift[]> = new Map(
  // Version 2 omits what can be read from the signed body, which contains everything that version 1 says.
  packedTypes.map((type) => [type, [(data: unknown) => data]]),
);

/** The current version of a type's `data`, for new events. */
export const schemaVersionOf = (type: string): number => (LIFTS.get(type)?.length ?? 0) + 1;

/**
 * A recorded event as readers see it: `data` lifted to the current version of its type, `metadata.schemaVersion`
 * raised, and what the store keeps once put where readers look for it. Pure; call it after `verifyChain`, which covers
 * what is recorded.
 * @throws {Error} if the event has no schema version, or one that only a newer release knows
 */
export function upcast(event: RecordedEvent, lifts: ReadonlyMap<string, readonly Lift[]> = LIFTS): RecordedEvent {
  const { metadata, type } = event;
  const version = isObject(metadata) ? metadata['schemaVersion'] : undefined;
  const steps = lifts.get(type) ?? [];
  const today = steps.length + 1;
  if (version === today) {
    const data = readForm(type, event.data);
    return data === event.data ? event : { ...event, data };
  }

  const where = `the event \`${type}\` at revision ${event.revision} of stream \`${event.stream}\``;
  if (!isObject(metadata) || typeof version !== 'number' || !Number.isSafeInteger(version) || version < 1) {
    throw new Error(`${where} has the schema version \`${String(version)}\`, which is not a whole number from 1`);
  }
  if (version > today) {
    throw new Error(
      `${where} has schema version ${version}, but this release supports at most ${today}: start the release that wrote it, or a newer one`,
    );
  }
  const data = steps.slice(version - 1).reduce((lifted, lift) => lift(lifted), event.data);
  return { ...event, data: readForm(type, data), metadata: { ...metadata, schemaVersion: today } };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
