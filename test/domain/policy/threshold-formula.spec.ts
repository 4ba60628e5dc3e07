import { compileClause } from '../../../src/domain/policy/language.js';
import { policyEnvironment } from '../../../src/domain/policy/namespaces.js';
import { thresholdsOf, type ThresholdFormula } from '../../../src/domain/policy/threshold-formula.js';

const environment = policyEnvironment({});

/** The formula as a text: `2 of #0` are at least two of the approvals that count for the first term. */
function formula(text: string): string | undefined {
  const write = (one: ThresholdFormula): string => {
    switch (one.kind) {
      case 'at-least':
        return `${one.count} of #${one.term}`;
      case 'constant':
        return one.isNegated ? 'not constant' : 'constant';
      default:
        return `${one.kind}(${one.of.map(write).join(', ')})`;
    }
  };
  const found = thresholdsOf(compileClause(text, 'consensus', environment));
  return found && write(found);
}

const tagged = (tag: string) => `approvers.any(user, user.tags.contains('${tag}'))`;

test.each([
  ['approvers.count() >= 2', '2 of #0'],
  ['approvers.count() > 2', '3 of #0'],
  ['2 <= approvers.count()', '2 of #0'],
  ['2 < approvers.count()', '3 of #0'],
  ['approvers.count() != 0', '1 of #0'],
  ['0 != approvers.count()', '1 of #0'],
  ['!(approvers.count() < 2)', '2 of #0'],
  ['!(approvers.count() <= 2)', '3 of #0'],
  ['!(2 > approvers.count())', '2 of #0'],
  ['!(2 >= approvers.count())', '3 of #0'],
  ['!(approvers.count() == 0)', '1 of #0'],
  ['approvers.count() >= 99999999999', `${2 ** 31} of #0`],
  [tagged('a'), '1 of #0'],
  ["!approvers.all(user, user.id == 'a')", '1 of #0'],
  [`${tagged('a')} && approvers.count() >= 2`, 'all(1 of #0, 2 of #1)'],
  [`${tagged('a')} || approvers.count() >= 2`, 'any(1 of #0, 2 of #1)'],
  ["!(approvers.all(user, user.id == 'a') && approvers.count() < 2)", 'any(1 of #0, 2 of #1)'],
  ["!(approvers.all(user, user.id == 'a') || approvers.count() < 2)", 'all(1 of #0, 2 of #1)'],
  ["requester.id == 'a' && approvers.count() >= 2", 'all(constant, 2 of #0)'],
  ["!(requester.id == 'a' || approvers.count() < 2)", 'all(not constant, 2 of #0)'],
])('%s is %s', (text, expected) => {
  expect(formula(text)).toBe(expected);
});

// Another approval can undo these.
test.each([
  'approvers.count() < 3',
  'approvers.count() <= 3',
  'approvers.count() == 1',
  'approvers.count() != 1',
  '3 > approvers.count()',
  '1 == approvers.count()',
  '!(approvers.count() >= 2)',
  '!(approvers.count() != 0)',
  "approvers.all(user, user.id == 'a')",
  `!${tagged('a')}`,
  `${tagged('a')} && approvers.count() == 1`,
  'approvers.count() >= credentials.count()',
])('%s is no threshold', (text) => {
  expect(formula(text)).toBeUndefined();
});
