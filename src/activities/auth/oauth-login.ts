import { Text } from '../../schema/fields.js';
import { maxOidcToken } from '../credentials/oauth-params.js';
import { defineActivity } from '../define-activity.js';
import {
  checkLogin,
  loginEvents,
  LoginParams,
  loginPolicyParams,
  LoginResult,
  preparedSession,
  userOfIdentity,
} from './login-params.js';

class OauthLoginIntent extends LoginParams {
  @Text({ min: 1, max: maxOidcToken, about: 'OIDC token whose nonce is the SHA-256 of `publicKey` as sent.' })
  oidcToken!: string;
}

/** Makes the client's key a key of the user who has logged in at an OpenID provider. */
export const oauthLogin = defineActivity({
  type: 'ACTIVITY_TYPE_OAUTH_LOGIN',
  summary: 'Logs the user in whose identity an OIDC token proves.',
  intent: OauthLoginIntent,
  result: LoginResult,
  policy: { resource: 'AUTH', action: 'CREATE' },
  params: loginPolicyParams<OauthLoginIntent>(),
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

  decide(intent, context, { identity, ...prepared }) {
    const user = userOfIdentity(context.organization, identity);
    return { events: loginEvents(context, user, intent, prepared), result: { session: prepared.session } };
  },
});
