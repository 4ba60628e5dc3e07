import type { ActivityEnvelope } from '../../src/wire/envelope.js';
import { startCoordinator, type StampingClient, type TestCoordinator, type TestUser } from '../../src/testing/index.js';

/** Approvers see what would change, as it is now and as it would be, before they vote. */

let coordinator: TestCoordinator;
let alice: TestUser;
let bob: TestUser;
let payments: string;
let treasurer: string;
let address: string;

beforeAll(async () => {
  coordinator = await startCoordinator({ seed: 'described changes' });
  treasurer = await coordinator.createTag('treasurer');
  alice = await coordinator.createUser('Alice');
  bob = await coordinator.createUser('Bob', { userEmail: 'bob@example.com', userTags: [treasurer] });
  payments = await coordinator.createPolicy({
    policyName: 'payments',
    condition: "eth.tx.value <= 1000 && wallet.label == 'Treasury'",
    notes: 'small ones',
  });
  await coordinator.createPolicy({
    policyName: 'two administrate',
    condition:
      "activity.resource in ['POLICY', 'USER', 'CREDENTIAL'] || activity.kind == 'SIGN_RAW_PAYLOAD' || activity.kind == 'SIGN_RAW_PAYLOADS'",
    consensus: 'approvers.count() >= 2',
  });
  const wallet = await coordinator.createWallet('Treasury', [
    {
      curve: 'CURVE_ED25519',
      pathFormat: 'PATH_FORMAT_BIP32',
      path: "m/44'/501'/0'/0'",
      addressFormat: 'ADDRESS_FORMAT_SOLANA',
    },
  ]);
  address = wallet.addresses[0]!;
});
afterAll(() => coordinator.close());

const decodedFor = async ({ client }: { readonly client: StampingClient }, { id }: { readonly id: string }) =>
  (await client.query<{ activity: ActivityEnvelope }>('get_activity', { activityId: id })).activity.decoded;

/** What Alice is told that her request waits for; the same is told to Bob, and in the list. */
async function asked(type: string, parameters: object): Promise<ActivityEnvelope> {
  const activity = await alice.client.submit(type, parameters);
  expect([type, activity.status]).toEqual([type, 'ACTIVITY_STATUS_CONSENSUS_NEEDED']);
  expect(await decodedFor(bob, activity)).toEqual(activity.decoded);
  const { activities } = await bob.client.query<{ activities: ActivityEnvelope[] }>('list_activities');
  expect(activities[0]).toMatchObject({ id: activity.id, decoded: activity.decoded });
  return activity;
}

/** What is said of it. It is then rejected, so that the next one finds everything as it was. */
async function described(type: string, parameters: object) {
  const { decoded, fingerprint } = await asked(type, parameters);
  await coordinator.client.reject(fingerprint);
  return decoded!;
}

const change = (text: string, ...changes: readonly (readonly [name: string, before: string, after: string])[]) => ({
  text,
  facts: [],
  changes: changes.map(([name, before, after]) => ({
    name,
    ...(before === '' ? {} : { before }),
    ...(after === '' ? {} : { after }),
  })),
});

describe('a change of policies', () => {
  const condition = '"eth.tx.value <= 1000 && wallet.label == \'Treasury\'"';

  test('of one: its name, and what is different about it', async () => {
    const asked = {
      policyId: payments,
      policyName: 'payments',
      policyCondition: 'eth.tx.value <= 5000',
      policyNotes: '',
    };
    expect(await described('ACTIVITY_TYPE_UPDATE_POLICY_V2', { ...asked, policyEffect: 'EFFECT_DENY' })).toEqual([
      change(
        `Change policy "payments" (${payments}).`,
        ['effect', 'EFFECT_ALLOW', 'EFFECT_DENY'],
        ['condition', condition, '"eth.tx.value <= 5000"'],
        ['notes', '"small ones"', ''],
      ),
    ]);
    expect(await described('ACTIVITY_TYPE_UPDATE_POLICY_V2', { policyId: payments })).toEqual([
      { ...change(`Change policy "payments" (${payments}).`), notDecoded: 'nothing about it would be different' },
    ]);
  });

  test('new ones, and ones that are deleted', async () => {
    const policies = [
      { policyName: 'one', effect: 'EFFECT_ALLOW', condition: 'true', consensus: 'approvers.count() >= 1' },
      { policyName: 'two', effect: 'EFFECT_DENY', time: "time.now > Timestamp('2026-01-01T00:00:00Z')" },
    ] as const;
    const created = [
      change(
        'Create policy "one".',
        ['name', '', '"one"'],
        ['effect', '', 'EFFECT_ALLOW'],
        ['condition', '', '"true"'],
        ['consensus', '', '"approvers.count() >= 1"'],
      ),
      change(
        'Create policy "two".',
        ['name', '', '"two"'],
        ['effect', '', 'EFFECT_DENY'],
        ['time', '', `"time.now > Timestamp('2026-01-01T00:00:00Z')"`],
      ),
    ];
    expect(await described('ACTIVITY_TYPE_CREATE_POLICIES', { policies })).toEqual(created);
    expect(await described('ACTIVITY_TYPE_CREATE_POLICY_V3', policies[0])).toEqual([created[0]]);
    const deleted = [
      change(
        `Delete policy "payments" (${payments}).`,
        ['name', '"payments"', ''],
        ['effect', 'EFFECT_ALLOW', ''],
        ['condition', condition, ''],
        ['notes', '"small ones"', ''],
      ),
    ];
    expect(await described('ACTIVITY_TYPE_DELETE_POLICY', { policyId: payments })).toEqual(deleted);
    expect(await described('ACTIVITY_TYPE_DELETE_POLICIES', { policyIds: [payments] })).toEqual(deleted);
  });

  test('a name cannot be read as words of the coordinator, and a text cannot break the line', async () => {
    const policyName = 'x" (0). It is harmless. Change policy "y';
    const notes = 'first\nIt would sign: nothing \u202eesrever';
    const [created] = await described('ACTIVITY_TYPE_CREATE_POLICY_V3', { policyName, effect: 'EFFECT_ALLOW', notes });
    expect(created!.text).toBe('Create policy "x (0). It is harmless. Change policy y".');
    expect(created!.changes).toEqual([
      { name: 'name', after: String.raw`"x\" (0). It is harmless. Change policy \"y"` },
      { name: 'effect', after: 'EFFECT_ALLOW' },
      { name: 'notes', after: String.raw`"first\nIt would sign: nothing \u{202e}esrever"` },
    ]);
  });

  test('of long texts, the part where they differ, and that it is a part', async () => {
    const long = (end: string) => `${"wallet.label == 'x' || ".repeat(300)}wallet.label == '${end}'`;
    const policyId = await coordinator.createPolicy({ policyName: 'long', condition: long('before') });
    const [one] = await described('ACTIVITY_TYPE_UPDATE_POLICY_V2', { policyId, policyCondition: long('after') });
    const [{ before, after }] = one!.changes as unknown as [{ before: string; after: string }];
    expect(before).toMatch(/^…".{0,120} == 'before'"$/);
    expect(after).toMatch(/^…".{0,120} == 'after'"$/);
    expect(one!.notDecoded).toBe('long texts are shown from where they differ: compare the whole ones');
    await coordinator.client.submit('ACTIVITY_TYPE_DELETE_POLICY', { policyId });
  });

  test('that has become impossible says so, and an activity that is decided says nothing', async () => {
    const policyId = await coordinator.createPolicy({
      policyName: 'gone soon',
      condition: "activity.kind == 'CREATE_WALLET'",
    });
    const waiting = await asked('ACTIVITY_TYPE_UPDATE_POLICY_V2', { policyId, policyName: 'other' });
    await coordinator.client.submit('ACTIVITY_TYPE_DELETE_POLICY', { policyId });
    expect(await decodedFor(bob, waiting)).toEqual([
      {
        ...change('It would fail as things stand, and change nothing.'),
        notDecoded: `no policy \`${policyId}\` in organization \`${coordinator.organizationId}\`: see list_policies`,
      },
    ]);
    await bob.client.approve(waiting.fingerprint);
    expect(await decodedFor(bob, waiting)).toBeUndefined();
  });
});

describe('a change of users', () => {
  test.each<[string, () => object, () => readonly object[]]>([
    [
      'CREATE_USERS_V4',
      () => ({
        users: [
          {
            userName: 'Eve',
            userEmail: 'eve@example.com',
            userTags: [treasurer],
            apiKeys: [apiKey()],
            authenticators: [],
            oauthProviders: [],
          },
        ],
      }),
      () => [
        change(
          'Create user "Eve".',
          ['name', '', '"Eve"'],
          ['e-mail', '', '"eve@example.com"'],
          ['tag', '', `"treasurer" (${treasurer})`],
          ['API key', '', `"laptop" ${evesKey.publicKey}`],
        ),
      ],
    ],
    [
      'CREATE_API_ONLY_USERS',
      () => ({
        apiOnlyUsers: [
          { userName: 'Robot', userTags: [], apiKeys: [{ apiKeyName: 'ci', publicKey: evesKey.publicKey }] },
        ],
      }),
      () => [change('Create user "Robot".', ['name', '', '"Robot"'], ['API key', '', `"ci" ${evesKey.publicKey}`])],
    ],
    [
      'UPDATE_USER',
      () => ({ userId: bob.userId, userName: 'Robert', userEmail: 'rob@example.com', userTagIds: [] }),
      () => [change(bobChanges(), ['name', '"Bob"', '"Robert"'], ['e-mail', '"bob@example.com"', '"rob@example.com"'])],
    ],
    [
      'UPDATE_USER_NAME',
      () => ({ userId: bob.userId, userName: 'Bo' }),
      () => [change(bobChanges(), ['name', '"Bob"', '"Bo"'])],
    ],
    [
      'UPDATE_USER_EMAIL',
      () => ({ userId: bob.userId, userEmail: '' }),
      () => [change(bobChanges(), ['e-mail', '"bob@example.com"', ''])],
    ],
    [
      'UPDATE_USER_PHONE_NUMBER',
      () => ({ userId: bob.userId, userPhoneNumber: '+15550001111' }),
      () => [change(bobChanges(), ['phone number', '', '"+15550001111"'])],
    ],
    [
      'DELETE_USERS',
      () => ({ userIds: [bob.userId] }),
      () => [
        change(
          `Delete user "Bob" (${bob.userId}).`,
          ['name', '"Bob"', ''],
          ['e-mail', '"bob@example.com"', ''],
          ['tag', `"treasurer" (${treasurer})`, ''],
        ),
      ],
    ],
    [
      'CREATE_API_KEYS_V2',
      () => ({ userId: bob.userId, apiKeys: [apiKey()] }),
      () => [change(bobChanges(), ['API key', '', `"laptop" ${evesKey.publicKey}`])],
    ],
    [
      'DELETE_API_KEYS',
      () => ({ userId: bob.userId, apiKeyIds: [bobsKeyId] }),
      () => [change(bobChanges(), ['API key', `"Bob's key" ${bob.key.publicKey}`, ''])],
    ],
    [
      'CREATE_USER_TAG',
      () => ({ userTagName: 'auditor', userIds: [bob.userId] }),
      () => [
        change('Create user tag "auditor".', ['name', '', '"auditor"']),
        change(bobChanges(), ['tag', '', expect.stringMatching(/^"auditor" \([-0-9a-f]{36}\)$/) as string]),
      ],
    ],
    [
      'UPDATE_USER_TAG',
      () => ({
        userTagId: treasurer,
        newUserTagName: 'cashier',
        addUserIds: [alice.userId],
        removeUserIds: [bob.userId],
      }),
      () => [
        change(`Change user tag "treasurer" (${treasurer}).`, ['name', '"treasurer"', '"cashier"']),
        change(`Change user "Alice" (${alice.userId}).`, ['tag', '', `"treasurer" (${treasurer})`]),
        change(bobChanges(), ['tag', `"treasurer" (${treasurer})`, '']),
      ],
    ],
    [
      'DELETE_USER_TAGS',
      () => ({ userTagIds: [treasurer] }),
      () => [change(`Delete user tag "treasurer" (${treasurer}).`, ['user', `"Bob" (${bob.userId})`, ''])],
    ],
  ])('%s', async (type, parameters, expected) => {
    expect(await described(`ACTIVITY_TYPE_${type}`, parameters())).toEqual(expected());
  });

  let evesKey: ReturnType<TestCoordinator['newKey']>;
  let bobsKeyId: string;
  const apiKey = () => ({ apiKeyName: 'laptop', publicKey: evesKey.publicKey, curveType: evesKey.curve });
  const bobChanges = () => `Change user "Bob" (${bob.userId}).`;

  beforeAll(async () => {
    evesKey = coordinator.newKey();
    const { apiKeys } = await coordinator.client.query<{ apiKeys: { apiKeyId: string }[] }>('get_api_keys', {
      userId: bob.userId,
    });
    bobsKeyId = apiKeys[0]!.apiKeyId;
  });
});

test('a change of the root quorum: its threshold, and who leaves and joins', async () => {
  const { userId } = coordinator.root;
  const quorum = (threshold: number, userIds: string[]) =>
    coordinator.client.submit('ACTIVITY_TYPE_UPDATE_ROOT_QUORUM', { threshold, userIds });
  await quorum(2, [userId, bob.userId]);
  const waiting = await quorum(1, [userId, alice.userId]);
  expect(waiting.decoded).toEqual([
    change(
      'Change the root quorum.',
      ['threshold', '2', '1'],
      ['member', `"Bob" (${bob.userId})`, ''],
      ['member', '', `"Alice" (${alice.userId})`],
    ),
  ]);
  const renamed = await coordinator.client.submit('ACTIVITY_TYPE_UPDATE_ORGANIZATION_NAME', {
    organizationName: 'New',
  });
  expect(renamed.decoded).toMatchObject([{ text: 'Rename the organization.', changes: [{ after: '"New"' }] }]);
  for (const { fingerprint } of [waiting, renamed]) await bob.client.reject(fingerprint);
  const back = await quorum(1, [userId]);
  await bob.client.approve(back.fingerprint);
});

test('many that wait are all described in one list', async () => {
  const waiting = [];
  for (let index = 0; index < 40; index++) {
    const condition = `wallet.label == '${'x'.repeat(1_000)}'`;
    const policy = { policyName: `policy ${index}`, effect: 'EFFECT_ALLOW', condition };
    waiting.push(await alice.client.submit('ACTIVITY_TYPE_CREATE_POLICY_V3', policy));
  }
  const { activities } = await bob.client.query<{ activities: ActivityEnvelope[] }>('list_activities', {
    paginationOptions: { limit: '100' },
    filterByStatus: ['ACTIVITY_STATUS_CONSENSUS_NEEDED'],
  });
  const texts = activities.flatMap(({ decoded = [] }) => decoded.map(({ text }) => text));
  expect(texts).toEqual(waiting.map((_, index) => `Create policy "policy ${index}".`).reverse());
  for (const { fingerprint } of waiting) await bob.client.reject(fingerprint);
});

describe('a text to be signed', () => {
  const text = (value: string, length = value.length) => ({
    text: `A text of ${length} characters.`,
    facts: [{ name: 'Text', value }],
  });
  const how = () => ({
    signWith: address,
    encoding: 'PAYLOAD_ENCODING_TEXT_UTF8',
    hashFunction: 'HASH_FUNCTION_NOT_APPLICABLE',
  });
  const sign = (payload: string) => described('ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2', { ...how(), payload });

  test('is shown as it is, in quotes and on one line; of a long one, the beginning', async () => {
    expect(await sign('Log in to example.com')).toEqual([text('"Log in to example.com"', 21)]);
    expect(await sign('a "quoted"\n\u202eline')).toEqual([text(String.raw`"a \"quoted\"\n\u{202e}line"`, 16)]);
    expect(await sign('x'.repeat(5_000))).toEqual([
      { ...text(`"${'x'.repeat(2_000)}"`, 5_000), notDecoded: 'only its first 2000 characters are shown' },
    ]);
  });

  test('of several, each is shown', async () => {
    const payloads = ['one', 'two', 'one'];
    expect(await described('ACTIVITY_TYPE_SIGN_RAW_PAYLOADS', { ...how(), payloads })).toEqual([
      { payload: 'parameters.payloads[0]', ...text('"one"', 3) },
      { payload: 'parameters.payloads[1]', ...text('"two"', 3) },
    ]);
  });
});
