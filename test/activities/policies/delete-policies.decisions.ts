import { deletePolicies } from '../../../src/activities/policies/delete-policies.js';
import { anOrganization, aPolicy } from '../facts.js';
import { given, id } from '../given.js';

const history = [anOrganization(), aPolicy(id(301), 'a'), aPolicy(id(302), 'b')];

describe('delete policies', () => {
  it('deletes them in the order given', () =>
    given(...history)
      .when(deletePolicies, { policyIds: [id(302), id(301)] })
      .then(
        [
          { type: 'PolicyDeleted', data: { policyId: id(302) } },
          { type: 'PolicyDeleted', data: { policyId: id(301) } },
        ],
        { policyIds: [id(302), id(301)] },
      ));

  it('deletes none when one is not there', () =>
    given(...history)
      .when(deletePolicies, { policyIds: [id(301), id(303)] })
      .thenRefused('NOT_FOUND', new RegExp(`no policy \`${id(303)}\``)));

  it.each([
    ['an empty list', { policyIds: [] }, /parameters\.policyIds: must have 1 to 100 elements, has 0/],
    ['the same policy twice', { policyIds: [id(301), id(301)] }, /parameters\.policyIds: must not list an id twice/],
  ])('refuses %s', (_what, intent, message) =>
    given(...history)
      .when(deletePolicies, intent)
      .thenRefused('INVALID_ARGUMENT', message),
  );
});
