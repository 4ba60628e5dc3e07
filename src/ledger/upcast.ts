import { packedTypes, readForm } from '../domain/activity/recorded-form.js';
import type { RecordedEvent } from './event-store.js';

/** From one version of a type's `data` to the next. */
type Lift = (data: unknown) => unknown;

/**
 * For each type that has changed its shape, the lifts from version 1 to 2, 2 to 3 and so on: today's version of a type
 * is one more than it has lifts. Never edit or remove a lift that was released: the events of that time are still there.
 */
const LIFTS: ReadonlyMap<string, readonly Lift[]> = new Map(
  // Version 2 leaves out what can be read out of the signed body: all that version 1 says is said in it too.
  packedTypes.map((type) => [type, [(data: unknown) => data]]),
);

/** Today's version of a type's `data`, which new events of it are recorded with. */
export const schemaVersionOf = (type: string): number => (LIFTS.get(type)?.length ?? 0) + 1;

/**
 * A recorded event as it is read: `data` lifted to today's version of its type, `metadata.schemaVersion` raised, and what
 * is kept once in the store where readers look for it. Pure; call it after `verifyChain`, which is over what is recorded.
 * @throws {Error} when the event has no schema version, or one that only a newer release knows
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
