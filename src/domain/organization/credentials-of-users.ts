import type { Attestation, Vote } from '../activity/events.js';
import { contactKey } from '../contact-key.js';
import type { PolicyCredential } from '../policy/types.js';
import type { ApiKey, Authenticator } from './credentials.js';
import { oauthIdentity } from './oauth-identity.js';
import type { OrganizationView } from './organization.js';
import type { User } from './users.js';

/** The API keys and passkeys of a user as policies see them. */
export function credentialsOf(user: User): PolicyCredential[] {
  return [
    ...user.apiKeys.map((key) => apiKeyCredential(user, key)),
    ...user.authenticators.map((one) => authenticatorCredential(user, one)),
  ];
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

/** The credential behind an attested stamp, as policies see it; undefined once the user has lost it. */
export function attestedCredential(
  user: User,
  attestation: Attestation,
  publicKey: string,
): PolicyCredential | undefined {
  const { userId } = user;
  if (attestation.kind === 'contact') {
    const type = 'CREDENTIAL_TYPE_OTP_AUTH_KEY_P256';
    return hasContact(user, attestation) ? { id: attestation.tokenId, userId, type, publicKey } : undefined;
  }
  const wanted = oauthIdentity(attestation);
  const provider = user.oauthProviders.find((one) => oauthIdentity(one) === wanted);
  return provider && { id: provider.providerId, userId, type: 'CREDENTIAL_TYPE_OAUTH_KEY_P256', publicKey };
}

/** The credential that a vote was given by; undefined once the user has lost it, or is gone. */
export function credentialOfVote(
  { users }: OrganizationView,
  { userId, credentialId, attestation, publicKey }: Vote,
): PolicyCredential | undefined {
  const user = users.get(userId);
  if (!user) return undefined;
  return attestation
    ? attestedCredential(user, attestation, publicKey)
    : credentialsOf(user).find(({ id }) => id === credentialId);
}

function hasContact(user: User, { verificationType, contact }: Extract<Attestation, { kind: 'contact' }>): boolean {
  const isEmail = verificationType === 'OTP_TYPE_EMAIL';
  const held = isEmail ? user.userEmail : user.userPhoneNumber;
  const isVerified = isEmail ? user.emailVerified : user.phoneNumberVerified;
  return isVerified === true && held !== undefined && contactKey(held) === contactKey(contact);
}

/** The API key with a public key, whoever has it. */
export function apiKeyOf({ apiKeyOwners, users }: OrganizationView, publicKey: string): ApiKey | undefined {
  return users.get(apiKeyOwners.get(publicKey) ?? '')?.apiKeys.find((one) => one.publicKey === publicKey);
}

/** The passkey with a credential id, whoever has it. */
export function passkeyOf(
  { authenticatorOwners, users }: OrganizationView,
  credentialId: string,
): Authenticator | undefined {
  const owner = users.get(authenticatorOwners.get(credentialId) ?? '');
  return owner?.authenticators.find((one) => one.credentialId === credentialId);
}
