import type { VerifiedPasskey } from '../decide/caller.js';
import { PolicyDenial } from '../decide/refusals.js';
import { homesOf } from '../decide/submitters.js';
import { CoordinatorError } from '../domain/errors.js';
import type { OrganizationView } from '../domain/organization/organization.js';
import { Meter } from '../domain/steps.js';
import { checkReadings, readElsewhere } from './assemble-context.js';
import { DryRuns } from './dry-run.js';
import { RequestDecider } from './decide-request.js';
import { OrganizationQueues } from './organization-queue.js';
import { verifyPasskey } from './passkeys.js';
import { Preparations, type Made } from './preparations.js';
import type { CoordinatorPorts, Decided, Outcome, PendingRequest, Progress, SubmitResult } from './pending-request.js';
import type { SubmitRequest } from './read-submit.js';
import { BatchSettler } from './settle-batch.js';
import { VotingRights } from './voting-rights.js';

/**
 * Executes every verb. Requests of one organization wait in a queue; all pending ones form a batch, are decided in
 * order, each on the state left by the previous one, and are recorded in one append at the revision of the decision.
 */
export class Driver {
  /** What users may do about waiting activities. */
  readonly rights: VotingRights;
  readonly dryRuns: DryRuns;
  private readonly preparations: Preparations;
  private readonly queues: OrganizationQueues<PendingRequest>;

  constructor(private readonly ports: CoordinatorPorts) {
    this.rights = new VotingRights(ports);
    this.dryRuns = new DryRuns(ports);
    this.preparations = new Preparations(ports);
    const batches = new BatchSettler({
      ...ports,
      decider: new RequestDecider(ports),
      preparations: this.preparations,
      refuse: (pending, error, organizationId) => this.refuse(pending, error, organizationId),
      onWaiting: (decided, organization) => this.askForVotes(decided, organization),
    });
    this.queues = new OrganizationQueues({
      turn: (organizationId) => batches.turn(organizationId),
      settle: (organizationId, batch) => batches.settle(organizationId, batch),
    });
  }

  /**
   * Decides a request, records the outcome, and responds once that is durable.
   * @throws {CoordinatorError} every refusal; of a refused request nothing is recorded but a denial
   */
  async execute(request: SubmitRequest, meter = new Meter()): Promise<SubmitResult> {
    if (this.ports.isReadOnly) throw readOnly();
    const passkey = await this.passkeyOf(request);
    const progress: Progress = { meter };
    const enqueue = (made?: Made) => this.enqueue(request, progress, passkey, made);
    let outcome = await enqueue();
    for (let readings = 0; outcome.kind !== 'settled';) {
      if (outcome.kind === 'prepare') {
        outcome = await this.preparations.run(request, outcome.submitterId, meter, enqueue);
      } else {
        // Once, and again if the organization has changed in the meantime.
        checkReadings(readings++, request.organizationId, meter);
        const { loaded } = await this.ports.loader.held(request.organizationId);
        await readElsewhere(this.ports, outcome.ahead, loaded.organization, meter);
        outcome = await enqueue();
      }
    }
    return outcome.result;
  }

  /** Whether this process may still record something that names this vault. */
  isLive(vaultId: string): boolean {
    return this.preparations.isLive(vaultId);
  }

  /** Resolves once every accepted request has its response. */
  drain(): Promise<void> {
    return this.queues.drain();
  }

  /** Verified before the request is queued, against the authenticator at the newest revision. */
  private async passkeyOf(request: SubmitRequest): Promise<VerifiedPasskey | undefined> {
    const { stamp, body, organizationId, version } = request;
    if (stamp.kind !== 'webauthn') return undefined;
    const { loader } = this.ports;
    const { organization } = await loader.load(organizationId);
    const parent = (await loader.parentOf(organization))?.organization;
    return verifyPasskey(stamp, body, homesOf(version.definition, organization, parent), this.ports);
  }

  private enqueue(
    request: SubmitRequest,
    progress: Progress,
    passkey: VerifiedPasskey | undefined,
    { prepared, attempt }: Partial<Made> = {},
  ): Promise<Outcome> {
    // A new object each time: the batch that sent the request off to prepare may still fail, and must not affect this
    // one.
    return new Promise((resolve, reject) => {
      const pending = { request, progress, passkey, prepared, attempt, resolve, reject };
      this.queues.add(request.organizationId, pending);
    });
  }

  private askForVotes({ added, result }: Decided, organization: OrganizationView): void {
    const { votesWanted } = this.ports;
    if (!votesWanted || !added.some(({ type }) => type === 'ActivitySubmitted')) return;
    // If it was voted on in the same batch, it may no longer be waiting.
    const open = organization.openActivities.get(result.activityId);
    if (!open) return;
    const notified = this.rights
      .approvers(open, organization, result.meter)
      .then(({ found, wouldSign }) => votesWanted(open, organization, found, wouldSign));
    this.queues.keep(notified);
  }

  /** Refuses a request; its denial is recorded first, without blocking the queue. */
  private refuse(pending: PendingRequest, error: unknown, organizationId: string): void {
    if (!(error instanceof CoordinatorError) || error.code !== 'PERMISSION_DENIED') {
      pending.reject(error);
      return;
    }
    this.ports.metrics.decided('deny', pending.request.version.type);
    this.queues.keep(
      this.ports.denials
        .record(organizationId, pending.deniable, pending.request, error)
        .then((id) => pending.reject(error instanceof PolicyDenial && id !== undefined ? error.recordedAs(id) : error))
        .catch(pending.reject),
    );
  }
}

function readOnly(): CoordinatorError {
  return new CoordinatorError(
    'UNAVAILABLE',
    'this server is read-only, because it was started with RESTORED=true: it answers queries, and refuses activities and votes; ' +
      'nothing was recorded',
    { retryAfterSeconds: 60 },
  );
}
