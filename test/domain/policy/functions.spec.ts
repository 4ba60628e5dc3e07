import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { emptyOrganization, evolve } from '../../../src/domain/organization/organization.js';
import { Voters } from '../../../src/domain/policy/consensus.js';
import type { ApprovalsReader, Place, Summary } from '../../../src/domain/policy/consensus-analysis.js';
import { evaluate, type Evaluation } from '../../../src/domain/policy/evaluate.js';
import { FunctionCall, type PolicyFunction, type Predicate } from '../../../src/domain/policy/functions/function.js';
import { policyFunctions } from '../../../src/domain/policy/functions/table.js';
import { checkKnownLiterals } from '../../../src/domain/policy/known-literals.js';
import { checkPolicyText, compileClause } from '../../../src/domain/policy/language.js';
import { policyEnvironment } from '../../../src/domain/policy/namespaces.js';
import type { CheckedExpression, Position } from '../../../src/domain/policy/syntax.js';
import { Doubt, type PolicyUser, type PolicyValue } from '../../../src/domain/policy/types.js';
import { tooCostly, type Reckoning } from '../../../src/domain/policy/worst-case.js';
import { anOrganization } from '../../activities/facts.js';
import { id } from '../../activities/given.js';

/** An entry as a contributor would write it: whether a predicate is true of no element. */
const none: PolicyFunction = {
  name: 'none',
  form: 'list.f(v, p)',
  check: (given, at, checking) => {
    const of = checking.listOf(given.of, 'none', at);
    return new None({ of, ...checking.predicateOf(of, given, 'none', at) }, at);
  },
};

const noElement: Summary = { letter: 't', neutral: false, of: (elements) => elements === 0 };

class None extends FunctionCall {
  readonly parts: readonly CheckedExpression[];
  readonly schedules = 0;
  readonly holds = 1;
  readonly isFilter = false;
  readonly seeks = undefined;
  readonly isCount = false;
  readonly meaning = { kind: 'other' } as const;

  constructor(
    readonly each: { readonly of: CheckedExpression } & Predicate,
    at: Position,
  ) {
    super({ kind: 'bool' }, at);
    this.parts = [each.of, each.body];
  }

  override evaluate(evaluation: Evaluation): PolicyValue {
    const list = evaluation.list(this.each.of);
    if (list instanceof Doubt) return list;
    const outcomes = list.map((element) => {
      evaluation.variables[this.each.slot] = element;
      return evaluation.outcome(this.each.body);
    });
    if (outcomes.includes(true)) return false;
    return outcomes.find((outcome) => outcome instanceof Doubt) ?? true;
  }

  override worstSteps(reckoning: Reckoning): number {
    const { of, body } = this.each;
    return reckoning.steps(of) + reckoning.elements(of) * reckoning.steps(body);
  }

  override readApprovals(reader: ApprovalsReader, place: Place): void {
    const { of, body, slot } = this.each;
    const source = reader.sourceOf(of);
    if (source) reader.term({ node: this, ...source, each: { body, slot }, summary: noElement }, place);
    else this.parts.forEach((part) => reader.visit(part, place));
  }
}

const environment = { ...policyEnvironment({}), functions: [...policyFunctions, none] };
const consensus = (text: string) => compileClause(text, 'consensus', environment);

describe('a function of the policy language', () => {
  it('is known by its entry alone to the parser, the checker and the evaluation', () => {
    const text = "['a', 'b'].none(x, x == 'c') && !['a', 'b'].none(x, x == 'b')";
    expect(evaluate(consensus(text), { now: 0, value: () => undefined }).truth).toBe('true');
    expect(() => {
      checkPolicyText("'a'.none(x, true)", 'consensus', environment);
    }).toThrow('`none` is a function of lists, this is string (line 1, column 5)');
    expect(() => {
      checkPolicyText("['a'].some(x, true)", 'consensus', environment);
    }).toThrow('unknown function `some`: there are all, any, contains, count, filter and none (line 1, column 7)');
  });

  it('is reckoned with by its entry alone, when a policy is written', () => {
    const within = (depth: number): string =>
      depth === 0 ? 'true' : `approvers.none(u${depth}, ${within(depth - 1)})`;
    expect(tooCostly(consensus(within(1)))).toBeUndefined();
    expect(tooCostly(consensus(within(3)))).toMatch(/^it could take \d+ steps with 100 approvals/);
  });

  it('tells by its entry alone which votes can still matter', () => {
    const users = Array.from({ length: 40 }, (_, at): PolicyUser => {
      const credentials = [
        { id: `c${at}`, userId: `u${at}`, type: 'CREDENTIAL_TYPE_API_KEY_P256', publicKey: `k${at}` },
      ];
      return { userId: `u${at}`, userName: `name ${at}`, tags: at % 2 === 0 ? ['even'] : ['odd'], credentials };
    });
    const cast = [{ user: users[0]!, credential: users[0]!.credentials[0]! }];
    const voters = new Voters(() => users, cast, { now: 0, value: () => undefined });
    const noneOf = (tag: string) => consensus(`approvers.none(u, '${tag}' in u.tags) && approvers.count() >= 8`);
    expect(voters.isReachable(noneOf('odd'))).toBe(true);
    expect(voters.isReachable(noneOf('even'))).toBe(false);
    expect(voters.contributors(noneOf('odd'))).toHaveLength(20);
  });

  it('has the texts that it compares looked up by its entry alone', () => {
    const organization = emptyOrganization();
    evolve(organization, anOrganization(), 0);
    const check = (tag: string) => () => {
      checkKnownLiterals({ consensus: `approvers.none(u, u.tags.contains('${tag}'))` }, environment, organization);
    };
    expect(check('no id')).not.toThrow();
    expect(check(id(77))).toThrow(`unknown user tag \`${id(77)}\` (line 1, column 35)`);
  });

  it('does not compile with a part of it forgotten', () => {
    // The compiler is the test: a class that says all but what it costs is no function call.
    type WithoutCost = Omit<FunctionCall, 'worstSteps'>;
    const isEnough: [WithoutCost] extends [FunctionCall] ? true : false = false;
    expect(isEnough).toBe(false);
  });

  it.each(policyFunctions)('has $name in the reference', ({ name, form }) => {
    const reference = readFileSync(join(import.meta.dirname, '../../../docs/reference/policy-language.md'), 'utf8');
    expect(reference).toContain(`"${name}"`);
    if (form !== 'f(…)') expect(reference).toContain(`\`${form.replace('f', name)}\``);
  });
});
