import { partsOf, Question, withResources, type AuthorizationContext, type Part } from './request-evaluation.js';
import type { Answer, Evaluation, PartQuestion } from './part-evaluation.js';
import type { PolicySet } from './policy-set.js';
import { isRootPossible, isRootQuorumMet } from './root-quorum.js';
import { unreadable, type Approval, type AuthorizationRequest, type PolicyOutcome } from './types.js';

/**
 * The decision, its basis, and the outcome of each policy that could apply, in the order of `policies`. `among` are all of
 * them: the others do not apply (`withTheRest`). There is none if no policy was asked.
 */
export interface Authorization {
  readonly outcome: 'allow' | 'deny-explicit' | 'deny-implicit' | 'consensus-needed';
  readonly by: 'root-quorum' | 'policy' | 'own-credentials' | 'none';
  readonly evaluations: readonly Evaluation[];
  readonly among?: PolicySet | undefined;
}

/**
 * Decides one request (docs/protocol.md, order of evaluation and consensus). `approvals` are the live ones in vote order. Of
 * each user, only the first counts, only with a credential of that user, and for policies only if the user is in
 * `context.users`. A doubt never allows, and denies if it is a DENY's; without an approval nothing is allowed. Each
 * payload is decided alone, and the worst decision counts.
 */
export function authorize(
  request: AuthorizationRequest,
  approvals: readonly Approval[],
  context: AuthorizationContext,
): Authorization {
  const { rootQuorum } = context;
  if (isRootQuorumMet(rootQuorum, approvals)) return { outcome: 'allow', by: 'root-quorum', evaluations: [] };
  const isRootPathOpen = isRootPossible(rootQuorum, request);
  if (request.rootQuorumOnly) {
    return { outcome: isRootPathOpen ? 'consensus-needed' : 'deny-implicit', by: 'none', evaluations: [] };
  }
  const question = new Question(request, approvals, context);
  const { outcome, by, evaluations } = combined(authorizeEach(question).map(named));
  return { outcome, by, evaluations, among: question.among };
}

/** Whether a DENY applies. The root quorum stands above it. */
export function isDenied({ evaluations }: Pick<Authorization, 'evaluations'>): boolean {
  return evaluations.some(({ outcome }) => outcome === 'OUTCOME_DENY_EXPLICIT');
}

/** What policies say of one payload, and the decision about it. */
interface PartAuthorization {
  readonly part: Part;
  readonly ofPart: PartQuestion;
  readonly authorization: Authorization;
}

/** The decision about each payload by itself, where the root quorum has not decided (see `authorize`). */
export function authorizeEach(question: Question): readonly PartAuthorization[] {
  const { request, context } = question;
  const isRootPathOpen = isRootPossible(context.rootQuorum, request);
  const known = new Map<readonly Answer[], Authorization>();
  return partsOf(request).map((part) => {
    const ofPart = question.about(part);
    const { answers } = ofPart;
    const authorization = known.get(answers) ?? authorizePart(request, ofPart, isRootPathOpen);
    known.set(answers, authorization);
    return { part, ofPart, authorization };
  });
}

function authorizePart(request: AuthorizationRequest, ofPart: PartQuestion, isRootPathOpen: boolean): Authorization {
  const { answers } = ofPart;
  const evaluations = answers.map(({ evaluation }) => evaluation);
  const says = (outcome: PolicyOutcome) => evaluations.some((evaluation) => evaluation.outcome === outcome);

  // The root quorum stands above denials, so a member may still collect the others' approvals.
  if (says('OUTCOME_DENY_EXPLICIT')) {
    return isRootPathOpen
      ? { outcome: 'consensus-needed', by: 'none', evaluations }
      : { outcome: 'deny-explicit', by: 'policy', evaluations };
  }
  if (says('OUTCOME_ALLOW')) return { outcome: 'allow', by: 'policy', evaluations };
  if (
    request.ownCredentials &&
    ofPart.hasApproved(request.submitterId) &&
    (request.ownCredentials === 'session' || !answers.some(({ isSpokenTo }) => isSpokenTo))
  ) {
    return { outcome: 'allow', by: 'own-credentials', evaluations };
  }
  const isOpen = isRootPathOpen || says('OUTCOME_REQUIRES_CONSENSUS');
  return { outcome: isOpen ? 'consensus-needed' : 'deny-implicit', by: 'none', evaluations };
}

/**
 * Ids of the users whose approval can count now: the root quorum's members if it may be asked, and everyone who can
 * matter to an ALLOW that applies except for its consensus, if votes can still meet that. Users who have already
 * approved are included: whether one may vote twice is decided elsewhere.
 */
export function eligibleApprovers(
  request: AuthorizationRequest,
  approvals: readonly Approval[],
  context: AuthorizationContext,
): ReadonlySet<string> {
  const eligible = new Set<string>();
  if (isRootPossible(context.rootQuorum, request)) {
    for (const userId of context.rootQuorum.userIds) eligible.add(userId);
  }
  if (request.rootQuorumOnly) return eligible;
  const question = new Question(request, approvals, context);
  // Payloads mostly share what was found about a consensus.
  const found = new Set<readonly string[]>();
  for (const part of partsOf(request)) {
    const { answers } = question.about(part);
    if (answers.some(({ evaluation }) => evaluation.outcome === 'OUTCOME_DENY_EXPLICIT')) return eligible;
    const toPart = answers.map((answer) => answer.contributors()).filter(({ length }) => length > 0);
    // If no vote can succeed for one payload, none can for the request.
    if (toPart.length === 0) return eligible;
    for (const userIds of toPart) found.add(userIds);
  }
  for (const userIds of found) for (const userId of userIds) eligible.add(userId);
  return eligible;
}

/**
 * Whether anything could allow a request, or make it wait for votes, whatever its resources are. Asked before reading
 * costly resources: someone without rights must not cause that cost.
 */
export function couldAllow(
  request: AuthorizationRequest,
  approvals: readonly Approval[],
  context: AuthorizationContext,
): boolean {
  const { rootQuorum } = context;
  if (isRootQuorumMet(rootQuorum, approvals) || isRootPossible(rootQuorum, request)) return true;
  if (request.rootQuorumOnly) return false;
  if (request.ownCredentials) return true;
  const resources = unreadable('it was not read');
  return new Question(withResources(request, resources), approvals, context).about({ resources }).couldAllow();
}

/**
 * Whether a user's approval could count, whatever the request's resources are. Asked before they are read for someone
 * who only wants to know.
 */
export function couldContribute(
  request: AuthorizationRequest,
  approvals: readonly Approval[],
  context: AuthorizationContext,
  userId: string,
): boolean {
  const { rootQuorum } = context;
  if (rootQuorum.userIds.includes(userId) && isRootPossible(rootQuorum, request)) return true;
  if (request.rootQuorumOnly) return false;
  const resources = unreadable('it was not read');
  return new Question(withResources(request, resources), approvals, context).about({ resources }).couldAllow(userId);
}

/** From the best to the worst. */
const severity = ['allow', 'consensus-needed', 'deny-implicit', 'deny-explicit'] as const;

type OfPart = Authorization & { readonly payload: string | undefined };

function named({ part, authorization: { outcome, by, evaluations } }: PartAuthorization): OfPart {
  return { payload: part.name, outcome, by, evaluations };
}

/** The decision about several payloads: the worst of all. An outcome that is the same for all appears once. */
function combined(parts: readonly OfPart[]): Authorization {
  const [first, ...others] = parts;
  if (!first) throw new Error('there is nothing to decide on');
  if (others.length === 0) return { outcome: first.outcome, by: first.by, evaluations: first.evaluations };
  const worst = parts.reduce((a, b) => (severity.indexOf(b.outcome) > severity.indexOf(a.outcome) ? b : a));
  // Within a run of parts that share their evaluations, the first and the last say all.
  const ends = parts.filter(
    ({ evaluations }, index) =>
      evaluations !== parts[index - 1]?.evaluations || evaluations !== parts[index + 1]?.evaluations,
  );
  const evaluations = first.evaluations.flatMap((_, index) => distinctOutcomes(ends, index));
  return { outcome: worst.outcome, by: worst.by, evaluations };
}

/** Each outcome of one policy, with the first part that has it; in the order of the last parts that have them. */
function distinctOutcomes(parts: readonly OfPart[], index: number): Evaluation[] {
  const firstWith = new Map<string, OfPart>();
  for (const part of parts) {
    const { outcome, doubt = '' } = part.evaluations[index]!;
    const key = `${outcome} ${doubt}`;
    const earlier = firstWith.get(key) ?? part;
    firstWith.delete(key);
    firstWith.set(key, earlier);
  }
  const told = Array.from(firstWith.values(), ({ payload, evaluations }) => ({
    payload,
    evaluation: evaluations[index]!,
  }));
  if (told.length === 1) return told.map(({ evaluation }) => evaluation);
  return told.map(({ payload, evaluation }) => ({ ...evaluation, ...(payload === undefined ? {} : { payload }) }));
}
