import { parsePublicKey } from '../../keyring/curves.js';
import { Flag, Hex, Label, Text, Uuid } from '../../wire/fields.js';
import { checkClientOfLogin, claimedIdentity, maxOidcToken } from '../credentials/oauth-params.js';
import { defineActivity } from '../define-activity.js';
import { userOfIdentity } from './login-params.js';
import { recalledKey, sessionKeyEvents, SessionSeconds } from './session-keys.js';
import { oidcTokensUsed, recalledTokens, recordedTokens } from './token-uses.js';

class OauthIntent {
  @Text({ min: 1, max: maxOidcToken, about: 'OIDC token whose nonce is the SHA-256 of `targetPublicKey` as sent.' })
  oidcToken!: string;

  @Hex({ max: 130, about: 'P-256 key to which the credentials are sealed.' })
  targetPublicKey!: string;

  @Label({ optional: true, about: 'The name of the new key; `Oauth - <Timestamp>` by default.' })
  apiKeyName?: string;

  @SessionSeconds()
  expirationSeconds?: string;

  @Flag({ optional: true, about: "Deletes the user's other keys created by oauth." })
  invalidateExisting?: boolean;
}

class OauthResult {
  @Uuid()
  userId!: string;

  @Uuid()
  apiKeyId!: string;

  @Text()
  credentialBundle!: string;
}

/** Gives credentials to the user who logged in at an OpenID provider (specification, 4.3.1). */
export const oauth = defineActivity({
  type: 'ACTIVITY_TYPE_OAUTH',
  summary: 'Issues credentials to the user identified by the OIDC token.',
  intent: OauthIntent,
  result: OauthResult,
  policy: { resource: 'AUTH', action: 'CREATE' },
  submittedBy: 'user-or-parent',

  check({ targetPublicKey }) {
    parsePublicKey('CURVE_P256', targetPublicKey, 'parameters.targetPublicKey');
  },

  async prepare({ oidcToken, targetPublicKey }, { oidc, loginSecrets, organizations }, { organization }) {
    const verified = await oidc.verify(oidcToken, { login: { publicKey: targetPublicKey } });
    await checkClientOfLogin(verified, organization, { organizations });
    const { issuer, audience, subject } = verified;
    const identity = { issuer, audience, subject };
    const recorded = recordedTokens([verified]);
    // Before a key is created for nobody.
    userOfIdentity(organization, identity);
    return { identity, ...recorded, key: await loginSecrets.newApiKey(targetPublicKey) };
  },

  recall: ({ oidcToken }, recorded) => ({
    identity: claimedIdentity(oidcToken),
    ...recalledTokens([oidcToken]),
    key: recalledKey(recorded),
  }),

  decide({ apiKeyName, expirationSeconds, invalidateExisting }, context, { identity, tokens = [], key }) {
    const user = userOfIdentity(context.organization, identity);
    const { apiKeyId, events } = sessionKeyEvents(context, user, {
      publicKey: key.publicKey,
      curve: 'API_KEY_CURVE_P256',
      credentialType: 'CREDENTIAL_TYPE_OAUTH_KEY_P256',
      apiKeyName,
      expirationSeconds,
      invalidateExisting,
    });
    const { userId } = user;
    const result = { userId, apiKeyId, credentialBundle: key.credentialBundle };
    return {
      events: [...events, ...oidcTokensUsed(tokens, 'USAGE_TYPE_OIDC_LOGIN')],
      result,
      login: { userId, by: 'identity' },
    };
  },
});
