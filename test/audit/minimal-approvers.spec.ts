import fc from 'fast-check';
import { authorize, eligibleApprovers, isDenied } from '../../src/domain/policy/authorize.js';
import { ballotOf } from '../../src/domain/policy/ballot.js';
import type { AuthorizationContext } from '../../src/domain/policy/request-evaluation.js';
import type { Approval, AuthorizationRequest, Policy, PolicyUser } from '../../src/domain/policy/types.js';
import { Steps } from '../../src/domain/steps.js';
import {
  approversSteps,
  minimalApprovers,
  type MinimalApprovers,
} from '../../src/audit/approvers/minimal-approvers.js';
import type { ApproversQuestion } from '../../src/audit/approvers/passing-sets.js';
import { approverSetsOf } from '../../src/audit/approvers/approver-sets.js';
import type { Counts } from '../../src/audit/approvers/count-vectors.js';
import { environment } from '../domain/policy/environment.js';
import { isLong } from '../long.js';

const apiKey = 'CREDENTIAL_TYPE_API_KEY_P256';
const passkey = 'CREDENTIAL_TYPE_WEBAUTHN_AUTHENTICATOR';

function user(userId: string, tags: readonly string[] = [], types = [apiKey], email?: string): PolicyUser {
  const credentials = types.map((type, index) => ({
    id: `${userId}-${index}`,
    userId,
    type,
    publicKey: `key ${userId} ${index}`,
    ...(type === passkey ? { credentialId: `passkey ${userId}` } : {}),
  }));
  return { userId, userName: `name ${userId}`, tags, credentials, ...(email === undefined ? {} : { email }) };
}

const approvalBy = ({ userId, credentials }: PolicyUser, place = 0): Approval => ({
  userId,
  credential: credentials[Math.min(place, credentials.length - 1)]!,
});

interface Situation {
  readonly users: readonly PolicyUser[];
  readonly policies: readonly Pick<Policy, 'effect' | 'condition' | 'consensus'>[];
  readonly rootQuorum: AuthorizationContext['rootQuorum'];
  readonly cast: readonly Approval[];
  readonly submitterId: string;
  readonly member?: string | undefined;
  readonly unasked?: readonly string[];
  readonly request?: Partial<AuthorizationRequest>;
}

function asked({ users, policies, rootQuorum, cast, submitterId, member, unasked = [], request }: Situation) {
  const authorization: AuthorizationRequest = {
    activity: { type: 'T', kind: 'K', resource: 'WALLET', action: 'CREATE', params: {} },
    submitterId,
    isWaiting: true,
    rootQuorumOnly: false,
    ownCredentials: false,
    ...request,
  };
  const all = policies.map((one, index) => ({
    ...one,
    policyId: `p${index}`,
    policyName: '',
    notes: '',
    createdAt: 0,
    updatedAt: 0,
  }));
  const context = (): AuthorizationContext => ({
    policies: all,
    rootQuorum,
    users,
    environment,
    now: 0,
    steps: new Steps(Infinity),
  });
  return { request: authorization, cast, context, member, unasked };
}

type Asked = ReturnType<typeof asked>;

/** By casting every vote, as the coordinator would accept it; in every order, if that can matter. */
function bruteForce(
  { request, cast, context, member, unasked }: Asked,
  users: readonly PolicyUser[],
  isOrdered: boolean,
) {
  const passing: ReadonlySet<string>[] = [];
  const seen = new Set<string>();
  const cover = (userIds: readonly string[]) => passing.some((set) => [...set].every((one) => userIds.includes(one)));
  let frontier: (readonly Approval[])[] = [[]];
  while (frontier.length > 0) {
    const next: (readonly Approval[])[] = [];
    for (const votes of frontier) {
      const approvals = [...cast, ...votes];
      const eligible = eligibleApprovers(request, approvals, context());
      for (const one of users) {
        const mayVote = eligible.has(one.userId) || one.userId === member;
        if (!mayVote || unasked.includes(one.userId) || approvals.some(({ userId }) => userId === one.userId)) continue;
        for (const credential of one.credentials) {
          const further = [...votes, { userId: one.userId, credential }];
          const credentialIds = further.map(({ credential: { id } }) => id);
          const key = (isOrdered ? credentialIds : credentialIds.sort()).join();
          if (seen.has(key)) continue;
          seen.add(key);
          const userIds = further.map(({ userId }) => userId);
          if (cover(userIds)) continue;
          const authorization = authorize(request, [...cast, ...further], context());
          const { outcome, by } = authorization;
          const isRefused = isDenied(authorization) && !context().rootQuorum.userIds.includes(one.userId);
          const isByMember =
            member === undefined ||
            by === 'root-quorum' ||
            [...cast, ...further].some(({ userId }) => userId === member);
          if (outcome === 'allow' && isByMember) passing.push(new Set(userIds));
          else if (outcome !== 'deny-explicit' && !isRefused) next.push(further);
        }
      }
    }
    frontier = next;
  }
  return passing.map((set) => [...set].sort().join());
}

function questionOf(
  { request, cast, context, member, unasked }: Asked,
  users: readonly PolicyUser[],
): ApproversQuestion {
  const eligible = eligibleApprovers(request, cast, context());
  const mayVote = [...eligible, ...(member === undefined ? [] : [member])];
  return {
    ballot: ballotOf(request, cast, context()),
    mayVote: users.map(({ userId }) => userId).filter((userId) => mayVote.includes(userId)),
    unasked,
    ...(member === undefined ? {} : { member }),
  };
}

function answerOf(given: Asked, users: readonly PolicyUser[]): MinimalApprovers {
  return minimalApprovers(questionOf(given, users), environment, new Steps(100_000_000));
}

/** Every set of users that a family stands for. */
function setsOf(family: readonly Counts[], classes: readonly (readonly string[])[]): string[] {
  const sets = family.flatMap((counts) =>
    counts.reduce<string[][]>(
      (made, count, index) => made.flatMap((set) => subsets(classes[index]!, count).map((one) => [...set, ...one])),
      [[]],
    ),
  );
  return sets.map((set) => set.sort().join());
}

function subsets(of: readonly string[], count: number): string[][] {
  if (count === 0) return [[]];
  return of.flatMap((first, index) => subsets(of.slice(index + 1), count - 1).map((rest) => [first, ...rest]));
}

/** The smallest sets that have a user of each of these. */
function transversals(sets: readonly string[], userIds: readonly string[]): string[] {
  const wanted = sets.map((set) => set.split(','));
  const found: string[][] = [];
  for (let size = 0; size <= userIds.length; size++) {
    for (const one of subsets(userIds, size)) {
      if (found.some((smaller) => smaller.every((userId) => one.includes(userId)))) continue;
      if (wanted.every((set) => set.some((userId) => one.includes(userId)))) found.push(one);
    }
  }
  return found.map((set) => set.sort().join());
}

describe('who could make an activity pass', () => {
  const ids = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l'];
  const usersOf = (most: number, least = 1) =>
    fc
      .array(
        fc.record({
          tags: fc.subarray(['t1', 't2']),
          types: fc.constantFrom([apiKey], [apiKey], [apiKey], [passkey], [apiKey, passkey], []),
          hasEmail: fc.boolean(),
        }),
        { minLength: least, maxLength: most },
      )
      .map((specs) =>
        specs.map(({ tags, types, hasEmail }, index) => {
          const id = ids[index]!;
          return user(id, tags, [...types], hasEmail ? `${id}@x` : undefined);
        }),
      );
  const named = fc.subarray(["'a'", "'b'", "'c'", "'d'"], { minLength: 1, maxLength: 3 });
  const predicates = fc.oneof(
    fc.constantFrom("u.tags.contains('t1')", "u.tags.contains('t2')", 'u.id != requester.id'),
    named.map((list) => `u.id in [${list.join()}]`),
    fc.constant("u.email == 'b@x'"),
  );
  const lists = fc.oneof(
    predicates.map((predicate) => `approvers.filter(u, ${predicate})`),
    fc.constantFrom('approvers', `credentials.filter(k, k.type == '${passkey}')`),
  );
  const thresholdAtoms = fc.oneof(
    predicates.map((predicate) => `approvers.any(u, ${predicate})`),
    fc.tuple(lists, fc.constantFrom('>= 1', '>= 2', '> 2', '!= 0')).map(([list, least]) => `${list}.count() ${least}`),
    fc.tuple(lists, fc.constantFrom('3 <= ', '1 < ')).map(([list, least]) => `${least}${list}.count()`),
    lists.map((list) => `!(${list}.count() < 2)`),
    predicates.map((predicate) => `!approvers.all(u, !(${predicate}))`),
    fc.constantFrom('true', "requester.id == 'a'", "requester.email != 'z'"),
  );
  const otherAtoms = fc.oneof(
    thresholdAtoms,
    lists.map((list) => `${list}.count() == 2`),
    lists.map((list) => `${list}.count() < 3`),
    predicates.map((predicate) => `approvers.all(u, ${predicate})`),
    fc.constantFrom(
      "['t1', 't2'].all(t, approvers.any(u, u.tags.contains(t)))",
      "approvers.filter(u, u.tags.contains('t1')).count() > approvers.filter(u, u.tags.contains('t2')).count()",
    ),
  );
  const orderedAtoms = fc.oneof(
    otherAtoms,
    fc.constantFrom("approvers[0].id == 'b'", "approvers[1].tags.contains('t1')"),
  );
  const formula = (atoms: fc.Arbitrary<string>): fc.Arbitrary<string> =>
    fc.oneof(
      atoms,
      fc
        .tuple(fc.array(atoms, { minLength: 2, maxLength: 3 }), fc.constantFrom(' && ', ' || '))
        .map(([parts, operator]) => parts.map((part) => `(${part})`).join(operator)),
    );
  const conditions = fc.constantFrom(undefined, 'true', "wallet.id == 'x'", "wallet.id == 'y'", 'false');
  const policiesOf = (consensuses: fc.Arbitrary<string>, denials: fc.Arbitrary<string>) =>
    fc.tuple(
      fc.array(fc.record({ condition: conditions, consensus: consensuses }), { minLength: 1, maxLength: 3 }),
      fc.array(fc.record({ condition: conditions, consensus: denials }), { maxLength: 1 }),
    );
  const situationsOf = (
    users: fc.Arbitrary<readonly PolicyUser[]>,
    consensuses: fc.Arbitrary<string>,
    denials: fc.Arbitrary<string>,
  ): fc.Arbitrary<Situation> =>
    users.chain((list) => {
      const userIds = list.map(({ userId }) => userId);
      const voters = list.filter(({ credentials }) => credentials.length > 0);
      return fc
        .record({
          policies: policiesOf(consensuses, denials),
          root: fc.subarray(userIds).map((some) => some.slice(0, 4)),
          threshold: fc.integer({ min: 1, max: 3 }),
          cast: fc.tuple(
            fc.shuffledSubarray(voters).map((some) => some.slice(0, 2)),
            fc.nat(1),
          ),
          submitterId: fc.constantFrom(...userIds),
          // The user of an auth proxy, who is in no root quorum.
          unasked: fc.option(fc.constantFrom(...userIds), { nil: undefined }),
          member: fc.option(fc.constantFrom(...userIds), { freq: 4, nil: undefined }),
          wallets: fc.subarray(['x', 'y'], { minLength: 1 }),
          ownCredentials: fc.constantFrom(false, false, true, 'session' as const),
        })
        .map(({ policies: [allows, denies], root: some, unasked: proxy, ...rest }) => ({
          ...rest,
          allows,
          denies,
          proxy,
          root: some.filter((one) => one !== proxy),
        }))
        .map(({ allows, denies, root, proxy, threshold, cast, submitterId, member, wallets, ownCredentials }) => ({
          users: list,
          unasked: proxy === undefined ? [] : [proxy],
          policies: [
            ...allows.map((one) => ({ effect: 'EFFECT_ALLOW' as const, ...given(one) })),
            ...denies.map((one) => ({ effect: 'EFFECT_DENY' as const, ...given(one) })),
          ],
          rootQuorum: { threshold, userIds: root },
          cast: cast[0].map((one) => approvalBy(one, cast[1])),
          submitterId,
          member: member !== undefined && root.includes(member) ? member : undefined,
          request: {
            ownCredentials,
            parts: wallets.map((id) => ({ name: id, resources: { wallet: { id } } })),
          },
        }));
    });
  const given = ({ condition, consensus }: { condition: string | undefined; consensus: string }) => ({
    ...(condition === undefined ? {} : { condition }),
    consensus,
  });

  const none = fc.constant("requester.id == 'nobody'");
  it.each([
    ['thresholds', situationsOf(usersOf(6), formula(thresholdAtoms), none), 700, false],
    ['anything but order', situationsOf(usersOf(5), formula(otherAtoms), none), 300, false],
    ['votes in order', situationsOf(usersOf(4), formula(orderedAtoms), none), 450, true],
    ['denials by votes', situationsOf(usersOf(5), formula(thresholdAtoms), formula(otherAtoms)), 300, false],
    ['thresholds of twelve', situationsOf(usersOf(12, 12), formula(thresholdAtoms), none), 40, false],
  ])('is what casting every vote says: %s', (_kind, situations, numRuns, isOrdered) => {
    let many = 0;
    let asks = 0;
    fc.assert(
      fc.property(situations, (situation) => {
        const { users } = situation;
        const question = asked(situation);
        const answer = answerOf(question, users);
        const sets = bruteForce(question, users, isOrdered);
        expect(answer.isComplete).toBe(true);
        expect(setsOf(answer.passing, answer.classes).sort()).toEqual(sets.sort());
        expect(answer.sets).toBe(BigInt(sets.length));
        const others = users.map(({ userId }) => userId).filter((userId) => !question.unasked.includes(userId));
        if (users.length <= 8) {
          expect(setsOf(answer.blocking!, answer.classes).sort()).toEqual(transversals(sets, others).sort());
        }
        many += Number(sets.length > 1);
        asks += 1;
      }),
      { numRuns: isLong ? 10 * numRuns : numRuns },
    );
    expect(many).toBeGreaterThan(asks / 25);
  });

  it('is never wrong when steps run out: it says so, and lists what was found', () => {
    let cut = 0;
    fc.assert(
      fc.property(
        situationsOf(usersOf(5, 2), formula(otherAtoms), formula(otherAtoms)),
        fc.integer({ min: 100, max: 10_000 }),
        (situation, most) => {
          const { users } = situation;
          const question = questionOf(asked(situation), users);
          const all = minimalApprovers(question, environment, new Steps(100_000_000));
          const some = minimalApprovers(question, environment, new Steps(most));
          const [allSets, someSets] = [all, some].map(({ passing, classes }) => setsOf(passing, classes).sort());
          if (some.isComplete) expect(someSets).toEqual(allSets);
          else expect(allSets).toEqual(expect.arrayContaining(someSets!));
          cut += Number(!some.isComplete);
        },
      ),
      { numRuns: isLong ? 4_000 : 150 },
    );
    expect(cut).toBeGreaterThan(4);
  });

  describe('in words', () => {
    const plain = {
      rootQuorum: { threshold: 2, userIds: ['r'] },
      cast: [],
      submitterId: 'q',
      member: undefined,
    } as const;
    const tagged = (tag: string, count: number) => `approvers.filter(u, u.tags.contains('${tag}')).count() >= ${count}`;
    const allow = (consensus: string) => ({ effect: 'EFFECT_ALLOW' as const, consensus });
    const told = (situation: Situation, steps?: Steps) => {
      const given = asked(situation);
      const { ballot, ...rest } = questionOf(given, situation.users);
      const answer = minimalApprovers({ ballot, ...rest }, environment, steps);
      return approverSetsOf(answer, { ballot, ...rest }, { t1: 'treasurer', t2: 'ops' });
    };
    const sets = ({ minimalSets, blockingSets }: ReturnType<typeof told>) => ({
      minimal: minimalSets.map(({ text }) => text),
      blocking: blockingSets?.map(({ text }) => text),
    });
    const treasurers = ['t', 'u', 'v', 'w'].map((id) => user(id, ['t1']));
    const [alice, bob] = [user('alice', ['t2']), user('bob')];

    it('names tags and users, and counts the sets', () => {
      const consensus = `${tagged('t1', 2)} && approvers.any(u, u.id in ['alice', 'bob'])`;
      const answer = told({ ...plain, users: [...treasurers, alice, bob], policies: [allow(consensus)] });
      expect(answer.text).toBe('The approvals of any one of 12 sets of users would make this activity pass.');
      expect(sets(answer)).toEqual({
        minimal: ['any 2 of tag "treasurer" and ("name alice" or "name bob")'],
        blocking: ['"name alice" and "name bob"', 'any 3 of tag "treasurer"'],
      });
      expect(answer.classes.map(({ userIds, size }) => ({ userIds, size }))).toEqual([
        { userIds: ['t', 'u', 'v', 'w'], size: '4' },
        { userIds: ['alice', 'bob'], size: '2' },
      ]);
    });

    it('counts what is cast, and tells the way of the root quorum', () => {
      const answer = told({
        ...plain,
        users: [...treasurers, alice, user('r'), user('s')],
        rootQuorum: { threshold: 2, userIds: ['r', 's', 'alice'] },
        submitterId: 'r',
        cast: [approvalBy(user('r'))],
        policies: [allow(`${tagged('t1', 1)} && ${tagged('t2', 1)}`)],
      });
      expect(sets(answer)).toEqual({
        minimal: ['any 1 of the root quorum'],
        blocking: ['all 2 of the root quorum'],
      });
    });

    it('says of what another vote can undo who would', () => {
      const consensus = "approvers.count() == 2 && approvers.any(u, u.id == 'alice')";
      const answer = told({ ...plain, users: [alice, bob, ...treasurers], policies: [allow(consensus)] });
      const any = '"name bob", "name t", "name u", "name v" or "name w"';
      expect(sets(answer).minimal).toEqual([
        `"name alice" and (${any}); one more approval before the last, by ${any}, would undo it`,
      ]);
      expect(answer.minimalSets.every(({ undoneBy }) => undoneBy?.length === 1)).toBe(true);
    });

    it('says that nobody can', () => {
      const answer = told({ ...plain, users: [alice, bob], policies: [allow('approvers.count() >= 3')] });
      expect(answer.text).toBe('No approvals can make this activity pass today.');
      expect(sets(answer)).toEqual({ minimal: [], blocking: ['nobody'] });
    });

    it('leaves out whom nobody can ask', () => {
      const given = asked({ ...plain, users: [alice, bob], policies: [allow('approvers.count() >= 1')] });
      const question = { ...questionOf(given, [alice, bob]), unasked: ['bob'] };
      const answer = approverSetsOf(minimalApprovers(question, environment), question, {});
      expect(sets(answer).minimal).toEqual(['"name alice"']);
    });

    it('says when a bound was hit, and lists what was found until then', () => {
      const users = Array.from({ length: 24 }, (_, index) => user(`u${index}`));
      const each = users.map(({ userId }) => `approvers.any(u, u.id == '${userId}')`).join(' || ');
      const policies = [allow(`approvers.count() >= 12 && (${each})`), allow("approvers.any(u, u.id == 'u7')")];
      const answer = told({ ...plain, users, policies }, new Steps(2_000_000));
      expect(answer.notComplete).toMatch(/^finding all sets would take too long/);
      expect(answer.blockingSets).toBeUndefined();
      expect(sets(answer).minimal).toEqual(['"name u7"']);
    });

    it('has ten million steps unless another budget is given', () => {
      const users = Array.from({ length: 11 }, (_, index) => user(`u${index}`));
      const someone = users.map(({ userId }) => `approvers.any(u, u.id == '${userId}')`).join(' || ');
      // Long enough for fifteen million.
      const policies = [
        allow(`approvers.count() >= 6 && (${someone}) && (${someone}) && (true || ${someone})`),
        allow("approvers.any(u, u.id == 'u7')"),
      ];
      const situation = { ...plain, users, policies };
      expect(told(situation).notComplete).toMatch(/^finding all sets would take too long/);
      expect(told(situation, new Steps(100_000_000)).notComplete).toBeUndefined();
    });

    it('lists up to 1,000 sets', () => {
      const users = Array.from({ length: 1_200 }, (_, index) => user(`u${index}`));
      const given = questionOf(asked({ ...plain, users, policies: [] }), users);
      const found: MinimalApprovers = {
        classes: users.map(({ userId }) => [userId]),
        passing: users.map((_, index) => users.map((_other, other) => Number(index === other))),
        undoneBy: [],
        isComplete: true,
        sets: 1_200n,
        blocking: [],
      };
      const answer = approverSetsOf(found, given, {});
      expect(answer.minimalSets).toHaveLength(1_000);
      expect(answer.setCount).toBe('1200');
      expect(answer.notComplete).toBe('only the first sets are listed, up to 1000');
    });

    it('lists sets of 256 Ki characters in all', () => {
      const users = Array.from({ length: 400 }, (_, index) => user(`${'u'.repeat(2_000)}${index}`));
      const given = questionOf(asked({ ...plain, users, policies: [] }), users);
      const classes = users.map(({ userId }) => [userId]);
      // Of each, thirty in a row.
      const passing = users.map((_, index) => users.map((_other, other) => Number(Math.abs(index - other) < 15)));
      const found = { classes, passing, undoneBy: [], isComplete: true, sets: 400n, blocking: [] };
      const { minimalSets, notComplete } = approverSetsOf(found, given, {});
      const characters = minimalSets.reduce((sum, { text }) => sum + text.length, 0);
      expect(characters).toBeGreaterThan(200 * 1_024);
      expect(characters).toBeLessThanOrEqual(256 * 1_024);
      expect(notComplete).toMatch(/^only the first sets are listed/);
    });

    it('lists the ids of 1,000 users', () => {
      const users = Array.from({ length: 1_200 }, (_, index) => user(`u${index}`));
      const given = questionOf(asked({ ...plain, users, policies: [] }), users);
      const classes = [users.map(({ userId }) => userId)];
      const found = { classes, passing: [[1]], undoneBy: [], isComplete: true, sets: 1_200n, blocking: [] };
      const [told] = approverSetsOf(found, given, {}).classes;
      expect([told!.size, told!.userIds.length]).toEqual(['1200', 1_000]);
    });

    it('takes less than a tenth of its budget for 1,000 users', () => {
      const users = Array.from({ length: 1_000 }, (_, index) => user(`u${index}`, [`t${index % 4}`]));
      const consensus = `${tagged('t1', 2)} && ${tagged('t2', 1)} && approvers.any(u, u.id in ['u1', 'u2', 'u3'])`;
      const steps = new Steps(approversSteps);
      const answer = told({ ...plain, users, policies: [allow(consensus)] }, steps);
      expect(answer.notComplete).toBeUndefined();
      expect(BigInt(answer.setCount)).toBeGreaterThan(1_000_000n);
      expect(steps.spent).toBeLessThan(approversSteps / 10);
    });
  });
});
