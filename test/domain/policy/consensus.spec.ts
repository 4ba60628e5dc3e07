import fc from 'fast-check';
import { Voters } from '../../../src/domain/policy/consensus.js';
import { isCertain } from '../../../src/domain/policy/doubt.js';
import { evaluate, type Scope } from '../../../src/domain/policy/evaluate.js';
import { compileClause } from '../../../src/domain/policy/language.js';
import { approvalNamespaces, policyEnvironment, type Namespace } from '../../../src/domain/policy/namespaces.js';
import type { CheckedExpression } from '../../../src/domain/policy/syntax.js';
import { Steps } from '../../../src/domain/steps.js';
import type { PolicyUser, UserApproval } from '../../../src/domain/policy/types.js';
import { environment } from './environment.js';

const outer: Scope = { now: 0, value: () => undefined };
const apiKey = 'CREDENTIAL_TYPE_API_KEY_P256';
const passkey = 'CREDENTIAL_TYPE_WEBAUTHN_AUTHENTICATOR';

function user(userId: string, tags: string[] = [], types: string[] = [apiKey], email?: string): PolicyUser {
  const credentials = types.map((type, index) => ({
    id: `${userId}${index}`,
    userId,
    type,
    publicKey: `key ${userId}${index}`,
    ...(type === passkey ? { credentialId: `passkey ${userId}` } : {}),
  }));
  return { userId, userName: `name ${userId}`, tags, credentials, ...(email === undefined ? {} : { email }) };
}

function approval(of: PolicyUser, credential = 0): UserApproval {
  return { user: of, credential: of.credentials[credential]! };
}

const consensus = (text: string) => compileClause(text, 'consensus', environment);

/** What the answers mean, by trying every order of every choice of every set. For few users. */
class Reference {
  private readonly satisfying = new Map<string, boolean>();

  constructor(
    private readonly expression: CheckedExpression,
    private readonly users: readonly PolicyUser[],
    private readonly cast: readonly UserApproval[],
    private readonly isOrdered: boolean,
  ) {}

  isReachable(): boolean {
    const others = this.users.filter(({ userId }) => !this.cast.some(({ user }) => user.userId === userId));
    return this.sets(others).some((set) => this.holds([...this.cast, ...set]));
  }

  contributes(userId: string): boolean {
    const one = this.users.find((candidate) => candidate.userId === userId)!;
    const voted = this.cast.find((candidate) => candidate.user.userId === userId);
    const own = voted ? [voted] : one.credentials.map((credential) => ({ user: one, credential }));
    const others = this.users.filter((candidate) => candidate.userId !== userId);
    return this.sets(others).some(
      (set) =>
        !this.holds(set) &&
        own.some((vote) => {
          const places = this.isOrdered ? [...set, vote].map((_, place) => place) : [set.length];
          return places.some((place) => this.holds(set.toSpliced(place, 0, vote)));
        }),
    );
  }

  private holds(approvals: readonly UserApproval[]): boolean {
    const key = approvals.map(({ credential }) => credential.id).join();
    let answer = this.satisfying.get(key);
    if (answer === undefined) {
      answer = approvals.length > 0 && this.evaluates(approvals);
      this.satisfying.set(key, answer);
    }
    return answer;
  }

  private evaluates(approvals: readonly UserApproval[]): boolean {
    const value = (name: string) => approvals.map(approvalNamespaces.get(name)!.ofApproval);
    return isCertain(evaluate(this.expression, { now: 0, value }));
  }

  private sets(users: readonly PolicyUser[]): UserApproval[][] {
    let sets: UserApproval[][] = [[]];
    for (const one of users) {
      const votes = one.credentials.map((credential) => ({ user: one, credential }));
      sets = sets.flatMap((set) => [
        set,
        ...votes.flatMap((vote) =>
          this.isOrdered ? [...set, vote].map((_, place) => set.toSpliced(place, 0, vote)) : [[...set, vote]],
        ),
      ]);
    }
    return sets;
  }
}

const a = user('a', ['t1'], [apiKey], 'a@x');
const b = user('b', ['t1', 't2'], [apiKey, passkey], 'b@x');
const c = user('c', ['t2'], [passkey], 'c@x');
const d = user('d', [], [apiKey], 'd@x');

describe('consensus', () => {
  it.each<[string, UserApproval[], { isSatisfied: boolean; isReachable: boolean; contributors: string }]>([
    ['true', [], { isSatisfied: false, isReachable: true, contributors: 'abcd' }],
    ['true', [approval(d)], { isSatisfied: true, isReachable: true, contributors: 'abcd' }],
    ['approvers.count() >= 2', [], { isSatisfied: false, isReachable: true, contributors: 'abcd' }],
    ['approvers.count() >= 2', [approval(a)], { isSatisfied: false, isReachable: true, contributors: 'abcd' }],
    [
      'approvers.count() >= 2',
      [approval(a), approval(b)],
      { isSatisfied: true, isReachable: true, contributors: 'abcd' },
    ],
    ['approvers.count() >= 5', [approval(a)], { isSatisfied: false, isReachable: false, contributors: '' }],
    ['approvers.count() == 1', [approval(a)], { isSatisfied: true, isReachable: true, contributors: 'abcd' }],
    [
      'approvers.count() == 1',
      [approval(a), approval(b)],
      { isSatisfied: false, isReachable: false, contributors: 'abcd' },
    ],
    [
      'approvers.count() < 3',
      [approval(a), approval(b)],
      { isSatisfied: true, isReachable: true, contributors: 'abcd' },
    ],
    [
      'approvers.count() < 2',
      [approval(a), approval(b)],
      { isSatisfied: false, isReachable: false, contributors: 'abcd' },
    ],
    ["approvers.any(u, u.id == 'a')", [approval(d)], { isSatisfied: false, isReachable: true, contributors: 'a' }],
    ["approvers.any(u, u.id == 'z')", [approval(a)], { isSatisfied: false, isReachable: false, contributors: '' }],
    [
      "approvers.any(u, u.id == 'a') && approvers.any(u, u.id == 'b')",
      [approval(a)],
      { isSatisfied: false, isReachable: true, contributors: 'ab' },
    ],
    [
      "approvers.any(u, u.id == 'a') && approvers.any(u, u.id == 'z')",
      [approval(a)],
      { isSatisfied: false, isReachable: false, contributors: '' },
    ],
    [
      "approvers.all(u, u.id in ['a', 'b'])",
      [approval(a)],
      { isSatisfied: true, isReachable: true, contributors: 'ab' },
    ],
    [
      "approvers.all(u, u.id in ['a', 'b'])",
      [approval(d)],
      { isSatisfied: false, isReachable: false, contributors: 'ab' },
    ],
    [
      "approvers.all(u, u.id in ['a', 'b']) && approvers.count() >= 2",
      [approval(a)],
      { isSatisfied: false, isReachable: true, contributors: 'ab' },
    ],
    [
      "approvers.all(u, u.id in ['a', 'b']) && approvers.count() >= 2",
      [approval(d)],
      { isSatisfied: false, isReachable: false, contributors: 'ab' },
    ],
    [
      "approvers.filter(u, u.tags.contains('t1')).count() >= 2",
      [approval(c)],
      { isSatisfied: false, isReachable: true, contributors: 'ab' },
    ],
    [
      "approvers.filter(u, u.tags.contains('t1')).count() >= 3",
      [approval(a)],
      { isSatisfied: false, isReachable: false, contributors: '' },
    ],
    [
      `credentials.filter(k, k.type == '${passkey}').count() >= 2`,
      [approval(a)],
      { isSatisfied: false, isReachable: true, contributors: 'bc' },
    ],
    // b has voted with its API key: a second vote with the passkey is not to be had.
    [
      `credentials.filter(k, k.type == '${passkey}').count() >= 2`,
      [approval(b, 0)],
      { isSatisfied: false, isReachable: false, contributors: 'c' },
    ],
    [
      `credentials.filter(k, k.type == '${passkey}').count() >= 2`,
      [approval(b, 1)],
      { isSatisfied: false, isReachable: true, contributors: 'bc' },
    ],
    // One user cannot give both credentials.
    [
      `credentials.any(k, k.id == 'b0') && credentials.any(k, k.id == 'b1')`,
      [approval(a)],
      { isSatisfied: false, isReachable: false, contributors: '' },
    ],
    // Only passkeys have a credential id: with any other credential in the list the clause is an error.
    [
      "credentials.any(k, k.credential_id == 'passkey c')",
      [approval(a)],
      { isSatisfied: false, isReachable: false, contributors: 'c' },
    ],
    [
      "credentials.any(k, k.credential_id == 'passkey c')",
      [approval(b, 1)],
      { isSatisfied: false, isReachable: true, contributors: 'c' },
    ],
    // Users related to each other.
    [
      "['t1', 't2'].all(t, approvers.any(u, u.tags.contains(t)))",
      [approval(a)],
      { isSatisfied: false, isReachable: true, contributors: 'abc' },
    ],
    [
      `approvers.any(u, credentials.any(k, k.user_id == u.id && k.type == '${passkey}'))`,
      [approval(b, 0)],
      { isSatisfied: false, isReachable: true, contributors: 'c' },
    ],
    [
      "approvers.filter(u, u.tags.contains('t1')).count() > approvers.filter(u, u.tags.contains('t2')).count()",
      [approval(c)],
      { isSatisfied: false, isReachable: false, contributors: 'a' },
    ],
    // Places in the list.
    [
      "approvers[0].id == 'a' && approvers.count() >= 2",
      [approval(a)],
      { isSatisfied: false, isReachable: true, contributors: 'abcd' },
    ],
    [
      "approvers[0].id == 'a' && approvers.count() >= 2",
      [approval(d)],
      { isSatisfied: false, isReachable: false, contributors: 'abcd' },
    ],
    [
      "approvers[0..1].all(u, u.id == 'a')",
      [approval(d)],
      { isSatisfied: false, isReachable: false, contributors: 'a' },
    ],
  ])('is worked out for %s', (text, cast, expected) => {
    const voters = new Voters(() => [a, b, c, d], cast, outer);
    const expression = consensus(text);
    const isSatisfied = voters.read(expression).isMet;
    expect({
      isSatisfied,
      isReachable: voters.isReachable(expression),
      contributors: voters.contributors(expression).join(''),
    }).toEqual(expected);
  });

  it('expects nothing of users without a credential, or unknown ones', () => {
    const voters = new Voters(() => [a, user('e', [], [])], [approval(a)], outer);
    const two = consensus('approvers.count() >= 2');
    expect(voters.isReachable(two)).toBe(false);
    expect(voters.contributes(two, 'e')).toBe(false);
    expect(voters.contributes(two, 'nobody')).toBe(false);
  });

  it('counts as far as another count reaches', () => {
    const users = [
      ...['v', 'w'].map((id) => user(id, ['t2'])),
      ...['x', 'y', 'z'].map((id) => user(id, ['t1'])),
      user('n', []),
    ];
    const count = (tag: string) => `approvers.filter(u, u.tags.contains('${tag}')).count()`;
    const outvoted = new Voters(() => users, [approval(users[0]!), approval(users[1]!)], outer);
    expect(outvoted.isReachable(consensus(`${count('t1')} > ${count('t2')}`))).toBe(true);
    expect(outvoted.isReachable(consensus(`[${count('t1')}].all(c, ${count('t2')} < c)`))).toBe(true);
    expect(outvoted.isReachable(consensus(`${count('t1')} > ${count('t2')} && ${count('t1')} < 3`))).toBe(false);
  });

  it('handles values whose type is known only when read', () => {
    const labels: Namespace = {
      name: 'labels',
      clauses: ['consensus'],
      type: { kind: 'map', of: { kind: 'dynamic' } },
      value: () => undefined,
    };
    const labelled = policyEnvironment({}, [labels]);
    const voters = new Voters(() => [b, a], [], { now: 0, value: () => ({ a: false, b: true, two: 2n }) });
    const inOrder = compileClause('labels[approvers[0].id] && approvers.count() == 2', 'consensus', labelled);
    expect(voters.contributors(inOrder)).toEqual(['b', 'a']);
    const enough = compileClause("approvers.count() >= labels['two']", 'consensus', labelled);
    expect(voters.isReachable(enough)).toBe(true);
    expect(voters.contributors(enough)).toEqual(['b', 'a']);
  });

  it('is never had without an approval', () => {
    const voters = new Voters(() => [a, b], [], outer);
    for (const text of ['true', "approvers.all(u, u.id == 'z')", 'approvers.count() < 3', '!(approvers.count() > 0)']) {
      expect(voters.read(consensus(text)).isMet).toBe(false);
    }
  });

  it('works for large organizations', () => {
    const users = Array.from({ length: 200 }, (_, index) => user(`u${index}`, [`t${index % 3}`], [apiKey, passkey]));
    const voters = new Voters(() => users, [approval(users[0]!)], outer);
    const named = users.slice(0, 30).map(({ userId }) => `approvers.any(u, u.id == '${userId}')`);
    const all = consensus(named.join(' && '));
    expect(voters.isReachable(all)).toBe(true);
    expect(voters.contributors(all)).toHaveLength(30);
    const tagged = (tag: string, count: number) => `approvers.filter(u, u.tags.contains('${tag}')).count() >= ${count}`;
    const groups = consensus(`${tagged('t0', 40)} && ${tagged('t1', 20)} && credentials.count() >= 100`);
    expect(voters.isReachable(groups)).toBe(true);
    expect(voters.contributors(groups)).toHaveLength(200);
    expect(voters.isReachable(consensus(tagged('t0', 68)))).toBe(false);
    expect(voters.isReachable(consensus(tagged('t0', 67)))).toBe(true);
  });

  describe('gives up on what takes too long, and then says no', () => {
    const users = Array.from({ length: 60 }, (_, index) => user(`u${index}`));
    // Exactly these thirty of sixty: neither everybody nor a small set.
    const odd = users.filter((_, index) => index % 2 === 0).map(({ userId }) => `'${userId}'`);
    const exact = consensus(
      `[${odd.join()}].all(id, approvers.any(u, u.id == id)) && approvers.all(u, [${odd.join()}].any(id, id == u.id))`,
    );

    it('after 100 000 steps for one question', () => {
      const steps = new Steps(10_000_000);
      const voters = new Voters(() => users, [approval(users[0]!)], outer, steps);
      expect(voters.isReachable(exact)).toBe(false);
      expect(steps.spent).toBeGreaterThan(90_000);
      expect(steps.spent).toBeLessThan(110_000);
    });

    it('after 200 000 steps for all questions of a decision', () => {
      const steps = new Steps(10_000_000);
      const voters = new Voters(() => users, [approval(users[0]!)], outer, steps);
      // Each asks another question, as none can be told from the others.
      for (let time = 0; time < 4; time++) expect(voters.isReachable(exact)).toBe(false);
      expect(voters.contributors(exact)).toEqual([]);
      expect(steps.spent).toBeGreaterThan(190_000);
      expect(steps.spent).toBeLessThan(210_000);
    });
  });

  const tags = fc.constantFrom("'t1'", "'t2'");
  const ids = fc.subarray(["'a'", "'b'", "'c'", "'d'", "'e'", "'f'"], { minLength: 1, maxLength: 3 });
  const approverPredicates = fc.oneof(
    tags.map((tag) => `u.tags.contains(${tag})`),
    ids.map((list) => `u.id in [${list.join()}]`),
    ids.map(([id]) => `u.id != ${id}`),
    fc.constantFrom("u.email == 'b@x'", '[7, 8][u.tags.count()] == 7', 'u.tags.count() == 1'),
  );
  const credentialPredicates = fc.oneof(
    fc.constantFrom(`u.type == '${passkey}'`, `u.type == '${apiKey}'`, "u.credential_id == 'passkey b'"),
    ids.map((list) => `u.user_id in [${list.join()}]`),
    ids.map(([id]) => `u.id == ${id!.replace(/'$/, "1'")}`),
  );
  const sources = fc
    .oneof(
      fc.tuple(fc.constant('approvers'), approverPredicates, approverPredicates),
      fc.tuple(fc.constant('credentials'), credentialPredicates, credentialPredicates),
    )
    .chain(([list, filter, predicate]) =>
      fc.constantFrom({ list, predicate }, { list: `${list}.filter(u, ${filter})`, predicate }),
    );
  const monotoneAtoms = sources.chain(({ list, predicate }) =>
    fc.constantFrom(
      `${list}.any(u, ${predicate})`,
      `${list}.count() >= 1`,
      `${list}.count() > 1`,
      `3 <= ${list}.count()`,
    ),
  );
  const symmetricAtoms = fc.oneof(
    { weight: 2, arbitrary: monotoneAtoms },
    {
      weight: 2,
      arbitrary: sources.chain(({ list, predicate }) =>
        fc.constantFrom(
          `${list}.all(u, ${predicate})`,
          `${list}.count() == 1`,
          `${list}.count() != 2`,
          `${list}.count() < 3`,
          `${list}.count() in [1, 3]`,
          `${list}.count() == approvers.count()`,
        ),
      ),
    },
  );
  const relationalAtoms = fc.oneof(
    symmetricAtoms,
    fc.constantFrom(
      "['t1', 't2'].all(t, approvers.any(u, u.tags.contains(t)))",
      "approvers.any(u, credentials.any(k, k.user_id == u.id && k.id == 'b1'))",
      'approvers.all(u, approvers.any(v, v.id != u.id && v.tags.count() == u.tags.count()))',
    ),
  );
  const orderedAtoms = fc.oneof(
    symmetricAtoms,
    fc.constantFrom(
      "approvers[0].id == 'b'",
      "approvers[1].tags.contains('t1')",
      "approvers[0..2].any(u, u.id == 'c')",
    ),
    fc.constant(`credentials.filter(k, k.type == '${apiKey}')[0].user_id == 'a'`),
  );
  const formula = (atoms: fc.Arbitrary<string>, withNot: boolean): fc.Arbitrary<string> =>
    fc.letrec<{ formula: string }>((tie) => ({
      formula: fc.oneof(
        { depthSize: 'small' },
        atoms,
        fc
          .tuple(fc.array(tie('formula'), { minLength: 2, maxLength: 3 }), fc.constantFrom(' && ', ' || '))
          .map(([parts, operator]) => parts.map((part) => `(${part})`).join(operator)),
        ...(withNot ? [tie('formula').map((inner) => `!(${inner})`)] : []),
      ),
    })).formula;
  const usersUpTo = (most: number) =>
    fc
      .array(
        fc.record({
          tags: fc.subarray(['t1', 't2']),
          types: fc.constantFrom([apiKey], [apiKey], [passkey], [apiKey, passkey], []),
          hasEmail: fc.boolean(),
        }),
        { minLength: 1, maxLength: most },
      )
      .map((specs) =>
        specs.map(({ tags: of, types, hasEmail }, index) => {
          const id = 'abcdef'[index]!;
          return user(id, of, [...types], hasEmail ? `${id}@x` : undefined);
        }),
      );
  const situations = (most: number) =>
    usersUpTo(most).chain((users) =>
      fc.record({
        users: fc.constant(users),
        cast: fc
          .tuple(fc.shuffledSubarray(users), fc.nat(1))
          .map(([voters, choice]) =>
            voters
              .filter(({ credentials }) => credentials.length > 0)
              .map((one) => approval(one, Math.min(choice, one.credentials.length - 1))),
          ),
      }),
    );

  it.each([
    ['monotone', formula(monotoneAtoms, false), 6, 400, false],
    ['symmetric', formula(symmetricAtoms, true), 6, 600, false],
    ['relational', formula(relationalAtoms, true), 5, 300, false],
    ['ordered', formula(orderedAtoms, true), 4, 200, true],
  ])('of %s expressions is what trying everything says', (_kind, texts, most, numRuns, isOrdered) => {
    let reachable = 0;
    let contributing = 0;
    let questions = 0;
    fc.assert(
      fc.property(texts, situations(most), (text, { users, cast }) => {
        const expression = consensus(text);
        // Each question has the budget of a decision of its own.
        const asked = () => new Voters(() => users, cast, outer, new Steps(Infinity));
        const reference = new Reference(expression, users, cast, isOrdered);
        const isReachable = reference.isReachable();
        expect(asked().isReachable(expression)).toBe(isReachable);
        const expected = users.filter(({ userId }) => reference.contributes(userId)).map(({ userId }) => userId);
        expect(asked().contributors(expression)).toEqual(expected);
        expect(
          users.filter(({ userId }) => asked().contributes(expression, userId)).map(({ userId }) => userId),
        ).toEqual(expected);
        reachable += Number(isReachable);
        contributing += Number(expected.length > 0 && expected.length < users.length);
        questions += 1;
      }),
      { numRuns },
    );
    // The comparison means something only if both answers occur often.
    expect(reachable).toBeGreaterThan(questions / 8);
    expect(reachable).toBeLessThan((questions * 7) / 8);
    expect(contributing).toBeGreaterThan(questions / 20);
  });
});

describe('a question that is asked again', () => {
  const users = Array.from({ length: 30 }, (_, at) => user(`u${at}`, at % 3 === 0 ? ['third'] : []));
  const expression = consensus(
    "approvers.count() >= 2 && requester.id == 'u0' && approvers.any(u, u.tags.contains('third'))",
  );

  it('takes as many steps as before, and looks for nothing again', () => {
    let looked = 0;
    const counting: Scope = { now: 0, value: () => ((looked += 1), { id: 'u0', tags: [], email: '', alias: '' }) };
    const steps = new Steps(Infinity);
    const voters = new Voters(() => users, [approval(users[1]!)], counting, steps);
    const asked = [
      () => voters.isReachable(expression),
      () => voters.contributes(expression, 'u2'),
      () => voters.contributors(expression),
    ];
    for (const ask of asked) {
      // The first time, voters are told apart.
      ask();
      const { spent } = steps;
      const answer = ask();
      const each = steps.spent - spent;
      const [before, sofar] = [looked, steps.spent];
      expect(ask()).toEqual(answer);
      expect([looked - before, steps.spent - sofar]).toEqual([0, each]);
      expect(each).toBeGreaterThan(0);
    }
    expect(looked).toBeGreaterThan(10);
  });

  it('has no answer once there are no steps for it', () => {
    const scope: Scope = { now: 0, value: () => ({ id: 'u0', tags: [], email: '', alias: '' }) };
    const steps = new Steps(3_000);
    const voters = new Voters(() => users, [approval(users[1]!)], scope, steps);
    const answers = Array.from({ length: 1_000 }, () => [voters.isReachable(expression), steps.isSpent]);
    expect(answers[0]).toEqual([true, false]);
    expect(
      answers
        .slice(
          0,
          answers.findIndex(([is]) => !is),
        )
        .every(([is, isSpent]) => is && !isSpent),
    ).toBe(true);
    expect(answers.at(-1)).toEqual([false, true]);
  });
});
