import { createPolicies } from '../../../src/activities/policies/create-policies.js';
import { limitTable } from '../../../src/domain/organization/limits.js';
import { anOrganization, aPolicy } from '../facts.js';
import { given, id } from '../given.js';

const { value: maxPolicies } = limitTable.policies;
const allow = (policyName: string) => ({ policyName, effect: 'EFFECT_ALLOW', notes: '' });

describe('create policies', () => {
  it('creates them in the order given', () =>
    given(anOrganization())
      .when(createPolicies, { policies: [{ ...allow('b'), condition: 'true' }, allow('a')] })
      .then(
        [
          {
            type: 'PolicyCreated',
            data: { policyId: id(1), policyName: 'b', effect: 'EFFECT_ALLOW', condition: 'true', notes: '' },
          },
          { type: 'PolicyCreated', data: { policyId: id(2), policyName: 'a', effect: 'EFFECT_ALLOW', notes: '' } },
        ],
        { policyIds: [id(1), id(2)] },
      ));

  it('creates none if one cannot be evaluated, and says which', () =>
    given(anOrganization())
      .when(createPolicies, { policies: [allow('a'), { ...allow('b'), consensus: ' ' }] })
      .thenRefused(
        'INVALID_ARGUMENT',
        /^invalid policy consensus: Expression cannot be evaluated: .* \(policies\[1\], `b`\)$/,
      ));

  it('refuses a name that another policy has', () =>
    given(anOrganization(), aPolicy(id(301), 'a'))
      .when(createPolicies, { policies: [allow('b'), allow('a')] })
      .thenRefused('INVALID_ARGUMENT', /^policy label must be unique: `a`/));

  it('refuses the same name twice in one request', () =>
    given(anOrganization())
      .when(createPolicies, { policies: [allow('a'), allow('b'), allow('a')] })
      .thenRefused('INVALID_ARGUMENT', /^policy label must be unique: `a` is taken, it appears twice in this request/));

  it('counts the policies that are there with those that come', () => {
    const there = Array.from({ length: maxPolicies - 1 }, (_, index) => aPolicy(id(1000 + index), `p${index}`));
    given(anOrganization(), ...there)
      .when(createPolicies, { policies: [allow('a'), allow('b')] })
      .thenRefused('RESOURCE_EXHAUSTED', /may have 100 policies: it has 99, and this request adds 2/);
  });

  it('refuses what could together use up the steps of every request, though each alone could not', () => {
    const pairs = `approvers.any(a, approvers.any(b, a.id != b.id))`;
    const costly = (count: number) =>
      Array.from({ length: count }, (_, at) => ({ ...allow(`p${at}`), consensus: `${pairs} && ${at} == ${at}` }));
    given(anOrganization())
      .when(createPolicies, { policies: costly(2) })
      .then(
        costly(2).map(({ policyName, consensus }, at) => ({
          type: 'PolicyCreated' as const,
          data: { policyId: id(1 + at), policyName, effect: 'EFFECT_ALLOW' as const, consensus, notes: '' },
        })),
        { policyIds: [id(1), id(2)] },
      );
    given(anOrganization())
      .when(createPolicies, { policies: costly(20) })
      .thenRefused('RESOURCE_EXHAUSTED', /^all policies of an organization may take 280000 steps in total, with 100 /);
  });

  it.each([
    ['no list', {}, /parameters\.policies: is required/],
    ['an empty list', { policies: [] }, /parameters\.policies: must have 1 to 100 elements, has 0/],
    [
      'too long a list',
      { policies: Array(101).fill(allow('a')) },
      /parameters\.policies: must have 1 to 100 elements, has 101/,
    ],
    [
      'a bad element',
      { policies: [allow('a'), { policyName: 'b' }] },
      /parameters\.policies\[1\]\.effect: is required/,
    ],
  ])('refuses %s', (_what, intent, message) =>
    given(anOrganization()).when(createPolicies, intent).thenRefused('INVALID_ARGUMENT', message),
  );
});
