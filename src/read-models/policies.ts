import { CoordinatorError } from '../domain/errors.js';
import { policyResource } from '../wire/resources.js';
import type { Policy } from '../domain/policy/types.js';
import { ListOf, Nested, Uuid } from '../wire/fields.js';
import type { Rows } from './database.js';
import { defineQuery, type ListPage, ListRequest, OrganizationRequest, PagedResponse } from './define-query.js';
import { oldestFirst, type Elements } from './pages.js';
import { eachEvent, type ReadModel } from './read-model.js';
import { PolicyShape } from '../wire/shapes.js';

export const policiesModel: ReadModel = {
  name: 'policies',
  version: 2,
  tables: ['policies'],
  schema: `
    CREATE TABLE policies (
      organization_id TEXT NOT NULL, policy_id TEXT NOT NULL, created INTEGER NOT NULL, doc TEXT NOT NULL,
      PRIMARY KEY (organization_id, policy_id)
    ) WITHOUT ROWID;
    CREATE INDEX policies_in_order ON policies (organization_id, created, policy_id);`,

  project: eachEvent((rows, { organizationId, position, at, event }) => {
    const put = (policy: Policy, created: bigint) =>
      rows.run(
        'INSERT OR REPLACE INTO policies VALUES (?, ?, ?, ?)',
        organizationId,
        policy.policyId,
        created,
        JSON.stringify(policy),
      );
    switch (event.type) {
      case 'PolicyCreated':
        return put({ ...event.data, createdAt: at, updatedAt: at }, position);
      case 'PolicyUpdated': {
        const row = rowOf(rows, organizationId, event.data.policyId);
        if (row) put({ ...readPolicy(row['doc']), ...event.data, updatedAt: at }, BigInt(row['created']!));
        return;
      }
      case 'PolicyDeleted':
        return rows.run(
          'DELETE FROM policies WHERE organization_id = ? AND policy_id = ?',
          organizationId,
          event.data.policyId,
        );
    }
  }),
};

const readPolicy = (doc: unknown): Policy => JSON.parse(String(doc)) as Policy;

function rowOf(rows: Rows, organizationId: string, policyId: string) {
  return rows.get(
    'SELECT created, doc FROM policies WHERE organization_id = ? AND policy_id = ?',
    organizationId,
    policyId,
  );
}

/** All policies of an organization in the order of their creation. */
export function policiesOf(
  rows: Rows,
  organizationId: string,
  options?: ListPage,
): Elements<PolicyShape, Iterable<PolicyShape>> {
  return oldestFirst(rows, { table: 'policies', id: 'policy_id' }, organizationId, options, ({ doc }) =>
    policyResource(readPolicy(doc)),
  );
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
    .map((row) => ({ organizationId: String(row['organization_id']), policy: readPolicy(row['doc']) }));
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
    const row = rowOf(rows, organizationId, policyId);
    if (!row)
      throw new CoordinatorError('NOT_FOUND', `no policy \`${policyId}\` in organization \`${organizationId}\``);
    return { policy: policyResource(readPolicy(row['doc'])) };
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
