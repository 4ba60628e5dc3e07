import type { ActivityType } from '../../src/activities/index.js';
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
} from '../../src/testing/index.js';
import { SoftwareAuthenticator } from '../stamps/software-authenticator.js';
import { exchange } from '../e2e/exchange.js';
import { IdentityProvider } from '../e2e/identity-provider.js';
import { claimsOf, clientSignature, codeOf } from '../e2e/one-time-codes.js';
import { furnish, querySamples, sampleSettings, submitSamples } from '../e2e/samples.js';
import { until } from '../e2e/until.js';
import { WebhookReceiver } from '../e2e/webhook-receiver.js';

/**
 * A tenant goes about its business twice, from one seed: alone, and beside a stranger who owns what a public sign-up gives and
 * names the tenant's public identifiers in requests to every path. What the tenant sees must be the same.
 */

const rounds = process.env['LONG'] === '1' ? 12 : 1;
/** The stranger's requests between two of the tenant's. */
const between = process.env['LONG'] === '1' ? 12 : 6;

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
const turns = process.env['LONG'] === '1' ? 12 : 2;

/** Kinds of activities that the stranger gets through at least; many are a parent's, or need somebody's vote or token. */
const fewestVerbs = 25;

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
function tenant({ coordinator, provider, receiver, proxy }: World, seed: string) {
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
  const next = () => ({ timestampMs: String(++time) });
  const nameOf = (id: unknown) => names.get(String(id)) ?? (id === undefined ? undefined : 'SOMEBODY ELSE');
  const named = (id: string, name: string) => {
    names.set(id, name);
    known.ids.push(id);
    return id;
  };
  const at = (organizationId: string, key: ApiKeyPair) =>
    new StampingClient(coordinator.url, organizationId, key, clock);
  const act = async (by: StampingClient, type: string, parameters: object) => {
    const activity = await by.submit(type, parameters, next());
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
    return { token: proved['verificationToken']!, mails: shown };
  };
  const mail = `${seed.replaceAll(/\W/g, '-')}@tenant.example`;
  const [wallet, pat, mailKey, extra] = [
    newKey('API_KEY_CURVE_SECP256K1'),
    new SoftwareAuthenticator(),
    newKey(),
    newKey(),
  ];
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
      const minute = { ...apiKey(extra), expirationSeconds: '60' };
      const registration = { authenticatorName: 'passkey', ...pat.register() };
      known.credentialIds.push(pat.credentialId);
      const { body } = await proxy('signup', user('Pat', { authenticators: [registration], apiKeys: [minute] }));
      return nameOf(named(body['organizationId']!, 'passkey home'));
    },
    'and logs in with the key of a minute': async () =>
      nameOf(
        (await act(coordinator.clientFor(extra), 'ACTIVITY_TYPE_STAMP_LOGIN', { publicKey: session() })).organizationId,
      ),
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
  return { steps, known, told, verbsOf: activities };
}

/** The stranger: owner of what a sign-up gives, with every request that the product knows. */
async function stranger(world: World, seed: string, victim: Identifiers, others: Awaited<ReturnType<typeof furnish>>) {
  const { coordinator, proxy } = world;
  const dice = diceOf(`stranger of ${seed}`);
  const newKey = keysOf(`stranger of ${seed}`);
  const pick = <One>(from: readonly One[]): One | undefined => from[dice(Math.max(from.length, 1))];
  const counts = { steps: 0, past: 0 };
  const accepted = new Set<string>();
  const seen = new Set<string>();
  let time = coordinator.clock.now();
  let own: { client: StampingClient; organizationId: string; userId: string };

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

  type Own = Partial<Awaited<ReturnType<typeof furnish>>>;
  let belongings: Own = {};

  /** What requests in an organization of the stranger's own are about. */
  async function settleIn(client: StampingClient, userId: string): Promise<Own> {
    const make = async (type: string, parameters: object) => {
      const { result } = await client.submit(type, parameters, { timestampMs: String(++time) });
      return Object.values(result)[0] as Readonly<Record<string, unknown>>;
    };
    const first = (list: unknown) => (list as readonly string[])[0]!;
    const account = {
      curve: 'CURVE_SECP256K1',
      pathFormat: 'PATH_FORMAT_BIP32',
      path: "m/44'/60'/0'/0/0",
      addressFormat: 'ADDRESS_FORMAT_ETHEREUM',
    };
    const wallet = await make('ACTIVITY_TYPE_CREATE_WALLET', { walletName: 'own', accounts: [account] });
    const { accounts } = await client.query<{ accounts: { walletAccountId: string }[] }>('list_wallet_accounts');
    const cold = {
      privateKeyName: 'cold',
      curve: 'CURVE_SECP256K1',
      privateKeyTags: [],
      addressFormats: ['ADDRESS_FORMAT_ETHEREUM'],
    };
    const privateKeys = await make('ACTIVITY_TYPE_CREATE_PRIVATE_KEYS_V2', { privateKeys: [cold] });
    const privateKeyId = first(privateKeys['privateKeyIds']);
    const keyTag = { privateKeyTagName: 'vault', privateKeyIds: [privateKeyId] };
    const userTag = await make('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'staff', userIds: [userId] });
    const key = newKey();
    const friend = {
      userName: 'Friend',
      apiKeys: [{ apiKeyName: 'key', publicKey: key.publicKey, curveType: key.curve }],
      authenticators: [],
      oauthProviders: [],
      userTags: [],
    };
    const friends = await make('ACTIVITY_TYPE_CREATE_USERS_V4', { users: [friend] });
    const policy = { policyName: 'own', effect: 'EFFECT_ALLOW', condition: "activity.resource == 'USER'", notes: '' };
    const spare = { apiKeyName: 'spare', publicKey: newKey().publicKey, curveType: 'API_KEY_CURVE_P256' };
    const passkey = { authenticatorName: 'own', ...new SoftwareAuthenticator().register() };
    const keys = await make('ACTIVITY_TYPE_CREATE_API_KEYS_V2', { userId, apiKeys: [spare] });
    const passkeys = await make('ACTIVITY_TYPE_CREATE_AUTHENTICATORS_V2', { userId, authenticators: [passkey] });
    return {
      carol: { userId: first(friends['userIds']), key, client },
      walletId: String(wallet['walletId']),
      signWith: first(wallet['addresses']),
      walletAccountId: accounts[0]!.walletAccountId,
      privateKeyId,
      privateKeyTagId: String((await make('ACTIVITY_TYPE_CREATE_PRIVATE_KEY_TAG', keyTag))['privateKeyTagId']),
      userTagId: String(userTag['userTagId']),
      policyId: String((await make('ACTIVITY_TYPE_CREATE_POLICY_V3', policy))['policyId']),
      apiKeyId: first(keys['apiKeyIds']),
      authenticatorId: first(passkeys['authenticatorIds']),
    };
  }

  async function moveIn(): Promise<void> {
    const key = newKey();
    const plain = {
      ...signUpBody(key),
      apiKeys: [{ apiKeyName: 'own', publicKey: key.publicKey, curveType: key.curve }],
    };
    const { body } = await proxy('signup', { ...plain, authenticators: [] });
    const organizationId = body['organizationId']!;
    const client = new StampingClient(coordinator.url, organizationId, key, coordinator.clock);
    own = { client, organizationId, userId: body['userId']! };
    belongings = await settleIn(client, own.userId);
  }

  const isPast = (status: number) => status !== 400 && status !== 401 && status !== 429;
  const note = (name: string, status: number) => {
    counts.steps += 1;
    seen.add(name);
    if (isPast(status)) counts.past += 1;
    if (status === 200) accepted.add(name);
  };

  const proxyBodies = (): Readonly<Record<(typeof endpoints)[number], object | undefined>> => {
    const contact = pick(victim.emails) ?? 'stranger@example.com';
    const kinds = [
      ['EMAIL', contact],
      ['PUBLIC_KEY', (pick(victim.publicKeys) ?? newKey()).publicKey],
      ['CREDENTIAL_ID', pick(victim.credentialIds) ?? 'AAAA'],
    ] as const;
    const [filterType, filterValue] = pick(kinds)!;
    const { proof, oidc } = others;
    const publicKey = newKey().publicKey;
    return {
      signup: signUpBody(newKey()),
      signup_v2: signUpBody(newKey()),
      otp_init: { otpType: 'OTP_TYPE_EMAIL', contact },
      otp_init_v2: { otpType: 'OTP_TYPE_EMAIL', contact },
      otp_verify: { otpId: pick(victim.ids), otpCode: '000000' },
      otp_verify_v2: { otpId: pick(victim.ids), encryptedOtpBundle: others.sealedCode.encryptedOtpBundle },
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

  const verbs = Object.keys(submitSamples(others)) as ActivityType[];
  const queries = Object.keys(querySamples(others));
  const everything = [
    ...endpoints.map((name) => ({ kind: 'proxy', name }) as const),
    ...verbs.map((name) => ({ kind: 'verb', name }) as const),
    ...queries.map((name) => ({ kind: 'query', name }) as const),
  ];
  let turn = 0;

  /** One request: each in its turn, so that all of them come, with arguments that are drawn. */
  async function step(): Promise<void> {
    const { kind, name } = everything[(turn++ * 17) % everything.length]!;
    if (kind === 'proxy') {
      note(name, (await proxy(name, proxyBodies()[name])).status);
      return;
    }
    const me = { userId: own.userId, key: own.client.key, client: own.client };
    const mine = {
      ...others,
      ...belongings,
      alice: me,
      coordinator: { ...coordinator, newKey, root: { ...coordinator.root, userId: own.userId } },
    };
    const isAtHome = dice(4) !== 0;
    const organizationId = isAtHome ? own.organizationId : (pick(victim.ids) ?? own.organizationId);
    const by = new StampingClient(coordinator.url, organizationId, own.client.key, coordinator.clock);
    if (kind === 'query') {
      note(name, await statusOf(by.query(name, disguised(querySamples(mine)[name]) as object)));
      return;
    }
    let parameters = disguised(submitSamples(mine)[name]) as Record<string, unknown>;
    if (name === 'ACTIVITY_TYPE_CREATE_API_KEYS_V2') parameters = { userId: own.userId, apiKeys: takenKeys() };
    if (name === 'ACTIVITY_TYPE_CREATE_AUTHENTICATORS_V2')
      parameters = { userId: own.userId, authenticators: [forged()] };
    if (name === 'ACTIVITY_TYPE_UPDATE_USER_EMAIL')
      parameters = { userId: own.userId, userEmail: pick(victim.emails) ?? '' };
    const status = await statusOf(by.submit(name, parameters, { timestampMs: String(++time) }));
    note(name, status);
    // What the stranger needs may have gone with the last request.
    if (name.includes('DELETE') && status === 200) await moveIn();
    else if ((await statusOf(own.client.query('whoami'))) !== 200) await moveIn();
  }

  await moveIn();
  return { step, counts, accepted, seen, size: everything.length };
}

const statusOf = (attempt: Promise<unknown>): Promise<number> =>
  attempt.then(
    () => 200,
    (error: unknown) => {
      if (error instanceof ApiError) return error.status;
      throw error;
    },
  );

const unlimited = {
  PROXY_RATE_LIMIT_PER_ADDRESS: '0',
  PROXY_RATE_LIMIT_PER_CONFIGURATION: '0',
  PROXY_RATE_LIMIT_PER_CONTACT: '0',
};

async function run(seed: string, withStranger: boolean) {
  const provider = await IdentityProvider.start();
  const receiver = await WebhookReceiver.start();
  const coordinator = await startCoordinator({
    seed,
    settings: { ...sampleSettings, ...provider.settings, ...unlimited },
  });
  const elsewhere = await startCoordinator({ seed: `elsewhere ${seed}`, settings: sampleSettings });
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
    const { steps, known, told } = tenant(world, seed);
    const other = withStranger ? await stranger(world, seed, known, await furnish(elsewhere)) : undefined;
    const seen: Record<string, unknown> = {};
    for (const [name, take] of Object.entries(steps)) {
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
    seen['the homes at the end'] = await outcome(steps['the homes are as they were']!());
    seen['deliveries'] = await told();
    return { seen, other };
  } finally {
    await coordinator.close();
    await elsewhere.close();
    await Promise.all([provider.close(), receiver.close()]);
  }
}

test('what a tenant sees is the same with and without a stranger', async () => {
  for (let round = 0; round < rounds; round++) {
    const seed = `strangers ${round}`;
    const alone = await run(seed, false);
    const beside = await run(seed, true);
    const { counts, accepted, seen, size } = beside.other!;
    const share = counts.past / counts.steps;
    console.log(
      `strangers: ${counts.steps} requests over ${seen.size} of ${size} paths, ${accepted.size} of them accepted, ` +
        `${Math.round(share * 100)} % past validation; never accepted: ${[...seen].filter((name) => !accepted.has(name)).join(', ')}`,
    );
    // Nothing is equal because it never worked.
    expect(JSON.stringify(alone.seen)).not.toMatch(/refused|SOMEBODY ELSE/);
    expect(beside.seen).toEqual(alone.seen);
    expect(seen.size).toBe(size);
    const verbs = [...accepted].filter((name) => name.startsWith('ACTIVITY_TYPE_'));
    expect(verbs.length).toBeGreaterThanOrEqual(fewestVerbs);
    expect(share).toBeGreaterThanOrEqual(0.6);
  }
}, 600_000);
