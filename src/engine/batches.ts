import { recordedChild } from '../decide/found-organization.js';
import { foundingRefusal, storeRefusal } from '../ledger/store-refusals.js';
import { organizationStream, type OrganizationView } from '../domain/organization/organization.js';
import { vaultsEndedBy } from '../domain/organization/vaults.js';
import { organizationPath } from '../fairness/fair-queue.js';
import { thisThread } from '../fairness/turns.js';
import { StoreRefused, WrongRevision, type NewEvent } from '../ledger/event-store.js';
import { forgetCovered, noteFingerprint, settle, type LoadedOrganization } from '../ledger/loaded-organization.js';
import type { RequestDecider } from './decide-request.js';
import { decideBatch, isLarge, type DecidedBatch } from './decided-batch.js';
import type { Decided, DriveAnswer, DriverPorts, Job } from './job.js';
import type { Preparations } from './preparations.js';
import { Room } from './append-backoff.js';

/** How long a batch is decided again while other writers get ahead, in milliseconds. */
const patienceMs = 5_000;
/**
 * Longest pause before the next attempt, in milliseconds; short, because whoever tries less often than the others loses
 * to them.
 */
const longestPauseMs = 16;

/** What else a batch needs when it is recorded. */
interface Beside {
  readonly decider: RequestDecider;
  readonly preparations: Preparations;
  /** Refuses a request. */
  readonly refuse: (job: Job, error: unknown, organizationId: string) => void;
  /** Called for each activity that has started waiting for votes. */
  readonly waits: (decided: Decided, organization: OrganizationView) => void;
}

/**
 * Decides the requests of a batch on the head held in memory, and records the outcome in one append at the revision of
 * the decision. An accepted append proves that the head was current (docs/adr/0001); a request that appends nothing
 * checks first.
 */
export class Batches {
  private readonly room = new Room();

  constructor(
    private readonly ports: DriverPorts,
    private readonly beside: Beside,
  ) {}

  /** Resolves once other writers to the store have had their turn. */
  async turn(organizationId: string): Promise<void> {
    const others = this.ports.store.exclusive ? 0 : this.room.waitMs(organizationId, performance.now());
    if (others > 0) await pause(others);
  }

  /** Returns the requests that go into the next batch. */
  async settle(organizationId: string, batch: readonly Job[]): Promise<readonly Job[]> {
    const letGo = this.ports.loader.hold(organizationId);
    try {
      return await this.run(organizationId, batch);
    } catch (error) {
      // Whatever the error was, the folded state may be ahead of what is recorded.
      this.ports.loader.drop(organizationId);
      for (const job of batch) job.reject(error);
      return [];
    } finally {
      letGo();
    }
  }

  private async run(organizationId: string, jobs: readonly Job[]): Promise<readonly Job[]> {
    const { loader, metrics, known } = this.ports;
    const { preparations } = this.beside;
    let pending = jobs;
    const begun = performance.now();
    let readFrom = begun;
    let lostAt: number | undefined;
    let head = await loader.held(organizationId);
    for (let attempt = 1; ; attempt++) {
      const { loaded } = head;
      // An append proves nothing about another stream, so the parent is read.
      const readParent = () => loader.parentOf(loaded.organization);
      const parent = await readParent();
      forgetCovered(loaded, known.checkpoint());
      const path = organizationPath(organizationId, loaded.organization.parentOrganizationId);
      const own = thisThread.next(path, { alone: isLarge(pending[0]!) });
      if (own) await own;
      const readAt = loaded.revision;
      const batch = await decideBatch(this.beside.decider, pending, {
        loaded,
        parent,
        readParent,
        path,
        isNewest: head.isNewest,
      });
      if (!head.isNewest && batch.events.length === 0 && tellsSomething(batch)) {
        const newest = await loader.load(organizationId);
        if (newest !== loaded || newest.revision !== readAt) {
          head = { loaded: newest, isNewest: true };
          await preparations.lose(...batch.lost);
          pending = askedAgain(batch);
          continue;
        }
      }
      try {
        // Serializing what was decided takes as long as deciding it.
        if (batch.decided.some(({ job }) => isLarge(job))) await thisThread.next(path, { alone: true });
        await this.append(loaded, readAt, batch);
      } catch (error) {
        loader.drop(organizationId);
        if (pending.length > 1 && isTooLarge(error)) {
          // Small requests are not refused for the size of the others. Until each is decided alone, none has lost.
          await preparations.lose(...batch.lost);
          for (const job of askedAgain(batch)) await this.settle(organizationId, [job]);
          return [];
        }
        if (!(error instanceof WrongRevision) && !isTooLarge(error)) metrics.appendFailed();
        // Not from the start: a process that has just started may take as long to read and decide, and has lost once.
        lostAt ??= performance.now();
        const isOutOfTime = performance.now() - lostAt > (this.ports.patienceMs ?? patienceMs);
        if (!(error instanceof WrongRevision) || isOutOfTime) {
          // What the store has not confirmed may still have been recorded; what it has refused never will be.
          const decided = error instanceof WrongRevision || isTooLarge(error) ? batch.decided : [];
          const given = [...[...batch.refused, ...decided].map(({ job }) => job), ...batch.left];
          await preparations.lose(...batch.lost, ...given.flatMap(({ attempt }) => attempt ?? []));
          throw storeRefusal(error, organizationId, attempt, performance.now() - begun);
        }
        await preparations.lose(...batch.lost);
        metrics.conflict();
        loader.overtaken(organizationId);
        await pauseAfter(attempt);
        // Nothing is held any more, and reading a whole stream takes long. New events are read at the top, so that the loser
        // decides on a state as new as the winners'.
        await loader.load(organizationId);
        readFrom = performance.now();
        head = { loaded: await loader.load(organizationId), isNewest: true };
        // Refusals were based on a state that another writer has left behind, so these requests are decided again too.
        pending = askedAgain(batch);
        continue;
      }
      await this.answer(organizationId, loaded, batch, { readAt, readFrom, attempt });
      return batch.left;
    }
  }

  private async append(loaded: LoadedOrganization, readAt: number, { events, decided }: DecidedBatch): Promise<void> {
    if (events.length === 0) return;
    const stream = organizationStream(loaded.organization.organizationId);
    const started = performance.now();
    const { position } = await this.ports.store.append(stream, events, readAt);
    this.ports.metrics.appended((performance.now() - started) / 1000, decided.length);
    loaded.pending.length = 0;
    settle(loaded);
    // Meanwhile a reader may have folded another writer's later events.
    if (position > loaded.position) loaded.position = position;
    for (const { added } of decided) for (const event of added) noteFingerprint(loaded, event, position);
  }

  /** Everything is durable: runs the follow-up work, and responds. */
  private async answer(
    organizationId: string,
    loaded: LoadedOrganization,
    { events, decided, refused, allowed, lost }: DecidedBatch,
    { readAt, readFrom, attempt }: { readonly readAt: number; readonly readFrom: number; readonly attempt: number },
  ): Promise<void> {
    if (events.length > 0) {
      this.room.wrote(organizationId, readAt, readAt + events.length, readFrom, performance.now());
    }
    for (const { job, outcome } of allowed) job.resolve(outcome);
    const inVain = refused.flatMap(({ job }) => job.attempt ?? []);
    const [founded] = await Promise.all([
      this.foundChildren(readAt, events),
      this.shredEnded(decided),
      this.beside.preparations.lose(...lost, ...inVain),
    ]);
    for (const { job, error } of refused) this.beside.refuse(job, error, organizationId);
    // Also for requests that were known before: votes may have been recorded long after the submission.
    for (const { job, answer, refusal, afterwards } of decided) {
      try {
        if (refusal) throw refusal;
        if (job.attempt) afterwards?.(this.ports.prepare(job.attempt));
        const position = await founded.get(answer.activityId)?.catch((error: unknown) => {
          throw foundingRefusal(error) ?? storeRefusal(error, organizationId, attempt);
        });
        job.resolve(answerAt(answer, position ?? loaded.position));
      } catch (error) {
        job.reject(error);
      }
    }
    for (const one of decided) this.beside.waits(one, loaded.organization);
  }

  /**
   * Writes the streams of sub-organizations that were just recorded, because callers may use them at once. Returns, by
   * the activity that created each, its position or why it does not exist yet.
   */
  private async foundChildren(
    readAt: number,
    events: readonly NewEvent[],
  ): Promise<ReadonlyMap<string, Promise<bigint>>> {
    const founded = new Map<string, Promise<bigint>>();
    for (const [index, event] of events.entries()) {
      const child = recordedChild(event, readAt + 1 + index);
      if (child) founded.set(child.activityId, this.ports.children.found(child));
    }
    await Promise.allSettled(founded.values());
    return founded;
  }

  /** Deleted secrets are gone before the response; after a crash here, the next start finds the rest. */
  private async shredEnded(decided: readonly Decided[]): Promise<void> {
    const ended = decided.flatMap(({ added }) => added.flatMap(vaultsEndedBy));
    const unnamed = decided.flatMap(({ job, added }) => job.attempt?.end(added) ?? []);
    await Promise.all([...ended, ...unnamed].map((vaultId) => this.ports.shred(vaultId)));
  }
}

/** Member by member: members that follow a spread cost more than deciding (docs/performance.md). */
function answerAt(answer: Decided['answer'], position: bigint): DriveAnswer {
  const { organizationId, organization, callerUserId, meter, activityId, record, appended } = answer;
  return { organizationId, organization, callerUserId, meter, activityId, record, appended, position };
}

/** Whether a response, or an action, relies on the head alone. */
function tellsSomething({ decided, refused, allowed }: DecidedBatch): boolean {
  return decided.length + refused.length + allowed.length > 0;
}

function askedAgain({ decided, refused, allowed, left }: DecidedBatch): readonly Job[] {
  return [...[...decided, ...refused, ...allowed].map(({ job }) => job), ...left];
}

/** Lets other writers pass, with a shorter pause each time, so that the longest-waiting writer gets its turn. */
function pauseAfter(attempts: number): Promise<void> {
  return pause((Math.random() * longestPauseMs) / attempts);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function isTooLarge(error: unknown): boolean {
  return error instanceof StoreRefused && error.refusal.kind === 'too-large';
}
