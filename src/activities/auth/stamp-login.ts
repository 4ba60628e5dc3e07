import { existingUser } from '../../domain/organization/users.js';
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
import { checkOtpLogin } from './otp-params.js';
import { checkTokenUnused, tokenUsed } from './verification.js';

class StampLoginIntent extends LoginParams {}

/**
 * Makes the client's key a key of the user who stamped the request: with a key, a passkey, or a token that vouches for
 * the key. A verification token serves one login, as with otp_login.
 */
export const stampLogin = defineActivity({
  type: 'ACTIVITY_TYPE_STAMP_LOGIN',
  summary: 'Logs in the user who stamped the request.',
  intent: StampLoginIntent,
  result: LoginResult,
  policy: { resource: 'AUTH', action: 'CREATE' },
  params: loginPolicyParams<StampLoginIntent>(),
  submittedBy: 'user-who-logs-in',
  stamps: ['api-key', 'webauthn', 'attested'],

  check(intent) {
    checkLogin(intent);
  },

  prepare: (intent, ports, context) => preparedSession(context.submitterId, intent, ports, context),

  recall: (_intent, recorded) => recalledSession(recorded),

  decide(intent, context, prepared) {
    const { organization, submitterId, attestation } = context;
    const token = attestation?.kind === 'contact' ? attestation : undefined;
    if (token) {
      checkOtpLogin(organization, token.verificationType);
      checkTokenUnused(organization, token, 'USAGE_TYPE_LOGIN');
    }
    const events = loginEvents(context, existingUser(organization, submitterId), intent, prepared);
    return {
      events: [...(token ? [tokenUsed(token, 'USAGE_TYPE_LOGIN')] : []), ...events],
      result: { session: prepared.session },
    };
  },
});
