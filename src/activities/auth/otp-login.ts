import { CoordinatorError, invalidField } from '../../domain/errors.js';
import type { OrganizationView } from '../../domain/organization/organization.js';
import { userOfContact, type User } from '../../domain/organization/users.js';
import { parsePublicKey } from '../../keyring/curves.js';
import { Flag, Hex, Nested, Text } from '../../schema/fields.js';
import { defineActivity } from '../define-activity.js';
import type { VerificationClaims } from '../ports.js';
import { checkOtpLogin, contactKind } from './otp-params.js';
import { sessionKeyEvents, SessionSeconds, sessionSeconds } from './session-keys.js';
import { checkClientSignature, checkTokenUnused, ClientSignature, tokenUsed, verifiedToken } from './verification.js';

class OtpLoginParams {
  @Text({ min: 1, max: 8_192, about: 'Proof of the contact (verify_otp).' })
  verificationToken!: string;

  @Hex({ max: 130, about: "The client's P-256 key, which stamps for the user from now on." })
  publicKey!: string;

  @SessionSeconds()
  expirationSeconds?: string;

  @Flag({ optional: true, about: "Deletes the user's other keys that logins made." })
  invalidateExisting?: boolean;

  @Text({ optional: true, max: 255, about: 'Not used: this server has no session profiles; must be empty.' })
  sessionProfileId?: string;
}

class OtpLoginIntent extends OtpLoginParams {
  @Nested(() => ClientSignature, { optional: true, about: 'By the key that the token is bound to, if it is to one.' })
  clientSignature?: ClientSignature;
}

class OtpLoginIntentV2 extends OtpLoginParams {
  /** Required of this version; a lifted one may lack it. */
  @Nested(() => ClientSignature, { about: 'By the key that the token is bound to.' })
  clientSignature?: ClientSignature;

  /** The first version takes tokens that whoever holds them can use. Not a field of the wire. */
  readonly takesUnboundToken?: true;
}

class OtpLoginResult {
  @Text()
  session!: string;
}

const resultKey = 'otpLoginResult';

/** Makes the client's key a key of the user who has proved the contact, as this organization or its parent has attested. */
export const otpLogin = defineActivity({
  type: 'ACTIVITY_TYPE_OTP_LOGIN_V2',
  resultKey,
  summary: 'Logs the user in whose verified contact a verification token proves.',
  intent: OtpLoginIntentV2,
  result: OtpLoginResult,
  olderVersions: [
    {
      type: 'ACTIVITY_TYPE_OTP_LOGIN',
      resultKey,
      intent: OtpLoginIntent,
      lift: (intent: OtpLoginIntent): OtpLoginIntentV2 => ({ ...intent, takesUnboundToken: true }),
    },
  ],
  policy: { resource: 'AUTH', action: 'CREATE' },
  params: {
    session_profile_id: { type: { kind: 'string' }, from: ({ sessionProfileId = '' }) => sessionProfileId },
  },
  fromParent: true,

  check({ publicKey, sessionProfileId }) {
    parsePublicKey('CURVE_P256', publicKey, 'parameters.publicKey');
    if (sessionProfileId) {
      throw invalidField('parameters.sessionProfileId', 'names no session profile: this server has none, send none');
    }
  },

  async prepare(intent, { tokens }, context) {
    const { verificationToken, clientSignature, publicKey, expirationSeconds, takesUnboundToken } = intent;
    const { organization, now } = context;
    const claims = await verifiedToken(verificationToken, tokens, context);
    if (claims.publicKey === undefined && !takesUnboundToken) {
      throw invalidField(
        'parameters.verificationToken',
        'is bound to no key: have it issued for one (verify_otp with publicKey, or ACTIVITY_TYPE_VERIFY_OTP_V2)',
      );
    }
    await checkClientSignature(claims, clientSignature, 'USAGE_TYPE_LOGIN', tokens, ({ login }) =>
      isSameKey((login as { readonly publicKey?: unknown } | undefined)?.publicKey, publicKey),
    );
    checkTokenUnused(organization, claims, 'USAGE_TYPE_LOGIN');
    const { userId } = userWhoProved(organization, claims);
    const session = await tokens.signSession({
      userId,
      organizationId: organization.organizationId,
      publicKey: parsePublicKey('CURVE_P256', publicKey).toString('hex'),
      sessionType: 'SESSION_TYPE_READ_WRITE',
      expiresAt: now + sessionSeconds(expirationSeconds) * 1000,
    });
    return { claims, userId, session };
  },

  decide({ publicKey, expirationSeconds, invalidateExisting }, context, { claims, userId, session }) {
    const { organization } = context;
    checkTokenUnused(organization, claims, 'USAGE_TYPE_LOGIN');
    const user = userWhoProved(organization, claims);
    if (user.userId !== userId) {
      throw new CoordinatorError('ABORTED', 'the contact has passed to another user meanwhile: log in again');
    }
    const { events } = sessionKeyEvents(context, user, {
      publicKey,
      curve: 'API_KEY_CURVE_P256',
      credentialType: 'CREDENTIAL_TYPE_LOGIN',
      expirationSeconds,
      invalidateExisting,
    });
    return { events: [tokenUsed(claims, 'USAGE_TYPE_LOGIN'), ...events], result: { session } };
  },
});

/**
 * The user whose verified contact a token proves: a contact that was only written down may be anybody's.
 * @throws {CoordinatorError} NOT_FOUND, or FAILED_PRECONDITION where such logins are switched off
 */
function userWhoProved(organization: OrganizationView, { verificationType, contact }: VerificationClaims): User {
  checkOtpLogin(organization, verificationType);
  const user = userOfContact(organization, contactKind(verificationType), contact, 'verified');
  if (user) return user;
  throw new CoordinatorError(
    'NOT_FOUND',
    `no user of organization \`${organization.organizationId}\` has \`${contact}\` as a verified contact: ` +
      'prove it when the organization is created, or with update_user_email or update_user_phone_number',
  );
}

function isSameKey(signed: unknown, publicKey: string): boolean {
  return typeof signed === 'string' && signed.toLowerCase() === publicKey.toLowerCase();
}
