import { CoordinatorError } from '../domain/errors.js';
import { policyResource } from '../wire/resources.js';
import type { Policy } from '../domain/policy/types.js';
import { ListOf, Nested, Uuid } from '../wire/fields.js';
import type { Rows } from './database.js';
import { defineQuery, type ListPage, ListRequest, OrganizationRequest, PagedResponse } from './define-query.js';
import { OwnedDocuments } from './owned-documents.js';
import type { Elements } from './pages.js';
import { eachEvent, type ReadModel } from './read-model.js';
import { PolicyShape } from '../wire/shapes.js';

const policies = new OwnedDocuments<Policy>('policies', 'policy_id');

export const policiesModel: ReadModel = {
  name: 'policies',
  version: 2,
  tables: [policies.table],
  schema: policies.schema,

  project: eachEvent((rows, { organizationId, position, at, event }) => {
    switch (event.type) {
      case 'PolicyCreated': {
        const policy = { ...event.data, createdAt: at, updatedAt: at };
        return policies.put(rows, organizationId, policy.policyId, position, policy);
      }
      case 'PolicyUpdated':
        return policies.change(rows, organizationId, event.data.policyId, { ...event.data, updatedAt: at });
      case 'PolicyDeleted':
        return policies.delete(rows, organizationId, event.data.policyId);
    }
  }),
};

/** All policies of an organization in the order of their creation. */
export function policiesOf(
  rows: Rows,
  organizationId: string,
  options?: ListPage,
): Elements<PolicyShape, Iterable<PolicyShape>> {
  return policies.list(rows, organizationId, options, policyResource);
}

/** Policies of all organizations, some at a time: those behind a key, in the order of keys. */
export function policiesAfter(
  rows: Rows,
  after: { readonly organizationId: string; readonly policyId: string },
  limit: number,
): readonly { readonly organizationId: string; readonly policy: Policy }[] {
  return rows
    .all(
      'SELECT organization_id, doc FROM policies WHERE (organization_id, policy_id) > (?, ?) ' +
        'ORDER BY organization_id, policy_id LIMIT ?',
      after.organizationId,
      after.policyId,
      limit,
    )
    .map((row) => ({ organizationId: String(row['organization_id']), policy: policies.parse(row['doc']) }));
}

class PolicyRequest extends OrganizationRequest {
  @Uuid()
  policyId!: string;
}

class GetPolicyResponse {
  @Nested(() => PolicyShape)
  policy!: PolicyShape;
}

export const getPolicy = defineQuery({
  path: 'get_policy',
  summary: 'One policy.',
  request: PolicyRequest,
  response: GetPolicyResponse,
  answer({ organizationId, policyId }, { rows }) {
    const policy = policies.get(rows, organizationId, policyId);
    if (!policy)
      throw new CoordinatorError('NOT_FOUND', `no policy \`${policyId}\` in organization \`${organizationId}\``);
    return { policy: policyResource(policy) };
  },
});

class ListPoliciesResponse extends PagedResponse {
  @ListOf(() => PolicyShape)
  policies!: readonly PolicyShape[];
}

export const listPolicies = defineQuery({
  path: 'list_policies',
  summary: 'All policies of an organization, oldest first.',
  request: ListRequest,
  response: ListPoliciesResponse,
  answer: async ({ organizationId, paginationOptions }, { rows, page }) => ({
    policies: await page(policiesOf(rows, organizationId, paginationOptions)),
  }),
});
