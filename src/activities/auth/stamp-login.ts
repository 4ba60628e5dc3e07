import { existingUser } from '../../domain/organization/users.js';
import { Text } from '../../schema/fields.js';
import { defineActivity } from '../define-activity.js';
import { checkLogin, checkPreparedFor, LoginParams, preparedSession } from './login-params.js';
import { checkOtpLogin } from './otp-params.js';
import { sessionKeyEvents } from './session-keys.js';
import { checkTokenUnused, tokenUsed } from './verification.js';

class StampLoginIntent extends LoginParams {}

class StampLoginResult {
  @Text()
  session!: string;
}

/**
 * Makes the client's key a key of whoever has stamped the request: with a key, a passkey, or a token that vouches for the
 * key. A verification token serves for one login, as with otp_login.
 */
export const stampLogin = defineActivity({
  type: 'ACTIVITY_TYPE_STAMP_LOGIN',
  summary: 'Logs in the user who has stamped the request.',
  intent: StampLoginIntent,
  result: StampLoginResult,
  policy: { resource: 'AUTH', action: 'CREATE' },
  params: {
    session_profile_id: { type: { kind: 'string' }, from: ({ sessionProfileId = '' }) => sessionProfileId },
  },
  ownSession: true,
  whereTheCredentialLives: true,
  attestedStamp: true,

  check(intent) {
    checkLogin(intent);
  },

  prepare: (intent, ports, context) => preparedSession(context.submitterId, intent, ports, context),

  decide({ publicKey, expirationSeconds, invalidateExisting }, context, prepared) {
    const { organization, submitterId, attestation } = context;
    checkPreparedFor(prepared, submitterId);
    const token = attestation?.kind === 'contact' ? attestation : undefined;
    if (token) {
      checkOtpLogin(organization, token.verificationType);
      checkTokenUnused(organization, token, 'USAGE_TYPE_LOGIN');
    }
    const { events } = sessionKeyEvents(context, existingUser(organization, submitterId), {
      publicKey,
      curve: 'API_KEY_CURVE_P256',
      credentialType: 'CREDENTIAL_TYPE_LOGIN',
      expirationSeconds,
      invalidateExisting,
    });
    return {
      events: [...(token ? [tokenUsed(token, 'USAGE_TYPE_LOGIN')] : []), ...events],
      result: { session: prepared.session },
    };
  },
});
