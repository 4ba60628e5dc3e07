import { send, startCoordinator, StampingClient, submitPath, type ApiKeyPair } from '../../src/testing/index.js';
import type { TestCoordinator } from '../../src/testing/index.js';
import { organizationStream } from '../../src/domain/organization/organization.js';
import { stampBody } from '../../src/stamps/sign.js';
import { anyText, exchange, refusal, textLike } from './exchange.js';
import { clientSecret, IdentityProvider } from './identity-provider.js';
import { discoveryKeys, resultOf } from './login-world.js';
import { claimsOf, clientSignature, codeOf } from './one-time-codes.js';
import { until } from './until.js';

// Whoever reads what was recorded tries to act by it (R3). Readers are members of the parent whom no policy names, and
// strangers who have signed up through the auth proxy.

let coordinator: TestCoordinator;
let identities: IdentityProvider;
let people = 0;
const newContact = () => `person-${++people}@example.com`;
/** Where the parent's own application is known at the provider. */
const ownApp = 'the app';
const redirectUri = 'https://app.example/back';
const codeVerifier = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk';

beforeAll(async () => {
  identities = await IdentityProvider.start();
  coordinator = await startCoordinator({
    settings: {
      ...identities.settings,
      PROXY_RATE_LIMIT_PER_ADDRESS: '0',
      PROXY_RATE_LIMIT_PER_CONFIGURATION: '0',
      PROXY_RATE_LIMIT_SIGN_UPS_PER_ADDRESS: '0',
      PROXY_RATE_LIMIT_CODES_PER_ADDRESS: '0',
      PROXY_RATE_LIMIT_PER_CONTACT: '0',
    },
  });
});
afterAll(async () => {
  await coordinator.close();
  await identities.close();
});

async function proxy(path: string, body: object) {
  const { status, body: answer } = await exchange(`${coordinator.url}/v1/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-auth-proxy-config-id': coordinator.root.authProxyConfigId },
    body: JSON.stringify(body),
  });
  return { status, body: answer as Readonly<Record<string, string>> };
}

async function ok(path: string, body: object) {
  const answer = await proxy(path, body);
  expect(answer).toMatchObject({ status: 200, body: {} });
  return answer.body;
}

/** A token for a contact, by a code that was asked for through the auth proxy; bound to a key if there is one. */
async function verified(contact: string, key?: ApiKeyPair): Promise<string> {
  const { otpId } = await ok('otp_init', { otpType: 'OTP_TYPE_EMAIL', contact });
  const otpCode = await codeOf(coordinator, otpId!);
  const bound = key ? { publicKey: key.publicKey } : {};
  return (await ok('otp_verify', { otpId, otpCode, ...bound }))['verificationToken']!;
}

/** Signs somebody up by a contact whose token is bound to the key, or to none. */
async function signUp(contact: string, verificationToken: string, key?: ApiKeyPair, more: object = {}) {
  const asked = { apiKeys: [], authenticators: [], oauthProviders: [], ...more };
  const signup = { signup: { ...asked, email: contact } };
  const signature = key && { clientSignature: clientSignature(key, verificationToken, 'USAGE_TYPE_SIGNUP', signup) };
  return proxy('signup', { userEmail: contact, verificationToken, ...asked, ...signature });
}

const apiKey = (key: ApiKeyPair) => ({ apiKeyName: 'own', publicKey: key.publicKey, curveType: key.curve });

/** A stranger with a sub-organization of its own. */
async function stranger() {
  const key = coordinator.newKey();
  const { organizationId, userId } = await ok('signup', {
    apiKeys: [apiKey(key)],
    authenticators: [],
    oauthProviders: [],
  });
  const client = new StampingClient(coordinator.url, organizationId!, key, coordinator.clock);
  return { key, organizationId: organizationId!, userId: userId!, client };
}

const login = (key: ApiKeyPair | undefined, verificationToken: string, session: ApiKeyPair) => ({
  verificationToken,
  publicKey: session.publicKey,
  ...(key && {
    clientSignature: clientSignature(key, verificationToken, 'USAGE_TYPE_LOGIN', {
      login: { publicKey: session.publicKey },
    }),
  }),
});

/** The header of an attested stamp, as the published client makes it. */
function attested(body: string, key: ApiKeyPair, token: string, scheme: string): string {
  const { signature } = JSON.parse(Buffer.from(stampBody(body, key).headerValue, 'base64url').toString()) as {
    signature: string;
  };
  const stamp = { publicKeyAttestation: token, scheme, publicKey: key.publicKey, signature };
  return Buffer.from(JSON.stringify(stamp)).toString('base64url');
}

async function attestedLogin(organizationId: string, key: ApiKeyPair, token: string) {
  const type = 'ACTIVITY_TYPE_STAMP_LOGIN';
  const client = new StampingClient(coordinator.url, organizationId, key, coordinator.clock);
  const body = client.submitBody(type, { publicKey: key.publicKey });
  const scheme = 'STAMP_ATTESTED_SCHEME_P256_VERIFICATION_TOKEN';
  const headers = { 'x-stamp-attested': attested(body, key, token, scheme) };
  return (await send<{ activity: { result: object } }>(`${coordinator.url}${submitPath(type)}`, body, headers)).body
    .activity;
}

/** Everything that a member who may do nothing reads about an organization's activities. */
async function readAll(reader: StampingClient, organizationId: string): Promise<string> {
  const limit = { paginationOptions: { limit: '100' } };
  const list = await reader.query<{ activities: { id: string }[] }>('list_activities', { organizationId, ...limit });
  const parts: unknown[] = [list, await reader.query('list_denials', { organizationId, ...limit })];
  for (const { id: activityId } of list.activities) {
    for (const path of ['get_activity', 'list_activity_events', 'list_app_proofs'])
      parts.push(await reader.query(path, { organizationId, activityId }));
  }
  return JSON.stringify(parts);
}

/** Sends what an answer says that somebody has signed. */
function replay(said: { message: string; publicKey: string; scheme: string; signature: string }, path: string) {
  const { publicKey, scheme, signature } = said;
  const stamp = Buffer.from(JSON.stringify({ publicKey, scheme, signature })).toString('base64url');
  return send<{ activity: { status: string; result: object } }>(`${coordinator.url}${path}`, said.message, {
    'x-stamp': stamp,
  });
}

const signatureOf = (token: string): string => token.slice(token.lastIndexOf('.') + 1);

describe('a verification token', () => {
  test('is read by nobody, while it lives; its claims are, and the rest once it is over', async () => {
    const reader = await coordinator.createUser('Reader');
    const [ann, ben] = [newContact(), newContact()];
    const key = coordinator.newKey();
    const bound = await verified(ann, key);
    const unbound = await verified(ben);
    const first = await signUp(ann, bound, key, { apiKeys: [apiKey(coordinator.newKey())] });
    const second = await signUp(ben, unbound);
    expect([first.status, second.status]).toEqual([200, 200]);
    await ok('otp_login', login(undefined, unbound, coordinator.newKey()));
    // An app proof says whatever its request has said.
    const [cara, own] = [await stranger(), newContact()];
    const inProof = await verified(own, coordinator.newKey());
    const change = { userId: cara.userId, userEmail: own, verificationToken: inProof };
    await cara.client.submit('ACTIVITY_TYPE_UPDATE_USER_EMAIL', change, { generateAppProofs: true });
    const organizations = [coordinator.organizationId, second.body['organizationId']!, cara.organizationId];
    const read = async () => (await Promise.all(organizations.map((one) => readAll(reader.client, one)))).join('\n');
    const early = await read();
    expect(early).toContain('APP_PROOF_TYPE_POLICY_OUTCOME');
    for (const token of [bound, unbound, inProof]) {
      expect(early).toContain(token.slice(0, token.lastIndexOf('.') + 1));
      expect(early).not.toContain(signatureOf(token));
    }
    expect(early).toContain('"redacted":true');
    coordinator.clock.advance('2h');
    const late = await read();
    // In what was submitted and signed, as evidence; results never had it.
    for (const token of [bound, unbound, inProof]) expect(late).toContain(signatureOf(token));
    expect(late).not.toContain('"redacted":true');
  });

  test('that was used once changes no contact, in no organization, even if somebody has it', async () => {
    const attacker = await stranger();
    const change = async (userEmail: string, verificationToken: string) =>
      refusal(
        attacker.client.submit('ACTIVITY_TYPE_UPDATE_USER_EMAIL', {
          userId: attacker.userId,
          userEmail,
          verificationToken,
        }),
      );
    const used = { status: 400, message: textLike('has already been used') };

    const ann = newContact();
    const key = coordinator.newKey();
    const bound = await verified(ann, key);
    const { organizationId } = (await signUp(ann, bound, key)).body;
    expect(await change(ann, bound)).toMatchObject(used);
    const next = await verified(ann, key);
    await ok('otp_login', login(key, next, coordinator.newKey()));
    expect(await change(ann, next)).toMatchObject(used);

    // A change elsewhere has used it too.
    const ben = await stranger();
    const own = newContact();
    const token = await verified(own, coordinator.newKey());
    const asked = { userId: ben.userId, userEmail: own, verificationToken: token };
    await ben.client.submit('ACTIVITY_TYPE_UPDATE_USER_EMAIL', asked);
    expect(await change(own, token)).toMatchObject(used);

    // The next login of the victim goes where it went.
    const again = await verified(ann, key);
    const account = await ok('account', { filterType: 'EMAIL', filterValue: ann, verificationToken: again });
    expect(account).toEqual({ organizationId });
  });

  test('that is bound to a key changes no contact once it is told again: whoever reads the request may ask for that', async () => {
    const ann = newContact();
    const key = coordinator.newKey();
    const bound = await verified(ann, key);
    const reader = await coordinator.createUser('Token reader');
    const type = 'ACTIVITY_TYPE_VERIFY_OTP';
    const { activities } = await reader.client.query<{
      activities: { votes: [Parameters<typeof replay>[0]]; intent: object }[];
    }>('list_activities', { filterByType: [type], paginationOptions: { limit: '1' } });
    expect(JSON.stringify(activities[0]!.intent)).toContain(key.publicKey);
    const { activity } = (await replay(activities[0]!.votes[0], submitPath(type))).body;
    const again = resultOf(activity)['verificationToken']!;
    expect(claimsOf(again)).toMatchObject({ id: claimsOf(bound)['id'], contact: ann });

    const attacker = await stranger();
    const change = { userId: attacker.userId, userEmail: ann, verificationToken: again };
    const attempt = attacker.client.submit('ACTIVITY_TYPE_UPDATE_USER_EMAIL', change);
    expect(await refusal(attempt)).toMatchObject({
      status: 400,
      message: textLike('came from the response to a repeated request'),
    });
    const { user } = await attacker.client.query<{ user: object }>('get_user', { userId: attacker.userId });
    expect(JSON.stringify(user)).not.toContain(ann);

    // Who has the key uses the one that was told again as the first.
    const { organizationId } = (await signUp(ann, again, key)).body;
    const { session } = await ok('otp_login', login(key, again, coordinator.newKey()));
    expect(claimsOf(session!)).toMatchObject({ organization_id: organizationId });
  });

  test('changes a contact only to the one that it proves, under the organization that has issued it', async () => {
    const [ann, ben] = [await stranger(), await stranger()];
    const change = (who: typeof ann, userEmail: string, verificationToken: string) =>
      who.client.submit('ACTIVITY_TYPE_UPDATE_USER_EMAIL', { userId: who.userId, userEmail, verificationToken });
    const own = newContact();
    const token = await verified(own, coordinator.newKey());
    expect(await refusal(change(ann, newContact(), token))).toMatchObject({
      status: 400,
      message: textLike('verifies a different contact'),
    });
    const phone = ann.client.submit('ACTIVITY_TYPE_UPDATE_USER_PHONE_NUMBER', {
      userId: ann.userId,
      userPhoneNumber: '+15005550006',
      verificationToken: token,
    });
    expect(await refusal(phone)).toMatchObject({ status: 400, message: textLike('verifies a different contact') });

    // A sub-organization issues tokens too: they are good in itself alone.
    await ben.client.submit('ACTIVITY_TYPE_UPDATE_USER_EMAIL', { userId: ben.userId, userEmail: own });
    const asked = { otpType: 'OTP_TYPE_EMAIL', contact: own, appName: 'Acme' };
    const { otpId } = resultOf<{ otpId: string }>(await ben.client.submit('ACTIVITY_TYPE_INIT_OTP_V3', asked));
    const verify = { otpId, otpCode: await codeOf(coordinator, otpId), publicKey: coordinator.newKey().publicKey };
    const issued = resultOf(await ben.client.submit('ACTIVITY_TYPE_VERIFY_OTP', verify))['verificationToken']!;
    expect(await refusal(change(ann, own, issued))).toMatchObject({ status: 400, message: textLike('was issued by') });
    const inParent = { userId: coordinator.root.userId, userEmail: own, verificationToken: issued };
    const attempt = coordinator.client.submit('ACTIVITY_TYPE_UPDATE_USER_EMAIL', inParent);
    expect(await refusal(attempt)).toMatchObject({ status: 400, message: textLike('was issued by') });
    await change(ben, own, issued);
    await change(ann, own, token);
  });

  test('that is bound to no key logs in once, wherever that was, and not after it has changed a contact', async () => {
    const ann = newContact();
    const token = await verified(ann);
    await signUp(ann, token);
    await ok('otp_login', login(undefined, token, coordinator.newKey()));
    const again = await proxy('otp_login', login(undefined, token, coordinator.newKey()));
    expect(again).toMatchObject({ status: 400, body: { message: textLike('has already been used') } });

    const ben = await stranger();
    const own = newContact();
    const changing = await verified(own);
    const asked = { userId: ben.userId, userEmail: own, verificationToken: changing };
    await ben.client.submit('ACTIVITY_TYPE_UPDATE_USER_EMAIL', asked);
    for (const attempt of [
      await proxy('otp_login', login(undefined, changing, coordinator.newKey())),
      await signUp(own, changing),
    ]) {
      expect(attempt).toMatchObject({ status: 400, body: { message: textLike('has already been used') } });
    }
  });

  test('that is bound to no key logs in where its contact was proved first, and nowhere else', async () => {
    const ann = newContact();
    const { organizationId: home } = (await signUp(ann, await verified(ann))).body;
    // Somebody has talked her into another code, and proved her address as theirs.
    const attacker = await stranger();
    const stolen = { userId: attacker.userId, userEmail: ann, verificationToken: await verified(ann) };
    await attacker.client.submit('ACTIVITY_TYPE_UPDATE_USER_EMAIL', stolen);
    const token = await verified(ann);
    const there = { ...login(undefined, token, coordinator.newKey()), organizationId: attacker.organizationId };
    expect(await proxy('otp_login', there)).toMatchObject({
      status: 400,
      body: { message: textLike('verified the contact first') },
    });
    const { session } = await ok('otp_login', { ...there, organizationId: home });
    expect(claimsOf(session!)).toMatchObject({ organization_id: home });
    // Who has the key of a token decides where to go.
    coordinator.clock.advance('4m');
    const key = coordinator.newKey();
    const bound = login(key, await verified(ann, key), coordinator.newKey());
    await ok('otp_login', { ...bound, organizationId: attacker.organizationId });
  });

  test('is told to who submits, in the answer to the append; again only where a key is needed to use it', async () => {
    const service = await coordinator.createUser('Service');
    await coordinator.createPolicy({
      policyName: 'codes',
      condition: "activity.resource == 'OTP'",
      consensus: `approvers.any(user, user.id == '${service.userId}')`,
    });
    const verify = async (more: object) => {
      const asked = { otpType: 'OTP_TYPE_EMAIL', contact: newContact(), appName: 'Acme' };
      const sent = await service.client.submit('ACTIVITY_TYPE_INIT_OTP_V3', asked);
      const { otpId } = resultOf<{ otpId: string }>(sent);
      const type = 'ACTIVITY_TYPE_VERIFY_OTP';
      const otpCode = await codeOf(coordinator, otpId);
      const body = service.client.submitBody(type, { otpId, otpCode, ...more });
      const send = async () => {
        const { activity } = (await service.client.post<{ activity: { result: object } }>(submitPath(type), body)).body;
        return resultOf(activity)['verificationToken']!;
      };
      return { token: await send(), send };
    };
    const unbound = await verify({});
    expect(signatureOf(unbound.token)).not.toBe('');
    expect(await refusal(unbound.send())).toMatchObject({ status: 400, message: textLike('start again') });
    const bound = await verify({ publicKey: coordinator.newKey().publicKey });
    const again = await bound.send();
    expect(claimsOf(again)).toEqual({ ...claimsOf(bound.token), told_again: 'true' });
    const recorded = JSON.stringify((await coordinator.events()).map(({ data }) => data));
    for (const token of [unbound.token, bound.token, again]) expect(recorded).not.toContain(signatureOf(token));
  });
});

describe('a mailbox', () => {
  test('does not open the parent organization through the auth proxy', async () => {
    const { client, organizationId, root } = coordinator;
    const mail = newContact();
    const asked = { otpType: 'OTP_TYPE_EMAIL', contact: mail, appName: 'Acme' };
    const ownToken = async (key?: ApiKeyPair) => {
      const { otpId } = resultOf<{ otpId: string }>(await client.submit('ACTIVITY_TYPE_INIT_OTP_V3', asked));
      const otpCode = await codeOf(coordinator, otpId);
      const bound = key ? { publicKey: key.publicKey } : {};
      return resultOf(await client.submit('ACTIVITY_TYPE_VERIFY_OTP', { otpId, otpCode, ...bound }))[
        'verificationToken'
      ]!;
    };
    const change = { userId: root.userId, userEmail: mail, verificationToken: await ownToken() };
    await client.submit('ACTIVITY_TYPE_UPDATE_USER_EMAIL', change);

    const thief = coordinator.newKey();
    expect(await refusal(attestedLogin(organizationId, thief, await verified(mail, thief)))).toMatchObject({
      status: 401,
    });
    // Neither does a member's back end log in by such a token.
    const token = await verified(mail, thief);
    const attempt = client.submit('ACTIVITY_TYPE_OTP_LOGIN_V2', login(thief, token, thief));
    expect(await refusal(attempt)).toMatchObject({ status: 400, message: textLike('auth proxy') });
    // A code that the proxy has sent, verified by a member, is the same.
    const { otpId } = await ok('otp_init', { otpType: 'OTP_TYPE_EMAIL', contact: mail });
    const verify = { otpId, otpCode: await codeOf(coordinator, otpId!), publicKey: thief.publicKey };
    const mixed = resultOf(await client.submit('ACTIVITY_TYPE_VERIFY_OTP', verify))['verificationToken']!;
    expect(await refusal(attestedLogin(organizationId, thief, mixed))).toMatchObject({ status: 401 });

    // What the parent's own members have asked for does.
    coordinator.clock.advance('4m');
    const own = coordinator.newKey();
    expect(resultOf(await attestedLogin(organizationId, own, await ownToken(own)))).toEqual({ session: anyText });
    // And the same person's token from the proxy goes to their sub-organization.
    const home = await signUp(mail, await verified(mail, thief), undefined);
    expect(home.status).toBe(400);
    const signing = await verified(mail, thief);
    const { organizationId: sub } = (await signUp(mail, signing, thief)).body;
    coordinator.clock.advance('4m');
    const { session } = resultOf(await attestedLogin(organizationId, thief, await verified(mail, thief)));
    expect(claimsOf(session!)).toMatchObject({ organization_id: sub });
  });
});

describe('an OIDC token', () => {
  const tokenOf = (subject: string, publicKey: string, audience = 'app') =>
    identities.idToken({ subject, publicKey, audience, at: coordinator.clock.now() });
  const register = (...oauthProviders: readonly object[]) =>
    proxy('signup_v2', { apiKeys: [apiKey(coordinator.newKey())], authenticators: [], oauthProviders });
  const named = (oidcToken: string) => ({ providerName: 'p', oidcToken });

  test('that was recorded registers nothing, and is not read while it lives', async () => {
    const reader = await coordinator.createUser('Reader of tokens');
    const subject = `victim-${++people}`;
    const { publicKey } = coordinator.newKey();
    const first = await tokenOf(subject, publicKey);
    const { organizationId } = (await register(named(first))).body;
    // As the published client does: the same token signs up and logs in.
    await ok('oauth_login', { oidcToken: first, publicKey });
    const second = await tokenOf(subject, publicKey, 'app');
    coordinator.clock.advance('2s');
    await ok('oauth_login', { oidcToken: second, publicKey });

    const read = [
      await readAll(reader.client, coordinator.organizationId),
      await readAll(reader.client, organizationId!),
    ];
    for (const token of [first, second]) expect(read.join('\n')).not.toContain(signatureOf(token));

    const used = { status: 400, message: textLike('has already been used') };
    const wrapped = (token: string) => Buffer.from(token).toString('base64');
    for (const token of [first, second, wrapped(first)]) {
      expect(await register(named(token))).toMatchObject({ status: 400, body: { message: used.message } });
    }
    const attacker = await stranger();
    const link = (oidcToken: string) =>
      attacker.client.submit('ACTIVITY_TYPE_CREATE_OAUTH_PROVIDERS_V2', {
        userId: attacker.userId,
        oauthProviders: [named(oidcToken)],
      });
    for (const token of [first, second]) expect(await refusal(link(token))).toMatchObject(used);
    const members = (oidcToken: string) =>
      coordinator.client.submit('ACTIVITY_TYPE_CREATE_USERS_V4', {
        users: [{ userName: 'm', apiKeys: [], authenticators: [], oauthProviders: [named(oidcToken)], userTags: [] }],
      });
    expect(await refusal(members(second))).toMatchObject(used);
  });

  test('speaks for its own audience, and for others only where the parent has listed both', async () => {
    const subject = `victim-${++people}`;
    const { publicKey } = coordinator.newKey();
    const claims = (aud: string, iss = identities.issuer, sub = subject) => ({
      providerName: 'c',
      oidcClaims: { iss, sub, aud },
    });
    const evil = async () => named(await tokenOf(subject, publicKey, 'evil-app'));
    expect(await register(await evil(), claims('app'))).toMatchObject({
      status: 400,
      body: { message: textLike('oidcClaims') },
    });
    const update = (parameters: object) =>
      coordinator.client.submit('ACTIVITY_TYPE_UPDATE_AUTH_PROXY_CONFIG', parameters);
    await update({ walletKitSettings: { oauthClientIds: { google: 'app', apple: 'ios' } } });
    try {
      const refused = { status: 400, body: { message: textLike('client id') } };
      // Neither beside claims nor alone: no app but the parent's speaks for its users.
      expect(await register(await evil(), claims('app'))).toMatchObject(refused);
      expect(await register(await evil())).toMatchObject(refused);
      expect(await register(named(await tokenOf(subject, publicKey)), claims('evil-app'))).toMatchObject(refused);
      const own = await register(named(await tokenOf(subject, publicKey)), claims('ios'));
      expect(own.status).toBe(200);
      for (const audience of ['app', 'ios']) {
        const session = coordinator.newKey();
        const oidcToken = await tokenOf(subject, session.publicKey, audience);
        const { session: text } = await ok('oauth_login', { oidcToken, publicKey: session.publicKey });
        expect(claimsOf(text!)).toMatchObject({ organization_id: own.body['organizationId'] });
      }
    } finally {
      await update({ walletKitSettings: {} });
    }
  });

  test('of this server speaks for applications of the parent only', async () => {
    const { encryptOauth2ClientSecret } = await import('@turnkey/crypto');
    const provider = 'OAUTH2_PROVIDER_DISCORD';
    const application = async (client: StampingClient, clientId: string) => {
      const key = (await discoveryKeys(coordinator))['oauthSecretEncryption'];
      const encryptedClientSecret = await encryptOauth2ClientSecret(clientSecret, key);
      const asked = { provider, clientId, encryptedClientSecret };
      const made = await client.submit('ACTIVITY_TYPE_CREATE_OAUTH2_CREDENTIAL', asked);
      const { oauth2CredentialId } = resultOf<{ oauth2CredentialId: string }>(made);
      return async (nonce: string) => {
        const authCode = identities.newCode({ personId: '4711', clientId, redirectUri, codeVerifier });
        const exchangeOf = { oauth2CredentialId, authCode, redirectUri, codeVerifier, nonce };
        return resultOf(await client.submit('ACTIVITY_TYPE_OAUTH2_AUTHENTICATE', exchangeOf))['oidcToken']!;
      };
    };
    const own = await application(coordinator.client, ownApp);
    const attacker = await stranger();
    const evil = await application(attacker.client, 'an app of the attacker');
    const token = await evil('ab'.repeat(32));
    const { iss, sub } = claimsOf(token) as { iss: string; sub: string };
    const claimed = { providerName: 'c', oidcClaims: { iss, sub, aud: ownApp } };
    for (const list of [[named(await evil('ab'.repeat(32))), claimed], [named(await evil('ab'.repeat(32)))]]) {
      expect(await register(...list)).toMatchObject({ status: 400, body: { message: textLike('client id') } });
    }
    expect((await register(named(await own('ab'.repeat(32))))).status).toBe(200);

    // Told once: what it proves is in no event and in no answer but the first.
    const recorded = JSON.stringify(
      (await coordinator.events(organizationStream(attacker.organizationId))).map(({ data }) => data),
    );
    expect(recorded).not.toContain(signatureOf(token));
  });
});

test('a code of an OAuth 2.0 provider that was not exchanged is read by nobody, nor its verifier', async () => {
  const maker = await coordinator.createUser('Exchanger');
  const secrets = { authCode: 'a code nobody has used', codeVerifier: 'v'.repeat(43) };
  const asked = { oauth2CredentialId: maker.userId, redirectUri, nonce: 'ab'.repeat(32), ...secrets };
  const attempt = maker.client.submit('ACTIVITY_TYPE_OAUTH2_AUTHENTICATE', asked);
  expect(await refusal(attempt)).toMatchObject({ status: 403 });
  const read = async () => JSON.stringify(await coordinator.client.query('list_denials'));
  await until('the denial is listed: a refusal has no position to wait for', async () =>
    (await read()).includes(maker.userId),
  );
  // Nobody knows how long a provider takes its codes for.
  for (const wait of ['1s', '61m', '400d'] as const) {
    coordinator.clock.advance(wait);
    const said = await read();
    expect(said).toContain(maker.userId);
    for (const secret of Object.values(secrets)) expect(said).not.toContain(secret);
  }
});

test('a one-time code in a request that waits, or was rejected, is told to its submitter alone', async () => {
  const [maker, other] = [await coordinator.createUser('Code maker'), await coordinator.createUser('Code reader')];
  await coordinator.createPolicy({
    policyName: 'two for sealed credentials',
    condition: "activity.kind == 'OTP_AUTH'",
    consensus: `approvers.any(user, user.id == '${maker.userId}') && approvers.count() >= 2`,
  });
  const mail = newContact();
  await coordinator.client.submit('ACTIVITY_TYPE_UPDATE_USER_EMAIL', { userId: other.userId, userEmail: mail });
  const send = { otpType: 'OTP_TYPE_EMAIL', contact: mail };
  const sent = await coordinator.client.submit('ACTIVITY_TYPE_INIT_OTP_AUTH', send);
  const { otpId } = resultOf<{ otpId: string }>(sent);
  const otpCode = await codeOf(coordinator, otpId);
  const targetPublicKey = coordinator.newKey().publicKey;
  const asked = await maker.client.submit('ACTIVITY_TYPE_OTP_AUTH', { otpId, otpCode, targetPublicKey });
  expect(asked.status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
  expect(JSON.stringify(asked)).toContain(otpCode);
  const read = () => readAll(other.client, coordinator.organizationId);
  expect(await read()).not.toContain(otpCode);
  const voted = await coordinator.client.reject(asked.fingerprint);
  expect(voted.status).toBe('ACTIVITY_STATUS_REJECTED');
  expect(JSON.stringify(voted)).not.toContain(otpCode);
  coordinator.clock.advance('2h');
  expect(await read()).not.toContain(otpCode);
  // The evidence is complete.
  expect(JSON.stringify((await coordinator.events()).map(({ data }) => data))).toContain(otpCode);
});

describe('what is sealed to the installation, which opens it for any organization, is told to its submitter alone', () => {
  test.each([
    ['the secret of an OAuth 2.0 application', 'CREATE_OAUTH2_CREDENTIAL'],
    ['the keys of an on-ramp', 'CREATE_FIAT_ON_RAMP_CREDENTIAL'],
  ])('%s', async (_what, kind) => {
    const keys = await discoveryKeys(coordinator);
    const { encryptOauth2ClientSecret, encryptOnRampSecret } = await import('@turnkey/crypto');
    const onRampKey = (secret: string) => encryptOnRampSecret(secret, keys.onRampEncryption);
    const sealed: Readonly<Record<string, string>> =
      kind === 'CREATE_OAUTH2_CREDENTIAL'
        ? { encryptedClientSecret: await encryptOauth2ClientSecret(clientSecret, keys.oauthSecretEncryption) }
        : { encryptedSecretApiKey: onRampKey('sk'), encryptedPrivateApiKey: onRampKey('private') };
    const others =
      kind === 'CREATE_OAUTH2_CREDENTIAL'
        ? { provider: 'OAUTH2_PROVIDER_DISCORD', clientId: 'an app of one organization' }
        : { onrampProvider: 'FIAT_ON_RAMP_PROVIDER_COINBASE', projectId: 'p', publishableApiKey: 'pk' };
    const [maker, reader] = [await coordinator.createUser('Sealing'), await coordinator.createUser('Copying')];
    const type = `ACTIVITY_TYPE_${kind}`;
    const after = String((await coordinator.events()).length - 1);
    const isTold = (text: string) => Object.values(sealed).filter((one) => text.includes(one));
    const { organizationId } = coordinator;
    const read = async () => {
      const whole = await Promise.all([
        coordinator.client.query('list_events', { organizationId, after, limit: '100' }),
        coordinator.client.query('get_organization_state', { organizationId }),
      ]);
      return (await readAll(reader.client, organizationId)) + JSON.stringify(whole);
    };

    // Denied, waiting, and done.
    expect(await refusal(maker.client.submit(type, { ...others, ...sealed }))).toMatchObject({ status: 403 });
    const denials = async () => JSON.stringify(await reader.client.query('list_denials'));
    await until('the denial is listed', async () => (await denials()).includes(maker.userId));
    coordinator.clock.advance('61m');
    expect(isTold(await read())).toEqual([]);
    await coordinator.createPolicy({
      policyName: `two for ${kind}`,
      condition: `activity.kind == '${kind}'`,
      consensus: `approvers.any(user, user.id == '${maker.userId}') && approvers.count() >= 2`,
    });
    const asked = await maker.client.submit(type, { ...others, ...sealed });
    expect([asked.status, isTold(JSON.stringify(asked))]).toEqual([
      'ACTIVITY_STATUS_CONSENSUS_NEEDED',
      Object.values(sealed),
    ]);
    const explained = await coordinator.client.query('explain_activity', { organizationId, activityId: asked.id });
    expect(isTold((await read()) + JSON.stringify(explained))).toEqual([]);
    const voted = await coordinator.client.approve(asked.fingerprint);
    expect([voted.status, isTold(JSON.stringify(voted))]).toEqual(['ACTIVITY_STATUS_COMPLETED', []]);
    coordinator.clock.advance('400d');
    const { activity } = await reader.client.query<{ activity: { intent: Record<string, object>; redacted?: true } }>(
      'get_activity',
      { activityId: asked.id },
    );
    expect([Object.values(activity.intent), activity.redacted]).toEqual([
      [{ ...others, ...Object.fromEntries(Object.keys(sealed).map((name) => [name, ''])) }],
      true,
    ]);
    expect(isTold(await read())).toEqual([]);
    // The evidence is complete.
    expect(isTold(JSON.stringify((await coordinator.events()).map(({ data }) => data)))).toEqual(Object.values(sealed));
  });
});

describe('a recorded stamp', () => {
  test('of a denied request is not read while it could be sent', async () => {
    const [maker, reader] = [await coordinator.createUser('Maker'), await coordinator.createUser('Denial reader')];
    const type = 'ACTIVITY_TYPE_CREATE_USER_TAG';
    const denied = await refusal(maker.client.submit(type, { userTagName: 'tag', userIds: [] }));
    expect(denied.status).toBe(403);
    const read = async () => {
      const { denials } = await reader.client.query<{
        denials: { userId: string; message: string; publicKey: string; scheme: string; signature: string }[];
      }>('list_denials');
      return denials.find(({ userId }) => userId === maker.userId)!;
    };
    await until('the denial is listed', async () => Boolean(await read()));
    const entry = await read();
    expect(entry).toMatchObject({ signature: '', redacted: true, message: textLike('"tag"'), fingerprint: anyText });
    await coordinator.createPolicy({
      policyName: 'maker may',
      consensus: `approvers.any(user, user.id == '${maker.userId}')`,
    });
    expect(await refusal(replay(entry, submitPath(type)))).toMatchObject({ status: 401 });
    coordinator.clock.advance('61m');
    const later = await read();
    expect([later.signature, 'redacted' in later]).toEqual([textLike(/^[0-9a-f]{100,}$/), false]);
    expect(await refusal(replay(later, submitPath(type)))).toMatchObject({ status: 400, message: textLike('behind') });
  });

  test('gives nobody the result of another: a session is told in the answer to the append alone', async () => {
    const [maker, reader] = [
      await coordinator.createUser('Session maker'),
      await coordinator.createUser('Vote reader'),
    ];
    const type = 'ACTIVITY_TYPE_CREATE_READ_ONLY_SESSION';
    const made = await maker.client.submit(type, {});
    const { session } = resultOf(made);
    const { activity } = await reader.client.query<{
      activity: { votes: [{ message: string; publicKey: string; scheme: string; signature: string }] };
    }>('get_activity', { activityId: made.id });
    const answer = await refusal(replay(activity.votes[0], submitPath(type)));
    expect(answer).toMatchObject({ status: 400, message: textLike('start again') });
    expect(JSON.stringify(answer)).not.toContain(session!.split('.')[1]);
  });

  test('with a result that only its submitter is told waits for nobody', async () => {
    const maker = await coordinator.createUser('Waiting maker');
    await coordinator.createPolicy({
      policyName: 'two for codes',
      condition: "activity.type == 'ACTIVITY_TYPE_VERIFY_OTP'",
      consensus: `approvers.any(user, user.id == '${maker.userId}') && approvers.count() >= 2`,
    });
    const asked = { otpType: 'OTP_TYPE_EMAIL', contact: newContact(), appName: 'Acme' };
    const sent = await coordinator.client.submit('ACTIVITY_TYPE_INIT_OTP_V3', asked);
    const { otpId } = resultOf<{ otpId: string }>(sent);
    const otpCode = await codeOf(coordinator, otpId);
    const attempt = maker.client.submit('ACTIVITY_TYPE_VERIFY_OTP', { otpId, otpCode });
    expect(await refusal(attempt)).toMatchObject({ status: 403 });
    // The code is as good as before, so it is not in the denial either.
    const listed = async () => JSON.stringify(await coordinator.client.query('list_denials'));
    await until('the denial is listed', async () => (await listed()).includes(maker.userId));
    expect(await listed()).not.toContain(otpCode);
  });
});
