import { sealEnvelope } from 'countersign/internal';
import type { Makers, Making } from './trial-parameters.js';
import { sealedProviderKey } from './trial-secrets.js';

/** An address that nobody has: no name is looked up, and a coordinator of examples delivers nothing. */
const url = 'https://[3ffe::1]/hook';
const hook = { url, name: 'Made by an example' };

/** What is kept for providers and receivers outside, none of whom it calls. */
export const providerParameters = {
  async ACTIVITY_TYPE_CREATE_OAUTH2_CREDENTIAL(making) {
    return { parameters: await application(making) };
  },
  async ACTIVITY_TYPE_UPDATE_OAUTH2_CREDENTIAL(making) {
    return { parameters: { ...(await applicationIn(making)), ...(await application(making)) } };
  },
  async ACTIVITY_TYPE_DELETE_OAUTH2_CREDENTIAL(making) {
    return { parameters: await applicationIn(making) };
  },
  async ACTIVITY_TYPE_CREATE_FIAT_ON_RAMP_CREDENTIAL(making) {
    return { parameters: await account(making) };
  },
  async ACTIVITY_TYPE_UPDATE_FIAT_ON_RAMP_CREDENTIAL(making) {
    return { parameters: { ...(await accountIn(making)), ...(await account(making)) } };
  },
  async ACTIVITY_TYPE_DELETE_FIAT_ON_RAMP_CREDENTIAL(making) {
    return { parameters: await accountIn(making) };
  },
  async ACTIVITY_TYPE_CREATE_WEBHOOK_ENDPOINT() {
    return { parameters: hook };
  },
  async ACTIVITY_TYPE_UPDATE_WEBHOOK_ENDPOINT(making) {
    return { parameters: { ...(await hookIn(making)), name: 'Renamed by an example' } };
  },
  async ACTIVITY_TYPE_DELETE_WEBHOOK_ENDPOINT(making) {
    return { parameters: await hookIn(making) };
  },
} satisfies Makers;

async function application({ organization }: Making) {
  const { oauthSecretEncryption } = await organization.sealingKeys();
  const encryptedClientSecret = sealEnvelope('secret', oauthSecretEncryption);
  return { provider: 'OAUTH2_PROVIDER_X', clientId: 'made-by-an-example', encryptedClientSecret };
}

async function applicationIn(making: Making) {
  return making.organization.founder.perform('ACTIVITY_TYPE_CREATE_OAUTH2_CREDENTIAL', await application(making));
}

async function account({ organization }: Making) {
  const { onRampEncryption } = await organization.sealingKeys();
  return {
    onrampProvider: 'FIAT_ON_RAMP_PROVIDER_BETA' as const,
    publishableApiKey: 'made-by-an-example',
    encryptedSecretApiKey: await sealedProviderKey('secret', onRampEncryption),
  };
}

async function accountIn(making: Making) {
  const { founder } = making.organization;
  const made = await founder.perform('ACTIVITY_TYPE_CREATE_FIAT_ON_RAMP_CREDENTIAL', await account(making));
  // The intents spell it otherwise than the result.
  return { fiatOnrampCredentialId: made.fiatOnRampCredentialId };
}

async function hookIn({ organization: { founder } }: Making) {
  return { endpointId: (await founder.perform('ACTIVITY_TYPE_CREATE_WEBHOOK_ENDPOINT', hook)).endpointId };
}
