import type { AnyActivity, PreparePorts } from '../activities/define-activity.js';
import {
  liveApprovals,
  type ActivityEvent,
  type Decision,
  type Vote,
  type VoteSelection,
} from '../domain/activity/events.js';
import { evolveRecord, type ActivityRecord } from '../domain/activity/record.js';
import { activityAt, activityStatus, step, votingRights, type ActivitySnapshot } from '../domain/activity/machine.js';
import { CoordinatorError } from '../domain/errors.js';
import {
  evolve,
  organizationStream,
  type OrganizationEvent,
  type OrganizationView,
} from '../domain/organization/organization.js';
import type { OpenActivity } from '../domain/organization/open-activities.js';
import type { User } from '../domain/organization/users.js';
import {
  authorize,
  eligibleApprovers,
  type Approval,
  type Authorization,
  type AuthorizationContext,
  type AuthorizationRequest,
  type PolicyUser,
} from '../domain/policy/authorize.js';
import type { PolicyValue } from '../domain/policy/types.js';
import { chainEvent } from '../event-store/chain.js';
import { StoreUnavailable, WrongRevision, type EventStore, type NewEvent } from '../event-store/event-store.js';
import { checkWebAuthnChallenge, verifyWebAuthnStamp } from '../stamps/webauthn.js';
import type { DenialLog } from './denials.js';
import { derivedId, uuidV7 } from './ids.js';
import {
  forgetCovered,
  noteFingerprint,
  type LoadedOrganization,
  type OrganizationLoader,
} from './load-organization.js';
import type { Clock, DriverMetrics, KnownActivities, Randomness } from './ports.js';
import { activityVersion, newestIntent, type Registry } from './registry.js';
import type { SubmitRequest } from './requests.js';
import { apiKeyCredential, authenticatorCredential, resolveCaller, type Caller } from './resolve-caller.js';

/** Which activity a request was about, and what became of it. */
export interface DriveAnswer {
  readonly organizationId: string;
  readonly activityId: string;
  readonly callerUserId: string;
  /** The activity as the events just recorded leave it; undefined for a finished one that was known before. */
  readonly record: ActivityRecord<User | undefined> | undefined;
  /** Position that a reader must have passed to see what is answered; undefined when it lies far back. */
  readonly position: bigint | undefined;
}

/** What a passkey stamp has shown once its signature was verified. */
interface VerifiedPasskey {
  readonly publicKey: string;
  readonly signCount: number;
}

interface Job {
  readonly request: SubmitRequest;
  readonly passkey: VerifiedPasskey | undefined;
  /** What `prepare` gave, once it has run; kept over retries so that the world is touched once. */
  prepared: { readonly value: unknown } | undefined;
  readonly resolve: (outcome: DriveAnswer | 'prepare-first') => void;
  readonly reject: (error: unknown) => void;
}

/** What one job adds to the batch, before anything is recorded. */
interface Decided {
  readonly job: Job;
  readonly answer: Omit<DriveAnswer, 'position'>;
  /** Fingerprints that the events of this job carry belong to its activity; empty when nothing was added. */
  readonly added: readonly OrganizationEvent[];
  /** Where a request that was known before was recorded. */
  readonly knownAt: bigint | undefined;
}

export interface DriverPorts {
  readonly store: EventStore;
  readonly loader: OrganizationLoader;
  readonly registry: Registry;
  readonly known: KnownActivities;
  readonly denials: DenialLog;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly prepare: PreparePorts;
  readonly metrics: DriverMetrics;
}

/** Requests of one organization that go into one append at most. */
const maxBatch = 256;
/** Times a batch is decided again after another writer was first. */
const maxAttempts = 5;

/**
 * Makes every verb happen. Requests of one organization wait in a queue; whatever waits is taken as one batch, decided
 * in order, each on the state left by the one before it, and recorded in one append at the revision that was read.
 */
export class Driver {
  private readonly queues = new Map<string, Job[]>();
  private readonly running = new Set<Promise<void>>();

  constructor(private readonly ports: DriverPorts) {}

  /**
   * Decides a request, records what follows, and answers once that is durable.
   * @throws {CoordinatorError} every refusal; nothing of a refused request is recorded but a denial
   */
  async drive(request: SubmitRequest): Promise<DriveAnswer> {
    const passkey = await this.verifyPasskey(request);
    const job: Omit<Job, 'resolve' | 'reject'> = { request, passkey, prepared: undefined };
    let outcome = await this.enqueue(job);
    while (outcome === 'prepare-first') {
      job.prepared = { value: await this.prepare(request) };
      outcome = await this.enqueue(job);
    }
    return outcome;
  }

  /** What a user may do about an activity that waits for votes. */
  rights(
    organization: OrganizationView,
    activityId: string,
    userId: string,
  ): { readonly canApprove: boolean; readonly canReject: boolean } {
    const open = organization.openActivities.get(activityId);
    if (!open || !organization.users.has(userId)) return { canApprove: false, canReject: false };
    return votingRights(this.machineOf(organization, open, this.ports.clock.now()).snapshot, userId);
  }

  /** Resolves when everything that was accepted has been answered. */
  async drain(): Promise<void> {
    while (this.running.size > 0) await Promise.all(this.running);
  }

  private async verifyPasskey({ stamp, organizationId, body }: SubmitRequest): Promise<VerifiedPasskey | undefined> {
    if (stamp.kind !== 'webauthn') return undefined;
    return verifyPasskeyOf(stamp, body, this.ports, organizationId);
  }

  private async prepare(request: SubmitRequest): Promise<unknown> {
    const { version, intent } = await this.targetOf(request);
    return version.definition.prepare?.(intent, this.ports.prepare);
  }

  /** The activity that a request would execute: its own, or the one it votes on. */
  private async targetOf({ version, intent, organizationId }: SubmitRequest) {
    if (version.definition.kind === 'activity') {
      return { version: activityVersion(this.ports.registry, version.type), intent };
    }
    const { organization } = await this.ports.loader.load(organizationId);
    const target = openByFingerprint(organization, (intent as { fingerprint: string }).fingerprint);
    if (!target) throw noSuchActivity((intent as { fingerprint: string }).fingerprint);
    const targetVersion = activityVersion(this.ports.registry, target.type);
    return { version: targetVersion, intent: newestIntent(targetVersion, target.intent) };
  }

  private enqueue(job: Omit<Job, 'resolve' | 'reject'>): Promise<DriveAnswer | 'prepare-first'> {
    const { organizationId } = job.request;
    return new Promise((resolve, reject) => {
      const waiting = this.queues.get(organizationId);
      const entry: Job = Object.assign(job, { resolve, reject });
      if (waiting) {
        waiting.push(entry);
        return;
      }
      this.queues.set(organizationId, [entry]);
      const run = this.runQueue(organizationId).finally(() => this.running.delete(run));
      this.running.add(run);
    });
  }

  private async runQueue(organizationId: string): Promise<void> {
    const waiting = this.queues.get(organizationId)!;
    while (waiting.length > 0) {
      const batch = waiting.splice(0, maxBatch);
      try {
        await this.runBatch(organizationId, batch);
      } catch (error) {
        // Whatever it was, the folded state may be ahead of what was recorded.
        this.ports.loader.drop(organizationId);
        for (const job of batch) job.reject(error);
      }
    }
    this.queues.delete(organizationId);
  }

  private async runBatch(organizationId: string, jobs: readonly Job[]): Promise<void> {
    const { loader, store, metrics, known } = this.ports;
    let pending = jobs;
    for (let attempt = 1; pending.length > 0; attempt++) {
      const loaded = await loader.load(organizationId);
      const parent = await this.parentOf(loaded.organization);
      forgetCovered(loaded, known.checkpoint());
      const readAt = loaded.revision;
      const events: NewEvent[] = [];
      const decided: Decided[] = [];
      const refused: { job: Job; error: unknown }[] = [];
      for (const job of pending) {
        try {
          const outcome = this.decideJob(job, loaded, parent, events);
          if (outcome === 'prepare-first') job.resolve(outcome);
          else decided.push(outcome);
        } catch (error) {
          refused.push({ job, error });
        }
      }
      if (events.length > 0) {
        const started = performance.now();
        try {
          const { position } = await store.append(
            organizationStream(organizationId),
            events,
            readAt < 0 ? 'no-stream' : readAt,
          );
          metrics.appended((performance.now() - started) / 1000, decided.length);
          loaded.position = position;
          for (const { added } of decided) for (const event of added) noteFingerprint(loaded, event, position);
        } catch (error) {
          // The folded state now holds events that were not recorded, so the next reader must fold anew.
          loader.drop(organizationId);
          if (error instanceof WrongRevision && attempt < maxAttempts) {
            metrics.conflict();
            pending = [...decided.map(({ job }) => job), ...refused.map(({ job }) => job)];
            continue;
          }
          throw translateStoreError(error, organizationId);
        }
      }
      for (const { job, error } of refused) this.refuse(job, error, loaded.organization);
      for (const { job, answer, added, knownAt } of decided) {
        job.resolve({ ...answer, position: added.length > 0 ? loaded.position : knownAt });
      }
      return;
    }
  }

  private async parentOf(organization: OrganizationView): Promise<OrganizationView | undefined> {
    const { parentOrganizationId } = organization;
    return parentOrganizationId ? (await this.ports.loader.load(parentOrganizationId)).organization : undefined;
  }

  /** Decides one request on the folded state, and takes what follows into that state and into the batch. */
  private decideJob(
    job: Job,
    loaded: LoadedOrganization,
    parent: OrganizationView | undefined,
    batch: NewEvent[],
  ): Decided | 'prepare-first' {
    const { request } = job;
    const { organization } = loaded;
    const now = this.ports.clock.now();
    const caller = this.checkCaller(job, organization, parent, now);
    const answer = { organizationId: organization.organizationId, callerUserId: caller.user.userId };

    const known = this.knownActivity(loaded, request.fingerprint);
    if (known) {
      const open = organization.openActivities.get(known.activityId);
      const isVoteOfAnother = open?.fingerprint === request.fingerprint && submitterOf(open) !== caller.user.userId;
      // The identical body from another user is that user's word for it (client protocol 2.5).
      if (!isVoteOfAnother || !this.rights(organization, open.activityId, caller.user.userId).canApprove) {
        return {
          job,
          answer: { ...answer, activityId: known.activityId, record: open },
          added: [],
          knownAt: known.position,
        };
      }
    }

    const facts = this.factsOf(job, caller, organization, loaded.revision, now);
    if (facts === 'prepare-first') return facts;
    const { activityId, events } = facts;
    const before = organization.openActivities.get(activityId);
    const record = this.recordAfter(before, events, organization, now);
    // Sealed before the state changes: what cannot be written must leave no trace in it.
    batch.push(...sealEvents(loaded, events, activityId, request.fingerprint, now));
    for (const event of events) {
      evolve(organization, event, now);
      noteFingerprint(loaded, event, unsettled);
    }
    return { job, answer: { ...answer, activityId, record }, added: events, knownAt: undefined };
  }

  private recordAfter(
    before: ActivityRecord<User | undefined> | undefined,
    events: readonly OrganizationEvent[],
    organization: OrganizationView,
    at: number,
  ): ActivityRecord<User | undefined> | undefined {
    const recording = {
      organizationId: organization.organizationId,
      at,
      voter: ({ userId }: Vote) => organization.users.get(userId),
    };
    return events.filter(isActivityEvent).reduce((record, event) => evolveRecord(record, event, recording), before);
  }

  private knownActivity(
    loaded: LoadedOrganization,
    fingerprint: string,
  ): { readonly activityId: string; readonly position: bigint | undefined } | undefined {
    const recent = loaded.recent.get(fingerprint);
    if (recent) return { activityId: recent.activityId, position: recent.position };
    const activityId = this.ports.known.findByFingerprint(loaded.organization.organizationId, fingerprint);
    return activityId === undefined ? undefined : { activityId, position: undefined };
  }

  private checkCaller(
    { request: { stamp, version, organizationId }, passkey }: Job,
    organization: OrganizationView,
    parent: OrganizationView | undefined,
    now: number,
  ): Caller {
    const { definition } = version;
    if (stamp.kind === 'webauthn' && definition.kind === 'activity' && definition.apiKeyOnly) {
      throw new CoordinatorError(
        'UNAUTHENTICATED',
        `${version.type} takes an API key stamp only (X-Stamp): a passkey cannot submit it`,
        { category: 'SIGNATURE_MISSING' },
      );
    }
    const caller = resolveCaller(stamp, organization, parent, now);
    if (passkey && caller.authenticator) checkPasskeyUnchanged(passkey, caller.authenticator);
    const isForeign = caller.organizationId !== organizationId;
    if (isForeign && !(definition.kind === 'activity' && definition.fromParent)) {
      throw new CoordinatorError(
        'INVALID_ARGUMENT',
        `organization mismatch: request is targeting organization ("${organizationId}"), but voters are in organization ("${caller.organizationId}"); ` +
          'stamp it with a credential of the targeted organization, or name your own',
        { category: 'ORGANIZATION_MISMATCH' },
      );
    }
    return caller;
  }

  private factsOf(
    job: Job,
    caller: Caller,
    organization: OrganizationView,
    revision: number,
    now: number,
  ): { activityId: string; events: readonly OrganizationEvent[] } | 'prepare-first' {
    const { request } = job;
    const { definition } = request.version;
    if (definition.kind === 'activity') {
      const open = openByFingerprint(organization, request.fingerprint);
      return open
        ? this.vote(job, caller, organization, revision, now, open, 'VOTE_SELECTION_APPROVED')
        : this.submit(job, caller, organization, revision, now);
    }
    const { fingerprint } = request.intent as { fingerprint: string };
    const target = openByFingerprint(organization, fingerprint);
    if (!target) throw this.noVotesTaken(organization.organizationId, fingerprint);
    return this.vote(job, caller, organization, revision, now, target, definition.selection);
  }

  private submit(job: Job, caller: Caller, organization: OrganizationView, revision: number, now: number) {
    const { request } = job;
    const version = activityVersion(this.ports.registry, request.version.type);
    const { definition } = version;
    const approvals: Approval[] = [{ userId: caller.user.userId, credential: caller.credential }];
    const question = this.questionOf(version.type, definition, request.intent, caller.user.userId);
    const context = this.policyContext(organization, now);
    const authorization = authorize(question, approvals, context);
    this.ports.metrics.decided(authorization.outcome, version.type);
    if (authorization.outcome === 'deny-explicit' || authorization.outcome === 'deny-implicit') {
      throw permissionDenied(authorization);
    }
    if (authorization.outcome === 'allow' && definition.prepare && !job.prepared) return 'prepare-first' as const;

    const activityId = uuidV7(this.ports.clock, this.ports.randomness);
    const vote = voteOf(job, caller, activityId, 'VOTE_SELECTION_APPROVED');
    let snapshot = activityAt('created', { eligible: [], approved: [caller.user.userId] });
    snapshot = step(snapshot, { type: 'evaluated', outcome: authorization.outcome });
    const { parameters, fingerprint, timestampMs, generateAppProofs } = request;
    const events: OrganizationEvent[] = [
      {
        type: 'ActivitySubmitted',
        data: {
          activityId,
          type: version.type,
          intent: parameters,
          fingerprint,
          timestampMs,
          ...(generateAppProofs === undefined ? {} : { generateAppProofs }),
          status: activityStatus(snapshot),
          vote,
          decision: decisionOf(vote, authorization, revision),
        },
      },
    ];
    // Also decided, and thrown away, when votes are still needed: what cannot be done should not be voted on.
    const isPending = snapshot.value === 'pending';
    if (isPending || !definition.prepare) {
      const outcome = definition.decide(
        request.intent,
        this.decideContext(organization, activityId, caller.user.userId, now),
        job.prepared?.value,
      );
      if (isPending) events.push(...outcome.events, completed(activityId, snapshot, outcome.result));
    }
    return { activityId, events };
  }

  private vote(
    job: Job,
    caller: Caller,
    organization: OrganizationView,
    revision: number,
    now: number,
    open: OpenActivity,
    selection: VoteSelection,
  ) {
    const { activityId } = open;
    const { userId } = caller.user;
    const { snapshot, approvals, question, context } = this.machineOf(organization, open, now);
    const wish = { type: selection === 'VOTE_SELECTION_APPROVED' ? 'approve' : 'reject', userId } as const;
    if (!snapshot.can(wish)) throw voteRefused(open, wish.type, approvals, userId);
    const voted = step(snapshot, wish);
    const vote = voteOf(job, caller, activityId, selection);
    if (wish.type === 'reject') {
      const rejected: ActivityEvent = {
        type: 'ActivityRejected',
        data: { activityId, status: activityStatus(voted), vote },
      };
      return { activityId, events: [rejected] };
    }

    const authorization = authorize(question, [...approvals, { userId, credential: caller.credential }], context);
    this.ports.metrics.decided(authorization.outcome, open.type);
    // A policy that forbids the activity today refuses the vote and leaves the activity open: policies may change again.
    if (authorization.outcome === 'deny-explicit') throw permissionDenied(authorization);
    const isAllowed = authorization.outcome === 'allow';
    const { definition, ...version } = activityVersion(this.ports.registry, open.type);
    if (isAllowed && definition.prepare && !job.prepared) return 'prepare-first' as const;
    const next = step(voted, { type: 'evaluated', outcome: isAllowed ? 'allow' : 'consensus-needed' });
    const events: OrganizationEvent[] = [
      {
        type: 'ActivityApproved',
        data: {
          activityId,
          status: activityStatus(next),
          vote,
          decision: decisionOf(vote, authorization, revision),
        },
      },
    ];
    if (isAllowed) {
      try {
        const outcome = definition.decide(
          newestIntent({ ...version, definition }, open.intent),
          this.decideContext(organization, activityId, submitterOf(open), now),
          job.prepared?.value,
        );
        events.push(...outcome.events, completed(activityId, next, outcome.result));
      } catch (error) {
        // The voters have done their part: that it could not be done is a fact of the activity, not of this request.
        if (!(error instanceof CoordinatorError)) throw error;
        const failure = { code: error.code, message: error.message };
        const status = activityStatus(step(next, { type: 'failed' }));
        events.push({ type: 'ActivityFailed', data: { activityId, status, failure } });
      }
    }
    return { activityId, events };
  }

  /** The machine of an open activity under today's users, policies and quorum. */
  private machineOf(organization: OrganizationView, open: OpenActivity, now: number) {
    const { definition, ...version } = activityVersion(this.ports.registry, open.type);
    const intent = newestIntent({ ...version, definition }, open.intent);
    const question = this.questionOf(open.type, definition, intent, submitterOf(open));
    const context = this.policyContext(organization, now);
    const approvals = standingApprovals(organization, open, now);
    const snapshot = activityAt('consensusNeeded', {
      eligible: [...eligibleApprovers(question, approvals, context)],
      approved: approvals.map(({ userId }) => userId),
    });
    return { snapshot, approvals, question, context };
  }

  private questionOf(type: string, definition: AnyActivity, intent: object, submitterId: string): AuthorizationRequest {
    const { policy, params } = definition;
    const values: Record<string, PolicyValue | undefined> = {};
    for (const [name, param] of Object.entries(params ?? {})) values[name] = param.from(intent);
    const { kind } = this.ports.registry.versions.get(type)!;
    return {
      activity: { type, kind, params: values, ...(policy === 'root-quorum-only' ? {} : policy) },
      submitterId,
      rootQuorumOnly: policy === 'root-quorum-only',
      ownCredentials: definition.ownCredentialsOf?.(intent) === submitterId,
    };
  }

  private policyContext(organization: OrganizationView, now: number): AuthorizationContext {
    const { policies, rootQuorum, users } = organization;
    return {
      policies: policies.values(),
      rootQuorum,
      // Built only when a policy asks for it: the usual decision needs no list of all users.
      get users() {
        return [...users.values()].map(policyUser);
      },
      environment: this.ports.registry.policyEnvironment,
      now,
    };
  }

  private decideContext(organization: OrganizationView, activityId: string, submitterId: string, now: number) {
    let count = 0;
    return {
      organization,
      activityId,
      submitterId,
      now,
      newId: () => derivedId(activityId, String(count++)),
      policyEnvironment: this.ports.registry.policyEnvironment,
    };
  }

  private noVotesTaken(organizationId: string, fingerprint: string): CoordinatorError {
    const known = this.ports.known.findByFingerprint(organizationId, fingerprint);
    if (known === undefined) return noSuchActivity(fingerprint);
    return new CoordinatorError(
      'FAILED_PRECONDITION',
      `activity \`${known}\` does not wait for votes: it is finished; read it with get_activity`,
    );
  }

  /** Refuses a request; a denial is recorded first, without holding up the queue. */
  private refuse(job: Job, error: unknown, organization: OrganizationView): void {
    if (!(error instanceof CoordinatorError) || error.code !== 'PERMISSION_DENIED') {
      job.reject(error);
      return;
    }
    const recording = this.ports.denials
      .record(organization.organizationId, job.request, error)
      .then(() => job.reject(error), job.reject)
      .finally(() => this.running.delete(recording));
    this.running.add(recording);
  }
}

/** Stands for the position of events of a batch that is not yet recorded. */
const unsettled = 2n ** 63n;

function isActivityEvent(event: OrganizationEvent): event is ActivityEvent {
  return event.type.startsWith('Activity');
}

/** Verifies a passkey stamp against the authenticator as the organization knows it now. */
export async function verifyPasskeyOf(
  stamp: Extract<SubmitRequest['stamp'], { kind: 'webauthn' }>,
  body: Uint8Array,
  { loader, clock }: Pick<DriverPorts, 'loader' | 'clock'>,
  organizationId: string,
): Promise<VerifiedPasskey> {
  checkWebAuthnChallenge(stamp, body);
  const { organization } = await loader.load(organizationId);
  const parent = organization.parentOrganizationId
    ? (await loader.load(organization.parentOrganizationId)).organization
    : undefined;
  const { authenticator } = resolveCaller(stamp, organization, parent, clock.now());
  const origins = organization.features.get('FEATURE_NAME_WEBAUTHN_ORIGINS');
  const { signCount } = await verifyWebAuthnStamp(
    stamp,
    body,
    authenticator!,
    origins ? { allowedOrigins: origins.split(',').map((origin) => origin.trim()) } : {},
  );
  return { publicKey: authenticator!.publicKey, signCount };
}

/** The signature was verified before the queue; what it was verified against may have changed meanwhile. */
function checkPasskeyUnchanged(passkey: VerifiedPasskey, authenticator: NonNullable<Caller['authenticator']>): void {
  const isCloneSuspected =
    (passkey.signCount > 0 || authenticator.signCount > 0) && passkey.signCount <= authenticator.signCount;
  if (passkey.publicKey === authenticator.publicKey && !isCloneSuspected) return;
  throw new CoordinatorError(
    'UNAUTHENTICATED',
    `could not verify WebAuthN signature: signature counter ${passkey.signCount} is not above ${authenticator.signCount}; stamp the request anew`,
    { category: 'SIGNATURE_INVALID' },
  );
}

/** Who asked for it: the first vote is the submitter's. */
function submitterOf(open: OpenActivity): string {
  return open.votes[0]!.userId;
}

function openByFingerprint(organization: OrganizationView, fingerprint: string): OpenActivity | undefined {
  for (const open of organization.openActivities.values()) if (open.fingerprint === fingerprint) return open;
  return undefined;
}

/** Approvals that still count: young enough, by a user who is still here, with a credential that was not taken away. */
function standingApprovals(organization: OrganizationView, open: OpenActivity, now: number): Approval[] {
  const standing = new Map<string, Approval>();
  for (const vote of liveApprovals(open.votes, now)) {
    const user = organization.users.get(vote.userId);
    const key = user?.apiKeys.find(({ apiKeyId }) => apiKeyId === vote.credentialId);
    const passkey = user?.authenticators.find(({ authenticatorId }) => authenticatorId === vote.credentialId);
    const credential =
      user && key ? apiKeyCredential(user, key) : user && passkey ? authenticatorCredential(user, passkey) : undefined;
    if (credential) standing.set(vote.userId, { userId: vote.userId, credential });
  }
  return [...standing.values()];
}

function policyUser(user: Caller['user']): PolicyUser {
  return {
    userId: user.userId,
    userName: user.userName,
    ...(user.userEmail ? { email: user.userEmail } : {}),
    tags: user.userTags,
    credentials: [
      ...user.apiKeys.map((key) => apiKeyCredential(user, key)),
      ...user.authenticators.map((one) => authenticatorCredential(user, one)),
    ],
  };
}

function voteOf({ request, passkey }: Job, caller: Caller, activityId: string, selection: VoteSelection): Vote {
  const { stamp, text, fingerprint } = request;
  const common = {
    voteId: derivedId(activityId, 'vote', caller.user.userId, fingerprint),
    userId: caller.user.userId,
    selection,
    message: text,
    fingerprint,
    scheme: stamp.scheme,
    signature: stamp.signature,
    credentialId: caller.credential.id,
    publicKey: caller.credential.publicKey,
  };
  if (stamp.kind === 'api-key') return common;
  const { credentialId, authenticatorData, clientDataJson } = stamp;
  return {
    ...common,
    webauthn: { credentialId, authenticatorData, clientDataJson, signCount: passkey?.signCount ?? 0 },
  };
}

function decisionOf({ voteId }: Vote, { outcome, by, evaluations }: Authorization, revision: number): Decision {
  return { voteId, outcome, by, policies: evaluations, revision };
}

function completed(activityId: string, pending: ActivitySnapshot, result: object): ActivityEvent {
  const status = activityStatus(step(pending, { type: 'completed' }));
  return { type: 'ActivityCompleted', data: { activityId, status, result: { ...result } } };
}

/** Links new events into the stream's hash chain and moves the loaded head on to the last of them. */
function sealEvents(
  loaded: LoadedOrganization,
  events: readonly OrganizationEvent[],
  activityId: string,
  causationId: string,
  at: number,
): NewEvent[] {
  const stream = organizationStream(loaded.organization.organizationId);
  let { hash, revision } = loaded;
  const sealed = events.map(({ type, data }) => {
    revision += 1;
    const id = derivedId(stream, activityId, causationId, String(revision));
    const metadata = { at, schemaVersion: 1, $correlationId: activityId, $causationId: causationId };
    hash = chainEvent(hash, { stream, revision, id, type, data, metadata });
    return { id, type, data, metadata: { ...metadata, hash } };
  });
  loaded.hash = hash;
  loaded.revision = revision;
  return sealed;
}

function permissionDenied({ outcome, evaluations }: Authorization): CoordinatorError {
  const denying = evaluations.filter((one) => one.outcome === 'OUTCOME_DENY_EXPLICIT').map((one) => one.policyId);
  const message =
    outcome === 'deny-explicit'
      ? `The following policies denied this action: ${denying.join(', ')}`
      : 'No policies evaluated to outcome: Allow';
  return new CoordinatorError(
    'PERMISSION_DENIED',
    "You don't have sufficient permissions to take this action. Please add a policy granting this user permissions.",
    {
      category: 'REQUEST_NOT_AUTHORIZED',
      details: [
        {
          '@type': 'type.googleapis.com/errors.v1.PolicyEnginePermissionError',
          message,
          policyEvaluations: evaluations,
        },
      ],
    },
  );
}

function noSuchActivity(fingerprint: string): CoordinatorError {
  return new CoordinatorError(
    'NOT_FOUND',
    `no activity found with fingerprint \`${fingerprint}\`: consensus activities must target an existing activity by fingerprint`,
  );
}

function voteRefused(
  { activityId }: OpenActivity,
  wish: 'approve' | 'reject',
  approvals: readonly Approval[],
  userId: string,
): CoordinatorError {
  if (wish === 'approve' && approvals.some((approval) => approval.userId === userId)) {
    return new CoordinatorError(
      'FAILED_PRECONDITION',
      `user \`${userId}\` has already approved activity \`${activityId}\``,
    );
  }
  return new CoordinatorError(
    'PERMISSION_DENIED',
    `user \`${userId}\` may not ${wish} activity \`${activityId}\`: the vote could not count towards any policy's consensus or the root quorum`,
    { category: 'REQUEST_NOT_AUTHORIZED' },
  );
}

function translateStoreError(error: unknown, organizationId: string): unknown {
  if (error instanceof WrongRevision) {
    return new CoordinatorError(
      'ABORTED',
      `organization \`${organizationId}\` changed ${maxAttempts} times while this was decided; send the same request again`,
      { cause: error },
    );
  }
  if (error instanceof StoreUnavailable) {
    return new CoordinatorError(
      'UNAVAILABLE',
      'the event store did not confirm the write; send the same request again: it takes effect once at most',
      { cause: error },
    );
  }
  return error;
}
