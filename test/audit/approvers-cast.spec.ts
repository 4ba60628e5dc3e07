import fc from 'fast-check';
import { activities } from '../../src/activities/index.js';
import { buildRegistry } from '../../src/decide/registry.js';
import type { OrganizationEvent } from '../../src/domain/organization/organization.js';
import { approversTask } from '../../src/audit/approvers/approvers-task.js';
import { minimalApprovers } from '../../src/audit/approvers/minimal-approvers.js';
import { approverSetsOf } from '../../src/audit/approvers/approver-sets.js';
import { aRootQuorum } from '../activities/facts.js';
import { id } from '../activities/given.js';
import { aVoter, OneActivity, voterId } from '../decide/one-activity.js';
import { environment } from '../domain/policy/environment.js';
import { isLong } from '../long.js';

const registry = buildRegistry(activities);
const people = [0, 1, 2, 3];
/** The user of the auth proxy, whom nobody can ask. */
const proxy = 9;
const rename = ['ACTIVITY_TYPE_UPDATE_USER_NAME', { userId: voterId(0), userName: 'Renamed' }] as const;

interface Installation {
  readonly consensus: string;
  readonly denial: string | undefined;
  readonly threshold: number;
  readonly members: readonly number[];
}

/** As after a first start: the auth proxy has a user, too. */
function asked({ consensus, denial, threshold, members }: Installation): OneActivity {
  const policy = (place: number, effect: 'EFFECT_ALLOW' | 'EFFECT_DENY', text: string): OrganizationEvent => ({
    type: 'PolicyCreated',
    data: { policyId: id(300 + place), policyName: `policy ${place}`, effect, consensus: text, notes: '' },
  });
  const one = new OneActivity(registry, [
    ...people.flatMap((person) => aVoter(person, person < 2 ? ['staff'] : [])),
    ...aVoter(proxy),
    policy(0, 'EFFECT_ALLOW', consensus),
    ...(denial === undefined ? [] : [policy(1, 'EFFECT_DENY', denial)]),
    aRootQuorum(threshold, ...members.map(voterId)),
  ]);
  one.organization.authProxy = {
    configId: id(700),
    userId: voterId(proxy),
    policyId: id(701),
    vaultId: id(702),
    publicKey: '',
    settings: {} as never,
    createdAt: 0,
    updatedAt: 0,
  };
  one.submit(voterId(0), ...rename);
  return one;
}

function answerOf(one: OneActivity) {
  const [open] = one.organization.openActivities.values();
  return approversTask(one.basis(), open!);
}

function expectedSets(installation: Installation): string[] {
  const passing: string[][] = [];
  let orders: number[][] = [[]];
  while (orders.length > 0) {
    const waiting: number[][] = [];
    for (const order of orders) {
      for (const voter of people.filter((person) => person !== 0 && !order.includes(person))) {
        const further = [...order, voter];
        const names = further.map(voterId);
        if (passing.some((set) => set.every((userId) => names.includes(userId)))) continue;
        const one = asked(installation);
        const statuses = further.map((person) => one.vote(voterId(person)).status);
        if (statuses.at(-1) === 'COMPLETED') passing.push(names);
        if (statuses.at(-1) === 'CONSENSUS_NEEDED') waiting.push(further);
      }
    }
    orders = waiting;
  }
  return passing.map((set) => set.sort().join());
}

const atoms = fc.constantFrom(
  'approvers.count() == 2',
  'approvers.count() == 3',
  'approvers.count() < 3',
  'approvers.count() >= 2',
  "approvers.all(user, user.tags.contains('staff'))",
  "approvers.filter(user, user.tags.contains('staff')).count() == 1",
  `approvers.any(user, user.id == '${voterId(2)}')`,
  `approvers[1].id == '${voterId(3)}'`,
);
const texts = fc
  .tuple(fc.array(atoms, { minLength: 1, maxLength: 2 }), fc.constantFrom(' && ', ' || '))
  .map(([parts, operator]) => parts.join(operator));
const installations: fc.Arbitrary<Installation> = fc.record({
  consensus: texts,
  denial: fc.option(atoms, { freq: 2, nil: undefined }),
  threshold: fc.constantFrom(1, 2),
  members: fc.constantFrom([3, 2], [0, 3], [1, 2, 3]),
});

test('the smallest sets are those whose votes, really cast, complete the activity', () => {
  let several = 0;
  fc.assert(
    fc.property(installations, (installation) => {
      const one = asked(installation);
      if (one.organization.openActivities.size === 0) return;
      const { asked: question } = answerOf(one);
      const { passing, classes, isComplete } = minimalApprovers(question, environment);
      expect(isComplete).toBe(true);
      const sets = passing.flatMap((counts) =>
        counts.reduce<string[][]>(
          (made, count, index) =>
            made.flatMap((set) => subsets(classes[index]!, count).map((some) => [...set, ...some])),
          [[]],
        ),
      );
      const expected = expectedSets(installation);
      expect(sets.map((set) => set.sort().join()).sort()).toEqual(expected.sort());
      several += Number(expected.length > 1);
    }),
    { numRuns: isLong ? 1_500 : 100 },
  );
  expect(several).toBeGreaterThan(10);
});

test('a fresh installation names the users who can complete it', () => {
  const one = asked({ consensus: 'approvers.count() == 2', denial: undefined, threshold: 1, members: [3] });
  const { asked: question, tagNames } = answerOf(one);
  const told = approverSetsOf(minimalApprovers(question, environment), question, tagNames);
  expect(told.classes.flatMap(({ userIds }) => userIds).sort()).toEqual([1, 2, 3].map(voterId));
  expect(told.setCount).toBe('3');
});

function subsets(of: readonly string[], count: number): string[][] {
  if (count === 0) return [[]];
  return of.flatMap((first, index) => subsets(of.slice(index + 1), count - 1).map((rest) => [first, ...rest]));
}
