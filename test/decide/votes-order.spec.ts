import fc from 'fast-check';
import { activities } from '../../src/activities/index.js';
import { buildRegistry } from '../../src/decide/registry.js';
import type { ActivityEvent } from '../../src/domain/activity/events.js';
import { checkPolicyText } from '../../src/domain/policy/language.js';
import type { OrganizationEvent } from '../../src/domain/organization/organization.js';
import { aRootQuorum } from '../activities/facts.js';
import { id } from '../activities/given.js';
import { aVoter, OneActivity, voterId } from './one-activity.js';
import { testRegistry } from '../coordinator/test-verbs.js';
import { isLong } from '../long.js';

/** Elections that are drawn for a test. */
const runs = isLong ? 15_000 : 500;

const registry = buildRegistry(activities);
const people = [0, 1, 2, 3, 4];
const tags = ['finance', 'operations'];
const rename = ['ACTIVITY_TYPE_UPDATE_USER_NAME', { userId: voterId(0), userName: 'Renamed' }] as const;

/** What an expression of the policy language asks for, said once more in plain words: the oracle. */
interface Asked {
  readonly text: string;
  readonly holds: (approvers: readonly Person[]) => boolean;
}

interface Person {
  readonly number: number;
  readonly tags: readonly string[];
}

const number = fc.constantFrom(...people);
const tag = fc.constantFrom(...tags);
const least = fc.integer({ min: 1, max: 4 });

const asked = (text: string, holds: Asked['holds']): Asked => ({ text, holds });

const leaf: fc.Arbitrary<Asked> = fc.oneof(
  number.map((one) =>
    asked(`approvers.any(user, user.id == '${voterId(one)}')`, (approvers) =>
      approvers.some((person) => person.number === one),
    ),
  ),
  least.map((count) => asked(`approvers.count() >= ${count}`, (approvers) => approvers.length >= count)),
  tag.map((name) =>
    asked(`approvers.any(user, user.tags.contains('${name}'))`, (approvers) =>
      approvers.some((person) => person.tags.includes(name)),
    ),
  ),
  fc
    .tuple(tag, least)
    .map(([name, count]) =>
      asked(
        `approvers.filter(user, '${name}' in user.tags).count() > ${count - 1}`,
        (approvers) => approvers.filter((person) => person.tags.includes(name)).length >= count,
      ),
    ),
  fc
    .tuple(fc.subarray(people, { minLength: 1 }), least)
    .map(([among, count]) =>
      asked(
        `credentials.filter(one, one.user_id in [${among.map((one) => `'${voterId(one)}'`).join(', ')}]).count() >= ${count}`,
        (approvers) => approvers.filter((person) => among.includes(person.number)).length >= count,
      ),
    ),
);

const { monotone } = fc.letrec<{ monotone: Asked }>((tie) => ({
  monotone: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    leaf,
    fc
      .tuple(fc.constantFrom('&&', '||'), fc.array(tie('monotone'), { minLength: 2, maxLength: 3 }))
      .map(([operator, parts]): Asked => ({
        text: `(${parts.map(({ text }) => text).join(` ${operator} `)})`,
        holds: (approvers) =>
          operator === '&&'
            ? parts.every(({ holds }) => holds(approvers))
            : parts.some(({ holds }) => holds(approvers)),
      })),
  ),
}));

interface Election {
  readonly tagsOf: readonly (readonly string[])[];
  readonly policies: readonly Asked[];
  readonly quorum: { readonly threshold: number; readonly members: readonly number[] };
  readonly submitter: number;
  readonly voters: readonly number[];
}

const elections: fc.Arbitrary<Election> = fc.record({
  tagsOf: fc.array(fc.subarray(tags), { minLength: 5, maxLength: 5 }),
  policies: fc.array(monotone, { minLength: 1, maxLength: 3 }),
  quorum: fc
    .subarray(people, { minLength: 1, maxLength: 3 })
    .chain((members) => fc.integer({ min: 1, max: members.length }).map((threshold) => ({ threshold, members }))),
  submitter: number,
  voters: fc.shuffledSubarray(people),
});

const peopleOf = ({ tagsOf }: Election): Person[] => people.map((one) => ({ number: one, tags: tagsOf[one]! }));

function hold({ tagsOf, policies, quorum, submitter, voters }: Election, order: readonly number[] = voters) {
  const one = new OneActivity(registry, [
    ...people.flatMap((one) => aVoter(one, tagsOf[one])),
    ...policies.map(({ text }, index): OrganizationEvent => ({
      type: 'PolicyCreated',
      data: {
        policyId: id(300 + index),
        policyName: `policy ${index}`,
        effect: 'EFFECT_ALLOW',
        consensus: text,
        notes: '',
      },
    })),
    aRootQuorum(quorum.threshold, ...quorum.members.map(voterId)),
  ]);
  const outcomes = [one.submit(voterId(submitter), ...rename)];
  for (const voter of order.filter((one) => one !== submitter)) outcomes.push(one.vote(voterId(voter)));
  const effects = outcomes.flatMap(({ events }) => events).filter(({ type }) => !type.startsWith('Activity'));
  return {
    statuses: outcomes.map(({ status }) => status),
    isDone: outcomes.some(({ status }) => status === 'COMPLETED'),
    effects,
  };
}

const subsetsOf = <Item>(items: readonly Item[]): Item[][] =>
  items.reduce<Item[][]>((sets, item) => [...sets, ...sets.map((set) => [...set, item])], [[]]);

const permutationsOf = <Item>(items: readonly Item[]): Item[][] =>
  items.length === 0
    ? [[]]
    : items.flatMap((item, index) => permutationsOf(items.toSpliced(index, 1)).map((rest) => [item, ...rest]));

/** By brute force over every company the person could vote in. */
function canMatter({ holds }: Asked, person: Person, all: readonly Person[]): boolean {
  const others = all.filter((one) => one !== person);
  return subsetsOf(others).some((set) => (set.length === 0 || !holds(set)) && holds([...set, person]));
}

describe('monotone consensus', () => {
  it('has one outcome in every order of votes, and the oracle says which', () => {
    const outcomes = new Map<string, number>();
    fc.assert(
      fc.property(elections, (election) => {
        const all = peopleOf(election);
        const { policies, quorum, submitter } = election;
        const person = all[submitter]!;
        const isRoot = quorum.members.includes(submitter);
        const isMet = (approvers: readonly Person[]) =>
          policies.some(({ holds }) => holds(approvers)) ||
          approvers.filter((one) => quorum.members.includes(one.number)).length >= quorum.threshold;
        const isOpen = isRoot || policies.some((one) => one.holds(all) && canMatter(one, person, all));
        const mayVote = (voter: Person) =>
          quorum.members.includes(voter.number) || policies.some((one) => canMatter(one, voter, all));

        const { voters } = election;
        const expected = isMet([person])
          ? 'at once'
          : !isOpen
            ? 'denied'
            : isMet([person, ...voters.map((one) => all[one]!).filter((one) => one !== person && mayVote(one))])
              ? 'by votes'
              : 'waiting';
        outcomes.set(expected, (outcomes.get(expected) ?? 0) + 1);

        const first = hold(election);
        const submitted =
          expected === 'at once' ? 'COMPLETED' : expected === 'denied' ? 'PERMISSION_DENIED' : 'CONSENSUS_NEEDED';
        expect([expected, first.statuses[0]]).toEqual([expected, submitted]);
        expect(first.isDone).toBe(expected === 'at once' || expected === 'by votes');
        const orders = voters.length <= 3 ? permutationsOf(voters) : [voters.toReversed(), voters.toSorted()];
        for (const order of orders) {
          const { isDone, effects } = hold(election, order);
          expect({ order, isDone, effects }).toEqual({ order, isDone: first.isDone, effects: first.effects });
        }
      }),
      { numRuns: runs, seed: 45 },
    );
    for (const outcome of ['at once', 'denied', 'by votes', 'waiting']) {
      expect([outcome, outcomes.get(outcome)! > runs / 30]).toEqual([outcome, true]);
    }
  });

  it('hears exactly those whose vote can matter, and counts each once', () => {
    const tried = { heard: 0, refused: 0, 'too late': 0, 'again while open': 0, 'again when done': 0 };
    fc.assert(
      fc.property(elections, (election) => {
        const all = peopleOf(election);
        const { statuses } = hold(election);
        if (statuses[0] !== 'CONSENSUS_NEEDED') return;
        const { quorum, submitter, policies } = election;
        const voters = election.voters.filter((one) => one !== submitter);
        voters.forEach((voter, index) => {
          const before = statuses[index];
          if (statuses.slice(0, index + 1).includes('COMPLETED')) {
            tried['too late'] += 1;
            return expect(statuses[index + 1]).toBe('not waiting');
          }
          const mayVote = quorum.members.includes(voter) || policies.some((one) => canMatter(one, all[voter]!, all));
          tried[mayVote ? 'heard' : 'refused'] += 1;
          expect([before, statuses[index + 1] === 'PERMISSION_DENIED']).toEqual([before, !mayVote]);
        });
        const twice = hold(election, [...voters, ...voters]);
        expect(twice.isDone).toBe(hold(election, voters).isDone);
        const repeated = twice.statuses.slice(1 + voters.length);
        for (const status of repeated) {
          tried[status === 'not waiting' ? 'again when done' : 'again while open'] += 1;
          expect(['FAILED_PRECONDITION', 'PERMISSION_DENIED', 'not waiting']).toContain(status);
        }
      }),
      { numRuns: runs, seed: 46 },
    );
    for (const [what, count] of Object.entries(tried)) expect([what, count > runs / 33]).toEqual([what, true]);
  });

  it('is ended by one rejection of someone who may vote, whatever was said before', () => {
    const one = new OneActivity(registry, [
      ...people.flatMap((one) => aVoter(one)),
      policy('EFFECT_ALLOW', { consensus: 'approvers.count() >= 4' }),
      aRootQuorum(1, id(999)),
    ]);
    expect(one.submit(voterId(0), ...rename).status).toBe('CONSENSUS_NEEDED');
    expect(one.vote(voterId(1)).status).toBe('CONSENSUS_NEEDED');
    expect(one.vote(voterId(2), 'VOTE_SELECTION_REJECTED').status).toBe('REJECTED');
    expect(one.vote(voterId(3)).status).toBe('not waiting');
  });
});

function policy(
  effect: 'EFFECT_ALLOW' | 'EFFECT_DENY',
  clauses: { condition?: string; consensus?: string; time?: string },
  policyId = id(300),
): OrganizationEvent {
  return { type: 'PolicyCreated', data: { policyId, policyName: policyId, effect, notes: '', ...clauses } };
}

describe('an error in a policy', () => {
  const pay = (amount: string) => ['ACTIVITY_TYPE_PAY', { amount }] as const;
  const tooLarge = String(2n ** 127n);
  const numbers = Array.from({ length: 400 }, (_, index) => index).join(', ');

  /** Each is an error in its clause for a payment of that amount without a memo, by a user without an e-mail address. */
  const conditions: readonly (readonly [string, string, string])[] = [
    ['a parameter that is missing', "activity.params.memo == 'x'", '1'],
    ['one that is missing in a list', "activity.params.memo in ['x', 'y']", '1'],
    ['one that is missing, unequal', "activity.params.memo != 'x'", '1'],
    ['one that is missing, denied', "!(activity.params.memo == 'x')", '1'],
    ['one that is missing, indexed', "activity.params.memo[0] == 'x'", '1'],
    ['a parameter of another verb', "activity.params.user_ids.contains('x')", '1'],
    ['a number beyond 128 bits', 'activity.params.amount > 0', tooLarge],
    ['a number below 128 bits', 'activity.params.amount < 0', String(-(2n ** 127n) - 1n)],
    ['an index out of range', "activity.resource[100] == 'x'", '1'],
    ['a slice out of range', "activity.resource[0..100] != 'x'", '1'],
    ['too much work', `[${numbers}].any(a, [${numbers}].any(b, a == b))`, '1'],
  ];
  const consensuses: readonly (readonly [string, string])[] = [
    ['an index out of range', `approvers[9].id == '${voterId(0)}'`],
    ['a field that the user lacks', "approvers.any(user, user.email == 'a@example.com')"],
    ['a field that the user lacks, unequal', "approvers.all(user, user.email != 'a@example.com')"],
    ['a field that the credential lacks', "credentials.filter(one, one.credential_id == 'x').count() >= 1"],
    ['a slice out of range', 'approvers[0..9].count() >= 1'],
    ['too much work', `approvers.any(user, [${numbers}].any(a, [${numbers}].any(b, a == b)))`],
  ];

  /** Ways to put an error beside parts that would allow on their own. */
  const beside: readonly ((error: string) => string)[] = [
    (error) => error,
    (error) => `!(${error})`,
    (error) => `true || ${error}`,
    (error) => `${error} || true`,
    (error) => `true || (false && ${error})`,
    (error) => `(${error} && false) || true`,
    (error) => `!(true && ${error})`,
    (error) => `!(false && ${error})`,
    (error) => `[1, 2].any(n, n == 1 || ${error})`,
    (error) => `[1, 2].all(n, n >= 1 || ${error})`,
    (error) => `[1, 2].filter(n, n == 1 || ${error}).count() >= 1`,
    (error) => `(${error}) == (${error})`,
    (error) => `true == (${error})`,
    (error) => `(${error}) in [true, false]`,
    (error) => `[true, ${error}].contains(true)`,
  ];

  const outcomeOf = (facts: readonly OrganizationEvent[], amount: string) => {
    const one = new OneActivity(testRegistry, [
      ...people.flatMap((one) => aVoter(one)),
      ...facts,
      aRootQuorum(1, id(999)),
    ]);
    const outcome = one.submit(voterId(0), ...pay(amount));
    const evaluations = outcome.refusal?.details[0]?.['policyEvaluations'] as { outcome: string; error?: string }[];
    return { one, outcome, evaluations };
  };

  it('is one of evaluation: each of these policies can be written, and with a sound part evaluated', () => {
    const { policyEnvironment } = testRegistry;
    for (const around of beside) {
      for (const [, text] of conditions) checkPolicyText(around(text), 'condition', policyEnvironment);
      for (const [, text] of consensuses) checkPolicyText(around(text), 'consensus', policyEnvironment);
      const { one, outcome } = outcomeOf(
        [policy('EFFECT_ALLOW', { condition: around("activity.kind == 'PAY'") })],
        '1',
      );
      expect(one.organization.policies.size).toBe(1);
      expect([around('…'), JSON.stringify(outcome)]).toEqual([
        around('…'),
        expect.not.stringContaining('OUTCOME_ERROR'),
      ]);
    }
  });

  it.each(conditions)('never allows: condition with %s', (_what, condition, amount) => {
    for (const around of beside) {
      const { outcome, evaluations } = outcomeOf([policy('EFFECT_ALLOW', { condition: around(condition) })], amount);
      expect([around(condition), outcome.status]).toEqual([around(condition), 'PERMISSION_DENIED']);
      expect(evaluations).toEqual([
        expect.objectContaining({ outcome: 'OUTCOME_ERROR', error: expect.any(String) as string }),
      ]);
    }
  });

  it.each(consensuses)('never allows: consensus with %s', (_what, consensus) => {
    for (const around of beside) {
      const { one, outcome } = outcomeOf([policy('EFFECT_ALLOW', { consensus: around(consensus) })], '1');
      expect([around(consensus), outcome.status]).not.toEqual([around(consensus), 'COMPLETED']);
      for (const voter of [1, 2, 3]) {
        expect([around(consensus), one.vote(voterId(voter)).status]).not.toEqual([around(consensus), 'COMPLETED']);
      }
    }
  });

  it('never allows when it comes with a later vote', () => {
    const facts = [
      policy('EFFECT_ALLOW', { consensus: "approvers.count() >= 2 && approvers.all(user, user.email != 'x')" }),
      { type: 'UserUpdated', data: { userId: voterId(0), userEmail: 'zero@example.com' } } as const,
      { type: 'UserUpdated', data: { userId: voterId(1), userEmail: 'one@example.com' } } as const,
    ];
    const { one, outcome } = outcomeOf(facts, '1');
    expect(outcome.status).toBe('CONSENSUS_NEEDED');
    const { status, events } = one.vote(voterId(2));
    expect([status, events]).not.toEqual(['COMPLETED', expect.anything()]);
    const decided = events[0] as Extract<ActivityEvent, { type: 'ActivityApproved' }> | undefined;
    if (decided) expect(decided.data.decision.evaluations.map(({ outcome }) => outcome)).toEqual(['OUTCOME_ERROR']);
  });

  it.each(['condition', 'consensus'] as const)(
    'does not keep another policy from allowing or denying: in %s',
    (clause) => {
      const broken = clause === 'condition' ? "activity.params.memo == 'x'" : "approvers[9].id == 'x'";
      const allowing = policy('EFFECT_ALLOW', {}, id(301));
      const denying = policy('EFFECT_DENY', {}, id(302));
      const error = policy('EFFECT_ALLOW', { [clause]: broken });
      expect(outcomeOf([error, allowing], '1').outcome.status).toBe('COMPLETED');
      expect(outcomeOf([error, allowing, denying], '1').outcome.status).toBe('PERMISSION_DENIED');
    },
  );

  it('never allows, wherever in whatever expression it stands', () => {
    const sound = fc.constantFrom('true', 'false', "requester.id == 'nobody'", '1 in [1, 2]', '!(2 >= 1)');
    const faulty = fc.constantFrom(...conditions.slice(0, 6).map(([, text]) => text));
    const { broken } = fc.letrec<{ broken: string; whole: string }>((tie) => ({
      whole: fc.oneof(
        { maxDepth: 3 },
        sound,
        fc.tuple(fc.constantFrom('&&', '||'), tie('whole'), tie('whole')).map(([by, a, b]) => `(${a} ${by} ${b})`),
      ),
      broken: fc.oneof(
        { maxDepth: 4 },
        faulty,
        fc.tuple(fc.constantFrom('&&', '||'), tie('broken'), tie('whole')).map(([by, a, b]) => `(${a} ${by} ${b})`),
        fc.tuple(fc.constantFrom('&&', '||'), tie('whole'), tie('broken')).map(([by, a, b]) => `(${a} ${by} ${b})`),
        tie('broken').map((one) => `!(${one})`),
        fc
          .tuple(fc.constantFrom('any', 'all'), tie('broken'), tie('whole'), fc.nat(1e9))
          .map(([method, a, b, name]) => `[1, 2].${method}(n${name}, n${name} == 1 || ${b} || ${a})`),
      ),
    }));
    fc.assert(
      fc.property(broken, fc.constantFrom('condition', 'both'), (condition, where) => {
        const allowing = where === 'both' ? { condition, consensus: 'approvers.count() >= 1' } : { condition };
        const { outcome, evaluations } = outcomeOf([policy('EFFECT_ALLOW', allowing)], '1');
        expect(outcome.status).toBe('PERMISSION_DENIED');
        expect(evaluations.map(({ outcome }) => outcome)).toEqual(['OUTCOME_ERROR']);
      }),
      { numRuns: isLong ? 5_000 : 200, seed: 45 },
    );
  });
});
