import type { VerifiedPasskey } from '../decide/caller.js';
import { PolicyDenial } from '../decide/refusals.js';
import { homesOf } from '../decide/submitters.js';
import { CoordinatorError } from '../domain/errors.js';
import type { OrganizationView } from '../domain/organization/organization.js';
import { Meter } from '../domain/steps.js';
import { checkReadings, readElsewhere } from './assemble-context.js';
import { Batches } from './batches.js';
import { DryRuns } from './dry-run.js';
import { RequestDecider } from './decide-request.js';
import type { Course, Decided, DriveAnswer, DriverPorts, Job, PrepareFirst, ReadingFirst } from './job.js';
import { verifyPasskey } from './passkeys.js';
import { Preparations, type Made } from './preparations.js';
import { RequestQueue } from './request-queue.js';
import type { SubmitRequest } from './requests.js';
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
  private readonly queue: RequestQueue;

  constructor(private readonly ports: DriverPorts) {
    this.rights = new VotingRights(ports);
    this.dryRuns = new DryRuns(ports);
    this.preparations = new Preparations(ports);
    const batches = new Batches(ports, {
      decider: new RequestDecider(ports),
      preparations: this.preparations,
      refuse: (job, error, organizationId) => this.refuse(job, error, organizationId),
      waits: (decided, organization) => this.askForVotes(decided, organization),
    });
    this.queue = new RequestQueue({
      turn: (organizationId) => batches.turn(organizationId),
      settle: (organizationId, batch) => batches.settle(organizationId, batch),
    });
  }

  /**
   * Decides a request, records the outcome, and responds once that is durable.
   * @throws {CoordinatorError} every refusal; of a refused request nothing is recorded but a denial
   */
  async drive(request: SubmitRequest, meter = new Meter()): Promise<DriveAnswer> {
    if (this.ports.isReadOnly) throw readOnly();
    const passkey = await this.passkeyOf(request);
    const course: Course = { meter };
    let outcome = await this.enqueue(request, course, passkey);
    let readings = 0;
    for (;;) {
      if ('submitterId' in outcome) {
        outcome = await this.preparations.run(request, outcome.submitterId, meter, (made) =>
          this.enqueue(request, course, passkey, made),
        );
      } else if ('ahead' in outcome) {
        // Once, and again if the organization has changed in the meantime.
        checkReadings(readings++, request.organizationId, meter);
        const { loaded } = await this.ports.loader.held(request.organizationId);
        await readElsewhere(this.ports, outcome.ahead, loaded.organization, meter);
        outcome = await this.enqueue(request, course, passkey);
      } else return outcome;
    }
  }

  /** Whether this process may still record something that names this vault. */
  isLive(vaultId: string): boolean {
    return this.preparations.isLive(vaultId);
  }

  /** Resolves once every accepted request has its response. */
  drain(): Promise<void> {
    return this.queue.drain();
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
    course: Course,
    passkey: VerifiedPasskey | undefined,
    made?: Made,
  ): Promise<DriveAnswer | PrepareFirst | ReadingFirst> {
    const { prepared, attempt } = made ?? {};
    return new Promise((resolve, reject) => {
      // A new job each time: the batch that sent the request off to prepare may still fail, and must not affect this
      // one.
      const job: Job = { request, course, passkey, prepared, attempt, resolve, reject };
      this.queue.add(request.organizationId, job);
    });
  }

  private askForVotes({ added, answer }: Decided, organization: OrganizationView): void {
    const { votesWanted } = this.ports;
    if (!votesWanted || !added.some(({ type }) => type === 'ActivitySubmitted')) return;
    // If it was voted on in the same batch, it may no longer be waiting.
    const open = organization.openActivities.get(answer.activityId);
    if (!open) return;
    const told = this.rights
      .approvers(open, organization, answer.meter)
      .then(({ found, wouldSign }) => votesWanted(open, organization, found, wouldSign));
    this.queue.keep(told);
  }

  /** Refuses a request; its denial is recorded first, without blocking the queue. */
  private refuse(job: Job, error: unknown, organizationId: string): void {
    if (!(error instanceof CoordinatorError) || error.code !== 'PERMISSION_DENIED') {
      job.reject(error);
      return;
    }
    this.ports.metrics.decided('deny', job.request.version.type);
    this.queue.keep(
      this.ports.denials
        .record(organizationId, job.deniable, job.request, error)
        .then((id) => job.reject(error instanceof PolicyDenial && id !== undefined ? error.recordedAs(id) : error))
        .catch(job.reject),
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
