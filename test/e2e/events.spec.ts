import { organizationStream } from '../../src/domain/organization/organization.js';
import type { RecordedEvent } from '../../src/ledger/event-store.js';
import { startCoordinator, StampingClient, type TestCoordinator } from '../../src/testing/index.js';
import { exchange, refusal } from './exchange.js';
import { clientSignature, codeOf } from './one-time-codes.js';

// Whole histories, for those who stand above everything. Whoever asks here besides them is turned away.

interface Told {
  readonly id: string;
  readonly revision: string;
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly hash: string;
  readonly activityId?: string;
  readonly decidedAt?: string;
  readonly redacted?: true;
}

interface Page {
  readonly events: readonly Told[];
  readonly hasMore?: true;
}

let coordinator: TestCoordinator;

beforeAll(async () => {
  coordinator = await startCoordinator({
    settings: { PROXY_RATE_LIMIT_PER_ADDRESS: '0', PROXY_RATE_LIMIT_PER_CONFIGURATION: '0' },
  });
});

afterAll(() => coordinator.close());

const listOf = (client: StampingClient, request: object = {}) => client.query<Page>('list_events', request);

async function proxy(path: string, body: object) {
  const { status, body: answer } = await exchange(`${coordinator.url}/v1/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-auth-proxy-config-id': coordinator.root.authProxyConfigId },
    body: JSON.stringify(body),
  });
  expect({ status, answer }).toMatchObject({ status: 200 });
  return answer as Readonly<Record<string, string>>;
}

/** A stranger who has signed up, alone in the quorum of a sub-organization. */
async function stranger() {
  const key = coordinator.newKey();
  const apiKeys = [{ apiKeyName: 'own', publicKey: key.publicKey, curveType: key.curve }];
  const { organizationId } = await proxy('signup', { apiKeys, authenticators: [], oauthProviders: [] });
  return {
    key,
    organizationId: organizationId!,
    client: new StampingClient(coordinator.url, organizationId!, key, coordinator.clock),
  };
}

describe('list_events', () => {
  test('tells each event once, in order, across restarts, and where its signed request and its decision are', async () => {
    const carol = await coordinator.createUser('Carol');
    await coordinator.createPolicy({
      policyName: 'two',
      consensus: `approvers.any(user, user.id == '${carol.userId}')`,
    });
    await carol.client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'hers', userIds: [carol.userId] });

    const seen: Told[] = [];
    for (;;) {
      const after = seen.at(-1)?.revision;
      const { events } = await listOf(coordinator.client, { limit: '7', ...(after === undefined ? {} : { after }) });
      if (events.length === 0) break;
      expect(events.length).toBeLessThanOrEqual(7);
      seen.push(...events);
      if (seen.length === 14) coordinator = await coordinator.restart();
    }
    const recorded = await coordinator.events();
    expect(recorded.length).toBeGreaterThan(14);
    const placed = ({ id, revision, type, metadata }: RecordedEvent) => {
      return { id, revision: String(revision), type, hash: (metadata as { hash: string }).hash };
    };
    expect(seen.map(({ id, revision, type, hash }) => ({ id, revision, type, hash }))).toEqual(recorded.map(placed));

    const effect = seen.find(({ type }) => type === 'UserTagCreated')!;
    const deciding = seen.find(({ revision }) => revision === effect.decidedAt)!;
    expect(deciding).toMatchObject({
      type: 'ActivitySubmitted',
      activityId: effect.activityId,
      decidedAt: deciding.revision,
      data: { vote: { userId: carol.userId, publicKey: carol.key.publicKey }, decision: { outcome: 'allow' } },
    });
    for (const { activityId, decidedAt, revision } of seen) {
      if (activityId === undefined) continue;
      const found = seen.find((one) => one.revision === decidedAt)!;
      expect([found.activityId, Number(found.revision) <= Number(revision)]).toEqual([activityId, true]);
      expect(Object.keys(found.data)).toContain('vote');
    }
    expect(await coordinator.client.query('get_event', { revision: effect.revision })).toEqual({
      event: effect,
      decision: deciding,
    });
    expect(await coordinator.client.query('get_event', { revision: deciding.revision })).toEqual({ event: deciding });
    const beyond = await refusal(coordinator.client.query('get_event', { revision: '9999999' }));
    expect(beyond).toMatchObject({ status: 404, message: expect.stringContaining('`9999999`') as string });
  });

  test('is for members of the root quorum, with their key', async () => {
    const alice = await coordinator.createUser('Alice');
    expect(await refusal(listOf(alice.client))).toMatchObject({
      status: 403,
      message: `query list_events: user \`${alice.userId}\` is not in the root quorum of organization \`${coordinator.organizationId}\``,
    });
    expect(await refusal(alice.client.query('get_event', { revision: '0' }))).toMatchObject({ status: 403 });

    const { result } = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_READ_ONLY_SESSION', {});
    const { session } = result['createReadOnlySessionResult'] as { readonly session: string };
    const body = JSON.stringify({ organizationId: coordinator.organizationId });
    const bySession = await exchange(`${coordinator.url}/public/v1/query/list_events`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-session': session },
      body,
    });
    expect(bySession).toMatchObject({
      status: 403,
      body: { message: expect.stringContaining('needs a stamp') as string },
    });
  });

  test('of a sub-organization is for its parent’s quorum, and for its own once the parent says so', async () => {
    const one = await stranger();
    const other = await stranger();
    const alice = await coordinator.createUser('Alice too');
    const parents = coordinator.clientFor(coordinator.client.key, one.organizationId);
    const recorded = await coordinator.events(organizationStream(one.organizationId));
    const told = (await listOf(parents)).events;
    expect(told.map(({ id }) => id)).toEqual(recorded.map(({ id }) => id));
    expect(await refusal(listOf(coordinator.clientFor(alice.key, one.organizationId)))).toMatchObject({ status: 403 });
    expect(await refusal(listOf(coordinator.clientFor(other.key, one.organizationId)))).toMatchObject({ status: 401 });
    expect(await refusal(listOf(coordinator.clientFor(one.key)))).toMatchObject({ status: 401 });

    const feature = { name: 'FEATURE_NAME_SUB_ORGANIZATION_EVENTS' };
    expect(await refusal(listOf(one.client))).toMatchObject({
      status: 403,
      message: expect.stringContaining(`has not switched ${feature.name} on`) as string,
    });
    // Its own setting is not its parent's.
    await one.client.submit('ACTIVITY_TYPE_SET_ORGANIZATION_FEATURE', { ...feature, value: '' });
    expect(await refusal(listOf(one.client))).toMatchObject({ status: 403 });
    await coordinator.client.submit('ACTIVITY_TYPE_SET_ORGANIZATION_FEATURE', { ...feature, value: '' });
    expect((await listOf(one.client)).events.map(({ id }) => id)).toContain(recorded[0]!.id);
    await coordinator.client.submit('ACTIVITY_TYPE_REMOVE_ORGANIZATION_FEATURE', feature);
    expect(await refusal(listOf(one.client))).toMatchObject({ status: 403 });
  });

  test('leaves a token out while it lives, and tells the signed request to the byte afterwards', async () => {
    const key = coordinator.newKey();
    const contact = 'somebody@example.com';
    const { otpId } = await proxy('otp_init', { otpType: 'OTP_TYPE_EMAIL', contact });
    const otpCode = await codeOf(coordinator, otpId!);
    const { verificationToken } = await proxy('otp_verify', { otpId, otpCode, publicKey: key.publicKey });
    const asked = {
      apiKeys: [{ apiKeyName: 'own', publicKey: key.publicKey, curveType: key.curve }],
      authenticators: [],
      oauthProviders: [],
    };
    const signup = { signup: { ...asked, email: contact } };
    const signature = clientSignature(key, verificationToken!, 'USAGE_TYPE_SIGNUP', signup);
    await proxy('signup', { userEmail: contact, verificationToken, ...asked, clientSignature: signature });

    const recorded = (await coordinator.events()).find(({ type, data }) => {
      return type === 'ActivitySubmitted' && JSON.stringify(data).includes(verificationToken!);
    })!;
    const after = String(recorded.revision - 1);
    const live = await listOf(coordinator.client, { after, limit: '1' });
    expect(live.events).toMatchObject([{ id: recorded.id, redacted: true }]);
    expect(JSON.stringify(live)).not.toContain(verificationToken!.split('.')[2]);
    const [{ decidedAt } = { decidedAt: '' }] = live.events;
    const alone = await coordinator.client.query('get_event', { revision: decidedAt! });
    expect(JSON.stringify(alone)).not.toContain(verificationToken!.split('.')[2]);

    coordinator.clock.advance('24h');
    const over = await listOf(coordinator.client, { after, limit: '1' });
    expect(over.events[0]).not.toHaveProperty('redacted');
    const { vote } = over.events[0]!.data as { readonly vote: { readonly message: string } };
    expect(vote.message).toContain(verificationToken);
  });

  test('refuses cursors and limits that are none', async () => {
    for (const request of [{ after: '-1' }, { after: 'x' }, { limit: '0' }, { limit: '101' }, { after: 5 }]) {
      expect([request, (await refusal(listOf(coordinator.client, request))).status]).toEqual([request, 400]);
    }
    expect(await listOf(coordinator.client, { after: '9999999999' })).toEqual({ events: [] });
  });
});
