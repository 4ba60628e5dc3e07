import { invalidField } from '../domain/errors.js';
import { oauthIdentity } from '../domain/organization/oauth-identity.js';
import { OneOf, Text, UuidList } from '../schema/fields.js';
import type { Rows } from './database.js';
import { defineQuery, newestFirst, PaginatedRequest } from './define-query.js';
import { eachEvent, type ReadModel } from './read-model.js';

/** What a sub-organization can be found by. */
type Kind =
  | 'NAME'
  | 'USERNAME'
  | 'EMAIL'
  | 'PHONE_NUMBER'
  | 'VERIFIED_EMAIL'
  | 'VERIFIED_PHONE_NUMBER'
  | 'PUBLIC_KEY'
  | 'CREDENTIAL_ID'
  | 'OIDC'
  | 'WALLET_ACCOUNT_ADDRESS';

export const subOrganizationsModel: ReadModel = {
  name: 'sub-organizations',
  version: 1,
  tables: ['sub_organizations', 'sub_organization_lookups'],
  schema: `
    CREATE TABLE sub_organizations (
      organization_id TEXT PRIMARY KEY, parent_id TEXT NOT NULL, created INTEGER NOT NULL, doc TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX sub_organizations_by_parent ON sub_organizations (parent_id, created);
    CREATE TABLE sub_organization_lookups (
      parent_id TEXT NOT NULL, kind TEXT NOT NULL, value TEXT NOT NULL, organization_id TEXT NOT NULL, ref TEXT NOT NULL,
      user_id TEXT NOT NULL, created INTEGER NOT NULL, doc TEXT NOT NULL,
      PRIMARY KEY (parent_id, kind, value, organization_id, ref)
    ) WITHOUT ROWID;
    CREATE INDEX sub_organization_lookups_by_ref ON sub_organization_lookups (organization_id, ref);
    CREATE INDEX sub_organization_lookups_by_user ON sub_organization_lookups (organization_id, user_id);`,

  project: eachEvent((rows, { organizationId, position, event }) => {
    if (event.type === 'OrganizationCreated') {
      const { parentOrganizationId, name } = event.data;
      if (parentOrganizationId === undefined) return;
      const doc = JSON.stringify(organizationId);
      rows.run(
        'INSERT OR REPLACE INTO sub_organizations VALUES (?, ?, ?, ?)',
        organizationId,
        parentOrganizationId,
        position,
        doc,
      );
      lookupsOf(rows, organizationId)?.add('NAME', name, 'name', '');
      return;
    }
    switch (event.type) {
      case 'OrganizationRenamed': {
        const lookups = lookupsOf(rows, organizationId);
        lookups?.remove('name', 'NAME');
        return lookups?.add('NAME', event.data.name, 'name', '');
      }
      case 'OrganizationDeleted':
        rows.run('DELETE FROM sub_organization_lookups WHERE organization_id = ?', organizationId);
        return rows.run('DELETE FROM sub_organizations WHERE organization_id = ?', organizationId);
      case 'UserCreated':
      case 'UserUpdated': {
        const lookups = lookupsOf(rows, organizationId);
        const { userId, userName, userEmail, userPhoneNumber } = event.data;
        const put = (kind: Kind, value: string | undefined, proved?: Kind) => {
          if (value === undefined) return;
          // A proof is of the contact that was; a new one has to be proved again.
          if (proved && !lookups?.has(kind, value, userId)) lookups?.remove(userId, proved);
          lookups?.remove(userId, kind);
          if (value) lookups?.add(kind, value, userId, userId);
        };
        put('USERNAME', userName);
        put('EMAIL', userEmail, 'VERIFIED_EMAIL');
        return put('PHONE_NUMBER', userPhoneNumber, 'VERIFIED_PHONE_NUMBER');
      }
      case 'UserContactVerified': {
        const { userId, contact } = event.data;
        const [kind, proved] =
          contact === 'email'
            ? (['EMAIL', 'VERIFIED_EMAIL'] as const)
            : (['PHONE_NUMBER', 'VERIFIED_PHONE_NUMBER'] as const);
        const lookups = lookupsOf(rows, organizationId);
        const value = lookups?.valueOf(kind, userId);
        return value === undefined ? undefined : lookups?.add(proved, value, userId, userId);
      }
      case 'UserDeleted':
        return rows.run(
          'DELETE FROM sub_organization_lookups WHERE organization_id = ? AND user_id = ?',
          organizationId,
          event.data.userId,
        );
      case 'ApiKeyCreated':
        return lookupsOf(rows, organizationId)?.add(
          'PUBLIC_KEY',
          event.data.publicKey,
          event.data.apiKeyId,
          event.data.userId,
        );
      case 'ApiKeyDeleted':
        return lookupsOf(rows, organizationId)?.remove(event.data.apiKeyId);
      case 'AuthenticatorCreated':
        return lookupsOf(rows, organizationId)?.add(
          'CREDENTIAL_ID',
          event.data.credentialId,
          event.data.authenticatorId,
          event.data.userId,
        );
      case 'AuthenticatorDeleted':
        return lookupsOf(rows, organizationId)?.remove(event.data.authenticatorId);
      case 'OauthProviderCreated':
        return lookupsOf(rows, organizationId)?.add(
          'OIDC',
          oauthIdentity(event.data),
          event.data.providerId,
          event.data.userId,
        );
      case 'OauthProviderDeleted':
        return lookupsOf(rows, organizationId)?.remove(event.data.providerId);
      case 'WalletAccountsCreated': {
        const lookups = lookupsOf(rows, organizationId);
        const { walletId, accounts } = event.data;
        for (const { address, walletAccountId } of accounts) {
          // The wallet stands where others have their user, so that all goes with it.
          lookups?.add('WALLET_ACCOUNT_ADDRESS', address, walletAccountId, walletId);
        }
        return;
      }
      case 'WalletAccountsDeleted': {
        const lookups = lookupsOf(rows, organizationId);
        for (const walletAccountId of event.data.walletAccountIds) lookups?.remove(walletAccountId);
        return;
      }
      case 'WalletDeleted':
        return rows.run(
          'DELETE FROM sub_organization_lookups WHERE organization_id = ? AND user_id = ?',
          organizationId,
          event.data.walletId,
        );
    }
  }),
};

/** What is known of one sub-organization; undefined for an organization without a parent. */
function lookupsOf(rows: Rows, organizationId: string) {
  const row = rows.get(
    'SELECT parent_id, created, doc FROM sub_organizations WHERE organization_id = ?',
    organizationId,
  );
  if (!row) return undefined;
  const { parent_id: parentId, created, doc } = row;
  return {
    add(kind: Kind, value: string, ref: string, userId: string): void {
      rows.run(
        'INSERT OR REPLACE INTO sub_organization_lookups VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
        parentId!,
        kind,
        comparable(kind, value),
        organizationId,
        ref,
        userId,
        created!,
        doc!,
      );
    },
    remove(ref: string, kind?: Kind): void {
      const [more, values] = kind === undefined ? ['', []] : [' AND kind = ?', [kind]];
      rows.run(
        `DELETE FROM sub_organization_lookups WHERE organization_id = ? AND ref = ?${more}`,
        organizationId,
        ref,
        ...values,
      );
    },
    has(kind: Kind, value: string, ref: string): boolean {
      return this.valueOf(kind, ref) === comparable(kind, value);
    },
    valueOf(kind: Kind, ref: string): string | undefined {
      const found = rows.get(
        'SELECT value FROM sub_organization_lookups WHERE organization_id = ? AND ref = ? AND kind = ?',
        organizationId,
        ref,
        kind,
      );
      return found && String(found['value']);
    },
  };
}

/** Texts that mean the same whatever their letter case are kept in lower case. */
function comparable(kind: Kind, value: string): string {
  const isCaseless =
    kind === 'EMAIL' || kind === 'VERIFIED_EMAIL' || kind === 'PUBLIC_KEY' || /^0x[0-9a-f]+$/i.test(value);
  return isCaseless ? value.toLowerCase() : value;
}

const filterTypes = [
  'CREDENTIAL_ID',
  'NAME',
  'USERNAME',
  'EMAIL',
  'PHONE_NUMBER',
  'OIDC_TOKEN',
  'OIDC_CLAIMS',
  'WALLET_ACCOUNT_ADDRESS',
  'PUBLIC_KEY',
] as const;

class ListSuborgsRequest extends PaginatedRequest {
  @OneOf(filterTypes, { optional: true, about: 'What the sub-organization is looked up by; absent: all of them.' })
  filterType?: (typeof filterTypes)[number];

  @Text({ optional: true, max: 16_384, about: 'The value to look for; a token for OIDC_TOKEN.' })
  filterValue?: string;
}

class ListVerifiedSuborgsRequest extends PaginatedRequest {
  @OneOf(['EMAIL', 'PHONE_NUMBER'], { optional: true, about: 'The kind of contact; absent: all sub-organizations.' })
  filterType?: 'EMAIL' | 'PHONE_NUMBER';

  @Text({ optional: true, max: 320, about: 'The contact, which one of its users has proved.' })
  filterValue?: string;
}

class SuborgsResponse {
  @UuidList({ max: 100 })
  organizationIds!: string[];
}

export const listSuborgs = defineQuery({
  path: 'list_suborgs',
  summary: 'Ids of sub-organizations, all or those that a value belongs to, the newest first.',
  request: ListSuborgsRequest,
  response: SuborgsResponse,
  async answer(request, { rows, verifyOidc }) {
    const { filterType, filterValue } = request;
    if (filterType === 'OIDC_TOKEN') {
      const identity = await verifyOidc(required(filterValue));
      return page(rows, request, 'OIDC', oauthIdentity(identity));
    }
    if (filterType === 'OIDC_CLAIMS') return page(rows, request, 'OIDC', identityOf(required(filterValue)));
    return filterType === undefined ? page(rows, request) : page(rows, request, filterType, required(filterValue));
  },
});

export const listVerifiedSuborgs = defineQuery({
  path: 'list_verified_suborgs',
  summary: 'Ids of sub-organizations by a contact that one of their users has proved, the newest first.',
  request: ListVerifiedSuborgsRequest,
  response: SuborgsResponse,
  answer(request, { rows }) {
    const { filterType, filterValue } = request;
    if (filterType === undefined) return page(rows, request);
    return page(rows, request, `VERIFIED_${filterType}`, required(filterValue));
  },
});

function required(filterValue: string | undefined): string {
  if (filterValue) return filterValue;
  throw invalidField('filterValue', 'is required when filterType is there');
}

/** The identity behind `{ iss, sub, aud }`. */
function identityOf(text: string): string {
  try {
    const { iss, sub, aud } = JSON.parse(text) as Readonly<Record<string, unknown>>;
    if (typeof iss === 'string' && typeof sub === 'string' && typeof aud === 'string') {
      return oauthIdentity({ issuer: iss, subject: sub, audience: aud });
    }
  } catch {
    // Told below, whatever kept it from being read.
  }
  throw invalidField('filterValue', 'must be JSON with the texts `iss`, `sub` and `aud`');
}

function page(rows: Rows, request: PaginatedRequest, kind?: Kind, value?: string): SuborgsResponse {
  const { organizationId, paginationOptions } = request;
  const orderOf = (id: string) => {
    const row = rows.get(
      'SELECT created FROM sub_organizations WHERE organization_id = ? AND parent_id = ?',
      id,
      organizationId,
    );
    return row && BigInt(row['created']!);
  };
  const list =
    kind === undefined || value === undefined
      ? { table: 'sub_organizations', where: ['parent_id = ?'], values: [organizationId] }
      : {
          // An organization may have the value twice, with two of its users.
          table: '(SELECT DISTINCT parent_id, kind, value, created, doc FROM sub_organization_lookups)',
          where: ['parent_id = ?', 'kind = ?', 'value = ?'],
          values: [organizationId, kind, comparable(kind, value)],
        };
  const found = newestFirst(rows, { ...list, order: 'created', orderOf }, paginationOptions);
  return { organizationIds: found as string[] };
}
