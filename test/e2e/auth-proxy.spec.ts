import { encryptOtpCodeToBundle } from '@turnkey/crypto';
import { verifyMessage } from 'ethers';
import { coreClient, coreClient2 } from './core-client.js';
import { anyText, exchange, refusal, textLike, type Refusal } from './exchange.js';
import { IdentityProvider, clientSecret } from './identity-provider.js';
import { claimsOf, clientSignature, codeOf, messageOf } from './one-time-codes.js';
import { startTenants } from './tenants.js';
import { SoftwareAuthenticator } from '../stamps/software-authenticator.js';
import { send, startCoordinator, submitPath, type ApiKeyPair, type TestCoordinator } from '../../src/testing/index.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { ProxyKeys } from '../../src/keyring/proxy-keys.js';
import { SeededRandomness, StampingClient } from '../../src/testing/index.js';
import { LocalKeyEncryption } from '../../src/vault/key-encryption.js';
import { Vault } from '../../src/vault/vault.js';
import { until } from './until.js';

const secret = 'a secret of the proxy and the API';
const unlimited = {
  PROXY_RATE_LIMIT_PER_ADDRESS: '0',
  PROXY_RATE_LIMIT_PER_CONFIGURATION: '0',
  PROXY_RATE_LIMIT_SIGN_UPS_PER_ADDRESS: '0',
  PROXY_RATE_LIMIT_CODES_PER_ADDRESS: '0',
  PROXY_RATE_LIMIT_PER_CONTACT: '0',
};

let coordinator: TestCoordinator;
let provider: IdentityProvider;
let configId: string;

beforeAll(async () => {
  provider = await IdentityProvider.start();
  // The published client has the wall clock.
  coordinator = await startCoordinator({
    at: new Date(),
    settings: {
      ...unlimited,
      ...provider.settings,
      SOCIAL_LINKING_ISSUERS: provider.issuer,
      PROXY_SECRET: secret.replaceAll(' ', '-'),
    },
  });
  configId = coordinator.root.authProxyConfigId;
});

afterAll(async () => {
  await coordinator.close();
  await provider.close();
});

const json = { 'content-type': 'application/json' };

async function call(
  path: string,
  body?: object,
  headers: Readonly<Record<string, string>> = {},
  url = coordinator.url,
): Promise<{ status: number; headers: Headers; body: Record<string, unknown> }> {
  const answer = await exchange(`${url}/v1/${path}`, {
    method: 'POST',
    headers: { ...json, 'x-auth-proxy-config-id': configId, ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { ...answer, body: answer.body as Record<string, unknown> };
}

async function ok(path: string, body: object, headers: Readonly<Record<string, string>> = {}) {
  const answer = await call(path, body, headers);
  expect(answer).toMatchObject({ status: 200, body: {} });
  return answer.body as Record<string, string>;
}

let people = 0;
const newContact = () => `person-${++people}@example.com`;

async function verified(contact: string, key: ApiKeyPair): Promise<string> {
  const { otpId } = await ok('otp_init', { otpType: 'OTP_TYPE_EMAIL', contact });
  const otpCode = await codeOf(coordinator, otpId!);
  const { verificationToken } = await ok('otp_verify', { otpId, otpCode, publicKey: key.publicKey });
  return verificationToken!;
}

/** Somebody with an account that was made through the proxy. */
async function signedUp(contact = newContact()) {
  const key = coordinator.newKey();
  const verificationToken = await verified(contact, key);
  const asked = { apiKeys: [], authenticators: [], oauthProviders: [] };
  const signup = { signup: { ...asked, email: contact } };
  const answer = await ok('signup', {
    userName: contact,
    userEmail: contact,
    organizationName: `home of ${contact}`,
    verificationToken,
    ...asked,
    clientSignature: clientSignature(key, verificationToken, 'USAGE_TYPE_SIGNUP', signup),
  });
  return { contact, key, verificationToken, organizationId: answer['organizationId']!, userId: answer['userId']! };
}

const login = (key: ApiKeyPair, verificationToken: string, session: ApiKeyPair) => ({
  verificationToken,
  publicKey: session.publicKey,
  clientSignature: clientSignature(key, verificationToken, 'USAGE_TYPE_LOGIN', {
    login: { publicKey: session.publicKey },
  }),
});

test('@turnkey/core 2.x signs up and logs in with codes, creates a wallet and signs', async () => {
  const { client, store } = coreClient2({
    apiBaseUrl: coordinator.url,
    authProxyUrl: coordinator.root.authProxyUrl,
    authProxyConfigId: configId,
    organizationId: coordinator.organizationId,
  });
  const { body: keys } = await exchange(`${coordinator.url}/public/v1/discovery/keys`);
  const [contact, otpType] = [newContact(), 'OTP_TYPE_EMAIL'];
  // Its own verifyOtp takes codes for the hosted service's key alone.
  const proved = async () => {
    const { otpId, otpEncryptionTargetBundle } = await client.initOtp({ otpType, contact });
    const [otpCode, publicKey] = [await codeOf(coordinator, otpId), await client.createApiKeyPair()];
    const encryptedOtpBundle = await encryptOtpCodeToBundle(
      otpCode,
      otpEncryptionTargetBundle,
      publicKey,
      (keys as { verificationToken: string }).verificationToken,
    );
    const { verificationToken } = await client.httpClient['proxyVerifyOtpV2']!({ otpId, encryptedOtpBundle });
    return { verificationToken, publicKey };
  };
  const { verificationToken } = await proved();
  const createSubOrgParams = { userEmail: contact };
  const first = await client.signUpWithOtp({ verificationToken, contact, otpType, createSubOrgParams });
  const { organization_id: organizationId } = claimsOf(first.sessionToken);
  const next = await proved();
  const second = await client.loginWithOtp({ verificationToken: next.verificationToken, organizationId });
  const { user_id: userId, ...session } = claimsOf(second.sessionToken);
  expect(session).toMatchObject({ organization_id: organizationId, public_key: next.publicKey });

  store.current = next.publicKey;
  store.session = { organizationId, userId, publicKey: next.publicKey };
  const stampWith = 'api-key';
  const accounts = ['ADDRESS_FORMAT_ETHEREUM'];
  const walletId = await client.createWallet({ walletName: 'Mine', accounts, stampWith });
  const listed = await client.httpClient['getWalletAccounts']!({ organizationId, walletId });
  const [account] = listed['accounts'] as [{ address: string }];
  const walletAccount = { ...account, source: 'embedded' };
  const { r, s, v } = await client.signMessage({ message: 'hello', walletAccount, addEthereumPrefix: true, stampWith });
  const signature = { r: `0x${r}`, s: `0x${s}`, v: 27 + Number.parseInt(v, 16) };
  expect(verifyMessage('hello', signature)).toBe(account.address);
});

describe('@turnkey/core', () => {
  const open = () =>
    coreClient({
      apiBaseUrl: coordinator.url,
      authProxyUrl: coordinator.root.authProxyUrl,
      authProxyConfigId: configId,
      organizationId: coordinator.organizationId,
    });

  test('signs somebody up with a code, and logs them in with the next', async () => {
    const { client, store } = open();
    const contact = newContact();
    const otpType = 'OTP_TYPE_EMAIL';
    const complete = async () => {
      const otpId = await client.initOtp({ otpType, contact });
      const otpCode = await codeOf(coordinator, otpId);
      return client.completeOtp({ otpId, otpCode, contact, otpType, createSubOrgParams: { userEmail: contact } });
    };
    const first = await complete();
    expect(first.action).toBe('SIGNUP');
    const second = await complete();
    expect(second.action).toBe('LOGIN');

    const claims = claimsOf(second.sessionToken);
    expect(claims['organization_id']).toBe(claimsOf(first.sessionToken)['organization_id']);
    expect(claims['organization_id']).not.toBe(coordinator.organizationId);
    const person = coordinator.clientFor(store.keyOf(String(claims['public_key'])), String(claims['organization_id']));
    expect(await person.query('whoami')).toMatchObject({ userId: claims['user_id'], username: contact });
  });

  test('changes an address with the token of a code, by the key of the session', async () => {
    const { client, store } = open();
    const otpType = 'OTP_TYPE_EMAIL';
    const [contact, next] = [newContact(), newContact()];
    const code = async (address: string) => {
      const otpId = await client.initOtp({ otpType, contact: address });
      return { otpId, otpCode: await codeOf(coordinator, otpId), contact: address, otpType };
    };
    const createSubOrgParams = { userEmail: contact };
    const { sessionToken } = await client.completeOtp({ ...(await code(contact)), createSubOrgParams });
    const { organization_id: organizationId, user_id: userId, public_key: publicKey } = claimsOf(sessionToken);
    const { verificationToken } = await client.verifyOtp(await code(next));
    // The token is bound to a key of its own: the client makes one for each code.
    expect(claimsOf(verificationToken)['public_key']).not.toBe(publicKey);
    store.current = String(publicKey);
    store.session = { organizationId, userId, publicKey };
    const change = { email: next, verificationToken, stampWith: 'api-key' };
    expect(await client.updateUserEmail(change)).toBe(userId);
    store.session = undefined;
    const again = await client.completeOtp(await code(next));
    expect([again.action, claimsOf(again.sessionToken)['organization_id']]).toEqual(['LOGIN', organizationId]);
  });

  test('tells a wrong code from the right one', async () => {
    const { client } = open();
    const contact = newContact();
    const otpId = await client.initOtp({ otpType: 'OTP_TYPE_EMAIL', contact });
    const wrong = client.completeOtp({ otpId, otpCode: '000000000', contact, otpType: 'OTP_TYPE_EMAIL' });
    await expect(wrong).rejects.toMatchObject({ code: 'INVALID_OTP_CODE' });
  });

  test('signs somebody up with an OpenID token, and logs them in with the next', async () => {
    const { client, store } = open();
    const subject = `core-${++people}`;
    const complete = async () => {
      const publicKey = await store.createKeyPair();
      const oidcToken = await provider.idToken({ subject, publicKey, at: coordinator.clock.now() });
      return client.completeOauth({ oidcToken, publicKey });
    };
    const first = await complete();
    const second = await complete();
    expect([first.action, second.action]).toEqual(['SIGNUP', 'LOGIN']);
    expect(claimsOf(second.sessionToken)['user_id']).toBe(claimsOf(first.sessionToken)['user_id']);
  });

  test('reads the configuration, and sends the calls of later versions too', async () => {
    const { client } = open();
    expect(await client.getProxyAuthConfig()).toMatchObject({ organizationId: coordinator.organizationId });
    const sent = await client.httpClient['proxyInitOtpV2']!({ otpType: 'OTP_TYPE_EMAIL', contact: newContact() });
    expect(sent).toEqual({ otpId: anyText, otpEncryptionTargetBundle: anyText });
    const key = coordinator.newKey();
    expect(
      await client.httpClient['proxySignupV2']!({
        userName: 'Later',
        apiKeys: [{ apiKeyName: 'key', publicKey: key.publicKey, curveType: 'API_KEY_CURVE_P256' }],
        authenticators: [],
        oauthProviders: [],
      }),
    ).toEqual({ organizationId: anyText, userId: anyText });
  });
});

test('whoever adds the key of the proxy as their own keeps nobody else from logging in', async () => {
  const person = await signedUp();
  const logIn = async () => {
    const [key, session] = [coordinator.newKey(), coordinator.newKey()];
    await ok('otp_login', login(key, await verified(person.contact, key), session));
    return coordinator.clientFor(session, person.organizationId);
  };
  const own = await logIn();
  const otherKey = coordinator.newKey();
  const keyOf = (apiKeyName: string, publicKey: string) => ({
    apiKeyName,
    publicKey,
    curveType: 'API_KEY_CURVE_P256' as const,
  });
  const { result } = await own.submit('ACTIVITY_TYPE_CREATE_USERS_V3', {
    users: [
      {
        userName: 'Other',
        userTags: [],
        apiKeys: [keyOf('own', otherKey.publicKey)],
        authenticators: [],
        oauthProviders: [],
      },
    ],
  });
  const [userId] = (Object.values(result)[0] as { userIds: string[] }).userIds;
  const other = coordinator.clientFor(otherKey, person.organizationId);
  const { activities } = await other.query<{ activities: { type: string; votes: { publicKey: string }[] }[] }>(
    'list_activities',
  );
  const { votes } = activities.find(({ type }) => type === 'ACTIVITY_TYPE_OTP_LOGIN')!;
  await other.submit('ACTIVITY_TYPE_CREATE_API_KEYS_V2', {
    userId: userId!,
    apiKeys: [keyOf("the proxy's", votes[0]!.publicKey)],
  });
  expect(await (await logIn()).query('whoami')).toMatchObject({ userId: person.userId });
});

describe('what is answered', () => {
  test('wallet_kit_config takes no body at all, and wallet_kit_client_params none either', async () => {
    const { status, body, headers } = await call('wallet_kit_config');
    expect([status, body]).toEqual([
      200,
      {
        enabledProviders: ['email', 'sms', 'passkey', 'wallet'],
        sessionExpirationSeconds: '900',
        organizationId: coordinator.organizationId,
        otpAlphanumeric: true,
        otpLength: '9',
      },
    ]);
    expect(headers.get('access-control-allow-origin')).toBe('*');
    expect(await call('wallet_kit_client_params')).toMatchObject({ status: 200, body: {} });
  });

  test('signup makes a sub-organization with a wallet, and its owner rules there', async () => {
    const key = coordinator.newKey();
    const { organizationId, userId, wallet } = (
      await call('signup_v2', {
        userName: 'Nora',
        organizationName: 'Nora’s',
        apiKeys: [{ apiKeyName: 'key', publicKey: key.publicKey, curveType: 'API_KEY_CURVE_P256' }],
        authenticators: [],
        oauthProviders: [],
        wallet: {
          walletName: 'first',
          accounts: [
            {
              curve: 'CURVE_SECP256K1',
              pathFormat: 'PATH_FORMAT_BIP32',
              path: "m/44'/60'/0'/0/0",
              addressFormat: 'ADDRESS_FORMAT_ETHEREUM',
            },
          ],
        },
      })
    ).body as { organizationId: string; userId: string; wallet: { addresses: string[] } };
    expect(wallet.addresses).toEqual([textLike(/^0x[0-9a-fA-F]{40}$/)]);
    const nora = coordinator.clientFor(key, organizationId);
    expect(await nora.query('whoami')).toEqual({
      organizationId,
      organizationName: 'Nora’s',
      userId,
      username: 'Nora',
    });
  });

  test.each([
    ['signup', 'signup'],
    ['signup_v2', 'signupV2'],
  ])('%s takes a passkey beside a proved contact, and the passkey logs in', async (path, usage) => {
    const contact = newContact();
    const key = coordinator.newKey();
    const verificationToken = await verified(contact, key);
    const asked = (passkey: SoftwareAuthenticator) => ({
      apiKeys: [],
      authenticators: [{ authenticatorName: 'passkey', ...passkey.register() }],
      oauthProviders: [],
    });
    const passkey = new SoftwareAuthenticator();
    const own = asked(passkey);
    const account = {
      userName: contact,
      userEmail: contact,
      verificationToken,
      clientSignature: clientSignature(key, verificationToken, 'USAGE_TYPE_SIGNUP', {
        [usage]: { ...own, email: contact },
      }),
    };
    // What the owner of the contact has signed names the passkey: nobody on the way can put in another.
    expect(await call(path, { ...account, ...asked(new SoftwareAuthenticator()) })).toMatchObject({
      status: 400,
      body: { message: textLike('clientSignature') },
    });
    const { organizationId, userId } = await ok(path, { ...account, ...own });

    const session = coordinator.newKey();
    const type = 'ACTIVITY_TYPE_STAMP_LOGIN';
    const body = coordinator.client.submitBody(type, { publicKey: session.publicKey });
    const login = { 'x-stamp-webauthn': passkey.assert({ body }) };
    await send(`${coordinator.url}${submitPath(type)}`, body, login);
    const person = coordinator.clientFor(session, organizationId);
    expect(await person.query('whoami')).toMatchObject({ userId, username: contact });
    expect((await call('account', { filterType: 'CREDENTIAL_ID', filterValue: passkey.credentialId })).body).toEqual({
      organizationId,
    });
  });

  test('account finds a credential, finds a contact only for someone who has proved it, and returns {} for nobody', async () => {
    const { contact, verificationToken, organizationId } = await signedUp();
    const find = (filterType: string, filterValue: string, more = {}) =>
      call('account', { filterType, filterValue, ...more });
    expect((await find('EMAIL', contact, { verificationToken })).body).toEqual({ organizationId });
    const session = coordinator.newKey();
    expect(await find('PUBLIC_KEY', session.publicKey)).toMatchObject({ status: 200, body: {} });

    const stranger = await verified(newContact(), coordinator.newKey());
    for (const more of [{}, { verificationToken: stranger }, { verificationToken: '' }]) {
      expect(await find('EMAIL', contact, more)).toMatchObject({
        status: 403,
        body: { code: 7, message: textLike('verificationToken for this contact is required') },
      });
    }
    // The long s is another letter in an address, though its upper case is an S.
    const long = await verified('\u017fam@example.com', coordinator.newKey());
    expect((await find('EMAIL', 'sam@example.com', { verificationToken: long })).status).toBe(403);
    // The sign of the kelvin is the letter K in NFC, and its code went to that mailbox.
    const kelvins = await verified('\u212aevin@example.com', coordinator.newKey());
    expect((await find('EMAIL', 'kevin@example.com', { verificationToken: kelvins })).status).toBe(200);
    // Who has proved the contact needs no other token; one does not prove a phone number.
    const both = { verificationToken, oidcToken: 'a.b.c' };
    expect((await find('EMAIL', contact, both)).body).toEqual({ organizationId });
    expect((await find('PHONE_NUMBER', '+15005550006', { oidcToken: 'a.b.c' })).status).toBe(403);
    expect(await find('EMAIL', contact, { oidcToken: 'a.b.c' })).toMatchObject({
      status: 400,
      body: { turnkeyErrorCode: 'INVALID_OIDC_TOKEN' },
    });
    // Names may be contacts, and nothing proves them.
    for (const filterType of ['NAME', 'USERNAME']) expect((await find(filterType, contact)).status).toBe(403);
    expect((await find('WALLET', 'x')).status).toBe(400);
  });

  test('otp_login finds the account by the contact that was proved', async () => {
    const { contact, organizationId, userId } = await signedUp();
    const key = coordinator.newKey();
    const session = coordinator.newKey();
    const { session: token } = await ok('otp_login', login(key, await verified(contact, key), session));
    expect(claimsOf(token!)).toMatchObject({ organization_id: organizationId, user_id: userId });
    const person = coordinator.clientFor(session, organizationId);
    expect(await person.query('whoami')).toMatchObject({ userId });

    const nobody = coordinator.newKey();
    const none = await call('otp_login', login(nobody, await verified(newContact(), nobody), session));
    expect(none).toMatchObject({ status: 404, body: { message: textLike('sign up first') } });
  });

  test('oauth2_authenticate finds the application by provider and client id', async () => {
    const clientId = 'an app';
    const exchangeOf = { redirectUri: 'https://app.example.com/back', codeVerifier: 'v'.repeat(43) };
    const authCode = provider.newCode({ personId: '1234', clientId, ...exchangeOf });
    const asked = { provider: 'OAUTH2_PROVIDER_DISCORD', authCode, ...exchangeOf, nonce: 'n'.repeat(64), clientId };
    expect(await call('oauth2_authenticate', asked)).toMatchObject({
      status: 404,
      body: { message: textLike('create_oauth2_credential'), turnkeyErrorCode: 'OAUTH2_CREDENTIAL_NOT_FOUND' },
    });
    const { publicKeys } = { publicKeys: (await exchange(`${coordinator.url}/public/v1/discovery/keys`)).body };
    const { encryptOauth2ClientSecret } = (await import('@turnkey/crypto')) as unknown as {
      encryptOauth2ClientSecret(secret: string, key: string): Promise<string>;
    };
    const { oauthSecretEncryption } = publicKeys as { oauthSecretEncryption: string };
    await coordinator.client.submit('ACTIVITY_TYPE_CREATE_OAUTH2_CREDENTIAL', {
      provider: 'OAUTH2_PROVIDER_DISCORD',
      clientId,
      encryptedClientSecret: await encryptOauth2ClientSecret(clientSecret, oauthSecretEncryption),
    });
    const { oidcToken } = await ok('oauth2_authenticate', asked);
    expect(claimsOf(oidcToken!)).toMatchObject({ aud: clientId, sub: textLike(/:1234$/) });
  });

  test('the configuration is added to what is forwarded, and decides what may be used', async () => {
    const { client } = coordinator;
    const update = (parameters: object) => client.submit('ACTIVITY_TYPE_UPDATE_AUTH_PROXY_CONFIG', parameters);
    const everything = {
      allowedAuthMethods: ['email', 'sms', 'passkey', 'wallet', 'oauth'],
      otpLength: 9,
      otpAlphanumeric: false,
      sessionExpirationSeconds: 900,
    };
    try {
      await update({
        allowedAuthMethods: ['email'],
        otpLength: 6,
        otpAlphanumeric: true,
        sessionExpirationSeconds: 60,
        emailCustomizationParams: { appName: 'Our app' },
      });
      const { contact } = await signedUp();
      const sent = coordinator.messages().findLast(({ to }) => to === contact)!;
      expect(sent.text).toContain('Our app');
      const key = coordinator.newKey();
      const { session } = await ok('otp_login', login(key, await verified(contact, key), coordinator.newKey()));
      const { exp } = claimsOf(session!) as { exp: number };
      expect(exp).toBeLessThanOrEqual(Math.ceil(coordinator.clock.now() / 1000) + 60);
      const { otpId } = await ok('otp_init', { otpType: 'OTP_TYPE_EMAIL', contact: newContact() });
      expect(await codeOf(coordinator, otpId!)).toHaveLength(6);

      const refused = [
        await call('otp_init', { otpType: 'OTP_TYPE_SMS', contact: '+13214567890' }),
        await call('oauth_login', { oidcToken: 'x', publicKey: 'y' }),
        await call('oauth2_authenticate', {
          provider: 'OAUTH2_PROVIDER_DISCORD',
          clientId: 'an app',
          authCode: 'code',
          redirectUri: 'https://app.example.com/back',
          codeVerifier: 'v'.repeat(43),
          nonce: 'n',
        }),
        await call('signup', {
          apiKeys: [],
          authenticators: [],
          oauthProviders: [{ providerName: 'p', oidcToken: 't' }],
        }),
      ];
      expect(refused.map(({ status, body }) => [status, body['message']])).toEqual([
        [403, textLike('^SMS disallowed')],
        [403, textLike('^OAUTH disallowed')],
        [403, textLike('^OAUTH disallowed')],
        [403, textLike('^OAUTH disallowed')],
      ]);
      // A key is a way in of its own, but for the one that a client makes for the sign-up with its passkey.
      const apiKeyOf = (curveType: string, more: object = {}) => ({
        apiKeyName: 'key',
        publicKey: coordinator.newKey().publicKey,
        curveType,
        ...more,
      });
      const signUpBy = (apiKeys: readonly object[], authenticators: readonly object[] = []) =>
        call('signup_v2', { userName: 'Nora', apiKeys, authenticators, oauthProviders: [] });
      const minute = apiKeyOf('API_KEY_CURVE_P256', { expirationSeconds: '60' });
      for (const key of [apiKeyOf('API_KEY_CURVE_P256'), apiKeyOf('API_KEY_CURVE_SECP256K1'), minute]) {
        expect(await signUpBy([key])).toMatchObject({ status: 403, body: { message: textLike('^WALLET disallowed') } });
      }
      const passkey = { authenticatorName: 'passkey', ...new SoftwareAuthenticator().register() };
      expect((await signUpBy([], [passkey])).status).toBe(403);
      await update({ allowedAuthMethods: ['passkey'] });
      const lasting = apiKeyOf('API_KEY_CURVE_P256', { expirationSeconds: '61' });
      expect((await signUpBy([lasting], [passkey])).status).toBe(403);
      expect((await signUpBy([minute], [passkey])).status).toBe(200);

      // A code is one too: what was proved before it was disallowed signs nobody up.
      await update({ allowedAuthMethods: ['email', 'passkey'] });
      const [norasMail, norasKey] = [newContact(), coordinator.newKey()];
      const verificationToken = await verified(norasMail, norasKey);
      await update({ allowedAuthMethods: ['passkey'] });
      const asked = { apiKeys: [], authenticators: [], oauthProviders: [] };
      const signup = { signup: { ...asked, email: norasMail } };
      const byCode = await call('signup', {
        userName: 'Nora',
        userEmail: norasMail,
        ...asked,
        verificationToken,
        clientSignature: clientSignature(norasKey, verificationToken, 'USAGE_TYPE_SIGNUP', signup),
      });
      expect(byCode).toMatchObject({ status: 403, body: { message: textLike('^EMAIL disallowed') } });
    } finally {
      await update(everything);
    }
  });

  test('reports missing and wrong fields, and passes on the API’s errors', async () => {
    expect(await call('otp_init', { otpType: 'OTP_TYPE_EMAIL' })).toMatchObject({
      status: 400,
      body: { code: 3, message: 'invalid request: contact: is required', turnkeyErrorCode: 'REQUEST_INVALID' },
    });
    expect(await call('otp_init', { otpType: 'OTP_TYPE_EMAIL', contact: 'nobody' })).toMatchObject({
      status: 400,
      body: { message: textLike('^invalid request: contact: must be an e-mail address') },
    });
    expect(await call('otp_verify', { otpId: configId, otpCode: '1' })).toMatchObject({ body: { code: 3 } });
    expect(await call('nothing', {})).toMatchObject({ status: 404, body: { message: textLike('use one of signup,') } });
    const broken = await exchange(`${coordinator.url}/v1/otp_init`, {
      method: 'POST',
      headers: { ...json, 'x-auth-proxy-config-id': configId },
      body: '[1]',
    });
    expect(broken).toMatchObject({ status: 400, body: { message: textLike('must be a JSON object') } });
  });
});

describe('other ways to sign up', () => {
  test('a code in a text message signs somebody up, and verifies the number', async () => {
    const contact = '+13214567890';
    const key = coordinator.newKey();
    const proved = async () => {
      const { otpId } = await ok('otp_init', { otpType: 'OTP_TYPE_SMS', contact });
      const message = await messageOf(coordinator, otpId!);
      expect([message.channel, message.to]).toEqual(['sms', contact]);
      const otpCode = await codeOf(coordinator, otpId!);
      return (await ok('otp_verify', { otpId, otpCode, publicKey: key.publicKey }))['verificationToken']!;
    };
    const verificationToken = await proved();
    const asked = { apiKeys: [], authenticators: [], oauthProviders: [] };
    const { organizationId, userId } = await ok('signup', {
      userPhoneNumber: contact,
      verificationToken,
      ...asked,
      clientSignature: clientSignature(key, verificationToken, 'USAGE_TYPE_SIGNUP', {
        signup: { ...asked, phoneNumber: contact },
      }),
    });
    const session = coordinator.newKey();
    const again = await proved();
    expect(await ok('account', { filterType: 'PHONE_NUMBER', filterValue: contact, verificationToken: again })).toEqual(
      { organizationId },
    );
    await ok('otp_login', login(key, again, session));
    const person = coordinator.clientFor(session, organizationId);
    expect(await person.query('get_user', { userId: userId! })).toMatchObject({
      user: { userId, userName: contact, userPhoneNumber: contact },
    });
    // A token for a number is no proof of an e-mail address.
    const wrong = await call('signup', { userEmail: newContact(), verificationToken: await proved(), ...asked });
    expect(wrong.status).toBe(400);
  });
});

describe('an identity whose address is proved already', () => {
  const update = (socialLinkingClientIds: readonly string[]) =>
    coordinator.client.submit('ACTIVITY_TYPE_UPDATE_AUTH_PROXY_CONFIG', { socialLinkingClientIds });
  const verifiedAs = (email: string, more: object = {}) => ({ email, email_verified: true, ...more });

  const tokenOf = (claims: object, more: object = {}, by = provider) =>
    by.idToken({ subject: `linked-${++people}`, claims: { ...claims }, at: coordinator.clock.now(), ...more });

  const enter = async (claims: object, more: object = {}, by = provider) => {
    const session = coordinator.newKey();
    const { publicKey } = session;
    const oidcToken = await tokenOf(claims, { publicKey, ...more }, by);
    const found = await call('account', { filterType: 'OIDC_TOKEN', filterValue: oidcToken });
    return { session, oidcToken, found, login: await call('oauth_login', { oidcToken, publicKey }) };
  };

  beforeAll(() => update(['app']));
  afterAll(() => update([]));

  test('finds the account, becomes one of its user’s, and logs in from then on by itself', async () => {
    const { contact, organizationId, userId } = await signedUp();
    const subject = `linked-${++people}`;
    const { session, found, login: entered, oidcToken } = await enter(verifiedAs(contact), { subject });
    expect(found.body).toEqual({ organizationId });
    expect(await call('account', { filterType: 'EMAIL', filterValue: contact, oidcToken })).toMatchObject({
      status: 200,
      body: { organizationId },
    });
    expect(claimsOf(String(entered.body['session']))).toMatchObject({
      organization_id: organizationId,
      user_id: userId,
    });
    const person = coordinator.clientFor(session, organizationId);
    expect(await person.query('get_oauth_providers', { userId })).toMatchObject({
      oauthProviders: [{ issuer: provider.issuer, audience: 'app', subject }],
    });
    const next = await enter({}, { subject });
    expect(next.login.status).toBe(200);
    expect(claimsOf(String(next.login.body['session']))).toMatchObject({ user_id: userId });
  });

  test('is not linked unless everything holds', async () => {
    const { contact, organizationId } = await signedUp();
    const stranger = await IdentityProvider.start();
    try {
      const attempts: Readonly<Record<string, Awaited<ReturnType<typeof enter>>>> = {
        'the address is not verified': await enter({ email: contact, email_verified: false }),
        'nothing says that it is': await enter({ email: contact }),
        'it says so in another way': await enter({ email: contact, email_verified: 1 }),
        'there is no address': await enter({ email_verified: true }),
        'another address': await enter(verifiedAs(newContact())),
        'another audience': await enter(verifiedAs(contact), { audience: 'another app' }),
        'another issuer': await enter(verifiedAs(contact), {}, stranger),
      };
      for (const [why, { found, login: entered }] of Object.entries(attempts)) {
        expect([why, found.status, found.body]).toEqual([why, 200, {}]);
        expect([why, entered.status]).toEqual([why, 404]);
      }
      // Whoever names the organization gets no further.
      for (const [claims, more, by] of [
        [verifiedAs(contact), { audience: 'another app' }, provider],
        [verifiedAs(contact), {}, stranger],
        [{ email: contact }, {}, provider],
      ] as const) {
        const { publicKey } = coordinator.newKey();
        const oidcToken = await tokenOf(claims, { publicKey, ...more }, by);
        expect(await call('oauth_login', { oidcToken, publicKey, organizationId })).toMatchObject({
          status: 400,
          body: { turnkeyErrorCode: 'INVALID_OIDC_TOKEN' },
        });
      }
      // A token that was asked for with another key.
      const stolen = await tokenOf(verifiedAs(contact), { publicKey: coordinator.newKey().publicKey });
      const { publicKey } = coordinator.newKey();
      expect((await call('oauth_login', { oidcToken: stolen, publicKey })).status).toBe(400);
    } finally {
      await stranger.close();
    }
  });

  test('is not linked to an address that somebody has only claimed, nor once the client id is not listed', async () => {
    const claimed = newContact();
    const asked = { userEmail: claimed, apiKeys: [], authenticators: [], oauthProviders: [] };
    const own = coordinator.newKey();
    const apiKeys = [{ apiKeyName: 'key', publicKey: own.publicKey, curveType: 'API_KEY_CURVE_P256' }];
    await ok('signup_v2', { ...asked, apiKeys });
    expect(await enter(verifiedAs(claimed))).toMatchObject({ found: { body: {} }, login: { status: 404 } });

    const { contact } = await signedUp();
    await update([]);
    expect(await enter(verifiedAs(contact))).toMatchObject({ found: { body: {} }, login: { status: 404 } });
    await update(['app']);
    expect(await enter(verifiedAs(contact))).toMatchObject({ login: { status: 200 } });
  });

  test('may be given by the parent, who may give no other and do nothing else there', async () => {
    const { contact, organizationId, userId } = await signedUp();
    const give = async (oauthProviders: readonly object[], by = coordinator.client) =>
      by.submit('ACTIVITY_TYPE_CREATE_OAUTH_PROVIDERS_V2', { userId, oauthProviders }, { organizationId });
    const named = async (claims: object, more: object = {}, by = provider) => ({
      providerName: 'linked',
      oidcToken: await tokenOf(claims, more, by),
    });
    const stranger = await IdentityProvider.start();
    try {
      const good = await named(verifiedAs(contact), { subject: 'given' });
      const refused = { message: textLike(/the parent organization may add to user|is not a client id of the parent/) };
      for (const list of [
        [await named(verifiedAs(newContact()))],
        [await named({ email: contact })],
        [await named(verifiedAs(contact), { audience: 'another app' })],
        [await named(verifiedAs(contact), {}, stranger)],
        [good, await named({})],
        [good, { providerName: 'claims', oidcClaims: { iss: provider.issuer, sub: 'given', aud: 'another app' } }],
      ]) {
        expect(await refusal(give(list))).toMatchObject(refused);
      }
      const clerk = await coordinator.createUser('Clerk');
      expect(await refusal(give([good], clerk.client))).toMatchObject({ status: 403 });
      const given = await give([good]);
      expect(given).toMatchObject({ status: 'ACTIVITY_STATUS_COMPLETED', organizationId });

      // Once it is there, it is a way in like any other, and still no way for the parent to act.
      const { publicKey } = coordinator.newKey();
      const oidcToken = await tokenOf({}, { subject: 'given', publicKey });
      expect((await call('oauth_login', { oidcToken, publicKey })).status).toBe(200);
      const apiKeys = [{ apiKeyName: 'key', publicKey, curveType: 'API_KEY_CURVE_P256' }];
      const inside = coordinator.client.submit(
        'ACTIVITY_TYPE_CREATE_API_KEYS_V2',
        { userId, apiKeys },
        { organizationId },
      );
      expect(await refusal(inside)).toMatchObject({ status: 400, turnkeyErrorCode: 'ORGANIZATION_MISMATCH' });
      const providerIds = Object.values(given.result)[0] as { providerIds: string[] };
      const away = coordinator.client.submit(
        'ACTIVITY_TYPE_DELETE_OAUTH_PROVIDERS',
        { userId, ...providerIds },
        { organizationId },
      );
      expect(await refusal(away)).toMatchObject({ turnkeyErrorCode: 'ORGANIZATION_MISMATCH' });
    } finally {
      await stranger.close();
    }
  });
});

describe('whose request it is', () => {
  test.each([
    ['missing', undefined, 400],
    ['empty', '', 400],
    ['malformed', 'not-a-uuid', 400],
    ['twice', 'twice', 400],
    ['unknown', '00000000-0000-4000-8000-000000000000', 404],
  ])('a configuration id that is %s is a clear error', async (_what, id, status) => {
    const value = id === 'twice' ? `${configId}, ${configId}` : id;
    const answer = await exchange(`${coordinator.url}/v1/wallet_kit_config`, {
      method: 'POST',
      headers: { ...json, ...(value === undefined ? {} : { 'x-auth-proxy-config-id': value }) },
    });
    expect(answer).toMatchObject({
      status,
      body: { message: textLike(status === 400 ? 'X-Auth-Proxy-Config-Id' : 'no auth proxy configuration') },
    });
  });

  test.each(['X-Auth-Proxy-Config-Id', 'x-auth-proxy-config-id', 'X-AUTH-PROXY-CONFIG-ID'])(
    'the header may be written %s, and the id in either case',
    async (name) => {
      const headers = { ...json, [name]: configId.toUpperCase() };
      const { status } = await exchange(`${coordinator.url}/v1/wallet_kit_config`, { method: 'POST', headers });
      expect(status).toBe(200);
    },
  );

  describe('with named origins', () => {
    const app = 'https://app.example.com';
    beforeAll(() =>
      coordinator.client.submit('ACTIVITY_TYPE_UPDATE_AUTH_PROXY_CONFIG', {
        allowedOrigins: [app, 'http://localhost:3000'],
      }),
    );
    afterAll(() => coordinator.client.submit('ACTIVITY_TYPE_UPDATE_AUTH_PROXY_CONFIG', { allowedOrigins: ['*'] }));

    test.each([app, 'http://localhost:3000'])('%s may call, and is named in the answer', async (origin) => {
      const { status, headers } = await call('wallet_kit_config', {}, { origin });
      expect(status).toBe(200);
      expect(headers.get('access-control-allow-origin')).toBe(origin);
      expect(headers.get('vary')).toContain('Origin');
      expect(headers.get('access-control-allow-credentials')).toBeNull();
    });

    test.each([
      ['another', 'https://evil.example.com'],
      ['a suffix', 'https://app.example.com.evil.com'],
      ['a prefix', 'https://evilapp.example.com'],
      ['a subdomain', 'https://x.app.example.com'],
      ['another scheme', 'http://app.example.com'],
      ['another port', 'https://app.example.com:8443'],
      ['the usual port, written', 'https://app.example.com:443'],
      ['letter case', 'https://APP.example.com'],
      ['a slash', 'https://app.example.com/'],
      ['a dot', 'https://app.example.com.'],
      ['a user', 'https://app.example.com@evil.com'],
      ['null', 'null'],
      ['two', 'https://app.example.com, https://evil.com'],
      ['a wildcard', '*'],
      ['none', undefined],
    ])('%s is refused, and no page may read the answer', async (_what, origin) => {
      const before = coordinator.messages().length;
      const { status, headers, body } = await call(
        'otp_init',
        { otpType: 'OTP_TYPE_EMAIL', contact: newContact() },
        origin === undefined ? {} : { origin },
      );
      expect([status, body['code']]).toEqual([403, 7]);
      expect(headers.get('access-control-allow-origin')).toBeNull();
      expect(coordinator.messages()).toHaveLength(before);
    });

    const preflight = (origin: string, headers: Readonly<Record<string, string>> = {}) =>
      exchange(`${coordinator.url}/v1/otp_init`, {
        method: 'OPTIONS',
        headers: {
          origin,
          'access-control-request-method': 'POST',
          'access-control-request-headers': 'content-type,x-auth-proxy-config-id',
          ...headers,
        },
      });

    test('a preflight request is answered for origins that some configuration allows', async () => {
      const allowed = await preflight(app);
      expect(allowed.status).toBe(204);
      expect(allowed.headers.get('access-control-allow-origin')).toBe(app);
      expect(allowed.headers.get('access-control-allow-methods')).toBe('POST');
      expect(allowed.headers.get('access-control-allow-headers')!.toLowerCase()).toContain('x-auth-proxy-config-id');
      for (const refused of [await preflight('https://evil.example.com'), await preflight('null')]) {
        expect(refused.headers.get('access-control-allow-origin')).toBeNull();
      }
      for (const made of ['made up', `${configId}, ${configId}`, '']) {
        const { status, headers } = await preflight(app, { 'x-auth-proxy-config-id': made });
        expect([status, headers.get('access-control-allow-origin')]).toEqual([204, null]);
      }
      const named = { 'x-auth-proxy-config-id': configId };
      expect((await preflight(app, named)).headers.get('access-control-allow-origin')).toBe(app);
      expect(
        (await preflight('https://evil.example.com', named)).headers.get('access-control-allow-origin'),
      ).toBeNull();
    });
  });
});

describe('what must not go through', () => {
  const internal = (path: string, body: object, authorization?: string) =>
    exchange(`${coordinator.url}/internal/v1/auth-proxy/${path}`, {
      method: 'POST',
      headers: { ...json, ...(authorization === undefined ? {} : { authorization }) },
      body: JSON.stringify(body),
    });
  const bearer = `Bearer ${secret.replaceAll(' ', '-')}`;

  test.each([undefined, '', 'Bearer ', 'Bearer wrong', bearer.slice(0, -1), bearer.toLowerCase()])(
    'stamps and configurations do not, without the secret (%j)',
    async (authorization) => {
      for (const path of ['configuration', 'stamp', 'origin']) {
        const { status, text } = await internal(path, { configId, body: '{}', origin: '*' }, authorization);
        expect(status).toBe(401);
        expect(text).not.toContain(secret);
      }
    },
  );

  test('nothing does but what a proxy forwards, even with the secret', async () => {
    const { organizationId } = coordinator;
    const stamp = (body: object) => internal('stamp', { configId, body: JSON.stringify(body) }, bearer);
    for (const type of [
      'ACTIVITY_TYPE_EXPORT_WALLET',
      'ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2',
      'ACTIVITY_TYPE_CREATE_POLICY_V3',
      'ACTIVITY_TYPE_CREATE_API_KEYS_V2',
      'ACTIVITY_TYPE_APPROVE_ACTIVITY',
      'ACTIVITY_TYPE_STAMP_LOGIN',
      'ACTIVITY_TYPE_CREATE_READ_ONLY_SESSION',
      'ACTIVITY_TYPE_CREATE_READ_WRITE_SESSION_V2',
      'ACTIVITY_TYPE_UPDATE_ROOT_QUORUM',
      'ACTIVITY_TYPE_DISABLE_AUTH_PROXY',
      'ACTIVITY_TYPE_NOTHING',
      ['ACTIVITY_TYPE_INIT_OTP_V2'],
      1,
    ]) {
      expect((await stamp({ type, organizationId, parameters: {} })).status).toBe(403);
    }
    // Two members of one name, of which another reader might take the other.
    const doubled = '{"type":"ACTIVITY_TYPE_INIT_OTP_V2","type":"ACTIVITY_TYPE_EXPORT_WALLET"}';
    expect((await internal('stamp', { configId, body: doubled }, bearer)).status).toBe(400);
    expect((await stamp({ organizationId })).status).toBe(200);
  });

  /** The proxy's key as somebody has it who has stolen the store and the key-encryption key. */
  async function stolenKey(): Promise<ApiKeyPair> {
    const events = await coordinator.events();
    const { vaultId } = events.findLast(({ type }) => type === 'AuthProxyEnabled')!.data as { vaultId: string };
    const store = new InMemoryEventStore();
    const stream = `vault-${vaultId}`;
    const sealed = (await coordinator.events(stream)).map(({ id, type, data, metadata }) => ({
      id,
      type,
      data,
      metadata,
    }));
    await store.append(stream, sealed, 'no-stream');
    const kek = new SeededRandomness('kek of countersign').bytes(32);
    const randomness = new SeededRandomness('thief');
    const vault = new Vault({
      store,
      keyEncryption: new LocalKeyEncryption([kek], randomness),
      randomness,
      clock: coordinator.clock,
    });
    const place = { organizationId: coordinator.organizationId, vaultId };
    const publicKey = await new ProxyKeys({ vault, randomness, newId: () => '' }).provide(place);
    const privateKey = await vault.open({ ...place, name: 'api-key' }, (key) => key.toString('hex'));
    return { publicKey, privateKey, curve: 'API_KEY_CURVE_P256' };
  }

  test('a stolen key is good for what the proxy does, and for nothing else', async () => {
    const key = await stolenKey();
    const thief = coordinator.clientFor(key);
    const { userId } = await thief.query<{ userId: string }>('whoami');
    const spare = { apiKeyName: 'k', publicKey: coordinator.newKey().publicKey, curveType: 'API_KEY_CURVE_P256' };
    const account = {
      curve: 'CURVE_P256',
      pathFormat: 'PATH_FORMAT_BIP32',
      path: 'm/0',
      addressFormat: 'ADDRESS_FORMAT_COMPRESSED',
    };
    const attempts: Readonly<Record<string, object>> = {
      ACTIVITY_TYPE_CREATE_API_KEYS_V2: { userId, apiKeys: [spare] },
      ACTIVITY_TYPE_CREATE_POLICY_V3: { policyName: 'mine', effect: 'EFFECT_ALLOW', notes: '' },
      ACTIVITY_TYPE_CREATE_USERS_V4: {
        users: [{ userName: 'm', apiKeys: [spare], authenticators: [], oauthProviders: [], userTags: [] }],
      },
      ACTIVITY_TYPE_CREATE_WALLET: { walletName: 'w', accounts: [account] },
      ACTIVITY_TYPE_UPDATE_ROOT_QUORUM: { threshold: 1, userIds: [userId] },
      ACTIVITY_TYPE_UPDATE_AUTH_PROXY_CONFIG: { allowedOrigins: ['*'] },
      ACTIVITY_TYPE_DELETE_USERS: { userIds: [coordinator.root.userId] },
    };
    for (const [type, parameters] of Object.entries(attempts)) {
      const refused = await refusal(thief.submit(type, parameters));
      expect([type, refused.status]).toEqual([type, 403]);
    }
    for (const path of ['list_users', 'list_wallets', 'get_organization', 'list_policies', 'list_activities']) {
      expect([path, (await refusal(thief.query(path))).status]).toEqual([path, 403]);
    }
    // Into a sub-organization, whose parent it belongs to.
    const { organizationId, userId: person } = await signedUp();
    const inside = coordinator.clientFor(key, organizationId);
    const own = await refusal(inside.submit('ACTIVITY_TYPE_CREATE_API_KEYS_V2', { userId: person, apiKeys: [spare] }));
    expect(own.status).toBeGreaterThanOrEqual(400);
    expect((await refusal(inside.query('list_wallets'))).status).toBe(403);
  });

  test('a verification token cannot be forged, or used again', async () => {
    const { contact, key, verificationToken, organizationId } = await signedUp();
    const [header, payload] = verificationToken.split('.') as [string, string];
    const forged = `${header}.${payload}.${Buffer.alloc(64, 1).toString('base64url')}`;
    const other = Buffer.from(JSON.stringify({ ...claimsOf(verificationToken), contact: 'other@example.com' }));
    const changed = verificationToken.replace(payload, other.toString('base64url'));
    for (const token of [forged, changed, `${header}.${payload}.`, 'x', 'a.b.c']) {
      expect(
        (await call('account', { filterType: 'EMAIL', filterValue: contact, verificationToken: token })).status,
      ).toBe(400);
      const session = coordinator.newKey().publicKey;
      const attempt = await call('otp_login', { verificationToken: token, publicKey: session });
      // Whether somebody has the contact is not told to who has not proved it.
      expect([attempt.status, attempt.body['message']]).toEqual([400, textLike('verificationToken')]);
    }
    // Whoever has read a token that is bound to a key does not have the key.
    const { publicKey } = coordinator.newKey();
    expect(await call('otp_login', { verificationToken, publicKey })).toMatchObject({
      status: 400,
      body: { message: textLike('clientSignature') },
    });
    const body = login(key, verificationToken, coordinator.newKey());
    expect((await call('otp_login', body)).status).toBe(200);
    expect(await call('otp_login', body)).toMatchObject({
      status: 400,
      body: { message: textLike('has already been used') },
    });
    expect((await call('otp_login', { ...body, organizationId })).status).toBe(400);
  });

  test('a verification token logs nobody in to the parent, whatever they have proved', async () => {
    const { client, clock, root, organizationId } = coordinator;
    const person = { subject: 'the administrator', at: clock.now() };
    const oidcToken = await provider.idToken(person);
    await client.submit('ACTIVITY_TYPE_CREATE_OAUTH_PROVIDERS_V2', {
      userId: root.userId,
      oauthProviders: [{ providerName: 'provider', oidcToken }],
    });
    const logIn = async (key: ApiKeyPair) => {
      const { publicKey } = coordinator.newKey();
      const parameters = { publicKey, oidcToken: await provider.idToken({ ...person, publicKey }) };
      return coordinator.clientFor(key).submit('ACTIVITY_TYPE_OAUTH_LOGIN', parameters);
    };
    const thief = await stolenKey();
    const refused = await refusal(logIn(thief));
    expect([refused.status, refused.message]).toEqual([403, textLike(organizationId)]);
    // The denial names who it was.
    const { userId } = await coordinator.clientFor(thief).query<{ userId: string }>('whoami');
    const last = async () =>
      (await client.query<{ denials: readonly { userId: string }[] }>('list_denials')).denials[0];
    await until('the denial is listed', async () => (await last())?.userId === userId);
    expect(await last()).toMatchObject({ type: 'ACTIVITY_TYPE_OAUTH_LOGIN' });
    // The same, asked for by somebody of the organization.
    expect((await logIn(client.key)).status).toBe('ACTIVITY_STATUS_COMPLETED');
  });

  test('nobody can log in to the parent organization', async () => {
    const key = coordinator.newKey();
    const { organizationId } = coordinator;
    const body = { ...login(key, await verified(newContact(), key), key), organizationId };
    const refused = [body, { ...body, organizationId: organizationId.toUpperCase() }];
    for (const one of refused) {
      expect(await call('otp_login', one)).toMatchObject({ status: 400, body: { message: textLike('parent') } });
    }
    const oauth = { oidcToken: 'x', publicKey: key.publicKey, organizationId };
    expect((await call('oauth_login', oauth)).status).toBe(400);
  });

  test('disabling cuts it off at once: configuration, key and policy are gone, the vault is shredded', async () => {
    const alone = await startCoordinator();
    try {
      const { root, client } = alone;
      const headers = { 'x-auth-proxy-config-id': root.authProxyConfigId };
      expect((await call('wallet_kit_config', {}, headers, alone.url)).status).toBe(200);
      const [enabled] = (await alone.events()).filter(({ type }) => type === 'AuthProxyEnabled');
      const { vaultId, userId, policyId } = enabled!.data as Record<string, string>;
      await client.submit('ACTIVITY_TYPE_DISABLE_AUTH_PROXY', {});
      for (const path of ['wallet_kit_config', 'otp_init', 'signup', 'account']) {
        const answer = await call(path, { otpType: 'OTP_TYPE_EMAIL', contact: newContact() }, headers, alone.url);
        const unknown = { 'x-auth-proxy-config-id': '00000000-0000-4000-8000-000000000000' };
        const other = await call(path, {}, unknown, alone.url);
        expect([answer.status, other.status]).toEqual([404, 404]);
        // One that was and one that never was are told alike.
        const told = (message: unknown) => String(message).replace(/`[0-9a-f-]{36}`/, '');
        expect(told(answer.body['message'])).toBe(told(other.body['message']));
      }
      expect((await refusal(client.query('get_user', { userId: userId! }))).status).toBe(404);
      expect((await refusal(client.query('get_policy', { policyId: policyId! }))).status).toBe(404);
      expect(await alone.events(`vault-${vaultId}`)).toEqual([]);

      const { result } = await client.submit('ACTIVITY_TYPE_ENABLE_AUTH_PROXY', {});
      const { configId: next } = result['enableAuthProxyResult'] as { configId: string };
      expect(next).not.toBe(root.authProxyConfigId);
      const again = await call('wallet_kit_config', {}, { 'x-auth-proxy-config-id': next }, alone.url);
      expect(again.status).toBe(200);
    } finally {
      await alone.close();
    }
  });
});

describe('two organizations', () => {
  let tenants: Awaited<ReturnType<typeof startTenants>>;
  const configs: Record<'parent' | 'stranger', string> = { parent: '', stranger: '' };
  beforeAll(async () => {
    tenants = await startTenants();
    for (const name of ['parent', 'stranger'] as const) {
      const { result } = await tenants[name].client.submit('ACTIVITY_TYPE_ENABLE_AUTH_PROXY', {});
      ({ configId: configs[name] } = result['enableAuthProxyResult'] as { configId: string });
    }
  });
  afterAll(() => tenants.close());
  const as = (name: 'parent' | 'stranger', path: string, body: object) =>
    call(path, body, { 'x-auth-proxy-config-id': configs[name] }, tenants.url);

  test('each configuration is for its own organization', async () => {
    for (const name of ['parent', 'stranger'] as const) {
      expect((await as(name, 'wallet_kit_config', {})).body).toMatchObject({
        organizationId: tenants[name].organizationId,
      });
    }
  });

  test('nothing of one organization can be reached with the other’s configuration', async () => {
    const key = coordinator.newKey();
    const signup = await as('parent', 'signup_v2', {
      userName: 'Ann',
      apiKeys: [{ apiKeyName: 'k', publicKey: key.publicKey, curveType: 'API_KEY_CURVE_P256' }],
      authenticators: [],
      oauthProviders: [],
    });
    const filter = { filterType: 'PUBLIC_KEY', filterValue: key.publicKey };
    // What a stranger has only written down is told to nobody.
    expect((await as('parent', 'account', filter)).body).toEqual({});
    const organizationId = String(signup.body['organizationId']);
    await new StampingClient(tenants.url, organizationId, key, tenants.clock).submit('ACTIVITY_TYPE_STAMP_LOGIN', {
      publicKey: coordinator.newKey().publicKey,
    });
    expect((await as('parent', 'account', filter)).body).toEqual({ organizationId });
    expect((await as('stranger', 'account', filter)).body).toEqual({});

    const { otpId } = (await as('parent', 'otp_init', { otpType: 'OTP_TYPE_EMAIL', contact: 'ann@example.com' })).body;
    const code = { otpId, otpCode: '123456789' };
    const elsewhere = await as('stranger', 'otp_verify', code);
    const nowhere = await as('stranger', 'otp_verify', { ...code, otpId: tenants.parent.userId });
    expect([elsewhere.status, nowhere.status]).toEqual([nowhere.status, elsewhere.status]);
    expect(elsewhere.status).toBeGreaterThanOrEqual(400);

    const oauth = { oidcToken: 'a.b.c', publicKey: key.publicKey, organizationId: signup.body['organizationId'] };
    expect(await as('stranger', 'oauth_login', oauth)).toMatchObject({
      status: 403,
      body: { message: textLike('this configuration does not cover the organization') },
    } satisfies { status: number; body: Partial<Record<keyof Refusal, unknown>> });
  });

  test('a sub-organization gets no auth proxy', async () => {
    const refused = await refusal(tenants.child.client.submit('ACTIVITY_TYPE_ENABLE_AUTH_PROXY', {}));
    expect([refused.status, refused.message]).toEqual([400, textLike('enable the auth proxy of its parent')]);
  });
});

describe('limits', () => {
  test('are on for each address, configuration and contact', async () => {
    const limited = await startCoordinator({
      settings: {
        PROXY_RATE_LIMIT_PER_ADDRESS: '1000',
        PROXY_RATE_LIMIT_PER_CONFIGURATION: '12',
        PROXY_RATE_LIMIT_PER_CONTACT: '2',
      },
    });
    try {
      const headers = { 'x-auth-proxy-config-id': limited.root.authProxyConfigId };
      const init = (contact: string) => call('otp_init', { otpType: 'OTP_TYPE_EMAIL', contact }, headers, limited.url);
      const statuses: number[] = [];
      for (const contact of ['a@example.com', 'A@Example.com', ' a@example.com', 'b@example.com']) {
        statuses.push((await init(contact)).status);
      }
      expect(statuses).toEqual([200, 200, 429, 200]);
      let last: Awaited<ReturnType<typeof call>>;
      let count = 4;
      do {
        last = await call('wallet_kit_config', {}, headers, limited.url);
        count++;
      } while (last.status === 200);
      expect(count).toBe(13);
      expect(last).toMatchObject({ status: 429, body: { code: 8, turnkeyErrorCode: 'RATE_LIMIT_EXCEEDED' } });
    } finally {
      await limited.close();
    }
  });

  test('of codes to a contact count the spellings of its mailbox as one', async () => {
    const limited = await startCoordinator({ settings: { PROXY_RATE_LIMIT_PER_CONTACT: '2' } });
    try {
      const headers = { 'x-auth-proxy-config-id': limited.root.authProxyConfigId };
      for (const spellings of [
        ['ann@example.com', 'ann+1@example.com', 'Ann+2+3@Example.com'],
        ['ann@gmail.com', 'a.n.n+1@gmail.com', 'an.n@googlemail.com'],
        ['zo\u00eb@example.com', 'zoe\u0308@example.com', 'ZO\u00cb+1@example.com'],
      ]) {
        const statuses: number[] = [];
        for (const contact of spellings) {
          statuses.push((await call('otp_init', { otpType: 'OTP_TYPE_EMAIL', contact }, headers, limited.url)).status);
        }
        expect([spellings, statuses]).toEqual([spellings, [200, 200, 429]]);
      }
    } finally {
      await limited.close();
    }
  });

  test('of codes hold for an address, whomever it names; a text that reaches nobody is no code', async () => {
    const limited = await startCoordinator({
      settings: { TRUST_PROXY: 'true', PROXY_RATE_LIMIT_CODES_PER_ADDRESS: '3' },
    });
    try {
      const { authProxyConfigId: configId } = limited.root;
      await limited.client.submit('ACTIVITY_TYPE_UPDATE_AUTH_PROXY_CONFIG', { allowedAuthMethods: ['email', 'sms'] });
      const init = (otpType: string, contact: string, address = '2001:db8::1') => {
        const headers = { 'x-auth-proxy-config-id': configId, 'x-forwarded-for': address };
        return call('otp_init', { otpType: `OTP_TYPE_${otpType}`, contact }, headers, limited.url);
      };
      for (const [otpType, contact, rule] of [
        ['EMAIL', '+12025550100', 'an e-mail address'],
        ['EMAIL', 'nobody', 'an e-mail address'],
        ['SMS', 'ann@example.com', 'a phone number in E.164 format'],
        ['SMS', '12025550100', 'a phone number in E.164 format'],
      ] as const) {
        expect(await init(otpType, contact)).toMatchObject({
          status: 400,
          body: { message: textLike(`contact: must be ${rule}`) },
        });
      }
      const statuses: number[] = [];
      for (let number = 0; number < 3; number++) statuses.push((await init('SMS', `+1202555010${number}`)).status);
      expect(statuses).toEqual([200, 200, 200]);
      const refused = await init('EMAIL', 'ann@example.com', '2001:db8::2');
      expect([refused.status, JSON.stringify(refused.body)]).toEqual([
        429,
        textLike('3 codes in ten minutes from one address through the auth proxy'),
      ]);
      expect((await init('EMAIL', 'ann@example.com', '2001:db8:0:1::1')).status).toBe(200);
    } finally {
      await limited.close();
    }
  });

  test('of an address hold whatever configuration it guesses', async () => {
    const limited = await startCoordinator({ settings: { PROXY_RATE_LIMIT_PER_ADDRESS: '3' } });
    try {
      const guess = (index: number) =>
        call('account', {}, { 'x-auth-proxy-config-id': `00000000-0000-4000-8000-00000000000${index}` }, limited.url);
      const statuses: number[] = [];
      for (let index = 0; index < 5; index++) statuses.push((await guess(index)).status);
      expect(statuses).toEqual([404, 404, 404, 429, 429]);
    } finally {
      await limited.close();
    }
  });
});
