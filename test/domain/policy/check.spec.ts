import { CoordinatorError } from '../../../src/domain/errors.js';
import {
  checkExpression,
  checkPolicyText,
  ClausesRead,
  compileClause,
  parsePolicy,
  readClause,
} from '../../../src/domain/policy/language.js';
import { policyEnvironment } from '../../../src/domain/policy/namespaces.js';
import type { Clause } from '../../../src/domain/policy/types.js';
import { Steps, weights } from '../../../src/domain/steps.js';
import { environment } from './environment.js';

const maxInt = 2n ** 127n - 1n;

function refusal(text: string, clause: Clause): string {
  try {
    checkPolicyText(text, clause, environment);
  } catch (error) {
    if (error instanceof CoordinatorError) return error.message;
    throw error;
  }
  throw new Error(`\`${text}\` was taken`);
}

describe('checking the types of a policy', () => {
  it.each<[Clause, string]>([
    ['condition', "activity.resource == 'WALLET' && activity.action in ['CREATE', 'UPDATE']"],
    ['condition', 'wallet.imported'],
    ['condition', 'wallet.imported == false && !wallet.imported && wallet.imported != (1 < 2)'],
    ['condition', "eth.tx.data[0..10] == '0xa9059cbb' && eth.tx.data[0] == '0'"],
    ['condition', "eth.tx.args['wad'] < 1000000000000000000 && eth.tx.nested['a']['b'] == 'c'"],
    ['condition', "activity.params.user_ids.count() == 1 && 'u' in activity.params.user_ids"],
    ['condition', "activity.params.user_ids[0..1].all(x, x != 'u')"],
    ['condition', "wallets.filter(w, w.imported).any(w, w.id == 'x')"],
    ['condition', '[1, 2, 3][0] == 1 && [1, 2, 3].contains(2) && [1, 2].filter(x, x > 1).count() == 1'],
    ['condition', `eth.eip_712.chain_id == ${maxInt + 1n}`],
    ['condition', `${maxInt + 1n} > eth.eip_712.chain_id`],
    ['condition', 'eth.eip_712.chain_id in [1, 137] && [1, 137].contains(eth.eip_712.chain_id)'],
    ['condition', `eth.eip_712.chain_id in [1, ${maxInt + 1n}]`],
    ['condition', `[[1], [2]].any(x, 1 in x) && [1, ${maxInt + 1n}][0] == 1`],
    ['condition', 'wallets.any(wallet, wallet.imported)'],
    ['consensus', "approvers.any(user, user.id == 'a' && user.tags.contains('t') && user.alias != user.email)"],
    ['consensus', "credentials.any(c, c.type == 'CREDENTIAL_TYPE_WEBAUTHN_AUTHENTICATOR' && c.user_id == 'a')"],
    ['consensus', 'approvers.count() >= 2 || approvers.count() == 0 || approvers.count() in [1, 3]'],
    [
      'consensus',
      '1 <= approvers.count() && 0 < approvers.count() && 0 != approvers.count() || 0 >= approvers.count()',
    ],
    ['consensus', 'approvers.any(user, user.id != requester.id) && requester.tags.count() >= 1'],
    ['condition', "requester.email == 'a@x' || requester.alias == 'b'"],
    ['consensus', "['a', 'b'].all(tag, approvers.any(user, tag in user.tags))"],
    ['consensus', 'true'],
    ['time', "time.now >= Timestamp('2026-03-01T00:00:00Z') && CronSpan('0 9 * * 1-5', '8h', 'America/New_York')"],
    ['time', "!CronSpan('0 9 * * *', '1m', 'UTC') || time.now in [Timestamp('2026-03-01T00:00:00Z')]"],
  ])('takes the %s %s', (clause, text) => {
    expect(() => {
      checkPolicyText(text, clause, environment);
    }).not.toThrow();
  });

  it.each<[Clause, string, string]>([
    ['condition', '', 'the expression is empty: leave the clause out to restrict nothing (line 1, column 1)'],
    ['condition', 'activity.params.nope == 1', 'field does not exist: activity.params.nope (line 1, column 17)'],
    ['condition', 'nope.x', 'field does not exist: nope (line 1, column 1)'],
    ['condition', 'ethh.tx.value == 1', 'field does not exist: ethh: did you mean `eth`? (line 1, column 1)'],
    ['condition', 'eth.tx.valu == 1', 'field does not exist: eth.tx.valu: did you mean `value`? (line 1, column 8)'],
    [
      'condition',
      'wallets.any(item, itme.imported)',
      'field does not exist: itme: did you mean `item`? (line 1, column 19)',
    ],
    // It is meant, and not there in this clause.
    ['condition', 'aprovers.count() > 1', 'field does not exist: aprovers (line 1, column 1)'],
    ['condition', 'wallet.toString == 1', 'field does not exist: wallet.toString (line 1, column 8)'],
    ['condition', "wallets[0].nope == 'x'", 'field does not exist: wallets[0].nope (line 1, column 12)'],
    ['condition', 'wallets.any(w, w.nope)', 'field does not exist: w.nope (line 1, column 18)'],
    ['condition', 'wallets.filter(w, w.imported).nope', 'field does not exist: (…).nope (line 1, column 31)'],
    ['condition', "activity.type.length == 'x'", 'field does not exist: activity.type.length (line 1, column 15)'],
    [
      'condition',
      'eth.tx.args.wad < 1',
      "field does not exist: eth.tx.args.wad: an entry of a map is read as `['wad']` (line 1, column 13)",
    ],
    [
      'condition',
      'approvers.count() > 1',
      'field does not exist: approvers: a condition has none, only a consensus has (line 1, column 1)',
    ],
    [
      'condition',
      "time.now > Timestamp('2026-03-01T00:00:00Z')",
      'field does not exist: time: a condition has none, only a time has (line 1, column 1)',
    ],
    [
      'consensus',
      "activity.type == 'x'",
      'field does not exist: activity: a consensus has none, only a condition has (line 1, column 1)',
    ],
    [
      'time',
      'approvers.count() > 1',
      'field does not exist: approvers: a time has none, only a consensus has (line 1, column 1)',
    ],
    ['condition', 'user', 'field does not exist: user (line 1, column 1)'],
    ['condition', 'wallets.any(w, w.imported) && w.imported', 'field does not exist: w (line 1, column 31)'],
    ['condition', 'activity.type', 'the whole expression must be bool, it is string (line 1, column 10)'],
    ['condition', 'wallet', 'the whole expression must be bool, it is Wallet (line 1, column 1)'],
    [
      'condition',
      'wallets.filter(w, w.imported)',
      'the whole expression must be bool, it is list<Wallet> (line 1, column 9)',
    ],
    ['condition', 'activity.type == 1', '`==` cannot compare string with int (line 1, column 15)'],
    ['condition', "activity.type < 'x'", '`<` cannot compare string with string (line 1, column 15)'],
    ['condition', 'wallet.imported < true', '`<` cannot compare bool with bool (line 1, column 17)'],
    ['condition', 'wallet == wallet', '`==` cannot compare Wallet with Wallet (line 1, column 8)'],
    ['condition', '[1] == [1]', '`==` cannot compare list<int> with list<int> (line 1, column 5)'],
    ['condition', 'eth.eip_712.chain_id == eth.tx.value', '`==` cannot compare uint with int (line 1, column 22)'],
    ['condition', `eth.tx.value < ${maxInt + 1n}`, '`<` cannot compare int with uint (line 1, column 14)'],
    ['condition', `eth.tx.value in [1, ${maxInt + 1n}]`, 'int cannot be in list<uint> (line 1, column 14)'],
    ['condition', '1 && true', 'an operand of `&&` must be bool, it is int (line 1, column 1)'],
    ['condition', "true || 'x'", 'an operand of `||` must be bool, it is string (line 1, column 9)'],
    ['condition', '!1', 'the operand of `!` must be bool, it is int (line 1, column 2)'],
    [
      'condition',
      'activity.type in activity.kind',
      'the right side of `in` must be a list, it is string (line 1, column 15)',
    ],
    ['condition', "1 in ['a']", 'int cannot be in list<string> (line 1, column 3)'],
    ['condition', 'wallet in wallets', 'Wallet cannot be in list<Wallet> (line 1, column 8)'],
    ['condition', "['a'].contains(1)", 'int cannot be in list<string> (line 1, column 7)'],
    ['condition', "[1, 'a'].count() > 1", 'a list has elements of one type: int, not string (line 1, column 5)'],
    ['condition', "'a' in []", 'an empty list has no type: nothing is ever in it (line 1, column 8)'],
    ['condition', 'activity.type.count() > 1', '`count` is a function of lists, this is string (line 1, column 15)'],
    ['condition', 'wallet.any(w, true)', '`any` is a function of lists, this is Wallet (line 1, column 8)'],
    ['condition', 'wallets.any(w, w.id)', 'the predicate of `any` must be bool, it is string (line 1, column 18)'],
    [
      'condition',
      'wallets.any(w, wallets.any(w, true))',
      'the variable `w` has a meaning here already: choose another name (line 1, column 24)',
    ],
    ['condition', "wallets['x'].imported", 'the index of a list must be int, it is string (line 1, column 9)'],
    ['condition', 'eth.tx.args[0] == 1', 'the key of a map must be string, it is int (line 1, column 13)'],
    ['condition', "activity.type['x'] == 'x'", 'the index of a string must be int, it is string (line 1, column 15)'],
    [
      'condition',
      "wallet['id'] == 'x'",
      'only lists, strings and maps can be indexed, this is Wallet (line 1, column 7)',
    ],
    ['condition', "activity.type['a'..2] == 'x'", 'the start of a slice must be int, it is string (line 1, column 15)'],
    ['condition', "activity.type[1..'a'] == 'x'", 'the end of a slice must be int, it is string (line 1, column 18)'],
    [
      'condition',
      `activity.type[0..${maxInt + 1n}] == 'x'`,
      'the end of a slice must be int, it is uint (line 1, column 18)',
    ],
    [
      'condition',
      'eth.tx.args[0..1].count() > 1',
      'only lists and strings can be sliced, this is map<int> (line 1, column 12)',
    ],
    [
      'consensus',
      'approvers.count() >= 0',
      '`>=` with a count and 0 is always true: compare with at least 1 (line 1, column 19)',
    ],
    [
      'consensus',
      '0 <= approvers.count()',
      '`<=` with a count and 0 is always true: compare with at least 1 (line 1, column 3)',
    ],
    [
      'consensus',
      "approvers.filter(u, u.id == 'a').count() >= 0",
      '`>=` with a count and 0 is always true: compare with at least 1 (line 1, column 42)',
    ],
    [
      'consensus',
      'approvers.count() < 0',
      '`<` with a count and 0 is never true: compare with at least 1 (line 1, column 19)',
    ],
    [
      'condition',
      '0 > wallets.count()',
      '`>` with a count and 0 is never true: compare with at least 1 (line 1, column 3)',
    ],
    [
      'condition',
      "CronSpan('0 9 * * *', '1h', 'UTC')",
      '`CronSpan` can be used in a time clause only (line 1, column 1)',
    ],
    [
      'time',
      "CronSpan('0 9 * * *', '1h')",
      '`CronSpan` takes three arguments: cron expression, duration, time zone (line 1, column 1)',
    ],
    [
      'time',
      "CronSpan('0 9 * * *', 1, 'UTC')",
      'the arguments of `CronSpan` are strings in single quotes (line 1, column 23)',
    ],
    [
      'time',
      "CronSpan('0 9 * *', '1h', 'UTC')",
      '`0 9 * *` has 4 fields, not the five: minute, hour, day of month, month, day of week (line 1, column 1)',
    ],
    [
      'time',
      'time.now > Timestamp()',
      "`Timestamp` takes one argument, such as '2026-03-01T00:00:00Z' (line 1, column 12)",
    ],
    [
      'time',
      "time.now > Timestamp('2026-02-30T00:00:00Z')",
      '`2026-02-30T00:00:00Z` is no RFC 3339 time with offset zero, such as 2026-03-01T00:00:00Z (line 1, column 12)',
    ],
    ['time', 'time.now > 5', '`>` cannot compare timestamp with int (line 1, column 10)'],
    [
      'time',
      "Timestamp('2026-03-01T00:00:00Z')",
      'the whole expression must be bool, it is timestamp (line 1, column 1)',
    ],
  ])('refuses the %s %j', (clause, text, message) => {
    expect(refusal(text, clause)).toBe(`invalid policy ${clause}: Expression cannot be evaluated: ${message}`);
  });

  it('refuses as an invalid argument', () => {
    expect(() => {
      checkPolicyText('nope', 'consensus', environment);
    }).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT', category: 'REQUEST_INVALID' }) as Error);
  });

  it('lets a variable hide a namespace, so that a new namespace breaks no policy', () => {
    const checked = checkExpression(parsePolicy("wallets.any(eth, eth.id == 'x')"), environment, 'condition');
    expect(checked).toMatchObject({ kind: 'call', each: { body: { left: { of: { kind: 'variable', slot: 0 } } } } });
  });

  it('compiles for the environment it is asked for', () => {
    const other = policyEnvironment({ extra: { kind: 'bool' } });
    expect(() => compileClause('activity.params.extra', 'condition', other)).not.toThrow();
    expect(() => compileClause('activity.params.extra', 'condition', environment)).toThrow('field does not exist');
    expect(() => compileClause('activity.params.extra', 'consensus', other)).toThrow('field does not exist');
    expect(compileClause('activity.params.extra', 'condition', other)).toBe(
      compileClause('activity.params.extra', 'condition', other),
    );
  });

  it('keeps what it compiled, for each tenant up to its share', () => {
    const own = policyEnvironment({});
    const text = "activity.type == 'x'";
    const read = (tenant: string) => readClause(text, 'condition', own, tenant).compiled;
    const first = read('a');
    const other = read('b');
    expect(read('a')).toBe(first);
    const many = (index: number) =>
      `${String(index).padEnd(4)} in [${Array.from({ length: 8_000 }, () => '1').join()}]`;
    for (let index = 0; index < 5; index += 1) readClause(many(index), 'condition', own, 'a');
    expect(read('a')).not.toBe(first);
    expect(read('a')).toEqual(first);
    expect(read('b')).toBe(other);
    // Together they have a bound too, and who used it last keeps it.
    const again = read('a');
    for (let index = 0; index < 30; index += 1) {
      readClause(many(index), 'condition', own, `tenant ${index}`);
      if (index % 10 === 0) expect(read('b')).toBe(other);
    }
    expect(read('b')).toBe(other);
    expect(read('a')).not.toBe(again);
  });

  it('counts what reading takes, whether or not it is remembered', () => {
    const text = "approvers.count() >= 2 && approvers.any(u, u.id == 'x')";
    const taken = () => {
      const [steps, clauses] = [new Steps(), new ClausesRead(environment, 'a')];
      clauses.read(text, 'consensus', steps);
      clauses.read(text, 'consensus', steps);
      expect(clauses.spent).toBe(steps.spent);
      return steps.spent;
    };
    const once = taken();
    expect(once).toBeGreaterThan(text.length * weights.clauseCharacter);
    expect(taken()).toBe(once);
  });

  it('declares no namespace twice', () => {
    const [first] = environment.namespaces.values();
    expect(() => policyEnvironment({}, [first!])).toThrow('namespace `activity` is declared twice');
  });
});
