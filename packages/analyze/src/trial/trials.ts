import { ApiError, type PolicyFile, CannotBeWritten, type ActivityEnvelope } from 'countersign/internal';
import { isAnotherRequest, stepsOf, withRealIds, type Step } from '../analysis-execution.js';
import type { AnalysisSubject, Claim } from '../analysis-subject.js';
import { TrialCoordinator } from './trial-coordinator.js';
import { NotExecuted } from './trial-facts.js';
import { TrialOrganization } from './trial-organization.js';
import { placeOf, requestOf, type TrialRequest } from './trial-request.js';
import { TrialResources } from './trial-resources.js';

/** What came of executing an example. */
export type Execution =
  /** By claim, what the coordinator answered to each approval; `as` is the type that was sent, if it is a newer version. */
  | { readonly outcome: 'executed'; readonly steps: readonly (readonly Step[])[]; readonly as?: string }
  | { readonly outcome: 'decided'; readonly why: string }
  | { readonly outcome: 'disagreed'; readonly why: string };

/** Executes examples in one coordinator, each in an organization of its own. */
export class Trials {
  private coordinator: TrialCoordinator | undefined;
  private deadline = Infinity;

  /** @param longestMs for all examples together; those that are left then are not executed */
  constructor(private readonly longestMs = 300_000) {}

  /**
   * The times of the claims must not go back from one call to the next.
   * @throws {Error} for whatever is no known reason not to execute an example: a mistake of what builds it, or of the coordinator
   */
  async execute(claims: readonly Claim[], subject: AnalysisSubject, names: PolicyFile['names']): Promise<Execution> {
    const steps: (readonly Step[])[] = [];
    let as: string | undefined;
    try {
      for (const claim of claims) {
        this.coordinator ??= await this.start(claim.found.now);
        if (performance.now() > this.deadline)
          throw new NotExecuted(`executing examples took more than ${this.longestMs / 1000} s`);
        const done = await this.run(this.coordinator, claim, subject, names);
        if ('why' in done) return { outcome: 'disagreed', why: done.why };
        steps.push(done.steps);
        if (done.type !== claim.found.request.activity.type) as = done.type;
      }
    } catch (error) {
      const why = whyNot(error);
      if (why === undefined) throw error;
      return { outcome: 'decided', why };
    }
    return { outcome: 'executed', steps, ...(as === undefined ? {} : { as }) };
  }

  /** Ends the coordinator. */
  async end(): Promise<void> {
    await this.coordinator?.end();
  }

  private start(at: number): Promise<TrialCoordinator> {
    this.deadline = performance.now() + this.longestMs;
    return TrialCoordinator.start(at);
  }

  private async run(
    coordinator: TrialCoordinator,
    claim: Claim,
    subject: AnalysisSubject,
    names: PolicyFile['names'],
  ): Promise<{ readonly steps: readonly Step[]; readonly type: string } | { readonly why: string }> {
    const { found, set, isAllowed } = claim;
    await coordinator.setTime(found.now);
    const organization = await TrialOrganization.found(coordinator, found, set, names, placeOf(claim));
    const resources = new TrialResources(organization, names);
    const request = await requestOf(claim, organization, resources);
    await resources.rest();
    const real = withRealIds(claim, resources.ids);
    await organization.close(real.set);
    // Before the request changes or deletes them.
    const users = await organization.users();
    const steps = await cast(claim, organization, request);
    const last = steps.at(-1);
    const isAsClaimed = steps.length === found.approvals.length && (last === 'allowed') === isAllowed;
    if (isAsClaimed) return { steps, type: request.type };
    const asBuilt = seenBy({ ...withRealIds(claim, resources.ids, users), set: real.set }, request);
    if (isAnotherRequest(steps, stepsOf(asBuilt, subject), stepsOf(claim, subject)))
      throw new NotExecuted('with ids, addresses and keys of a coordinator, it comes to something else');
    return { why: `in a coordinator it is ${steps.join(', then ')}, and should be ${shouldBe(claim)}` };
  }
}

/** What the coordinator answers to the submission and to each vote. @throws {NotExecuted} if the verb refuses it */
async function cast({ found }: Claim, organization: TrialOrganization, request: TrialRequest) {
  const { organizationId } = request;
  const steps: Step[] = [];
  let fingerprint = '';
  for (const { credential } of found.approvals) {
    const answer = await answerTo(() =>
      fingerprint === ''
        ? organization.submit(credential, organizationId, request.type, request.parameters)
        : organization.submit(credential, organizationId, 'ACTIVITY_TYPE_APPROVE_ACTIVITY', { fingerprint }),
    );
    steps.push(answer === 'denied' ? answer : stepOf(answer));
    if (answer === 'denied' || steps.at(-1) !== 'waits') break;
    fingerprint = answer.fingerprint;
  }
  return steps;
}

async function answerTo(act: () => Promise<ActivityEnvelope>): Promise<ActivityEnvelope | 'denied'> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof ApiError && error.body.turnkeyErrorCode === 'REQUEST_NOT_AUTHORIZED') return 'denied';
    throw error;
  }
}

function stepOf({ status }: ActivityEnvelope): Step {
  if (status === 'ACTIVITY_STATUS_CONSENSUS_NEEDED') return 'waits';
  // What failed was allowed before.
  return status === 'ACTIVITY_STATUS_COMPLETED' || status === 'ACTIVITY_STATUS_FAILED' ? 'allowed' : 'denied';
}

/** The claim with what policies see of the request as it was sent. */
function seenBy(claim: Claim, { type, resources, params }: TrialRequest): Claim {
  const { request } = claim.found;
  const before = (request.resources ?? {}) as TrialRequest['resources'];
  return {
    ...claim,
    found: {
      ...claim.found,
      request: {
        ...request,
        activity: { ...request.activity, type, params },
        resources: { ...before, ...resources },
      },
    },
  };
}

const shouldBe = ({ found, isAllowed }: Claim): string =>
  [...found.approvals.slice(1).map(() => 'waits'), isAllowed ? 'allowed' : 'not allowed'].join(', then ');

/** A reason not to execute an example; undefined of a mistake, which must not pass for one. */
function whyNot(error: unknown): string | undefined {
  if (error instanceof NotExecuted || error instanceof CannotBeWritten) return error.message;
  if (error instanceof ApiError && error.status < 500) return `the coordinator refuses it: ${error.body.message}`;
  return error instanceof Error && error.name === 'TimeoutError' ? 'a coordinator did not answer in time' : undefined;
}
