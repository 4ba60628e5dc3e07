import {
  compiled,
  evaluate,
  type Scope,
  type PolicyEnvironment,
  PolicyError,
  Doubt,
  type Approval,
  type PolicyUser,
  type PolicyValue,
} from 'countersign/internal';
import type { AnalysedActivity } from './analysed-activities.js';
import type { AnalysedSet, AnalysisSubject, Example, FoundCase } from './analysis-subject.js';
import { holdsIn, valueIn, type Model } from './smt-model.js';
import type { OpenDecision, OpenRequest } from './smt-request.js';
import type { Term } from './smt-script.js';

const defaultNow = Date.UTC(2026, 0, 5, 12);
const halfHour = 1_800_000;
const longestSearch = 370 * 48;

/** Makes the request of a model. Undefined if no moment is found at which schedules are as the model has them. */
export function caseOf(
  open: OpenRequest,
  model: Model,
  decision: OpenDecision,
  activity: AnalysedActivity,
  { environment }: AnalysisSubject,
): FoundCase | undefined {
  const { voters, unknown } = open;
  const place = (term: Term): number => Number(model.get(term) ?? 0n);
  const users = voters.users.map((user, index): PolicyUser => {
    const at = (path: string) => {
      const known = unknown.get(`users[${index}]${path}`);
      const value = known && valueIn(known, model);
      return typeof value === 'string' ? value : undefined;
    };
    const email = at('.email');
    return {
      ...user,
      ...(email === undefined ? {} : { email }),
      credentials: user.credentials.map((credential, of) => {
        const credentialId = at(`.credentials[${of}].credentialId`) ?? credential.credentialId;
        return {
          ...credential,
          id: at(`.credentials[${of}].id`) ?? credential.id,
          publicKey: at(`.credentials[${of}].publicKey`) ?? credential.publicKey,
          ...(credentialId === undefined ? {} : { credentialId }),
        };
      }),
    };
  });
  const submitter = place(voters.submitter);
  const voting = voters.votes.flatMap((vote, index) => (model.get(vote) === true ? [index] : []));
  const ordered =
    voters.order.length > 0
      ? voting.map((_, position) => place(voters.order[position]!))
      : [submitter, ...voting.filter((index) => index !== submitter)];
  const approvals = ordered
    .filter((index) => voting.includes(index))
    .map((index): Approval => {
      const { userId, credentials } = users[index]!;
      return { userId, credential: credentials[place(voters.choices[index]!)]! };
    });
  const now = momentOf(open, model, decision, environment);
  if (now === undefined) return undefined;
  const resources: Record<string, PolicyValue> = {};
  for (const [name, one] of unknown) {
    if (name === 'activity' || name === 'time' || name.startsWith('users[')) continue;
    const value = valueIn(one, model);
    if (value !== undefined && !(value instanceof Doubt && value.kind === 'not-applicable')) resources[name] = value;
  }
  const input = unknown.get('activity')?.parts.get('params');
  const params = input && (valueIn(input, model) as Readonly<Record<string, PolicyValue>>);
  const { type, kind, resource, action, isRootOnly } = activity;
  const own = model.get(open.own) ?? 0n;
  return {
    request: {
      activity: {
        type,
        kind,
        ...(resource === undefined ? {} : { resource }),
        ...(action === undefined ? {} : { action }),
        params: params ?? {},
      },
      resources,
      submitterId: users[submitter]!.userId,
      rootQuorumOnly: isRootOnly,
      ownCredentials: own === 2n ? 'session' : own === 1n,
    },
    users,
    approvals,
    now,
  };
}

/** A moment at which every time clause is as the model has it, from the model's own on. */
function momentOf(open: OpenRequest, model: Model, decision: OpenDecision, environment: PolicyEnvironment) {
  const time = open.unknown.get('time')?.parts.get('now');
  const input = time && valueIn(time, model);
  const start = typeof input === 'bigint' ? Number(input) : defaultNow;
  const clauses = decision.readings.flatMap(({ policy, clause, reading }) => {
    const expression = clause === 'time' ? compiled(policy.time, clause, environment) : undefined;
    const isReadable = expression !== undefined && !(expression instanceof PolicyError);
    return isReadable ? [{ expression, isTrue: holdsIn(model, reading.isTrue) }] : [];
  });
  for (let step = 0; step < longestSearch; step++) {
    const now = start + step * halfHour;
    const scope: Scope = { now, value: () => ({ now: BigInt(now) }) };
    if (clauses.every(({ expression, isTrue }) => (evaluate(expression, scope).truth === 'true') === isTrue))
      return now;
  }
  return undefined;
}

/** A found case as people read it. */
export function exampleOf(
  { request, approvals, now }: FoundCase,
  { users }: AnalysisSubject,
  told: { readonly facts: Example['facts']; readonly readsTime: boolean },
): Example {
  const nameOf = (id: string) => users.find(({ userId }) => userId === id)?.userName ?? id;
  return {
    activity: request.activity.type,
    submitter: nameOf(request.submitterId),
    approvals: approvals.slice(1).map(({ userId }) => nameOf(userId)),
    facts: told.facts,
    ...(told.readsTime ? { now: new Date(now).toISOString() } : {}),
  };
}

/** The organization in which a case is decided. */
export function contextOf(
  { users, now }: FoundCase,
  { policies, quorum }: AnalysedSet,
  { environment }: AnalysisSubject,
) {
  return { policies, rootQuorum: quorum, users, environment, now };
}
