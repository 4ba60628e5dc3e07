import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { authorize, eligibleApprovers } from '../../../src/domain/policy/authorize.js';
import type { AuthorizationContext } from '../../../src/domain/policy/request-evaluation.js';
import {
  Doubt,
  unreadable,
  type Approval,
  type AuthorizationRequest,
  type Policy,
  type PolicyUser,
  type PolicyValue,
} from '../../../src/domain/policy/types.js';
import { ballotOf } from '../../../src/domain/policy/ballot.js';
import { Steps, weights } from '../../../src/domain/steps.js';
import { environment } from './environment.js';
import { disguised } from './generated.js';

interface Vector {
  readonly name: string;
  readonly now: string;
  readonly rootQuorum: AuthorizationContext['rootQuorum'];
  readonly request: Pick<AuthorizationRequest, 'activity' | 'submitterId'> & Partial<AuthorizationRequest>;
  readonly approvals: readonly { userId: string; credentialId: string }[];
  readonly policies: readonly Pick<Policy, 'policyId' | 'effect' | 'condition' | 'consensus' | 'time'>[];
  readonly expected: unknown;
  readonly eligible: readonly string[];
}

/** Integers are written as strings that end in `n`, as in `"5n"`. */
function read<T>(name: string): T {
  const text = readFileSync(new URL(`../../vectors/policy/${name}.json`, import.meta.url), 'utf8');
  return JSON.parse(text, (_key, value: PolicyValue) =>
    typeof value === 'string' && /^-?\d+n$/.test(value) ? BigInt(value.slice(0, -1)) : value,
  ) as T;
}

const { users } = read<{ users: PolicyUser[] }>('users');
const credentials = new Map(users.flatMap((user) => user.credentials.map((credential) => [credential.id, credential])));

const approval = (userId: string, credentialId: string): Approval => ({
  userId,
  credential: credentials.get(credentialId) ?? { id: credentialId, userId, type: 'unknown', publicKey: 'unknown' },
});

const policy = (fields: Partial<Policy> & Pick<Policy, 'policyId' | 'effect'>): Policy => ({
  policyName: `the policy ${fields.policyId}`,
  notes: '',
  createdAt: 0,
  updatedAt: 0,
  ...fields,
});

describe.each(['root-quorum', 'effects', 'consensus', 'own-credentials', 'time', 'errors'])(
  'authorizing: %s',
  (file) => {
    it.each(read<{ cases: Vector[] }>(file).cases.map((vector) => [vector.name, vector] as const))(
      '%s',
      (_name, vector) => {
        const request = { rootQuorumOnly: false, ownCredentials: false, ...vector.request };
        const approvals = vector.approvals.map(({ userId, credentialId }) => approval(userId, credentialId));
        const context: AuthorizationContext = {
          policies: vector.policies.map(policy),
          rootQuorum: vector.rootQuorum,
          users,
          environment,
          now: Date.parse(vector.now),
        };
        const policies = disguised(context.policies as readonly Policy[]);
        const { among: _all, evaluations, ...decision } = authorize(request, approvals, { ...context, policies });
        const outcomes = evaluations.map(({ policyId, outcome }) => ({ policyId, outcome }));
        expect({ ...decision, evaluations: outcomes }).toEqual(vector.expected);
        // Those that demand another activity are not evaluated.
        const { among, evaluations: some, ...same } = authorize(request, approvals, context);
        const asked = among?.thatCouldApplyTo(request.activity).map(({ policyId }) => policyId) ?? [];
        const ofAsked = outcomes.filter(({ policyId }) => asked.includes(policyId));
        expect(same).toEqual(decision);
        expect(some.map(({ policyId, outcome }) => ({ policyId, outcome }))).toEqual(ofAsked);
        for (const { outcome, error, doubt } of evaluations) {
          expect([error === undefined, doubt === undefined]).toEqual([!doubt, !error]);
          if (outcome === 'OUTCOME_ERROR') expect(doubt).toBeDefined();
        }
        expect([...eligibleApprovers(request, approvals, context)].sort()).toEqual(vector.eligible);
      },
    );
  },
);

const request: AuthorizationRequest = {
  activity: {
    type: 'ACTIVITY_TYPE_CREATE_WALLET',
    kind: 'CREATE_WALLET',
    resource: 'WALLET',
    action: 'CREATE',
    params: {},
  },
  submitterId: 'ops-1',
  rootQuorumOnly: false,
  ownCredentials: false,
};

const context = (policies: readonly Policy[], more: Partial<AuthorizationContext> = {}): AuthorizationContext => ({
  policies,
  rootQuorum: { threshold: 2, userIds: ['root-1', 'root-2'] },
  users,
  environment,
  now: 0,
  ...more,
});

describe('authorizing', () => {
  it('says what the error was, and where', () => {
    const broken = policy({ policyId: 'p', effect: 'EFFECT_ALLOW', condition: "true ||\nwallet.id == 'x'" });
    expect(authorize(request, [approval('ops-1', 'o1')], context([broken])).evaluations).toEqual([
      {
        policyId: 'p',
        outcome: 'OUTCOME_ERROR',
        error: 'missing field: wallet (line 2, column 1)',
        doubt: 'not-applicable',
      },
    ]);
  });

  it('accepts users and policies that can be iterated only once', () => {
    const two = policy({ policyId: 'p', effect: 'EFFECT_ALLOW', consensus: 'approvers.count() >= 2' });
    const once = { users: users.values(), policies: [two, two].values() };
    expect(authorize(request, [approval('ops-1', 'o1')], context([], once)).outcome).toBe('consensus-needed');
  });

  it('looks at no policy and no user when the root quorum has approved', () => {
    const nothing: Iterable<never> = {
      [Symbol.iterator]: () => {
        throw new Error('looked');
      },
    };
    const approvals = [approval('root-1', 'r1'), approval('root-2', 'r2')];
    expect(authorize(request, approvals, context([], { users: nothing, policies: nothing })).outcome).toBe('allow');
  });

  const clauses = fc.constantFrom(
    undefined,
    'true',
    'false',
    "activity.resource == 'WALLET'",
    "wallet.id == 'x'",
    "true || wallet.id == 'x'",
    '[1][1] == 1',
    'activity.params.otp_length == 1',
    'not a policy',
    '',
  );
  const consensuses = fc.constantFrom(
    undefined,
    'true',
    'approvers.count() >= 1',
    'approvers.count() >= 2',
    'approvers.count() >= 0',
    "approvers[2].id == 'x'",
    "true || approvers[2].id == 'x'",
    "approvers.any(u, u.email == 'x') || true",
    "approvers.any(u, u.tags.contains('ops'))",
    "approvers.all(u, u.id == 'ops-1')",
    'approvers.count() == 1',
  );
  const times = fc.constantFrom(undefined, 'true', 'false', "time.now > Timestamp('2000-01-01T00:00:00Z')", 'nope');
  const policies = fc
    .array(
      fc.record({
        effect: fc.constantFrom('EFFECT_ALLOW' as const, 'EFFECT_ALLOW' as const, 'EFFECT_DENY' as const),
        condition: clauses,
        consensus: consensuses,
        time: times,
      }),
      { maxLength: 5 },
    )
    .map((list) =>
      list.map(({ effect, condition, consensus, time }, index) =>
        policy({
          policyId: `p${index}`,
          effect,
          ...(condition === undefined ? {} : { condition }),
          ...(consensus === undefined ? {} : { consensus }),
          ...(time === undefined ? {} : { time }),
        }),
      ),
    );
  const votes = users.flatMap((user) => user.credentials.map((credential) => ({ userId: user.userId, credential })));
  const approvalLists = fc.shuffledSubarray(votes, { maxLength: 4 });
  const questions = fc
    .record({ submitterId: fc.constantFrom(...users.map(({ userId }) => userId)), ownCredentials: fc.boolean() })
    .map((fields): AuthorizationRequest => ({ ...request, ...fields }));

  it('never allows because of an error, without an approval, or against a denial', () => {
    const seen = new Set<string>();
    fc.assert(
      fc.property(questions, approvalLists, policies, (question, approvals, list) => {
        const decided = authorize(question, approvals, context(list));
        const { outcome, by, evaluations } = decided;
        seen.add(`${outcome} ${by}`);
        if (outcome === 'allow') expect(approvals).not.toHaveLength(0);
        if (by === 'root-quorum') return;
        expect(evaluations.map(({ policyId }) => policyId)).toEqual(list.map(({ policyId }) => policyId));
        const outcomes = evaluations.map((evaluation) => evaluation.outcome);
        const effectOf = (index: number) => list[index]!.effect;
        for (const [index, one] of outcomes.entries()) {
          if (one === 'OUTCOME_ALLOW' || one === 'OUTCOME_REQUIRES_CONSENSUS')
            expect(effectOf(index)).toBe('EFFECT_ALLOW');
          if (one === 'OUTCOME_DENY_EXPLICIT') expect(effectOf(index)).toBe('EFFECT_DENY');
        }
        if (outcome === 'allow') expect(outcomes).not.toContain('OUTCOME_DENY_EXPLICIT');
        expect(by === 'policy' && outcome === 'allow').toBe(
          outcomes.includes('OUTCOME_ALLOW') && !outcomes.includes('OUTCOME_DENY_EXPLICIT'),
        );
        // Taking away the policies that gave an error must not take away a permission.
        if (outcome === 'allow') {
          const sound = list.filter((_, index) => outcomes[index] !== 'OUTCOME_ERROR');
          expect(authorize(question, approvals, context(sound)).outcome).toBe('allow');
        }
        // Nor must an ALLOW that is in error, or not active, give one.
        const allows = list.filter(
          (_, index) => effectOf(index) === 'EFFECT_ALLOW' && outcomes[index] === 'OUTCOME_ERROR',
        );
        expect(authorize({ ...question, ownCredentials: false }, approvals, context(allows)).outcome).not.toBe('allow');
      }),
      { numRuns: 1_000 },
    );
    expect([...seen].sort()).toEqual([
      'allow own-credentials',
      'allow policy',
      'allow root-quorum',
      'consensus-needed none',
      'deny-explicit policy',
      'deny-implicit none',
    ]);
  });

  it('does not depend on the order of policies', () => {
    fc.assert(
      fc.property(questions, approvalLists, policies, (question, approvals, list) => {
        const { outcome, by } = authorize(question, approvals, context(list));
        const reversed = authorize(question, approvals, context([...list].reverse()));
        expect([reversed.outcome, reversed.by]).toEqual([outcome, by]);
      }),
    );
  });

  it('names everybody whose vote makes it go on', () => {
    let decisive = 0;
    fc.assert(
      fc.property(questions, approvalLists, policies, fc.constantFrom(...votes), (question, approvals, list, vote) => {
        const state = context(list);
        const before = authorize(question, approvals, state);
        // A denial or an error that another vote would end does not make that vote count: it stands now.
        const isClear = before.evaluations.every(
          ({ outcome }) => outcome !== 'OUTCOME_DENY_EXPLICIT' && outcome !== 'OUTCOME_ERROR',
        );
        fc.pre(before.outcome === 'consensus-needed' && isClear);
        fc.pre(!approvals.some(({ userId }) => userId === vote.userId));
        const after = authorize(question, [...approvals, vote], state);
        // Who submits for others than the root quorum does not ask it; that its votes are enough if it has them all the same
        // makes none of its members one who is asked.
        const isAsked = after.by === 'policy' || state.rootQuorum.userIds.includes(question.submitterId);
        if (after.outcome === 'allow' && after.by !== 'own-credentials' && isAsked) {
          decisive += 1;
          expect(eligibleApprovers(question, approvals, state)).toContain(vote.userId);
        }
      }),
      { numRuns: 500 },
    );
    expect(decisive).toBeGreaterThan(10);
  });

  it('ends alike in whatever order votes come, where more votes never hurt', () => {
    const monotone = fc.constantFrom(
      'approvers.count() >= 2',
      'approvers.count() >= 3',
      "approvers.filter(u, u.tags.contains('ops')).count() >= 2",
      "approvers.any(u, u.id == 'dev') && approvers.any(u, u.id == 'ops-1')",
      "credentials.any(c, c.type == 'CREDENTIAL_TYPE_WEBAUTHN_AUTHENTICATOR') && approvers.count() > 1",
    );
    const permutations = fc
      .shuffledSubarray(votes, { minLength: 1, maxLength: 4 })
      .chain((votes) => fc.tuple(fc.constant(votes), fc.shuffledSubarray(votes, { minLength: votes.length })));
    let allowed = 0;
    fc.assert(
      fc.property(fc.array(monotone, { minLength: 1, maxLength: 3 }), permutations, (texts, [first, second]) => {
        const one = [...new Map(first.map((vote) => [vote.userId, vote])).values()];
        const other = second.filter((vote) => one.includes(vote));
        const state = context(
          texts.map((consensus, index) => policy({ policyId: `p${index}`, effect: 'EFFECT_ALLOW', consensus })),
        );
        const submitterId = one[0]!.userId;
        const finalOutcome = (votes: readonly Approval[]) => {
          let isAllowed = false;
          for (let count = 1; count <= votes.length; count += 1) {
            const { outcome } = authorize({ ...request, submitterId }, votes.slice(0, count), state);
            // What was allowed once stays allowed.
            if (isAllowed) expect(outcome).toBe('allow');
            isAllowed = outcome === 'allow';
          }
          return isAllowed;
        };
        expect(finalOutcome(other)).toBe(finalOutcome(one));
        allowed += Number(finalOutcome(one));
      }),
      { numRuns: 300 },
    );
    expect(allowed).toBeGreaterThan(30);
  });

  /** Anything of a request or of the organization that a policy may read, made unreadable. */
  const doubted = (value: PolicyValue | undefined): PolicyValue =>
    value !== undefined && typeof value === 'object' && !Array.isArray(value) && !(value instanceof Doubt)
      ? Object.fromEntries(Object.keys(value).map((name) => [name, unreadable('for this test')]))
      : unreadable('for this test');
  const readable: Readonly<Record<string, PolicyValue>> = {
    wallet: { id: 'x', imported: false },
    eth: { tx: { to: '0xto', value: 5n, args: { wad: 7n } }, eip_712: { chain_id: 1n } },
  };
  const reads = fc
    .array(
      fc.constantFrom(
        "wallet.id == 'x'",
        "!(wallet.id == 'x')",
        'wallet.imported',
        "eth.tx.to == '0xto'",
        "eth.tx.args['wad'] > 7",
        'eth.eip_712.chain_id == 1',
        "private_key.id == 'x'",
        "activity.resource == 'WALLET'",
        "requester.id == 'ops-1'",
        "[1, 2].any(x, x == 2 && wallet.id == 'x')",
      ),
      { minLength: 1, maxLength: 3 },
    )
    .chain((parts) => fc.constantFrom(parts.join(' && '), parts.join(' || '), `!(${parts.join(' || ')})`));
  const worse = { allow: 0, 'consensus-needed': 1, 'deny-implicit': 2, 'deny-explicit': 3 } as const;

  it('never improves with a doubt, whatever is in doubt', () => {
    const seen = new Set<string>();
    const doubtful = fc
      .array(
        fc.record({ effect: fc.constantFrom('EFFECT_ALLOW' as const, 'EFFECT_DENY' as const), condition: reads }),
        { minLength: 1, maxLength: 4 },
      )
      .map((list) => list.map((fields, index) => policy({ policyId: `p${index}`, ...fields })));
    const lost = fc.subarray(['wallet', 'eth', 'all']);
    fc.assert(
      fc.property(
        questions,
        approvalLists,
        doubtful,
        lost,
        fc.boolean(),
        (question, approvals, list, names, isDeep) => {
          const resources = names.includes('all')
            ? unreadable('for this test')
            : Object.fromEntries(
                Object.entries(readable).map(([name, value]) => [
                  name,
                  !names.includes(name) ? value : isDeep ? doubted(value) : unreadable('for this test'),
                ]),
              );
          const clear = authorize({ ...question, resources: readable }, approvals, context(list));
          const clouded = authorize({ ...question, resources }, approvals, context(list));
          expect(worse[clouded.outcome]).toBeGreaterThanOrEqual(worse[clear.outcome]);
          if (clouded.outcome !== clear.outcome) seen.add(`${clear.outcome} ${clouded.outcome}`);
          // One payload of several that is in doubt does as much.
          const parts = [
            { name: 'one', resources: readable },
            {
              name: 'other',
              resources: resources instanceof Doubt ? { wallet: resources, eth: resources } : resources,
            },
          ];
          const { outcome } = authorize({ ...question, parts }, approvals, context(list));
          expect(worse[outcome]).toBeGreaterThanOrEqual(worse[clear.outcome]);
        },
      ),
      { numRuns: 1_000 },
    );
    for (const turn of ['allow consensus-needed', 'allow deny-explicit', 'allow deny-implicit']) {
      expect([...seen]).toContain(turn);
    }
    expect([...seen]).toContain('deny-implicit deny-explicit');
  });

  it('never improves with another DENY', () => {
    let denied = 0;
    fc.assert(
      fc.property(questions, approvalLists, policies, reads, (question, approvals, list, condition) => {
        const asked = { ...question, resources: readable };
        const before = authorize(asked, approvals, context(list)).outcome;
        const more = [...list, policy({ policyId: 'more', effect: 'EFFECT_DENY', condition })];
        const after = authorize(asked, approvals, context(more)).outcome;
        expect(worse[after]).toBeGreaterThanOrEqual(worse[before]);
        denied += Number(after !== before);
      }),
      { numRuns: 500 },
    );
    expect(denied).toBeGreaterThan(20);
  });

  it.each([
    ['does not compile any more', { condition: 'no such name' }, 'deny-explicit'],
    ['does not compile any more, in its consensus', { consensus: 'no such name' }, 'deny-explicit'],
    ['does not compile any more, in its time', { time: 'no such name' }, 'deny-explicit'],
    ['does not compile any more, where another clause is false', { condition: 'nope', consensus: 'false' }, 'allow'],
    ['cannot be read in its consensus', { consensus: "approvers[3].id == 'x'" }, 'deny-explicit'],
    ['speaks of what the request has not', { condition: "private_key.id == 'x'" }, 'allow'],
    ['is unreadable and not applicable', { condition: "private_key.id == 'x' && wallet.label == 'x'" }, 'allow'],
    ['is unreadable or not applicable', { condition: "private_key.id == 'x' || wallet.label == 'x'" }, 'deny-explicit'],
  ] as const)('a DENY that %s', (_name, clauses, outcome) => {
    const list = [
      policy({ policyId: 'a', effect: 'EFFECT_ALLOW' }),
      policy({ policyId: 'd', effect: 'EFFECT_DENY', ...clauses }),
    ];
    const asked = { ...request, resources: readable };
    expect(authorize(asked, [approval('ops-1', 'o1')], context(list)).outcome).toBe(outcome);
  });

  it('bounds the steps that policies take over all payloads', () => {
    const long = { wallets: Array.from({ length: 10_000 }, () => ({ id: 'w', imported: true })) };
    const parts = Array.from({ length: 100 }, (_, index) => ({
      name: String(index),
      resources: { ...long, wallets: [...long.wallets] },
    }));
    const deny = policy({ policyId: 'd', effect: 'EFFECT_DENY', condition: "wallets.any(w, w.id == 'x')" });
    const { outcome, evaluations } = authorize({ ...request, parts }, [approval('ops-1', 'o1')], context([deny]));
    expect(outcome).toBe('deny-explicit');
    expect(evaluations).toMatchObject([
      { outcome: 'OUTCOME_DENY_IMPLICIT', payload: '0' },
      {
        outcome: 'OUTCOME_DENY_EXPLICIT',
        doubt: 'unreadable',
        error: expect.stringContaining('more than 500000 steps are needed') as unknown,
      },
    ]);
  });

  describe('once the steps are used up', () => {
    /** What is asked of 50 policies about so many payloads, of which the first take all steps. */
    const askedOf = (payloads: number, budget: number) => {
      let asked = 0;
      const policies = Array.from({ length: 50 }, (_, at): Policy => {
        const { effect, ...rest } = policy({
          policyId: String(at),
          effect: at === 7 ? 'EFFECT_DENY' : 'EFFECT_ALLOW',
          condition: `wallet.id == '${at}'`,
          consensus: at % 2 === 0 ? 'approvers.count() >= 2' : 'true',
        });
        return Object.defineProperty({ ...rest, effect }, 'effect', { get: () => ((asked += 1), effect) });
      });
      const parts = Array.from({ length: payloads }, (_, at) => ({
        name: String(at),
        resources: { wallet: { id: String(at), imported: true, label: 'x' } },
      }));
      const steps = new Steps(budget);
      return { request: { ...request, parts }, context: { ...context(policies), steps }, asked: () => asked, steps };
    };
    const by = [approval('ops-1', 'o1')];

    it('no payload is decided by itself any more', () => {
      const [some, more] = [askedOf(200, 90_000), askedOf(1_000, 90_000)];
      const decided = authorize(some.request, by, some.context);
      expect(decided).toMatchObject({ outcome: 'deny-explicit', by: 'policy' });
      expect(decided.evaluations.filter(({ policyId }) => policyId === '7')).toMatchObject([
        { outcome: 'OUTCOME_DENY_EXPLICIT', payload: '7' },
        { outcome: 'OUTCOME_DENY_IMPLICIT', payload: '0' },
        { outcome: 'OUTCOME_DENY_EXPLICIT', doubt: 'unreadable', error: 'more than 90000 steps are needed' },
      ]);
      expect(decided.evaluations.filter(({ policyId }) => policyId === '9')).toMatchObject([
        { outcome: 'OUTCOME_ALLOW', payload: '9' },
        { outcome: 'OUTCOME_DENY_IMPLICIT', payload: '0' },
        { outcome: 'OUTCOME_ERROR', doubt: 'unreadable' },
      ]);
      expect(authorize(more.request, by, more.context).evaluations).toEqual(decided.evaluations);
      expect(some.asked()).toBe(more.asked());
      // Each payload costs what asking about it would.
      expect(more.steps.spent - some.steps.spent).toBe(800 * 50 * weights.policyAsked);
    });

    it('what votes decide is read once', () => {
      const [some, more] = [askedOf(200, 5_000), askedOf(1_000, 5_000)];
      const { parts } = ballotOf(some.request, by, some.context);
      expect(parts.at(-1)).toEqual({ allows: [], denies: [], isDenied: true, isOwn: false });
      expect(ballotOf(more.request, by, more.context).parts).toEqual(parts);
      expect(some.asked()).toBe(more.asked());
    });
  });
});
