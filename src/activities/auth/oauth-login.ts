import { Text } from '../../schema/fields.js';
import { maxOidcToken } from '../credentials/oauth-params.js';
import { defineActivity } from '../define-activity.js';
import { checkLogin, checkPreparedFor, LoginParams, preparedSession, userOfIdentity } from './login-params.js';
import { sessionKeyEvents } from './session-keys.js';

class OauthLoginIntent extends LoginParams {
  @Text({ min: 1, max: maxOidcToken, about: 'OIDC token whose nonce is the SHA-256 of `publicKey` as sent.' })
  oidcToken!: string;
}

class OauthLoginResult {
  @Text()
  session!: string;
}

/** Makes the client's key a key of the user who has logged in at an OpenID provider. */
export const oauthLogin = defineActivity({
  type: 'ACTIVITY_TYPE_OAUTH_LOGIN',
  summary: 'Logs the user in whose identity an OIDC token proves.',
  intent: OauthLoginIntent,
  result: OauthLoginResult,
  policy: { resource: 'AUTH', action: 'CREATE' },
  params: {
    session_profile_id: { type: { kind: 'string' }, from: ({ sessionProfileId = '' }) => sessionProfileId },
  },
  fromParent: true,

  check(intent) {
    checkLogin(intent);
  },

  async prepare(intent, ports, context) {
    const { oidcToken, publicKey } = intent;
    const { issuer, audience, subject } = await ports.oidc.verify(oidcToken, { login: { publicKey } });
    const identity = { issuer, audience, subject };
    const { userId } = userOfIdentity(context.organization, identity);
    return { identity, ...(await preparedSession(userId, intent, ports, context)) };
  },

  decide({ publicKey, expirationSeconds, invalidateExisting }, context, { identity, ...prepared }) {
    const user = userOfIdentity(context.organization, identity);
    checkPreparedFor(prepared, user.userId);
    const { events } = sessionKeyEvents(context, user, {
      publicKey,
      curve: 'API_KEY_CURVE_P256',
      credentialType: 'CREDENTIAL_TYPE_LOGIN',
      expirationSeconds,
      invalidateExisting,
    });
    return { events, result: { session: prepared.session } };
  },
});
