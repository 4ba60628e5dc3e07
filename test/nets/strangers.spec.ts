import { encryptOauth2ClientSecret } from '@turnkey/crypto';
import {
  ApiError,
  generateApiKeyPair,
  SeededRandomness,
  send,
  startCoordinator,
  StampingClient,
  submitPath,
  type ApiKeyPair,
  type TestCoordinator,
  type TestUser,
} from '../../src/testing/index.js';
import { SoftwareAuthenticator } from '../stamps/software-authenticator.js';
import { exchange } from '../e2e/exchange.js';
import { clientSecret, IdentityProvider } from '../e2e/identity-provider.js';
import { claimsOf, clientSignature, codeOf } from '../e2e/one-time-codes.js';
import {
  furnish,
  identities,
  querySamples,
  sampleSettings,
  sealedTo,
  submitSamples,
  type Furnished,
} from '../e2e/samples.js';
import { until } from '../e2e/until.js';
import { WebhookReceiver } from '../e2e/webhook-receiver.js';
import { isLong } from '../long.js';

/**
 * A tenant goes about its business twice, from one seed: alone, and beside a stranger who owns what a public sign-up gives and
 * names the tenant's public identifiers in requests to every path. What the tenant sees must be the same.
 */

const rounds = isLong ? 12 : 1;
/** The stranger's requests between two of the tenant's. */
const between = isLong ? 12 : 6;

const endpoints = [
  'signup',
  'signup_v2',
  'otp_init',
  'otp_init_v2',
  'otp_verify',
  'otp_verify_v2',
  'otp_login',
  'otp_login_v2',
  'oauth2_authenticate',
  'oauth_login',
  'account',
  'wallet_kit_config',
  'wallet_kit_client_params',
] as const;

/** Requests to each path, by the stranger. */
const turns = isLong ? 12 : 2;

/** What a stranger is refused whatever it says, and why: the tenant does it. All else the stranger gets through at home. */
const parentsOnly: Readonly<Record<string, string>> = {
  ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8: 'a sub-organization cannot have sub-organizations of its own',
  ACTIVITY_TYPE_ENABLE_AUTH_PROXY: 'the auth proxy is the parent’s',
  ACTIVITY_TYPE_DISABLE_AUTH_PROXY: 'the auth proxy is the parent’s',
  ACTIVITY_TYPE_UPDATE_AUTH_PROXY_CONFIG: 'the auth proxy is the parent’s',
  ACTIVITY_TYPE_RELEASE_CONTACT: 'only members of the parent release a contact',
  get_auth_proxy_config: 'the auth proxy is the parent’s',
  list_events: 'the parent has not enabled it',
  get_event: 'the parent has not enabled it',
  get_organization_state: 'the parent has not enabled it',
  compare_states: 'the parent has not enabled it',
  lint_policies: 'the parent has not enabled it',
  what_if: 'the parent has not enabled it',
};

type Dice = (below: number) => number;

function diceOf(seed: string): Dice {
  const random = new SeededRandomness(seed);
  return (below) => Buffer.from(random.bytes(4)).readUInt32BE() % below;
}

const keysOf = (seed: string) => {
  const random = new SeededRandomness(`keys of ${seed}`);
  return (curve?: ApiKeyPair['curve']) => generateApiKeyPair((length) => random.bytes(length), curve);
};

interface World {
  readonly coordinator: TestCoordinator;
  readonly provider: IdentityProvider;
  readonly receiver: WebhookReceiver;
  proxy(path: string, body?: object): Promise<{ status: number; body: Record<string, string> }>;
  /** What the stranger does with a request of the tenant's that names the parent, before it is sent. */
  copiesRequest?(type: string, body: string): Promise<void>;
  /** What the stranger does with a token of the tenant's, before it is used. */
  copiesToken?(verificationToken: string): Promise<void>;
}

/** Public names of the tenant's: whoever looks at its pages, mails or chains knows them. */
interface Identifiers {
  readonly publicKeys: Pick<ApiKeyPair, 'publicKey' | 'curve'>[];
  readonly credentialIds: string[];
  readonly emails: string[];
  readonly phones: string[];
  readonly ids: string[];
}

const outcome = (attempt: Promise<unknown>) =>
  attempt.catch((error: unknown) => {
    if (error instanceof ApiError) return { refused: error.status, as: error.body.turnkeyErrorCode };
    throw error;
  });

/** The tenant: each step gives what it sees. */
function tenant(world: World, seed: string) {
  const { coordinator, provider, receiver, proxy } = world;
  const { client, clock } = coordinator;
  const newKey = keysOf(seed);
  const names = new Map<string, string>([[coordinator.organizationId, 'parent']]);
  const known: Identifiers = {
    publicKeys: [],
    credentialIds: [],
    emails: [],
    phones: [],
    ids: [coordinator.organizationId],
  };
  const activities: string[] = [];
  let time = clock.now();
  const next = () => ({ timestampMs: String((time = Math.max(time + 1, clock.now()))) });
  const nameOf = (id: unknown) => names.get(String(id)) ?? (id === undefined ? undefined : 'SOMEBODY ELSE');
  const named = (id: string, name: string) => {
    names.set(id, name);
    known.ids.push(id);
    return id;
  };
  const at = (organizationId: string, key: ApiKeyPair) =>
    new StampingClient(coordinator.url, organizationId, key, clock);
  const act = async (by: StampingClient, type: string, parameters: object) => {
    const body = by.submitBody(type, parameters, next());
    if (type === 'ACTIVITY_TYPE_STAMP_LOGIN') await world.copiesRequest?.(type, body);
    const { activity } = (await by.post<{ activity: Awaited<ReturnType<typeof by.submit>> }>(submitPath(type), body))
      .body;
    activities.push(activity.id);
    const [result] = Object.values(activity.result) as Readonly<Record<string, string>>[];
    const answer: Readonly<Record<string, string>> = { ...result, organizationId: activity.organizationId };
    return answer;
  };
  const apiKey = ({ publicKey, curve }: ApiKeyPair) => {
    known.publicKeys.push({ publicKey, curve });
    return { apiKeyName: 'key', publicKey, curveType: curve };
  };
  const byPasskey = async (passkey: SoftwareAuthenticator) => {
    const body = client.submitBody('ACTIVITY_TYPE_STAMP_LOGIN', { publicKey: newKey().publicKey }, next());
    const header = { 'x-stamp-webauthn': passkey.assert({ body }) };
    const url = `${coordinator.url}${submitPath('ACTIVITY_TYPE_STAMP_LOGIN')}`;
    const { activity } = (await send<{ activity: { id: string; organizationId: string } }>(url, body, header)).body;
    activities.push(activity.id);
    return nameOf(activity.organizationId);
  };
  const user = (userName: string, more: object = {}) => ({
    userName,
    apiKeys: [],
    authenticators: [],
    oauthProviders: [],
    ...more,
  });
  const subOrganization = async (name: string, more: object) => {
    const made = await act(client, 'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8', {
      subOrganizationName: name,
      rootUsers: [user(name, more)],
      rootQuorumThreshold: 1,
    });
    named(String(made['rootUserIds']), `user of ${name}`);
    return named(made['subOrganizationId']!, name);
  };
  /** A code of the tenant's own back end, and what proves the contact with it. */
  const verified = async (contact: string, key: ApiKeyPair) => {
    const asked = { otpType: 'OTP_TYPE_EMAIL', contact, appName: 'Tenant', userIdentifier: `${seed} ${++time}` };
    const { otpId } = await act(client, 'ACTIVITY_TYPE_INIT_OTP_V3', asked);
    const otpCode = await codeOf(coordinator, otpId!);
    const mails = coordinator.messages().filter((message) => message.otpId === otpId);
    const proved = await act(client, 'ACTIVITY_TYPE_VERIFY_OTP', { otpId, otpCode, publicKey: key.publicKey });
    const shown = mails.map(({ to, subject, text }) => ({ to, subject, text: text.replaceAll(otpCode, 'CODE') }));
    const token = proved['verificationToken']!;
    await world.copiesToken?.(token);
    return { token, mails: shown };
  };
  const mail = `${seed.replaceAll(/\W/g, '-')}@tenant.example`;
  const [wallet, pat, mailKey, extra] = [
    newKey('API_KEY_CURVE_SECP256K1'),
    new SoftwareAuthenticator(),
    newKey(),
    newKey(),
  ];
  const forgetful = new SoftwareAuthenticator();
  let [walletHome, mailHome] = ['', ''];
  // Long before there is an account.
  known.publicKeys.push(wallet);
  known.emails.push(mail);

  const lookUp = async (filterType: string, filterValue: string, more: object = {}) => {
    const { status, body } = await proxy('account', { filterType, filterValue, ...more });
    return [status, nameOf(body['organizationId'])];
  };
  const session = () => newKey().publicKey;

  const steps: Readonly<Record<string, () => Promise<unknown>>> = {
    'a webhook is told of what happens': () =>
      act(client, 'ACTIVITY_TYPE_CREATE_WEBHOOK_ENDPOINT', {
        url: `${receiver.url}/tenant`,
        name: 'tenant',
        subscriptions: [{ eventType: 'ACTIVITY_UPDATES', isActive: true }],
      }).then(() => 'made'),
    'the back end makes a home for a wallet': async () => {
      walletHome = await subOrganization('wallet home', { apiKeys: [apiKey(wallet)], userEmail: `second-${mail}` });
      return nameOf(walletHome);
    },
    'the wallet asks who it is': async () =>
      nameOf((await coordinator.clientFor(wallet).query<{ organizationId: string }>('whoami')).organizationId),
    'the wallet logs in': async () =>
      nameOf(
        (await act(coordinator.clientFor(wallet), 'ACTIVITY_TYPE_STAMP_LOGIN', { publicKey: session() }))
          .organizationId,
      ),
    'the account of the wallet': () => lookUp('PUBLIC_KEY', wallet.publicKey),
    'somebody signs up with a passkey': async () => {
      // Made for this sign-up: nobody can know it before it is used.
      const { publicKey, curve } = extra;
      const minute = { apiKeyName: 'minute', publicKey, curveType: curve, expirationSeconds: '60' };
      const registration = { authenticatorName: 'passkey', ...pat.register() };
      known.credentialIds.push(pat.credentialId);
      const { body } = await proxy('signup', user('Pat', { authenticators: [registration], apiKeys: [minute] }));
      return nameOf(named(body['organizationId']!, 'passkey home'));
    },
    'and logs in with the key of a minute': async () => {
      const { organizationId } = await act(coordinator.clientFor(extra), 'ACTIVITY_TYPE_STAMP_LOGIN', {
        publicKey: session(),
      });
      known.publicKeys.push(extra);
      return nameOf(organizationId);
    },
    'the passkey logs in': () => byPasskey(pat),
    'somebody signs up with a mail': async () => {
      const { token, mails } = await verified(mail, mailKey);
      const asked = { apiKeys: [], authenticators: [], oauthProviders: [] };
      const { status, body } = await proxy('signup', {
        userName: 'Mia',
        userEmail: mail,
        ...asked,
        verificationToken: token,
        clientSignature: clientSignature(mailKey, token, 'USAGE_TYPE_SIGNUP', { signup: { ...asked, email: mail } }),
      });
      mailHome = named(body['organizationId']!, 'mail home');
      return { status, mails };
    },
    'and logs in with another': async () => {
      clock.advance('4m');
      time = Math.max(time, clock.now());
      const { token, mails } = await verified(mail, mailKey);
      const account = await lookUp('EMAIL', mail, { verificationToken: token });
      const publicKey = session();
      const { status, body } = await proxy('otp_login', {
        verificationToken: token,
        publicKey,
        clientSignature: clientSignature(mailKey, token, 'USAGE_TYPE_LOGIN', { login: { publicKey } }),
      });
      return { mails, account, status, home: nameOf(body['session'] && claimsOf(body['session'])['organization_id']) };
    },
    'somebody signs up at a provider, and logs in': async () => {
      const publicKey = session();
      const token = () => provider.idToken({ subject: `${seed} person`, publicKey, at: clock.now() });
      const providers = [{ providerName: 'provider', oidcToken: await token() }];
      const made = await proxy('signup', user('Olga', { oauthProviders: providers }));
      named(made.body['organizationId'] ?? '', 'provider home');
      const { status, body } = await proxy('oauth_login', { oidcToken: await token(), publicKey });
      return [made.status, status, nameOf(body['session'] && claimsOf(body['session'])['organization_id'])];
    },
    'the parent reads its own': async () => {
      const { users } = await client.query<{ users: { userName: string; userEmail?: string }[] }>('list_users');
      const { policies } = await client.query<{ policies: { policyName: string }[] }>('list_policies');
      const { wallets } = await client.query<{ wallets: object[] }>('list_wallets');
      return [
        users.map(({ userName, userEmail }) => [userName, userEmail]),
        policies.map((one) => one.policyName),
        wallets.length,
      ];
    },
    'the homes are as they were': async () => {
      const seen = [...names].filter(([, name]) => /^\w+ home$/.test(name));
      return Promise.all(
        seen.map(async ([organizationId, name]) => {
          const { users } = await client.query<{
            users: { userName: string; userEmail?: string; authenticators: object[]; oauthProviders: object[] }[];
          }>('list_users', { organizationId });
          const { activities: all } = await client.query<{ activities: { type: string; status: string }[] }>(
            'list_activities',
            { organizationId, paginationOptions: { limit: '100' } },
          );
          return [
            name,
            users.map((one) => [one.userName, one.userEmail, one.authenticators.length, one.oauthProviders.length]),
            all.map(({ type, status }) => [type, status]),
          ];
        }),
      );
    },
    'the wallet changes its name': async () =>
      (await act(at(walletHome, wallet), 'ACTIVITY_TYPE_UPDATE_ORGANIZATION_NAME', { organizationName: 'Mine' }))
        .organizationId === walletHome,
    'the accounts of key and passkey': async () => [
      await lookUp('PUBLIC_KEY', wallet.publicKey),
      await lookUp('CREDENTIAL_ID', pat.credentialId),
    ],
    'the mail’s home is told to nobody without proof': async () => [await lookUp('EMAIL', mail), mailHome !== ''],
  };
  const signUpByPasskey = async (passkey: SoftwareAuthenticator) => {
    const { publicKey, curve } = newKey();
    const minute = { apiKeyName: 'minute', publicKey, curveType: curve, expirationSeconds: '60' };
    const registration = { authenticatorName: 'passkey', ...passkey.register() };
    known.credentialIds.push(passkey.credentialId);
    const { body } = await proxy('signup', user('Fay', { authenticators: [registration], apiKeys: [minute] }));
    return body['organizationId']!;
  };
  /** What comes after everything else: an hour passes, and the parent does what only a parent may. */
  const later: Readonly<Record<string, () => Promise<unknown>>> = {
    'somebody signs up, and forgets about it': async () => nameOf(named(await signUpByPasskey(forgetful), 'forgotten')),
    'an hour later it has lapsed': async () => {
      clock.advance('61m');
      const { refused } = (await outcome(byPasskey(forgetful))) as { refused?: number };
      return `turned away: ${refused}`;
    },
    'so they sign up again with the same passkey': async () =>
      nameOf(named(await signUpByPasskey(forgetful), 'second try')),
    'and log in': () => byPasskey(forgetful),
    'the wallet logs in as ever': async () =>
      nameOf(
        (await act(coordinator.clientFor(wallet), 'ACTIVITY_TYPE_STAMP_LOGIN', { publicKey: session() }))
          .organizationId,
      ),
    'the parent changes its auth proxy': async () => {
      await act(client, 'ACTIVITY_TYPE_UPDATE_AUTH_PROXY_CONFIG', { allowedAuthMethods: ['email'] });
      return (await client.query('get_auth_proxy_config')).config.allowedAuthMethods;
    },
    'disables it, and enables it again': async () => {
      await act(client, 'ACTIVITY_TYPE_DISABLE_AUTH_PROXY', {});
      return typeof (await act(client, 'ACTIVITY_TYPE_ENABLE_AUTH_PROXY', {}))['configId'];
    },
  };
  /** What came to the webhook of the tenant's own activities. */
  const told = async () => {
    const about = () =>
      receiver.at('/tenant').flatMap(({ body }) => {
        const text = JSON.stringify(JSON.parse(body));
        const id = activities.find((activityId) => text.includes(activityId));
        return id === undefined ? [] : [id];
      });
    // Its own creation is told of too, so that nothing of it comes before.
    await until('the tenant is told of everything', () => new Set(about()).size >= activities.length - 1);
    return activities.map((id) => new Set(about()).has(id)).filter(Boolean).length;
  };
  return { steps, later, known, told };
}

/** The stranger: owner of what a sign-up gives, with every request that the product knows. */
async function stranger(world: World, seed: string, victim: Identifiers) {
  const { coordinator, proxy } = world;
  const dice = diceOf(`stranger of ${seed}`);
  const newKey = keysOf(`stranger of ${seed}`);
  const pick = <One>(from: readonly One[]): One | undefined => from[dice(Math.max(from.length, 1))];
  const counts = { steps: 0, past: 0 };
  const accepted = new Set<string>();
  const seen = new Set<string>();
  let time = coordinator.clock.now();
  const nextTime = () => String((time = Math.max(time + 1, coordinator.clock.now())));
  let own: { client: StampingClient; organizationId: string; userId: string; mail: string };

  const forged = () => {
    const credentialId = pick(victim.credentialIds);
    const made = new SoftwareAuthenticator().register(credentialId ? { credentialId } : {});
    return { authenticatorName: 'forged', ...made };
  };
  const takenKeys = () => {
    const taken = pick(victim.publicKeys);
    return taken ? [{ apiKeyName: 'key', publicKey: taken.publicKey, curveType: taken.curve }] : [];
  };
  const signUpBody = (key: ApiKeyPair) => ({
    userName: 'Stranger',
    userEmail: pick(victim.emails) ?? 'stranger@example.com',
    apiKeys: [{ apiKeyName: 'own', publicKey: key.publicKey, curveType: key.curve }, ...(dice(2) ? takenKeys() : [])],
    authenticators: dice(2) ? [forged()] : [],
    oauthProviders: [],
  });

  let household: TestCoordinator;
  let homes = 0;
  const newMail = () => `mail-${++homes}-${dice(1_000_000)}@stranger.example`;

  /** The stranger's own organization, as if it were all that there is. */
  function householdOf({ client, organizationId, userId, mail }: typeof own): TestCoordinator {
    const clientFor = (key: ApiKeyPair, organization = organizationId) => coordinator.clientFor(key, organization);
    const one = async (type: string, parameters: object) =>
      Object.values((await client.submit(type, parameters)).result)[0] as Readonly<Record<string, unknown>>;
    return {
      ...coordinator,
      organizationId,
      client,
      newKey,
      clientFor,
      root: { ...coordinator.root, userId },
      async createUser(userName, { userEmail } = {}): Promise<TestUser> {
        const key = newKey();
        const apiKeys = [{ apiKeyName: 'key', publicKey: key.publicKey, curveType: key.curve }];
        const more = { apiKeys, authenticators: [], oauthProviders: [], userTags: [] };
        const made = await one('ACTIVITY_TYPE_CREATE_USERS_V4', {
          users: [{ userName, ...(userEmail ? { userEmail: mail } : {}), ...more }],
        });
        return { userId: (made['userIds'] as string[])[0]!, key, client: clientFor(key) };
      },
      async createPolicy({ effect = 'EFFECT_ALLOW', ...policy }) {
        return String((await one('ACTIVITY_TYPE_CREATE_POLICY_V3', { notes: '', effect, ...policy }))['policyId']);
      },
    };
  }

  /** A sign-up, and one of everything in what it gives. */
  async function moveIn(): Promise<Furnished> {
    const key = newKey();
    const { body } = await proxy('signup', {
      userName: 'Stranger',
      apiKeys: [{ apiKeyName: 'own', publicKey: key.publicKey, curveType: key.curve }],
      authenticators: [],
      oauthProviders: [],
    });
    const organizationId = body['organizationId']!;
    const client = new StampingClient(coordinator.url, organizationId, key, coordinator.clock);
    own = { client, organizationId, userId: body['userId']!, mail: newMail() };
    household = householdOf(own);
    return furnish(household);
  }
  let belongings = await moveIn();

  /** What is asked at home about one's own: the samples, with mail of one's own for addresses that anybody could have. */
  const withOwnMail = <Sample>(sample: Sample): Sample =>
    JSON.parse(JSON.stringify(sample).replaceAll(/(?:alice|somebody|nobody)@example\.com/g, own.mail)) as Sample;
  const verbSamples = () => submitSamples(belongings);
  const clientOf = (verb: string) =>
    ({
      ACTIVITY_TYPE_APPROVE_ACTIVITY: belongings.alice.client,
      ACTIVITY_TYPE_REJECT_ACTIVITY: belongings.alice.client,
      ACTIVITY_TYPE_ACCEPT_INVITATION: belongings.invited.client,
    })[verb] ?? own.client;

  const isPast = (status: number) => status !== 400 && status !== 401 && status !== 429;
  const noteTour = (name: string, status: number) => {
    seen.add(name);
    if (status === 200) accepted.add(name);
  };
  const tried = new Map<string, string[]>();
  const note = (name: string, status: number) => {
    counts.steps += 1;
    if (isPast(status)) counts.past += 1;
    tried.set(name, [...(tried.get(name) ?? []), String(status)]);
    noteTour(name, status);
  };

  const proxyBodies = (): Readonly<Record<(typeof endpoints)[number], object | undefined>> => {
    const contact = pick(victim.emails) ?? 'stranger@example.com';
    const kinds = [
      ['EMAIL', contact],
      ['PUBLIC_KEY', (pick(victim.publicKeys) ?? newKey()).publicKey],
      ['CREDENTIAL_ID', pick(victim.credentialIds) ?? 'AAAA'],
    ] as const;
    const [filterType, filterValue] = pick(kinds)!;
    const { proof, oidc } = belongings;
    const publicKey = newKey().publicKey;
    return {
      signup: signUpBody(newKey()),
      signup_v2: signUpBody(newKey()),
      otp_init: { otpType: 'OTP_TYPE_EMAIL', contact },
      otp_init_v2: { otpType: 'OTP_TYPE_EMAIL', contact },
      otp_verify: { otpId: pick(victim.ids), otpCode: '000000' },
      otp_verify_v2: { otpId: pick(victim.ids), encryptedOtpBundle: belongings.sealedCode.encryptedOtpBundle },
      otp_login: { verificationToken: proof.verificationToken, publicKey, organizationId: pick(victim.ids) },
      otp_login_v2: { verificationToken: proof.verificationToken, publicKey, organizationId: pick(victim.ids) },
      oauth2_authenticate: {
        provider: 'OAUTH2_PROVIDER_X',
        clientId: 'app',
        authCode: 'x',
        redirectUri: 'https://a.example',
        codeVerifier: 'v'.repeat(43),
      },
      oauth_login: { oidcToken: oidc.other, publicKey, organizationId: pick(victim.ids) },
      account: { filterType, filterValue },
      wallet_kit_config: undefined,
      wallet_kit_client_params: undefined,
    };
  };

  /** Ids, keys and contacts of one's own, now and then replaced by the tenant's. */
  const disguised = (value: unknown): unknown => {
    if (typeof value === 'string') {
      if (dice(6) !== 0) return value;
      if (/^[0-9a-f]{8}-[0-9a-f-]{27}$/.test(value)) return pick(victim.ids) ?? value;
      if (/^[^@\s]+@[^@\s]+\.example(?:\.com)?$/.test(value)) return pick(victim.emails) ?? value;
      return value;
    }
    if (Array.isArray(value)) return value.map(disguised);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, disguised(member)]));
  };

  const verbs = Object.keys(verbSamples()) as (keyof ReturnType<typeof verbSamples>)[];
  const queries = Object.keys(querySamples(belongings));
  const everything = [
    ...endpoints.map((name) => ({ kind: 'proxy', name }) as const),
    ...verbs.map((name) => ({ kind: 'verb', name }) as const),
    ...queries.map((name) => ({ kind: 'query', name }) as const),
  ];
  /** What the tour was refused, with the answer. */
  const refusals = new Map<string, string>();

  /** Sends what works, and tries again in a new home, as what it is about may have gone with an earlier request. */
  async function visit(name: string, send: () => Promise<unknown>): Promise<void> {
    for (let home = 0; home < 2; home++) {
      const answer = await refusalOf(send());
      noteTour(name, answer?.status ?? 200);
      if (answer === undefined) {
        refusals.delete(name);
        if (name.includes('DELETE_SUB_ORGANIZATION')) belongings = await moveIn();
        return;
      }
      refusals.set(name, `${answer.status} ${answer.body.message}`);
      if (name in parentsOnly) return;
      belongings = await moveIn();
    }
  }

  /** Every path once, as the owner of a sub-organization who does nothing wrong. */
  async function tour(): Promise<void> {
    for (const name of queries) await visit(name, () => own.client.query(name, querySamples(belongings)[name]));
    // What takes things away comes last.
    const inOrder = [...verbs].sort((one, other) => Number(one.includes('DELETE')) - Number(other.includes('DELETE')));
    for (const verb of inOrder) {
      await visit(verb, () =>
        clientOf(verb).submit(verb, withOwnMail(verbSamples()[verb]), { timestampMs: nextTime() }),
      );
    }
    await tourOfTheProxy();
  }

  async function tourOfTheProxy(): Promise<void> {
    const ask = async (name: (typeof endpoints)[number], body?: object): Promise<Record<string, string>> => {
      const answer = await proxy(name, body);
      noteTour(name, answer.status);
      if (answer.status !== 200) refusals.set(name, `${answer.status} ${JSON.stringify(answer.body)}`);
      return answer.body;
    };
    const nothing = { apiKeys: [], authenticators: [], oauthProviders: [] };
    const [contact, key, session] = [newMail(), newKey(), newKey().publicKey];
    const { otpId } = await ask('otp_init', { otpType: 'OTP_TYPE_EMAIL', contact });
    const otpCode = await codeOf(coordinator, otpId!);
    const { verificationToken } = await ask('otp_verify', { otpId, otpCode, publicKey: key.publicKey });
    await ask('signup', {
      userName: 'Stranger',
      userEmail: contact,
      ...nothing,
      verificationToken,
      clientSignature: clientSignature(key, verificationToken!, 'USAGE_TYPE_SIGNUP', {
        signup: { ...nothing, email: contact },
      }),
    });
    await ask('signup_v2', signUpBody(newKey()));
    for (const login of ['otp_login', 'otp_login_v2'] as const) {
      const { otpId: sealedId, otpEncryptionTargetBundle } = await ask('otp_init_v2', {
        otpType: 'OTP_TYPE_EMAIL',
        contact,
      });
      const sealed = { otp_code: await codeOf(coordinator, sealedId!), public_key: key.publicKey };
      const { verificationToken: token } = await ask('otp_verify_v2', {
        otpId: sealedId,
        encryptedOtpBundle: sealedTo(otpEncryptionTargetBundle!, JSON.stringify(sealed)),
      });
      await ask(login, {
        verificationToken: token,
        publicKey: session,
        clientSignature: clientSignature(key, token!, 'USAGE_TYPE_LOGIN', { login: { publicKey: session } }),
      });
    }
    const subject = `stranger ${newKey().publicKey}`;
    const idToken = () => identities.idToken({ subject, publicKey: session, at: coordinator.clock.now() });
    const oauthProviders = [{ providerName: 'provider', oidcToken: await idToken() }];
    await ask('signup', { userName: 'Stranger', ...nothing, oauthProviders });
    await ask('oauth_login', { oidcToken: await idToken(), publicKey: session });
    const grant = { redirectUri: 'https://app.example/back', codeVerifier: 'v'.repeat(43), clientId: parentsApp };
    await ask('oauth2_authenticate', {
      provider: 'OAUTH2_PROVIDER_X',
      ...grant,
      authCode: identities.newCode({ ...grant, personId: '123456789' }),
      nonce: 'ab'.repeat(32),
    });
    await ask('account', { filterType: 'PUBLIC_KEY', filterValue: own.client.key.publicKey });
    await ask('wallet_kit_config');
    await ask('wallet_kit_client_params');
  }

  /** What is known to work where public identifiers count as proofs: names all of the tenant's, and writes to its people. */
  async function pester(): Promise<void> {
    const apiKeys = victim.publicKeys.map(({ publicKey, curve }) => ({ apiKeyName: 'k', publicKey, curveType: curve }));
    const nothing = { userName: 'Stranger', apiKeys: [], authenticators: [], oauthProviders: [] };
    for (const apiKey of apiKeys) await proxy('signup', { ...nothing, apiKeys: [apiKey] });
    for (const credentialId of victim.credentialIds) {
      const registration = { authenticatorName: 'forged', ...new SoftwareAuthenticator().register({ credentialId }) };
      await proxy('signup', { ...nothing, authenticators: [registration] });
    }
    for (const contact of victim.emails) {
      const key = newKey();
      const mine = { apiKeyName: 'own', publicKey: key.publicKey, curveType: key.curve };
      const { body } = await proxy('signup', { ...nothing, userEmail: contact, apiKeys: [mine] });
      const otp = { otpType: 'OTP_TYPE_EMAIL', contact, appName: 'Stranger' };
      for (let count = 0; count < 4; count++) {
        await proxy('otp_init', { otpType: 'OTP_TYPE_EMAIL', contact });
        const at = coordinator.clientFor(key, body['organizationId']);
        await statusOf(at.submit('ACTIVITY_TYPE_INIT_OTP_AUTH_V3', otp, { timestampMs: nextTime() }));
      }
    }
  }

  /** The same bytes, under a stamp of the stranger's that leads the parent's name to the stranger's organization. */
  const copyRequest = async (type: string, body: string) => {
    await statusOf(own.client.post(submitPath(type), body));
  };

  /** A token is tried without the key that it is bound to. */
  async function copyToken(verificationToken: string): Promise<void> {
    const { publicKey } = newKey();
    await proxy('otp_login', { verificationToken, publicKey });
    await proxy('otp_login', { verificationToken, publicKey, organizationId: own.organizationId });
    const [contact] = victim.emails;
    const nothing = { apiKeys: [], authenticators: [], oauthProviders: [] };
    await proxy('signup', { userName: 'Stranger', userEmail: contact, verificationToken, ...nothing });
  }

  let turn = 0;

  /** One request: each in its turn, so that all of them come, with arguments that are drawn. */
  async function step(): Promise<void> {
    const { kind, name } = everything[(turn++ * 17) % everything.length]!;
    if (kind === 'proxy') {
      note(name, (await proxy(name, proxyBodies()[name])).status);
      return;
    }
    const isAtHome = dice(4) !== 0;
    const organizationId = isAtHome ? own.organizationId : (pick(victim.ids) ?? own.organizationId);
    const { key } = kind === 'verb' ? clientOf(name) : own.client;
    const by = new StampingClient(coordinator.url, organizationId, key, coordinator.clock);
    if (kind === 'query') {
      note(name, await statusOf(by.query(name, disguised(querySamples(belongings)[name]) as object)));
      return;
    }
    let parameters = disguised(withOwnMail(verbSamples()[name])) as Record<string, unknown>;
    if (name === 'ACTIVITY_TYPE_CREATE_API_KEYS_V2') parameters = { userId: own.userId, apiKeys: takenKeys() };
    if (name === 'ACTIVITY_TYPE_CREATE_AUTHENTICATORS_V2')
      parameters = { userId: own.userId, authenticators: [forged()] };
    if (name === 'ACTIVITY_TYPE_UPDATE_USER_EMAIL')
      parameters = { userId: own.userId, userEmail: pick(victim.emails) ?? '' };
    const status = await statusOf(by.submit(name, parameters, { timestampMs: nextTime() }));
    note(name, status);
    if ((await statusOf(own.client.query('whoami'))) !== 200) belongings = await moveIn();
  }

  const paths = everything.map(({ kind, name }) => {
    if (kind === 'verb') return submitPath(name);
    return kind === 'query' ? `/public/v1/query/${name}` : `/v1/${name}`;
  });
  return {
    step,
    tour,
    pester,
    copyRequest,
    copyToken,
    counts,
    tried,
    accepted,
    seen,
    refusals,
    paths,
    size: everything.length,
  };
}

const refusalOf = (attempt: Promise<unknown>): Promise<ApiError | undefined> =>
  attempt.then(
    () => undefined,
    (error: unknown) => {
      if (error instanceof ApiError) return error;
      throw error;
    },
  );

const statusOf = async (attempt: Promise<unknown>): Promise<number> => (await refusalOf(attempt))?.status ?? 200;

/** The parent's application at an OAuth 2.0 provider. */
const parentsApp = 'app';

const unlimited = {
  PROXY_RATE_LIMIT_PER_ADDRESS: '0',
  PROXY_RATE_LIMIT_PER_CONFIGURATION: '0',
  PROXY_RATE_LIMIT_SIGN_UPS_PER_ADDRESS: '0',
  PROXY_RATE_LIMIT_CODES_PER_ADDRESS: '0',
  PROXY_RATE_LIMIT_PER_CONTACT: '0',
};

/** What the parent allows its sub-organizations, so that all can be tried there. */
async function settle({ url, client }: TestCoordinator): Promise<void> {
  const name = 'FEATURE_NAME_SUB_ORGANIZATION_INVITATIONS';
  await client.submit('ACTIVITY_TYPE_SET_ORGANIZATION_FEATURE', { name, value: '' });
  const keys = (await exchange(`${url}/public/v1/discovery/keys`)).body as { oauthSecretEncryption: string };
  await client.submit('ACTIVITY_TYPE_CREATE_OAUTH2_CREDENTIAL', {
    provider: 'OAUTH2_PROVIDER_X',
    clientId: parentsApp,
    encryptedClientSecret: await encryptOauth2ClientSecret(clientSecret, keys.oauthSecretEncryption),
  });
}

async function run(seed: string, withStranger: boolean) {
  const provider = await IdentityProvider.start();
  const receiver = await WebhookReceiver.start();
  const coordinator = await startCoordinator({
    seed,
    settings: { ...sampleSettings, ...unlimited },
  });
  const world: World = {
    coordinator,
    provider,
    receiver,
    async proxy(path, body) {
      const answer = await exchange(`${coordinator.url}/v1/${path}`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'x-auth-proxy-config-id': coordinator.root.authProxyConfigId,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      return { status: answer.status, body: (answer.body ?? {}) as Record<string, string> };
    },
  };
  try {
    await settle(coordinator);
    const { steps, later, known, told } = tenant(world, seed);
    const other = withStranger ? await stranger(world, seed, known) : undefined;
    await other?.tour();
    if (other) Object.assign(world, { copiesRequest: other.copyRequest, copiesToken: other.copyToken });
    const seen: Record<string, unknown> = {};
    for (const [name, take] of Object.entries(steps)) {
      await other?.pester();
      for (let count = 0; other && count < between; count++) await other.step();
      seen[name] = await outcome(take());
    }
    // Every path has had its turns.
    while (other && other.counts.steps < turns * other.size) await other.step();
    for (const name of [
      'the wallet asks who it is',
      'the wallet logs in',
      'the passkey logs in',
      'the parent reads its own',
    ]) {
      seen[`${name}, at the end`] = await outcome(steps[name]!());
    }
    for (const [name, take] of Object.entries(later)) {
      await other?.pester();
      for (let count = 0; other && count < between; count++) await other.step();
      seen[name] = await outcome(take());
    }
    seen['the homes at the end'] = await outcome(steps['the homes are as they were']!());
    seen['deliveries'] = await told();
    const { paths } = (await exchange(`${coordinator.url}/openapi.json`)).body as { paths: object };
    const published = Object.keys(paths).filter((path) => /^(?:\/public\/v1\/(?:submit|query)|\/v1)\//.test(path));
    return { seen, other, published: published.toSorted() };
  } finally {
    await coordinator.close();
    await Promise.all([provider.close(), receiver.close()]);
  }
}

test('what a tenant sees is the same with and without a stranger', async () => {
  for (let round = 0; round < rounds; round++) {
    const seed = `strangers ${round}`;
    const alone = await run(seed, false);
    const beside = await run(seed, true);
    const { counts, tried, accepted, seen, size, refusals, paths } = beside.other!;
    const share = counts.past / counts.steps;
    const lines = [...tried].toSorted().map(([name, statuses]) => `  ${name}: ${statuses.join(' ')}`);
    process.stdout.write(
      `Strangers, \`${seed}\`: ${counts.steps} drawn requests, ${Math.round(share * 100)} % past validation; ` +
        `${accepted.size} of ${size} paths accepted, the others taken by the parent. Answers by path:\n` +
        `${lines.join('\n')}\n`,
    );
    // Nothing is equal because it never worked.
    expect(JSON.stringify(alone.seen)).not.toMatch(/refused|SOMEBODY ELSE/);
    expect(beside.seen).toEqual(alone.seen);
    expect(seen.size).toBe(size);
    expect(paths.toSorted()).toEqual(beside.published);
    const theirs = Object.keys(parentsOnly).toSorted();
    expect(Object.fromEntries([...refusals].filter(([name]) => !theirs.includes(name)))).toEqual({});
    expect([...seen].filter((name) => !accepted.has(name)).toSorted()).toEqual(theirs);
    for (const name of theirs) expect(refusals.get(name)).toMatch(/^4\d\d /);
    expect(share).toBeGreaterThanOrEqual(0.6);
  }
}, 600_000);
