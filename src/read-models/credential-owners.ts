import { identitiesOfIssuer } from '../domain/organization/oauth-identity.js';
import type { Rows } from './database.js';
import { comparable, type Kind } from './sub-organizations.js';

/** What somebody logs in with, by the names that sub-organizations are looked up by. */
export type CredentialKind = Extract<
  Kind,
  'PUBLIC_KEY' | 'CREDENTIAL_ID' | 'OIDC' | 'VERIFIED_EMAIL' | 'VERIFIED_PHONE_NUMBER'
>;

/**
 * Ids of the sub-organizations of a parent in which somebody has a credential: whoever logs in may not know theirs. Two
 * are as telling as more.
 */
export function subOrganizationsWith(
  rows: Rows,
  parentId: string,
  kind: CredentialKind,
  value: string,
): readonly string[] {
  return rows
    .all(
      `SELECT DISTINCT organization_id FROM sub_organization_lookups
       WHERE parent_id = ? AND kind = ? AND value = ? AND created IS NOT NULL LIMIT 2`,
      parentId,
      kind,
      comparable(kind, value),
    )
    .map((row) => String(row['organization_id']));
}

/** Whether somebody in a sub-organization of the parent has an identity at the issuer. */
export function knowsIssuer(rows: Rows, parentId: string, issuer: string): boolean {
  const prefix = identitiesOfIssuer(issuer);
  // The comma that a prefix ends with is followed by the minus in ASCII: by range, the index serves.
  const found = rows.get(
    `SELECT 1 FROM sub_organization_lookups
     WHERE parent_id = ? AND kind = 'OIDC' AND value >= ? AND value < ? AND created IS NOT NULL LIMIT 1`,
    parentId,
    prefix,
    prefix.replace(/,$/, '-'),
  );
  return found !== undefined;
}
