import type { Attestation } from '../domain/activity/events.js';
import { CoordinatorError } from '../domain/errors.js';
import { checkAuthProxyQuery, isAuthProxyUser } from '../domain/organization/auth-proxy.js';
import { hasLapsed } from '../domain/organization/claims.js';
import type { OrganizationView } from '../domain/organization/organization.js';
import type { Stamp } from '../stamps/verify.js';
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

/** What a submit says of who sends it, and what was verified of that. */
interface Asked {
  readonly stamp: Stamp;
  readonly version: ActivityVersion;
  readonly organizationId: string;
  readonly attestation?: Attestation | undefined;
  readonly passkey?: VerifiedPasskey | undefined;
}

/** What a passkey stamp has shown once its signature was verified. */
export interface VerifiedPasskey {
  /** The key it was verified against: COSE, base64url. */
  readonly publicKey: string;
  readonly signCount: number;
}

/**
 * Whose stamp is on a submit. Of a verb that only the parent's members submit it is looked up in the parent alone: a
 * sub-organization's users may have registered any public key.
 * @throws {CoordinatorError} UNAUTHENTICATED when it is nobody's; INVALID_ARGUMENT for a kind of stamp that is not taken here
 */
export function callerOf(
  { stamp, version, attestation }: Asked,
  organization: OrganizationView,
  parent: OrganizationView | undefined,
  now: number,
): Caller {
  const { definition, type } = version;
  const isActivity = definition.kind === 'activity';
  if (stamp.kind === 'webauthn' && isActivity && definition.apiKeyOnly) throw apiKeyOnly(type);
  if (stamp.kind === 'attested') {
    if (!attestation || !(isActivity && definition.attestedStamp)) throw attestedElsewhere(type);
    return attestedCaller(stamp, attestation, organization, now);
  }
  if (isActivity && definition.byInvitation) return invitedCaller(stamp, organization, now);
  if (isActivity && definition.byParent) return resolveCaller(stamp, parent ?? organization, undefined, now);
  return resolveCaller(stamp, organization, parent, now);
}

/** @throws {CoordinatorError} when a caller may not submit this here, whatever policies say */
export function checkMaySubmit(
  { stamp, version, organizationId, passkey }: Asked,
  caller: Caller,
  organization: OrganizationView,
  parent: OrganizationView | undefined,
): void {
  const { definition, type } = version;
  const isActivity = definition.kind === 'activity';
  if (stamp.kind === 'attested' || (isActivity && definition.byInvitation)) return;
  if (isActivity && definition.byParent) {
    if (!parent) throw membersOfParentOnly(type, undefined);
    if (isAuthProxyUser(parent, caller.user.userId)) throw membersOfParentOnly(type, parent.organizationId);
  } else checkNoProxyLogin(version, organization, caller);
  if (passkey && caller.authenticator) checkPasskeyUnchanged(passkey, caller.authenticator);
  const isOfParent = isActivity && (definition.fromParent ?? definition.byParent);
  if (caller.organizationId !== organizationId && !isOfParent) {
    throw organizationMismatch(organizationId, caller.organizationId);
  }
}

/** @throws {CoordinatorError} when a caller may not ask this query of the organization */
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
 * @throws {CoordinatorError} PERMISSION_DENIED
 */
function checkNoProxyLogin(
  { definition, type }: ActivityVersion,
  organization: OrganizationView,
  caller: Caller,
): void {
  const isLogin = definition.kind === 'activity' && (definition.fromParent || definition.ownSession);
  if (isLogin && isAuthProxyUser(organization, caller.user.userId)) throw proxyLogin(type, organization.organizationId);
}

/**
 * The signature was verified before the request waited its turn; what it was verified against may have changed since.
 * @throws {CoordinatorError} UNAUTHENTICATED
 */
function checkPasskeyUnchanged(passkey: VerifiedPasskey, authenticator: NonNullable<Caller['authenticator']>): void {
  const isCounted = passkey.signCount > 0 || authenticator.signCount > 0;
  const isStale = isCounted && passkey.signCount <= authenticator.signCount;
  if (passkey.publicKey === authenticator.publicKey && !isStale) return;
  throw counterNotAbove(passkey.signCount, authenticator.signCount);
}

/** Of a passkey that has stamped since, or was copied. */
export function counterNotAbove(signCount: number, highest: number): CoordinatorError {
  return new CoordinatorError(
    'UNAUTHENTICATED',
    `could not verify WebAuthN signature: signature counter ${signCount} is not above ${highest}; stamp the request again`,
    { category: 'SIGNATURE_INVALID' },
  );
}
