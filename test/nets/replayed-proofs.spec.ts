import { encryptOauth2ClientSecret } from '@turnkey/crypto';
import {
  SeededRandomness,
  stampBody,
  startCoordinator,
  type StampingClient,
  submitPath,
  type ApiKeyPair,
  type TestCoordinator,
} from '../../src/testing/index.js';
import { exchange } from '../e2e/exchange.js';
import { clientSecret, IdentityProvider } from '../e2e/identity-provider.js';
import { claimsOf, clientSignature, codeOf } from '../e2e/one-time-codes.js';
import { until } from '../e2e/until.js';
import { WebhookReceiver } from '../e2e/webhook-receiver.js';
import { isLong } from '../long.js';

/**
 * People prove who they are in every way, for everything that takes a proof. What the store, queries, denials, webhooks and
 * answers to repeated requests then hold is tried by others as a proof of theirs: each token for each verb that takes one, by
 * strangers, members and whoever has the proxy's secret, with every signature that can be had. None of it opens anything (R3).
 * Whoever a proof belongs to gets in with it every time.
 */

const seed = 'replayed proofs';
const random = new SeededRandomness(`people of ${seed}`);
const below = (count: number): number => Buffer.from(random.bytes(4)).readUInt32BE() % count;

const proxySecret = 'a-secret-of-the-proxy-that-somebody-has-got-hold-of';
/** The parent's applications at the provider, listed; and one of somebody else. */
const [app, secondApp, evilApp] = ['app', 'ios app', 'an app of somebody else'];
const oauth2App = 'an app for X';
const grant = { redirectUri: 'https://app.example/back', codeVerifier: 'v'.repeat(43) };
const nonce = 'ab'.repeat(32);

let provider: IdentityProvider;
let receiver: WebhookReceiver;
let coordinator: TestCoordinator;
beforeAll(async () => {
  [provider, receiver] = await Promise.all([IdentityProvider.start(), WebhookReceiver.start()]);
  coordinator = await startCoordinator({
    seed,
    settings: {
      ...provider.settings,
      PROXY_SECRET: proxySecret,
      PROXY_RATE_LIMIT_PER_ADDRESS: '0',
      PROXY_RATE_LIMIT_PER_CONFIGURATION: '0',
      PROXY_RATE_LIMIT_SIGN_UPS_PER_ADDRESS: '0',
      PROXY_RATE_LIMIT_CODES_PER_ADDRESS: '0',
      PROXY_RATE_LIMIT_PER_CONTACT: '0',
    },
  });
});
afterAll(() => Promise.all([coordinator.close(), provider.close(), receiver.close()]));

type Answer = { readonly status: number; readonly body: Readonly<Record<string, unknown>>; readonly text: string };

async function post(path: string, body: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
  const {
    status,
    body: said,
    text,
  } = await exchange(`${coordinator.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body,
  });
  if (status >= 500) throw new Error(`${path}: ${status} ${text}`);
  return { status, body: (said ?? {}) as Answer['body'], text };
}

const proxy = (name: string, body: object) =>
  post(`/v1/${name}`, JSON.stringify(body), { 'x-auth-proxy-config-id': coordinator.root.authProxyConfigId });

async function ok(name: string, body: object): Promise<Readonly<Record<string, string>>> {
  const answer = await proxy(name, body);
  expect([name, answer.status, answer.text]).toEqual([name, 200, answer.text]);
  return answer.body as Readonly<Record<string, string>>;
}

function stampOf(body: string, key: ApiKeyPair): Readonly<Record<string, string>> {
  const { headerName, headerValue } = stampBody(body, key);
  return { [headerName]: headerValue };
}

/** What a verb answers to whoever stamps with that key. */
function ask(key: ApiKeyPair, organizationId: string, type: string, parameters: object): Promise<Answer> {
  const body = coordinator.clientFor(key, organizationId).submitBody(type, parameters, { timestampMs: nextTime() });
  return post(submitPath(type), body, stampOf(body, key));
}

let lastTime = 0;
const nextTime = () => String((lastTime = Math.max(lastTime + 1, coordinator.clock.now())));

async function done<Result = Readonly<Record<string, string>>>(
  key: ApiKeyPair,
  organizationId: string,
  type: string,
  parameters: object,
): Promise<Result> {
  const { status, body, text } = await ask(key, organizationId, type, parameters);
  expect([type, status, text]).toEqual([type, 200, text]);
  return Object.values((body['activity'] as { result: Readonly<Record<string, Result>> }).result)[0]!;
}

/** The header of an attested stamp, as the published client makes it. */
function attestedBy(token: string, scheme: string, key: ApiKeyPair, organizationId: string): Promise<Answer> {
  const type = 'ACTIVITY_TYPE_STAMP_LOGIN';
  const client = coordinator.clientFor(key, organizationId);
  const body = client.submitBody(type, { publicKey: key.publicKey }, { timestampMs: nextTime() });
  const { signature } = JSON.parse(Buffer.from(stampBody(body, key).headerValue, 'base64url').toString()) as {
    signature: string;
  };
  const stamp = { publicKeyAttestation: token, scheme, publicKey: key.publicKey, signature };
  return post(submitPath(type), body, {
    'x-stamp-attested': Buffer.from(JSON.stringify(stamp)).toString('base64url'),
  });
}

const nothing = { apiKeys: [], authenticators: [], oauthProviders: [] };
const apiKeyOf = ({ publicKey, curve }: ApiKeyPair) => ({ apiKeyName: 'own', publicKey, curveType: curve });

/** Who tries what is somebody else's, and who asks for people in good faith. */
interface Cast {
  /** A member's back end that may ask for codes and log people in. */
  readonly service: ApiKeyPair;
  /** The same, of somebody else: what it reads it tries. */
  readonly insider: ApiKeyPair;
  /** A member whom no policy names. */
  readonly reader: StampingClient;
  /** Asks for what it may not do. */
  readonly novice: { readonly userId: string; readonly key: ApiKeyPair };
  /** Who has signed up through the proxy. */
  readonly stranger: Home;
}

interface Home {
  readonly organizationId: string;
  readonly userId: string;
  readonly key: ApiKeyPair;
}

async function signedUp(more: object = {}, key = coordinator.newKey()): Promise<Home> {
  const { organizationId, userId } = await ok('signup', {
    userName: 'Somebody',
    ...nothing,
    apiKeys: [apiKeyOf(key)],
    ...more,
  });
  return { organizationId: organizationId!, userId: userId!, key };
}

type Kind = 'EMAIL' | 'SMS';
let people = 0;
const newContact = (kind: Kind): string =>
  kind === 'EMAIL' ? `person-${++people}@example.com` : `+1202555${String(1_000 + ++people)}`;
const contactOf = (kind: Kind, contact: string) =>
  kind === 'EMAIL' ? { userEmail: contact } : { userPhoneNumber: contact };
const updateOf = (kind: Kind) => `ACTIVITY_TYPE_UPDATE_USER_${kind === 'EMAIL' ? 'EMAIL' : 'PHONE_NUMBER'}`;

/** Somebody's proof of a contact, and the key that it is bound to, if to any. */
interface Proof {
  readonly token: string;
  readonly kind: Kind;
  readonly contact: string;
  readonly key: ApiKeyPair | undefined;
}
type Via = 'the proxy' | 'a member';

async function proved(
  { service }: Cast,
  { kind, contact, key, via }: { kind: Kind; contact: string; key: ApiKeyPair | undefined; via: Via },
): Promise<Proof> {
  const { organizationId } = coordinator;
  const [asked, bound] = [{ otpType: `OTP_TYPE_${kind}`, contact }, key ? { publicKey: key.publicKey } : {}];
  const isProxys = via === 'the proxy';
  const { otpId } = isProxys
    ? await ok('otp_init', asked)
    : await done(service, organizationId, 'ACTIVITY_TYPE_INIT_OTP_V3', { ...asked, appName: 'App' });
  const verify = { otpId, otpCode: await codeOf(coordinator, otpId!), ...bound };
  const { verificationToken } = isProxys
    ? await ok('otp_verify', verify)
    : await done(service, organizationId, 'ACTIVITY_TYPE_VERIFY_OTP', verify);
  return { token: verificationToken!, kind, contact, key };
}

const signed = (token: string, key: ApiKeyPair | undefined, usage: 'LOGIN' | 'SIGNUP', asked: object) =>
  key ? { clientSignature: clientSignature(key, token, `USAGE_TYPE_${usage}`, asked) } : {};

function signUpBody({ token, kind, contact }: Proof, by: ApiKeyPair | undefined, apiKeys: readonly object[] = []) {
  const user = { ...nothing, apiKeys };
  const said = kind === 'EMAIL' ? { email: contact } : { phoneNumber: contact };
  return {
    userName: 'Somebody',
    ...contactOf(kind, contact),
    ...user,
    verificationToken: token,
    ...signed(token, by, 'SIGNUP', { signup: { ...user, ...said } }),
  };
}

function loginBody(token: string, by: ApiKeyPair | undefined, { publicKey }: ApiKeyPair) {
  return { verificationToken: token, publicKey, ...signed(token, by, 'LOGIN', { login: { publicKey } }) };
}

/** A home of whoever proves the contact first, through the proxy, with a key to act with. */
async function homeOf(cast: Cast, kind: Kind, contact: string): Promise<Home> {
  const [bound, key] = [coordinator.newKey(), coordinator.newKey()];
  const proof = await proved(cast, { kind, contact, key: bound, via: 'the proxy' });
  const { organizationId, userId } = await ok('signup', signUpBody(proof, bound, [apiKeyOf(key)]));
  return { organizationId: organizationId!, userId: userId!, key };
}

/** What people do with a proof; where it has brought them. */
const uses: Readonly<Record<string, (cast: Cast, proof: Proof) => Promise<string>>> = {
  nothing: async (cast, { kind, contact }) => (await homeOf(cast, kind, contact)).organizationId,
  'a sign-up': async (_cast, proof) => (await ok('signup', signUpBody(proof, proof.key)))['organizationId']!,
  'a sign-up and a login': async (_cast, proof) => {
    const { organizationId } = await ok('signup', signUpBody(proof, proof.key));
    await ok('otp_login', loginBody(proof.token, proof.key, coordinator.newKey()));
    return organizationId!;
  },
  'a session that has ended': async (cast, { kind, contact, token, key }) => {
    const { organizationId, userId } = await homeOf(cast, kind, contact);
    const session = coordinator.newKey();
    await ok('otp_login', loginBody(token, key, session));
    const { users } = await coordinator
      .clientFor(session, organizationId)
      .query<{ users: { apiKeys: { apiKeyId: string; credential: { publicKey: string } }[] }[] }>('list_users');
    const own = users[0]!.apiKeys.find(({ credential }) => credential.publicKey === session.publicKey)!;
    const asked = { userId, apiKeyIds: [own.apiKeyId] };
    await done(session, organizationId, 'ACTIVITY_TYPE_DELETE_API_KEYS', asked);
    return organizationId;
  },
  'a change of contact': async (_cast, { kind, contact, token }) => {
    const { organizationId, userId, key } = await signedUp();
    const asked = { userId, ...contactOf(kind, contact), verificationToken: token };
    await done(key, organizationId, updateOf(kind), asked);
    return organizationId;
  },
  'the first login to what the parent has made': async (_cast, { kind, contact, token, key }) => {
    const made = await done<{ subOrganizationId: string }>(
      coordinator.client.key,
      coordinator.organizationId,
      'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8',
      {
        subOrganizationName: 'made',
        rootQuorumThreshold: 1,
        rootUsers: [{ userName: 'Person', ...nothing, ...contactOf(kind, contact) }],
      },
    );
    const { subOrganizationId: organizationId } = made;
    await ok('otp_login', { ...loginBody(token, key, coordinator.newKey()), organizationId });
    return organizationId;
  },
  'an attested stamp': async (cast, { kind, contact, token, key }) => {
    const { organizationId } = await homeOf(cast, kind, contact);
    const answer = await attestedBy(token, verificationScheme, key!, coordinator.organizationId);
    expect([answer.status, answer.text]).toEqual([200, answer.text]);
    return organizationId;
  },
};
const verificationScheme = 'STAMP_ATTESTED_SCHEME_P256_VERIFICATION_TOKEN';
const oidcScheme = 'STAMP_ATTESTED_SCHEME_P256_OIDC';

/** What is known of somebody whose proofs others try. */
interface Victim {
  readonly use: string;
  readonly home: string;
  /** An organization of somebody else who has proved the same contact since. */
  readonly sibling?: string;
  /** The request of the login, as it was recorded. */
  readonly recorded?: object;
}

/** Something that is tried as a proof, by whoever has the key. */
interface Attempt {
  readonly token: string;
  readonly holder: ApiKeyPair;
  readonly cast: Cast;
  readonly victim: Victim;
}

interface ContactAttempt extends Attempt {
  readonly kind: Kind;
  readonly contact: string;
}

/** Each verb that takes a verification token, as somebody tries it for themselves. */
const contactWays: Readonly<Record<string, (attempt: ContactAttempt) => Promise<Answer>>> = {
  'a change of a stranger’s contact': ({ token, kind, contact, cast: { stranger } }) =>
    ask(stranger.key, stranger.organizationId, updateOf(kind), {
      userId: stranger.userId,
      ...contactOf(kind, contact),
      verificationToken: token,
    }),
  'a change of a member’s contact': ({ token, kind, contact }) =>
    ask(coordinator.client.key, coordinator.organizationId, updateOf(kind), {
      userId: coordinator.root.userId,
      ...contactOf(kind, contact),
      verificationToken: token,
    }),
  'a sign-up': ({ token, kind, contact, holder }) =>
    proxy('signup', signUpBody({ token, kind, contact, key: undefined }, holder, [apiKeyOf(holder)])),
  'a sign-up without a signature': ({ token, kind, contact, holder }) =>
    proxy('signup', signUpBody({ token, kind, contact, key: undefined }, undefined, [apiKeyOf(holder)])),
  'a sub-organization that a member makes': ({ token, kind, contact, holder, cast: { insider } }) => {
    const {
      userName,
      verificationToken,
      clientSignature: signature,
      ...user
    } = signUpBody({ token, kind, contact, key: undefined }, holder, [apiKeyOf(holder)]) as ReturnType<
      typeof signUpBody
    > & { clientSignature: object };
    return ask(insider, coordinator.organizationId, 'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8', {
      subOrganizationName: 'sub',
      rootQuorumThreshold: 1,
      rootUsers: [{ userName, ...user }],
      verificationToken,
      clientSignature: signature,
    });
  },
  'a login through the proxy': ({ token, holder }) =>
    proxy('otp_login', loginBody(token, holder, coordinator.newKey())),
  'a login through the proxy without a signature': ({ token }) =>
    proxy('otp_login', loginBody(token, undefined, coordinator.newKey())),
  'a login by name': ({ token, holder, victim: { home: organizationId } }) =>
    proxy('otp_login_v2', { ...loginBody(token, holder, coordinator.newKey()), organizationId }),
  'a login by name without a signature': ({ token, victim: { home: organizationId } }) =>
    proxy('otp_login', { ...loginBody(token, undefined, coordinator.newKey()), organizationId }),
  'a login that a member asks for': ({ token, holder, cast: { insider }, victim: { home } }) =>
    ask(insider, home, 'ACTIVITY_TYPE_OTP_LOGIN_V2', loginBody(token, holder, coordinator.newKey())),
  'a login that a member asks for without a signature': ({ token, cast: { insider }, victim: { home } }) =>
    ask(insider, home, 'ACTIVITY_TYPE_OTP_LOGIN', loginBody(token, undefined, coordinator.newKey())),
  'an attested stamp': ({ token, holder }) => attestedBy(token, verificationScheme, holder, coordinator.organizationId),
  'an attested stamp by name': ({ token, holder, victim: { home } }) =>
    attestedBy(token, verificationScheme, holder, home),
};

/** What only somebody else's proof can be tried for. */
const othersWays: typeof contactWays = {
  'a login elsewhere': ({ token, holder, victim: { sibling } }) =>
    sibling === undefined
      ? never
      : proxy('otp_login', { ...loginBody(token, holder, coordinator.newKey()), organizationId: sibling }),
  'a login elsewhere without a signature': ({ token, victim: { sibling } }) =>
    sibling === undefined
      ? never
      : proxy('otp_login', { ...loginBody(token, undefined, coordinator.newKey()), organizationId: sibling }),
  'the login as it was recorded': ({ victim: { recorded } }) =>
    recorded === undefined ? never : proxy('otp_login', recorded),
  'the login as it was recorded, by name': ({ victim: { recorded, home: organizationId } }) =>
    recorded === undefined ? never : proxy('otp_login', { ...recorded, organizationId }),
};
/** Not tried. */
const never = Promise.resolve<Answer>({ status: 0, body: {}, text: '' });

/** Ways to open the parent itself. */
const parentsWays: typeof contactWays = {
  'an attested stamp at the parent': ({ token, holder }) =>
    attestedBy(token, verificationScheme, holder, coordinator.organizationId),
  'a login to the parent that a member asks for': ({ token, holder, cast: { insider } }) =>
    ask(
      insider,
      coordinator.organizationId,
      'ACTIVITY_TYPE_OTP_LOGIN_V2',
      loginBody(token, holder, coordinator.newKey()),
    ),
};

const named = (oidcToken: string) => ({ providerName: 'p', oidcToken });
const claimed = (token: string, aud: string) => {
  const { iss, sub } = claimsOf(token) as { iss: string; sub: string };
  return { providerName: 'c', oidcClaims: { iss, sub, aud } };
};

/** Each verb that takes an OIDC token, as somebody tries it for themselves. */
const identityWays: Readonly<Record<string, (attempt: Attempt) => Promise<Answer>>> = {
  'a sign-up': ({ token, holder }) =>
    proxy('signup', { userName: 'S', ...nothing, apiKeys: [apiKeyOf(holder)], oauthProviders: [named(token)] }),
  'a sign-up with the token in base64': ({ token, holder }) =>
    proxy('signup_v2', {
      userName: 'S',
      ...nothing,
      apiKeys: [apiKeyOf(holder)],
      oauthProviders: [named(Buffer.from(token).toString('base64'))],
    }),
  'a sign-up for another application too': ({ token, holder }) =>
    proxy('signup_v2', {
      userName: 'S',
      ...nothing,
      apiKeys: [apiKeyOf(holder)],
      oauthProviders: [named(token), claimed(token, isOwn(token) ? `${oauth2App}, second` : secondApp)],
    }),
  'an identity of a stranger': ({ token, cast: { stranger } }) =>
    ask(stranger.key, stranger.organizationId, 'ACTIVITY_TYPE_CREATE_OAUTH_PROVIDERS_V2', {
      userId: stranger.userId,
      oauthProviders: [named(token)],
    }),
  'a user of a stranger’s': ({ token, cast: { stranger } }) =>
    ask(stranger.key, stranger.organizationId, 'ACTIVITY_TYPE_CREATE_USERS_V4', {
      users: [{ userName: `u ${nextTime()}`, ...nothing, oauthProviders: [named(token)], userTags: [] }],
    }),
  'an identity of a member': ({ token }) =>
    ask(coordinator.client.key, coordinator.organizationId, 'ACTIVITY_TYPE_CREATE_OAUTH_PROVIDERS_V2', {
      userId: coordinator.root.userId,
      oauthProviders: [named(token)],
    }),
  'a user of the parent': ({ token }) =>
    ask(coordinator.client.key, coordinator.organizationId, 'ACTIVITY_TYPE_CREATE_USERS_V4', {
      users: [{ userName: `u ${nextTime()}`, ...nothing, oauthProviders: [named(token)], userTags: [] }],
    }),
  'a sub-organization that a member makes': ({ token, cast: { insider } }) =>
    ask(insider, coordinator.organizationId, 'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8', {
      subOrganizationName: 'sub',
      rootQuorumThreshold: 1,
      rootUsers: [{ userName: 'Person', ...nothing, oauthProviders: [named(token)] }],
    }),
  'a login through the proxy': ({ token, holder: { publicKey } }) =>
    proxy('oauth_login', { oidcToken: token, publicKey }),
  'a login by name': ({ token, holder: { publicKey }, victim: { home: organizationId } }) =>
    proxy('oauth_login', { oidcToken: token, publicKey, organizationId }),
  'a login that a member asks for': ({ token, holder: { publicKey }, cast: { insider }, victim: { home } }) =>
    ask(insider, home, 'ACTIVITY_TYPE_OAUTH_LOGIN', { oidcToken: token, publicKey }),
  'a sealed key that a member asks for': ({ token, holder, cast: { insider }, victim: { home } }) =>
    ask(insider, home, 'ACTIVITY_TYPE_OAUTH', { oidcToken: token, targetPublicKey: holder.publicKey }),
  'an attested stamp': ({ token, holder }) => attestedBy(token, oidcScheme, holder, coordinator.organizationId),
  'an attested stamp by name': ({ token, holder, victim: { home } }) => attestedBy(token, oidcScheme, holder, home),
};

/** Tokens of X and Discord are issued here. */
const isOwn = (token: string): boolean => claimsOf(token)['iss'] !== provider.issuer;

/** What was tried, by what for what: how often it was refused and taken. */
const tried = new Map<string, { refused: number; taken: number }>();
const opened: string[] = [];

function note(what: string, way: string, { status, text }: Answer, isTheirs: boolean): void {
  if (status === 0) return;
  const row = tried.get(`${what}, for ${way}`) ?? { refused: 0, taken: 0 };
  tried.set(`${what}, for ${way}`, row);
  row[status === 200 ? 'taken' : 'refused'] += 1;
  if (status === 200 && !isTheirs) opened.push(`${what}, for ${way}: ${text.slice(0, 300)}`);
}

/** Somebody who may do what that condition says, and nothing else. */
async function member(userName: string, condition?: string, more = ''): Promise<{ userId: string; key: ApiKeyPair }> {
  const { userId, key } = await coordinator.createUser(userName);
  const consensus = `approvers.any(user, user.id == '${userId}')${more}`;
  if (condition !== undefined) await coordinator.createPolicy({ policyName: userName, condition, consensus });
  return { userId, key };
}

async function assemble(): Promise<Cast> {
  const { client, createUser, organizationId, root } = coordinator;
  await client.submit('ACTIVITY_TYPE_UPDATE_AUTH_PROXY_CONFIG', {
    allowedAuthMethods: ['email', 'sms', 'passkey', 'wallet', 'oauth'],
    walletKitSettings: { oauthClientIds: { google: app, apple: secondApp } },
  });
  await client.submit('ACTIVITY_TYPE_CREATE_WEBHOOK_ENDPOINT', {
    url: `${receiver.url}/told`,
    name: 'told',
    subscriptions: [{ eventType: 'ACTIVITY_UPDATES', isActive: true }],
  });
  for (const clientId of [oauth2App, `${oauth2App}, second`]) await application(client.key, organizationId, clientId);
  const logins = "activity.resource in ['AUTH', 'OTP'] || activity.kind == 'CREATE_SUB_ORGANIZATION'";
  const cast = {
    service: (await member('Service', logins)).key,
    insider: (await member('Insider', logins)).key,
    reader: (await createUser('Reader')).client,
    novice: await member('Novice'),
    stranger: await signedUp(),
  };
  // The root user has proved a mailbox and an identity to the parent's own back end.
  const mailbox = { kind: 'EMAIL', contact: rootsMailbox } as const;
  const { token: verificationToken } = await proved(cast, { ...mailbox, key: undefined, via: 'a member' });
  const { userId } = root;
  await client.submit('ACTIVITY_TYPE_UPDATE_USER_EMAIL', { userId, userEmail: rootsMailbox, verificationToken });
  const oauthProviders = [named(await tokenOf(cast, { subject: 'root', issuer: 'a provider' }))];
  await client.submit('ACTIVITY_TYPE_CREATE_OAUTH_PROVIDERS_V2', { userId, oauthProviders });
  return cast;
}

const rootsMailbox = 'root@example.com';

async function application(key: ApiKeyPair, organizationId: string, clientId: string): Promise<string> {
  const keys = (await exchange(`${coordinator.url}/public/v1/discovery/keys`)).body as Record<string, string>;
  const asked = {
    provider: 'OAUTH2_PROVIDER_X',
    clientId,
    encryptedClientSecret: await encryptOauth2ClientSecret(clientSecret, keys['oauthSecretEncryption']),
  };
  const type = 'ACTIVITY_TYPE_CREATE_OAUTH2_CREDENTIAL';
  const { oauth2CredentialId } = await done(key, organizationId, type, asked);
  applications.set(clientId, { oauth2CredentialId: oauth2CredentialId!, organizationId });
  return oauth2CredentialId!;
}
const applications = new Map<string, { readonly oauth2CredentialId: string; readonly organizationId: string }>();

type Issuer = 'a provider' | 'this server';
interface Person {
  readonly subject: string;
  readonly issuer: Issuer;
  readonly audience?: string;
  readonly publicKey?: string;
  /** Who asks this server for the token. */
  readonly by?: ApiKeyPair;
}

/** A token that proves a person to an application, bound to a key if there is one. */
async function tokenOf({ service }: Cast, { subject, issuer, audience, publicKey, by = service }: Person) {
  const bound = publicKey === undefined ? {} : { publicKey };
  if (issuer === 'a provider')
    return provider.idToken({ subject, audience: audience ?? app, ...bound, at: coordinator.clock.now() });
  const clientId = audience ?? oauth2App;
  const { oauth2CredentialId, organizationId } = applications.get(clientId)!;
  const authCode = provider.newCode({ ...grant, clientId, personId: subject });
  const digest = publicKey === undefined ? nonce : await sha256(publicKey);
  const asked = { ...grant, oauth2CredentialId, authCode, nonce: digest };
  return (await done(by, organizationId, 'ACTIVITY_TYPE_OAUTH2_AUTHENTICATE', asked))['oidcToken']!;
}

const sha256 = async (text: string): Promise<string> =>
  Buffer.from(await crypto.subtle.digest('SHA-256', Buffer.from(text))).toString('hex');

/** What people do with a token of theirs, given another to begin with; where it has brought them. */
const identityUses: Readonly<Record<string, (cast: Cast, person: Person & { key: ApiKeyPair }) => Promise<string>>> = {
  'a sign-up': async (cast, person) =>
    (await ok('signup', { userName: 'P', ...nothing, oauthProviders: [named(await tokenOf(cast, person))] }))[
      'organizationId'
    ]!,
  'a sign-up and a login': async (cast, person) => {
    const { publicKey } = person.key;
    const oidcToken = await tokenOf(cast, { ...person, publicKey });
    const { organizationId } = await ok('signup', { userName: 'P', ...nothing, oauthProviders: [named(oidcToken)] });
    await ok('oauth_login', { oidcToken, publicKey });
    return organizationId!;
  },
  'a login': async (cast, person) => {
    const organizationId = await identityUses['a sign-up']!(cast, person);
    const { publicKey } = person.key;
    await ok('oauth_login', { oidcToken: await tokenOf(cast, { ...person, publicKey }), publicKey });
    return organizationId;
  },
  'a sealed key': async (cast, person) => {
    const organizationId = await identityUses['a sign-up']!(cast, person);
    const { publicKey } = person.key;
    const oidcToken = await tokenOf(cast, { ...person, publicKey });
    await done(cast.service, organizationId, 'ACTIVITY_TYPE_OAUTH', { oidcToken, targetPublicKey: publicKey });
    return organizationId;
  },
  'an identity more': async (cast, person) => {
    const { organizationId, userId, key } = await signedUp();
    const oauthProviders = [named(await tokenOf(cast, person))];
    await done(key, organizationId, 'ACTIVITY_TYPE_CREATE_OAUTH_PROVIDERS_V2', { userId, oauthProviders });
    return organizationId;
  },
  'a user': async (cast, person) => {
    const { organizationId, key } = await signedUp();
    const oauthProviders = [named(await tokenOf(cast, person))];
    const users = [{ userName: 'U', ...nothing, oauthProviders, userTags: [] }];
    await done(key, organizationId, 'ACTIVITY_TYPE_CREATE_USERS_V4', { users });
    return organizationId;
  },
  'an attested stamp': async (cast, person) => {
    const organizationId = await identityUses['a sign-up']!(cast, person);
    const token = await tokenOf(cast, { ...person, publicKey: person.key.publicKey });
    const answer = await attestedBy(token, oidcScheme, person.key, coordinator.organizationId);
    expect([answer.status, answer.text]).toEqual([200, answer.text]);
    return organizationId;
  },
};

interface Recorded {
  readonly message: string;
  readonly publicKey: string;
  readonly scheme: string;
  readonly signature: string;
}

/** What others could lay hands on, by where it is. */
interface Seen {
  readonly texts: Map<string, string[]>;
  /** Requests with their stamps, as queries tell them. */
  readonly stamped: Map<string, Recorded>;
}

/** All that a member reads whom no policy names, of the parent and its sub-organizations. */
async function readAll(cast: Cast, organizationIds: readonly string[], seen: Seen): Promise<string[]> {
  const ids: string[] = [];
  const keep = (place: string, answer: object) => {
    seen.texts.set(place, [...(seen.texts.get(place) ?? []), JSON.stringify(answer)]);
    collect(answer, seen.stamped);
  };
  for (const organizationId of organizationIds) {
    for (let after: string | undefined, more = true; more;) {
      const paginationOptions = { limit: '100', ...(after === undefined ? {} : { after }) };
      const page = { organizationId, paginationOptions };
      const list = await cast.reader.query<{ activities: { id: string }[] }>('list_activities', page);
      keep('activities', list);
      for (const { id: activityId } of list.activities) {
        ids.push(activityId);
        keep('events', await cast.reader.query('list_activity_events', { organizationId, activityId }));
      }
      after = list.activities.at(-1)?.id;
      more = list.activities.length === 100;
    }
    keep('denials', await cast.reader.query('list_denials', { organizationId, paginationOptions: { limit: '100' } }));
  }
  return ids;
}

/** Everything in an answer that looks like a request and its stamp. */
function collect(value: unknown, into: Map<string, Recorded>): void {
  if (typeof value !== 'object' || value === null) return;
  const { message, publicKey, scheme, signature } = value as Partial<Recorded>;
  if (message !== undefined && publicKey !== undefined && scheme !== undefined && signature !== undefined) {
    into.set(`${signature} ${message}`, { message, publicKey, scheme, signature });
  }
  for (const inside of Object.values(value)) collect(inside, into);
}

/** Sends a request again, as it is told with its stamp. */
function repeat({ message, publicKey, scheme, signature }: Recorded): Promise<Answer> {
  const stamp = Buffer.from(JSON.stringify({ publicKey, scheme, signature })).toString('base64url');
  const { type } = JSON.parse(message) as { type: string };
  return post(submitPath(type), message, { 'x-stamp': stamp });
}

const askBySession = (session: string, organizationId: string): Promise<Answer> =>
  post('/public/v1/query/whoami', JSON.stringify({ organizationId }), { 'x-session': session });

/** What a denied request, or one that waits, has in it. */
interface Unspent {
  readonly what: string;
  readonly secret: string;
}

/** What was tried before is tried again now and then, with what somebody else has used in the same way. */
const isEnough = (what: string, way: string): boolean => tried.has(`${what}, for ${way}`) && !isLong && below(6) > 0;

test('nothing that is recorded or shown proves anything to anybody else', async () => {
  const { client, organizationId: parentId } = coordinator;
  const cast = await assemble();
  const victims = new Map<string, Victim & { readonly who?: object }>();

  // People prove contacts, and identities.
  const proofs: (Proof & { readonly via: Via; readonly use: string })[] = [];
  for (const [use, take] of Object.entries(uses)) {
    for (const isBound of [true, false]) {
      if (use === 'an attested stamp' && !isBound) continue;
      for (const via of ['the proxy', 'a member'] as const) {
        for (const kind of isLong ? (['EMAIL', 'SMS'] as const) : [(['EMAIL', 'SMS'] as const)[below(2)]!]) {
          const asked = { kind, contact: newContact(kind), key: isBound ? coordinator.newKey() : undefined, via };
          const proof = await proved(cast, asked);
          proofs.push({ ...proof, via, use });
          victims.set(proof.contact, { use, home: await take(cast, proof) });
        }
      }
    }
  }
  for (const [use, take] of Object.entries(identityUses)) {
    for (const issuer of ['a provider', 'this server'] as const) {
      const subject = String(4_000 + ++people);
      const home = await take(cast, { subject, issuer, key: coordinator.newKey() });
      victims.set(subject, { use, home });
    }
  }
  for (const { key, organizationId } of [{ key: cast.service, organizationId: parentId }, client, cast.stranger]) {
    const { session } = await done(key, organizationId, 'ACTIVITY_TYPE_CREATE_READ_ONLY_SESSION', {});
    note('one’s own', 'a query', await askBySession(session!, organizationId), true);
  }
  // Somebody else is told the code of a contact, and has proved it in an organization of their own since.
  coordinator.clock.advance('4m');
  for (const { key, kind, contact } of proofs) {
    if (key !== undefined) continue;
    const { organizationId: sibling } = await homeOf(cast, kind, contact);
    victims.set(contact, { ...victims.get(contact)!, sibling });
  }
  const unspent = await ask403(cast, victims);

  // What is bearer is asked for alone.
  const two = await member('Maker', "activity.resource in ['AUTH', 'OTP']", ' && approvers.count() >= 2');
  for (const [type, parameters] of await bearerRequests(cast)) {
    const { status, body } = await ask(two.key, parentId, type, parameters);
    expect([type, status, (body['activity'] as { status?: string } | undefined)?.status]).toEqual([
      type,
      403,
      undefined,
    ]);
  }

  // Others look everywhere.
  const seen: Seen = { texts: new Map(), stamped: new Map() };
  const homes = [...new Set([...victims.values()].flatMap(({ home, sibling }) => [home, sibling ?? home]))];
  const ids = await readAll(cast, [parentId, ...homes, cast.stranger.organizationId], seen);
  const bodies = () => receiver.at('/told').map(({ body }) => JSON.stringify(JSON.parse(body)));
  const ofParent = ids.slice(-1);
  await until('the webhook is told', () => ofParent.every((id) => bodies().some((body) => body.includes(id))));
  seen.texts.set('webhooks', bodies());
  const all = await coordinator.recorded();
  const store = all.filter(({ stream }) => !stream.startsWith('denials-')).map(({ data }) => JSON.stringify(data));

  // They send again what was sent, when even what was denied would be allowed.
  await coordinator.createPolicy({
    policyName: 'the novice may',
    consensus: `approvers.any(user, user.id == '${cast.novice.userId}')`,
  });
  const before = (await coordinator.recorded()).length;
  const repeats: string[] = [];
  let again = 0;
  for (const stamped of seen.stamped.values()) {
    if (stamped.scheme !== 'SIGNATURE_SCHEME_TK_API_P256' || !stamped.message.startsWith('{')) continue;
    const { status, text } = await repeat(stamped);
    if (status === 200) again++;
    repeats.push(text);
  }
  seen.texts.set('answers to repeats', repeats);
  const since = (await coordinator.recorded()).slice(before);
  expect(since.filter(({ stream }) => stream.startsWith('organization-')).map(({ type }) => type)).toEqual([]);

  // Everything that looks like a proof, and where it was seen.
  const found = new Map<string, Set<string>>();
  const sessions = new Set<string>();
  for (const [place, texts] of [...seen.texts, ['the store', store] as const]) {
    for (const text of texts) {
      for (const [token] of text.matchAll(/[\w-]{16,}\.[\w-]{16,}\.[\w-]{60,}/g)) {
        found.set(token, (found.get(token) ?? new Set()).add(place));
      }
      for (const [, session] of text.matchAll(/session\\*":\\*"([\w-]+\.[\w-]{43})\\*"/g)) sessions.add(session!);
    }
  }
  for (const session of sessions) {
    note('a session', 'a query', await askBySession(session, parentId), false);
  }
  const shown = [...seen.texts.values()].flat().join('\n');
  for (const { what, secret } of unspent) if (shown.includes(secret)) opened.push(`${what} is shown`);

  let tokens = 0;
  for (const [token, places] of found) {
    const claims = claimsOf(token) as { contact?: string; sub?: string; public_key?: string; told_again?: string };
    const victim = victims.get(claims.contact ?? claims.sub ?? '');
    if (!victim) continue;
    tokens++;
    const isShown = places.size > 1 || !places.has('the store');
    const holder = coordinator.newKey;
    if (claims.contact === undefined) {
      const what = `${isOwn(token) ? 'a token of this server' : 'a token of a provider'}, used for ${victim.use}`;
      for (const [way, attempt] of Object.entries(identityWays)) {
        if (isEnough(what, way)) continue;
        note(what, way, await attempt({ token, holder: holder(), cast, victim }), false);
      }
      continue;
    }
    const isBound = claims.public_key !== undefined;
    const what =
      `a token of a contact ${isBound ? 'with' : 'without'} a key, used for ${victim.use}` +
      (claims.told_again ? ', told again' : '');
    const kind = claims.contact.startsWith('+') ? 'SMS' : 'EMAIL';
    const recorded = recordedLogin(store, token);
    const of = { ...victim, ...(recorded ? { recorded } : {}) };
    for (const [way, attempt] of Object.entries({ ...contactWays, ...othersWays })) {
      // One login more is what a token without a key is for: nobody is shown it before that.
      const isStillGood = !isBound && victim.use === 'a sign-up' && !isShown;
      if ((isStillGood && /login (?:through|by name|that)/.test(way)) || isEnough(what, way)) continue;
      const asked = { token, kind, contact: claims.contact, holder: holder(), cast, victim: of } as const;
      note(what, way, await attempt(asked), false);
    }
  }
  await tryAtParent(cast);
  await tryOthersApplications(cast);
  await tryOnes(cast);

  const rows = [...tried].toSorted(([one], [other]) => one.localeCompare(other));
  const byWhat = new Map<string, { ways: number; refused: number; taken: number }>();
  for (const [name, { refused, taken }] of rows) {
    const what = name.slice(0, name.lastIndexOf(', for '));
    const sum = byWhat.get(what) ?? { ways: 0, refused: 0, taken: 0 };
    byWhat.set(what, { ways: sum.ways + 1, refused: sum.refused + refused, taken: sum.taken + taken });
  }
  const lines = [...byWhat].map(
    ([what, { ways, refused, taken }]) => `  ${what}: in ${ways} ways, ${refused} refused, ${taken} taken`,
  );
  process.stdout.write(
    `Replayed proofs: ${victims.size} people, ${found.size} tokens seen (${tokens} of them proofs), ${sessions.size} sessions, ` +
      `${repeats.length} requests repeated (${again} answered as before); what was tried:\n${lines.join('\n')}\n`,
  );
  expect(opened).toEqual([]);
  // Nothing is refused because it never works.
  const own = rows.filter(([what]) => what.startsWith('one’s own'));
  expect(own.filter(([, { taken }]) => taken === 0).map(([what]) => what)).toEqual([]);
  expect(own).toHaveLength(
    Object.keys(contactWays).length + 2 * Object.keys(identityWays).length + Object.keys(parentsWays).length + 2,
  );
  expect([tokens > 60, again > 100]).toEqual([true, true]);
}, 240_000);

/** The parameters of the login that a token was used for, as they stand in the store. */
function recordedLogin(store: readonly string[], token: string): object | undefined {
  for (const text of store) {
    if (!text.includes(token)) continue;
    const { vote } = JSON.parse(text) as { vote?: { message?: string } };
    const { type, parameters } = JSON.parse(vote?.message ?? '{}') as { type?: string; parameters?: object };
    if (type?.startsWith('ACTIVITY_TYPE_OTP_LOGIN') && parameters) {
      const { expirationSeconds: _seconds, ...asked } = parameters as { expirationSeconds?: string };
      return asked;
    }
  }
  return undefined;
}

/** Requests that are denied, with proofs and codes in them that nobody has used. */
async function ask403(cast: Cast, victims: Map<string, Victim>): Promise<readonly Unspent[]> {
  const { organizationId } = coordinator;
  const unspent: Unspent[] = [];
  const contact = newContact('EMAIL');
  const { organizationId: home } = await homeOf(cast, 'EMAIL', contact);
  victims.set(contact, { use: 'what was denied', home });
  const fresh = () => proved(cast, { kind: 'EMAIL', contact, key: undefined, via: 'the proxy' });
  const { otpId } = await ok('otp_init', { otpType: 'OTP_TYPE_EMAIL', contact: newContact('EMAIL') });
  const otpCode = await codeOf(coordinator, otpId!);
  unspent.push({ what: 'a code', secret: `"${otpCode}` });
  const { oauth2CredentialId } = applications.get(oauth2App)!;
  const authCode = provider.newCode({ ...grant, clientId: oauth2App, personId: '77' });
  unspent.push({ what: 'a code of a provider', secret: authCode });
  const subject = String(4_000 + ++people);
  victims.set(subject, { use: 'what was denied', home });
  const oidcToken = await tokenOf(cast, { subject, issuer: 'a provider' });
  const requests: readonly (readonly [string, object, string?])[] = [
    ['ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'tag', userIds: [] }],
    ['ACTIVITY_TYPE_VERIFY_OTP', { otpId, otpCode }],
    ['ACTIVITY_TYPE_OAUTH2_AUTHENTICATE', { ...grant, oauth2CredentialId, authCode, nonce }],
    ['ACTIVITY_TYPE_OTP_LOGIN', loginBody((await fresh()).token, undefined, coordinator.newKey()), home],
    [
      'ACTIVITY_TYPE_UPDATE_USER_EMAIL',
      { userId: cast.novice.userId, userEmail: contact, verificationToken: (await fresh()).token },
    ],
    [
      'ACTIVITY_TYPE_CREATE_USERS_V4',
      { users: [{ userName: 'denied', ...nothing, oauthProviders: [named(oidcToken)], userTags: [] }] },
    ],
  ];
  for (const [type, parameters, where = organizationId] of requests) {
    const { status, text } = await ask(cast.novice.key, where, type, parameters);
    expect([type, status, text]).toEqual([type, 403, text]);
  }
  return unspent;
}

/** Requests with a result that whoever has it can use. */
async function bearerRequests(cast: Cast): Promise<readonly (readonly [string, object])[]> {
  const { otpId } = await done(cast.service, coordinator.organizationId, 'ACTIVITY_TYPE_INIT_OTP_V3', {
    otpType: 'OTP_TYPE_EMAIL',
    contact: newContact('EMAIL'),
    appName: 'App',
  });
  const { oauth2CredentialId } = applications.get(oauth2App)!;
  const authCode = provider.newCode({ ...grant, clientId: oauth2App, personId: '78' });
  return [
    ['ACTIVITY_TYPE_VERIFY_OTP', { otpId, otpCode: await codeOf(coordinator, otpId!) }],
    ['ACTIVITY_TYPE_OAUTH2_AUTHENTICATE', { ...grant, oauth2CredentialId, authCode, nonce }],
  ];
}

/** A mailbox of the parent’s root user opens the parent to the parent’s own back end, and to nobody through the proxy. */
async function tryAtParent(cast: Cast): Promise<void> {
  const { organizationId, clock } = coordinator;
  const victim = { use: 'nothing', home: organizationId };
  const mailbox = { kind: 'EMAIL', contact: rootsMailbox } as const;
  for (const [way, attempt] of Object.entries(parentsWays)) {
    for (const via of ['the proxy', 'both', 'a member'] as const) {
      clock.advance('4m');
      const holder = coordinator.newKey();
      const { token } =
        via === 'both' ? await provedByBoth(cast, holder) : await proved(cast, { ...mailbox, key: holder, via });
      const isTheirs = via === 'a member';
      const what = isTheirs ? 'one’s own' : `a mailbox of the parent, through ${via}`;
      note(what, way, await attempt({ ...mailbox, token, holder, cast, victim }), isTheirs);
    }
  }
  // Whoever has the proxy's secret has its key, and an identity of a member may be in their hands too.
  for (const by of ['a member', 'the proxy’s key'] as const) {
    const { publicKey } = coordinator.newKey();
    const oidcToken = await tokenOf(cast, { subject: 'root', issuer: 'a provider', publicKey });
    const type = 'ACTIVITY_TYPE_OAUTH_LOGIN';
    const answer =
      by === 'a member'
        ? await ask(cast.insider, organizationId, type, { oidcToken, publicKey })
        : await askAsProxy(organizationId, type, { oidcToken, publicKey });
    note(
      by === 'a member' ? 'one’s own' : 'an identity, by the proxy’s key',
      'a login to the parent',
      answer,
      by === 'a member',
    );
  }
  clock.advance('4m');
  const holder = coordinator.newKey();
  const { token } = await proved(cast, { ...mailbox, key: holder, via: 'a member' });
  const body = loginBody(token, holder, coordinator.newKey());
  const answer = await askAsProxy(organizationId, 'ACTIVITY_TYPE_OTP_LOGIN_V2', body);
  note('a contact, by the proxy’s key', 'a login to the parent', answer, false);
}

/** A code that was asked for through the proxy and verified by a member. */
async function provedByBoth({ service }: Cast, { publicKey }: ApiKeyPair): Promise<{ token: string }> {
  const { otpId } = await ok('otp_init', { otpType: 'OTP_TYPE_EMAIL', contact: rootsMailbox });
  const asked = { otpId, otpCode: await codeOf(coordinator, otpId!), publicKey };
  const { verificationToken } = await done(service, coordinator.organizationId, 'ACTIVITY_TYPE_VERIFY_OTP', asked);
  return { token: verificationToken! };
}

async function askAsProxy(organizationId: string, type: string, parameters: object): Promise<Answer> {
  const body = coordinator.client.submitBody(type, parameters, { organizationId, timestampMs: nextTime() });
  const authorization = `Bearer ${proxySecret}`;
  const question = JSON.stringify({ configId: coordinator.root.authProxyConfigId, body });
  const { body: answer, text } = await post('/internal/v1/auth-proxy/stamp', question, { authorization });
  if (typeof answer['stamp'] !== 'string') throw new Error(text);
  return post(submitPath(type), body, { 'x-stamp': answer['stamp'] });
}

/** Whoever runs an application has tokens of all who log in to it: none of them speaks for an application of the parent. */
async function tryOthersApplications(cast: Cast): Promise<void> {
  const { stranger } = cast;
  await application(stranger.key, stranger.organizationId, evilApp);
  const victim = { use: 'nothing', home: stranger.organizationId };
  const publics = Object.entries(identityWays).filter(([way]) => /sign-up|stranger|makes/.test(way));
  for (const issuer of ['a provider', 'this server'] as const) {
    for (const [way, attempt] of publics) {
      const person = { subject: '5000', issuer, audience: evilApp, by: stranger.key };
      const token = await tokenOf(cast, person);
      const answer = await attempt({ token, holder: coordinator.newKey(), cast, victim });
      note(`a token of ${issuer} for an application of somebody else`, way, answer, false);
    }
  }
}

/** Each way, by whoever the proof belongs to. */
async function tryOnes(cast: Cast): Promise<void> {
  for (const [way, attempt] of Object.entries(contactWays)) {
    const [kind, contact] = ['EMAIL', newContact('EMAIL')] as const;
    const home = /login|stamp/.test(way) ? (await homeOf(cast, kind, contact)).organizationId : '';
    const holder = coordinator.newKey();
    const key = way.endsWith('without a signature') ? undefined : holder;
    const { token } = await proved(cast, { kind, contact, key, via: 'the proxy' });
    note('one’s own', way, await attempt({ token, kind, contact, holder, cast, victim: { use: '', home } }), true);
  }
  for (const issuer of ['a provider', 'this server'] as const) {
    for (const [way, attempt] of Object.entries(identityWays)) {
      const subject = String(6_000 + ++people);
      const holder = coordinator.newKey();
      const home = /login|stamp|sealed/.test(way)
        ? await identityUses['a sign-up']!(cast, { subject, issuer, key: holder })
        : '';
      const token = await tokenOf(cast, { subject, issuer, publicKey: holder.publicKey });
      const answer = await attempt({ token, holder, cast, victim: { use: '', home } });
      note(`one’s own identity at ${issuer}`, way, answer, true);
    }
  }
}
