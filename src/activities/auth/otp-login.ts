import { CoordinatorError } from '../../domain/errors.js';
import type { OrganizationView } from '../../domain/organization/organization.js';
import type { Login } from '../../domain/organization/quorum-members.js';
import { userOfContact, type User } from '../../domain/organization/users.js';
import { Nested, Text } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';
import {
  checkLogin,
  loginEvents,
  LoginParams,
  loginPolicyParams,
  LoginResult,
  preparedSession,
  recalledSession,
} from './login-params.js';
import { checkOtpLogin, contactKind } from './otp-params.js';
import {
  checkBound,
  checkClientSignature,
  checkLogsInHere,
  checkTokenNeverUsed,
  checkTokenUnused,
  checkUnboundLeadsHere,
  checkUnboundUnused,
  ClientSignature,
  type ProvedContact,
  provenContact,
  recalledContact,
  tokenUsed,
  verifiedToken,
} from './verification.js';

class OtpLoginParams extends LoginParams {
  @Text({ min: 1, max: 8_192, about: 'Verification token for the contact, from verify_otp.' })
  verificationToken!: string;
}

class OtpLoginIntent extends OtpLoginParams {
  @Nested(() => ClientSignature, {
    optional: true,
    about: 'Required when the token is bound to a key; signed by that key.',
  })
  clientSignature?: ClientSignature;
}

class OtpLoginIntentV2 extends OtpLoginParams {
  /** Required in this version; a lifted one may lack it. */
  @Nested(() => ClientSignature, { about: 'Signature by the key that the token is bound to.' })
  clientSignature?: ClientSignature;

  /** The first version accepts tokens that any holder can use. Not a wire field. */
  readonly takesUnboundToken?: true;
}

const resultKey = 'otpLoginResult';

/**
 * Makes the client's key a key of the user who has proved the contact, as attested by this organization or its parent.
 * The first login by a contact that the parent's own members asserted proves it.
 */
export const otpLogin = defineActivity({
  type: 'ACTIVITY_TYPE_OTP_LOGIN_V2',
  resultKey,
  summary: 'Logs in the user whose contact the token verifies.',
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
  submittedBy: 'user-or-parent',

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
    const { user, isProvedNow } = userOfLogin(organization, claims);
    // To prove a contact, a token must never have been readable by anyone else.
    if (isProvedNow) await checkTokenNeverUsed(claims, { organizations });
    else await checkUnboundUnused(claims, { organizations }, (usage) => usage !== 'USAGE_TYPE_SIGNUP');
    await checkUnboundLeadsHere(claims, { organizations }, organization, isProvedNow);
    return { claims, ...(await preparedSession(user.userId, intent, { tokens }, context)) };
  },

  recall: ({ verificationToken }, recorded) => ({
    claims: recalledContact(verificationToken),
    ...recalledSession(recorded),
  }),

  decide(intent, context, { claims, ...prepared }) {
    const { organization } = context;
    checkTokenUnused(organization, claims, 'USAGE_TYPE_LOGIN');
    const { user, isProvedNow } = userOfLogin(organization, claims);
    const events = [
      tokenUsed(claims, 'USAGE_TYPE_LOGIN'),
      ...(isProvedNow ? provenContact(user.userId, user, claims) : []),
      ...loginEvents(context, user, intent, prepared),
    ];
    const login: Login = { userId: user.userId, by: contactKind(claims.verificationType) };
    return { events, result: { session: prepared.session }, login };
  },
});

/** Who logs in, and whether the token first proves the contact here. */
interface OfLogin {
  readonly user: User;
  readonly isProvedNow: boolean;
}

/**
 * The user whose contact a token proves: a contact that was proved before, or asserted by the parent's own members. One
 * that anyone else wrote down may belong to anyone (docs/adr/0016).
 * @throws {CoordinatorError} NOT_FOUND, or FAILED_PRECONDITION if such logins are switched off
 */
function userOfLogin(organization: OrganizationView, { verificationType, contact }: ProvedContact): OfLogin {
  checkOtpLogin(organization, verificationType);
  const kind = contactKind(verificationType);
  const proved = userOfContact(organization, kind, contact, 'verified');
  if (proved) return { user: proved, isProvedNow: false };
  const asserted = userOfContact(organization, kind, contact, 'asserted');
  if (asserted) return { user: asserted, isProvedNow: true };
  throw new CoordinatorError(
    'NOT_FOUND',
    `no user of organization \`${organization.organizationId}\` has \`${contact}\` as a verified contact: ` +
      'verify it when the organization is created, or with update_user_email or update_user_phone_number',
  );
}

function isSameKey(signed: unknown, publicKey: string): boolean {
  return typeof signed === 'string' && signed.toLowerCase() === publicKey.toLowerCase();
}
