import { oauthIdentity } from '../../domain/organization/oauth-identity.js';
import type { OrganizationView } from '../../domain/organization/organization.js';
import { userOfContact, type User } from '../../domain/organization/users.js';
import { Text } from '../../wire/fields.js';
import { newCredentials } from '../credentials/credential-params.js';
import { checkClientOfLogin, claimedIdentity, maxOidcToken, type NamedIdentity } from '../credentials/oauth-params.js';
import { linkingEmail } from '../credentials/social-linking.js';
import { defineActivity } from '../define-activity.js';
import {
  checkLogin,
  loginEvents,
  LoginParams,
  loginPolicyParams,
  LoginResult,
  preparedSession,
  recalledSession,
  userOfIdentity,
} from './login-params.js';
import { claimsOf, oidcTokensUsed, recalledTokens, recordedTokens } from './token-uses.js';

class OauthLoginIntent extends LoginParams {
  @Text({ min: 1, max: maxOidcToken, about: 'OIDC token whose nonce is the SHA-256 of `publicKey` as sent.' })
  oidcToken!: string;
}

/**
 * Makes the client's key a key of the user who logged in at an OpenID provider. An identity that nobody has yet is
 * added to the user who has proved its e-mail address, if the parent lists its audience.
 */
export const oauthLogin = defineActivity({
  type: 'ACTIVITY_TYPE_OAUTH_LOGIN',
  summary: 'Logs in the user identified by the OIDC token.',
  intent: OauthLoginIntent,
  result: LoginResult,
  policy: { resource: 'AUTH', action: 'CREATE' },
  params: loginPolicyParams<OauthLoginIntent>(),
  submittedBy: 'user-or-parent',

  check(intent) {
    checkLogin(intent);
  },

  async prepare(intent, ports, context) {
    const { oidcToken, publicKey } = intent;
    const { organization } = context;
    const verified = await ports.oidc.verify(oidcToken, { login: { publicKey } });
    await checkClientOfLogin(verified, organization, ports);
    const recorded = recordedTokens([verified]);
    const { issuer, audience, subject } = verified;
    const identity = { issuer, audience, subject };
    const isKnown = organization.oauthOwners.has(oauthIdentity(identity));
    const email = isKnown ? undefined : await linkingEmail(verified, organization, ports);
    const { userId } = userOfLogin(organization, identity, email);
    return { identity, email, ...recorded, ...(await preparedSession(userId, intent, ports, context)) };
  },

  recall: ({ oidcToken }, recorded) => ({
    identity: claimedIdentity(oidcToken),
    // Requested only if the login adds the identity to the user.
    email: recorded.all('OauthProviderCreated').length > 0 ? claimsOf(oidcToken)['email'] : undefined,
    ...recalledTokens([oidcToken]),
    ...recalledSession(recorded),
  }),

  decide(intent, context, { identity, email, tokens = [], ...prepared }) {
    const { organization } = context;
    const user = userOfLogin(organization, identity, email);
    const isKnown = organization.oauthOwners.has(oauthIdentity(identity));
    const linked = isKnown ? [] : [{ providerName: new URL(identity.issuer).host, ...identity }];
    const links = newCredentials(context).oauthProviders(user, linked, 'parameters.oidcToken').events;
    return {
      events: [
        ...links,
        ...loginEvents(context, user, intent, prepared),
        ...oidcTokensUsed(tokens, 'USAGE_TYPE_OIDC_LOGIN'),
      ],
      result: { session: prepared.session },
      login: { userId: user.userId, by: isKnown ? 'identity' : 'email' },
    };
  },
});

type Identity = Omit<NamedIdentity, 'providerName'>;

/** The user with the identity, or else the user who has proved the e-mail address that it may be linked by. */
function userOfLogin(organization: OrganizationView, identity: Identity, email: string | undefined): User {
  const isKnown = organization.oauthOwners.has(oauthIdentity(identity));
  const linked = isKnown || email === undefined ? undefined : userOfContact(organization, 'email', email, 'verified');
  return linked ?? userOfIdentity(organization, identity);
}
