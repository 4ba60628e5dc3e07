import type { Logger } from 'pino';
import { bootStream } from '../domain/boots.js';
import { organizationOf } from '../domain/organization/organization.js';
import type { EventStore, RecordedEvent } from '../ledger/event-store.js';
import type { Clock, ClockState } from '../ports/clock.js';
import type { Health } from '../ports/health.js';
import type { Rows } from '../read-models/database.js';
import { lastProjected } from '../read-models/projector.js';

interface Watch {
  readonly health: Health;
  readonly logger: Logger;
  /** Milliseconds between two looks. */
  readonly everyMs?: number;
}

/** A smaller lead of the process over the system clock is not worth a condition, in milliseconds. */
const noticedMs = 5_000;

/** Turns what the clock notices into conditions and log lines, until the returned function is called. */
export function watchClock(clock: Clock, { health, logger, everyMs = 1_000 }: Watch): () => void {
  if (!clock.state) return () => undefined;
  const seen = { adopted: clock.state().adopted.count, ahead: new Set<string>() };
  const look = (): void => {
    const state = clock.state!();
    noteStep(state, health);
    noteLead(state, health);
    if (state.adopted.count > seen.adopted) {
      logger.warn({ stepMs: Math.round(state.adopted.last) }, 'the system clock has stepped ahead, and is followed');
    }
    seen.adopted = state.adopted.count;
    noteOrganizations(state, seen.ahead, { health, logger });
  };
  look();
  const timer = setInterval(look, everyMs);
  timer.unref();
  return () => clearInterval(timer);
}

function noteStep({ untrusted }: ClockState, health: Health): void {
  if (untrusted === 0) return health.clear('clock-stepped-ahead');
  health.raise(
    'clock-stepped-ahead',
    'failing',
    `the system clock has stepped ahead by ${seconds(untrusted)} s: nothing is decided until it has run steadily for a minute; if the ` +
      'new time is wrong, set the clock',
  );
}

function noteLead({ lead }: ClockState, health: Health): void {
  if (lead <= noticedMs) return health.clear('clock-behind');
  health.raise(
    'clock-behind',
    'degraded',
    `the system clock is ${seconds(lead)} s behind the time of this process, which continues from the last trusted time, 1 % slower ` +
      'until the clock has caught up: make sure that the clock is right; if it is, and far behind, restart this process',
  );
}

function noteOrganizations(
  { organizationsAhead }: ClockState,
  seen: Set<string>,
  { health, logger }: Pick<Watch, 'health' | 'logger'>,
): void {
  for (const organizationId of seen) if (!organizationsAhead.has(organizationId)) seen.delete(organizationId);
  for (const [organizationId, recordedAt] of organizationsAhead) {
    if (seen.has(organizationId)) continue;
    seen.add(organizationId);
    logger.warn(
      { organizationId, recordedAt: new Date(recordedAt).toISOString() },
      'the last event of this organization is too far ahead of the clock, so it refuses every decision: set the clock if it is wrong; ' +
        `otherwise run countersign clock mend ${organizationId}`,
    );
  }
  if (organizationsAhead.size === 0) return health.clear('organizations-ahead');
  health.raise(
    'organizations-ahead',
    'degraded',
    'organizations refuse every decision because their last event is too far ahead of the clock; the log names them: set the clock if it ' +
      'is wrong; otherwise run countersign clock mend for each',
  );
}

/**
 * Continues from the last time that was recorded here: in an organization that has recorded nothing since, what has expired must not
 * become valid again. Looks at the last boot, and at the last event in the rows.
 */
export async function continueFromRecorded(
  clock: Clock,
  store: Pick<EventStore, 'read' | 'last'>,
  rows: Rows,
  logger: Pick<Logger, 'warn'>,
): Promise<void> {
  const now = clock.now();
  for (const event of [...(await store.last(bootStream, 1)), ...(await lastInRows(store, rows))]) {
    const recordedAt = timeOf(event);
    if (recordedAt === undefined || recordedAt <= now) continue;
    if (clock.follow?.(recordedAt, organizationOf(event.stream)) !== false) continue;
    logger.warn(
      { now: new Date(now).toISOString(), recordedAt: new Date(recordedAt).toISOString() },
      `the clock is ${seconds(recordedAt - now)} s behind what was recorded here last: if it is wrong, stop this process and set the ` +
        'clock; what has expired since may be valid until then',
    );
  }
}

async function lastInRows(store: Pick<EventStore, 'read'>, rows: Rows): Promise<readonly RecordedEvent[]> {
  const last = lastProjected(rows);
  if (last) for await (const event of store.read(last.stream, last.revision)) return [event];
  return [];
}

/** Undefined as well if it is damaged: its organization is refused then. */
function timeOf(event: RecordedEvent): number | undefined {
  try {
    const { at } = (event.metadata ?? {}) as { readonly at?: unknown };
    return typeof at === 'number' ? at : undefined;
  } catch {
    return undefined;
  }
}

function seconds(ms: number): number {
  return Math.ceil(ms / 1000);
}
