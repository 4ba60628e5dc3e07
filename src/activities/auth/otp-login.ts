import { CoordinatorError } from '../../domain/errors.js';
import type { OrganizationView } from '../../domain/organization/organization.js';
import type { Login } from '../../domain/organization/quorum-members.js';
import { userOfContact, type User } from '../../domain/organization/users.js';
import { Nested, Text } from '../../schema/fields.js';
import { defineActivity } from '../define-activity.js';
import type { VerificationClaims } from '../ports.js';
import {
  checkLogin,
  loginEvents,
  LoginParams,
  loginPolicyParams,
  LoginResult,
  preparedSession,
} from './login-params.js';
import { checkOtpLogin, contactKind } from './otp-params.js';
import {
  checkBound,
  checkClientSignature,
  checkLogsInHere,
  checkTokenUnused,
  checkUnboundLeadsHere,
  checkUnboundUnused,
  ClientSignature,
  tokenUsed,
  verifiedToken,
} from './verification.js';

class OtpLoginParams extends LoginParams {
  @Text({ min: 1, max: 8_192, about: 'Proof of the contact (verify_otp).' })
  verificationToken!: string;
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

const resultKey = 'otpLoginResult';

/** Makes the client's key a key of the user who has proved the contact, as this organization or its parent has attested. */
export const otpLogin = defineActivity({
  type: 'ACTIVITY_TYPE_OTP_LOGIN_V2',
  resultKey,
  summary: 'Logs the user in whose verified contact a verification token proves.',
  intent: OtpLoginIntentV2,
  result: LoginResult,
  olderVersions: [
    {
      type: 'ACTIVITY_TYPE_OTP_LOGIN',
      resultKey,
      intent: OtpLoginIntent,
      lift: (intent: OtpLoginIntent): OtpLoginIntentV2 => ({ ...intent, takesUnboundToken: true }),
    },
  ],
  policy: { resource: 'AUTH', action: 'CREATE' },
  params: loginPolicyParams<OtpLoginIntentV2>(),
  fromParent: true,

  check(intent) {
    checkLogin(intent);
  },

  async prepare(intent, { tokens, organizations }, context) {
    const { verificationToken, clientSignature, publicKey } = intent;
    const { organization } = context;
    const claims = await verifiedToken(verificationToken, tokens, context);
    checkBound(claims, intent);
    checkLogsInHere(claims, organization);
    await checkClientSignature(claims, clientSignature, 'USAGE_TYPE_LOGIN', tokens, ({ login }) =>
      isSameKey((login as { readonly publicKey?: unknown } | undefined)?.publicKey, publicKey),
    );
    checkTokenUnused(organization, claims, 'USAGE_TYPE_LOGIN');
    await checkUnboundUnused(claims, { organizations }, (usage) => usage !== 'USAGE_TYPE_SIGNUP');
    await checkUnboundLeadsHere(claims, { organizations }, organization);
    const { userId } = userWhoProved(organization, claims);
    return { claims, ...(await preparedSession(userId, intent, { tokens }, context)) };
  },

  decide(intent, context, { claims, ...prepared }) {
    const { organization } = context;
    checkTokenUnused(organization, claims, 'USAGE_TYPE_LOGIN');
    const user = userWhoProved(organization, claims);
    const events = loginEvents(context, user, intent, prepared);
    const login: Login = { userId: user.userId, by: contactKind(claims.verificationType) };
    return { events: [tokenUsed(claims, 'USAGE_TYPE_LOGIN'), ...events], result: { session: prepared.session }, login };
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
