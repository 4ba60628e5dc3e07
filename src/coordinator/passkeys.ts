import { CoordinatorError } from '../domain/errors.js';
import type { Stamp } from '../stamps/stamp.js';
import { passkeyOf } from '../domain/organization/credentials-of-users.js';
import type { OrganizationView } from '../domain/organization/organization.js';
import {
  checkWebAuthnChallenge,
  isBackupEligible,
  isSignedByPasskey,
  isStaleCounter,
  verifyWebAuthnStamp,
} from '../stamps/webauthn.js';
import { readingTime } from '../decide/decision-time.js';
import type { OrganizationLoader } from '../ledger/load-organization.js';
import type { Clock } from '../ports/clock.js';
import type { PasskeyCounters } from '../ports/passkeys.js';
import type { VerifiedPasskey } from '../decide/caller.js';
import { resolveCaller, type Caller } from '../decide/resolve-caller.js';
import type { Homes } from '../decide/submitters.js';

/** What verifying passkeys needs. */
export interface PasskeyPorts {
  readonly counters: PasskeyCounters;
  readonly clock: Clock;
  /** The operator's allowed origins, for organizations that have named none and whose parent has not either. */
  readonly passkeyOrigins: readonly string[];
}

/**
 * Verifies a passkey stamp against the authenticator as the organization, or its parent, knows it now.
 * @throws {CoordinatorError} UNAUTHENTICATED that names the check that failed
 */
export async function verifyPasskey(
  stamp: Extract<Stamp, { kind: 'webauthn' }>,
  body: Uint8Array,
  { organization, parent, isParentsToo = false }: Homes,
  { counters, clock, passkeyOrigins }: PasskeyPorts,
): Promise<VerifiedPasskey> {
  checkWebAuthnChallenge(stamp, body);
  const { organizationId } = organization;
  const now = readingTime(clock, organization, parent);
  const caller = resolveCaller(stamp, organization, parent, now, {
    passkeyKey: await signingKey(stamp, { organization, parent }),
    isParentsToo,
  });
  const { authenticator } = caller;
  // From the organization that the passkey belongs to: a sub-organization does not decide where its parent's passkeys
  // may be used.
  const isOwn = caller.organizationId === organizationId;
  const origins = (isOwn ? originsOf(organization) : undefined) ?? originsOf(parent) ?? passkeyOrigins;
  const { signCount } = await verifyWebAuthnStamp(
    stamp,
    body,
    authenticator!,
    origins.length > 0 ? { allowedOrigins: origins } : {},
  );
  const { publicKey, credentialId } = authenticator!;
  if (isBackupEligible(stamp)) return { publicKey, signCount };
  // The counter belongs to the passkey, not to an organization: it may have stamped elsewhere under the same parent.
  const familyId = organization.parentOrganizationId ?? organizationId;
  const highestSeen = signCount > 0 ? await counters.highest(familyId, { credentialId, publicKey }) : 0;
  return { publicKey, signCount, highestSeen };
}

/**
 * Reports a signature counter that has not grown, and returns whether it did. It may mean a copy of the passkey, or that requests arrived in another
 * order than they were stamped.
 * @throws {CoordinatorError} UNAUTHENTICATED, where counters are strict
 */
export function checkCounter(
  passkey: VerifiedPasskey | undefined,
  { organizationId, user: { userId }, authenticator }: Caller,
  counters: Pick<PasskeyCounters, 'isStrict' | 'notGrown'>,
): boolean {
  if (passkey?.highestSeen === undefined || !authenticator) return false;
  const { signCount } = passkey;
  const highestSeen = Math.max(passkey.highestSeen, authenticator.signCount);
  if (!isStaleCounter(signCount, highestSeen)) return false;
  counters.notGrown({ organizationId, userId, credentialId: authenticator.credentialId, signCount, highestSeen });
  if (!counters.isStrict) return true;
  throw new CoordinatorError(
    'UNAUTHENTICATED',
    `could not verify WebAuthN signature: signature counter ${signCount} is not above ${highestSeen}; stamp the request again`,
    { category: 'SIGNATURE_INVALID' },
  );
}

/**
 * The public key that signed, of those registered under the credential id of a stamp: a user of a sub-organization may have registered
 * that of a member of its parent. Undefined if nobody has it.
 */
export async function signingKey(
  stamp: Extract<Stamp, { kind: 'webauthn' }>,
  { organization, parent }: Homes,
): Promise<string | undefined> {
  const own = passkeyOf(organization, stamp.credentialId)?.publicKey;
  const parents = parent && passkeyOf(parent, stamp.credentialId)?.publicKey;
  if (own === undefined || parents === undefined || own === parents) return own ?? parents;
  return (await isSignedByPasskey(stamp, parents)) ? parents : own;
}

/**
 * Where passkeys of an organization may be used: set by the organization, else its parent, else the operator; if empty,
 * the default rule applies.
 */
export async function allowedOrigins(
  organization: OrganizationView,
  {
    loader,
    passkeyOrigins,
  }: { readonly loader: OrganizationLoader; readonly passkeyOrigins: PasskeyPorts['passkeyOrigins'] },
): Promise<readonly string[]> {
  const own = originsOf(organization);
  return own ?? originsOf((await loader.parentOf(organization))?.organization) ?? passkeyOrigins;
}

function originsOf(organization: OrganizationView | undefined): readonly string[] | undefined {
  const origins = organization?.features.get('FEATURE_NAME_WEBAUTHN_ORIGINS');
  return origins?.split(',').map((origin) => origin.trim());
}
