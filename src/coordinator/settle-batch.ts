import { setTimeout } from 'node:timers/promises';
import { organizationStream, type OrganizationView } from '../domain/organization/organization.js';
import { organizationPath } from '../fairness/fair-queue.js';
import { thisThread } from '../fairness/turns.js';
import { StoreRefused, WrongRevision } from '../ledger/event-store.js';
import {
  forgetCovered,
  noteFingerprint,
  settle as settleState,
  type LoadedOrganization,
} from '../ledger/loaded-organization.js';
import { storeRefusal } from '../ledger/store-refusals.js';
import { decideBatch, isLarge, requestsOf, type DecidedBatch } from './decide-batch.js';
import type { RequestDecider } from './decide-request.js';
import type { CoordinatorPorts, Decided, PendingRequest } from './pending-request.js';
import type { Preparations } from './preparations.js';
import { respond } from './respond.js';
import { WriterPauses } from './writer-pauses.js';

/** How long a batch is decided again while other writers get ahead, in milliseconds. */
const patienceMs = 5_000;
/**
 * Longest pause before the next attempt, in milliseconds; short, because whoever tries less often than the others loses
 * to them.
 */
const longestPauseMs = 16;

/** The folded organization that a batch is decided on; it was just read, or was held in memory. */
interface Head {
  readonly loaded: LoadedOrganization;
  readonly isNewest: boolean;
}

type Appended =
  | { readonly kind: 'appended' }
  /** The store has refused it, and it will never be recorded. */
  | { readonly kind: 'conflict' | 'too-large'; readonly error: unknown }
  /** The store has not confirmed it, and it may still be recorded. */
  | { readonly kind: 'unconfirmed'; readonly error: unknown };

export interface BatchPorts extends CoordinatorPorts {
  readonly decider: RequestDecider;
  readonly preparations: Preparations;
  /** Refuses a request. */
  readonly refuse: (pending: PendingRequest, error: unknown, organizationId: string) => void;
  /** Called for each activity that has started waiting for votes. */
  readonly onWaiting: (decided: Decided, organization: OrganizationView) => void;
}

/**
 * Decides the requests of a batch on the head held in memory, and records the outcome in one append at the revision of
 * the decision. An accepted append proves that the head was current (docs/adr/0001); a request that appends nothing
 * checks first.
 */
export class BatchSettler {
  private readonly pauses = new WriterPauses();

  constructor(private readonly ports: BatchPorts) {}

  /** Resolves once other writers to the store have had their turn. */
  async turn(organizationId: string): Promise<void> {
    const ms = this.ports.store.exclusive ? 0 : this.pauses.waitMs(organizationId, performance.now());
    if (ms > 0) await setTimeout(ms);
  }

  /** Returns the requests that go into the next batch. */
  async settle(organizationId: string, batch: readonly PendingRequest[]): Promise<readonly PendingRequest[]> {
    const release = this.ports.loader.hold(organizationId);
    try {
      return await this.decideAndAppend(organizationId, batch);
    } catch (error) {
      // Whatever the error was, the folded state may be ahead of what is recorded.
      this.ports.loader.drop(organizationId);
      for (const request of batch) request.reject(error);
      return [];
    } finally {
      release();
    }
  }

  private async decideAndAppend(
    organizationId: string,
    requests: readonly PendingRequest[],
  ): Promise<readonly PendingRequest[]> {
    const { loader, metrics, preparations } = this.ports;
    const startedAt = performance.now();
    let readAt = startedAt;
    let firstConflictAt: number | undefined;
    let pending = requests;
    let head: Head = await loader.held(organizationId);
    for (let attempt = 1; ; attempt++) {
      const { revision, batch } = await this.decide(head, pending);
      const newest = await this.newerHead(head, revision, batch);
      if (newest) {
        await preparations.lose(...batch.lost);
        [head, pending] = [newest, requestsOf(batch)];
        continue;
      }
      const outcome = await this.append(head.loaded, revision, batch);
      if (outcome.kind === 'appended') {
        const { events } = batch;
        const now = performance.now();
        if (events.length > 0) this.pauses.wrote(organizationId, revision, revision + events.length, readAt, now);
        await respond(this.ports, head.loaded, batch, { revision, attempt });
        return batch.postponed;
      }
      loader.drop(organizationId);
      if (outcome.kind === 'too-large' && pending.length > 1) {
        // Small requests are not refused for the size of the others. Until each is decided alone, none has lost.
        await preparations.lose(...batch.lost);
        for (const request of requestsOf(batch)) await this.settle(organizationId, [request]);
        return [];
      }
      // Not from the start: a process that has just started may take as long to read and decide, and has lost once.
      firstConflictAt ??= performance.now();
      const isOutOfTime = performance.now() - firstConflictAt > (this.ports.patienceMs ?? patienceMs);
      if (outcome.kind !== 'conflict' || isOutOfTime) {
        await preparations.lose(...batch.lost, ...attemptsOver(batch, outcome));
        throw storeRefusal(outcome.error, organizationId, attempt, performance.now() - startedAt);
      }
      await preparations.lose(...batch.lost);
      metrics.conflict();
      loader.overtaken(organizationId);
      // A shorter pause each time, so that the longest-waiting writer gets its turn.
      await setTimeout((Math.random() * longestPauseMs) / attempt);
      // Reading a whole stream takes long. What is new since then is read next, so that the loser decides on a state as
      // new as the winners'.
      await loader.load(organizationId);
      readAt = performance.now();
      head = { loaded: await loader.load(organizationId), isNewest: true };
      // Refusals were based on a state that another writer has left behind, so these requests are decided again too.
      pending = requestsOf(batch);
    }
  }

  private async decide(
    { loaded, isNewest }: Head,
    pending: readonly PendingRequest[],
  ): Promise<{ readonly revision: number; readonly batch: DecidedBatch }> {
    const { loader, known, decider } = this.ports;
    const { organization } = loaded;
    // An append proves nothing about another stream, so the parent is read.
    const readParent = () => loader.parentOf(organization);
    const parent = await readParent();
    forgetCovered(loaded, known.checkpoint());
    const path = organizationPath(organization.organizationId, organization.parentOrganizationId);
    const turn = thisThread.next(path, { alone: isLarge(pending[0]!) });
    if (turn) await turn;
    const { revision } = loaded;
    const batch = await decideBatch(decider, pending, { loaded, parent, readParent, path, isNewest });
    // Serializing what was decided takes as long as deciding it.
    if (batch.decided.some(({ pending }) => isLarge(pending))) await thisThread.next(path, { alone: true });
    return { revision, batch };
  }

  /** The newest head, if a batch that appends nothing was decided on an older one, and would tell somebody so. */
  private async newerHead(head: Head, revision: number, batch: DecidedBatch): Promise<Head | undefined> {
    const { events, decided, refused, allowed } = batch;
    if (head.isNewest || events.length > 0 || decided.length + refused.length + allowed.length === 0) return undefined;
    const newest = await this.ports.loader.load(head.loaded.organization.organizationId);
    return newest !== head.loaded || newest.revision !== revision ? { loaded: newest, isNewest: true } : undefined;
  }

  private async append(loaded: LoadedOrganization, revision: number, batch: DecidedBatch): Promise<Appended> {
    const { events, decided } = batch;
    if (events.length === 0) return { kind: 'appended' };
    const { store, metrics } = this.ports;
    const stream = organizationStream(loaded.organization.organizationId);
    const startedAt = performance.now();
    try {
      const { position } = await store.append(stream, events, revision);
      metrics.appended((performance.now() - startedAt) / 1000, decided.length);
      loaded.pending.length = 0;
      settleState(loaded);
      // Meanwhile a reader may have folded another writer's later events.
      if (position > loaded.position) loaded.position = position;
      for (const { added } of decided) for (const event of added) noteFingerprint(loaded, event, position);
      return { kind: 'appended' };
    } catch (error) {
      if (error instanceof WrongRevision) return { kind: 'conflict', error };
      if (error instanceof StoreRefused && error.refusal.kind === 'too-large') return { kind: 'too-large', error };
      metrics.appendFailed();
      return { kind: 'unconfirmed', error };
    }
  }
}

/** The preparations that nothing will record any more. */
function attemptsOver({ decided, refused, postponed }: DecidedBatch, { kind }: Appended) {
  const over = [...refused, ...(kind === 'unconfirmed' ? [] : decided)].map(({ pending }) => pending);
  return [...over, ...postponed].flatMap(({ attempt }) => attempt ?? []);
}
