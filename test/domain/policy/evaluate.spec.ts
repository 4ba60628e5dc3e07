import fc from 'fast-check';
import { evaluate, maxSteps, type Scope } from '../../../src/domain/policy/evaluate.js';
import { compileClause } from '../../../src/domain/policy/language.js';
import { PolicyError, PolicyEvaluationError } from '../../../src/domain/policy/syntax.js';
import type { PolicyValue } from '../../../src/domain/policy/types.js';
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

function run(text: string, given: Scope = scope): PolicyValue {
  return evaluate(compileClause(text, 'condition', environment), given);
}

function failure(text: string, given: Scope = scope): string {
  try {
    run(text, given);
  } catch (error) {
    if (error instanceof PolicyEvaluationError) return error.message;
    throw error;
  }
  throw new Error(`\`${text}\` has a value`);
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
  ])('%s has no value', (text, message) => {
    expect(failure(text)).toEqual(message);
  });

  it('looks at every element and every side, though the answer is known', () => {
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
    const reads = Array.from({ length: 100 }, () => 'wallets[0].imported').join(' || ');
    const wallets = Array.from({ length: 200_000 }, () => ({ id: 'w', imported: true }));
    const many: Scope = { now: 0, value: () => wallets };
    expect(failure(reads, many)).toMatch(`more than ${maxSteps} steps are needed`);
    const listed: Scope = {
      now: 0,
      value: () => ({ params: { user_ids: Array.from({ length: 60_000 }, () => 'u') } }),
    };
    expect(run("'x' in activity.params.user_ids", listed)).toBe(false);
    expect(failure("'x' in activity.params.user_ids || activity.params.user_ids.contains('y')", listed)).toMatch(
      `more than ${maxSteps} steps are needed`,
    );
  });

  it('throws PolicyEvaluationError or gives a bool, whatever the program and the data', () => {
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
        const once = outcome(() => evaluate(compiled, scopeOfAny));
        expect(outcome(() => evaluate(compiled, scopeOfAny))).toBe(once);
      }),
      { numRuns: 2_000 },
    );
  });

  it('is the same as a slow reference that knows no laziness', () => {
    fc.assert(
      fc.property(bools, (program) => {
        expect(outcome(() => run(program.text))).toBe(program.value === undefined ? 'error' : String(program.value));
      }),
      { numRuns: 1_000 },
    );
  });
});

function outcome(evaluation: () => PolicyValue): string {
  try {
    const value = evaluation();
    expect(typeof value).toBe('boolean');
    return value ? 'true' : 'false';
  } catch (error) {
    expect(error).toBeInstanceOf(PolicyEvaluationError);
    return 'error';
  }
}

/** A program with the value it should have; undefined is an error. */
interface Program {
  readonly text: string;
  readonly value: boolean | undefined;
}

const { bools } = fc.letrec<{ bools: Program }>((tie) => ({
  bools: fc.oneof(
    { depthSize: 'medium' },
    fc.boolean().map((value): Program => ({ text: String(value), value })),
    fc.constant<Program>({ text: "private_key.id == 'x'", value: undefined }),
    fc.constantFrom<Program>(
      { text: "wallet.id == 'w1'", value: true },
      { text: "eth.tx.args['wad'] > 7", value: false },
      { text: "eth.tx.args['huge'] > 7", value: undefined },
      { text: "'b' in activity.params.user_ids", value: true },
    ),
    fc
      .tuple(fc.array(tie('bools'), { minLength: 2, maxLength: 4 }), fc.constantFrom('&&', '||'))
      .map(([parts, operator]): Program => {
        const text = parts.map((part) => `(${part.text})`).join(` ${operator} `);
        if (parts.some(({ value }) => value === undefined)) return { text, value: undefined };
        const isTrue = ({ value }: Program) => value === true;
        return { text, value: operator === '&&' ? parts.every(isTrue) : parts.some(isTrue) };
      }),
    tie('bools').map(({ text, value }): Program => ({
      text: `!(${text})`,
      value: value === undefined ? value : !value,
    })),
    fc
      .tuple(
        fc.array(fc.integer({ min: 0, max: 5 }), { minLength: 1, maxLength: 4 }),
        fc.integer({ min: 0, max: 5 }),
        fc.constantFrom('any', 'all'),
        tie('bools'),
      )
      .map(([list, bound, method, extra]): Program => {
        const name = `v${extra.text.length}`;
        const text = `[${list.join()}].${method}(${name}, ${name} < ${bound} && (${extra.text}))`;
        if (extra.value === undefined) return { text, value: undefined };
        const holds = (item: number) => item < bound && extra.value === true;
        return { text, value: method === 'any' ? list.some(holds) : list.every(holds) };
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
