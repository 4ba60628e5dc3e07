import { CoordinatorError } from '../errors.js';
import type { ApiKeyCurve } from '../key-formats.js';
import { oauthIdentity } from './oauth-identity.js';
import { changeUser, type User } from './users.js';
import { provedHere } from './claims.js';
import type { DomainEvent, Evolvers } from './event.js';
import type { Limits } from './limits.js';
import { put, remove } from './slices.js';

const loginTypes = [
  'CREDENTIAL_TYPE_LOGIN',
  'CREDENTIAL_TYPE_OTP_AUTH_KEY_P256',
  'CREDENTIAL_TYPE_OAUTH_KEY_P256',
  'CREDENTIAL_TYPE_EMAIL_AUTH_KEY_P256',
  'CREDENTIAL_TYPE_READ_WRITE_SESSION_KEY_P256',
] as const;

/** Credentials created by logins, by the class that `invalidateExisting` refers to (docs/protocol.md, sessions). */
export type LoginCredentialType = (typeof loginTypes)[number];

/** Every one of them. */
export const loginCredentialTypes: ReadonlySet<ApiKeyCredentialType> = new Set(loginTypes);

export type ApiKeyCredentialType =
  | 'CREDENTIAL_TYPE_API_KEY_P256'
  | 'CREDENTIAL_TYPE_API_KEY_SECP256K1'
  | 'CREDENTIAL_TYPE_API_KEY_ED25519'
  | LoginCredentialType;

/** The type of a plain API key of each curve, as policies see it. */
export const apiKeyCredentialType: Readonly<Record<ApiKeyCurve, ApiKeyCredentialType>> = {
  API_KEY_CURVE_P256: 'CREDENTIAL_TYPE_API_KEY_P256',
  API_KEY_CURVE_SECP256K1: 'CREDENTIAL_TYPE_API_KEY_SECP256K1',
  API_KEY_CURVE_ED25519: 'CREDENTIAL_TYPE_API_KEY_ED25519',
};

/** A key that stamps requests. */
export interface ApiKey {
  readonly apiKeyId: string;
  readonly apiKeyName: string;
  /** Lower-case hex: compressed SEC1 point, or the 32 bytes of an Ed25519 key. */
  readonly publicKey: string;
  readonly curve: ApiKeyCurve;
  readonly credentialType: ApiKeyCredentialType;
  /** Lifetime in seconds from its creation; absent means until it is deleted. */
  readonly expirationSeconds?: number;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** A registered passkey (WebAuthn public key credential). */
export interface Authenticator {
  readonly authenticatorId: string;
  readonly authenticatorName: string;
  /** base64url. */
  readonly credentialId: string;
  /** COSE key, base64url. */
  readonly publicKey: string;
  readonly aaguid: string;
  readonly attestationType: string;
  readonly transports: readonly string[];
  /** Lower-case hex of SHA-256 of the relying party id that it was registered for. */
  readonly rpIdHash: string;
  /** Last signature counter seen in a submit; stays 0 for synced passkeys. */
  readonly signCount: number;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** An identity at an OpenID provider that a user may log in with. */
export interface OauthProvider {
  readonly providerId: string;
  readonly providerName: string;
  readonly issuer: string;
  readonly audience: string;
  readonly subject: string;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** When a credential was added: of two organizations that have it, the one that has had it longer was there first. */
export type Dated = Pick<ApiKey | Authenticator, 'createdAt'>;

type Recorded<Credential> = Omit<Credential, 'createdAt' | 'updatedAt'> & { readonly userId: string };

export type CredentialEvent =
  | DomainEvent<'ApiKeyCreated', Recorded<ApiKey>>
  | DomainEvent<'ApiKeyDeleted', { userId: string; apiKeyId: string }>
  | DomainEvent<'AuthenticatorCreated', Recorded<Authenticator>>
  | DomainEvent<'AuthenticatorDeleted', { userId: string; authenticatorId: string }>
  | DomainEvent<'OauthProviderCreated', Recorded<OauthProvider>>
  | DomainEvent<'OauthProviderDeleted', { userId: string; providerId: string }>;

/** The effect of each credential event on its user; shared with the read model so that the two cannot disagree. */
export const credentialChanges: {
  readonly [Type in CredentialEvent['type']]: (
    user: User,
    data: Extract<CredentialEvent, { type: Type }>['data'],
    at: number,
  ) => User;
} = {
  ApiKeyCreated: (user, { userId: _owner, ...key }, at) => ({
    ...user,
    apiKeys: [...user.apiKeys, { ...key, createdAt: at, updatedAt: at }],
    updatedAt: at,
  }),
  ApiKeyDeleted: (user, { apiKeyId }, at) => ({
    ...user,
    apiKeys: user.apiKeys.filter((key) => key.apiKeyId !== apiKeyId),
    updatedAt: at,
  }),
  AuthenticatorCreated: (user, { userId: _owner, ...authenticator }, at) => ({
    ...user,
    authenticators: [...user.authenticators, { ...authenticator, createdAt: at, updatedAt: at }],
    updatedAt: at,
  }),
  AuthenticatorDeleted: (user, { authenticatorId }, at) => ({
    ...user,
    authenticators: user.authenticators.filter((one) => one.authenticatorId !== authenticatorId),
    updatedAt: at,
  }),
  OauthProviderCreated: (user, { userId: _owner, ...provider }, at) => ({
    ...user,
    oauthProviders: [...user.oauthProviders, { ...provider, createdAt: at, updatedAt: at }],
    updatedAt: at,
  }),
  OauthProviderDeleted: (user, { providerId }, at) => ({
    ...user,
    oauthProviders: user.oauthProviders.filter((one) => one.providerId !== providerId),
    updatedAt: at,
  }),
};

export const evolveCredentials: Evolvers<CredentialEvent> = {
  ApiKeyCreated(organization, data, at) {
    put(organization, 'apiKeyOwners', data.publicKey, data.userId);
    changeUser(organization, data.userId, (user) => credentialChanges.ApiKeyCreated(user, data, at));
  },
  ApiKeyDeleted(organization, data, at) {
    changeUser(organization, data.userId, (user) => {
      const key = user.apiKeys.find(({ apiKeyId }) => apiKeyId === data.apiKeyId);
      if (key) remove(organization, 'apiKeyOwners', key.publicKey);
      return credentialChanges.ApiKeyDeleted(user, data, at);
    });
  },
  AuthenticatorCreated(organization, data, at) {
    put(organization, 'authenticatorOwners', data.credentialId, data.userId);
    changeUser(organization, data.userId, (user) => credentialChanges.AuthenticatorCreated(user, data, at));
  },
  AuthenticatorDeleted(organization, data, at) {
    changeUser(organization, data.userId, (user) => {
      const one = user.authenticators.find(({ authenticatorId }) => authenticatorId === data.authenticatorId);
      if (one) remove(organization, 'authenticatorOwners', one.credentialId);
      return credentialChanges.AuthenticatorDeleted(user, data, at);
    });
  },
  OauthProviderCreated(organization, data, at) {
    provedHere(organization);
    put(organization, 'oauthOwners', oauthIdentity(data), data.userId);
    changeUser(organization, data.userId, (user) => credentialChanges.OauthProviderCreated(user, data, at));
  },
  OauthProviderDeleted(organization, data, at) {
    changeUser(organization, data.userId, (user) => {
      const one = user.oauthProviders.find(({ providerId }) => providerId === data.providerId);
      if (one) remove(organization, 'oauthOwners', oauthIdentity(one));
      return credentialChanges.OauthProviderDeleted(user, data, at);
    });
  },
};

/** When a key expires, in milliseconds since the epoch; undefined for one that does not. */
function expiresAt(key: ApiKey): number | undefined {
  return key.expirationSeconds === undefined ? undefined : key.createdAt + key.expirationSeconds * 1000;
}

/** True from the millisecond on at which the key expires. */
export function isExpired(key: ApiKey, now: number): boolean {
  const end = expiresAt(key);
  return end !== undefined && now >= end;
}

/**
 * The keys of a user that make room for `more` expiring ones: expired keys first, then the oldest (docs/protocol.md, sessions). Keys without expiry never do.
 */
export function keysGivingWay(
  apiKeys: readonly ApiKey[],
  more: number,
  now: number,
  { expiringApiKeys: most }: Limits,
): readonly ApiKey[] {
  const held = apiKeys.filter(({ expirationSeconds }) => expirationSeconds !== undefined);
  const excess = Math.max(0, held.length + more - most);
  return [...held.filter((key) => isExpired(key, now)), ...held.filter((key) => !isExpired(key, now))].slice(0, excess);
}

/** The user's API key of that id. @throws {CoordinatorError} NOT_FOUND */
export function existingApiKey({ userId, apiKeys }: User, apiKeyId: string): ApiKey {
  const key = apiKeys.find((one) => one.apiKeyId === apiKeyId);
  if (key) return key;
  throw new CoordinatorError('NOT_FOUND', `user \`${userId}\` has no API key \`${apiKeyId}\`: see get_api_keys`);
}

/** The user's identity of that id. @throws {CoordinatorError} NOT_FOUND */
export function existingOauthProvider({ userId, oauthProviders }: User, providerId: string): OauthProvider {
  const provider = oauthProviders.find((one) => one.providerId === providerId);
  if (provider) return provider;
  throw new CoordinatorError(
    'NOT_FOUND',
    `user \`${userId}\` has no OAuth provider \`${providerId}\`: see get_oauth_providers`,
  );
}

/** The user's passkey of that id. @throws {CoordinatorError} NOT_FOUND */
export function existingAuthenticator({ userId, authenticators }: User, authenticatorId: string): Authenticator {
  const authenticator = authenticators.find((one) => one.authenticatorId === authenticatorId);
  if (authenticator) return authenticator;
  throw new CoordinatorError(
    'NOT_FOUND',
    `user \`${userId}\` has no authenticator \`${authenticatorId}\`: see get_authenticators`,
  );
}
