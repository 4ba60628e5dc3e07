import { Writable } from 'node:stream';
import { decryptCredentialBundle, encryptOauth2ClientSecret, generateP256KeyPair } from '@turnkey/crypto';
import { createRemoteJWKSet, jwtVerify } from 'jose';
import type { ActivityEnvelope } from '../../src/wire/envelope.js';
import { organizationStream } from '../../src/domain/organization/organization.js';
import { guardedFetch } from '../../src/http-client/guarded-fetch.js';
import { OidcVerifier } from '../../src/oidc/verify-token.js';
import { startCoordinator, StampingClient, submitPath, type TestCoordinator } from '../../src/testing/index.js';
import { nonceFor } from '../oidc/real-issuer.js';
import { exchange, refusal } from './exchange.js';
import { clientSecret, IdentityProvider } from './identity-provider.js';
import { discoveryKeys, loginService, resultOf, sdkClient } from './login-world.js';
import { claimsOf } from './one-time-codes.js';

const redirectUri = 'https://app.example/back';
const codeVerifier = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk';

let identities: IdentityProvider;
let coordinator: TestCoordinator;
let applications = 0;

beforeAll(async () => {
  identities = await IdentityProvider.start();
  coordinator = await startCoordinator({ at: new Date(), settings: identities.settings });
});
afterAll(async () => {
  await coordinator.close();
  await identities.close();
});
afterEach(() => {
  identities.trouble = undefined;
});

const sealed = async (secret = clientSecret) =>
  encryptOauth2ClientSecret(secret, (await discoveryKeys(coordinator))['oauthSecretEncryption']);

/** Registers an application at a provider; logs people in with it. */
async function application(provider = 'OAUTH2_PROVIDER_X', secret = clientSecret) {
  const clientId = `app ${++applications}: +/%`;
  const { client } = coordinator;
  const asked = { provider, clientId, encryptedClientSecret: await sealed(secret) };
  const { oauth2CredentialId } = resultOf<{ oauth2CredentialId: string }>(
    await client.submit('ACTIVITY_TYPE_CREATE_OAUTH2_CREDENTIAL', asked),
  );
  return {
    clientId,
    oauth2CredentialId,
    newCode: (personId = '123456789') => identities.newCode({ personId, clientId, redirectUri, codeVerifier }),
    async authenticate(authCode: string, more: object = {}, by = client) {
      const intent = { oauth2CredentialId, authCode, redirectUri, codeVerifier, nonce: 'ab'.repeat(32), ...more };
      return resultOf(await by.submit('ACTIVITY_TYPE_OAUTH2_AUTHENTICATE', intent))['oidcToken']!;
    },
  };
}

test('a login at X leads to a session, with the published clients, and without a request to ourselves', async () => {
  const sdk = sdkClient(coordinator, coordinator.client.key);
  const clientId = 'the app';
  const { oauth2CredentialId } = await sdk.createOauth2Credential({
    provider: 'OAUTH2_PROVIDER_X',
    clientId,
    encryptedClientSecret: await sealed(),
  });
  expect(await sdk.listOauth2Credentials({})).toMatchObject({ oauth2Credentials: [{ oauth2CredentialId, clientId }] });
  const service = sdkClient(coordinator, (await loginService(coordinator)).key);
  const token = async (nonce: string) => {
    const authCode = identities.newCode({ personId: '2244994945', clientId, redirectUri, codeVerifier });
    const asked = { oauth2CredentialId, authCode, redirectUri, codeVerifier, nonce };
    return (await service.oauth2Authenticate(asked)).oidcToken;
  };
  const { subOrganizationId: organizationId } = await sdk.createSubOrganization({
    subOrganizationName: 'Ann',
    rootUsers: [
      {
        userName: 'Ann',
        apiKeys: [],
        authenticators: [],
        oauthProviders: [{ providerName: 'X', oidcToken: await token('any') }],
      },
    ],
    rootQuorumThreshold: 1,
  });
  const key = coordinator.newKey();
  const oidcToken = await token(nonceFor(key.publicKey));
  const seconds = Math.floor(coordinator.clock.now() / 1000);
  expect(claimsOf(oidcToken)).toEqual({
    iss: coordinator.url,
    aud: clientId,
    sub: 'x:2244994945',
    nonce: nonceFor(key.publicKey),
    iat: seconds,
    exp: seconds + 300,
    // Whose mended clock ends it.
    organization_id: coordinator.organizationId,
  });
  await service.oauthLogin({ organizationId, oidcToken, publicKey: key.publicKey });
  const ann = new StampingClient(coordinator.url, organizationId, key, coordinator.clock);
  expect(await ann.query('whoami')).toMatchObject({ organizationId, username: 'Ann' });
  // Nobody has asked for our keys, as the next test does.
  expect((await exchange(`${coordinator.url}/metrics`)).text).not.toContain('/.well-known/');
});

test('the token is one that anybody can check: by discovery, and with a library of others', async () => {
  const app = await application();
  const token = await app.authenticate(app.newCode('77'));
  const { body, headers } = await exchange(`${coordinator.url}/.well-known/openid-configuration`);
  expect(headers.get('content-type')).toMatch(/^application\/json/);
  const { issuer, jwks_uri: jwksUri } = body as { issuer: string; jwks_uri: string };
  expect(issuer).toBe(coordinator.url);
  const { payload, protectedHeader } = await jwtVerify(token, createRemoteJWKSet(new URL(jwksUri)), {
    issuer,
    audience: app.clientId,
    currentDate: new Date(coordinator.clock.now()),
  });
  expect([payload.sub, protectedHeader.alg]).toEqual(['x:77', 'ES256']);
  const { keys } = (await exchange(jwksUri)).body as { keys: readonly object[] };
  expect(Object.keys(keys[0]!).toSorted()).toEqual(['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y']);
  const elsewhere = new OidcVerifier({ clock: coordinator.clock, fetch: guardedFetch({ allowPrivateNetwork: true }) });
  expect(await elsewhere.verify(token, 'registration')).toMatchObject({ issuer, subject: 'x:77' });
  expect((await exchange(`${coordinator.url}/metrics`)).text).toContain('/.well-known/');
});

test('a token of ours is over after five minutes', async () => {
  const own = await startCoordinator({ settings: { ...identities.settings, PUBLIC_URL: 'https://login.example' } });
  try {
    const body = { provider: 'OAUTH2_PROVIDER_X', clientId: 'short', encryptedClientSecret: '' };
    const key = (await discoveryKeys(own))['oauthSecretEncryption'];
    body.encryptedClientSecret = await encryptOauth2ClientSecret(clientSecret, key);
    const { oauth2CredentialId } = resultOf(await own.client.submit('ACTIVITY_TYPE_CREATE_OAUTH2_CREDENTIAL', body));
    const authCode = identities.newCode({ personId: '5', clientId: 'short', redirectUri, codeVerifier });
    const intent = { oauth2CredentialId, authCode, redirectUri, codeVerifier, nonce: 'any' };
    const { oidcToken } = resultOf(await own.client.submit('ACTIVITY_TYPE_OAUTH2_AUTHENTICATE', intent));
    expect(claimsOf(oidcToken!)['iss']).toBe('https://login.example');
    const register = (providerName: string) =>
      own.client.submit('ACTIVITY_TYPE_CREATE_OAUTH_PROVIDERS_V2', {
        userId: own.root.userId,
        oauthProviders: [{ providerName, oidcToken }],
      });
    own.clock.advance('6m');
    expect(await refusal(register('late'))).toMatchObject({ turnkeyErrorCode: 'INVALID_OIDC_TOKEN' });
  } finally {
    await own.close();
  }
});

test.each([
  ['OAUTH2_PROVIDER_X', '9', 'x:9', 'basic'],
  ['OAUTH2_PROVIDER_DISCORD', '80351110224678912', 'discord:80351110224678912', 'basic'],
  ['OAUTH2_PROVIDER_FORGE', '42', 'forge:42', 'post'],
])('%s is asked as it wants to be', async (provider, personId, subject, how) => {
  const app = await application(provider);
  const before = identities.requests.length;
  expect(claimsOf(await app.authenticate(app.newCode(personId)))).toMatchObject({ sub: subject, aud: app.clientId });
  const name = provider.replace('OAUTH2_PROVIDER_', '').toLowerCase();
  expect(identities.requests.slice(before)).toEqual([`POST /oauth2/token ${how}`, `GET /oauth2/${name}`]);
});

test('the access token goes to the caller only, sealed', async () => {
  const app = await application();
  const { privateKey, publicKeyUncompressed } = generateP256KeyPair();
  const token = await app.authenticate(app.newCode(), { bearerTokenTargetPublicKey: publicKeyUncompressed });
  const bundle = String(claimsOf(token)['encrypted_bearer_token']);
  const accessToken = Buffer.from(decryptCredentialBundle(bundle, privateKey), 'hex').toString();
  expect(accessToken).toMatch(/^access-[0-9a-f-]{36}$/);
  const events = await coordinator.events();
  expect(JSON.stringify(events.map(({ data }) => data))).not.toContain(accessToken);
});

describe('a code is refused', () => {
  const refused = { status: 400, code: 3 };

  test('when it is no code, or was used', async () => {
    const app = await application();
    expect(await refusal(app.authenticate('made up'))).toMatchObject({
      ...refused,
      message: expect.stringContaining('invalid_grant') as string,
    });
    const code = app.newCode();
    await app.authenticate(code);
    expect(await refusal(app.authenticate(code, { nonce: 'again' }))).toMatchObject(refused);
  });

  test.each([
    ['another way back', { redirectUri: 'https://evil.example' }],
    ['another verifier', { codeVerifier: 'w'.repeat(43) }],
  ])('with %s', async (_what, more) => {
    const app = await application();
    expect(await refusal(app.authenticate(app.newCode(), more))).toMatchObject(refused);
  });

  test('of another application', async () => {
    const [app, other] = [await application(), await application()];
    expect(await refusal(app.authenticate(other.newCode()))).toMatchObject(refused);
  });

  test('by whom no policy allows, before the provider is asked', async () => {
    const app = await application();
    const mallory = await coordinator.createUser('Mallory');
    const before = identities.requests.length;
    expect(await refusal(app.authenticate(app.newCode(), {}, mallory.client))).toMatchObject({ status: 403 });
    expect(identities.requests).toHaveLength(before);
  });
});

test('a provider that does not know the application says so, and the right secret helps', async () => {
  const app = await application('OAUTH2_PROVIDER_DISCORD', 'a wrong secret');
  const code = app.newCode();
  expect(await refusal(app.authenticate(code))).toMatchObject({
    status: 400,
    code: 9,
    message: expect.stringContaining('update_oauth2_credential') as string,
  });
  await coordinator.client.submit('ACTIVITY_TYPE_UPDATE_OAUTH2_CREDENTIAL', {
    oauth2CredentialId: app.oauth2CredentialId,
    provider: 'OAUTH2_PROVIDER_DISCORD',
    clientId: app.clientId,
    encryptedClientSecret: await sealed(),
  });
  expect(claimsOf(await app.authenticate(code, { nonce: 'again' }))).toMatchObject({ sub: 'discord:123456789' });
});

describe('a provider in trouble', () => {
  const token = '/oauth2/token';
  const user = '/oauth2/x';

  test.each([
    ['has an error of its own', { path: token, status: 503, body: '{}' }, 503],
    ['has too much to do', { path: user, status: 429, body: '{}' }, 503],
    ['redirects', { path: token, status: 302, body: '' }, 400],
    ['answers with no JSON', { path: token, status: 200, body: '<html>secret</html>' }, 400],
    ['answers 200 with an error', { path: token, status: 200, body: '{"error":"bad_verification_code"}' }, 400],
    [
      'gives another kind of token',
      { path: token, status: 200, body: '{"access_token":"secret","token_type":"mac"}' },
      400,
    ],
    ['gives a token that is none', { path: token, status: 200, body: '{"access_token":"se\\r\\ncret"}' }, 400],
    ['does not say who it is', { path: user, status: 403, body: '{"detail":"secret"}' }, 400],
    ['says it somewhere else', { path: user, status: 200, body: '{"id":"1"}' }, 400],
    ['says something odd', { path: user, status: 200, body: '{"data":{"id":"1 or 2"}}' }, 400],
    ['says a number that is not exact', { path: user, status: 200, body: '{"data":{"id":12345678901234567890}}' }, 400],
    ['says too much', { path: user, status: 200, body: ' '.repeat(200_000) }, 400],
  ])('%s: told, and nothing of what it said', async (_what, trouble, status) => {
    const app = await application();
    identities.trouble = trouble;
    const refused = await refusal(app.authenticate(app.newCode()));
    expect(refused).toMatchObject({ status });
    expect(JSON.stringify(refused)).not.toMatch(/secret|html|bad_verification/);
  });
});

test('a provider on a private network is used only where that is allowed', async () => {
  const profile = { tokenUrl: 'https://127.0.0.1:1/token', userUrl: 'https://127.0.0.1:1/me' };
  const careful = await startCoordinator({
    settings: { OAUTH2_PROVIDERS: JSON.stringify({ OAUTH2_PROVIDER_INSIDE: profile }) },
  });
  try {
    const key = (await discoveryKeys(careful))['oauthSecretEncryption'];
    const { oauth2CredentialId } = resultOf<{ oauth2CredentialId: string }>(
      await careful.client.submit('ACTIVITY_TYPE_CREATE_OAUTH2_CREDENTIAL', {
        provider: 'OAUTH2_PROVIDER_INSIDE',
        clientId: 'app',
        encryptedClientSecret: await encryptOauth2ClientSecret(clientSecret, key),
      }),
    );
    const intent = { oauth2CredentialId, authCode: 'code', redirectUri, codeVerifier, nonce: 'any' };
    expect(await refusal(careful.client.submit('ACTIVITY_TYPE_OAUTH2_AUTHENTICATE', intent))).toMatchObject({
      code: 9,
      message: expect.stringContaining('an address that this server does not call') as string,
    });
  } finally {
    await careful.close();
  }
});

describe('an application', () => {
  const type = 'ACTIVITY_TYPE_CREATE_OAUTH2_CREDENTIAL';

  test('is listed without its secret', async () => {
    const app = await application();
    const shown = {
      oauth2CredentialId: app.oauth2CredentialId,
      organizationId: coordinator.organizationId,
      provider: 'OAUTH2_PROVIDER_X',
      clientId: app.clientId,
      encryptedClientSecret: '',
    };
    const { client } = coordinator;
    const { oauth2Credentials } = await client.query<{ oauth2Credentials: object[] }>('list_oauth2_credentials');
    expect(oauth2Credentials.at(-1)).toMatchObject(shown);
    const { oauth2CredentialId } = app;
    const one = await client.query('get_oauth2_credential', { oauth2CredentialId });
    expect(one).toEqual({ oauth2Credential: oauth2Credentials.at(-1) });
    const none = { oauth2CredentialId: coordinator.organizationId };
    expect(await refusal(client.query('get_oauth2_credential', none))).toMatchObject({
      status: 404,
      turnkeyErrorCode: 'OAUTH2_CREDENTIAL_NOT_FOUND',
    });
  });

  test('is gone with its secret', async () => {
    const app = await application();
    const created = (await coordinator.events()).filter(({ type: one }) => one === 'Oauth2CredentialCreated').at(-1)!;
    const { vaultId } = created.data as { vaultId: string };
    expect(await coordinator.events(`vault-${vaultId}`)).not.toHaveLength(0);
    const { oauth2CredentialId } = app;
    await coordinator.client.submit('ACTIVITY_TYPE_DELETE_OAUTH2_CREDENTIAL', { oauth2CredentialId });
    expect(await coordinator.events(`vault-${vaultId}`)).toHaveLength(0);
    expect(await refusal(app.authenticate(app.newCode()))).toMatchObject({
      status: 404,
      turnkeyErrorCode: 'OAUTH2_CREDENTIAL_NOT_FOUND',
    });
  });

  test('has the vault of its old secret shredded when it is changed', async () => {
    const app = await application();
    const asked = { oauth2CredentialId: app.oauth2CredentialId, provider: 'OAUTH2_PROVIDER_X', clientId: app.clientId };
    await coordinator.client.submit('ACTIVITY_TYPE_UPDATE_OAUTH2_CREDENTIAL', {
      ...asked,
      encryptedClientSecret: await sealed(),
    });
    const updated = (await coordinator.events()).filter(({ type: one }) => one === 'Oauth2CredentialUpdated').at(-1)!;
    const { vaultId, replacedVaultId } = updated.data as { vaultId: string; replacedVaultId: string };
    expect(await coordinator.events(`vault-${replacedVaultId}`)).toHaveLength(0);
    expect(await coordinator.events(`vault-${vaultId}`)).not.toHaveLength(0);
    await app.authenticate(app.newCode());
  });

  test('is at a provider that this server knows', async () => {
    const asked = { provider: 'OAUTH2_PROVIDER_NOWHERE', clientId: 'app', encryptedClientSecret: await sealed() };
    expect(await refusal(coordinator.client.submit(type, asked))).toMatchObject({
      status: 400,
      turnkeyErrorCode: 'OAUTH2_PROVIDER_NOT_CONFIGURED',
    });
  });

  test('is not registered with a secret that was sealed to somebody else', async () => {
    const { publicKeyUncompressed } = generateP256KeyPair();
    const encryptedClientSecret = await encryptOauth2ClientSecret(clientSecret, publicKeyUncompressed);
    const asked = { provider: 'OAUTH2_PROVIDER_X', clientId: 'sealed wrongly', encryptedClientSecret };
    expect(await refusal(coordinator.client.submit(type, asked))).toMatchObject({
      status: 400,
      message: expect.stringContaining('/public/v1/discovery/keys') as string,
    });
  });
});

const withoutProof = (token: string): string => token.slice(0, token.lastIndexOf('.') + 1);

test('what an exchange gives is told once, in no event, query or log line; neither are secrets; and a private network is loud in the log', async () => {
  let log = '';
  const sink = new Writable({
    write(chunk, _encoding, done) {
      log += String(chunk);
      done();
    },
  });
  const own = await startCoordinator({ at: new Date(), settings: identities.settings, logLevel: 'debug', log: sink });
  try {
    const key = (await discoveryKeys(own))['oauthSecretEncryption'];
    const { oauth2CredentialId } = resultOf<{ oauth2CredentialId: string }>(
      await own.client.submit('ACTIVITY_TYPE_CREATE_OAUTH2_CREDENTIAL', {
        provider: 'OAUTH2_PROVIDER_X',
        clientId: 'app',
        encryptedClientSecret: await encryptOauth2ClientSecret(clientSecret, key),
      }),
    );
    const authCode = identities.newCode({ personId: '1', clientId: 'app', redirectUri, codeVerifier });
    const bearerTokenTargetPublicKey = generateP256KeyPair().publicKeyUncompressed;
    const asked = { oauth2CredentialId, authCode, redirectUri, codeVerifier, nonce: 'any', bearerTokenTargetPublicKey };
    const type = 'ACTIVITY_TYPE_OAUTH2_AUTHENTICATE';
    const body = own.client.submitBody(type, asked);
    const submit = async () =>
      (await own.client.post<{ activity: ActivityEnvelope }>(submitPath(type), body)).body.activity;
    const first = await submit();
    const oidcToken = resultOf(first)['oidcToken']!;
    const proof = oidcToken.slice(oidcToken.lastIndexOf('.') + 1);
    expect(proof).toHaveLength(86);
    // The code is spent, so the same bytes cannot mean another exchange either.
    const before = identities.requests.length;
    const again = await refusal(submit());
    expect(again).toMatchObject({ status: 400, message: expect.stringContaining('start again') as string });
    expect(identities.requests).toHaveLength(before);

    const said = [again, first.votes, first.intent] as unknown[];
    for (const path of ['get_activity', 'list_activity_events', 'get_policy_evaluations', 'list_app_proofs']) {
      said.push(await own.client.query(path, { activityId: first.id }));
    }
    for (const path of ['list_activities', 'list_oauth2_credentials', 'list_denials'])
      said.push(await own.client.query(path));
    said.push(await own.client.query('get_oauth2_credential', { oauth2CredentialId }));
    const shown = JSON.stringify(said);
    expect(shown).toContain(withoutProof(oidcToken));
    expect(log).toContain('ALLOW_PRIVATE_NETWORK is true');
    const streams = [organizationStream(own.organizationId), `denials-${own.organizationId}`];
    const recorded = JSON.stringify(
      (await Promise.all(streams.map((one) => own.events(one)))).flat().map(({ data }) => data),
    );
    expect(identities.tokens.slice(-2)).toEqual([
      expect.stringContaining('access-'),
      expect.stringContaining('refresh-'),
    ]);
    const hex = Buffer.from(clientSecret).toString('hex');
    for (const secret of [clientSecret, hex, 'access-', 'refresh-', proof]) {
      for (const text of [recorded, log, shown]) expect(text).not.toContain(secret);
    }
  } finally {
    await own.close();
  }
});
