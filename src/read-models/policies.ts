import { CoordinatorError } from '../domain/errors.js';
import { policyResource } from '../wire/resources.js';
import type { Policy } from '../domain/policy/types.js';
import { isCertain } from '../domain/policy/doubt.js';
import { timeAt } from '../domain/policy/time-window.js';
import { DecimalString, Described, ListOf, Nested, Text, Uuid } from '../wire/fields.js';
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
  tables: policies.tables,
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

class ActivePolicyStatus {
  @Uuid()
  organizationId!: string;

  @Uuid()
  policyId!: string;

  @Described(
    { type: 'boolean' },
    { about: 'Whether its time clause holds now. A policy without one is always active.' },
  )
  active!: boolean;

  @Text({ optional: true, about: 'The time clause; absent if the policy has none.' })
  timeExpr?: string;

  @Text({ optional: true, about: 'Why the time clause could not be evaluated. The policy is then reported inactive.' })
  error?: string;
}

class GetActivePoliciesResponse extends PagedResponse {
  @ListOf(() => ActivePolicyStatus)
  statuses!: readonly ActivePolicyStatus[];

  @DecimalString({
    min: 0,
    max: Number.MAX_SAFE_INTEGER,
    about: 'The time of the evaluation: milliseconds since the epoch.',
  })
  evaluatedAtMs!: string;
}

export const getActivePolicies = defineQuery({
  path: 'get_active_policies',
  summary: 'Which policies of an organization are active now, by their time clauses, oldest first.',
  request: ListRequest,
  response: GetActivePoliciesResponse,
  answer: async ({ organizationId, paginationOptions }, { rows, now, page }) => ({
    statuses: await page(
      policies.list(rows, organizationId, paginationOptions, (policy) => activeStatus(organizationId, policy, now)),
    ),
    evaluatedAtMs: String(Math.floor(now)),
  }),
});

function activeStatus(organizationId: string, { policyId, time }: Policy, now: number): ActivePolicyStatus {
  if (time === undefined) return { organizationId, policyId, active: true };
  const reading = timeAt(time, now, organizationId);
  const { doubt } = reading;
  const status = { organizationId, policyId, active: isCertain(reading), timeExpr: time };
  return doubt ? { ...status, error: doubt.reason } : status;
}
