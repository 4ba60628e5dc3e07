import { LatestEntries } from '../fairness/latest-entries.js';

/** Longest interval between two appends that counts as writing continuously, in milliseconds. */
const breakMs = 50;
/** How long a continuous writer goes on before it pauses for others, known or not, in milliseconds. */
const stretchMs = 1_000;
/**
 * The lengths of such pauses, in turn, in milliseconds: losers are invisible, and so is their distance to the store.
 */
const pauses = [25, 50, 100, 200] as const;
/** Where our own appends are slow, others' are too: a pause is at least as many of our latest as this. */
const leastAppends = 4;
/** Longest such pause, in milliseconds. */
const longestPauseMs = 1_000;
/** Longest pause after one append while others are known to write, in milliseconds. */
const mostBetween = 100;
/** For how many durations of its own append a coordinator remembers that others have written. */
const remembered = 20;
/** Upper bound of that, in milliseconds. */
const mostRemembered = 500;
/** Maximum number of organizations remembered; a forgotten one only gets no pauses for a while. */
const maxOrganizations = 1_000;

interface Writing {
  /** Revision of the stream after our last append. */
  revision: number;
  lastAt: number;
  /** When continuous writing began, or when it last paused. */
  since: number;
  /** Until then, others count as having written recently. */
  othersUntil: number;
  /** Nothing is to be appended before this time. */
  waitUntil: number;
  nextPause: number;
}

/**
 * The pauses that a coordinator makes on an organization for other writers to the same event store, so that those who
 * write rarely, or are further from the store, get their turn (docs/adr/0001). Times are milliseconds of one monotonic
 * clock.
 */
export class WriterPauses {
  private readonly writings = new LatestEntries<Writing>(maxOrganizations);

  /** An append that was decided on `readAt`, started reading at `begunAt`, and left the stream at `revision`. */
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
      nextPause: 0,
    };
    if (!isOngoing) writing.since = begunAt;
    if (known && readAt > known.revision) {
      writing.othersUntil = now + Math.min(mostRemembered, remembered * took);
    }
    writing.revision = revision;
    writing.lastAt = now;
    if (now - writing.since >= stretchMs) {
      const slow = Math.min(longestPauseMs, leastAppends * took);
      writing.waitUntil = now + Math.max(pauses[writing.nextPause % pauses.length]!, slow);
      writing.nextPause += 1;
      writing.since = writing.waitUntil;
    } else if (now < writing.othersUntil) {
      writing.waitUntil = now + Math.min(mostBetween, 2 * took);
    }
    this.writings.set(organizationId, writing);
  }

  /** How long to wait before deciding the next batch, in milliseconds. */
  waitMs(organizationId: string, now: number): number {
    return Math.max(0, (this.writings.get(organizationId)?.waitUntil ?? 0) - now);
  }
}
