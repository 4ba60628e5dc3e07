import fc from 'fast-check';
import type { Reading, Truth } from '../../../src/domain/policy/doubt.js';
import { evaluate, maxSteps, type Scope } from '../../../src/domain/policy/evaluate.js';
import { compileClause } from '../../../src/domain/policy/language.js';
import { PolicyError } from '../../../src/domain/policy/syntax.js';
import { notApplicable, unreadable, type PolicyValue } from '../../../src/domain/policy/types.js';
import { mainThreadSteps, Meter, MeterSpent, Steps, weights } from '../../../src/domain/steps.js';
import { environment } from './environment.js';

const values: Readonly<Record<string, PolicyValue>> = {
  activity: {
    type: 'ACTIVITY_TYPE_DELETE_USERS',
    kind: 'DELETE_USERS',
    resource: 'USER',
    action: 'DELETE',
    params: { user_ids: ['a', 'b'], otp_length: undefined },
  },
  wallet: { id: 'w1', imported: false },
  wallets: [
    { id: 'w1', imported: false },
    { id: 'w2', imported: true },
  ],
  eth: {
    tx: {
      to: '0xto',
      data: '0xa9059cbb00',
      value: 5n,
      args: { wad: 7n, huge: 2n ** 127n, low: -(2n ** 127n), under: -(2n ** 127n) - 1n },
      nested: { outer: { inner: 'x😀y' } },
      amounts: [1n, 2n ** 127n],
    },
    eip_712: { chain_id: 2n ** 256n - 1n },
  },
};

const scope: Scope = { now: 0, value: (name) => values[name] };

function read(text: string, given: Scope = scope): Reading {
  return evaluate(compileClause(text, 'condition', environment), given);
}

/** The outcome of an expression that is nowhere in doubt. */
function run(text: string, given: Scope = scope): boolean {
  const { truth, doubt } = read(text, given);
  if (doubt) throw new Error(doubt.reason);
  return truth === 'true';
}

/** Why an expression is in doubt. */
function failure(text: string, given: Scope = scope): string {
  const { doubt } = read(text, given);
  if (doubt) return doubt.reason;
  throw new Error(`\`${text}\` is nowhere in doubt`);
}

describe('evaluating a policy', () => {
  it.each([
    ['true && true', true],
    ['true && false && true', false],
    ['false || false || true', true],
    ['false || false', false],
    ['false && true || true', true],
    ['!(true && false)', true],
    ['1 == 1 && 1 != 2 && 1 < 2 && 2 > 1 && 1 <= 1 && 1 >= 1', true],
    ['1 == 2 || 1 != 1 || 2 < 1 || 1 > 2 || 2 <= 1 || 1 >= 2 || 1 < 1 || 1 > 1', false],
    ["'a' == 'a' && 'a' != 'A'", true],
    ['wallet.imported == false', true],
    ["activity.kind in ['DELETE_USERS', 'X'] && 'a' in activity.params.user_ids", true],
    ["activity.kind in ['X'] || 'c' in activity.params.user_ids", false],
    ['[1, 2, 3].contains(2) && [1, 1].all(x, x == 1) && [1, 2].any(x, x == 2)', true],
    ['[1, 2, 3].contains(4) || [1, 2].all(x, x == 1) || [1, 2].any(x, x == 3)', false],
    ['[1, 2, 3].filter(x, x > 1).count() == 2', true],
    ['[1].filter(x, x > 1).all(x, x == 9) && [1].filter(x, x > 1).count() == 0', true],
    ['[1].filter(x, x > 1).any(x, true)', false],
    ['[1, 2, 3][0] == 1 && [1, 2, 3][0..2].count() == 2 && [1, 2][1..1].count() == 0 && [1, 2][0..2][1] == 2', true],
    ["'abc'[0] == 'a' && 'abc'[0..2] == 'ab' && 'abc'[1..1] == '' && 'abc'[0..3] == 'abc'", true],
    ["eth.tx.data[0..10] == '0xa9059cbb'", true],
    ["eth.tx.nested['outer']['inner'][1] == '😀' && eth.tx.nested['outer']['inner'][1..3] == '😀y'", true],
    ["eth.tx.args['wad'] == 7", true],
    [`eth.tx.args['low'] < 0 && eth.eip_712.chain_id == ${2n ** 256n - 1n}`, true],
    ['wallets.any(w, wallets.any(v, v.id == w.id && v.imported != w.imported))', false],
    ['wallets.all(w, [w.id].any(v, v == w.id))', true],
    ["wallets.filter(w, w.imported)[0].id == 'w2'", true],
    ["wallets.any(wallet, wallet.id == 'w2')", true],
  ])('%s is %s', (text, expected) => {
    expect(run(text)).toBe(expected);
  });

  it.each([
    ["private_key.id == 'x'", 'missing field: private_key (line 1, column 1)'],
    ["wallet.id == 'w1' || private_key.id == 'x'", 'missing field: private_key (line 1, column 22)'],
    ["private_key.id == 'x' || wallet.id == 'w1'", 'missing field: private_key (line 1, column 1)'],
    ["false && private_key.id == 'x'", 'missing field: private_key (line 1, column 10)'],
    ["activity.params.hash_function == 'x'", 'missing field: activity.params.hash_function (line 1, column 17)'],
    ['activity.params.otp_length == 1', 'missing field: activity.params.otp_length (line 1, column 17)'],
    ["eth.tx.args['nope'] == 1", "missing field: eth.tx.args['nope'] (line 1, column 12)"],
    ["eth.tx.args['__proto__'] == 1", "missing field: eth.tx.args['__proto__'] (line 1, column 12)"],
    ["eth.tx.args['constructor'] == 1", "missing field: eth.tx.args['constructor'] (line 1, column 12)"],
    ["eth.tx.args['huge'] > 1", "the value of eth.tx.args['huge'] does not fit its type int (line 1, column 12)"],
    ["eth.tx.args['under'] < 1", "the value of eth.tx.args['under'] does not fit its type int (line 1, column 12)"],
    ['eth.tx.amounts.any(x, x == 1)', 'the value of x does not fit its type int (line 1, column 23)'],
    ['eth.tx.amounts[1] == 1', 'the value of eth.tx.amounts[1] does not fit its type int (line 1, column 15)'],
    ['[1, 2][2] == 1', 'no element `2`: there are 2 (line 1, column 7)'],
    [`[1, 2][${2n ** 127n - 1n}] == 1`, expect.stringMatching(/^no element `1\.7.*there are 2/)],
    ["'abc'[3] == 'c'", 'no element `3`: there are 3 (line 1, column 6)'],
    ["'abc'[0..4] == 'c'", 'no slice `0..4`: there are 3 elements (line 1, column 6)'],
    ["'abc'[2..1] == 'c'", 'no slice `2..1`: there are 3 elements (line 1, column 6)'],
    ['[1, 2][1..3].count() == 1', 'no slice `1..3`: there are 2 elements (line 1, column 7)'],
    ['[1, 2].any(x, x == 1 && [1][x] == 1)', 'no element `1`: there are 1 (line 1, column 28)'],
    ['[0, 1].any(x, [5][x] == 5)', 'no element `1`: there are 1 (line 1, column 18)'],
    ['[1, 0].all(x, [5][x] == 6)', 'no element `1`: there are 1 (line 1, column 18)'],
  ])('%s is in doubt', (text, message) => {
    expect(failure(text)).toEqual(message);
  });

  it.each([
    ["wallet.imported || wallet.label == 'x'", 'missing field: wallet.imported (line 1, column 8)'],
    ["wallet.label == 'x' && wallet.imported", 'missing field: wallet.label (line 1, column 8)'],
  ])('%s names the first value that no such request has', (text, reason) => {
    const given: Scope = { now: 0, value: () => ({ imported: notApplicable, label: notApplicable }) };
    expect(read(text, given).doubt).toMatchObject({ kind: 'not-applicable', reason });
  });

  it('evaluates every element and every side, even if the result is known', () => {
    const seen: string[] = [];
    const watching: Scope = {
      now: 0,
      value: (name) => {
        seen.push(name);
        return values[name];
      },
    };
    expect(run("wallet.id == 'no' && eth.tx.to == 'no'", watching)).toBe(false);
    expect(run("eth.tx.to == '0xto' || wallet.id == 'w1'", watching)).toBe(true);
    expect(seen).toEqual(['wallet', 'eth', 'eth', 'wallet']);
  });

  it('does not trust a namespace to keep to its declaration', () => {
    const lying: Scope = { now: 0, value: () => 'text' };
    expect(failure("wallet.id == 'x'", lying)).toBe(
      'the value of wallet does not fit its type record (line 1, column 1)',
    );
    expect(failure('wallets.count() == 1', lying)).toBe(
      'the value of wallets does not fit its type list (line 1, column 1)',
    );
    const inside: Scope = { now: 0, value: () => ({ id: ['x'], imported: 1n }) };
    expect(failure("wallet.id == 'x'", inside)).toBe(
      'the value of wallet.id does not fit its type string (line 1, column 8)',
    );
    expect(failure('wallet.imported', inside)).toBe(
      'the value of wallet.imported does not fit its type bool (line 1, column 8)',
    );
  });

  it('bounds the work', () => {
    const long: Scope = { now: 0, value: () => Array.from({ length: 400 }, () => ({ id: 'w', imported: true })) };
    const text = 'wallets.all(a, wallets.any(b, a.id == b.id))';
    expect(failure(text, long)).toMatch(`more than ${maxSteps} steps are needed`);
    const large: Scope = { now: 0, value: () => ({ tx: { data: 'é'.repeat(2_000_000) } }) };
    const slices = Array.from({ length: 100 }, () => "eth.tx.data[0..1] == 'x'").join(' || ');
    expect(failure(slices, large)).toMatch(`more than ${maxSteps} steps are needed`);
    const listed: Scope = {
      now: 0,
      value: () => ({ params: { user_ids: Array.from({ length: 60_000 }, () => 'u') } }),
    };
    expect(run("'x' in activity.params.user_ids", listed)).toBe(false);
    expect(failure("'x' in activity.params.user_ids || activity.params.user_ids.contains('y')", listed)).toMatch(
      `more than ${maxSteps} steps are needed`,
    );
  });

  it('takes from every budget what it takes from its own, and ends where the least of them does', () => {
    const clause = compileClause("wallet.id == 'w1' || wallets.any(w, w.imported)", 'condition', environment);
    const alone = new Steps(Infinity);
    evaluate(clause, scope, alone);
    expect(alone.spent).toBeGreaterThan(10);
    const meter = new Meter();
    const decision = meter.decision();
    evaluate(clause, scope, decision);
    expect([decision.spent, meter.spent]).toEqual([alone.spent, alone.spent]);

    const spent = new Meter();
    spent.note(mainThreadSteps - 5);
    expect(() => evaluate(clause, scope, spent.decision())).toThrow(MeterSpent);
    const few = new Steps(5);
    expect(evaluate(clause, scope, few.upTo(1_000)).doubt?.reason).toMatch('more than 5 steps are needed');
    // With what was refused: comparing two characters.
    expect(few.spent).toBe(5 + 2 * weights.characterCompared);
  });

  it('counts with what a value takes that it asks for', () => {
    const steps = new Steps(10);
    const counting: Scope = {
      now: 0,
      value: (name) => {
        steps.take('policyNode', 7);
        return values[name];
      },
    };
    const clause = compileClause("wallet.id == 'w1'", 'condition', environment);
    expect(evaluate(clause, counting, steps).doubt?.reason).toMatch('more than 10 steps are needed');
    expect(steps.spent).toBe(11);
  });

  it('counts the elements of a list whose type is known only when read', () => {
    const text = "7 in eth.tx.anything['list']";
    const given = (length: number): Scope => ({
      now: 0,
      value: () => ({ tx: { anything: { list: Array.from({ length }, () => 1n) } } }),
    });
    expect(run(text, given(1_000))).toBe(false);
    expect(failure(`${text} || ${text}`, given(60_000))).toMatch(`more than ${maxSteps} steps are needed`);
  });

  it('has one of four outcomes, and always the same, whatever the program and the data', () => {
    fc.assert(
      fc.property(programs, data, (text, given) => {
        const scopeOfAny: Scope = { now: 0, value: (name) => (Object.hasOwn(given, name) ? given[name] : undefined) };
        let compiled;
        try {
          compiled = compileClause(text, 'condition', environment);
        } catch (error) {
          expect(error).toBeInstanceOf(PolicyError);
          return;
        }
        const once = evaluate(compiled, scopeOfAny);
        expect(['true', 'false', 'unreadable', 'not-applicable']).toContain(once.truth);
        if (once.truth === 'unreadable' || once.truth === 'not-applicable') expect(once.doubt).toBeDefined();
        expect(evaluate(compiled, scopeOfAny)).toEqual(once);
      }),
      { numRuns: 2_000 },
    );
  });

  it('is the same as the tables of outcomes, and so is the program with its operands in another order', () => {
    const seen = new Set<Truth>();
    fc.assert(
      fc.property(bools, ({ text, mirrored, truth, isInDoubt }) => {
        for (const one of [text, mirrored]) {
          const reading = read(one);
          expect([one, reading.truth, reading.doubt !== undefined]).toEqual([one, truth, isInDoubt]);
        }
        seen.add(truth);
      }),
      { numRuns: 2_000 },
    );
    expect(seen.size).toBe(4);
  });
});

const outcomes = { T: 'true', F: 'false', U: 'unreadable', N: 'not-applicable' } as const;
type Letter = keyof typeof outcomes;

/** Security rule R1 as data: the first row that an operand matches decides. */
const tables: Readonly<Record<'&&' | '||', readonly Letter[]>> = {
  '&&': ['F', 'N', 'U', 'T'],
  '||': ['T', 'U', 'N', 'F'],
};

const letters = ['T', 'F', 'U', 'N'] as const;
const texts: Readonly<Record<Letter, string>> = {
  T: "wallet.id == 'w1'",
  F: "wallet.id == 'w2'",
  U: "wallet.label == 'x'",
  N: "private_key.id == 'x'",
};

function joined(operator: '&&' | '||', operands: readonly Letter[]): Letter {
  return tables[operator].find((letter) => operands.includes(letter))!;
}

const negated: Readonly<Record<Letter, Letter>> = { T: 'F', F: 'T', U: 'U', N: 'N' };

/** What the elements of `wallets` are made of, so that a body says each of the four. */
const element = (letter: Letter): PolicyValue =>
  letter === 'T' || letter === 'F'
    ? { imported: letter === 'T' }
    : { imported: letter === 'U' ? unreadable('for this test') : notApplicable };

describe('the four outcomes', () => {
  const pairs = letters.flatMap((left) => letters.map((right) => [left, right] as const));

  it.each(pairs)('%s and %s, joined', (left, right) => {
    for (const operator of ['&&', '||'] as const) {
      const { truth, doubt } = read(`${texts[left]} ${operator} ${texts[right]}`);
      expect([operator, truth]).toEqual([operator, outcomes[joined(operator, [left, right])]]);
      // What an ALLOW asks for: that nothing in the text is in doubt.
      const isInDoubt = [left, right].some((letter) => letter === 'U' || letter === 'N');
      expect(doubt !== undefined).toBe(isInDoubt);
      if (isInDoubt) expect(doubt!.kind).toBe([left, right].includes('U') ? 'unreadable' : 'not-applicable');
    }
  });

  it.each(letters)('%s, negated', (letter) => {
    expect(read(`!(${texts[letter]})`).truth).toBe(outcomes[negated[letter]]);
  });

  it.each(pairs)('%s and %s, as elements of a list', (left, right) => {
    const given: Scope = { now: 0, value: () => [element(left), element(right)] };
    const truthOf = (text: string) => read(text, given).truth;
    expect(truthOf('wallets.any(w, w.imported)')).toBe(outcomes[joined('||', [left, right])]);
    expect(truthOf('wallets.all(w, w.imported)')).toBe(outcomes[joined('&&', [left, right])]);
    const doubt = [left, right].includes('U') ? 'U' : [left, right].includes('N') ? 'N' : undefined;
    const kept = [left, right].filter((letter) => letter === 'T').length;
    const counted = truthOf(`wallets.filter(w, w.imported).count() == ${kept}`);
    expect(counted).toBe(doubt ? outcomes[doubt] : 'true');
    expect(truthOf('true in [wallets[0].imported, wallets[1].imported]')).toBe(outcomes[joined('||', [left, right])]);
  });

  it.each(pairs)('%s and %s, as operands of a comparison, a function and an index', (left, right) => {
    const doubt = [left, right].includes('U') ? 'U' : [left, right].includes('N') ? 'N' : undefined;
    const given: Scope = {
      now: 0,
      value: (name) =>
        name === 'eth'
          ? {
              tx: {
                to: { T: 'a', F: 'b', U: unreadable('for this test'), N: notApplicable }[left],
                data: { T: 'a', F: 'b', U: unreadable('for this test'), N: notApplicable }[right],
                args: left === 'U' ? unreadable('for this test') : left === 'N' ? notApplicable : { a: 1n, b: 2n },
                nested: notApplicable,
              },
            }
          : undefined,
    };
    const truths = ['eth.tx.to == eth.tx.data', 'eth.tx.to != eth.tx.data', 'eth.tx.args[eth.tx.data] < 9'].map(
      (text) => read(text, given).truth,
    );
    const isSame = left === right;
    expect(truths).toEqual(
      doubt ? [outcomes[doubt], outcomes[doubt], outcomes[doubt]] : [String(isSame), String(!isSame), 'true'],
    );
  });

  it.each<[string, PolicyValue, string, Truth]>([
    ['a root that the request has not', {}, "private_key.id == 'k'", 'not-applicable'],
    ['a root that cannot be read', { private_key: unreadable('gone') }, "private_key.id == 'k'", 'unreadable'],
    ['a member that is absent', { wallet: {} }, 'wallet.imported', 'unreadable'],
    ['a member of the wrong type', { wallet: { imported: 'yes' } }, 'wallet.imported', 'unreadable'],
    ['a list that cannot be read', { wallets: unreadable('gone') }, 'wallets.any(w, true)', 'unreadable'],
    ['a list that cannot be read, counted', { wallets: unreadable('gone') }, 'wallets.count() == 0', 'unreadable'],
    ['an element that cannot be read', { wallets: [unreadable('gone')] }, "wallets.any(w, w.id == 'x')", 'unreadable'],
    [
      'an element beside one that decides',
      { wallets: [{ id: 'x' }, unreadable('gone')] },
      "wallets.any(w, w.id == 'x')",
      'true',
    ],
    ['an index beyond the list', { wallets: [] }, "wallets[0].id == 'x'", 'unreadable'],
    [
      'an amount beyond the type, compared',
      { eth: { tx: { value: 2n ** 127n } } },
      'eth.tx.value > 1000',
      'unreadable',
    ],
    [
      'a list of users with one that is no text',
      { activity: { params: { user_ids: [1n] } } },
      "'a' in activity.params.user_ids",
      'unreadable',
    ],
  ])('come out for %s', (_name, given, text, truth) => {
    const values = given as Readonly<Record<string, PolicyValue>>;
    expect(read(text, { now: 0, value: (name) => values[name] }).truth).toBe(truth);
  });
});

/** A program with the outcome it should have; `mirrored` is the same with all operands the other way round. */
interface Program {
  readonly text: string;
  readonly mirrored: string;
  readonly truth: Truth;
  readonly isInDoubt: boolean;
}

const letterOf = ({ truth }: Program): Letter => letters.find((letter) => outcomes[letter] === truth)!;

const atom = (text: string, letter: Letter): Program => ({
  text,
  mirrored: text,
  truth: outcomes[letter],
  isInDoubt: letter === 'U' || letter === 'N',
});

const { bools } = fc.letrec<{ bools: Program }>((tie) => ({
  bools: fc.oneof(
    { depthSize: 'medium' },
    fc.constantFrom(...letters).map((letter) => atom(texts[letter], letter)),
    fc.constantFrom(
      atom('true', 'T'),
      atom("eth.tx.args['wad'] > 7", 'F'),
      atom("eth.tx.args['huge'] > 7", 'U'),
      atom("'b' in activity.params.user_ids", 'T'),
    ),
    fc
      .tuple(fc.array(tie('bools'), { minLength: 2, maxLength: 4 }), fc.constantFrom('&&' as const, '||' as const))
      .map(([parts, operator]): Program => {
        const text = parts.map((part) => `(${part.text})`).join(` ${operator} `);
        const mirrored = parts
          .map((part) => `(${part.mirrored})`)
          .toReversed()
          .join(` ${operator} `);
        const truth = outcomes[joined(operator, parts.map(letterOf))];
        return { text, mirrored, truth, isInDoubt: parts.some(({ isInDoubt }) => isInDoubt) };
      }),
    tie('bools').map((program): Program => ({
      text: `!(${program.text})`,
      mirrored: `!(${program.mirrored})`,
      truth: outcomes[negated[letterOf(program)]],
      isInDoubt: program.isInDoubt,
    })),
    fc
      .tuple(
        fc.array(fc.integer({ min: 0, max: 5 }), { minLength: 1, maxLength: 4 }),
        fc.integer({ min: 0, max: 5 }),
        fc.constantFrom('any' as const, 'all' as const),
        tie('bools'),
      )
      .map(([list, bound, method, extra]): Program => {
        const name = `v${extra.text.length}`;
        const bodies = list.map((item): Letter => joined('&&', [item < bound ? 'T' : 'F', letterOf(extra)]));
        return {
          text: `[${list.join()}].${method}(${name}, ${name} < ${bound} && (${extra.text}))`,
          mirrored: `[${list.toReversed().join()}].${method}(${name}, (${extra.mirrored}) && ${name} < ${bound})`,
          truth: outcomes[joined(method === 'any' ? '||' : '&&', bodies)],
          isInDoubt: extra.isInDoubt,
        };
      }),
  ),
}));

const atoms = fc.constantFrom(
  "wallet.id == 'x'",
  'wallet.imported',
  "wallets.any(w, w.id == 'x')",
  'wallets[0].imported',
  'wallets.filter(w, w.imported).count() > 1',
  "eth.tx.args['wad'] < 5",
  "eth.tx.nested['a']['b'] == 'c'",
  "eth.tx.data[0..2] == '0x'",
  'eth.tx.amounts[1] == 2',
  "'a' in activity.params.user_ids",
  'eth.eip_712.chain_id == 1',
  'nope',
);
const programs = fc
  .array(fc.tuple(atoms, fc.constantFrom(' && ', ' || ', ' == ', ' && !')), { minLength: 1, maxLength: 6 })
  .map((parts) => parts.flat().slice(0, -1).join(''));
const anyValue: fc.Arbitrary<PolicyValue> = fc.letrec<{ value: PolicyValue }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.boolean(),
    fc.bigInt(),
    fc.string({ unit: 'grapheme' }),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom('id', 'imported', 'wad', 'tx', 'args', 'data', 'nested', 'a', 'b'), tie('value')),
  ),
})).value;
const data = fc.dictionary(fc.constantFrom('wallet', 'wallets', 'eth', 'activity'), anyValue);
