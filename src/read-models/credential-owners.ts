import { oauthIdentity } from '../domain/organization/oauth-identity.js';
import type { Rows } from './database.js';
import { eachEvent, type ProjectedEvent, type ReadModel } from './read-model.js';

/** By what people are found: a key, a passkey, an identity at an OpenID provider, or a contact that was proved. */
export type OwnedKind = 'public-key' | 'credential-id' | 'identity' | 'email' | 'phone-number';

/**
 * Which organizations have a credential: whoever logs in may not know theirs. Contacts count once they are verified.
 * `ref` is what later events name the credential by.
 */
export const credentialOwnersModel: ReadModel = {
  name: 'credential-owners',
  version: 1,
  tables: ['credential_owners'],
  schema: `
    CREATE TABLE credential_owners (
      kind TEXT NOT NULL, value TEXT NOT NULL, organization_id TEXT NOT NULL, user_id TEXT NOT NULL, ref TEXT NOT NULL,
      is_proved INTEGER NOT NULL, PRIMARY KEY (kind, value, organization_id, user_id)
    ) WITHOUT ROWID;
    CREATE INDEX credential_owners_by_user ON credential_owners (organization_id, user_id, ref);`,

  project: eachEvent((rows, { organizationId, event }) => {
    const add = (userId: string, kind: OwnedKind, value: string, ref: string, isProved = true) =>
      rows.run(
        'INSERT OR REPLACE INTO credential_owners VALUES (?, ?, ?, ?, ?, ?)',
        kind,
        value,
        organizationId,
        userId,
        ref,
        isProved ? 1 : 0,
      );
    const remove = (userId: string, ref: string) =>
      rows.run(
        'DELETE FROM credential_owners WHERE organization_id = ? AND user_id = ? AND ref = ?',
        organizationId,
        userId,
        ref,
      );
    /** A contact as it is from now on: unless it stays the same, nothing of it is proved; an empty one is none. */
    const contact = (userId: string, kind: 'email' | 'phone-number', value: string | undefined) => {
      if (value === undefined || value === contactOf(rows, organizationId, userId, kind)) return;
      remove(userId, kind);
      if (value !== '') add(userId, kind, value, kind, false);
    };
    project(event, { rows, organizationId, add, remove, contact });
  }),
};

interface Pen {
  readonly rows: Rows;
  readonly organizationId: string;
  add(userId: string, kind: OwnedKind, value: string, ref: string): void;
  remove(userId: string, ref: string): void;
  contact(userId: string, kind: 'email' | 'phone-number', value: string | undefined): void;
}

function project(event: ProjectedEvent['event'], { rows, organizationId, add, remove, contact }: Pen): void {
  switch (event.type) {
    case 'ApiKeyCreated':
      return add(event.data.userId, 'public-key', event.data.publicKey, event.data.apiKeyId);
    case 'ApiKeyDeleted':
      return remove(event.data.userId, event.data.apiKeyId);
    case 'AuthenticatorCreated':
      return add(event.data.userId, 'credential-id', event.data.credentialId, event.data.authenticatorId);
    case 'AuthenticatorDeleted':
      return remove(event.data.userId, event.data.authenticatorId);
    case 'OauthProviderCreated':
      return add(event.data.userId, 'identity', oauthIdentity(event.data), event.data.providerId);
    case 'OauthProviderDeleted':
      return remove(event.data.userId, event.data.providerId);
    case 'UserCreated':
    case 'UserUpdated':
      contact(event.data.userId, 'email', event.data.userEmail);
      return contact(event.data.userId, 'phone-number', event.data.userPhoneNumber);
    case 'UserContactVerified':
      return rows.run(
        'UPDATE credential_owners SET is_proved = 1 WHERE organization_id = ? AND user_id = ? AND ref = ?',
        organizationId,
        event.data.userId,
        event.data.contact,
      );
    case 'UserDeleted':
      return rows.run(
        'DELETE FROM credential_owners WHERE organization_id = ? AND user_id = ?',
        organizationId,
        event.data.userId,
      );
    case 'OrganizationDeleted':
      return rows.run('DELETE FROM credential_owners WHERE organization_id = ?', organizationId);
  }
}

function contactOf(rows: Rows, organizationId: string, userId: string, kind: string): string | undefined {
  const row = rows.get(
    'SELECT value FROM credential_owners WHERE organization_id = ? AND user_id = ? AND ref = ?',
    organizationId,
    userId,
    kind,
  );
  return row && String(row['value']);
}

/** Ids of the sub-organizations of a parent in which somebody has this credential; two are as telling as more. */
export function subOrganizationsWith(rows: Rows, parentId: string, kind: OwnedKind, value: string): readonly string[] {
  return rows
    .all(
      `SELECT DISTINCT organization_id FROM credential_owners JOIN organizations USING (organization_id)
       WHERE kind = ? AND value = ? AND is_proved = 1 AND parent_id = ? LIMIT 2`,
      kind,
      value,
      parentId,
    )
    .map((row) => String(row['organization_id']));
}
