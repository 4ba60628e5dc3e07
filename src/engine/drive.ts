import type { AnyActivity, ToReadAhead } from '../activities/define-activity.js';
import type { PreparePorts } from '../ports/prepare.js';
import type { ActivityEvent, Vote, VoteSelection } from '../domain/activity/events.js';
import { evolveRecord, type ActivityRecord } from '../domain/activity/record.js';
import { recordedForm } from '../domain/activity/recorded-form.js';
import { CoordinatorError } from '../domain/errors.js';
import { isAuthProxyUser } from '../domain/organization/auth-proxy.js';
import {
  evolve,
  organizationStream,
  type OrganizationEvent,
  type OrganizationView,
} from '../domain/organization/organization.js';
import { hasLapsed } from '../domain/organization/claims.js';
import { limitsSetFor, type LimitsOfOperator } from '../domain/organization/limits.js';
import type { OpenActivity } from '../domain/organization/open-activities.js';
import type { User } from '../domain/organization/users.js';
import { rulesNumber } from '../domain/activity/rules.js';
import type { ClausesRead } from '../domain/policy/language.js';
import { decisionSteps, decodingSteps, Meter, MeterSpent, type Steps } from '../domain/steps.js';
import { vaultsEndedBy } from '../domain/organization/vaults.js';
import { seal } from '../ledger/seal.js';
import { WrongRevision, type EventStore, type NewEvent } from '../ledger/event-store.js';
import { organizationPath, pathAmongAll } from '../fairness/fair-queue.js';
import { largeBody, thisThread } from '../fairness/turns.js';
import { proveEnded } from '../decide/app-proofs.js';
import { Attempt } from './attempts.js';
import type { Children } from './children.js';
import { saysNow, toSignOf, waitsFor } from '../decide/explain.js';
import { approversOf, isVoteOf, rightsOf } from '../decide/rights.js';
import {
  clausesOf,
  limitsToCheck,
  ReadFirst,
  type Basis,
  type FoundOut,
  type Prepared,
  type Verdict,
} from '../decide/basis.js';
import { countedApprovals, submissionOf } from '../decide/approvals.js';
import { decideSubmit } from '../decide/submit.js';
import { decideVote } from '../decide/vote.js';
import { decisionTime, noteTime } from '../decide/decision-time.js';
import { DecisionQueue } from './decision-queue.js';
import type { DenialLog } from './denials.js';
import { recordedChild } from '../decide/found-organization.js';
import { derivedId, uuidV7 } from '../ids.js';
import {
  forgetCovered,
  noteFingerprint,
  type LoadedOrganization,
  type OrganizationLoader,
} from '../ledger/load-organization.js';
import { checkPasskeyUnchanged, verifyPasskey, type VerifiedPasskey } from './passkeys.js';
import type {
  Clock,
  DriverMetrics,
  KnownActivities,
  PasskeyCounters,
  ProofSigner,
  Randomness,
  ReadingPort,
} from '../ports/engine.js';
import {
  apiKeyOnly,
  attestedElsewhere,
  membersOfParentOnly,
  noSuchActivity,
  notWaiting,
  organizationDeleted,
  organizationMismatch,
  proxyLogin,
  signUpLapsed,
  storeRefusal,
  tooMuchToRecord,
} from '../decide/refusals.js';
import { activityVersion, newestIntent, type ActivityVersion, type Registry } from '../decide/registry.js';
import type { SubmitRequest } from './requests.js';
import { attestedCaller, invitedCaller, resolveCaller, type Caller, type OwnStamp } from '../decide/resolve-caller.js';
import { Room } from './room.js';
import { decodedForMail, decodedOf, type Decoded, type DecodedFact } from '../domain/policy/decoded.js';
import type { WaitsFor } from '../decide/waits-for.js';

/** Which activity a request was about, and what became of it. */
export interface DriveAnswer {
  readonly organizationId: string;
  readonly activityId: string;
  readonly callerUserId: string;
  /** The activity as the events just recorded leave it; undefined for a finished one that was known before. */
  readonly record: ActivityRecord<User | undefined> | undefined;
  /** Position that a reader must have passed to see what is answered. */
  readonly position: bigint;
  /** The meter of the request: the rights in its answer are told with the rest. */
  readonly meter: Meter;
  /** This very request was recorded as the submission, with what `prepare` gave. */
  readonly appended?: { readonly prepared: unknown };
}

/** It is allowed, and `prepare` runs before it can be decided; for whom it was submitted. */
interface PrepareFirst {
  readonly submitterId: string;
}

/** Something takes long to read, and is to be read before it can be decided. */
interface ReadingFirst {
  readonly ahead: ToReadAhead;
}

/** A decision that has begun: on one state of the organization and of its parent, at one time. */
interface Begun {
  /** Hashes of the last events of both. */
  readonly heads: string;
  readonly now: number;
  readonly steps: Steps;
  readonly clauses: ClausesRead;
  readonly found: FoundOut;
}

/** How far a request has come, however often it is sent away to be read or prepared. */
interface Course {
  readonly meter: Meter;
  begun?: Begun;
}

interface Job {
  readonly request: SubmitRequest;
  readonly course: Course;
  readonly passkey: VerifiedPasskey | undefined;
  /** What `prepare` gave, once it has run; kept over retries so that the world is touched once. */
  readonly prepared: Prepared;
  /** The run that gave it. */
  readonly attempt: Attempt | undefined;
  /** Who asked, once that is known. */
  callerUserId: string;
  readonly resolve: (outcome: DriveAnswer | PrepareFirst | ReadingFirst) => void;
  readonly reject: (error: unknown) => void;
}

/** What one job adds to the batch, before anything is recorded. */
interface Decided {
  readonly job: Job;
  readonly answer: Omit<DriveAnswer, 'position'>;
  /** Empty when the request was known before. */
  readonly added: readonly OrganizationEvent[];
  /** It was recorded as failed, and the caller is told why. */
  readonly refusal?: CoordinatorError | undefined;
  readonly afterwards?: ((ports: PreparePorts) => void) | undefined;
}

export interface DriverPorts {
  readonly store: EventStore;
  readonly loader: OrganizationLoader;
  readonly registry: Registry;
  readonly known: KnownActivities;
  readonly denials: DenialLog;
  readonly counters: PasskeyCounters;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly proofs: ProofSigner;
  /** Where passkeys may be used unless an organization or its parent says so; empty is the rule of `stamps/webauthn.ts`. */
  readonly passkeyOrigins: readonly string[];
  /** The world for one run of `prepare`: what it seals there is destroyed unless what is recorded names it. */
  readonly prepare: (attempt: Attempt) => PreparePorts;
  readonly children: Pick<Children, 'found'>;
  /** Destroys the secrets of a vault; reports a failure by itself, as what was decided stands. */
  readonly shred: (vaultId: string) => Promise<void>;
  /** Told of an activity that has begun to wait, and of who may approve it. Takes no time, and reports a failure by itself. */
  readonly votesWanted?: (
    open: OpenActivity,
    organization: OrganizationView,
    approvers: readonly User[],
    wouldSign: readonly DecodedFact[],
  ) => void;
  /** Without it everything is read where it is needed. */
  readonly reading?: ReadingPort;
  /** Limits that the operator has set; without it the usual ones hold. */
  readonly limits?: LimitsOfOperator;
  readonly metrics: DriverMetrics;
  /** How long a request that other writers get ahead of is decided again, in milliseconds; 5 000 unless told. */
  readonly patienceMs?: number;
}

/** What a user may do about an activity; `notComputed` where telling would have taken too long. */
export interface Rights {
  readonly canApprove: boolean;
  readonly canReject: boolean;
  readonly notComputed?: true;
  /** Of one activity that waits for votes, told where there are steps left for it. */
  readonly waitsFor?: WaitsFor;
  /** What it would sign, decoded. */
  readonly decoded?: readonly Decoded[];
}

const noRights: Rights = { canApprove: false, canReject: false };
const notComputed: Rights = { ...noRights, notComputed: true };

/** What rights could not be told without, as it takes long to read. */
export type Unread = { readonly ahead: ToReadAhead; readonly organization: OrganizationView }[];

/**
 * How long a batch is decided for, turns of others not counted, until what is left of it goes into the next, in milliseconds:
 * whoever is in it waits so long for the costly requests of others.
 */
const longestBatchMs = 500;
/** How long a batch is decided again while other writers are first, in milliseconds. */
const patienceMs = 5_000;
/** Longest pause before it is, in milliseconds; short, since whoever tries less often than the others loses to them. */
const longestPauseMs = 16;
/** Bytes of the events of one request at most, whatever the store could take: 4 MiB less the quotes and names around them. */
const maxActivityBytes = 4 * 1024 * 1024 - 4096;
/** Times that one request is read anew because interfaces or keys have changed, while its steps for that last. */
const mostReadings = 4;
/** How long a decision stays as it has begun, as long as nothing is recorded: what clocks may differ, in milliseconds. */
const longestDecisionMs = 5_000;
/** Stands for the position of events of a batch that is not recorded yet. */
const unsettled = 2n ** 63n;

/**
 * Makes every verb happen. Requests of one organization wait in a queue; whatever waits is taken as one batch, decided
 * in order, each on the state left by the one before it, and recorded in one append at the revision that was read.
 */
export class Driver {
  private readonly queues = new Map<string, DecisionQueue<Job>>();
  private readonly running = new Set<Promise<void>>();
  private readonly attempts = new Set<Attempt>();
  private readonly room = new Room();

  constructor(private readonly ports: DriverPorts) {}

  /**
   * Decides a request, records what follows, and answers once that is durable.
   * @throws {CoordinatorError} every refusal; nothing of a refused request is recorded but a denial
   */
  async drive(request: SubmitRequest, meter = new Meter()): Promise<DriveAnswer> {
    const { stamp, body } = request;
    const passkey =
      stamp.kind === 'webauthn'
        ? await verifyPasskey(stamp, body, await this.homeOfCaller(request), this.ports)
        : undefined;
    const course: Course = { meter };
    let outcome = await this.enqueue(request, course, passkey);
    let readings = 0;
    for (;;) {
      if ('submitterId' in outcome) {
        outcome = await this.attempt(request, course, passkey, outcome.submitterId);
      } else if ('ahead' in outcome) {
        // Once, or again when the organization has changed meanwhile.
        if (++readings > mostReadings || meter.decoding.isSpent) throw changedTooOften(request.organizationId);
        const { organization } = await this.ports.loader.load(request.organizationId);
        await this.readElsewhere(outcome.ahead, organization, meter);
        outcome = await this.enqueue(request, course, passkey);
      } else return outcome;
    }
  }

  /** @throws {CoordinatorError} when it was not read at all */
  private async readElsewhere(
    { job, keep }: ToReadAhead,
    { organizationId, parentOrganizationId }: OrganizationView,
    { decoding }: Meter,
  ): Promise<void> {
    const outcome = await this.ports.reading?.read(job, organizationPath(organizationId, parentOrganizationId));
    if (!outcome) return;
    decoding.note(outcome.spent);
    keep(outcome, parentOrganizationId ?? organizationId);
  }

  /** The organization that credentials of a request are looked up in first. */
  private async homeOfCaller({ organizationId, version: { definition } }: SubmitRequest): Promise<string> {
    if (definition.kind !== 'activity' || !definition.byParent) return organizationId;
    const { organization } = await this.ports.loader.load(organizationId);
    return organization.parentOrganizationId ?? organizationId;
  }

  /** Whether what names this vault may yet be recorded by this process. */
  isLive(vaultId: string): boolean {
    for (const { vaultIds } of this.attempts) if (vaultIds.includes(vaultId)) return true;
    return false;
  }

  /**
   * What a user may do about an activity now; nothing about one that does not wait for votes.
   * @throws {ReadFirst}
   */
  rights(organization: OrganizationView, activityId: string, userId: string, meter = new Meter()): Rights {
    if (!organization.openActivities.has(activityId)) return noRights;
    return this.rightsTogether(organization, userId, meter)(activityId);
  }

  /** As `rights`, with what the activity waits for. */
  private rightsInWords(organization: OrganizationView, activityId: string, userId: string, meter: Meter): Rights {
    const rights = this.rights(organization, activityId, userId, meter);
    const said = this.saidToMember(organization, activityId, userId, meter, (basis, open) => {
      const missing = waitsFor(basis, open, userId);
      return missing && { waitsFor: missing, decoded: decodedIn(basis, open) };
    });
    const { waitsFor: missing, decoded } = said ?? {};
    return { ...rights, ...(missing ? { waitsFor: missing } : {}), ...(decoded ? { decoded } : {}) };
  }

  /** What an activity would sign, decoded as policies read it now; undefined of one that signs nothing. */
  async decoded(
    organization: OrganizationView,
    activity: Pick<OpenActivity, 'type' | 'intent'>,
  ): Promise<readonly Decoded[] | undefined> {
    const unread: Unread = [];
    const meter = new Meter();
    const read = () => decodedIn(this.basis(organization, 0, undefined, meter.reading), activity);
    const atOnce = this.ifRead(organization, unread, read, undefined);
    if (unread.length === 0) return atOnce;
    await this.readUnread(unread, meter);
    return this.ifRead(organization, [], read, undefined);
  }

  /**
   * What each policy says of an activity that waits for votes, as things stand; undefined of another, to others than the
   * organization's users, and as long as the activity was not read.
   */
  saysNow(
    organization: OrganizationView,
    activityId: string,
    userId: string,
    meter: Meter,
    unread: Unread,
  ): ReturnType<typeof saysNow> {
    const read = () => this.saidToMember(organization, activityId, userId, meter, saysNow);
    return this.ifRead(organization, unread, read, undefined);
  }

  private saidToMember<Said>(
    organization: OrganizationView,
    activityId: string,
    userId: string,
    meter: Meter,
    say: (basis: Basis, open: OpenActivity, userId: string) => Said,
  ): Said | undefined {
    const open = organization.openActivities.get(activityId);
    const isMember = organization.users.has(userId) && !isAuthProxyUser(organization, userId);
    if (!open || !isMember || organization.isDeleted || meter.left <= 0) return undefined;
    const basis = this.basis(organization, 0, undefined, meter.reading);
    return say({ ...basis, steps: meter.upTo(decisionSteps(rulesNumber)) }, open, userId);
  }

  /**
   * As `rights`, with the rest of the meter and with what the activity waits for, and not computed as long as the activity was
   * not read; `unread` reads it, and they are asked for again then.
   */
  rightsIfRead(
    organization: OrganizationView,
    activityId: string,
    userId: string,
    meter: Meter,
    unread: Unread,
  ): Rights {
    const read = () => this.rightsInWords(organization, activityId, userId, meter);
    return this.ifRead(organization, unread, read, notComputed);
  }

  /**
   * As `rightsIfRead`, about each of several activities. Policies are read once for all of them, and one meter holds for
   * the request: beyond it, rights are not computed.
   */
  rightsOnPage(
    organization: OrganizationView,
    userId: string,
    meter: Meter,
    unread: Unread,
  ): (activityId: string) => Rights {
    const rights = this.rightsTogether(organization, userId, meter);
    return (activityId) => this.ifRead(organization, unread, () => rights(activityId), notComputed);
  }

  /** Reads what rights could not be told without, one after the other as long as the steps of the request for that last. */
  async readUnread(unread: Unread, meter: Meter): Promise<void> {
    for (const { ahead, organization } of unread) {
      if (meter.decoding.isSpent) return;
      // What is not read now is not read when it is asked for again either, and then nobody waits for it.
      await this.readElsewhere(ahead, organization, meter).catch(() => meter.decoding.note(decodingSteps));
    }
  }

  private rightsTogether(organization: OrganizationView, userId: string, meter: Meter): (activityId: string) => Rights {
    const basis = this.basis(organization, 0, undefined, meter.reading);
    const clauses = clausesOf(basis);
    return (activityId) => {
      const open = organization.openActivities.get(activityId);
      if (!open || organization.isDeleted || !organization.users.has(userId)) return noRights;
      // Each is told as it would be decided: as if it were alone.
      const steps = meter.upTo(decisionSteps(rulesNumber), clauses.spent);
      const rights = meter.left > 0 ? rightsOf({ ...basis, steps, clauses }, open, userId) : noRights;
      return meter.left > 0 ? rights : notComputed;
    };
  }

  private ifRead<Answer>(
    organization: OrganizationView,
    unread: Unread,
    read: () => Answer,
    otherwise: Answer,
  ): Answer {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof ReadFirst)) throw error;
      unread.push({ ahead: error.ahead, organization });
      return otherwise;
    }
  }

  /** Resolves when everything that was accepted has been answered. */
  async drain(): Promise<void> {
    while (this.running.size > 0) await Promise.all(this.running);
  }

  private async attempt(
    request: SubmitRequest,
    course: Course,
    passkey: VerifiedPasskey | undefined,
    submitterId: string,
  ): Promise<DriveAnswer | PrepareFirst | ReadingFirst> {
    const { loader, clock, randomness } = this.ports;
    const { organizationId, fingerprint } = request;
    const { organization, revision, pending } = await loader.load(organizationId);
    const said = {
      attemptId: uuidV7(clock, randomness),
      organizationId,
      fingerprint,
      // Events whose append is on its way may never be recorded.
      revision: revision - pending.length,
      at: clock.now(),
    };
    const { parentOrganizationId } = organization;
    const path = pathAmongAll(request.from, organizationId, parentOrganizationId);
    const attempt = new Attempt(said, submitterId, parentOrganizationId, this.ports, path);
    this.attempts.add(attempt);
    try {
      const prepared = await this.prepare(request, organization, attempt, course.meter).catch(
        async (error: unknown) => {
          await this.lose(attempt);
          throw error;
        },
      );
      return await this.enqueue(request, course, passkey, { prepared, attempt });
    } finally {
      this.attempts.delete(attempt);
    }
  }

  private async prepare(
    { version, intent }: SubmitRequest,
    organization: OrganizationView,
    attempt: Attempt,
    meter: Meter,
  ): Promise<Prepared> {
    const { registry, loader, prepare, clock } = this.ports;
    let target = { definition: version.definition, intent };
    const parent = (await loader.parentOf(organization))?.organization;
    if (version.definition.kind === 'vote') {
      const open = openByFingerprint(organization, (intent as { fingerprint: string }).fingerprint);
      // Finished while it was sent away to prepare: the decision says so.
      if (!open) return undefined;
      const voted = activityVersion(registry, open.type);
      const asked = newestIntent(voted, open.intent);
      target = { definition: voted.definition, intent: asked };
    }
    const { submitterId } = attempt;
    const { ahead } = target.definition as AnyActivity;
    const set = limitsSetFor(organization, parent, this.ports.limits);
    const context = {
      ...limitsToCheck({ organization, ...(set ? { limits: set } : {}) }),
      organization,
      parent,
      submitterId,
      now: decisionTime(clock, organization, parent),
      newId: () => attempt.newId(),
    };
    try {
      // Of another organization than was decided on: it may have changed since.
      const toRead = this.ports.reading ? ahead?.(target.intent, organization, meter.reading) : undefined;
      if (toRead) await this.readElsewhere(toRead, organization, meter);
      return { value: await (target.definition as AnyActivity).prepare?.(target.intent, prepare(attempt), context) };
    } catch (error) {
      // Whether this refuses the request or fails an activity that was voted on is for the decision to say.
      if (error instanceof CoordinatorError) return { refusal: error };
      throw error;
    }
  }

  private enqueue(
    request: SubmitRequest,
    course: Course,
    passkey: VerifiedPasskey | undefined,
    made?: { readonly prepared: Prepared; readonly attempt: Attempt },
  ): Promise<DriveAnswer | PrepareFirst | ReadingFirst> {
    const { organizationId } = request;
    const { prepared, attempt } = made ?? {};
    return new Promise((resolve, reject) => {
      // A new job each time: the batch that sent a request away to prepare may yet fail, and must not reach this one.
      const entry: Job = { request, course, passkey, prepared, attempt, callerUserId: '', resolve, reject };
      const waiting = this.queues.get(organizationId) ?? new DecisionQueue<Job>();
      waiting.push(entry);
      if (this.queues.has(organizationId)) return;
      this.queues.set(organizationId, waiting);
      this.keep(this.runQueue(organizationId, waiting));
    });
  }

  private keep(work: Promise<void>): void {
    const kept = work.finally(() => this.running.delete(kept));
    this.running.add(kept);
  }

  private async runQueue(organizationId: string, waiting: DecisionQueue<Job>): Promise<void> {
    while (waiting.size > 0) {
      const others = this.ports.store.exclusive ? 0 : this.room.waitMs(organizationId, performance.now());
      if (others > 0) await pause(others);
      waiting.putBack(await this.settle(organizationId, waiting.batch()));
    }
    this.queues.delete(organizationId);
  }

  /** Returns those of a batch that are to go into the next one. */
  private async settle(organizationId: string, batch: readonly Job[]): Promise<readonly Job[]> {
    const letGo = this.ports.loader.hold(organizationId);
    try {
      return await this.runBatch(organizationId, batch);
    } catch (error) {
      // Whatever it was, the folded state may be ahead of what was recorded.
      this.ports.loader.drop(organizationId);
      if (batch.length > 1 && isTooLarge(error)) {
        // Together: who did not ask for much is not refused for it.
        for (const job of batch) await this.settle(organizationId, [job]);
      } else {
        for (const job of batch) job.reject(error);
      }
      return [];
    } finally {
      letGo();
    }
  }

  private async runBatch(organizationId: string, jobs: readonly Job[]): Promise<readonly Job[]> {
    const { loader, metrics, known } = this.ports;
    let pending = jobs;
    const begun = performance.now();
    for (let attempt = 1; ; attempt++) {
      const readFrom = performance.now();
      const loaded = await loader.load(organizationId);
      const parent = await loader.parentOf(loaded.organization);
      forgetCovered(loaded, known.checkpoint());
      const path = organizationPath(organizationId, loaded.organization.parentOrganizationId);
      const own = thisThread.next(path, { alone: isLarge(pending[0]!) });
      if (own) await own;
      const readAt = loaded.revision;
      const events: NewEvent[] = [];
      const decided: Decided[] = [];
      const refused: { job: Job; error: unknown }[] = [];
      const lost: Attempt[] = [];
      let left: readonly Job[] = [];
      let spentMs = 0;
      for (const [index, job] of pending.entries()) {
        // What goes together is decided together, but others' turns come in between.
        const turn = index > 0 ? thisThread.next(path, { alone: isLarge(job) }) : undefined;
        if (turn) await turn;
        const started = performance.now();
        try {
          const outcome = this.decideJob(job, loaded, parent, events);
          if ('submitterId' in outcome) {
            if (job.attempt) lost.push(job.attempt);
            job.resolve(outcome);
          } else decided.push(outcome);
        } catch (error) {
          if (error instanceof HalfApplied) throw error.cause;
          if (error instanceof MeterSpent) refused.push({ job, error: decidedTooOften(organizationId) });
          else if (error instanceof ReadFirst) {
            if (job.attempt) lost.push(job.attempt);
            job.resolve({ ahead: error.ahead });
          } else refused.push({ job, error });
        }
        spentMs += performance.now() - started;
        if (spentMs < longestBatchMs) continue;
        left = pending.slice(index + 1);
        break;
      }
      try {
        // Writing out what was decided takes as long as deciding it.
        if (decided.some(({ job }) => isLarge(job))) await thisThread.next(path, { alone: true });
        await this.append(loaded, readAt, events, decided);
      } catch (error) {
        loader.drop(organizationId);
        const isOutOfTime = performance.now() - begun > (this.ports.patienceMs ?? patienceMs);
        if (!(error instanceof WrongRevision) || isOutOfTime) {
          // What the store has not confirmed may be recorded all the same; what it has refused never will be.
          const given = error instanceof WrongRevision ? [...refused, ...decided] : refused;
          await this.lose(...lost, ...given.flatMap(({ job }) => job.attempt ?? []));
          throw storeRefusal(error, organizationId, attempt);
        }
        await this.lose(...lost);
        metrics.conflict();
        await pauseAfter(attempt);
        // Nothing is held any more, and a whole stream takes long to read: what has come meanwhile is read at the top, so that
        // whoever has lost decides on a state as new as that of those who have not.
        await loader.load(organizationId);
        // What was refused was refused on a state that another writer has left behind, so it is asked again too.
        pending = [...[...decided, ...refused].map(({ job }) => job), ...left];
        continue;
      }
      if (events.length > 0) {
        this.room.wrote(organizationId, readAt, readAt + events.length, readFrom, performance.now());
      }
      for (const { job } of refused) if (job.attempt) lost.push(job.attempt);
      const [founded] = await Promise.all([
        this.foundChildren(readAt, events),
        this.shredEnded(decided),
        this.lose(...lost),
      ]);
      for (const { job, error } of refused) this.refuse(job, error, organizationId);
      // Also for what was known before: votes on it may have been recorded long after its submission.
      for (const { job, answer, refusal, afterwards } of decided) {
        try {
          if (refusal) throw refusal;
          if (job.attempt) afterwards?.(this.ports.prepare(job.attempt));
          const position = await founded.get(answer.activityId)?.catch((error: unknown) => {
            throw storeRefusal(error, organizationId, attempt);
          });
          job.resolve({ ...answer, position: position ?? loaded.position });
        } catch (error) {
          job.reject(error);
        }
      }
      this.askForVotes(loaded.organization, decided);
      return left;
    }
  }

  private askForVotes(organization: OrganizationView, decided: readonly Decided[]): void {
    const { votesWanted } = this.ports;
    if (!votesWanted) return;
    for (const { added, answer } of decided) {
      if (!added.some(({ type }) => type === 'ActivitySubmitted')) continue;
      // Voted on in the same batch, it may not wait any more.
      const open = organization.openActivities.get(answer.activityId);
      if (!open) continue;
      this.keep(this.askApprovers(open, organization, answer.meter, votesWanted));
    }
  }

  private async askApprovers(
    open: OpenActivity,
    organization: OrganizationView,
    meter: Meter,
    votesWanted: NonNullable<DriverPorts['votesWanted']>,
  ): Promise<void> {
    const approvers = () => {
      const unread: Unread = [];
      const basis = this.basis(organization, 0, undefined, meter.reading);
      const asked = { ...basis, steps: meter.upTo(decisionSteps(rulesNumber)) };
      const wanted = this.ifRead(organization, unread, () => approversOf(asked, open), new Set<string>());
      const found = [...organization.users.values()].filter(({ userId }) => wanted.has(userId));
      const toSign = this.ifRead(organization, unread, () => toSignOf(basis, open), undefined);
      return { found, unread, wouldSign: toSign ? decodedForMail(toSign) : [] };
    };
    const atOnce = approvers();
    if (atOnce.unread.length > 0) await this.readUnread(atOnce.unread, meter);
    const { found, wouldSign } = atOnce.unread.length > 0 ? approvers() : atOnce;
    votesWanted(open, organization, found, wouldSign);
  }

  /**
   * Writes the streams of sub-organizations that were just recorded: whoever is told of one may use it at once. By the
   * activity that made each, its position or why it is not there yet.
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

  /** What was deleted is gone when it is answered; what a crash leaves behind here is found again at the next start. */
  private async shredEnded(decided: readonly Decided[]): Promise<void> {
    const ended = decided.flatMap(({ added }) => added.flatMap(vaultsEndedBy));
    const unnamed = decided.flatMap(({ job, added }) => job.attempt?.end(added) ?? []);
    await Promise.all([...ended, ...unnamed].map((vaultId) => this.ports.shred(vaultId)));
  }

  /** What attempts have made that will never be recorded is gone at once. */
  private async lose(...attempts: readonly Attempt[]): Promise<void> {
    await Promise.all(attempts.flatMap((attempt) => attempt.end([])).map((vaultId) => this.ports.shred(vaultId)));
  }

  private async append(
    loaded: LoadedOrganization,
    readAt: number,
    events: readonly NewEvent[],
    decided: readonly Decided[],
  ): Promise<void> {
    if (events.length === 0) return;
    const stream = organizationStream(loaded.organization.organizationId);
    const started = performance.now();
    const { position } = await this.ports.store.append(stream, events, readAt);
    this.ports.metrics.appended((performance.now() - started) / 1000, decided.length);
    loaded.pending.length = 0;
    // A reader may have folded another writer's later events meanwhile.
    if (position > loaded.position) loaded.position = position;
    for (const { added } of decided) for (const event of added) noteFingerprint(loaded, event, position);
  }

  /** Decides one request on the folded state, and takes what follows into that state and into the batch. */
  private decideJob(
    job: Job,
    loaded: LoadedOrganization,
    parent: LoadedOrganization | undefined,
    batch: NewEvent[],
  ): Decided | PrepareFirst {
    const { request } = job;
    const { meter } = job.course;
    const { organization } = loaded;
    const today = this.basis(organization, loaded.revision, parent?.organization, meter.reading);
    const caller = checkedCaller(job, organization, parent?.organization, today.now);
    job.callerUserId = caller.user.userId;
    const answer = { organizationId: organization.organizationId, callerUserId: caller.user.userId, meter };
    const basis = this.underWay(job.course, today, loaded, parent);

    const known = this.knownActivity(loaded, request.fingerprint);
    if (known && !this.isWordOfAnother(basis, known, request, caller)) {
      const record = organization.openActivities.get(known);
      return { job, answer: { ...answer, activityId: known, record }, added: [] };
    }

    // After what was known: whoever asks again for the deletion itself is told that it was done.
    if (organization.isDeleted) throw organizationDeleted(organization.organizationId);
    if (hasLapsed(organization, today.now)) throw signUpLapsed(organization.organizationId);
    if (job.attempt?.isTooOld()) return { submitterId: job.attempt.submitterId };
    const outcome = this.verdict(job, caller, basis, loaded, parent);
    if ('submitterId' in outcome) return outcome;
    const { activityId, events, refusal, afterwards } = outcome;
    const record = recordAfter(organization, activityId, events, basis.now);
    // Sealed before the state changes: what cannot be written must leave no trace in it.
    batch.push(...sealEvents(loaded, events, activityId, request.fingerprint, basis.now));
    try {
      noteTime(organization, basis.now);
      for (const event of events) {
        evolve(organization, event, basis.now);
        noteFingerprint(loaded, event, unsettled);
      }
    } catch (cause) {
      throw new HalfApplied(cause);
    }
    const isSubmission = events.some(({ type }) => type === 'ActivitySubmitted');
    const given = job.prepared && 'value' in job.prepared ? job.prepared.value : undefined;
    const appended = isSubmission ? { appended: { prepared: given } } : {};
    return { job, answer: { ...answer, ...appended, activityId, record }, added: events, refusal, afterwards };
  }

  /** The identical body from another user who may vote is that user's word too (client protocol 2.5). */
  private isWordOfAnother(
    basis: Basis,
    activityId: string,
    { fingerprint, version: { definition } }: SubmitRequest,
    { user: { userId } }: Caller,
  ): boolean {
    const { organization } = basis;
    const open = organization.openActivities.get(activityId);
    if (!open || open.votes.some((vote) => vote.fingerprint === fingerprint && vote.userId === userId)) return false;
    // A vote is decided as one: who may not cast it must be told so, not shown the activity as if it had counted.
    if (definition.kind === 'vote') return true;
    return !organization.isDeleted && organization.users.has(userId) && isVoteOf(basis, open, userId);
  }

  /** The decision as it has begun, if it was on the same state; otherwise another, with what is left of the meter. */
  private underWay(
    course: Course,
    today: Basis,
    loaded: LoadedOrganization,
    parent: LoadedOrganization | undefined,
  ): Basis {
    const heads = `${loaded.hash} ${parent?.hash}`;
    const { begun } = course;
    if (begun?.heads !== heads || today.now - begun.now > longestDecisionMs) {
      const steps = course.meter.decision(rulesNumber);
      course.begun = { heads, now: today.now, steps, clauses: clausesOf(today), found: {} };
    }
    const { now, steps, clauses, found } = course.begun!;
    return { ...today, now, steps, clauses, found };
  }

  private knownActivity({ recent, organization }: LoadedOrganization, fingerprint: string): string | undefined {
    return (
      recent.get(fingerprint)?.activityId ??
      this.ports.known.findByFingerprint(organization.organizationId, fingerprint)
    );
  }

  private verdict(
    job: Job,
    caller: Caller,
    basis: Basis,
    loaded: LoadedOrganization,
    parent: LoadedOrganization | undefined,
  ): (Exclude<Verdict, 'prepare-first'> & { readonly activityId: string }) | PrepareFirst {
    const { request, passkey, prepared } = job;
    const { version, intent, fingerprint } = request;
    const isParents = caller.organizationId !== request.organizationId;
    const authority: { readonly authority?: LoadedOrganization } = isParents && parent ? { authority: parent } : {};
    const voter = { userId: caller.user.userId, credential: caller.credential, ...authority };
    const target = this.targetOf(request, loaded);
    const activityId = target?.activityId ?? uuidV7(this.ports.clock, this.ports.randomness);
    let outcome: Verdict;
    if (target) {
      const selection = version.definition.kind === 'vote' ? version.definition.selection : 'VOTE_SELECTION_APPROVED';
      const vote = voteOf(request, passkey, caller, activityId, selection);
      outcome = decideVote(basis, target, vote, voter, prepared);
    } else {
      const { parameters, timestampMs, generateAppProofs, found } = request;
      const { type } = version;
      const vote = voteOf(request, passkey, caller, activityId, 'VOTE_SELECTION_APPROVED');
      const submission = { activityId, type, intent, parameters, fingerprint, timestampMs, generateAppProofs, found };
      outcome = decideSubmit(basis, submission, vote, voter, prepared);
    }
    if (outcome === 'prepare-first') return { submitterId: target ? submissionOf(target).userId : voter.userId };
    this.ports.metrics.decided(outcome.outcome, target?.type ?? version.type);
    const proof = this.proofOf(job, outcome.events, target, basis, loaded.hash, authority.authority);
    return { ...outcome, events: [...outcome.events, ...proof], activityId };
  }

  /** The app proofs of an activity that was to have some, and that ends with these events. */
  private proofOf(
    { request, prepared }: Job,
    events: readonly OrganizationEvent[],
    target: OpenActivity | undefined,
    basis: Basis,
    organizationHash: string,
    authority: LoadedOrganization | undefined,
  ): readonly ActivityEvent[] {
    const end = events.at(-1);
    if (end?.type !== 'ActivityCompleted' && end?.type !== 'ActivityFailed') return [];
    if (!(target ?? request).generateAppProofs) return [];
    const { activityId } = end.data;
    const { organizationId } = basis.organization;
    const type = target?.type ?? request.version.type;
    const { definition, ...version } = activityVersion(this.ports.registry, type);
    const intent = target ? newestIntent({ ...version, definition }, target.intent) : request.intent;
    const given = prepared && 'value' in prepared ? prepared.value : undefined;
    const derivedBeside = given === undefined ? [] : (definition.derivedBeside?.(intent, organizationId, given) ?? []);
    const ended = {
      organizationId,
      activityId,
      type,
      parameters: target?.intent ?? request.parameters,
      approvals: target ? countedApprovals(basis, target) : [],
      events,
      derivedBeside,
      organizationHash,
      parentHash: authority?.hash,
      at: basis.now,
    };
    return [proveEnded(ended, this.ports.proofs)];
  }

  /** The open activity that a request is a vote on; undefined for a submit of something new. */
  private targetOf(
    { version, intent, fingerprint }: SubmitRequest,
    loaded: LoadedOrganization,
  ): OpenActivity | undefined {
    const { organization } = loaded;
    if (version.definition.kind === 'activity') return openByFingerprint(organization, fingerprint);
    const { fingerprint: wanted } = intent as { fingerprint: string };
    const target = openByFingerprint(organization, wanted);
    if (target) return target;
    const finished = this.knownActivity(loaded, wanted);
    // One that is known and open was named by a vote's fingerprint and not by its own.
    const isUnknown = finished === undefined || organization.openActivities.has(finished);
    throw isUnknown ? noSuchActivity(wanted) : notWaiting(finished);
  }

  private basis(
    organization: OrganizationView,
    revision: number,
    parent: OrganizationView | undefined,
    steps: Steps,
  ): Basis {
    const now = decisionTime(this.ports.clock, organization, parent);
    const reading = this.ports.reading && { reading: steps };
    const limits = limitsSetFor(organization, parent, this.ports.limits);
    const { registry } = this.ports;
    return { registry, organization, revision, now, ...reading, ...(limits ? { limits } : {}) };
  }

  /** Refuses a request; a denial is recorded first, without holding up the queue. */
  private refuse(job: Job, error: unknown, organizationId: string): void {
    if (!(error instanceof CoordinatorError) || error.code !== 'PERMISSION_DENIED') {
      job.reject(error);
      return;
    }
    this.ports.metrics.decided('deny', job.request.version.type);
    this.keep(
      this.ports.denials
        .record(organizationId, job.callerUserId, job.request, error)
        .then(() => job.reject(error), job.reject),
    );
  }
}

function decodedIn(basis: Basis, activity: Pick<OpenActivity, 'type' | 'intent'>): readonly Decoded[] | undefined {
  const toSign = toSignOf(basis, activity);
  return toSign && decodedOf(toSign);
}

/** The folded state has some of a request's events: nothing can be decided on it any more. */
class HalfApplied extends Error {
  constructor(override readonly cause: unknown) {
    super('an event could not be taken into the folded state');
  }
}

/** Lets other writers pass: a little less each time, so that the turn comes of whoever has waited longest. */
function pauseAfter(attempts: number): Promise<void> {
  return pause((Math.random() * longestPauseMs) / attempts);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function changedTooOften(organizationId: string): CoordinatorError {
  return new CoordinatorError(
    'UNAVAILABLE',
    `organization \`${organizationId}\` has changed ${mostReadings} times while this was read: send the same request again`,
    { retryAfterSeconds: 1 },
  );
}

function decidedTooOften(organizationId: string): CoordinatorError {
  return new CoordinatorError(
    'UNAVAILABLE',
    `organization \`${organizationId}\` has changed while this was decided, and its policies take too many steps to be asked ` +
      'again: send the same request again',
    { retryAfterSeconds: 1 },
  );
}

function isTooLarge(error: unknown): boolean {
  return error instanceof CoordinatorError && error.code === 'OUT_OF_RANGE';
}

/** Its body takes as long as a turn. */
function isLarge({ request }: Job): boolean {
  return request.body.length > largeBody;
}

/** @throws {CoordinatorError} when the stamp is nobody's, or its owner may not submit this here */
function checkedCaller(
  job: Job,
  organization: OrganizationView,
  parent: OrganizationView | undefined,
  now: number,
): Caller {
  const { request, passkey } = job;
  const { stamp, version, organizationId, attestation } = request;
  const { definition } = version;
  const isActivity = definition.kind === 'activity';
  if (stamp.kind === 'webauthn' && isActivity && definition.apiKeyOnly) throw apiKeyOnly(version.type);
  if (stamp.kind === 'attested') {
    if (!attestation || !(isActivity && definition.attestedStamp)) throw attestedElsewhere(version.type);
    return attestedCaller(stamp, attestation, organization, now);
  }
  if (isActivity && definition.byInvitation) return invitedCaller(stamp, organization, now);
  if (isActivity && definition.byParent) return parentsCaller(job, stamp, organization, parent, now);
  const caller = resolveCaller(stamp, organization, parent, now);
  // Known before what is denied to this very user: a denial names who it was.
  job.callerUserId = caller.user.userId;
  checkNoProxyLogin(version, organization, caller);
  if (passkey && caller.authenticator) checkPasskeyUnchanged(passkey, caller.authenticator);
  if (caller.organizationId !== organizationId && !(isActivity && definition.fromParent)) {
    throw organizationMismatch(organizationId, caller.organizationId);
  }
  return caller;
}

/**
 * A member of the parent, looked up in the parent alone: a sub-organization's users may have registered any public key.
 * @throws {CoordinatorError} UNAUTHENTICATED for a credential that nobody there has; PERMISSION_DENIED for its auth proxy
 */
function parentsCaller(
  job: Job,
  stamp: OwnStamp,
  organization: OrganizationView,
  parent: OrganizationView | undefined,
  now: number,
): Caller {
  const { passkey } = job;
  const { type } = job.request.version;
  const caller = resolveCaller(stamp, parent ?? organization, undefined, now);
  job.callerUserId = caller.user.userId;
  if (!parent) throw membersOfParentOnly(type, undefined);
  if (isAuthProxyUser(parent, caller.user.userId)) throw membersOfParentOnly(type, parent.organizationId);
  if (passkey && caller.authenticator) checkPasskeyUnchanged(passkey, caller.authenticator);
  return caller;
}

/**
 * The key of an auth proxy speaks for strangers: it logs people in to sub-organizations, and nobody to its own organization.
 * @throws {CoordinatorError} PERMISSION_DENIED
 */
function checkNoProxyLogin(
  { definition, type }: ActivityVersion,
  organization: OrganizationView,
  caller: Caller,
): void {
  const isLogin = definition.kind === 'activity' && (definition.fromParent || definition.ownSession);
  if (isLogin && isAuthProxyUser(organization, caller.user.userId)) throw proxyLogin(type, organization.organizationId);
}

function openByFingerprint(organization: OrganizationView, fingerprint: string): OpenActivity | undefined {
  for (const open of organization.openActivities.values()) if (open.fingerprint === fingerprint) return open;
  return undefined;
}

function voteOf(
  { stamp, text, fingerprint, attestation }: SubmitRequest,
  passkey: VerifiedPasskey | undefined,
  { user: { userId }, credential }: Caller,
  activityId: string,
  selection: VoteSelection,
): Vote {
  const vote = {
    voteId: derivedId(activityId, 'vote', userId, fingerprint),
    userId,
    selection,
    message: text,
    fingerprint,
    scheme: stamp.scheme,
    signature: stamp.signature,
    credentialId: credential.id,
    // That of a test harness is not the key of the credential that it stands for.
    publicKey: stamp.kind === 'api-key' ? stamp.publicKey : credential.publicKey,
  };
  if (stamp.kind === 'attested') return attestation ? { ...vote, attestation } : vote;
  if (stamp.kind === 'api-key') return vote;
  const { credentialId, authenticatorData, clientDataJson } = stamp;
  return { ...vote, webauthn: { credentialId, authenticatorData, clientDataJson, signCount: passkey?.signCount ?? 0 } };
}

/** The activity as the events will leave it, each voter as known now. */
function recordAfter(
  organization: OrganizationView,
  activityId: string,
  events: readonly OrganizationEvent[],
  at: number,
): ActivityRecord<User | undefined> | undefined {
  const voter = ({ userId }: Vote) => organization.users.get(userId);
  const recording = { organizationId: organization.organizationId, at, voter };
  return events
    .filter((event): event is ActivityEvent => event.type.startsWith('Activity'))
    .reduce<OpenActivity | undefined>(
      (record, event) => evolveRecord(record, event, recording),
      organization.openActivities.get(activityId),
    );
}

/** Links new events into the stream's hash chain and moves the loaded head on to the last of them. */
function sealEvents(
  loaded: LoadedOrganization,
  events: readonly OrganizationEvent[],
  activityId: string,
  causationId: string,
  at: number,
): readonly NewEvent[] {
  const stream = organizationStream(loaded.organization.organizationId);
  const metadata = { at, $correlationId: activityId, $causationId: causationId };
  const facts = events.map(({ type, data }) => ({ type, data: recordedForm(type, data), metadata }));
  const sealed = seal(stream, loaded, facts);
  if (sealed.bytes > maxActivityBytes) throw tooMuchToRecord(sealed.bytes, maxActivityBytes);
  loaded.hash = sealed.tail.hash;
  loaded.revision = sealed.tail.revision;
  loaded.pending.push(...sealed.hashes);
  return sealed.events;
}
