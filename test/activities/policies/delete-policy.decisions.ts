import { deletePolicy } from '../../../src/activities/policies/delete-policy.js';
import { anOrganization, aPolicy } from '../facts.js';
import { given, id } from '../given.js';

describe('delete policy', () => {
  it('deletes the policy', () =>
    given(anOrganization(), aPolicy(id(301), 'a'))
      .when(deletePolicy, { policyId: id(301) })
      .then([{ type: 'PolicyDeleted', data: { policyId: id(301) } }], { policyId: id(301) }));

  it('refuses a policy that is not there, or no longer', () =>
    given(anOrganization(), aPolicy(id(301), 'a'), { type: 'PolicyDeleted', data: { policyId: id(301) } })
      .when(deletePolicy, { policyId: id(301) })
      .thenRefused('NOT_FOUND', new RegExp(`no policy \`${id(301)}\` in organization \`${id(700)}\``)));

  it('refuses an invalid id', () =>
    given(anOrganization())
      .when(deletePolicy, { policyId: 'a' })
      .thenRefused('INVALID_ARGUMENT', /parameters\.policyId: must be a UUID, got `a`/));
});
