import { callerOf, checkMaySubmit } from '../decide/caller.js';
import type { Stamp } from '../stamps/stamp.js';
import {
  clausesOf,
  ReadFirst,
  type DecisionContext,
  type DecisionResult,
  type FoundOut,
  type Submission,
} from '../decide/decision-context.js';
import { waitsFor } from '../decide/explain.js';
import { fingerprintOf } from '../stamps/fingerprint.js';
import { organizationDeleted, PolicyDenial, signUpLapsed } from '../decide/refusals.js';
import type { ActivityVersion } from '../decide/registry.js';
import type { Caller } from '../decide/resolve-caller.js';
import { submittersOf } from '../decide/submitters.js';
import { decideSubmit } from '../decide/submit.js';
import type { Vote } from '../domain/activity/events.js';
import { evolveRecord } from '../domain/activity/record.js';
import { CoordinatorError, invalidField } from '../domain/errors.js';
import { hasLapsed } from '../domain/organization/claims.js';
import type { OpenActivity } from '../domain/organization/open-activities.js';
import type { OrganizationView } from '../domain/organization/organization.js';
import { decisionSteps, type Meter } from '../domain/steps.js';
import { derivedId } from '../ledger/ids.js';
import type { OrganizationLoader } from '../ledger/load-organization.js';
import type { DryRunTold } from '../read-models/dry-run.js';
import type { ProofQuestion } from '../read-models/explanations.js';
import { validateParameters } from '../wire/validate.js';
import { assembleContext, checkReadings, readElsewhere, type ContextPorts } from './assemble-context.js';
import { checkLiveness } from './read-submit.js';

/** A request to be tried: what a submit would have in its body, and whose stamp is on the query. */
export interface Tried {
  readonly type: string;
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly timestampMs: string;
  readonly stamp: Stamp;
}

interface Ports extends ContextPorts {
  readonly loader: Pick<OrganizationLoader, 'parentOf'>;
}

/** Decides requests as a submit would, on the head as it is, and forgets them: nothing is prepared, recorded or sent. */
export class DryRuns {
  constructor(private readonly ports: Ports) {}

  /**
   * What a submit would come to now. It stops before `prepare`.
   * @throws {CoordinatorError} as the submit would before anything is decided: for a bad request, or a stamp that it does not take
   */
  async of(tried: Tried, organization: OrganizationView, meter: Meter): Promise<DryRunTold> {
    const { type, parameters, timestampMs, stamp } = tried;
    const { organizationId } = organization;
    const version = this.versionOf(type);
    const valid = validateParameters(version.intent, parameters, 'activity.parameters');
    const intent = version.lift ? version.lift(valid) : valid;
    const parent = await this.ports.loader.parentOf(organization);
    const today = assembleContext(this.ports, organization, 0, parent?.organization, meter.reading);
    checkLiveness(timestampMs, today.now);
    if (organization.isDeleted) throw organizationDeleted(organizationId);
    if (hasLapsed(organization, today.now)) throw signUpLapsed(organizationId);
    const requested = { stamp, version, organizationId };
    const caller = callerOf(requested, organization, parent?.organization, today.now);
    checkMaySubmit(requested, caller, organization, parent?.organization);
    const authority = caller.organizationId !== organizationId && parent ? { authority: parent } : {};
    const voter = { userId: caller.user.userId, credential: caller.credential, ...authority };
    const vote = voteOf(tried, caller, organizationId);
    const { fingerprint } = vote;
    const activityId = derivedId('dry run', fingerprint);
    const submission = { activityId, type, intent, parameters, fingerprint, timestampMs, generateAppProofs: undefined };
    const found: FoundOut = {};
    const context = { ...today, steps: meter.decision(), clauses: clausesOf(today), found };
    try {
      const result = await this.decided(
        () => decideSubmit(context, submission, vote, voter, undefined),
        organization,
        meter,
      );
      return toldOf(result, context, caller.user.userId, meter);
    } catch (error) {
      return refused(error, context, submission);
    }
  }

  private async decided(
    decide: () => DecisionResult,
    organization: OrganizationView,
    meter: Meter,
  ): Promise<DecisionResult> {
    for (let readings = 0; ; readings++) {
      try {
        return decide();
      } catch (error) {
        if (!(error instanceof ReadFirst)) throw error;
        checkReadings(readings, organization.organizationId, meter);
        await readElsewhere(this.ports, error.ahead, organization, meter);
      }
    }
  }

  private versionOf(type: string): ActivityVersion {
    const version = this.ports.registry.versions.get(type);
    if (!version)
      throw invalidField('activity.type', `is not an activity type of this server: \`${type.slice(0, 100)}\``);
    const { definition } = version;
    if (definition.kind === 'vote' || submittersOf(definition).is === 'invited') {
      throw invalidField(
        'activity.type',
        `\`${type}\` cannot be tried: explain_activity says what a vote would change`,
      );
    }
    return version;
  }
}

/** As the submit would be recorded, if its body were signed: nobody has. */
function voteOf({ type, parameters, timestampMs, stamp }: Tried, caller: Caller, organizationId: string): Vote {
  const { user, credential } = caller;
  const message = JSON.stringify({ type, timestampMs, organizationId, parameters });
  return {
    voteId: '',
    userId: user.userId,
    selection: 'VOTE_SELECTION_APPROVED',
    message,
    fingerprint: fingerprintOf(message),
    scheme: stamp.scheme,
    signature: '',
    credentialId: credential.id,
    publicKey: credential.publicKey,
  };
}

type Trial = DecisionContext & { readonly found: FoundOut };

function toldOf(result: DecisionResult, context: Trial, userId: string, meter: Meter): DryRunTold {
  const { by, evaluations = [] } = context.found.authorization ?? { by: 'none' as const };
  const policyEvaluations = [...evaluations];
  if (result.kind === 'prepare') return { outcome: 'allow', decidedBy: by, policyEvaluations, needsWorld: true };
  const { outcome, events, refusal } = result;
  const told = { outcome, decidedBy: outcome === 'allow' ? by : 'none', policyEvaluations } as const;
  if (refusal) return { ...told, refusal: { code: refusal.code, message: refusal.message } };
  const [submitted] = events;
  if (outcome !== 'consensus-needed' || submitted?.type !== 'ActivitySubmitted') return told;
  const { organization, now } = context;
  const recording = { organizationId: organization.organizationId, at: now, voter: () => undefined };
  const open: OpenActivity = evolveRecord(undefined, submitted, recording);
  const waits = waitsFor({ ...context, steps: meter.upTo(decisionSteps), found: {} }, open, userId);
  return { ...told, ...(waits ? { waitsFor: waits } : {}) };
}

/** A denial, or a refusal of what policies allow. What is wrong with the request itself is an error, as in a submit. */
function refused(error: unknown, { found }: Trial, { type }: Pick<Submission, 'type'>): DryRunTold {
  if (!(error instanceof CoordinatorError)) throw error;
  const { code, message } = error;
  if (error instanceof PolicyDenial) {
    const { message: why, policyEvaluations } = error.told;
    const isExplicit = policyEvaluations.some((one) => one.outcome === 'OUTCOME_DENY_EXPLICIT');
    const outcome = isExplicit ? 'deny-explicit' : 'deny-implicit';
    return { outcome, decidedBy: isExplicit ? 'policy' : 'none', policyEvaluations, refusal: { code, message: why } };
  }
  if (!found.authorization) throw error;
  const { outcome, by, evaluations } = found.authorization;
  const isDenied = code === 'PERMISSION_DENIED';
  return {
    outcome: isDenied ? 'deny-implicit' : outcome,
    decidedBy: isDenied ? 'none' : by,
    policyEvaluations: evaluations,
    refusal: { code, message: `${type}: ${message}` },
  };
}

/** How a request would be decided, as a question for the lab. */
export function hypothetical(
  { type, parameters }: Pick<Tried, 'type' | 'parameters'>,
  { organizationId }: OrganizationView,
  { organizationId: home, user, credential }: Caller,
  now: number,
): ProofQuestion {
  const about = { kind: 'request', type, parameters, userId: user.userId, credentialId: credential.id } as const;
  const newest = { organizationId: home, revision: Number.MAX_SAFE_INTEGER };
  return { organizationId, about, now, ...(home === organizationId ? {} : { authority: newest }) };
}

export function sessionRefused(path: string): CoordinatorError {
  return new CoordinatorError(
    'PERMISSION_DENIED',
    `query ${path}: requires a stamp: a read-only session can submit nothing, so there is nothing to try`,
    { category: 'REQUEST_NOT_AUTHORIZED' },
  );
}
