import type { Registry } from '../decide/registry.js';
import type { EventReader, RecordedEvent } from '../ledger/event-store.js';
import { CheckedVaults } from './checked-vaults.js';
import { everythingIn } from './everything.js';
import type { KeptProgress } from './kept-progress.js';
import type { SavedHeads } from './saved-heads.js';
import { StampThread } from './stamp-thread.js';
import { problemWith } from './verify-vote.js';
import { History, linkOf } from './checked-history.js';
import type { Finding } from './finding.js';

/** What was checked, and what was found. */
export interface Verification {
  readonly events: number;
  readonly streams: number;
  /** Decisions that were made again. */
  readonly decisions: number;
  /** Decisions of earlier releases, by rules without a number: they are folded, and cannot be made again. */
  readonly unnumbered: number;
  /** Stamps of requests, votes and denials whose signature is valid for the stored bytes. */
  readonly stamps: number;
  /**
   * Denials whose request was too long to be stored in full, or was stamped by a passkey: their stamps cannot be
   * verified.
   */
  readonly stampsNotKept: number;
  /**
   * Stamps of events that an export has redacted, which no key verifies any more; only in a history imported for tests.
   */
  readonly stampsRedacted: number;
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
  readonly progress?: KeptProgress;
  /** Heads of an earlier verification, which the streams must go on from; the caller keeps those of this one. */
  readonly heads?: SavedHeads | undefined;
  /** Findings after which it stops; 100 by default. */
  readonly maxFindings?: number;
}

const progressEvery = 1_000;

/**
 * Folds the whole store again and trusts nothing in it: checks the chain of every stream that has one, verifies every
 * stored stamp over its bytes, makes every decision again on the events before it, by the rules that applied, and looks
 * for the vault of every secret that is still needed. Only reads. What a token or an attestation vouched for is not verified again, because its issuer may be gone.
 * @throws {StoreUnavailable} if the store cannot be read
 */
export async function verifyHistory(
  store: EventReader,
  { registry, onProgress, onEvent, threads = false, progress, heads, maxFindings = 100 }: VerifyOptions,
): Promise<Verification> {
  const thread = threads ? new StampThread() : undefined;
  const history = new History(store, registry, thread ?? { problemWith, isBusy: true });
  const vaults = new CheckedVaults();
  try {
    const head = (await store.head()) ?? 0n;
    const kept = await progress?.read();
    if (kept) history.goOn(kept.state);
    let isKnown = kept === undefined;
    let events = 0;
    let before: RecordedEvent | undefined;
    for await (const recorded of everythingIn(store)) {
      await onEvent?.(recorded);
      vaults.take(recorded);
      heads?.take(recorded);
      if (++events % progressEvery === 0) onProgress?.(events, Number(recorded.position) / Number(head));
      if (kept && recorded.position <= kept.position) {
        if (recorded.position === kept.position) isKnown = linkOf(recorded) === kept.hash;
        continue;
      }
      if (!isKnown) break;
      if (before && progress?.isDue && history.endsBefore(recorded)) {
        const { position } = before;
        await progress.write({ events, position, hash: linkOf(before), state: await history.soFar() });
      }
      await history.take(recorded);
      before = recorded;
      if (history.findings.length >= maxFindings) break;
    }
    if (!isKnown) throw new Error('the saved progress is of another history: remove its file, or choose another');
    if (history.findings.length < maxFindings) {
      history.end();
      history.findings.push(...(heads?.findings(head) ?? []));
      for await (const finding of vaults.missing(store, history.folded())) {
        if (history.findings.push(finding) >= maxFindings) break;
      }
    }
    await history.settled();
    onProgress?.(events, 1);
    await progress?.remove();
    const { counts, streams } = history;
    const findings = history.findings.toSorted((one, other) => Number(one.position - other.position));
    return {
      events,
      streams,
      ...counts,
      findings: findings.slice(0, maxFindings),
      isCut: findings.length >= maxFindings,
    };
  } finally {
    await thread?.close();
  }
}
