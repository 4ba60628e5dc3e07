import { waitsForOf } from '../../src/decide/waits-for.js';
import { emptyOrganization } from '../../src/domain/organization/organization.js';

test('an activity names ten policies that wait, and twenty users of each whose approval could count', () => {
  const userIds = Array.from({ length: 1_000 }, (_, at) => `user ${at}`);
  const policies = Array.from({ length: 1_000 }, (_, at) => ({ policyId: `policy ${at}`, fewest: 1, userIds }));
  const told = waitsForOf({ policies, rootQuorum: { fewest: 2, userIds } }, undefined, emptyOrganization());
  expect(told.policies.map(({ policyId }) => policyId)).toEqual(policies.slice(0, 10).map(({ policyId }) => policyId));
  for (const { approverIds } of told.policies) expect(approverIds).toEqual(userIds.slice(0, 20));
  expect(told.rootQuorum).toEqual({ approvalsMissing: 2, approverIds: userIds.slice(0, 20) });
  expect(told.text.length).toBeLessThan(10_000);
});
