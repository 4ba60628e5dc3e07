import type { OrganizationReplay } from '../replay/organization-replay.js';
import { BadUsage } from './bad-usage.js';
import { printable } from './replay-text.js';
import { isUuid } from '../domain/uuid.js';

const timePattern = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d))?$/;

/**
 * The revision for a point: a revision, `position:123`, a time, the id of an event, or `end`.
 * @throws {BadUsage} if it is none of these
 */
export async function revisionOf(replayed: OrganizationReplay, point: string): Promise<number> {
  if (point === 'end') return replayed.last;
  if (/^\d{1,10}$/.test(point)) return replayed.revisionAt({ by: 'revision', revision: Number(point) });
  const position = /^position:(\d{1,19})$/.exec(point)?.[1];
  if (position !== undefined) return replayed.revisionAt({ by: 'position', position: BigInt(position) });
  if (isUuid(point)) {
    for await (const { id, revision } of replayed.everyEvent()) if (id === point.toLowerCase()) return revision;
    throw new BadUsage(`organization \`${replayed.organizationId}\` has no event \`${point}\``);
  }
  const time = timePattern.test(point) ? Date.parse(point) : NaN;
  if (!Number.isNaN(time)) return replayed.revisionAt({ by: 'time', time });
  throw new BadUsage(
    `\`${printable(point)}\` is not a point in history: use a revision such as 41, position:123, a time such as 2026-11-23T12:00:00Z, the id of an event, or end`,
  );
}
