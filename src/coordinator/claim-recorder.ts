import { Inject, Injectable } from '@nestjs/common';
import { claimStream, type ClaimEvent, type DueClaim, type FirstClaim } from '../domain/organization/claims.js';
import { verifyChain, type EventMetadata } from '../ledger/chain.js';
import { EVENT_STORE, WrongRevision, type Appended, type EventStore } from '../ledger/event-store.js';
import { emptyTail, expectedAfter, seal } from '../ledger/seal.js';
import { LOGGER, type Log } from '../logging/logger.js';
import { CLOCK, type Clock } from '../ports/clock.js';
import { claimsModel, claimsRevision, dueClaims, firstClaim } from '../read-models/claims.js';
import type { Rows } from '../read-models/database.js';
import { ROWS } from '../read-models/define-query.js';
import { ReadModelRunner } from '../read-models/runner.js';

/** Most proofs recorded in one append. */
const mostAtOnce = 256;

/**
 * Gives each proof of a public identifier its place in the order of its parent (docs/adr/0016): reads the proofs of the
 * sub-organizations from the rows, in recorded order, and appends them to the stream of the parent's claims. After a
 * crash, it continues where the rows say.
 */
@Injectable()
export class ClaimRecorder {
  private working: Promise<void> | undefined;
  private hasNews = false;
  private isClosed = false;

  constructor(
    @Inject(EVENT_STORE) private readonly store: EventStore,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(ROWS) private readonly rows: Rows,
    @Inject(ReadModelRunner) private readonly runner: Pick<ReadModelRunner, 'current'>,
    @Inject(LOGGER) private readonly logger: Pick<Log, 'warn'>,
  ) {}

  /** Called when something new may be due. */
  look(): void {
    this.hasNews = true;
    if (this.isClosed) return;
    this.working ??= this.work().finally(() => (this.working = undefined));
  }

  /** Resolves once nothing is in progress. */
  async close(): Promise<void> {
    this.isClosed = true;
    await this.working;
  }

  private async work(): Promise<void> {
    try {
      while (this.hasNews && !this.isClosed) {
        this.hasNews = false;
        const due = dueClaims(this.rows, mostAtOnce);
        for (const parentId of new Set(due.map((one) => one.parentId))) {
          await this.record(
            parentId,
            due.filter((one) => one.parentId === parentId),
          );
        }
        if (due.length === mostAtOnce) this.hasNews = true;
      }
    } catch (err) {
      this.logger.warn({ err }, 'the order of claims was not recorded; the next event brings it up again');
    }
  }

  private async record(parentId: string, due: readonly DueClaim[]): Promise<void> {
    const { store, clock } = this;
    const stream = claimStream(parentId);
    const known = claimsRevision(this.rows, parentId);
    let tail = { ...emptyTail, revision: known, at: 0, position: -1n };
    for await (const event of store.read(stream, Math.max(known, 0))) {
      const { hash, at } = event.metadata as EventMetadata;
      // The rows come from this very event, which was verified when it was chained to the one before it.
      if (event.revision > known) verifyChain(tail.hash, event);
      tail = { revision: event.revision, hash, at, position: event.position };
    }
    // Another coordinator has recorded something that the rows do not show yet.
    if (tail.revision > known) return this.again(parentId, tail);
    const at = Math.max(clock.now(), tail.at);
    const type: ClaimEvent['type'] = 'ClaimProved';
    const facts = inOrder(this.rows, parentId, due).map((data) => ({
      type,
      data,
      metadata: { at, $correlationId: data.organizationId, $causationId: data.ownerId },
    }));
    const { events } = seal(stream, tail, facts);
    try {
      await this.again(parentId, await store.append(stream, events, expectedAfter(tail)));
    } catch (error) {
      if (!(error instanceof WrongRevision)) throw error;
      this.hasNews = true;
    }
  }

  /** What has reached the rows in the meantime is not recorded twice. */
  private async again(parentId: string, recorded: Appended): Promise<void> {
    await this.runner.current(recorded.position, claimsModel);
    // If the read model has stopped, the same would be recorded forever.
    if (claimsRevision(this.rows, parentId) < recorded.revision) throw new Error('the read model has stopped');
    this.hasNews = true;
  }
}

/** The records of proofs, each with its place in the order. */
function inOrder(rows: Rows, parentId: string, due: readonly DueClaim[]): ClaimEvent['data'][] {
  const firsts = new Map<string, FirstClaim | undefined>();
  return due.map(({ kind, value, organizationId, ref, by }) => {
    const key = `${kind} ${value}`;
    const first = firsts.has(key) ? firsts.get(key) : firstClaim(rows, parentId, { kind, value });
    // The key has named an organization other than the one that it was led to.
    const isAbove =
      by === 'request' &&
      first !== undefined &&
      !first.isSettled &&
      first.by === 'resolved-request' &&
      first.organizationId !== organizationId;
    firsts.set(key, isAbove || !first ? { organizationId, by, isSettled: isAbove } : first);
    return { kind, value, organizationId, ownerId: ref, provedBy: by, ...(isAbove ? { outranks: true as const } : {}) };
  });
}
