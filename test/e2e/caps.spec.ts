import { activities } from '../../src/activities/index.js';
import { buildRegistry } from '../../src/decide/registry.js';
import { chainEvent, GENESIS_HASH, type EventMetadata } from '../../src/ledger/chain.js';
import type { RecordedEvent } from '../../src/ledger/event-store.js';
import { rulesNumber } from '../../src/domain/activity/rules.js';
import { redecide } from '../../src/audit/verify/decide-again.js';
import {
  startCoordinator,
  type ApiKeyPair,
  type StampingClient,
  type TestCoordinator,
} from '../../src/testing/index.js';
import { refusal, textLike } from './exchange.js';

let coordinator: TestCoordinator;

beforeAll(async () => {
  const settings = { RATE_LIMIT_PER_ADDRESS: '100000', RATE_LIMIT_PER_ORGANIZATION: '100000' };
  coordinator = await startCoordinator({ seed: 'caps', settings });
});
afterAll(() => coordinator.close());

const usersNamed = (...names: readonly string[]) =>
  names.map((userName) => ({ userName, apiKeys: [], authenticators: [], oauthProviders: [], userTags: [] }));

test('one submitter may have so many activities waiting for votes, and so many characters; whoever decides makes room', async () => {
  const { client } = coordinator;
  const mallory = await coordinator.createUser('Mallory');
  await coordinator.createPolicy({
    policyName: 'creating needs the root user',
    condition: "activity.action == 'CREATE'",
    consensus: `approvers.any(user, user.id == '${mallory.userId}') && approvers.any(user, user.id == '${coordinator.root.userId}')`,
  });
  const tag = (name: string) =>
    mallory.client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: name, userIds: [] });
  const waiting = [];
  for (let index = 0; index < 100; index++) waiting.push(await tag(`tag ${index}`));
  expect(await refusal(tag('one too many'))).toMatchObject({
    status: 429,
    code: 8,
    message: textLike(/at most 100 activities may wait .* 100 are waiting/),
  });
  // Others are not concerned.
  expect((await client.submit('ACTIVITY_TYPE_UPDATE_ORGANIZATION_NAME', { organizationName: 'Acme' })).status).toBe(
    'ACTIVITY_STATUS_COMPLETED',
  );
  for (const { fingerprint } of waiting) await client.submit('ACTIVITY_TYPE_REJECT_ACTIVITY', { fingerprint });

  const large = (index: number) =>
    mallory.client.submit('ACTIVITY_TYPE_CREATE_SMART_CONTRACT_INTERFACE', {
      smartContractAddress: `0x${String(index).padStart(40, '0')}`,
      smartContractInterface: JSON.stringify([{ type: 'function', name: 'f', inputs: [] }]).padEnd(399_000),
      type: 'SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM',
      label: `large ${index}`,
    });
  for (let index = 0; index < 21; index++) await large(index);
  expect(await refusal(large(21))).toMatchObject({
    status: 429,
    message: textLike(/8388608 characters in total: 21 are waiting/),
  });
  expect((await tag('a small one')).status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
});

test('an organization has 100 users, and says so to whoever wants more', async () => {
  const { client } = coordinator;
  const { users } = await client.query<{ users: object[] }>('list_users');
  const create = (...names: readonly string[]) =>
    client.submit('ACTIVITY_TYPE_CREATE_USERS_V4', { users: usersNamed(...names) });
  const room = 100 - users.length;
  await create(...Array.from({ length: room - 1 }, (_, index) => `user ${index}`));
  expect(await refusal(create('two', 'more'))).toMatchObject({
    status: 429,
    code: 8,
    message: textLike('an organization may have 100 users: it has 99, and this request adds 2'),
  });
  await create('the last');
  expect(await refusal(create('one more'))).toMatchObject({ status: 429 });
});

describe('limits that are set', () => {
  type Listed = readonly { readonly name: string; readonly value: number }[];

  const limitsOf = async (client: StampingClient): Promise<Readonly<Record<string, number>>> => {
    const { organizationData } = await client.query<{ organizationData: { limits: Listed } }>('get_organization');
    const { configs } = await client.query<{ configs: { limits: Listed } }>('get_organization_configs');
    expect(configs.limits).toEqual(organizationData.limits);
    return Object.fromEntries(organizationData.limits.map(({ name, value }) => [name, value]));
  };
  const rootUser = (name: string, key: ApiKeyPair) => ({
    userName: name,
    apiKeys: [{ apiKeyName: 'key', publicKey: key.publicKey, curveType: key.curve }],
    authenticators: [],
    oauthProviders: [],
  });
  const foundIn = async ({ client }: TestCoordinator, ...keys: readonly ApiKeyPair[]): Promise<string> => {
    const { result } = await client.submit('ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8', {
      subOrganizationName: 'A fund',
      rootUsers: keys.map((key, index) => rootUser(`root ${index}`, key)),
      rootQuorumThreshold: 1,
    });
    return (result['createSubOrganizationResultV8'] as { subOrganizationId: string }).subOrganizationId;
  };
  const account = (index: number) => ({
    curve: 'CURVE_SECP256K1',
    pathFormat: 'PATH_FORMAT_BIP32',
    path: `m/44'/60'/0'/0/${index}`,
    addressFormat: 'ADDRESS_FORMAT_ETHEREUM',
  });
  const feature = 'FEATURE_NAME_SUB_ORGANIZATION_LIMITS';
  const againAsRecorded = (stream: readonly RecordedEvent[], parent: readonly RecordedEvent[] = []) => {
    for (const { recorded, again } of redecide(stream, buildRegistry(activities), parent)) {
      expect(again).toStrictEqual(recorded);
    }
  };
  let limited: TestCoordinator;

  beforeAll(async () => {
    const settings = {
      ORGANIZATION_LIMITS:
        'users=102, wallets=2, walletAccounts=3, imports=1, invitations=1, subOrganizationsPerMinute=2',
      SUB_ORGANIZATION_LIMITS: 'wallets=2, userTags=11',
    };
    limited = await startCoordinator({ seed: 'limits', settings });
  });
  afterAll(() => limited.close());

  test('by the operator hold, are shown, are recorded with decisions, and decide history again', async () => {
    const { client } = limited;
    expect(await limitsOf(client)).toMatchObject({ users: 102, wallets: 2, policies: 100, nameCharacters: 255 });
    const users = (count: number) => usersNamed(...Array.from({ length: count }, (_, index) => `user ${index}`));
    const create = (count: number) => client.submit('ACTIVITY_TYPE_CREATE_USERS_V4', { users: users(count) });
    await create(99);
    await create(1);
    expect(await refusal(create(1))).toMatchObject({ status: 429, code: 8, message: textLike('may have 102 users') });

    const wallet = (walletName: string, ...indexes: readonly number[]) =>
      client.submit('ACTIVITY_TYPE_CREATE_WALLET', { walletName, accounts: indexes.map(account) });
    const { result } = await wallet('first', 0, 1);
    const { walletId } = result['createWalletResult'] as { walletId: string };
    const tooMany = {
      status: 429,
      message: textLike(
        'an organization may have 3 wallet accounts .the limit walletAccounts.: there are 2, and this request adds 2',
      ),
    };
    expect(await refusal(wallet('second', 2, 3))).toMatchObject(tooMany);
    const derive = (...indexes: readonly number[]) =>
      client.submit('ACTIVITY_TYPE_CREATE_WALLET_ACCOUNTS', { walletId, accounts: indexes.map(account) });
    expect(await refusal(derive(2, 3))).toMatchObject(tooMany);
    await derive(2);
    await wallet('second');
    expect(await refusal(wallet('third'))).toMatchObject({ status: 429, message: textLike('has 2 wallets') });

    const begin = (userId: string) => client.submit('ACTIVITY_TYPE_INIT_IMPORT_WALLET', { userId });
    const [first, second] = (await client.query<{ users: { userId: string }[] }>('list_users')).users;
    await begin(first!.userId);
    await begin(first!.userId);
    expect(await refusal(begin(second!.userId))).toMatchObject({
      status: 429,
      message: textLike('an organization may have 1 imports in progress .the limit imports.'),
    });
    const invite = (receiverUserEmail: string) =>
      client.submit('ACTIVITY_TYPE_CREATE_INVITATIONS', {
        invitations: [
          {
            receiverUserName: 'Ann',
            receiverUserEmail,
            receiverUserTags: [],
            accessType: 'ACCESS_TYPE_ALL',
            senderUserId: limited.root.userId,
          },
        ],
      });
    await invite('ann@example.com');
    expect(await refusal(invite('bob@example.com'))).toMatchObject({
      status: 429,
      message: textLike('may have 1 open'),
    });

    const stream = await limited.events();
    const decisions = stream.flatMap(
      ({ data }) => (data as { decision?: { limits?: unknown; rules?: number } }).decision ?? [],
    );
    expect(decisions.length).toBeGreaterThan(5);
    for (const { limits, rules } of decisions) {
      expect(rules).toBe(rulesNumber);
      expect(limits).toMatchObject({ organization: { users: 102, wallets: 2 }, subOrganizations: { userTags: 11 } });
    }
    againAsRecorded(stream);
  });

  test('by a parent are lower for its sub-organizations, and never higher than by the operator', async () => {
    const { client } = limited;
    const [key, other] = [limited.newKey(), limited.newKey()];
    const child = await foundIn(limited, key, other);
    const own = limited.clientFor(key, child);
    expect(await limitsOf(own)).toMatchObject({ users: 100, wallets: 2, userTags: 11, walletAccounts: 10_000 });
    const set = (value: string) => client.submit('ACTIVITY_TYPE_SET_ORGANIZATION_FEATURE', { name: feature, value });
    expect(await refusal(set('user=1'))).toMatchObject({
      status: 400,
      message: textLike(
        /parameters.value: must be limits and numbers .*: `user` is not a limit that can be set: use one of users, longLived/,
      ),
    });
    const root = (await own.query<{ users: { userId: string }[] }>('list_users')).users[0]!;
    const tag = (userTagName: string) =>
      own.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName, userIds: [root.userId] });
    await tag('one');
    await set('users=1, userTags=1, wallets=900');
    expect(await limitsOf(own)).toMatchObject({ users: 1, wallets: 2, userTags: 1 });
    expect(await refusal(tag('two'))).toMatchObject({ status: 429, message: textLike('has 1 user tags') });
    const create = () => own.submit('ACTIVITY_TYPE_CREATE_USERS_V4', { users: usersNamed('one more') });
    expect(await refusal(create())).toMatchObject({ status: 429, message: textLike('may have 1 users: it has 2') });
    // What is there already stays, and works.
    await own.submit('ACTIVITY_TYPE_UPDATE_USER_NAME', { userId: root.userId, userName: 'Ann' });
    expect(await refusal(foundIn(limited, limited.newKey(), limited.newKey()))).toMatchObject({
      status: 429,
      message: textLike('an organization may have 1 users .the limit users.: there are 0, and this request adds 2'),
    });
    await client.submit('ACTIVITY_TYPE_REMOVE_ORGANIZATION_FEATURE', { name: feature });
    await tag('two');

    await foundIn(limited, limited.newKey());
    expect(await refusal(foundIn(limited, limited.newKey()))).toMatchObject({
      status: 429,
      message: textLike('one user may have 2 sub-organizations founded in a minute'),
    });
    limited.clock.advance('1m');
    await foundIn(limited, limited.newKey());

    const parent = await limited.events();
    const stream = await limited.events(`organization-${child}`);
    againAsRecorded(parent);
    againAsRecorded(stream, parent);
    let last = GENESIS_HASH;
    const forged = stream.map((event): RecordedEvent => {
      const data = structuredClone(event.data);
      const { decision } = data as { decision?: { limits?: object } };
      if (decision?.limits) decision.limits = { organization: { users: 1e6 } };
      const { hash: _hash, ...metadata } = event.metadata as EventMetadata & { readonly hash: string };
      last = chainEvent(last, { ...event, data, metadata });
      return { ...event, data, metadata: { ...metadata, hash: last } };
    });
    expect(() => redecide(forged, buildRegistry(activities), parent)).toThrow('limits that nobody can set');
  });

  test('on recorded bytes hold for a sub-organization and a day, concern nobody else, and decide history again', async () => {
    const daily = await startCoordinator({
      seed: 'daily',
      settings: { SUB_ORGANIZATION_LIMITS: 'recordedBytesPerDay=20000' },
    });
    try {
      const keys = [daily.newKey(), daily.newKey()];
      const [filled, sibling] = [await foundIn(daily, keys[0]!), await foundIn(daily, keys[1]!)];
      const tag = (client: Pick<StampingClient, 'submit'>, userTagName: string) =>
        client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName, userIds: [] });
      const own = daily.clientFor(keys[0]!, filled);
      const upload = (number: number) =>
        own.submit('ACTIVITY_TYPE_CREATE_SMART_CONTRACT_INTERFACE', {
          smartContractAddress: `0x${String(number).padStart(40, '0')}`,
          smartContractInterface: JSON.stringify([{ type: 'function', name: 'f', inputs: [] }]).padEnd(9_000),
          type: 'SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM',
          label: `large ${number}`,
        });
      await upload(1);
      await upload(2);
      expect(await refusal(upload(3))).toMatchObject({
        status: 429,
        message: textLike(
          /may have 20000 bytes of signed bodies recorded in a day .*: there are 18\d\d\d, .* adds 9\d\d\d/,
        ),
      });
      await tag(own, 'short');
      await tag(daily.clientFor(keys[1]!, sibling), 'of a sibling');
      await tag(daily.client, 'of the parent');
      daily.clock.advance('24h');
      await upload(3);
      againAsRecorded(await daily.events(`organization-${filled}`), await daily.events());
    } finally {
      await daily.close();
    }
  });

  test('on names are 255 characters', async () => {
    const rename = (organizationName: string) =>
      limited.client.submit('ACTIVITY_TYPE_UPDATE_ORGANIZATION_NAME', { organizationName });
    expect(await refusal(rename('x'.repeat(256)))).toMatchObject({
      status: 400,
      message: textLike('must have 1 to 255 characters, has 256'),
    });
    expect((await rename('x'.repeat(255))).status).toBe('ACTIVITY_STATUS_COMPLETED');
  });
});

describe('every smaller cap is held over HTTP', () => {
  let capped: TestCoordinator;

  beforeAll(async () => {
    const small = {
      userTags: 1,
      privateKeyTags: 1,
      policies: 3,
      policyCharacters: 428,
      privateKeys: 1,
      smartContractInterfaces: 2,
      smartContractInterfaceCharacters: 1_000,
      webhookEndpoints: 1,
      longLivedApiKeys: 2,
      expiringApiKeys: 1,
    };
    capped = await startCoordinator({
      seed: 'small caps',
      settings: {
        ORGANIZATION_LIMITS: Object.entries(small)
          .map((pair) => pair.join('='))
          .join(', '),
        ALLOW_PRIVATE_NETWORK: 'true',
      },
    });
  });
  afterAll(() => capped.close());

  const submit = (type: string, parameters: object) => capped.client.submit(`ACTIVITY_TYPE_${type}`, parameters);
  const policy = (name: string, characters: number) =>
    submit('CREATE_POLICY_V3', {
      policyName: name,
      effect: 'EFFECT_DENY',
      condition: `false${' '.repeat(characters - 5)}`,
      notes: '',
    });
  const contract = (number: number, characters: number) =>
    submit('CREATE_SMART_CONTRACT_INTERFACE', {
      smartContractAddress: `0x${String(number).padStart(40, '0')}`,
      smartContractInterface: '[]'.padEnd(characters),
      type: 'SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM',
      label: `contract ${number}`,
    });
  const keys = (names: readonly string[], expirationSeconds?: string) =>
    submit('CREATE_API_KEYS_V2', {
      userId: capped.root.userId,
      apiKeys: names.map((apiKeyName) => {
        const { publicKey, curve: curveType } = capped.newKey();
        return { apiKeyName, publicKey, curveType, ...(expirationSeconds ? { expirationSeconds } : {}) };
      }),
    });

  test.each<[string, readonly (() => Promise<unknown>)[], () => Promise<unknown>, RegExp]>([
    [
      'user tags',
      [() => submit('CREATE_USER_TAG', { userTagName: 'one', userIds: [] })],
      () => submit('CREATE_USER_TAG', { userTagName: 'two', userIds: [] }),
      /has 1 user tags, which is the limit/,
    ],
    [
      'private key tags',
      [() => submit('CREATE_PRIVATE_KEY_TAG', { privateKeyTagName: 'one', privateKeyIds: [] })],
      () => submit('CREATE_PRIVATE_KEY_TAG', { privateKeyTagName: 'two', privateKeyIds: [] }),
      /has 1 private key tags, which is the limit/,
    ],
    [
      'characters of clauses',
      [() => policy('one', 60)],
      () => policy('two', 41),
      /may have 428 characters in total: .* have 388, and this request adds 41/,
    ],
    ['policies', [() => policy('two', 20)], () => policy('three', 5), /may have 3 policies: it has 3/],
    [
      'private keys',
      [
        () =>
          submit('CREATE_PRIVATE_KEYS_V2', {
            privateKeys: [{ privateKeyName: 'one', curve: 'CURVE_SECP256K1', privateKeyTags: [], addressFormats: [] }],
          }),
      ],
      () =>
        submit('CREATE_PRIVATE_KEYS_V2', {
          privateKeys: [{ privateKeyName: 'two', curve: 'CURVE_SECP256K1', privateKeyTags: [], addressFormats: [] }],
        }),
      /it would exceed the limit of 1: delete some with delete_private_keys/,
    ],
    ['characters of interfaces', [() => contract(1, 900)], () => contract(2, 101), /would have more than 1000/],
    ['interfaces', [() => contract(2, 50)], () => contract(3, 2), /2 smart contract interfaces/],
    [
      'webhook endpoints',
      [() => submit('CREATE_WEBHOOK_ENDPOINT', { url: 'http://127.0.0.1:9/one', name: 'one', subscriptions: [] })],
      () => submit('CREATE_WEBHOOK_ENDPOINT', { url: 'http://127.0.0.1:9/two', name: 'two', subscriptions: [] }),
      /1 webhook endpoints?/,
    ],
    [
      'API keys that never expire',
      [() => keys(['one more'])],
      () => keys(['too many']),
      /2 API keys that never expire/,
    ],
    ['API keys that expire', [() => keys(['one'], '900')], () => keys(['a', 'b'], '900'), /1 API keys that expire/],
  ])('%s', async (_what, within, beyond, said) => {
    for (const one of within) await one();
    expect(await refusal(beyond())).toMatchObject({ status: 429, code: 8, message: textLike(said) });
  });
});
