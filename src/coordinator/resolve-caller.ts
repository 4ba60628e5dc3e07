import { CoordinatorError } from '../domain/errors.js';
import { isExpired, type ApiKey, type Authenticator } from '../domain/organization/credentials.js';
import type { OrganizationView } from '../domain/organization/organization.js';
import type { User } from '../domain/organization/users.js';
import type { PolicyCredential } from '../domain/policy/authorize.js';
import { CURVE_OF_SCHEME, type Stamp } from '../stamps/verify.js';

/** The user and credential behind a stamp, and the organization they belong to (the named one, or its parent). */
export interface Caller {
  readonly user: User;
  readonly organizationId: string;
  readonly credential: PolicyCredential;
  readonly authenticator?: Authenticator;
}

/**
 * Looks the stamp's credential up in the named organization, then in its parent; the named one wins when both have it
 * (client protocol 1.4). The stamp's signature has been verified before, or is verified next for a passkey.
 * @throws {CoordinatorError} UNAUTHENTICATED: PUBLIC_KEY_NOT_FOUND, CREDENTIAL_NOT_FOUND, API_KEY_EXPIRED, SIGNATURE_INVALID
 */
export function resolveCaller(
  stamp: Stamp,
  organization: OrganizationView,
  parent: OrganizationView | undefined,
  now: number,
): Caller {
  const caller = callerIn(organization, stamp, now) ?? (parent ? callerIn(parent, stamp, now) : undefined);
  if (caller) return caller;
  const where = parent ? 'organization or its parent organization' : 'organization';
  const { organizationId } = organization;
  throw stamp.kind === 'api-key'
    ? new CoordinatorError(
        'UNAUTHENTICATED',
        `could not find public key in ${where}: organizationId=${organizationId} publicKey=${stamp.publicKey}`,
        { category: 'PUBLIC_KEY_NOT_FOUND' },
      )
    : new CoordinatorError(
        'UNAUTHENTICATED',
        `credential ID could not be found in organization or its parent organization: organizationId=${organizationId} credentialId=${stamp.credentialId}`,
        { category: 'CREDENTIAL_NOT_FOUND' },
      );
}

function callerIn(organization: OrganizationView, stamp: Stamp, now: number): Caller | undefined {
  const { organizationId } = organization;
  if (stamp.kind === 'webauthn') {
    const user = organization.users.get(organization.authenticatorOwners.get(stamp.credentialId) ?? '');
    const authenticator = user?.authenticators.find(({ credentialId }) => credentialId === stamp.credentialId);
    return user && authenticator
      ? { user, organizationId, authenticator, credential: authenticatorCredential(user, authenticator) }
      : undefined;
  }
  const user = organization.users.get(organization.apiKeyOwners.get(stamp.publicKey) ?? '');
  const key = user?.apiKeys.find(({ publicKey }) => publicKey === stamp.publicKey);
  if (!user || !key) return undefined;
  if (CURVE_OF_SCHEME[stamp.scheme] !== key.curve) {
    throw new CoordinatorError(
      'UNAUTHENTICATED',
      `could not verify api key signature: the key is registered for ${key.curve}, the stamp's scheme is ${stamp.scheme}`,
      { category: 'SIGNATURE_INVALID' },
    );
  }
  if (isExpired(key, now)) {
    const end = new Date(key.createdAt + (key.expirationSeconds ?? 0) * 1000).toISOString();
    throw new CoordinatorError('UNAUTHENTICATED', `expired api key: it ended at ${end}; log in again`, {
      category: 'API_KEY_EXPIRED',
    });
  }
  return { user, organizationId, credential: apiKeyCredential(user, key) };
}

/** An API key as policies see it. */
export function apiKeyCredential(user: User, key: ApiKey): PolicyCredential {
  return { id: key.apiKeyId, userId: user.userId, type: key.credentialType, publicKey: key.publicKey };
}

/** A passkey as policies see it. */
export function authenticatorCredential(user: User, one: Authenticator): PolicyCredential {
  return {
    id: one.authenticatorId,
    userId: user.userId,
    type: 'CREDENTIAL_TYPE_WEBAUTHN_AUTHENTICATOR',
    publicKey: one.publicKey,
    credentialId: one.credentialId,
  };
}
