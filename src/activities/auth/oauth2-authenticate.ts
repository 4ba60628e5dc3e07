import { invalidField } from '../../domain/errors.js';
import { issuedAfterMends } from '../../domain/organization/clock-mends.js';
import { existingOauth2Credential } from '../../domain/organization/oauth2-credentials.js';
import { parsePublicKey } from '../../keyring/curves.js';
import { Hex, Text, Uuid } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';
import { withoutSignature } from './token-uses.js';

class Oauth2AuthenticateIntent {
  @Uuid({ about: 'Id of the application, from create_oauth2_credential.' })
  oauth2CredentialId!: string;

  @Text({ max: 2_048, about: 'The authorization code that the provider returned.' })
  authCode!: string;

  @Text({ max: 2_048, about: 'The redirect URI of the authorization request.' })
  redirectUri!: string;

  @Text({ max: 128, about: 'The verifier for the code challenge (PKCE, RFC 7636).' })
  codeVerifier!: string;

  @Text({ max: 255, about: 'Copied into the token: the SHA-256 of the key that will log in with it, lower-case hex.' })
  nonce!: string;

  @Hex({
    optional: true,
    max: 130,
    about: "P-256 key to which the provider's access token is sealed, in the claim `encrypted_bearer_token`.",
  })
  bearerTokenTargetPublicKey?: string;
}

class Oauth2AuthenticateResult {
  @Text()
  oidcToken!: string;
}

/** Names that users of the clients know from the messages (docs/protocol.md, OAuth 2.0). */
const required = [
  ['authCode', 'auth_code'],
  ['redirectUri', 'redirect_uri'],
  ['codeVerifier', 'code_verifier'],
  ['nonce', 'nonce'],
] as const;

/**
 * Asks an OAuth 2.0 provider who someone is, and returns that as an OIDC token of ours. The provider accepts a code
 * only once: if a later step fails, the person must be sent there again.
 */
export const oauth2Authenticate = defineActivity({
  type: 'ACTIVITY_TYPE_OAUTH2_AUTHENTICATE',
  summary: 'Exchanges an authorization code from an OAuth 2.0 provider for an OIDC token issued by this server.',
  intent: Oauth2AuthenticateIntent,
  result: Oauth2AuthenticateResult,
  policy: { resource: 'AUTH', action: 'CREATE' },

  check(intent, organization) {
    for (const [field, name] of required) {
      if (intent[field] === '') throw invalidField(`parameters.${field}`, `${name} must be set`);
    }
    const { oauth2CredentialId, bearerTokenTargetPublicKey: target } = intent;
    if (target) parsePublicKey('CURVE_P256', target, 'parameters.bearerTokenTargetPublicKey');
    existingOauth2Credential(organization, oauth2CredentialId);
  },

  prepare({ oauth2CredentialId, ...requested }, { oauth2 }, { organization }) {
    const { provider, clientId, vaultId } = existingOauth2Credential(organization, oauth2CredentialId);
    const secret = { organizationId: organization.organizationId, vaultId };
    return oauth2.authenticate({ ...requested, provider, clientId, secret, ...issuedAfterMends(organization) });
  },

  recall: (_intent, recorded) => recorded.result.oidcToken,

  // A recorded token must prove nothing (docs/adr/0017).
  decide: (_intent, _context, token) => ({ events: [], result: { oidcToken: withoutSignature(token) } }),

  reveal: (_result, _ports, appended) => Promise.resolve(appended && { oidcToken: appended.prepared }),
});
