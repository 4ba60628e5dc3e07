import { createPolicy } from '../../../src/activities/policies/create-policy.js';
import { limitTable } from '../../../src/domain/organization/limits.js';
import { anOrganization, aPolicy } from '../facts.js';
import { given, id } from '../given.js';
import { lifted } from '../lifted.js';

const { value: maxPolicies } = limitTable.policies;

describe('create policy', () => {
  it('records every clause as it was written', () =>
    given(anOrganization())
      .when(createPolicy, {
        policyName: 'two of us',
        effect: 'EFFECT_ALLOW',
        condition: "activity.resource == 'USER'",
        consensus: 'approvers.count() >= 2',
        time: "time.now > Timestamp('2026-01-01T00:00:00Z')",
        notes: 'for now',
      })
      .then(
        [
          {
            type: 'PolicyCreated',
            data: {
              policyId: id(1),
              policyName: 'two of us',
              effect: 'EFFECT_ALLOW',
              condition: "activity.resource == 'USER'",
              consensus: 'approvers.count() >= 2',
              time: "time.now > Timestamp('2026-01-01T00:00:00Z')",
              notes: 'for now',
            },
          },
        ],
        { policyId: id(1) },
      ));

  it('takes a policy without clauses and notes', () =>
    given(anOrganization())
      .when(createPolicy, { policyName: 'all', effect: 'EFFECT_DENY' })
      .then(
        [
          {
            type: 'PolicyCreated',
            data: { policyId: id(1), policyName: 'all', effect: 'EFFECT_DENY', notes: '' },
          },
        ],
        { policyId: id(1) },
      ));

  it.each([
    ['condition', 'activity.nonsense == 1', /^invalid policy condition: Expression cannot be evaluated: .*nonsense/],
    ['condition', ' ', /^invalid policy condition: Expression cannot be evaluated: /],
    ['consensus', "approvers.any(user, user.id == 'x'", /^invalid policy consensus: Expression cannot be evaluated: /],
    ['consensus', ' ', /^invalid policy consensus: /],
    ['time', '1', /^invalid policy time: /],
    ['condition', "activity.params.user_name == 'x'", /user_name/],
  ])('refuses a %s that cannot be evaluated: %s', (clause, text, message) =>
    given(anOrganization())
      .when(createPolicy, { policyName: 'p', effect: 'EFFECT_ALLOW', [clause]: text })
      .thenRefused('INVALID_ARGUMENT', message),
  );

  it('knows the parameters that activities expose', () =>
    given(anOrganization())
      .when(createPolicy, {
        policyName: 'p',
        effect: 'EFFECT_ALLOW',
        condition:
          "activity.params.user_ids.contains('x') && activity.params.user_id == 'x' && activity.params.api_key_ids.count() == 1",
      })
      .then([expect.objectContaining({ type: 'PolicyCreated' })], { policyId: id(1) }));

  it('refuses a name that another policy has, naming both', () =>
    given(anOrganization(), aPolicy(id(301), 'all'))
      .when(createPolicy, { policyName: 'all', effect: 'EFFECT_ALLOW' })
      .thenRefused(
        'INVALID_ARGUMENT',
        new RegExp(`^policy label must be unique: \`all\` is taken, it is the name of policy \`${id(301)}\``),
      ));

  it('refuses one policy more than an organization may have', () => {
    const policies = Array.from({ length: maxPolicies }, (_, index) => aPolicy(id(1000 + index), `p${index}`));
    given(anOrganization(), ...policies.slice(1))
      .when(createPolicy, { policyName: 'last', effect: 'EFFECT_ALLOW' })
      .then([expect.objectContaining({ type: 'PolicyCreated' })], { policyId: id(1) });
    given(anOrganization(), ...policies)
      .when(createPolicy, { policyName: 'more', effect: 'EFFECT_ALLOW' })
      .thenRefused('RESOURCE_EXHAUSTED', /may have 100 policies: it has 100/);
  });

  it.each([
    ['no name', { effect: 'EFFECT_ALLOW' }, /parameters\.policyName: is required/],
    [
      'an unknown effect',
      { policyName: 'p', effect: 'EFFECT_MAYBE' },
      /parameters\.effect: must be one of EFFECT_ALLOW, EFFECT_DENY, got `EFFECT_MAYBE`/,
    ],
    ['selectors', { policyName: 'p', effect: 'EFFECT_ALLOW', selectors: [] }, /parameters\.selectors: is not a field/],
  ])('refuses %s', (_what, intent, message) =>
    given(anOrganization()).when(createPolicy, intent).thenRefused('INVALID_ARGUMENT', message),
  );

  it.each([
    ['ACTIVITY_TYPE_CREATE_POLICY', { subject: 'user.id', operator: 'OPERATOR_EQUAL', target: 'x' }],
    ['ACTIVITY_TYPE_CREATE_POLICY_V2', { subject: 'user.id', operator: 'OPERATOR_IN', targets: ['x'] }],
  ])('refuses the selectors of %s, and says what to send instead', (type, selector) => {
    const intent = { policyName: 'p', effect: 'EFFECT_ALLOW', selectors: [selector], notes: '' };
    expect(() => lifted(type, intent)).toThrow(
      expect.objectContaining({
        code: 'UNIMPLEMENTED',
        message: expect.stringMatching(
          /send ACTIVITY_TYPE_CREATE_POLICY_V3 with `condition` and `consensus`/,
        ) as unknown,
      }) as Error,
    );
  });
});
