import type { Attestation } from '../domain/activity/events.js';
import type { ApiKeyStamp, AttestedStamp, Stamp } from '../stamps/stamp.js';
import { CoordinatorError } from '../domain/errors.js';
import { isExpired, type ApiKey, type Authenticator, type Dated } from '../domain/organization/credentials.js';
import {
  apiKeyCredential,
  apiKeyOf,
  attestedCredential,
  authenticatorCredential,
  credentialsOf,
  passkeyOf,
} from '../domain/organization/credentials-of-users.js';
import { invitationOfKey, invitedUser } from '../domain/organization/invitations.js';
import { oauthIdentity } from '../domain/organization/oauth-identity.js';
import type { OrganizationView } from '../domain/organization/organization.js';
import { userOfContact, type User } from '../domain/organization/users.js';
import type { PolicyCredential } from '../domain/policy/types.js';
import { CURVE_OF_SCHEME } from '../stamps/verify.js';

/** A stamp by a user's own credential, as opposed to one whose key a token attests. */
export type OwnStamp = Exclude<Stamp, AttestedStamp>;

/** The user and credential behind a stamp, and the organization they belong to (the named one, or its parent). */
export interface Caller {
  readonly user: User;
  readonly organizationId: string;
  readonly credential: PolicyCredential;
  readonly authenticator?: Authenticator;
}

/** What decides between an organization and its parent where both have the credential. */
interface Between {
  /** The public key that signed, of those registered under the credential id of a passkey: anyone can register the id. */
  readonly passkeyKey?: string | undefined;
  /** Whether the parent's users submit the verb in the organization, too. */
  readonly isParentsToo?: boolean;
}

/**
 * Looks up the stamp's credential in the named organization, then in its parent; if both have it, the named one wins
 * (docs/protocol.md, who may stamp what), unless it is the parent's (`isParents`). The stamp's signature was verified before, or, for a
 * passkey, is verified next.
 * @throws {CoordinatorError} UNAUTHENTICATED: PUBLIC_KEY_NOT_FOUND, CREDENTIAL_NOT_FOUND, API_KEY_EXPIRED,
 * SIGNATURE_INVALID
 */
export function resolveCaller(
  stamp: OwnStamp,
  organization: OrganizationView,
  parent: OrganizationView | undefined,
  now: number,
  between: Between = {},
): Caller {
  const isParents =
    parent !== undefined &&
    (stamp.kind === 'api-key'
      ? isParentsKey(stamp.publicKey, organization, parent, between)
      : isParentsPasskey(stamp.credentialId, organization, parent, between));
  let refusal: CoordinatorError | undefined;
  for (const home of isParents ? [parent, organization] : [organization, parent]) {
    const found = home && callerIn(home, stamp, now);
    if (found && !(found instanceof CoordinatorError)) return found;
    // Anyone can add a public key: where it does not count, it keeps nobody from using theirs.
    refusal ??= found;
  }
  if (refusal) throw refusal;
  const where = parent ? 'organization or its parent organization' : 'organization';
  const { organizationId } = organization;
  throw stamp.kind === 'api-key'
    ? publicKeyNotFound(where, organizationId, stamp.publicKey)
    : new CoordinatorError(
        'UNAUTHENTICATED',
        `credential ID could not be found in organization or its parent organization: organizationId=${organizationId} credentialId=${stamp.credentialId}`,
        { category: 'CREDENTIAL_NOT_FOUND' },
      );
}

/**
 * Whether a key that an organization may have, too, is its parent's. The public keys of those who log others in for the parent stand
 * in the organization's history: a user there could add one as their own, and keep everybody else out.
 */
function isParentsKey(
  publicKey: string,
  organization: OrganizationView,
  parent: OrganizationView,
  { isParentsToo = false }: Between,
): boolean {
  if (parent.authProxy?.publicKey === publicKey) return true;
  const [own, parents] = [apiKeyOf(organization, publicKey), apiKeyOf(parent, publicKey)];
  return isParentsToo && wasTaken(own, parents, organization);
}

/**
 * Whether, of two passkeys with one credential id, the parent's has signed; of the same passkey in both, as of keys. One that is gone by now
 * is refused as whoever has its id.
 */
function isParentsPasskey(
  credentialId: string,
  organization: OrganizationView,
  parent: OrganizationView,
  { passkeyKey, isParentsToo = false }: Between,
): boolean {
  const [own, parents] = [passkeyOf(organization, credentialId), passkeyOf(parent, credentialId)];
  if (parents?.publicKey !== passkeyKey) return false;
  return own?.publicKey !== passkeyKey || (isParentsToo && wasTaken(own, parents, organization));
}

/** Whether a user of an organization has added what its parent had before. What the founding brought is the word of who founded it. */
function wasTaken(own: Dated | undefined, parents: Dated | undefined, organization: OrganizationView): boolean {
  if (!own || !parents) return false;
  return own.createdAt > organization.createdAt && own.createdAt > parents.createdAt;
}

/**
 * The user of the organization that a verified token speaks for; only the organization's own users can be attested to
 * it.
 * @throws {CoordinatorError} UNAUTHENTICATED CREDENTIAL_NOT_FOUND; FAILED_PRECONDITION if several have the contact
 */
export function attestedCaller(
  { publicKey }: AttestedStamp,
  attestation: Attestation,
  organization: OrganizationView,
  now: number,
): Caller {
  const { organizationId } = organization;
  const isOver = attestation.kind === 'contact' && attestation.expiresAt <= now;
  const user = isOver ? undefined : attestedUser(organization, attestation);
  const credential = user && attestedCredential(user, attestation, publicKey);
  if (credential) return { user, organizationId, credential };
  const problem =
    attestation.kind === 'contact'
      ? `no user has \`${attestation.contact}\` as a verified contact, or the token has expired`
      : `no user has the identity of the token: issuer=${attestation.issuer} audience=${attestation.audience}`;
  throw new CoordinatorError('UNAUTHENTICATED', `${problem}: organizationId=${organizationId}`, {
    category: 'CREDENTIAL_NOT_FOUND',
  });
}

/**
 * The user of the organization that a token speaks for, if there is one.
 * @throws {CoordinatorError} FAILED_PRECONDITION if several have the contact
 */
export function attestedUser(organization: OrganizationView, attestation: Attestation): User | undefined {
  if (attestation.kind === 'identity') {
    return organization.users.get(organization.oauthOwners.get(oauthIdentity(attestation)) ?? '');
  }
  const { verificationType, contact, organizationId, logsInToIssuer } = attestation;
  // Anyone can request such a code from the auth proxy, and a mailbox must not give access to the parent.
  if (organizationId === organization.organizationId && !logsInToIssuer) return undefined;
  return userOfContact(
    organization,
    verificationType === 'OTP_TYPE_EMAIL' ? 'email' : 'phone-number',
    contact,
    'verified',
  );
}

/**
 * The user that an invitation creates, by the key of its link: nobody else may accept it.
 * @throws {CoordinatorError} UNAUTHENTICATED PUBLIC_KEY_NOT_FOUND
 */
export function invitedCaller(stamp: OwnStamp, organization: OrganizationView, now: number): Caller {
  const { organizationId } = organization;
  const publicKey = stamp.kind === 'api-key' ? stamp.publicKey : '';
  const invited = invitedBy(publicKey, organization, now);
  if (invited) return { ...invited, organizationId };
  throw publicKeyNotFound('organization', organizationId, publicKey);
}

/** The user that the invitation with this key creates, and the key as policies see it. */
export function invitedBy(
  publicKey: string,
  organization: OrganizationView,
  now: number,
): Pick<Caller, 'user' | 'credential'> | undefined {
  const invitation = invitationOfKey(organization, publicKey, now);
  if (!invitation) return undefined;
  const { invitationId: id, userId } = invitation;
  const credential = { id, userId, type: 'CREDENTIAL_TYPE_API_KEY_P256', publicKey } as const;
  return { user: invitedUser(organization, invitation), credential };
}

function publicKeyNotFound(where: string, organizationId: string, publicKey: string): CoordinatorError {
  return new CoordinatorError(
    'UNAUTHENTICATED',
    `could not find public key in ${where}: organizationId=${organizationId} publicKey=${publicKey}`,
    { category: 'PUBLIC_KEY_NOT_FOUND' },
  );
}

/** Whose credential it is in an organization; why it does not count there, if it does not. */
function callerIn(organization: OrganizationView, stamp: OwnStamp, now: number): Caller | CoordinatorError | undefined {
  const { organizationId } = organization;
  if (stamp.kind === 'webauthn') {
    const user = organization.users.get(organization.authenticatorOwners.get(stamp.credentialId) ?? '');
    const authenticator = passkeyOf(organization, stamp.credentialId);
    return user && authenticator
      ? { user, organizationId, authenticator, credential: authenticatorCredential(user, authenticator) }
      : undefined;
  }
  const standIn = testKeyCaller(organization, stamp.publicKey);
  if (standIn) return { ...standIn, organizationId };
  const user = organization.users.get(organization.apiKeyOwners.get(stamp.publicKey) ?? '');
  const key = apiKeyOf(organization, stamp.publicKey);
  if (!user || !key) return undefined;
  return refusalOf(key, stamp, now) ?? { user, organizationId, credential: apiKeyCredential(user, key) };
}

/** Why an API key does not count for the stamp that names it; undefined if it does. */
export function refusalOf(key: ApiKey, stamp: Pick<ApiKeyStamp, 'scheme'>, now: number): CoordinatorError | undefined {
  if (CURVE_OF_SCHEME[stamp.scheme] !== key.curve) {
    return new CoordinatorError(
      'UNAUTHENTICATED',
      `could not verify api key signature: the key is registered for ${key.curve}, the stamp's scheme is ${stamp.scheme}`,
      { category: 'SIGNATURE_INVALID' },
    );
  }
  if (isExpired(key, now)) {
    const end = new Date(key.createdAt + (key.expirationSeconds ?? 0) * 1000).toISOString();
    return new CoordinatorError('UNAUTHENTICATED', `expired api key: it ended at ${end}; log in again`, {
      category: 'API_KEY_EXPIRED',
    });
  }
  return undefined;
}

/**
 * The user that a test harness lets one of its keys stamp for, with the credential that the key stands for, as long as
 * the user has it; undefined for every key of a history that was not imported.
 */
export function testKeyCaller(
  { testKeys, users }: OrganizationView,
  publicKey: string,
): Pick<Caller, 'user' | 'credential'> | undefined {
  const key = testKeys?.get(publicKey);
  const user = key && users.get(key.userId);
  const credential = user && credentialsOf(user).find(({ id }) => id === key?.credentialId);
  return credential && { user, credential };
}
