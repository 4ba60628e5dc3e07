import { limitList, limitsInForce } from '../../src/domain/organization/limits.js';
import type { ActivityEnvelope } from '../../src/wire/envelope.js';
import { stampBody, startCoordinator, type StampingClient, type TestCoordinator } from '../../src/testing/index.js';
import { queries } from '../../src/read-models/index.js';
import { SoftwareAuthenticator } from '../stamps/software-authenticator.js';
import { anyText, exchange, objectWith, refusal, textLike, violations, type Refusal } from './exchange.js';
import { furnish, querySamples, sampleSettings, type Furnished } from './samples.js';

let coordinator: TestCoordinator;
let furnished: Furnished;
let organizationId: string;

beforeAll(async () => {
  coordinator = await startCoordinator({ settings: sampleSettings });
  organizationId = coordinator.organizationId;
  furnished = await furnish(coordinator);
});

afterAll(() => coordinator.close());

const ask = <Answer = Record<string, unknown>>(path: string, request: object = {}) => {
  const client: StampingClient = coordinator.client;
  return client.query<Answer>(path, request);
};

const nowhere = '00000000-0000-4000-8000-000000000000';
const at = { seconds: '1767225600', nanos: '0' };

/** Lists that are empty whatever is asked, so they name nothing that could be unknown. */
const alwaysEmpty = ['get_mfa_policies', 'get_mfa_status', 'get_session_profiles'];

describe('every query', () => {
  test('is asked below', () => {
    expect(Object.keys(querySamples(furnished))).toEqual(queries.map(({ path }) => path));
  });

  test.each(queries.map(({ path }) => path))('%s answers', async (path) => {
    expect(Object.keys(await ask(path, querySamples(furnished)[path]))).not.toEqual([]);
  });

  test.each(
    queries.flatMap(({ path }) =>
      path === 'get_api_keys' || path.startsWith('get_')
        ? [path].filter(
            (name) =>
              !name.startsWith('get_organization') &&
              !alwaysEmpty.includes(name) &&
              !['get_active_policies', 'get_auth_proxy_config', 'get_event'].includes(name),
          )
        : [],
    ),
  )('%s of an unknown id is 404 and names it', async (path) => {
    // The first member is the id; what else a query needs stays.
    const sample = querySamples(furnished)[path]!;
    // A boot proof is named by a key, in hex.
    const unknown = path === 'get_boot_proof' ? nowhere.replaceAll('-', '') : nowhere;
    const refused = await refusal(ask(path, { ...sample, [Object.keys(sample)[0]!]: unknown }));
    expect(refused).toMatchObject({ status: 404, code: 5, message: textLike(`\`${unknown}\``) });
  });
});

test.each(
  Object.entries({
    mfaPolicies: 'get_mfa_policies',
    mfaStatuses: 'get_mfa_status',
    sessionProfiles: 'get_session_profiles',
  }),
)('%s is empty', async (list, path) => {
  expect(await ask(path, querySamples(furnished)[path])).toEqual({ [list]: [] });
});

describe('users and credentials', () => {
  test('get_user has every field, and no other', async () => {
    const { alice, apiKeyId, authenticatorId, userTagId } = furnished;
    const { user } = await ask<{ user: object }>('get_user', { userId: alice.userId });
    expect(user).toEqual({
      userId: alice.userId,
      userName: 'Alice',
      userEmail: 'alice@example.com',
      userPhoneNumber: textLike(/^\+1555\d{7}$/),
      authenticators: [
        {
          transports: ['AUTHENTICATOR_TRANSPORT_INTERNAL', 'AUTHENTICATOR_TRANSPORT_HYBRID'],
          attestationType: 'none',
          aaguid: nowhere.replace('4', '0').replace('8', '0'),
          credentialId: anyText,
          model: '',
          credential: { publicKey: anyText, type: 'CREDENTIAL_TYPE_WEBAUTHN_AUTHENTICATOR' },
          authenticatorId,
          authenticatorName: 'passkey',
          createdAt: at,
          updatedAt: at,
        },
      ],
      apiKeys: [
        {
          credential: { publicKey: alice.key.publicKey, type: 'CREDENTIAL_TYPE_API_KEY_P256' },
          apiKeyId: anyText,
          apiKeyName: "Alice's key",
          createdAt: at,
          updatedAt: at,
        },
        {
          credential: { publicKey: anyText, type: 'CREDENTIAL_TYPE_API_KEY_P256' },
          apiKeyId,
          apiKeyName: 'spare',
          expirationSeconds: '3600',
          createdAt: at,
          updatedAt: at,
        },
      ],
      userTags: [userTagId],
      oauthProviders: [objectWith({ providerName: 'provider', audience: 'app' })],
      mfaPolicies: [],
      createdAt: at,
      updatedAt: at,
    });
  });

  test('lists are in the order of creation, and one is what the list has', async () => {
    const { alice, carol, apiKeyId, authenticatorId } = furnished;
    const { users } = await ask<{ users: { userId: string }[] }>('list_users');
    const { config } = await ask<{ config: { userId: string } }>('get_auth_proxy_config');
    expect(users.map(({ userId }) => userId)).toEqual([
      coordinator.root.userId,
      config.userId,
      alice.userId,
      carol.userId,
    ]);
    expect(await ask('get_user', { userId: alice.userId })).toEqual({ user: users[2] });

    const { apiKeys } = await ask<{ apiKeys: { apiKeyId: string }[] }>('get_api_keys', { userId: alice.userId });
    expect(apiKeys).toHaveLength(2);
    expect(await ask('get_api_key', { apiKeyId })).toEqual({ apiKey: apiKeys[1] });
    const { apiKeys: all } = await ask<{ apiKeys: object[] }>('get_api_keys');
    expect(all).toHaveLength(5);

    const { authenticators } = await ask<{ authenticators: object[] }>('get_authenticators', { userId: alice.userId });
    expect(await ask('get_authenticator', { authenticatorId })).toEqual({ authenticator: authenticators[0] });
  });

  test('whoami describes the caller, whoever that is', async () => {
    const { alice } = furnished;
    expect(await alice.client.query('whoami')).toEqual({
      organizationId,
      organizationName: 'Root organization',
      userId: alice.userId,
      username: 'Alice',
    });
  });
});

test('policies, tags, configs and the whole organization can be read', async () => {
  const { policyId, userTagId } = furnished;
  const { policies } = await ask<{ policies: object[] }>('list_policies');
  expect(policies).toEqual([
    policies.find((policy) => 'policyName' in policy && policy.policyName === 'Auth proxy'),
    {
      policyId,
      policyName: 'Carol asks, Alice agrees',
      effect: 'EFFECT_ALLOW',
      condition: "activity.kind == 'UPDATE_USER_NAME'",
      consensus: textLike(/^approvers\.any/),
      notes: '',
      createdAt: at,
      updatedAt: at,
    },
  ]);
  expect(await ask('get_policy', { policyId })).toEqual({ policy: policies[1] });
  const { userTags } = await ask<{ userTags: object[] }>('list_user_tags');
  expect(userTags).toEqual([
    { tagId: userTagId, tagName: 'staff', tagType: 'TAG_TYPE_USER', createdAt: at, updatedAt: at },
  ]);
  const quorum = { threshold: 1, userIds: [coordinator.root.userId] };
  const limits = limitList(limitsInForce(false));
  expect(await ask('get_organization_configs')).toEqual({ configs: { features: [], quorum, limits } });
  const { users } = await ask<{ users: object[] }>('list_users');
  const { wallets } = await ask<{ wallets: object[] }>('list_wallets');
  const { privateKeys } = await ask<{ privateKeys: object[] }>('list_private_keys');
  const { privateKeyTags } = await ask<{ privateKeyTags: object[] }>('list_private_key_tags');
  const { invitations } = await ask<{ invitations: object[] }>('list_invitations');
  expect([wallets, privateKeys, privateKeyTags, invitations].map(({ length }) => length)).toEqual([1, 1, 1, 1]);
  expect(await ask('get_organization')).toEqual({
    organizationData: {
      organizationId,
      name: 'Root organization',
      users,
      policies,
      tags: [...userTags, ...privateKeyTags],
      rootQuorum: quorum,
      features: [],
      limits,
      wallets,
      privateKeys,
      invitations,
      smartContractInterfaceReferences: [
        {
          smartContractInterfaceId: furnished.smartContractInterfaceId,
          smartContractAddress: '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48',
        },
      ],
    },
  });
});

describe('the activity envelope', () => {
  test('has every field of the specification, and the submitter’s vote', async () => {
    const { carol, waiting } = furnished;
    const { activity } = await carol.client.query<{ activity: ActivityEnvelope }>('get_activity', {
      activityId: waiting.id,
    });
    expect(activity).toEqual(waiting);
    const [vote] = activity.votes;
    expect(activity).toEqual({
      id: textLike(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/),
      organizationId,
      status: 'ACTIVITY_STATUS_CONSENSUS_NEEDED',
      type: 'ACTIVITY_TYPE_UPDATE_USER_NAME',
      intent: { updateUserNameIntent: { userId: carol.userId, userName: 'Caroline' } },
      result: {},
      votes: [
        {
          id: anyText,
          userId: carol.userId,
          user: objectWith({ userId: carol.userId, userName: 'Carol', mfaPolicies: [], oauthProviders: [] }),
          activityId: activity.id,
          selection: 'VOTE_SELECTION_APPROVED',
          message: vote!.message,
          publicKey: carol.key.publicKey,
          signature: textLike(/^30[0-9a-f]+$/),
          scheme: 'SIGNATURE_SCHEME_TK_API_P256',
          createdAt: at,
        },
      ],
      fingerprint: textLike(/^sha256:[0-9a-f]{64}$/),
      canApprove: false,
      canReject: true,
      timestampMs: textLike(/^\d{13}$/),
      createdAt: '2026-01-01T00:00:00.000Z',
      updatedAt: '2026-01-01T00:00:00.000Z',
      failure: null,
      waitsFor: {
        policies: [
          {
            policyId: anyText,
            policyName: 'Carol asks, Alice agrees',
            clause: {
              name: 'consensus',
              outcome: 'false',
              text: `approvers.any(user, user.id == '${furnished.alice.userId}')`,
            },
            approvalsMissing: 1,
            approverIds: [furnished.alice.userId],
          },
        ],
        rootQuorum: { approvalsMissing: 1, approverIds: [anyText] },
        text: textLike(/^Waiting for 1 more approval from "Alice" \(policy "Carol asks, Alice agrees": /),
      },
      decoded: [
        {
          text: `Change user "Carol" (${carol.userId}).`,
          facts: [],
          changes: [{ name: 'name', before: '"Carol"', after: '"Caroline"' }],
        },
      ],
    });
    const { createHash } = await import('node:crypto');
    expect(activity.fingerprint).toBe(`sha256:${createHash('sha256').update(vote!.message).digest('hex')}`);
  });

  test('a vote shows the voter as of the vote, whatever became of the voter', async () => {
    const dave = await coordinator.createUser('Dave');
    const passkey = new SoftwareAuthenticator();
    const { id } = await dave.client.submit('ACTIVITY_TYPE_CREATE_AUTHENTICATORS_V2', {
      userId: dave.userId,
      authenticators: [{ authenticatorName: 'passkey', ...passkey.register() }],
    });
    const before = await ask<{ activity: ActivityEnvelope }>('get_activity', { activityId: id });
    expect(before.activity.votes[0]!.user).toMatchObject({ userName: 'Dave', authenticators: [] });
    await coordinator.client.submit('ACTIVITY_TYPE_UPDATE_USER_NAME', { userId: dave.userId, userName: 'David' });
    expect(await ask('get_activity', { activityId: id })).toEqual(before);
    await coordinator.client.submit('ACTIVITY_TYPE_DELETE_USERS', { userIds: [dave.userId] });
    expect(await ask('get_activity', { activityId: id })).toEqual(before);
    const { activities } = await ask<{ activities: ActivityEnvelope[] }>('list_activities', {
      filterByType: ['ACTIVITY_TYPE_CREATE_AUTHENTICATORS_V2'],
    });
    expect(activities[0]).toEqual(before.activity);
  });
});

test('list_activity_events shows the life of an activity and its effects, chained, at their places in the stream', async () => {
  const { id } = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', {
    userTagName: 'with events',
    userIds: [furnished.alice.userId],
  });
  const { events } = await ask<{ events: Record<string, string>[] }>('list_activity_events', { activityId: id });
  expect(events.map(({ type }) => type)).toEqual(
    ['ActivitySubmitted', 'UserTagCreated', 'UserUpdated', 'ActivityCompleted'].filter((type) =>
      events.some((event) => event['type'] === type),
    ),
  );
  expect(events.length).toBeGreaterThanOrEqual(3);
  const recorded = await coordinator.events();
  for (const { id: eventId, revision, type, hash, recordedAt } of events) {
    const event = recorded[Number(revision)]!;
    expect({ id: event.id, type: event.type }).toEqual({ id: eventId, type });
    expect((event.metadata as { hash: string }).hash).toBe(hash);
    expect(recordedAt).toBe('2026-01-01T00:00:00.000Z');
  }
});

describe('list_denials', () => {
  test('lists who tried what, and why it was denied, newest first', async () => {
    const own = await startCoordinator({ seed: 'denials' });
    try {
      const alice = await own.createUser('Alice');
      const type = 'ACTIVITY_TYPE_CREATE_USER_TAG';
      const bodies = [1, 2, 3].map((index) => alice.client.submitBody(type, { userTagName: `tag ${index}` }));
      const list = async (paginationOptions = {}) =>
        (await own.client.query<{ denials: Record<string, unknown>[] }>('list_denials', { paginationOptions })).denials;
      for (const [index, body] of bodies.entries()) {
        await refusal(alice.client.post('/public/v1/submit/create_user_tag', body));
        // A refusal has no position to wait for.
        while ((await list()).length <= index);
      }
      const denials = await list();
      expect(denials.map(({ message }) => message)).toEqual([...bodies].reverse());
      expect(denials[0]).toMatchObject({
        type,
        userId: alice.userId,
        publicKey: alice.key.publicKey,
        scheme: 'SIGNATURE_SCHEME_TK_API_P256',
        reason: textLike("^You don't have sufficient permissions"),
        details: [objectWith({ message: 'No policies evaluated to outcome: Allow' })],
        omittedBefore: 0,
        createdAt: at,
      });
      expect(await list({ limit: '1', after: denials[0]!['denialId'] })).toEqual([denials[1]]);
      expect(await list({ before: denials[1]!['denialId'] })).toEqual([denials[0]]);
    } finally {
      await own.close();
    }
  });

  test('of a flood sixty a minute are kept, and how many were left out', async () => {
    const own = await startCoordinator({ seed: 'flood' });
    try {
      const alice = await own.createUser('Alice');
      const attempt = () => refusal(alice.client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'tag' }));
      await Promise.all(Array.from({ length: 70 }, attempt));
      own.clock.advance('1m');
      await attempt();
      const list = () =>
        own.client.query<{ denials: { omittedBefore: number }[] }>('list_denials', {
          paginationOptions: { limit: '100' },
        });
      while ((await list()).denials[0]?.omittedBefore !== 10);
      expect((await list()).denials).toHaveLength(61);
    } finally {
      await own.close();
    }
  });
});

describe('list_activities', () => {
  let pages: TestCoordinator;
  /** Ids, the newest first. */
  let ids: string[];

  beforeAll(async () => {
    pages = await startCoordinator({ seed: 'pages' });
    for (let index = 0; index < 24; index++) {
      // Ids of one millisecond are in no order; the list is, but then it could not be told by them.
      pages.clock.advance(1);
      await pages.client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: `tag ${index}` });
      if (index !== 11) continue;
      pages.clock.advance(1);
      await pages.client.submit('ACTIVITY_TYPE_UPDATE_ORGANIZATION_NAME', { organizationName: 'Acme' });
    }
    ids = await list({ paginationOptions: { limit: '100' } });
  });

  afterAll(() => pages.close());

  async function list(request: object): Promise<string[]> {
    const { activities } = await pages.client.query<{ activities: ActivityEnvelope[] }>('list_activities', request);
    return activities.map(({ id }) => id);
  }

  test('lists the newest first, ten unless told otherwise', async () => {
    expect(ids).toHaveLength(25);
    expect([...ids].sort().reverse()).toEqual(ids);
    expect(await list({})).toEqual(ids.slice(0, 10));
    expect(await list({ paginationOptions: {} })).toEqual(ids.slice(0, 10));
    expect(await list({ paginationOptions: { limit: null, before: null, after: null } })).toEqual(ids.slice(0, 10));
  });

  test.each([
    ['1', 1],
    ['2', 2],
    ['24', 24],
    ['25', 25],
    ['26', 25],
    ['100', 25],
  ])('limit %s', async (limit, length) => {
    expect(await list({ paginationOptions: { limit } })).toEqual(ids.slice(0, length));
  });

  test.each(['0', '101', '1000', 'x', '', '-1', '1.5', '1e1', '010', ' 5', '٣'])(
    'limit `%s` is refused',
    async (limit) => {
      const refused = await refusal(list({ paginationOptions: { limit } }));
      expect(refused).toMatchObject({ status: 400, code: 3, turnkeyErrorCode: 'REQUEST_INVALID' });
      expect(violations(refused).map(({ field }) => field)).toEqual(['paginationOptions.limit']);
    },
  );

  test('a numeric limit is refused, because the wire has strings', async () => {
    const refused = await refusal(list({ paginationOptions: { limit: 5 } }));
    expect(violations(refused).map(({ field }) => field)).toEqual(['paginationOptions.limit']);
  });

  test('goes on after a cursor, page after page to the end, with nothing twice and nothing left out', async () => {
    const seen: string[] = [];
    for (let after: string | undefined; ;) {
      const page = await list({ paginationOptions: { limit: '7', ...(after ? { after } : {}) } });
      if (page.length === 0) break;
      seen.push(...page);
      after = page.at(-1);
    }
    expect(seen).toEqual(ids);
  });

  test('goes back before a cursor to the start, with the page that touches it, in the same order', async () => {
    expect(await list({ paginationOptions: { limit: '3', before: ids[10] } })).toEqual(ids.slice(7, 10));
    expect(await list({ paginationOptions: { before: ids[2] } })).toEqual(ids.slice(0, 2));
    expect(await list({ paginationOptions: { before: ids[0] } })).toEqual([]);
    expect(await list({ paginationOptions: { after: ids.at(-1) } })).toEqual([]);
  });

  test('lists what lies between two cursors', async () => {
    expect(await list({ paginationOptions: { after: ids[3], before: ids[8] } })).toEqual(ids.slice(4, 8));
    expect(await list({ paginationOptions: { after: ids[8], before: ids[3] } })).toEqual([]);
    expect(await list({ paginationOptions: { after: ids[3], before: ids[8], limit: '2' } })).toEqual(ids.slice(4, 6));
  });

  test('takes filters alone, together, and with a cursor of something that they leave out', async () => {
    const type = 'ACTIVITY_TYPE_UPDATE_ORGANIZATION_NAME';
    expect(await list({ filterByType: [type] })).toEqual([ids[12]]);
    expect(await list({ filterByType: [type, 'ACTIVITY_TYPE_CREATE_USER_TAG'] })).toEqual(ids.slice(0, 10));
    expect(await list({ filterByType: ['ACTIVITY_TYPE_CREATE_WALLET'] })).toEqual([]);
    expect(await list({ filterByStatus: ['ACTIVITY_STATUS_COMPLETED'] })).toEqual(ids.slice(0, 10));
    expect(await list({ filterByStatus: ['ACTIVITY_STATUS_REJECTED', 'ACTIVITY_STATUS_FAILED'] })).toEqual([]);
    expect(await list({ filterByStatus: [], filterByType: [] })).toEqual(ids.slice(0, 10));
    const tags = ids.filter((id) => id !== ids[12]);
    expect(
      await list({
        filterByType: ['ACTIVITY_TYPE_CREATE_USER_TAG'],
        paginationOptions: { after: ids[12], limit: '3' },
      }),
    ).toEqual(tags.slice(12, 15));
  });

  test('a status that is none is refused, and a cursor that names nothing', async () => {
    const status = await refusal(list({ filterByStatus: ['COMPLETED'] }));
    expect(violations(status).map(({ field }) => field)).toEqual(['filterByStatus']);
    for (const name of ['after', 'before']) {
      const refused = await refusal(list({ paginationOptions: { [name]: nowhere } }));
      expect(refused).toMatchObject({ status: 400, code: 3 });
      expect(violations(refused)).toEqual([
        { field: `paginationOptions.${name}`, description: `is not an element of this list: \`${nowhere}\`` },
      ]);
    }
  });
});

describe.each(['memory', 'sqlite'] as const)('reading one’s own writes on %s', (store) => {
  test('the next query sees everything returned before, whoever sends it', async () => {
    const own = await startCoordinator({ store });
    try {
      for (let index = 0; index < 20; index++) {
        const { userId, client } = await own.createUser(`User ${index}`);
        const [{ users }, me] = await Promise.all([
          own.client.query<{ users: { userId: string }[] }>('list_users'),
          client.query<{ userId: string }>('whoami'),
        ]);
        expect(users.at(-1)!.userId).toBe(userId);
        expect(me.userId).toBe(userId);
      }
    } finally {
      await own.close();
    }
  });

  test('also right after a restart', async () => {
    let own = await startCoordinator({ store });
    try {
      const body = own.client.submitBody('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'tag' });
      const { body: answer } = await own.client.post<{ activity: ActivityEnvelope }>(
        '/public/v1/submit/create_user_tag',
        body,
      );
      own = await own.restart();
      const { activity } = await own.client.query<{ activity: ActivityEnvelope }>('get_activity', {
        activityId: answer.activity.id,
      });
      expect(activity).toEqual(answer.activity);
    } finally {
      await own.close();
    }
  });
});

describe('positions', () => {
  const whoami = (headers: Record<string, string>) => {
    const body = JSON.stringify({ organizationId });
    const { headerName, headerValue } = stampBody(body, coordinator.client.key);
    return exchange(`${coordinator.url}/public/v1/query/whoami`, {
      method: 'POST',
      body,
      headers: { [headerName]: headerValue, ...headers },
    });
  };

  test('a submit names its position, and a query may wait for it', async () => {
    const body = coordinator.client.submitBody('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'positioned' });
    const { headers } = await coordinator.client.post('/public/v1/submit/create_user_tag', body);
    const position = headers.get('x-position')!;
    expect(position).toMatch(/^\d+$/);
    expect((await whoami({ 'x-min-position': position })).status).toBe(200);
  });

  test('one that is not there yet is 503 within bounds, and says when to try again', async () => {
    const started = performance.now();
    const { status, headers, body } = await whoami({ 'x-min-position': '18446744073709551615' });
    const waited = performance.now() - started;
    expect({ status, retryAfter: headers.get('retry-after') }).toEqual({ status: 503, retryAfter: '1' });
    expect(body).toMatchObject({ code: 14, message: textLike('18446744073709551615') });
    expect(waited).toBeGreaterThan(1_900);
    expect(waited).toBeLessThan(25_000);
    // Nobody else has to wait for it: of some that ask one is answered sooner, however busy the machine is.
    const times: number[] = [];
    for (let asked = 0; asked < 4 && !times.some((time) => time < 1_900); asked++) {
      const again = performance.now();
      await coordinator.client.query('whoami');
      times.push(performance.now() - again);
    }
    expect(Math.min(...times)).toBeLessThan(1_900);
  });

  test.each(['x', '-1', '1.0', '', '1'.repeat(21)])('`%s` is none', async (position) => {
    const { status, body } = await whoami({ 'x-min-position': position });
    expect(status).toBe(400);
    expect(violations(body as Refusal).map(({ field }) => field)).toEqual(['X-Min-Position']);
  });
});
