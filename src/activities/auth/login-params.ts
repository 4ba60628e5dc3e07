import { CoordinatorError, invalidField } from '../../domain/errors.js';
import type { CredentialEvent } from '../../domain/organization/credentials.js';
import { oauthIdentity } from '../../domain/organization/oauth-identity.js';
import type { OrganizationView } from '../../domain/organization/organization.js';
import { existingUser, type User } from '../../domain/organization/users.js';
import { parsePublicKey } from '../../keyring/curves.js';
import { Flag, Hex, Text } from '../../wire/fields.js';
import type { DecideContext, PrepareContext } from '../define-activity.js';
import type { RecordedActivity } from '../recorded-activity.js';
import type { OidcIdentity } from '../../ports/oidc.js';
import type { PreparePorts } from '../../ports/prepare.js';
import { sessionKeyEvents, SessionSeconds, sessionSeconds } from './session-keys.js';

/** Fields of every login with the client's own key (docs/protocol.md, sessions). */
export class LoginParams {
  @Hex({ max: 130, about: "The client's P-256 key, which can stamp for the user from now on." })
  publicKey!: string;

  @SessionSeconds()
  expirationSeconds?: string;

  @Flag({ optional: true, about: "Deletes the user's other keys created by logins." })
  invalidateExisting?: boolean;

  @Text({ optional: true, max: 255, about: 'Not used: this server has no session profiles; must be empty.' })
  sessionProfileId?: string;
}

/** What policies see of a login. */
export const loginPolicyParams = <Intent extends LoginParams>() =>
  ({
    session_profile_id: { type: { kind: 'string' }, from: ({ sessionProfileId = '' }: Intent) => sessionProfileId },
  }) as const;

export class LoginResult {
  @Text()
  session!: string;
}

/** @throws {CoordinatorError} INVALID_ARGUMENT for an invalid key, or for a session profile */
export function checkLogin({ publicKey, sessionProfileId }: LoginParams): void {
  parsePublicKey('CURVE_P256', publicKey, 'parameters.publicKey');
  if (sessionProfileId) {
    throw invalidField(
      'parameters.sessionProfileId',
      'names no session profile: this server has none, so leave it empty',
    );
  }
}

/** A session for a user, for a key that `decide` is about to record. */
export interface PreparedSession {
  readonly userId: string;
  /** The session token (docs/protocol.md, sessions). */
  readonly session: string;
}

/** Signs the session of a login. */
export async function preparedSession(
  userId: string,
  { publicKey, expirationSeconds }: LoginParams,
  { tokens }: Pick<PreparePorts, 'tokens'>,
  { organization, now }: Pick<PrepareContext, 'organization' | 'now'>,
): Promise<PreparedSession> {
  const session = await tokens.signSession({
    userId,
    organizationId: organization.organizationId,
    publicKey: parsePublicKey('CURVE_P256', publicKey).toString('hex'),
    sessionType: 'SESSION_TYPE_READ_WRITE',
    expiresAt: now + sessionSeconds(expirationSeconds) * 1000,
  });
  return { userId, session };
}

/** Output of `preparedSession`. */
export function recalledSession(recorded: RecordedActivity<LoginResult>): PreparedSession {
  return { userId: recorded.first('ApiKeyCreated').userId, session: recorded.result.session };
}

/**
 * The events by which a login gives its key to the user it was prepared for.
 * @throws {CoordinatorError} ABORTED if it would now go to another user; otherwise like `sessionKeyEvents`
 */
export function loginEvents(
  context: DecideContext,
  user: User,
  { publicKey, expirationSeconds, invalidateExisting }: LoginParams,
  prepared: PreparedSession,
): CredentialEvent[] {
  if (prepared.userId !== user.userId) {
    throw new CoordinatorError('ABORTED', 'the account for this login changed during the request: log in again');
  }
  const curve = 'API_KEY_CURVE_P256';
  const credentialType = 'CREDENTIAL_TYPE_LOGIN';
  return sessionKeyEvents(context, user, { publicKey, curve, credentialType, expirationSeconds, invalidateExisting })
    .events;
}

/** The user with a verified identity. @throws {CoordinatorError} INVALID_ARGUMENT INVALID_OIDC_TOKEN */
export function userOfIdentity(
  organization: OrganizationView,
  identity: Pick<OidcIdentity, 'issuer' | 'audience' | 'subject'>,
): User {
  const userId = organization.oauthOwners.get(oauthIdentity(identity));
  if (userId !== undefined) return existingUser(organization, userId);
  const { issuer, audience } = identity;
  throw new CoordinatorError(
    'INVALID_ARGUMENT',
    `INVALID_OIDC_TOKEN: no user of organization \`${organization.organizationId}\` has the identity of this token at issuer ` +
      `\`${issuer}\` for audience \`${audience}\`: add it to the user with create_oauth_providers`,
    { category: 'INVALID_OIDC_TOKEN' },
  );
}
