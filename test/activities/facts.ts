import { ed25519 } from '@noble/curves/ed25519.js';
import { p256 } from '@noble/curves/nist.js';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import type { ApiKeyCurve } from '../../src/domain/key-formats.js';
import { apiKeyCredentialType } from '../../src/domain/organization/credentials.js';
import type { OrganizationEvent } from '../../src/domain/organization/organization.js';
import { id } from './given.js';

/** What history may say, with the members that a test does not care about filled in. */

type Data<Type extends OrganizationEvent['type']> = Extract<OrganizationEvent, { type: Type }>['data'];
type Fact<Type extends OrganizationEvent['type']> = { readonly type: Type; readonly data: Data<Type> };

export function anOrganization(more: Partial<Data<'OrganizationCreated'>> = {}): Fact<'OrganizationCreated'> {
  return { type: 'OrganizationCreated', data: { organizationId: id(700), name: 'Acme', ...more } };
}

export function aUser(userId: string, more: Partial<Data<'UserCreated'>> = {}): Fact<'UserCreated'> {
  return { type: 'UserCreated', data: { userId, userName: 'Ann', userTags: [], ...more } };
}

/** A valid public key, another for each number; hex as it is stored. */
export function publicKeyOf(number: number, curve: ApiKeyCurve = 'API_KEY_CURVE_P256'): string {
  const secret = new Uint8Array(32).fill(number, 31);
  const key = {
    API_KEY_CURVE_P256: () => p256.getPublicKey(secret, true),
    API_KEY_CURVE_SECP256K1: () => secp256k1.getPublicKey(secret, true),
    API_KEY_CURVE_ED25519: () => ed25519.getPublicKey(secret),
  }[curve]();
  return Buffer.from(key).toString('hex');
}

/** An API key, P-256; its number names its id and its public key. */
export function anApiKey(
  userId: string,
  number: number,
  more: Partial<Data<'ApiKeyCreated'>> = {},
): Fact<'ApiKeyCreated'> {
  const curve = more.curve ?? 'API_KEY_CURVE_P256';
  return {
    type: 'ApiKeyCreated',
    data: {
      userId,
      apiKeyId: id(number),
      apiKeyName: `key ${number}`,
      publicKey: publicKeyOf(number, curve),
      curve,
      credentialType: apiKeyCredentialType[curve],
      ...more,
    },
  };
}

/** What a verified registration says; its number names its credential. */
export function aRegistration(number: number) {
  return {
    credentialId: `credential-${number}`,
    publicKey: 'pQECAyYgASFY',
    aaguid: '00000000-0000-0000-0000-000000000000',
    attestationType: 'none',
    rpIdHash: 'ab'.repeat(32),
    signCount: 0,
    transports: ['AUTHENTICATOR_TRANSPORT_INTERNAL'],
  };
}

/** A passkey; its number names its id and its credential. */
export function aPasskey(userId: string, number: number): Fact<'AuthenticatorCreated'> {
  const authenticator = { userId, authenticatorId: id(number), authenticatorName: `passkey ${number}` };
  return { type: 'AuthenticatorCreated', data: { ...authenticator, ...aRegistration(number) } };
}

/** An identity at an OpenID provider; its number names its id and its subject. */
export function anIdentity(
  userId: string,
  number: number,
  more: Partial<Data<'OauthProviderCreated'>> = {},
): Fact<'OauthProviderCreated'> {
  const provider = { providerId: id(number), providerName: `provider ${number}` };
  return { type: 'OauthProviderCreated', data: { userId, ...provider, ...identityOf(number), ...more } };
}

/** What a token of that identity says. */
export function identityOf(number: number) {
  return { issuer: 'https://issuer.example', audience: 'app', subject: `subject ${number}` };
}

export function aRootQuorum(threshold: number, ...userIds: string[]): Fact<'RootQuorumUpdated'> {
  return { type: 'RootQuorumUpdated', data: { threshold, userIds } };
}

export function aPolicy(policyId: string, policyName: string): Fact<'PolicyCreated'> {
  return { type: 'PolicyCreated', data: { policyId, policyName, effect: 'EFFECT_ALLOW', notes: '' } };
}

export function aUserTag(tagId: string, tagName: string): Fact<'UserTagCreated'> {
  return { type: 'UserTagCreated', data: { tagId, tagName } };
}
