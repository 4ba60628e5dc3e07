import { createHash, randomUUID } from 'node:crypto';
import { sealEnvelope } from 'countersign/internal';
import { reached } from './contact-parameters.js';
import { newKey } from './trial-organization.js';
import type { Makers, Making } from './trial-parameters.js';

/**
 * What identities at OpenID providers are needed for. The coordinator itself is the issuer, for people whom its OAuth 2.0 provider
 * knows: where organizations have applications of their own, that is, without a parent.
 */
export const oauthParameters = {
  async ACTIVITY_TYPE_OAUTH2_AUTHENTICATE(making) {
    return { parameters: returned(await application(making), newKey().publicKey) };
  },
  async ACTIVITY_TYPE_CREATE_OAUTH_PROVIDERS_V2(making) {
    const oauthProviders = [await identity(making, await application(making))];
    return { parameters: { userId: making.user(), oauthProviders } };
  },
  async ACTIVITY_TYPE_DELETE_OAUTH_PROVIDERS(making) {
    const userId = making.user();
    const { providerIds } = await known(making, userId, await application(making));
    return { parameters: { userId, providerIds } };
  },
  async ACTIVITY_TYPE_OAUTH(making) {
    const { publicKey: targetPublicKey, oidcToken } = await login(making);
    return { parameters: { oidcToken, targetPublicKey } };
  },
  async ACTIVITY_TYPE_OAUTH_LOGIN(making) {
    return { parameters: await login(making) };
  },
} satisfies Makers;

/** The id of an application at the provider of examples. */
async function application({ organization }: Making): Promise<string> {
  const { oauthSecretEncryption } = await organization.sealingKeys();
  const { oauth2CredentialId } = await organization.founder.perform('ACTIVITY_TYPE_CREATE_OAUTH2_CREDENTIAL', {
    provider: 'OAUTH2_PROVIDER_EXAMPLE',
    clientId: randomUUID(),
    encryptedClientSecret: sealEnvelope('secret', oauthSecretEncryption),
  });
  return oauth2CredentialId;
}

/** What somebody brings back from the provider, to log in with this key. */
const returned = (oauth2CredentialId: string, publicKey: string) => ({
  oauth2CredentialId,
  authCode: 'code',
  redirectUri: 'https://app.example.com/back',
  codeVerifier: 'v'.repeat(43),
  nonce: createHash('sha256').update(publicKey).digest('hex'),
});

async function tokenFor({ organization }: Making, applicationId: string, publicKey: string): Promise<string> {
  const requested = returned(applicationId, publicKey);
  return (await organization.founder.perform('ACTIVITY_TYPE_OAUTH2_AUTHENTICATE', requested)).oidcToken;
}

async function identity(making: Making, applicationId: string) {
  return { providerName: 'Example', oidcToken: await tokenFor(making, applicationId, newKey().publicKey) };
}

/** That the person at the provider is this user. */
async function known(making: Making, userId: string, applicationId: string) {
  const oauthProviders = [await identity(making, applicationId)];
  const input = { userId, oauthProviders };
  return making.organization.founder.perform('ACTIVITY_TYPE_CREATE_OAUTH_PROVIDERS_V2', input);
}

/** Somebody whom the provider knows, and a token to log in as them. */
async function login(making: Making) {
  const applicationId = await application(making);
  await known(making, (await reached(making)).userId, applicationId);
  const { publicKey } = newKey();
  return { publicKey, oidcToken: await tokenFor(making, applicationId, publicKey) };
}
