import { authorize, type PolicyUser, type PolicyValue } from 'countersign/internal';
import { contextOf } from './analysis-case.js';
import type { AnalysisSubject, Claim } from './analysis-subject.js';

/** What becomes of a request at one of its steps. */
export type Step = 'waits' | 'allowed' | 'denied';

/** What the code that decides says of a claim's request, at the submission and at each vote that it takes. */
export function stepsOf({ found, set }: Claim, subject: AnalysisSubject): readonly Step[] {
  const steps: Step[] = [];
  for (let count = 1; count <= found.approvals.length; count++) {
    const { outcome } = authorize(found.request, found.approvals.slice(0, count), contextOf(found, set, subject));
    steps.push(outcome === 'allow' ? 'allowed' : outcome === 'consensus-needed' ? 'waits' : 'denied');
    if (outcome !== 'consensus-needed') break;
  }
  return steps;
}

/**
 * Whether what was built is another request than the example, so that the coordinator does not contradict it: what a decision on the
 * facts that it was made of comes to (`built`) is not what it comes to on the facts of the example (`asked`), and is what the
 * coordinator did. If it did something else, it read other facts than it was sent.
 */
export function isAnotherRequest(did: readonly Step[], built: readonly Step[], requested: readonly Step[]): boolean {
  return did.join() === built.join() && built.join() !== requested.join();
}

/** The same claim with other ids, of users, tags, wallets and keys, wherever they are: `real` by those of the file. */
export function withRealIds(
  { found, set, isAllowed }: Claim,
  real: ReadonlyMap<string, string>,
  users: readonly PolicyUser[] = found.users,
): Claim {
  const idOf = (id: string): string => real.get(id) ?? id;
  const said = (text: string | undefined): string | undefined =>
    text === undefined ? undefined : [...real].reduce((shorter, [id, other]) => shorter.replaceAll(id, other), text);
  const valueOf = (value: PolicyValue): PolicyValue => {
    if (typeof value === 'string') return idOf(value);
    if (Array.isArray(value)) return (value as readonly PolicyValue[]).map(valueOf);
    // What is in doubt stays as it is.
    return typeof value === 'object' && value.constructor === Object ? recordOf(value as Facts) : value;
  };
  const recordOf = (facts: Facts): Readonly<Record<string, PolicyValue>> =>
    Object.fromEntries(
      Object.entries(facts).flatMap(([name, value]) => (value === undefined ? [] : [[name, valueOf(value)]])),
    );
  const { request } = found;
  return {
    isAllowed,
    set: {
      quorum: { ...set.quorum, userIds: set.quorum.userIds.map(idOf) },
      policies: set.policies.map(({ condition, consensus, time, ...rest }) => ({
        ...rest,
        ...(condition === undefined ? {} : { condition: said(condition)! }),
        ...(consensus === undefined ? {} : { consensus: said(consensus)! }),
        ...(time === undefined ? {} : { time }),
      })),
    },
    found: {
      ...found,
      users,
      request: {
        ...request,
        submitterId: idOf(request.submitterId),
        activity: { ...request.activity, params: recordOf(request.activity.params) },
        resources: recordOf((request.resources ?? {}) as Facts),
      },
      approvals: found.approvals.map(({ userId, credential }) => {
        const own = users.find((one) => one.userId === idOf(userId));
        const used = own?.credentials.find(({ type }) => type === credential.type) ?? credential;
        return { userId: idOf(userId), credential: used };
      }),
    },
  };
}

type Facts = Readonly<Record<string, PolicyValue | undefined>>;
