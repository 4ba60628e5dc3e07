import type { Registry } from '../../decide/registry.js';
import type { EventReader, RecordedEvent } from '../../ledger/event-store.js';
import { CheckedVaults } from './checked-vaults.js';
import { allEvents } from '../timeline/all-events.js';
import type { Counts, SavedProgress } from './saved-progress.js';
import { hasHead, type SavedHeads } from './saved-heads.js';
import { StampThread } from './stamp-thread.js';
import { problemWith } from './verify-vote.js';
import { linkOf } from '../../ledger/chain.js';
import { History } from './checked-history.js';
import type { Finding } from './finding.js';

/** What was checked, and what was found. */
export interface Verification extends Readonly<Counts> {
  readonly events: number;
  readonly streams: number;
  /** Events after the heads of `since`, whose stamps and decisions were checked; absent without heads. */
  readonly eventsSince?: number;
  readonly findings: readonly Finding[];
  /** There were more findings than these. */
  readonly isCut: boolean;
}

export interface VerifyOptions {
  readonly registry: Registry;
  /** Called now and then with the number of events so far, and the part of the store that is done, from 0 to 1. */
  readonly onProgress?: (events: number, share: number) => void;
  /** Called with each event before it is checked; the next event waits for it. */
  readonly onEvent?: (recorded: RecordedEvent) => Promise<void> | undefined;
  /** Verify stamps in a separate thread, which pays off from a few hundred stamps on. */
  readonly threads?: boolean;
  /** Where it saves its progress, and continues from after an interruption. */
  readonly progress?: SavedProgress;
  /** Heads of an earlier verification, which the streams must go on from; those of this one replace them if nothing is wrong. */
  readonly heads?: SavedHeads | undefined;
  /** Heads of an earlier verification: stamps and decisions are checked of later events only. */
  readonly since?: SavedHeads | undefined;
  /** Called if nothing was found: whether everything else is right too, so that the new heads may be saved. */
  readonly isAllRight?: () => Promise<boolean>;
  /** Findings after which it stops; 100 by default. */
  readonly maxFindings?: number;
}

const progressEvery = 1_000;

/**
 * Folds the whole store again and trusts nothing in it: checks the chain of every stream that has one, verifies every
 * stored stamp over its bytes, makes every decision again on the events before it, and looks
 * for the vault of every secret that is still needed. Only reads. What a token or an attestation vouched for is not verified again, because its issuer may be gone.
 * @throws {StoreUnavailable} if the store cannot be read
 */
export async function verifyHistory(
  store: EventReader,
  {
    registry,
    onProgress,
    onEvent,
    threads = false,
    progress,
    heads,
    since,
    isAllRight,
    maxFindings = 100,
  }: VerifyOptions,
): Promise<Verification> {
  const thread = threads ? new StampThread() : undefined;
  const history = new History(store, registry, thread ?? { problemWith, isBusy: true });
  const vaults = new CheckedVaults((stream) => history.chains.has(stream));
  const compared = new Set([heads, since].filter((one) => one !== undefined));
  try {
    const head = (await store.head()) ?? 0n;
    const kept = await progress?.read();
    let isResumed = kept === undefined;
    let events = 0;
    let eventsSince = 0;
    let before: RecordedEvent | undefined;
    for await (const recorded of allEvents(store)) {
      await onEvent?.(recorded);
      vaults.take(recorded);
      for (const one of compared) one.take(recorded);
      if (++events % progressEvery === 0) onProgress?.(events, Number(recorded.position) / Number(head));
      if (before && isResumed && progress?.isDue && history.endsBefore(recorded)) {
        await history.settled();
        const { position } = before;
        await progress.write({ position, hash: linkOf(before), counts: history.counts, findings: history.findings });
      }
      const isBefore = since?.has(recorded) ?? false;
      if (!isBefore && hasHead(recorded.stream)) eventsSince++;
      await history.take(recorded, isBefore || !isResumed);
      if (kept && !isResumed && recorded.position >= kept.position) {
        if (recorded.position > kept.position || linkOf(recorded) !== kept.hash) break;
        isResumed = true;
        history.resume(kept);
      }
      before = recorded;
      if (history.findings.length >= maxFindings) break;
    }
    if (!isResumed && history.findings.length < maxFindings) {
      throw new Error('the saved progress is of another history: remove its file, or choose another');
    }
    if (history.findings.length < maxFindings) {
      history.finish();
      for (const one of compared) history.findings.push(...one.findings(head, history.chains));
      for await (const finding of vaults.missing(store, history.folded())) {
        if (history.findings.push(finding) >= maxFindings) break;
      }
    }
    await history.settled();
    onProgress?.(events, 1);
    await progress?.remove();
    if (heads && history.findings.length === 0 && (await isAllRight?.()) !== false) await heads.write(history.chains);
    const { counts, streams } = history;
    const findings = history.findings.toSorted((one, other) => Number(one.position - other.position));
    return {
      events,
      streams,
      ...(since ? { eventsSince } : {}),
      ...counts,
      findings: findings.slice(0, maxFindings),
      isCut: findings.length >= maxFindings,
    };
  } finally {
    history.close();
    await thread?.close();
  }
}
