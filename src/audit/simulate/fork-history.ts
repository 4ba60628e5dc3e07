import { denialStream } from '../../domain/activity/denial.js';
import { organizationStream } from '../../domain/organization/organization.js';
import type { EventReader, RecordedEvent } from '../../ledger/event-store.js';
import { isSameAppend } from '../../read-models/events.js';
import { CutShort, type BranchOptions, type BranchReport, type BranchSource, type Ends } from './branch-report.js';
import { decidingTypes } from '../verify/deciding-events.js';
import { streamsIn } from '../timeline/all-events.js';
import { Fork } from './fork.js';
import { ForkReport, type Forked } from './fork-report.js';

export interface ForkOptions extends Omit<BranchOptions, 'held'> {
  /** Decides which tokens are still live in the report; milliseconds since the epoch. */
  readonly now: number;
}

const progressEvery = 5_000;

/**
 * What would have become of an organization without one event, or with a different one: its history is folded up to
 * there, and a copy of it continues with the change. Every later signed request, and every denied one, is decided again
 * on the copy, by the rules and at the time of its record. Only reads.
 * @throws {NoSuchBranch} if the change is impossible there
 * @throws {BrokenChain} if an event is not the one that was recorded
 * @throws {CoordinatorError} NOT_FOUND if the organization has no events
 */
export async function forkHistory(store: EventReader, { now, ...options }: ForkOptions): Promise<Forked> {
  const report = new ForkReport(options.organizationId, now);
  const { original, branch, last } = await branchOff(store, options, report);
  return report.ended(original, branch, last);
}

/**
 * Continues a copy of a history with what differs, and decides everything again on it; see `forkHistory`.
 * @throws {NoSuchBranch} if the change is impossible there
 * @throws {BrokenChain} if an event is not the one that was recorded
 * @throws {CoordinatorError} NOT_FOUND if the organization has no events
 */
export async function branchOff(store: BranchSource, options: BranchOptions, report: BranchReport): Promise<Ends> {
  const fork = new Fork(store, options, report);
  const head = (await store.head()) ?? -1n;
  try {
    await followTo(head, fork, store, options);
  } catch (error) {
    if (!(error instanceof CutShort)) throw error;
    return fork.end(true);
  }
  return fork.end();
}

/** @throws {CutShort} if the meter is spent before */
async function followTo(
  head: bigint,
  fork: Fork,
  store: BranchSource,
  { organizationId, onProgress, meter }: BranchOptions,
): Promise<void> {
  let run: RecordedEvent[] = [];
  const streams = [organizationStream(organizationId), denialStream(organizationId)];
  for await (const event of streamsIn(store, streams, head)) {
    const before = run.at(-1);
    if (before?.stream === event.stream && !decidingTypes.has(event.type) && isSameAppend(before, event)) {
      run.push(event);
      continue;
    }
    await fork.take(run);
    if (meter?.isSpent) throw new CutShort();
    run = [event];
    if (event.revision % progressEvery === 0) onProgress?.(event.revision);
  }
  await fork.take(run);
}
