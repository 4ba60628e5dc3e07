import { accessTypes, type InvitationEvent } from '../domain/organization/invitations.js';
import { timestamp } from '../domain/organization/timestamp.js';
import { ListOf, Nested, OneOf, Text, Uuid, UuidList } from '../wire/fields.js';
import type { Rows } from './database.js';
import { defineQuery, PagedResponse, PaginatedRequest } from './define-query.js';
import { elementsOf, newestFirst } from './pages.js';
import { eachEvent, type ReadModel } from './read-model.js';
import { TimestampShape } from '../wire/shapes.js';

/** The outcome of an invitation. */
const statusOf: Readonly<Record<Extract<InvitationEvent, { type: 'InvitationClosed' }>['data']['reason'], string>> = {
  accepted: 'INVITATION_STATUS_ACCEPTED',
  deleted: 'INVITATION_STATUS_REVOKED',
  expired: 'INVITATION_STATUS_EXPIRED',
};
const created = 'INVITATION_STATUS_CREATED';

export class InvitationShape {
  @Uuid()
  invitationId!: string;

  @Text()
  receiverUserName!: string;

  @Text()
  receiverUserEmail!: string;

  @Text({ about: 'The same address, under the name that published clients read.' })
  receiverEmail!: string;

  @UuidList()
  receiverUserTags!: readonly string[];

  @OneOf(accessTypes)
  accessType!: string;

  @Uuid()
  senderUserId!: string;

  @Uuid({ optional: true, about: 'The user who submitted it, if not the sender.' })
  submitterId?: string;

  @OneOf([created, ...Object.values(statusOf)], {
    about:
      'Becomes EXPIRED with the next change to any invitation; after `expiresAt`, it cannot be accepted in any case.',
  })
  status!: string;

  @Uuid({ optional: true, about: 'The user it created.' })
  userId?: string;

  @Nested(() => TimestampShape)
  expiresAt!: TimestampShape;

  @Nested(() => TimestampShape)
  createdAt!: TimestampShape;

  @Nested(() => TimestampShape)
  updatedAt!: TimestampShape;
}

/** Invitations and their outcomes, without their keys. */
export const invitationsModel: ReadModel = {
  name: 'invitations',
  version: 2,
  tables: ['invitations'],
  schema: `
    CREATE TABLE invitations (
      organization_id TEXT NOT NULL, invitation_id TEXT NOT NULL, created INTEGER NOT NULL, user_id TEXT NOT NULL,
      is_open INTEGER NOT NULL, doc TEXT NOT NULL, PRIMARY KEY (organization_id, invitation_id)
    ) WITHOUT ROWID;
    CREATE INDEX invitations_by_time ON invitations (organization_id, created);
    CREATE INDEX invitations_open ON invitations (organization_id, created) WHERE is_open = 1;`,

  project: eachEvent((rows, { organizationId, position, at, event }) => {
    switch (event.type) {
      case 'InvitationCreated': {
        const { userId, publicKey: _publicKey, expiresAt, ...rest } = event.data;
        const doc: InvitationShape = {
          ...rest,
          receiverEmail: rest.receiverUserEmail,
          status: created,
          expiresAt: timestamp(expiresAt),
          createdAt: timestamp(at),
          updatedAt: timestamp(at),
        };
        return rows.run(
          'INSERT OR REPLACE INTO invitations VALUES (?, ?, ?, ?, 1, ?)',
          organizationId,
          rest.invitationId,
          position,
          userId,
          JSON.stringify(doc),
        );
      }
      case 'InvitationClosed': {
        const { invitationId, reason } = event.data;
        const row = rowOf(rows, organizationId, invitationId);
        if (!row) return;
        const doc: InvitationShape = {
          ...(JSON.parse(String(row['doc'])) as InvitationShape),
          ...(reason === 'accepted' ? { userId: String(row['user_id']) } : {}),
          status: statusOf[reason],
          updatedAt: timestamp(at),
        };
        return rows.run(
          'UPDATE invitations SET is_open = 0, doc = ? WHERE organization_id = ? AND invitation_id = ?',
          JSON.stringify(doc),
          organizationId,
          invitationId,
        );
      }
    }
  }),
};

function rowOf(rows: Rows, organizationId: string, invitationId: string) {
  return rows.get(
    'SELECT created, user_id, doc FROM invitations WHERE organization_id = ? AND invitation_id = ?',
    organizationId,
    invitationId,
  );
}

/** The invitations of an organization that nobody has accepted or deleted, in order of creation. */
export function openInvitationsOf(rows: Rows, organizationId: string): InvitationShape[] {
  return rows
    .all('SELECT doc FROM invitations WHERE organization_id = ? AND is_open = 1 ORDER BY created', organizationId)
    .map(({ doc }) => JSON.parse(String(doc)) as InvitationShape);
}

class ListInvitationsResponse extends PagedResponse {
  @ListOf(() => InvitationShape)
  invitations!: readonly InvitationShape[];
}

export const listInvitations = defineQuery({
  path: 'list_invitations',
  summary: 'Invitations and their status, newest first.',
  request: PaginatedRequest,
  response: ListInvitationsResponse,
  async answer({ organizationId, paginationOptions }, { rows, page }) {
    const found = newestFirst(
      rows,
      {
        table: 'invitations',
        column: 'invitation_id',
        order: 'created',
        runs: [{ organization_id: organizationId }],
        orderOf: (id) => {
          const row = rowOf(rows, organizationId, id);
          return row && BigInt(row['created']!);
        },
      },
      paginationOptions,
    );
    const read = (id: string) => JSON.parse(String(rowOf(rows, organizationId, id)?.['doc'])) as InvitationShape;
    return { invitations: await page(elementsOf(found, read)) };
  },
});
