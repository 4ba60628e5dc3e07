import { CoordinatorError, invalidField } from '../../domain/errors.js';
import type { OrganizationEvent, OrganizationView } from '../../domain/organization/organization.js';
import { checkIssuedSinceMend } from '../../domain/organization/clock-mends.js';
import { usedTokenKey } from '../../domain/organization/otps.js';
import { contactKey } from '../../domain/contact-key.js';
import { Hex, OneOf, Text } from '../../wire/fields.js';
import type { PrepareContext } from '../define-activity.js';
import type { PreparePorts } from '../../ports/prepare.js';
import type { VerificationClaims } from '../../ports/tokens.js';
import { checkNeverUsed, claimsOf } from './token-uses.js';

/** A signature by the key that a verification token is bound to (docs/protocol.md, client signatures). */
export class ClientSignature {
  @Hex({ max: 130, about: 'The P-256 key, compressed: the one that the verification token names.' })
  publicKey!: string;

  @OneOf(['CLIENT_SIGNATURE_SCHEME_API_P256'], { about: 'Signature scheme: ECDSA over the SHA-256 of the message.' })
  scheme!: 'CLIENT_SIGNATURE_SCHEME_API_P256';

  @Text({ min: 1, max: 65_536, about: 'The signed JSON text: usage, token and request.' })
  message!: string;

  @Hex({ max: 160, about: 'r ‖ s (64 bytes) or DER, hex.' })
  signature!: string;
}

/** The purposes of a verification token, each good once. */
export type TokenUsage = 'USAGE_TYPE_LOGIN' | 'USAGE_TYPE_SIGNUP' | 'USAGE_TYPE_UPDATE_CONTACT';

interface ProvedRequest {
  readonly verificationToken?: string;
  readonly clientSignature?: ClientSignature;
}

/** What a decision needs from a verification token. */
export type ProvedContact = Pick<
  VerificationClaims,
  'tokenId' | 'verificationType' | 'contact' | 'organizationId' | 'expiresAt'
>;

/** Claims of a token that was verified before it was recorded. */
export function recalledContact(verificationToken: string): ProvedContact {
  const { id, verification_type: type, contact, organization_id: issuer, exp } = claimsOf(verificationToken);
  return {
    tokenId: id!,
    verificationType: type as ProvedContact['verificationType'],
    contact: contact!,
    organizationId: issuer!,
    expiresAt: Number(exp),
  };
}

type TokenContext = Pick<PrepareContext, 'organization' | 'parent' | 'now' | 'checkParentsTime'>;

/**
 * Claims of a verification token issued by this organization, or by the parent for it (docs/protocol.md, verification tokens).
 * @throws {CoordinatorError} INVALID_ARGUMENT if it is invalid or expired
 */
export async function verifiedToken(
  verificationToken: string,
  tokens: PreparePorts['tokens'],
  { organization, parent, now, checkParentsTime }: TokenContext,
): Promise<VerificationClaims> {
  const claims = await tokens.verifyVerification(verificationToken, now);
  const { organizationId, parentOrganizationId } = organization;
  if (claims.organizationId !== organizationId && claims.organizationId !== parentOrganizationId) {
    throw invalidField(
      'parameters.verificationToken',
      `was issued by organization \`${claims.organizationId}\`, which is neither \`${organizationId}\` nor its parent`,
    );
  }
  if (claims.organizationId !== organizationId) checkParentsTime();
  const issuer = claims.organizationId === organizationId ? organization : parent!;
  checkIssuedSinceMend('parameters.verificationToken', claims.clockMends, issuer);
  return claims;
}

/** @throws {CoordinatorError} INVALID_ARGUMENT for a token that any holder can use, where those are not accepted */
export function checkBound(claims: VerificationClaims, intent: { readonly takesUnboundToken?: true }): void {
  if (claims.publicKey !== undefined || intent.takesUnboundToken) return;
  throw invalidField(
    'parameters.verificationToken',
    'is not bound to a key: get one that is (verify_otp with publicKey, or ACTIVITY_TYPE_VERIFY_OTP_V2)',
  );
}

/**
 * Refuses a login to the organization that issued the token if it was requested through the auth proxy: otherwise a
 * mailbox would be enough to become one of its members.
 * @throws {CoordinatorError} INVALID_ARGUMENT
 */
export function checkLogsInHere(
  { organizationId, logsInToIssuer }: VerificationClaims,
  organization: OrganizationView,
): void {
  if (organizationId !== organization.organizationId || logsInToIssuer) return;
  throw invalidField(
    'parameters.verificationToken',
    'is for a code requested through the auth proxy: it is valid for logins to sub-organizations, never to ' +
      `\`${organizationId}\` itself`,
  );
}

/**
 * Anyone who reads a token that is bound to no key can use it, so it serves one sign-up and one login, or one change of
 * a contact, wherever that is recorded.
 * @throws {CoordinatorError} FAILED_PRECONDITION
 */
export async function checkUnboundUnused(
  { publicKey, tokenId }: VerificationClaims,
  ports: Pick<PreparePorts, 'organizations'>,
  isBar?: (usage: string) => boolean,
): Promise<void> {
  if (publicKey === undefined) await checkNeverUsed({ tokenId, ...ofVerification }, ports, isBar);
}

/**
 * A token that is bound to no key logs in to one organization only: the one under the issuing parent in which its
 * contact was proved first, because someone who read the token may have proved the contact in another. If nobody has
 * proved it yet, one in which the parent has recorded it (`isProvedNow`).
 * @throws {CoordinatorError} INVALID_ARGUMENT
 */
export async function checkUnboundLeadsHere(
  { publicKey, organizationId: issuerId, verificationType, contact }: VerificationClaims,
  { organizations }: Pick<PreparePorts, 'organizations'>,
  { organizationId }: OrganizationView,
  isProvedNow: boolean,
): Promise<void> {
  if (publicKey !== undefined || issuerId === organizationId) return;
  const kind = verificationType === 'OTP_TYPE_EMAIL' ? 'EMAIL' : 'PHONE_NUMBER';
  const home = await organizations.homeOfContact(issuerId, kind, contact);
  if (home === organizationId || (home === undefined && isProvedNow)) return;
  throw invalidField(
    'parameters.verificationToken',
    `is not bound to a key, so it is valid only for the organization under \`${issuerId}\` that verified the contact first, which is not ` +
      `\`${organizationId}\`: get one for a key (verify_otp with publicKey, or ACTIVITY_TYPE_VERIFY_OTP_V2)`,
  );
}

/**
 * To prove a contact, a token must never have been readable by anyone else, so it must never have been recorded
 * anywhere.
 * @throws {CoordinatorError} FAILED_PRECONDITION
 */
export async function checkTokenNeverUsed(
  { tokenId }: VerificationClaims,
  ports: Pick<PreparePorts, 'organizations'>,
): Promise<void> {
  await checkNeverUsed({ tokenId, ...ofVerification }, ports);
}

const ofVerification = {
  what: 'verification token',
  remedy: 'verify the contact again with init_otp and verify_otp',
} as const;

/**
 * Claims of the verification token of a contact change, which must prove the new contact; undefined without a token.
 * The request has no field for a signature by the key that the token may be bound to, so the token must be unused, and
 * be the one returned in the response to the code: anyone who reads how a code was verified can have the token returned
 * again.
 * @throws {CoordinatorError} INVALID_ARGUMENT, or FAILED_PRECONDITION for a used token
 */
export async function verifiedChange(
  { verificationToken, ...contacts }: { readonly verificationToken?: string } & SignupUser,
  { tokens, organizations }: PreparePorts,
  context: PrepareContext,
): Promise<VerificationClaims | undefined> {
  if (!verificationToken) return undefined;
  const claims = await verifiedToken(verificationToken, tokens, context);
  if (!hasContact(contacts, claims)) {
    throw invalidField('parameters.verificationToken', 'verifies a different contact than the one in this request');
  }
  if (claims.toldAgain) {
    throw invalidField(
      'parameters.verificationToken',
      'came from the response to a repeated request, so it must be used with a signature by its key: verify the ' +
        'contact again with init_otp and verify_otp',
    );
  }
  checkTokenUnused(context.organization, claims, 'USAGE_TYPE_UPDATE_CONTACT');
  await checkTokenNeverUsed(claims, { organizations });
  return claims;
}

/**
 * The events by which a changed contact counts as proved; none without a token. @throws {CoordinatorError} as
 * `verifiedChange`
 */
export function changeProved(
  organization: OrganizationView,
  userId: string,
  claims: ProvedContact | undefined,
): OrganizationEvent[] {
  if (!claims) return [];
  checkTokenUnused(organization, claims, 'USAGE_TYPE_UPDATE_CONTACT');
  return [contactProved(userId, claims), tokenUsed(claims, 'USAGE_TYPE_UPDATE_CONTACT')];
}

/**
 * Claims of the verification token of a sign-up, with the client's signature checked against the request; undefined
 * without a token.
 * @throws {CoordinatorError} INVALID_ARGUMENT unless the token is ours, for this organization, and signed for
 */
export async function verifiedSignup(
  request: ProvedRequest,
  rootUsers: readonly SignupUser[],
  { tokens }: PreparePorts,
  { organization, now }: PrepareContext,
): Promise<VerificationClaims | undefined> {
  const { verificationToken, clientSignature } = request;
  if (!verificationToken) return undefined;
  const claims = await tokens.verifyVerification(verificationToken, now);
  if (claims.organizationId !== organization.organizationId) {
    throw invalidField(
      'parameters.verificationToken',
      `was issued by organization \`${claims.organizationId}\`, not by \`${organization.organizationId}\``,
    );
  }
  checkIssuedSinceMend('parameters.verificationToken', claims.clockMends, organization);
  if (!rootUsers.some((user) => hasContact(user, claims))) {
    throw invalidField('parameters.verificationToken', 'verifies a contact that no root user in this request has');
  }
  const [user, ...others] = rootUsers;
  if (others.length > 0 && (claims.publicKey ?? clientSignature) !== undefined) {
    throw invalidField(
      'parameters.verificationToken',
      `covers one root user, the one described in the signature by its key, but the request has ${rootUsers.length}: leave ` +
        'it out, and each of them verifies their contact with the first otp_login that names the sub-organization',
    );
  }
  await checkClientSignature(
    claims,
    clientSignature,
    'USAGE_TYPE_SIGNUP',
    tokens,
    (signed) => user !== undefined && saysThisUser(signed['signup'] ?? signed['signupV2'], user),
  );
  return claims;
}

/**
 * Checks the client's signature over its use of a token. A token without a key (older flows) needs none.
 * @param isSame whether the signed message asks for the same as the request
 * @throws {CoordinatorError} INVALID_ARGUMENT
 */
export async function checkClientSignature(
  { publicKey, tokenId }: VerificationClaims,
  clientSignature: ClientSignature | undefined,
  usage: TokenUsage,
  tokens: PreparePorts['tokens'],
  isSame: (signed: Readonly<Record<string, unknown>>) => boolean,
): Promise<void> {
  const field = 'parameters.clientSignature';
  if (publicKey === undefined && clientSignature === undefined) return;
  if (clientSignature === undefined) {
    throw invalidField(field, 'is required: the verification token is bound to a key, and that key must sign its use');
  }
  if (publicKey !== undefined && clientSignature.publicKey.toLowerCase() !== publicKey.toLowerCase()) {
    throw invalidField(`${field}.publicKey`, 'is not the key that the verification token is bound to');
  }
  const { message, signature } = clientSignature;
  const signer = clientSignature.publicKey.toLowerCase();
  if (!(await tokens.verifyClientSignature({ publicKey: signer, message, signature }))) {
    throw invalidField(`${field}.signature`, 'is not a valid signature of the message by this key');
  }
  const signed = membersOf(message);
  if (signed?.['tokenId'] !== tokenId || signed['type'] !== usage) {
    throw invalidField(`${field}.message`, `must contain tokenId \`${tokenId}\` and type \`${usage}\``);
  }
  if (!isSame(signed)) throw invalidField(`${field}.message`, 'does not match the request');
}

/** @throws {CoordinatorError} FAILED_PRECONDITION if the token was already used for this */
export function checkTokenUnused(
  { usedTokens }: OrganizationView,
  { tokenId }: Pick<ProvedContact, 'tokenId'>,
  usage: TokenUsage,
): void {
  if (!usedTokens.has(usedTokenKey(tokenId, usage))) return;
  throw new CoordinatorError(
    'FAILED_PRECONDITION',
    `verification token \`${tokenId}\` has already been used for ${usage}: verify the contact again with init_otp and verify_otp`,
  );
}

/** Remembers that a token was used. */
export function tokenUsed(
  { tokenId, expiresAt }: Pick<ProvedContact, 'tokenId' | 'expiresAt'>,
  usage: TokenUsage,
): OrganizationEvent {
  return { type: 'VerificationTokenUsed', data: { tokenId, usage, expiresAt } };
}

/** The event by which a user's contact counts as proved, if the token proves it. */
export function provenContact(
  userId: string,
  user: { readonly userEmail?: string; readonly userPhoneNumber?: string },
  claims: ProvedContact,
): OrganizationEvent[] {
  return hasContact(user, claims) ? [contactProved(userId, claims)] : [];
}

function contactProved(userId: string, { verificationType, organizationId }: ProvedContact): OrganizationEvent {
  const contact = verificationType === 'OTP_TYPE_EMAIL' ? 'email' : 'phone-number';
  return { type: 'UserContactVerified', data: { userId, contact, issuerOrganizationId: organizationId } };
}

function hasContact(
  { userEmail, userPhoneNumber }: { readonly userEmail?: string; readonly userPhoneNumber?: string },
  { verificationType, contact }: ProvedContact,
): boolean {
  const held = verificationType === 'OTP_TYPE_EMAIL' ? userEmail : userPhoneNumber;
  return held !== undefined && contactKey(held) === contactKey(contact);
}

interface SignupUser {
  readonly userEmail?: string;
  readonly userPhoneNumber?: string;
  readonly apiKeys?: readonly unknown[];
  readonly authenticators?: readonly unknown[];
  readonly oauthProviders?: readonly unknown[];
}

/** Whether a signed sign-up asks for this user. Absent, null and empty members are equal. */
function saysThisUser(signed: unknown, user: SignupUser): boolean {
  if (typeof signed !== 'object' || signed === null) return false;
  const { email, phoneNumber, apiKeys, authenticators, oauthProviders } = signed as Readonly<Record<string, unknown>>;
  return (
    (email ?? '') === (user.userEmail ?? '') &&
    (phoneNumber ?? '') === (user.userPhoneNumber ?? '') &&
    sameJson(apiKeys ?? [], user.apiKeys ?? []) &&
    sameJson(authenticators ?? [], user.authenticators ?? []) &&
    sameJson(oauthProviders ?? [], user.oauthProviders ?? [])
  );
}

/** Equality as JSON, regardless of the order of members; null and undefined members are absent. */
function sameJson(one: unknown, other: unknown): boolean {
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((element, index) => sameJson(element, other[index]));
  }
  if (typeof one === 'object' && one !== null && typeof other === 'object' && other !== null) {
    const [left, right] = [one, other] as readonly Readonly<Record<string, unknown>>[];
    const names = new Set([...Object.keys(left!), ...Object.keys(right!)]);
    return [...names].every((name) => sameJson(left![name], right![name]));
  }
  return (one ?? undefined) === (other ?? undefined);
}

function membersOf(message: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(message);
    return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : undefined;
  } catch {
    return undefined;
  }
}
