import type { Policy } from '../domain/policy/types.js';
import type { ApiKey, Authenticator, OauthProvider } from '../domain/organization/credentials.js';
import type { UserTag } from '../domain/organization/tags.js';
import { timestamp } from '../domain/organization/timestamp.js';
import type { User } from '../domain/organization/users.js';
import type {
  ApiKeyShape,
  AuthenticatorShape,
  OauthProviderShape,
  PolicyShape,
  TagShape,
  UserShape,
} from './shapes.js';

/** Builds the values of shapes from the nouns of an organization (docs/protocol.md, users and resources). */

const times = (noun: { createdAt: number; updatedAt: number }) => ({
  createdAt: timestamp(noun.createdAt),
  updatedAt: timestamp(noun.updatedAt),
});

export function apiKeyResource(key: ApiKey): ApiKeyShape {
  return {
    credential: { publicKey: key.publicKey, type: key.credentialType },
    apiKeyId: key.apiKeyId,
    apiKeyName: key.apiKeyName,
    createdAt: timestamp(key.createdAt),
    updatedAt: timestamp(key.updatedAt),
    ...(key.expirationSeconds === undefined ? {} : { expirationSeconds: String(key.expirationSeconds) }),
  };
}

export function authenticatorResource(one: Authenticator): AuthenticatorShape {
  return {
    transports: one.transports,
    attestationType: one.attestationType,
    aaguid: one.aaguid,
    credentialId: one.credentialId,
    model: '',
    credential: { publicKey: one.publicKey, type: 'CREDENTIAL_TYPE_WEBAUTHN_AUTHENTICATOR' },
    authenticatorId: one.authenticatorId,
    authenticatorName: one.authenticatorName,
    ...times(one),
  };
}

export function oauthProviderResource(provider: OauthProvider): OauthProviderShape {
  const { providerId, providerName, issuer, audience, subject } = provider;
  return { providerId, providerName, issuer, audience, subject, ...times(provider) };
}

export function userResource(user: User): UserShape {
  return {
    userId: user.userId,
    userName: user.userName,
    authenticators: user.authenticators.map(authenticatorResource),
    apiKeys: user.apiKeys.map(apiKeyResource),
    userTags: user.userTags,
    oauthProviders: user.oauthProviders.map(oauthProviderResource),
    mfaPolicies: [],
    createdAt: timestamp(user.createdAt),
    updatedAt: timestamp(user.updatedAt),
    ...(user.userEmail ? { userEmail: user.userEmail } : {}),
    ...(user.userPhoneNumber ? { userPhoneNumber: user.userPhoneNumber } : {}),
  };
}

export function userTagResource(tag: UserTag): TagShape {
  return { tagId: tag.tagId, tagName: tag.tagName, tagType: 'TAG_TYPE_USER', ...times(tag) };
}

export function policyResource(policy: Policy): PolicyShape {
  return {
    policyId: policy.policyId,
    policyName: policy.policyName,
    effect: policy.effect,
    notes: policy.notes,
    consensus: policy.consensus ?? '',
    condition: policy.condition ?? '',
    ...(policy.time === undefined ? {} : { time: policy.time }),
    ...times(policy),
  };
}
