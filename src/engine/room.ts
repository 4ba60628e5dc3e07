/** Longest time between two appends of somebody who writes all the time, in milliseconds. */
const breakMs = 50;
/** How long somebody writes all the time before leaving room for others, whether there are any or not, in milliseconds. */
const stretchMs = 1_000;
/** The room that is left then, one after the other, in milliseconds: who loses says so to nobody, nor how slow the way is. */
const rooms = [25, 50, 100, 200] as const;
/** Longest room that one append leaves while others are known to write, in milliseconds. */
const mostBetween = 100;
/** How many of its own appends' times a coordinator remembers that others have written. */
const remembered = 20;
/** Longest time that it does, in milliseconds. */
const mostRemembered = 500;
/** Organizations that are remembered; who is forgotten leaves no room for a while, and loses nothing else. */
const maxOrganizations = 1_000;

interface Writing {
  /** Of the stream after the own last append. */
  revision: number;
  lastAt: number;
  /** When it began to write without a break, or last left room. */
  since: number;
  /** Others have written lately, until then. */
  othersUntil: number;
  /** Nothing is to be appended before. */
  waitUntil: number;
  nextRoom: number;
}

/**
 * The room that a coordinator leaves on an organization for others on the same event store, so that the turn comes of whoever
 * writes rarely or has the longer way to the store (docs/adr/0046). Times are milliseconds of one monotonic clock.
 */
export class Room {
  private readonly writings = new Map<string, Writing>();

  /** An append was decided on `readAt`, began with reading at `begunAt`, and left the stream at `revision`. */
  wrote(organizationId: string, readAt: number, revision: number, begunAt: number, now: number): void {
    const took = now - begunAt;
    const known = this.writings.get(organizationId);
    const isOngoing = known !== undefined && begunAt - Math.max(known.lastAt, known.waitUntil) < breakMs;
    const writing: Writing = known ?? {
      revision,
      lastAt: now,
      since: begunAt,
      othersUntil: 0,
      waitUntil: 0,
      nextRoom: 0,
    };
    if (!isOngoing) writing.since = begunAt;
    if (known && readAt > known.revision) {
      writing.othersUntil = now + Math.min(mostRemembered, remembered * took);
    }
    writing.revision = revision;
    writing.lastAt = now;
    if (now - writing.since >= stretchMs) {
      writing.waitUntil = now + rooms[writing.nextRoom % rooms.length]!;
      writing.nextRoom += 1;
      writing.since = writing.waitUntil;
    } else if (now < writing.othersUntil) {
      writing.waitUntil = now + Math.min(mostBetween, 2 * took);
    }
    // The latest last: whoever has not written for longest is forgotten first.
    this.writings.delete(organizationId);
    this.writings.set(organizationId, writing);
    if (this.writings.size > maxOrganizations) this.writings.delete(this.writings.keys().next().value!);
  }

  /** How long to wait before deciding the next batch, in milliseconds. */
  waitMs(organizationId: string, now: number): number {
    return Math.max(0, (this.writings.get(organizationId)?.waitUntil ?? 0) - now);
  }
}
