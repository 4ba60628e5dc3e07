import { authorize } from '../../../src/domain/policy/authorize.js';
import { explain, votesMissing } from '../../../src/domain/policy/explain.js';
import type { AuthorizationContext } from '../../../src/domain/policy/request-evaluation.js';
import {
  unreadable,
  type Approval,
  type AuthorizationRequest,
  type Policy,
  type PolicyUser,
} from '../../../src/domain/policy/types.js';
import { Steps } from '../../../src/domain/steps.js';
import { environment } from './environment.js';

/*
 * Telling why something was denied, or what it waits for, reads policies once more. It has a budget of its own: what it
 * takes is not bounded by what the decision took.
 */

const request: AuthorizationRequest = {
  activity: {
    type: 'ACTIVITY_TYPE_UPDATE_USER_NAME',
    kind: 'UPDATE_USER_NAME',
    resource: 'USER',
    action: 'UPDATE',
    params: {},
  },
  submitterId: 'user 0',
  rootQuorumOnly: false,
  ownCredentials: false,
};

const users = Array.from({ length: 40 }, (_, at): PolicyUser => {
  const userId = `user ${at}`;
  const credential = { id: `key ${at}`, userId, type: 'CREDENTIAL_TYPE_API_KEY_P256', publicKey: `${at}` };
  return { userId, userName: userId, tags: [], credentials: [credential] };
});
const approvals: readonly Approval[] = [{ userId: 'user 0', credential: users[0]!.credentials[0]! }];

const policy = (at: number, clauses: Pick<Policy, 'condition' | 'consensus'>): Policy => ({
  policyId: `policy ${String(at).padStart(3, '0')}`,
  policyName: `the policy ${at}`,
  effect: 'EFFECT_ALLOW',
  notes: '',
  createdAt: 0,
  updatedAt: 0,
  ...clauses,
});

/** One meter for the decision and for its explanation, as a request has. */
function asked(policies: readonly Policy[], among = users) {
  const steps = new Steps(100_000_000);
  const context: AuthorizationContext = {
    policies,
    rootQuorum: { threshold: 1, userIds: ['nobody'] },
    users: among,
    environment,
    now: 0,
    steps,
  };
  return { steps, context };
}

/** A condition of so many parts that is false by its first; `salt` makes another text of it, which is read by itself. */
const longAndFalse = (parts: number, salt: number): string =>
  `requester.alias == 'X${salt}' && (${Array.from({ length: parts }, () => '1 == 1').join(' && ')})`;

describe('explaining a denial', () => {
  it('takes 100 000 steps at most, and leaves out what is too much', () => {
    const policies = Array.from({ length: 30 }, (_, at) => policy(at, { condition: longAndFalse(300, at) }));
    const { steps, context } = asked(policies);
    const { evaluations } = authorize(request, approvals, context);
    const decided = steps.spent;
    expect(decided).toBeGreaterThan(120_000);
    const because = explain(request, approvals, context, evaluations);
    expect(steps.spent - decided).toBeLessThanOrEqual(110_000);
    expect(because[0]).toMatchObject({ clause: 'condition', text: "requester.alias == 'X0'", outcome: 'false' });
    expect(because.at(-1)).toBeUndefined();
  });

  it('takes what the request has left, where that is less', () => {
    const policies = Array.from({ length: 10 }, (_, at) => policy(at, { condition: longAndFalse(300, at) }));
    const { steps, context } = asked(policies);
    const { evaluations } = authorize(request, approvals, context);
    const little = new Steps(steps.spent / 2);
    const because = explain(request, approvals, { ...context, steps: little }, evaluations);
    expect(because[0]).toBeDefined();
    expect(because.at(-1)).toBeUndefined();
  });

  it('says the same or nothing, however little is left: what ran out of steps is not what it seems', () => {
    const long = `[${Array.from({ length: 200 }, (_, at) => at).join()}].any(n, n == 300)`;
    const policies = [policy(0, { condition: `${long} || wallet.id == 'x'` })];
    const unread: AuthorizationRequest = { ...request, resources: unreadable('wallet cannot be read') };
    const { steps, context } = asked(policies);
    const { evaluations } = authorize(unread, approvals, context);
    const whole = explain(unread, approvals, context, evaluations);
    expect(whole).toMatchObject([{ text: "wallet.id == 'x'", outcome: 'unreadable' }]);
    const told = new Set<string>();
    for (let left = 0; left < 2 * steps.spent; left += 100) {
      const because = explain(unread, approvals, { ...context, steps: new Steps(left) }, evaluations);
      told.add(because[0]?.text ?? 'nothing');
    }
    expect(told).toEqual(new Set(['nothing', "wallet.id == 'x'"]));
  });

  it('tells 8 192 characters of policies at most, and 200 of one', () => {
    const long = `'${'x'.repeat(300)}'`;
    const policies = Array.from({ length: 100 }, (_, at) =>
      policy(at, { condition: `activity.action == ${long} && true || activity.kind == 'KIND ${at}'` }),
    );
    const { context } = asked(policies);
    const { evaluations } = authorize(request, approvals, context);
    const told = explain(request, approvals, context, evaluations).flatMap((one) => one ?? []);
    expect(told.length).toBeGreaterThan(20);
    // A cut text ends in one character more.
    expect(Math.max(...told.map(({ text }) => text.length))).toBe(201);
    expect(told.reduce((sum, { text }) => sum + text.length, 0)).toBeLessThanOrEqual(8_192);
  });
});

describe('telling what an activity waits for', () => {
  it('takes 100 000 steps at most, and names the policies that it came to', () => {
    // Where order matters, whose approval could count is asked of one after the other.
    const policies = Array.from({ length: 30 }, (_, at) =>
      policy(at, { consensus: `approvers[0].id == 'user 0' && approvers.count() >= 3 && ${at} == ${at}` }),
    );
    const { steps, context } = asked(policies, users.slice(0, 8));
    const { policies: told } = votesMissing(request, approvals, context);
    expect(steps.spent).toBeLessThanOrEqual(110_000);
    expect(told.length).toBeGreaterThan(0);
    expect(told.length).toBeLessThan(policies.length);
  });

  it('names the policies that deny any of its payloads', () => {
    const deny = (at: number): Policy => ({
      ...policy(at, { condition: `wallet.id == 'wallet ${at}'` }),
      effect: 'EFFECT_DENY',
    });
    const parts = [0, 1, 2].map((at) => ({
      name: `payload ${at}`,
      resources: { wallet: { id: `wallet ${at}`, imported: true, label: '' } },
    }));
    const { context } = asked([deny(0), deny(2)]);
    const missing = votesMissing({ ...request, parts, isWaiting: true }, approvals, context);
    expect(missing).toMatchObject({ policies: [], deniedBy: ['policy 000', 'policy 002'] });
  });

  it('is told of the payloads that its steps last for, whatever a DENY in doubt would say of the others', () => {
    const waits = policy(0, { consensus: 'approvers.count() >= 2' });
    // What takes most is read before the DENY, of each payload.
    const long = policy(1, { condition: longAndFalse(300, 0).replace('requester.alias', 'wallet.id') });
    const deny: Policy = { ...policy(2, { condition: "wallet.id == 'nobody'" }), effect: 'EFFECT_DENY' };
    const parts = Array.from({ length: 1_000 }, (_, at) => ({
      name: `payload ${at}`,
      resources: { wallet: { id: `wallet ${at}`, imported: true, label: '' } },
    }));
    const { context } = asked([waits, long, deny]);
    const { policies: told } = votesMissing({ ...request, parts }, approvals, context);
    expect(told[0]).toMatchObject({ policyId: 'policy 000', payload: 'payload 0', fewest: 1 });
    expect(told.length).toBeGreaterThan(9);
    expect(told.length).toBeLessThan(1_000);
  });
});
