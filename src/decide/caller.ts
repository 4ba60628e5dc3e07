import type { Attestation } from '../domain/activity/events.js';
import type { Stamp } from '../stamps/stamp.js';
import { CoordinatorError } from '../domain/errors.js';
import { checkAuthProxyQuery, isAuthProxyUser } from '../domain/organization/auth-proxy.js';
import { hasLapsed } from '../domain/organization/claims.js';
import type { OrganizationView } from '../domain/organization/organization.js';
import {
  apiKeyOnly,
  attestedElsewhere,
  membersOfParentOnly,
  organizationDeleted,
  organizationMismatch,
  proxyLogin,
  signUpLapsed,
} from './refusals.js';
import type { ActivityVersion } from './registry.js';
import { attestedCaller, invitedCaller, resolveCaller, type Caller } from './resolve-caller.js';
import { homesOf, stampsOf, submittersOf } from './submitters.js';

/** What a submit says about its sender, and what was verified of that. */
interface Asked {
  readonly stamp: Stamp;
  readonly version: ActivityVersion;
  readonly organizationId: string;
  readonly attestation?: Attestation | undefined;
  readonly passkey?: VerifiedPasskey | undefined;
}

/** What a passkey stamp proved once its signature was verified. */
export interface VerifiedPasskey {
  /** The public key that verified it: COSE, base64url. */
  readonly publicKey: string;
  readonly signCount: number;
  /** The highest counter seen under the same parent; undefined if the counters of this passkey say nothing. */
  readonly highestSeen?: number | undefined;
}

/**
 * Whose stamp is on a submit.
 * @throws {CoordinatorError} UNAUTHENTICATED when it is nobody's; INVALID_ARGUMENT for a kind of stamp that is not taken here
 */
export function callerOf(
  { stamp, version, attestation, passkey }: Asked,
  organization: OrganizationView,
  parent: OrganizationView | undefined,
  now: number,
): Caller {
  const { definition, type } = version;
  checkStampTaken(stamp, version);
  if (stamp.kind === 'attested') {
    if (!attestation) throw attestedElsewhere(type);
    return attestedCaller(stamp, attestation, organization, now);
  }
  if (submittersOf(definition).is === 'invited') return invitedCaller(stamp, organization, now);
  const { isParentsToo = false, ...homes } = homesOf(definition, organization, parent);
  const between = { passkeyKey: passkey?.publicKey, isParentsToo };
  return resolveCaller(stamp, homes.organization, homes.parent, now, between);
}

/** @throws {CoordinatorError} UNAUTHENTICATED for a kind of stamp that a verb does not take */
export function checkStampTaken({ kind }: Stamp, { definition, type }: ActivityVersion): void {
  if (stampsOf(definition).includes(kind)) return;
  throw kind === 'attested' ? attestedElsewhere(type) : apiKeyOnly(type);
}

/** @throws {CoordinatorError} if the caller may not submit this here, whatever policies say */
export function checkMaySubmit(
  { stamp, version, organizationId, passkey }: Asked,
  caller: Caller,
  organization: OrganizationView,
  parent: OrganizationView | undefined,
): void {
  const { definition, type } = version;
  const { is, parents } = submittersOf(definition);
  if (stamp.kind === 'attested' || is === 'invited') return;
  if (parents === 'only' && !parent) throw membersOfParentOnly(type, undefined);
  checkProxy(version, homesOf(definition, organization, parent).organization, caller);
  if (passkey && caller.authenticator) checkPasskeyUnchanged(passkey, caller.authenticator);
  if (caller.organizationId !== organizationId && parents === 'not') {
    throw organizationMismatch(organizationId, caller.organizationId);
  }
}

/** @throws {CoordinatorError} if the caller may not send this query to the organization */
export function checkMayRead(
  path: string,
  caller: Caller,
  organization: OrganizationView,
  parent: OrganizationView | undefined,
  now: number,
): void {
  const { organizationId } = organization;
  const isOwn = caller.organizationId === organizationId;
  if (isOwn && organization.isDeleted) throw organizationDeleted(organizationId);
  if (isOwn && hasLapsed(organization, now)) throw signUpLapsed(organizationId);
  const home = isOwn ? organization : parent;
  if (home) checkAuthProxyQuery(home, caller.user.userId, path);
}

/**
 * The key of an auth proxy speaks for strangers: it logs people in to sub-organizations, and nobody to its own organization.
 * @param home where the credential is looked up first
 * @throws {CoordinatorError} PERMISSION_DENIED
 */
function checkProxy({ definition, type }: ActivityVersion, home: OrganizationView, { user }: Caller): void {
  const { proxy } = submittersOf(definition);
  if (proxy === 'as-policies-say' || !isAuthProxyUser(home, user.userId)) return;
  throw (proxy === 'nothing' ? membersOfParentOnly : proxyLogin)(type, home.organizationId);
}

/**
 * The signature was verified before the request was queued; the credential may have changed since.
 * @throws {CoordinatorError} UNAUTHENTICATED
 */
function checkPasskeyUnchanged(passkey: VerifiedPasskey, authenticator: NonNullable<Caller['authenticator']>): void {
  if (passkey.publicKey === authenticator.publicKey) return;
  throw new CoordinatorError(
    'UNAUTHENTICATED',
    'could not verify WebAuthN signature: the passkey was replaced meanwhile; stamp the request again',
    { category: 'SIGNATURE_INVALID' },
  );
}
