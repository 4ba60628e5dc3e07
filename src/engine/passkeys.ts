import { passkeyOf } from '../domain/organization/credentials-of-users.js';
import type { OrganizationView } from '../domain/organization/organization.js';
import type { Stamp } from '../stamps/verify.js';
import { checkWebAuthnChallenge, isSignedByPasskey, verifyWebAuthnStamp } from '../stamps/webauthn.js';
import { decisionTime } from '../decide/decision-time.js';
import type { OrganizationLoader } from '../ledger/load-organization.js';
import type { Clock } from '../ports/clock.js';
import type { PasskeyCounters } from '../ports/passkeys.js';
import { counterNotAbove, type VerifiedPasskey } from '../decide/caller.js';
import { resolveCaller } from '../decide/resolve-caller.js';
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
  const now = decisionTime(clock, organization, parent);
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
  // It has stamped elsewhere under the same parent since: the counter belongs to the passkey, not to an organization.
  const familyId = organization.parentOrganizationId ?? organizationId;
  const highest = signCount > 0 ? await counters.highest(familyId, { credentialId, publicKey }) : 0;
  if (signCount > 0 && signCount <= highest) throw counterNotAbove(signCount, highest);
  return { publicKey, signCount };
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
