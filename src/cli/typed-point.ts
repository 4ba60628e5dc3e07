import { isUuid } from '../domain/uuid.js';
import type { OrganizationReplay } from '../audit/timeline/organization-replay.js';
import { BadUsage } from './bad-usage.js';
import { printable } from './layout.js';

const timePattern = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d))?$/;

/** A point in a history as people type it. */
export type TypedPoint =
  | { readonly by: 'end' }
  | { readonly by: 'revision'; readonly revision: number }
  | { readonly by: 'position'; readonly position: bigint }
  /** In milliseconds since the Unix epoch. */
  | { readonly by: 'time'; readonly time: number }
  | { readonly by: 'event'; readonly id: string };

/**
 * Parses a revision, `position:123`, a time, the id of an event, or `end`.
 * @throws {BadUsage} if it is none of these
 */
export function parsePoint(point: string): TypedPoint {
  if (point === 'end') return { by: 'end' };
  if (/^\d{1,10}$/.test(point)) return { by: 'revision', revision: Number(point) };
  const position = /^position:(\d{1,19})$/.exec(point)?.[1];
  if (position !== undefined) return { by: 'position', position: BigInt(position) };
  if (isUuid(point)) return { by: 'event', id: point.toLowerCase() };
  const time = timePattern.test(point) ? Date.parse(point) : NaN;
  if (!Number.isNaN(time)) return { by: 'time', time };
  throw new BadUsage(
    `\`${printable(point)}\` is not a point in history: use a revision such as 41, position:123, a time such as 2026-11-23T12:00:00Z, the id of an event, or end`,
  );
}

/**
 * The revision of the event with an id.
 * @throws {BadUsage} if there is none
 */
export async function revisionOfEvent<R>(
  id: string,
  organizationId: string,
  events: AsyncIterable<{ readonly id: string; readonly revision: R }>,
): Promise<R> {
  for await (const event of events) if (event.id === id) return event.revision;
  throw new BadUsage(`organization \`${organizationId}\` has no event \`${id}\``);
}

/** @throws {BadUsage} if it is not a point, or the organization has no such event */
export async function revisionOf(replayed: OrganizationReplay, text: string): Promise<number> {
  const point = parsePoint(text);
  if (point.by === 'end') return replayed.last;
  if (point.by === 'event') return revisionOfEvent(point.id, replayed.organizationId, replayed.everyEvent());
  return replayed.revisionAt(point);
}
