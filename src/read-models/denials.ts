import type { ErrorDetail } from '../domain/errors.js';
import { readableDenial } from '../domain/activity/redaction.js';
import { timestamp } from '../domain/organization/timestamp.js';
import { Described, ListOf, Nested, Text, Uuid } from '../wire/fields.js';
import type { Rows } from './database.js';
import { defineQuery, PagedResponse, PaginatedRequest } from './define-query.js';
import { elementsOf, newestFirst } from './pages.js';
import { eachEvent, type ReadModel } from './read-model.js';
import { redactedAbout, TimestampShape } from '../wire/shapes.js';

export const denialsModel: ReadModel = {
  name: 'denials',
  version: 1,
  tables: ['denials'],
  schema: `
    CREATE TABLE denials (
      organization_id TEXT NOT NULL, position INTEGER NOT NULL, denial_id TEXT NOT NULL, revision INTEGER NOT NULL,
      fingerprint TEXT NOT NULL, doc TEXT NOT NULL,
      PRIMARY KEY (organization_id, position)
    ) WITHOUT ROWID;
    CREATE INDEX denials_by_id ON denials (organization_id, denial_id);
    CREATE INDEX denials_by_fingerprint ON denials (organization_id, fingerprint);`,

  project: eachEvent((rows, { organizationId, id, position, revision, at, event }) => {
    if (event.type !== 'ActivityDenied') return;
    const { details, omittedBefore = 0, revision: decidedAt, authority, ...denial } = event.data;
    const doc: DenialShape = {
      denialId: id,
      ...denial,
      details,
      omittedBefore,
      ...(decidedAt === undefined ? {} : { revision: String(decidedAt) }),
      ...(authority ? { authority: { ...authority, revision: String(authority.revision) } } : {}),
      createdAt: timestamp(at),
    };
    const values = [organizationId, position, id, revision, denial.fingerprint, JSON.stringify(doc)];
    rows.run('INSERT OR REPLACE INTO denials VALUES (?, ?, ?, ?, ?, ?)', ...values);
  }),
};

/** Whether a denied request with this fingerprint was recorded. */
export function wasDenied(rows: Rows, organizationId: string, fingerprint: string): boolean {
  const sql = 'SELECT 1 FROM denials WHERE organization_id = ? AND fingerprint = ? LIMIT 1';
  return rows.get(sql, organizationId, fingerprint) !== undefined;
}

export type Denial = DenialShape;

/** Whether policies decided it, and no other rule. */
export function isByPolicies({ details }: Pick<Denial, 'details'>): boolean {
  return details.some((detail) => 'policyEvaluations' in detail);
}

/** A denial by its id, with all that was signed. */
export function denialOf(rows: Rows, organizationId: string, denialId: string): Denial | undefined {
  const position = positionOf(rows, organizationId, denialId);
  return position === undefined ? undefined : denialAt(rows, organizationId, position);
}

/** Revision of an organization's last denial, as far as the rows go; -1 for none. */
export function denialsRevision(rows: Rows, organizationId: string): number {
  const sql = 'SELECT revision FROM denials WHERE organization_id = ? ORDER BY position DESC LIMIT 1';
  return Number(rows.get(sql, organizationId)?.['revision'] ?? -1);
}

class DenialAuthorityShape {
  @Uuid()
  organizationId!: string;

  @Described({ type: 'string' }, { about: 'Last revision of its stream that the denial is based on.' })
  revision!: string;
}

class DenialShape {
  @Uuid({ about: 'explain_activity takes it as activityId, and says why it was denied.' })
  denialId!: string;

  @Text({ about: 'Type of the attempted activity, or of the vote.' })
  type!: string;

  @Uuid({ about: 'The user who tried.' })
  userId!: string;

  @Text()
  fingerprint!: string;

  @Text()
  timestampMs!: string;

  @Described({ type: 'string' }, { about: 'The stamped request body; cut at 65,536 characters.' })
  message!: string;

  @Text()
  scheme!: string;

  @Text({ optional: true, about: 'API key, hex.' })
  publicKey?: string;

  @Text({ optional: true, about: 'Passkey, base64url.' })
  credentialId?: string;

  @Text({ about: 'Empty while the request could still be replayed, until one hour after its timestampMs.' })
  signature!: string;

  @Text()
  reason!: string;

  @Described(
    { type: 'array', items: { type: 'object' } },
    { about: 'Outcome of each policy, as returned to the caller.' },
  )
  details!: readonly ErrorDetail[];

  @Described(
    { type: 'integer' },
    { about: 'Number of earlier denials that were counted but not recorded, because there were too many.' },
  )
  omittedBefore!: number;

  @Described(
    { type: 'string' },
    {
      optional: true,
      about: "Last revision of the organization's stream that it is based on; absent if an earlier build recorded it.",
    },
  )
  revision?: string;

  @Described({ type: 'integer' }, { optional: true, about: 'Number of the rules that denied it.' })
  rules?: number;

  @Nested(() => DenialAuthorityShape, { optional: true, about: 'The parent, if its users and policies decided.' })
  authority?: DenialAuthorityShape;

  @Nested(() => TimestampShape, { about: 'The time of the decision.' })
  createdAt!: TimestampShape;

  @Described({ type: 'boolean', const: true }, { optional: true, about: redactedAbout })
  redacted?: true;
}

class ListDenialsResponse extends PagedResponse {
  @ListOf(() => DenialShape)
  denials!: readonly DenialShape[];
}

export const listDenials = defineQuery({
  path: 'list_denials',
  summary: 'Denied attempts, newest first: who tried what, and why it was denied.',
  request: PaginatedRequest,
  response: ListDenialsResponse,
  async answer({ organizationId, paginationOptions }, { rows, now, page }) {
    const found = newestFirst(
      rows,
      {
        table: 'denials',
        column: 'position',
        order: 'position',
        runs: [{ organization_id: organizationId }],
        orderOf: (id) => positionOf(rows, organizationId, id),
      },
      paginationOptions,
    );
    return {
      denials: await page(elementsOf(found, (at) => readableDenial(denialAt(rows, organizationId, BigInt(at)), now))),
    };
  },
});

function denialAt(rows: Rows, organizationId: string, position: bigint): DenialShape {
  const row = rows.get('SELECT doc FROM denials WHERE organization_id = ? AND position = ?', organizationId, position);
  return JSON.parse(String(row?.['doc'])) as DenialShape;
}

function positionOf(rows: Rows, organizationId: string, denialId: string): bigint | undefined {
  const row = rows.get(
    'SELECT position FROM denials WHERE organization_id = ? AND denial_id = ?',
    organizationId,
    denialId,
  );
  return row && BigInt(row['position']!);
}
