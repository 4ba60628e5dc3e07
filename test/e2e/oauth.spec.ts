import { verifySessionJwtSignature } from '@turnkey/crypto';
import { organizationStream } from '../../src/domain/organization/organization.js';
import { StampingClient, startCoordinator, type TestCoordinator, type TestUser } from '../../src/testing/index.js';
import { clientId, nonceFor, signingKey, startRealIssuer } from '../oidc/real-issuer.js';
import { denial, refusal } from './exchange.js';
import { IdentityProvider } from './identity-provider.js';
import { discoveryKeys, loginService, resultOf, sdkClient, target } from './login-world.js';
import { claimsOf } from './one-time-codes.js';

interface Credentials {
  readonly userId: string;
  readonly apiKeyId: string;
  readonly credentialBundle: string;
}

test('whom a real issuer knows logs in with the published clients, in both ways', async () => {
  const issuer = await startRealIssuer();
  issuer.provide([await signingKey('RS256', 'key')]);
  const settings = { ALLOW_PRIVATE_NETWORK: 'true' };
  const coordinator = await startCoordinator({ at: new Date(), settings });
  try {
    const service = sdkClient(coordinator, (await loginService(coordinator)).key);
    const first = await issuer.logIn('ann', 'any');
    coordinator.clock.set(Date.now());
    const { subOrganizationId: organizationId, rootUserIds } = await sdkClient(
      coordinator,
      coordinator.client.key,
    ).createSubOrganization({
      subOrganizationName: 'Ann',
      rootUsers: [
        {
          userName: 'Ann',
          apiKeys: [],
          authenticators: [],
          oauthProviders: [{ providerName: 'Provider', oidcToken: first }],
        },
      ],
      rootQuorumThreshold: 1,
    });

    const { publicKey: targetPublicKey, open } = target();
    const oidcToken = await issuer.logIn('ann', nonceFor(targetPublicKey));
    coordinator.clock.set(Date.now());
    const given = await service.oauth({ organizationId, oidcToken, targetPublicKey });
    expect(given.activity.status).toBe('ACTIVITY_STATUS_COMPLETED');
    expect(given.userId).toBe(rootUserIds![0]);
    const credentials = new StampingClient(coordinator.url, organizationId, open(given.credentialBundle));
    expect(await credentials.query('whoami')).toMatchObject({ organizationId, userId: given.userId });
    const { apiKeys } = await credentials.query<{ apiKeys: object[] }>('get_api_keys', { userId: given.userId });
    expect(apiKeys).toMatchObject([
      {
        apiKeyId: given.apiKeyId,
        apiKeyName: `Oauth - ${new Date(coordinator.clock.now()).toISOString()}`,
        credential: { type: 'CREDENTIAL_TYPE_OAUTH_KEY_P256', publicKey: credentials.key.publicKey },
        expirationSeconds: '900',
      },
    ]);

    const own = coordinator.newKey();
    const another = await issuer.logIn('ann', nonceFor(own.publicKey));
    // The issuer takes the real time.
    coordinator.clock.set(Date.now());
    const { session } = await service.oauthLogin({
      organizationId,
      oidcToken: another,
      publicKey: own.publicKey,
      expirationSeconds: '120',
    });
    const { notarizer } = await discoveryKeys(coordinator);
    expect(await verifySessionJwtSignature(session, notarizer)).toBe(true);
    expect(claimsOf(session)).toEqual({
      exp: Math.floor(coordinator.clock.now() / 1000) + 120,
      public_key: own.publicKey,
      session_type: 'SESSION_TYPE_READ_WRITE',
      user_id: given.userId,
      organization_id: organizationId,
    });
    const client = new StampingClient(coordinator.url, organizationId, own);
    expect(await client.query('whoami')).toMatchObject({ organizationId, userId: given.userId });
    expect(await service.getOauthProviders({ organizationId, userId: given.userId })).toEqual(
      await client.query('get_oauth_providers'),
    );
    expect(await client.query('get_oauth_providers')).toMatchObject({
      oauthProviders: [{ providerName: 'Provider', issuer: issuer.url, audience: clientId, subject: 'ann' }],
    });
  } finally {
    await coordinator.close();
    await issuer.close();
  }
}, 60_000);

let identities: IdentityProvider;
let coordinator: TestCoordinator;
let service: TestUser;
let people = 0;

beforeAll(async () => {
  identities = await IdentityProvider.start();
  coordinator = await startCoordinator({ settings: identities.settings });
  service = await loginService(coordinator);
});
afterAll(async () => {
  await coordinator.close();
  await identities.close();
});

/** Somebody with an organization of their own, known to the identity provider, and a key besides. */
async function newPerson() {
  const subject = `person ${++people}`;
  const key = coordinator.newKey();
  const token = (more: object = {}) => identities.idToken({ subject, at: coordinator.clock.now(), ...more });
  const activity = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8', {
    subOrganizationName: subject,
    rootUsers: [
      {
        userName: subject,
        apiKeys: [{ apiKeyName: 'own', publicKey: key.publicKey, curveType: key.curve }],
        authenticators: [],
        oauthProviders: [{ providerName: 'provider', oidcToken: await token() }],
      },
    ],
    rootQuorumThreshold: 1,
  });
  const { subOrganizationId: organizationId, rootUserIds } = resultOf<{
    subOrganizationId: string;
    rootUserIds: [string];
  }>(activity);
  const userId = rootUserIds[0];
  const client = new StampingClient(coordinator.url, organizationId, key, coordinator.clock);
  const as = (more: object) => ({ organizationId, ...more });

  return {
    organizationId,
    userId,
    client,
    token,
    /** Credentials by a token, as the parent's service asks for them. */
    async oauth(more: object = {}, by = service.client) {
      const { publicKey: targetPublicKey, open } = target();
      const asked = { oidcToken: await token({ publicKey: targetPublicKey }), targetPublicKey, ...more };
      const activity = await by.submit('ACTIVITY_TYPE_OAUTH', asked, as({}));
      const credentials = resultOf<Credentials>(activity);
      const key = open(credentials.credentialBundle);
      return {
        ...credentials,
        client: new StampingClient(coordinator.url, organizationId, key, coordinator.clock),
      };
    },
    async oauthLogin(more: object = {}, by = service.client) {
      const key = coordinator.newKey();
      const asked = { oidcToken: await token({ publicKey: key.publicKey }), publicKey: key.publicKey, ...more };
      const activity = await by.submit('ACTIVITY_TYPE_OAUTH_LOGIN', asked, as({}));
      return { session: resultOf(activity)['session']!, key };
    },
    async keyNames(): Promise<string[]> {
      const { apiKeys } = await client.query<{ apiKeys: { apiKeyName: string }[] }>('get_api_keys', { userId });
      return apiKeys.map(({ apiKeyName }) => apiKeyName);
    },
  };
}

describe('a key that a login makes', () => {
  test('works until its second is over', async () => {
    const ann = await newPerson();
    const { client } = await ann.oauth({ expirationSeconds: '60' });
    coordinator.clock.advance(59_999);
    expect(await client.query('whoami')).toMatchObject({ userId: ann.userId });
    expect(
      await client.submit('ACTIVITY_TYPE_UPDATE_USER_NAME', { userId: ann.userId, userName: 'Ann' }),
    ).toMatchObject({
      status: 'ACTIVITY_STATUS_COMPLETED',
    });
    coordinator.clock.advance(1);
    const expired = { status: 401, turnkeyErrorCode: 'API_KEY_EXPIRED' };
    expect(await refusal(client.query('whoami'))).toMatchObject(expired);
    expect(
      await refusal(client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'x', userIds: [] })),
    ).toMatchObject(expired);
  });

  test('replaces the keys of its own class when asked to, and leaves all others', async () => {
    const ann = await newPerson();
    await ann.oauth({ apiKeyName: 'first bundle' });
    await ann.oauth({ apiKeyName: 'second bundle' });
    await ann.oauthLogin();
    expect(await ann.keyNames()).toEqual(['own', 'first bundle', 'second bundle', expect.stringMatching(/^Login - /)]);
    await ann.oauth({ apiKeyName: 'third bundle', invalidateExisting: true });
    expect(await ann.keyNames()).toEqual(['own', expect.stringMatching(/^Login - /), 'third bundle']);
    await ann.oauthLogin({ invalidateExisting: true });
    expect(await ann.keyNames()).toEqual(['own', 'third bundle', expect.stringMatching(/^Login - /)]);
  });

  test('pushes out what has ended first, and the oldest then', async () => {
    const ann = await newPerson();
    const bundle = (apiKeyName: string, seconds: number) =>
      ann.oauth({ apiKeyName, expirationSeconds: String(seconds) });
    await bundle('oldest', 7_200);
    await bundle('over soon', 60);
    for (let number = 3; number <= 10; number++) await bundle(`key ${number}`, 7_200);
    expect(await ann.keyNames()).toHaveLength(11);
    coordinator.clock.advance(60_000);
    const { client } = await bundle('eleventh', 7_200);
    expect(await ann.keyNames()).toEqual(expect.not.arrayContaining(['over soon']));
    await bundle('twelfth', 7_200);
    const left = await ann.keyNames();
    expect(left).toHaveLength(11);
    expect(left).toEqual(['own', ...[3, 4, 5, 6, 7, 8, 9, 10].map((number) => `key ${number}`), 'eleventh', 'twelfth']);
    expect(await client.query('whoami')).toMatchObject({ userId: ann.userId });
  });

  test('is made once, however often the request is sent', async () => {
    const ann = await newPerson();
    const { publicKey: targetPublicKey } = target();
    const asked = { oidcToken: await ann.token({ publicKey: targetPublicKey }), targetPublicKey };
    const body = service.client.submitBody('ACTIVITY_TYPE_OAUTH', asked, { organizationId: ann.organizationId });
    const answers = await Promise.all(
      Array.from({ length: 5 }, async () => {
        const { body: answer } = await service.client.post<{ activity: { result: object } }>(
          '/public/v1/submit/oauth',
          body,
        );
        return answer.activity.result;
      }),
    );
    for (const answer of answers) expect(answer).toEqual(answers[0]);
    expect(await ann.keyNames()).toHaveLength(2);
  });

  test('is nowhere in the store in the clear', async () => {
    const ann = await newPerson();
    const { client } = await ann.oauth();
    const events = await coordinator.events(organizationStream(ann.organizationId));
    const text = JSON.stringify(events.map(({ data }) => data));
    expect(text).toContain(client.key.publicKey);
    for (const form of ['hex', 'base64url', 'base64'] as const) {
      expect(text).not.toContain(Buffer.from(client.key.privateKey, 'hex').toString(form).replace(/=+$/, ''));
    }
  });
});

test.each([
  ['base64 around it', (token: string) => Buffer.from(token).toString('base64'), {}],
  ['its audience as a list', (token: string) => token, { claims: { aud: ['app'] } }],
])('a token with %s logs in, and the history with it verifies', async (_what, sent, more) => {
  const own = await startCoordinator({ settings: identities.settings });
  const subject = 'Zoe';
  const token = async (publicKey?: string) => {
    const at = own.clock.now();
    return sent(await identities.idToken({ subject, at, ...more, ...(publicKey === undefined ? {} : { publicKey }) }));
  };
  const oauthProviders = async () => [{ providerName: 'provider', oidcToken: await token() }];
  const activity = await own.client.submit('ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8', {
    subOrganizationName: subject,
    rootUsers: [{ userName: subject, apiKeys: [], authenticators: [], oauthProviders: await oauthProviders() }],
    rootQuorumThreshold: 1,
  });
  const { subOrganizationId: organizationId } = resultOf<{ subOrganizationId: string }>(activity);
  const { client } = await loginService(own);
  const bundle = target();
  const asked = { oidcToken: await token(bundle.publicKey), targetPublicKey: bundle.publicKey };
  await client.submit('ACTIVITY_TYPE_OAUTH', asked, { organizationId });
  const key = own.newKey();
  const login = { oidcToken: await token(key.publicKey), publicKey: key.publicKey };
  await client.submit('ACTIVITY_TYPE_OAUTH_LOGIN', login, { organizationId });
  // Closing verifies, and throws what it finds.
  await own.close();
});

test('a token of more than 22 528 characters is refused before anything is read of it', async () => {
  const ann = await newPerson();
  const oidcToken = 'x'.repeat(22_529);
  const logins = [() => ann.oauth({ oidcToken }), () => ann.oauthLogin({ oidcToken })];
  for (const login of logins) {
    expect(await refusal(login())).toMatchObject({
      status: 400,
      message: expect.stringContaining('oidcToken: must have 1 to 22528 characters, has 22529') as string,
    });
  }
});

test('a login may wait for votes, and gives its result to the last voter', async () => {
  const ann = await newPerson();
  const bob = await coordinator.createUser('Bob');
  await coordinator.createPolicy({
    policyName: 'two for a login',
    condition: "activity.kind == 'OAUTH' && activity.resource == 'AUTH'",
    consensus: `approvers.any(user, user.id == '${bob.userId}')`,
  });
  // Bob may, alone; the parent decides, so there is nothing to vote on where the activity would stand.
  const { client } = await ann.oauth({}, bob.client);
  expect(await client.query('whoami')).toMatchObject({ userId: ann.userId });

  const { userIds } = resultOf<{ userIds: [string] }>(
    await ann.client.submit('ACTIVITY_TYPE_CREATE_USERS_V4', {
      users: [
        {
          userName: 'Second',
          apiKeys: [{ apiKeyName: 'key', publicKey: bob.key.publicKey, curveType: bob.key.curve }],
          authenticators: [],
          oauthProviders: [],
          userTags: [],
        },
      ],
    }),
  );
  await ann.client.submit('ACTIVITY_TYPE_UPDATE_ROOT_QUORUM', { threshold: 2, userIds: [ann.userId, userIds[0]] });
  const { publicKey: targetPublicKey, open } = target();
  const oidcToken = await ann.token({ publicKey: targetPublicKey });
  const waiting = await ann.client.submit('ACTIVITY_TYPE_OAUTH', { oidcToken, targetPublicKey });
  expect(waiting).toMatchObject({ status: 'ACTIVITY_STATUS_CONSENSUS_NEEDED', result: {} });
  const second = new StampingClient(coordinator.url, ann.organizationId, bob.key, coordinator.clock);
  const done = await second.approve(waiting.fingerprint);
  expect(done.status).toBe('ACTIVITY_STATUS_COMPLETED');
  const key = open(resultOf<Credentials>(done).credentialBundle);
  const opened = new StampingClient(coordinator.url, ann.organizationId, key, coordinator.clock);
  expect(await opened.query('whoami')).toMatchObject({ userId: ann.userId });
});

describe('what must not log anybody in', () => {
  const invalid = { status: 400, code: 3, turnkeyErrorCode: 'INVALID_OIDC_TOKEN' };

  test.each(['oauth', 'oauthLogin'] as const)('%s: a token that is not the right one', async (way) => {
    const [ann, ben] = [await newPerson(), await newPerson()];
    const key = coordinator.newKey().publicKey;
    const keys = { targetPublicKey: key, publicKey: undefined };
    const attempt = (oidcToken: string) =>
      refusal(way === 'oauth' ? ann.oauth({ oidcToken, ...keys }) : ann.oauthLogin({ oidcToken, publicKey: key }));
    const good = await ann.token({ publicKey: key });
    const [header, , signature] = good.split('.') as [string, string, string];
    const claims = { ...claimsOf(good), exp: 9_999_999_999 };
    const wrong: Readonly<Record<string, string>> = {
      'of another user': await ben.token({ publicKey: key }),
      'for another app': await ann.token({ publicKey: key, audience: 'another app' }),
      'for another key': await ann.token({ publicKey: coordinator.newKey().publicKey }),
      'for no key': await ann.token(),
      'for the same key in other letters': await ann.token({ publicKey: key.toUpperCase() }),
      'that is over': await ann.token({ publicKey: key, at: coordinator.clock.now() - 631_000 }),
      'of another issuer': await ann.token({ publicKey: key, claims: { iss: `${identities.issuer}/` } }),
      changed: [header, Buffer.from(JSON.stringify(claims)).toString('base64url'), signature].join('.'),
      'without a signature': [Buffer.from('{"alg":"none"}').toString('base64url'), good.split('.')[1], ''].join('.'),
    };
    for (const [what, token] of Object.entries(wrong)) {
      expect({ what, ...(await attempt(token)) }).toMatchObject({ what, ...invalid });
    }
    expect(await ann.keyNames()).toEqual(['own']);
    await (way === 'oauth' ? ann.oauth() : ann.oauthLogin());
    expect(await ann.keyNames()).toHaveLength(2);
  });

  test('an identity that was taken away', async () => {
    const ann = await newPerson();
    const { oauthProviders } = await ann.client.query<{ oauthProviders: { providerId: string }[] }>(
      'get_oauth_providers',
    );
    const providerIds = oauthProviders.map(({ providerId }) => providerId);
    await ann.client.submit('ACTIVITY_TYPE_DELETE_OAUTH_PROVIDERS', { userId: ann.userId, providerIds });
    expect(await refusal(ann.oauth())).toMatchObject(invalid);
    expect(await ann.client.query('get_oauth_providers', { userId: ann.userId })).toEqual({ oauthProviders: [] });
    const oidcToken = await ann.token();
    await ann.client.submit('ACTIVITY_TYPE_CREATE_OAUTH_PROVIDERS', {
      userId: ann.userId,
      oauthProviders: [{ providerName: 'again', oidcToken }],
    });
    await ann.oauth();
  });

  test('a key of the parent without the right, and what the right does not cover', async () => {
    const ann = await newPerson();
    const mallory = await coordinator.createUser('Mallory');
    const denied = await refusal(ann.oauth({}, mallory.client));
    expect(denied).toMatchObject({ status: 403, turnkeyErrorCode: 'REQUEST_NOT_AUTHORIZED' });
    expect(denial(denied).policyEvaluations?.map(({ outcome }) => outcome)).not.toContain('OUTCOME_ALLOW');
    expect(await refusal(ann.oauthLogin({}, mallory.client))).toMatchObject({ status: 403 });

    const into = { organizationId: ann.organizationId };
    for (const [type, parameters] of [
      ['ACTIVITY_TYPE_UPDATE_USER_NAME', { userId: ann.userId, userName: 'Mallory' }],
      ['ACTIVITY_TYPE_STAMP_LOGIN', { publicKey: coordinator.newKey().publicKey }],
      ['ACTIVITY_TYPE_CREATE_READ_WRITE_SESSION_V2', { targetPublicKey: target().publicKey, userId: ann.userId }],
    ] as const) {
      for (const client of [coordinator.client, service.client]) {
        expect([type, await refusal(client.submit(type, parameters, into))]).toMatchObject([
          type,
          { status: 400, turnkeyErrorCode: 'ORGANIZATION_MISMATCH' },
        ]);
      }
    }
    // Identities the parent may give under a rule of their own: nobody is linked whose token does not prove the user's address.
    const mine = { userId: ann.userId, oauthProviders: [{ providerName: 'mine', oidcToken: await ann.token() }] };
    const giving = (client: StampingClient) => client.submit('ACTIVITY_TYPE_CREATE_OAUTH_PROVIDERS_V2', mine, into);
    const { status, message } = await refusal(giving(coordinator.client));
    expect({ status, message }).toEqual({
      status: 403,
      message: expect.stringMatching(
        /only an identity whose token proves the user's own verified e-mail address/,
      ) as string,
    });
    expect(denial(await refusal(giving(service.client))).policyEvaluations).toBeDefined();
    expect(await ann.keyNames()).toEqual(['own']);
  });

  test('a key of another sub-organization', async () => {
    const [ann, ben] = [await newPerson(), await newPerson()];
    expect(await refusal(ann.oauth({}, ben.client))).toMatchObject({ turnkeyErrorCode: 'PUBLIC_KEY_NOT_FOUND' });
  });

  test('the right to log people in, where it would be the right to be them', async () => {
    const { root } = coordinator;
    const { publicKey: targetPublicKey } = target();
    const asked = { targetPublicKey, userId: root.userId };
    expect(await refusal(service.client.submit('ACTIVITY_TYPE_CREATE_READ_WRITE_SESSION_V2', asked))).toMatchObject({
      status: 403,
      turnkeyErrorCode: 'REQUEST_NOT_AUTHORIZED',
    });
    const own = await service.client.submit('ACTIVITY_TYPE_CREATE_READ_WRITE_SESSION_V2', { targetPublicKey });
    expect(resultOf(own)).toMatchObject({ userId: service.userId, username: 'Login service' });
  });
});

describe('identities', () => {
  test('users give themselves more of them, and nobody one that is taken', async () => {
    const [ann, ben] = [await newPerson(), await newPerson()];
    let tokens = 0;
    const home = () => {
      const claims = { jti: String(++tokens) };
      return identities.idToken({ subject: `${ann.userId} at home`, at: coordinator.clock.now(), claims });
    };
    const another = await home();
    const body = (userId: string, oidcToken: string) => ({
      userId,
      oauthProviders: [{ providerName: 'home', oidcToken }],
    });
    const type = 'ACTIVITY_TYPE_CREATE_OAUTH_PROVIDERS_V2';
    const { providerIds } = resultOf<{ providerIds: [string] }>(
      await ann.client.submit(type, body(ann.userId, another)),
    );
    const { oauthProviders } = await ann.client.query<{ oauthProviders: { providerId: string }[] }>(
      'get_oauth_providers',
    );
    expect(oauthProviders).toHaveLength(2);
    expect(oauthProviders[1]).toMatchObject({ providerId: providerIds[0], providerName: 'home' });
    // A token registers once; the next says the same of the same person.
    expect(await refusal(ann.client.submit(type, body(ann.userId, another)))).toMatchObject({
      status: 400,
      message: expect.stringContaining('has already been used') as string,
    });
    expect(await refusal(ann.client.submit(type, body(ann.userId, await home())))).toMatchObject({
      status: 409,
      turnkeyErrorCode: 'OAUTH_PROVIDER_ALREADY_EXISTS',
    });
    // An organization of its own is a world of its own.
    await ben.client.submit(type, body(ben.userId, await home()));
    expect(await refusal(ann.client.submit(type, body(ann.userId, 'not a token')))).toMatchObject({
      status: 400,
      turnkeyErrorCode: 'INVALID_OIDC_TOKEN',
    });
    expect(await refusal(ann.client.query('get_oauth_providers', { userId: ben.userId }))).toMatchObject({
      status: 404,
    });
  });

  test('one token proves the same person for other apps that the parent has listed', async () => {
    const socialLinkingClientIds = ['app', 'web', 'phone', 'tv'];
    await coordinator.client.submit('ACTIVITY_TYPE_UPDATE_AUTH_PROXY_CONFIG', { socialLinkingClientIds });
    const ann = await newPerson();
    const proof = { iss: identities.issuer, sub: claimsOf(await ann.token())['sub'] };
    const type = 'ACTIVITY_TYPE_CREATE_OAUTH_PROVIDERS_V2';
    const asked = (oidcToken: string, oidcClaims: object) => ({
      userId: ann.userId,
      oauthProviders: [
        { providerName: 'proved', oidcToken },
        { providerName: 'claimed', oidcClaims },
      ],
    });
    await ann.client.submit(type, asked(await ann.token({ audience: 'web' }), { ...proof, aud: 'phone' }));
    const key = coordinator.newKey();
    const oidcToken = await ann.token({ audience: 'phone', publicKey: key.publicKey });
    await ann.oauthLogin({ oidcToken, publicKey: key.publicKey });
    const other = await ann.token({ audience: 'tv' });
    const claimed = asked(other, { ...proof, sub: 'somebody', aud: 'tv' });
    expect(await refusal(ann.client.submit(type, claimed))).toMatchObject({ status: 400 });
  });
});
