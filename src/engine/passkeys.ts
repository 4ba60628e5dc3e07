import { CoordinatorError } from '../domain/errors.js';
import type { OrganizationView } from '../domain/organization/organization.js';
import type { Stamp } from '../stamps/verify.js';
import { checkWebAuthnChallenge, verifyWebAuthnStamp } from '../stamps/webauthn.js';
import { decisionTime } from '../decide/decision-time.js';
import type { OrganizationLoader } from '../ledger/load-organization.js';
import type { Clock, PasskeyCounters } from '../ports/engine.js';
import { resolveCaller, type Caller } from '../decide/resolve-caller.js';

/** What a passkey stamp has shown once its signature was verified. */
export interface VerifiedPasskey {
  /** The key it was verified against: COSE, base64url. */
  readonly publicKey: string;
  readonly signCount: number;
}

/** What passkeys are verified with. */
interface PasskeyPorts {
  readonly loader: OrganizationLoader;
  readonly counters: PasskeyCounters;
  readonly clock: Clock;
  /** The operator's allowed origins, for organizations that have named none, and whose parent has not either. */
  readonly passkeyOrigins: readonly string[];
}

/**
 * Verifies a passkey stamp against the authenticator as the organization, or its parent, knows it now.
 * @throws {CoordinatorError} UNAUTHENTICATED that names the check that failed
 */
export async function verifyPasskey(
  stamp: Extract<Stamp, { kind: 'webauthn' }>,
  body: Uint8Array,
  organizationId: string,
  { loader, counters, clock, passkeyOrigins }: PasskeyPorts,
): Promise<VerifiedPasskey> {
  checkWebAuthnChallenge(stamp, body);
  const { organization } = await loader.load(organizationId);
  const parent = await loader.parentOf(organization);
  const now = decisionTime(clock, organization, parent?.organization);
  const caller = resolveCaller(stamp, organization, parent?.organization, now);
  const { authenticator } = caller;
  // Of the organization that the passkey belongs to: a sub-organization does not say where its parent's may be used.
  const isOwn = caller.organizationId === organization.organizationId;
  const owner = isOwn ? organization : parent!.organization;
  const origins = await allowedOrigins(owner, { loader, passkeyOrigins });
  const { signCount } = await verifyWebAuthnStamp(
    stamp,
    body,
    authenticator!,
    origins.length > 0 ? { allowedOrigins: origins } : {},
  );
  const { publicKey, credentialId } = authenticator!;
  // It has stamped elsewhere under the same parent since: a counter is the passkey's, not an organization's.
  const familyId = organization.parentOrganizationId ?? organizationId;
  const highest = signCount > 0 ? await counters.highest(familyId, { credentialId, publicKey }) : 0;
  if (signCount > 0 && signCount <= highest) throw notAbove(signCount, highest);
  return { publicKey, signCount };
}

/** Where passkeys of an organization may be used: as it says, or else its parent, or the operator; empty is the usual rule. */
export async function allowedOrigins(
  organization: OrganizationView,
  { loader, passkeyOrigins }: Pick<PasskeyPorts, 'loader' | 'passkeyOrigins'>,
): Promise<readonly string[]> {
  const own = originsOf(organization);
  return own ?? originsOf((await loader.parentOf(organization))?.organization) ?? passkeyOrigins;
}

function originsOf(organization: OrganizationView | undefined): readonly string[] | undefined {
  const origins = organization?.features.get('FEATURE_NAME_WEBAUTHN_ORIGINS');
  return origins?.split(',').map((origin) => origin.trim());
}

/**
 * The signature was verified before the request waited its turn; what it was verified against may have changed since.
 * @throws {CoordinatorError} UNAUTHENTICATED
 */
export function checkPasskeyUnchanged(
  passkey: VerifiedPasskey,
  authenticator: NonNullable<Caller['authenticator']>,
): void {
  const isCounted = passkey.signCount > 0 || authenticator.signCount > 0;
  const isStale = isCounted && passkey.signCount <= authenticator.signCount;
  if (passkey.publicKey === authenticator.publicKey && !isStale) return;
  throw notAbove(passkey.signCount, authenticator.signCount);
}

function notAbove(signCount: number, highest: number): CoordinatorError {
  return new CoordinatorError(
    'UNAUTHENTICATED',
    `could not verify WebAuthN signature: signature counter ${signCount} is not above ${highest}; stamp the request anew`,
    { category: 'SIGNATURE_INVALID' },
  );
}
