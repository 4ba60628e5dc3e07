import { contactKey } from '../domain/contact-key.js';
import { invalidField } from '../domain/errors.js';
import { claimedIdentity, oauthIdentity } from '../domain/organization/oauth-identity.js';
import { OneOf, Text, UuidList } from '../wire/fields.js';
import { authProxyOf } from './auth-proxies.js';
import type { Rows } from './database.js';
import { defineQuery, PaginatedRequest, type QueryContext } from './define-query.js';
import { ListCursors } from './list-cursors.js';
import { newestFirst } from './pages.js';
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

const places = new ListCursors({
  table: 'sub_organizations',
  owner: 'parent_id',
  id: 'organization_id',
  columns: ['created'],
});

/**
 * Sub-organizations by their parent, which has recorded each at `revision` of its stream. Its own stream follows the
 * parent's record; `founded` is 0 until it does.
 */
export const subOrganizationsModel: ReadModel = {
  name: 'sub-organizations',
  version: 2,
  tables: [...places.tables, 'sub_organization_lookups'],
  schema: `
    CREATE TABLE sub_organizations (
      organization_id TEXT PRIMARY KEY, parent_id TEXT NOT NULL, created INTEGER NOT NULL,
      revision INTEGER NOT NULL, founded INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX sub_organizations_unfounded ON sub_organizations (organization_id) WHERE founded = 0;
    CREATE INDEX sub_organizations_by_parent ON sub_organizations (parent_id, created);
    CREATE TABLE sub_organization_lookups (
      organization_id TEXT NOT NULL, ref TEXT NOT NULL, kind TEXT NOT NULL, owner TEXT NOT NULL, text TEXT NOT NULL,
      parent_id TEXT NOT NULL, value TEXT NOT NULL, created INTEGER NOT NULL,
      PRIMARY KEY (organization_id, ref, kind)
    ) WITHOUT ROWID;
    CREATE INDEX sub_organization_lookups_by_value ON sub_organization_lookups (parent_id, kind, value, created);
    CREATE INDEX sub_organization_lookups_by_owner ON sub_organization_lookups (organization_id, owner);
    ${places.schema}`,

  project: eachEvent((rows, { organizationId, position, revision, event }) => {
    switch (event.type) {
      case 'OrganizationCreated': {
        const { parentOrganizationId, name } = event.data;
        if (parentOrganizationId === undefined) return;
        rows.run(
          'UPDATE sub_organizations SET founded = 1 WHERE organization_id = ? AND parent_id = ?',
          organizationId,
          parentOrganizationId,
        );
        return lookupsOf(rows, organizationId)?.add('NAME', name, 'name');
      }
      case 'SubOrganizationCreated': {
        const { subOrganizationId } = event.data;
        return rows.run(
          // No organization can take over another's sub-organization.
          'INSERT OR IGNORE INTO sub_organizations VALUES (?, ?, ?, ?, 0)',
          subOrganizationId,
          organizationId,
          position,
          revision,
        );
      }
      case 'OrganizationRenamed':
        return lookupsOf(rows, organizationId)?.add('NAME', event.data.name, 'name');
      case 'OrganizationDeleted':
        rows.run('DELETE FROM sub_organization_lookups WHERE organization_id = ?', organizationId);
        return rows.run('DELETE FROM sub_organizations WHERE organization_id = ?', organizationId);
      case 'UserCreated':
      case 'UserUpdated': {
        const { userId, userName, userEmail, userPhoneNumber } = event.data;
        const lookups = lookupsOf(rows, organizationId);
        if (userName !== undefined) lookups?.add('USERNAME', userName, userId);
        lookups?.putContact('EMAIL', userEmail, userId);
        return lookups?.putContact('PHONE_NUMBER', userPhoneNumber, userId);
      }
      case 'UserContactVerified': {
        const kind = event.data.contact === 'email' ? 'EMAIL' : 'PHONE_NUMBER';
        return lookupsOf(rows, organizationId)?.prove(kind, event.data.userId);
      }
      case 'UserContactReleased': {
        const kind = event.data.contact === 'email' ? 'VERIFIED_EMAIL' : 'VERIFIED_PHONE_NUMBER';
        return forget(rows, organizationId, event.data.userId, kind);
      }
      case 'UserDeleted':
        return forgetOwner(rows, organizationId, event.data.userId);
      case 'ApiKeyCreated': {
        const { publicKey, apiKeyId, userId } = event.data;
        return lookupsOf(rows, organizationId)?.add('PUBLIC_KEY', publicKey, apiKeyId, userId);
      }
      case 'ApiKeyDeleted':
        return forget(rows, organizationId, event.data.apiKeyId);
      case 'AuthenticatorCreated': {
        const { credentialId, authenticatorId, userId } = event.data;
        return lookupsOf(rows, organizationId)?.add('CREDENTIAL_ID', credentialId, authenticatorId, userId);
      }
      case 'AuthenticatorDeleted':
        return forget(rows, organizationId, event.data.authenticatorId);
      case 'OauthProviderCreated': {
        const { providerId, userId } = event.data;
        return lookupsOf(rows, organizationId)?.add('OIDC', oauthIdentity(event.data), providerId, userId);
      }
      case 'OauthProviderDeleted':
        return forget(rows, organizationId, event.data.providerId);
      case 'WalletAccountsCreated': {
        const { walletId, accounts } = event.data;
        const lookups = lookupsOf(rows, organizationId);
        for (const { address, walletAccountId } of accounts) {
          lookups?.add('WALLET_ACCOUNT_ADDRESS', address, walletAccountId, walletId);
        }
        return;
      }
      case 'WalletAccountsDeleted':
        for (const walletAccountId of event.data.walletAccountIds) forget(rows, organizationId, walletAccountId);
        return;
      case 'WalletDeleted':
        return forgetOwner(rows, organizationId, event.data.walletId);
    }
  }),
};

/** The parent of a sub-organization, and where in its stream it was recorded; undefined if it was not. */
export function recordedByParent(
  rows: Rows,
  organizationId: string,
): { parentId: string; revision: number } | undefined {
  const row = rows.get('SELECT parent_id, revision FROM sub_organizations WHERE organization_id = ?', organizationId);
  return row && { parentId: String(row['parent_id']), revision: Number(row['revision']) };
}

/** Ids of sub-organizations that have no stream yet. */
export function unfoundedIn(rows: Rows): readonly string[] {
  return rows
    .all('SELECT organization_id FROM sub_organizations WHERE founded = 0')
    .map((row) => String(row['organization_id']));
}

/** Removes values of one sub-organization; undefined for an organization without a parent. */
function lookupsOf(rows: Rows, organizationId: string) {
  const row = rows.get('SELECT parent_id, created FROM sub_organizations WHERE organization_id = ?', organizationId);
  if (!row) return undefined;
  const { parent_id: parentId, created } = row;

  /**
   * `ref` is the owner of the value, and has one of each kind. The value is removed with its owner, a user or a wallet.
   */
  function add(kind: Kind, text: string, ref: string, owner = ref): void {
    rows.run(
      'INSERT OR REPLACE INTO sub_organization_lookups VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
      organizationId,
      ref,
      kind,
      owner,
      text,
      parentId!,
      comparable(kind, text),
      created!,
    );
  }

  const textOf = (kind: Kind, ref: string): string | undefined => {
    const found = rows.get(
      'SELECT text FROM sub_organization_lookups WHERE organization_id = ? AND ref = ? AND kind = ?',
      organizationId,
      ref,
      kind,
    );
    return found && String(found['text']);
  };

  return {
    add,
    /** Undefined leaves the contact as it is, an empty string removes it. */
    putContact(kind: 'EMAIL' | 'PHONE_NUMBER', contact: string | undefined, userId: string): void {
      // The proof was of the old contact.
      if (contact === undefined || contact === textOf(kind, userId)) return;
      forget(rows, organizationId, userId, kind, `VERIFIED_${kind}`);
      if (contact) add(kind, contact, userId);
    },
    prove(kind: 'EMAIL' | 'PHONE_NUMBER', userId: string): void {
      const contact = textOf(kind, userId);
      if (contact !== undefined) add(`VERIFIED_${kind}`, contact, userId);
    },
  };
}

function forget(rows: Rows, organizationId: string, ref: string, ...kinds: readonly Kind[]): void {
  const only = kinds.length > 0 ? ` AND kind IN (${kinds.map(() => '?').join(', ')})` : '';
  rows.run(
    `DELETE FROM sub_organization_lookups WHERE organization_id = ? AND ref = ?${only}`,
    organizationId,
    ref,
    ...kinds,
  );
}

function forgetOwner(rows: Rows, organizationId: string, owner: string): void {
  rows.run('DELETE FROM sub_organization_lookups WHERE organization_id = ? AND owner = ?', organizationId, owner);
}

/** Case-insensitive texts are stored in lower case, contacts as they are compared everywhere. */
function comparable(kind: Kind, value: string): string {
  if (kind === 'EMAIL' || kind === 'VERIFIED_EMAIL') return contactKey(value);
  const isCaseless = kind === 'PUBLIC_KEY' || (kind === 'WALLET_ACCOUNT_ADDRESS' && /^(?:0x)?[0-9a-f]+$/i.test(value));
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
  'OAUTH_CLAIM',
  'WALLET_ACCOUNT_ADDRESS',
  'PUBLIC_KEY',
] as const;

class ListSuborgsRequest extends PaginatedRequest {
  @OneOf(filterTypes, {
    optional: true,
    about: 'Kind of value to look up by; if absent, all sub-organizations are listed.',
  })
  filterType?: (typeof filterTypes)[number];

  @Text({ optional: true, max: 16_384, about: 'The value to look for; a token for OIDC_TOKEN.' })
  filterValue?: string;
}

class ListVerifiedSuborgsRequest extends PaginatedRequest {
  @OneOf(['EMAIL', 'PHONE_NUMBER'], {
    optional: true,
    about: 'Kind of contact; if absent, all sub-organizations are listed.',
  })
  filterType?: 'EMAIL' | 'PHONE_NUMBER';

  @Text({ optional: true, max: 320, about: 'The contact, which one of its users has verified.' })
  filterValue?: string;
}

class SuborgsResponse {
  @UuidList({ max: 100 })
  organizationIds!: readonly string[];
}

export interface VerifyOidcPort {
  /** What an OIDC token says once it is verified. @throws {CoordinatorError} INVALID_ARGUMENT INVALID_OIDC_TOKEN */
  verifyOidc(token: string): Promise<{
    readonly issuer: string;
    readonly audience: string;
    readonly subject: string;
    readonly verifiedEmail?: string;
  }>;
}

export const listSuborgs = defineQuery({
  path: 'list_suborgs',
  summary: 'Ids of sub-organizations, all or those that match a value, newest first.',
  request: ListSuborgsRequest,
  response: SuborgsResponse,
  async answer(request, context: QueryContext & VerifyOidcPort) {
    const { rows } = context;
    const { filterType, filterValue } = request;
    if (filterType === 'OIDC_TOKEN') {
      const identity = await context.verifyOidc(required(filterValue));
      const owned = page(rows, request, 'OIDC', oauthIdentity(identity));
      if (owned.organizationIds.length > 0 || !isLinkable(rows, request, identity)) return owned;
      return page(rows, request, 'VERIFIED_EMAIL', identity.verifiedEmail);
    }
    if (filterType === 'OIDC_CLAIMS' || filterType === 'OAUTH_CLAIM') {
      return page(rows, request, 'OIDC', claimedIdentity(required(filterValue), filterType));
    }
    return filterType === undefined ? page(rows, request) : page(rows, request, filterType, required(filterValue));
  },
});

export const listVerifiedSuborgs = defineQuery({
  path: 'list_verified_suborgs',
  summary: 'Ids of sub-organizations by a contact that one of their users has verified, newest first.',
  request: ListVerifiedSuborgsRequest,
  response: SuborgsResponse,
  answer(request, { rows }) {
    const { filterType, filterValue } = request;
    if (filterType === undefined) return page(rows, request);
    return page(rows, request, `VERIFIED_${filterType}`, required(filterValue));
  },
});

/**
 * Whether a login with the identity may link it to the user who has proved its e-mail address (see
 * `social-linking.ts`).
 */
function isLinkable(
  rows: Rows,
  { organizationId, paginationOptions }: PaginatedRequest,
  { audience, verifiedEmail }: { readonly audience: string; readonly verifiedEmail?: string },
): boolean {
  const isFirstPage = paginationOptions?.before === undefined && paginationOptions?.after === undefined;
  const { socialLinkingClientIds = [] } = authProxyOf(rows, organizationId)?.settings ?? {};
  return isFirstPage && verifiedEmail !== undefined && socialLinkingClientIds.includes(audience);
}

function required(filterValue: string | undefined): string {
  if (filterValue) return filterValue;
  throw invalidField('filterValue', 'is required with filterType');
}

function page(rows: Rows, request: PaginatedRequest, kind?: Kind, value?: string): SuborgsResponse {
  const { organizationId, paginationOptions } = request;
  const orderOf = (id: string) => {
    const row = places.of(rows, organizationId, id);
    return row?.['created'] ? BigInt(row['created']) : undefined;
  };
  const list =
    kind === undefined || value === undefined
      ? { table: 'sub_organizations', runs: [{ parent_id: organizationId }] }
      : {
          table: 'sub_organization_lookups',
          // Two users, or keys, of an organization may have the same value.
          isRepeated: true,
          runs: [{ parent_id: organizationId, kind, value: comparable(kind, value) }],
        };
  const ordered = { ...list, column: 'organization_id', order: 'created', orderOf };
  const { keys, isBackward } = newestFirst(rows, ordered, paginationOptions);
  return { organizationIds: isBackward ? keys.toReversed() : [...keys] };
}
