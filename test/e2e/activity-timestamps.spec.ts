import { send, stampBody, startCoordinator, submitPath, type TestCoordinator } from '../../src/testing/index.js';
import { objectWith, textLike } from './exchange.js';

// Typed SDKs decode the times of activities as google.protobuf.Timestamp, with both members as text.

type Activity = Readonly<Record<string, unknown>> & { readonly id: string; readonly fingerprint: string };

let coordinator: TestCoordinator;

beforeEach(async () => {
  coordinator = await startCoordinator({ settings: { ALLOW_PRIVATE_NETWORK: 'true' } });
});

afterEach(() => coordinator.close());

const text = textLike(/^2026-01-01T00:00:00\.\d{3}Z$/);
const object = { seconds: '1767225600', nanos: textLike(/^\d{1,9}$/) };

const clients: readonly (readonly [string, Readonly<Record<string, string>>, unknown])[] = [
  ['one that says nothing', {}, text],
  ['@turnkey/http', { 'x-client-version': '@turnkey/http@6.6.0' }, text],
  ['@turnkey/core', { 'x-client-version': '@turnkey/core@2.8.1' }, text],
  ['an empty version', { 'x-client-version': '' }, text],
  ['Go', { 'x-client-version': 'go-sdk/v0.14.0' }, object],
  ['Python', { 'x-client-version': 'turnkey-python/0.3.0' }, object],
  ['Swift', { 'x-client-version': 'turnkey-swift/3.1.0' }, object],
  ['Kotlin', { 'x-client-version': 'turnkey-kotlin/1.0.0' }, object],
  ['Dart', { 'x-client-version': 'turnkey-dart/1.0.0' }, object],
  ['Rust', { 'user-agent': 'turnkey-rust-client/0.6.0' }, object],
  ['another browser', { 'user-agent': 'Mozilla/5.0 turnkey-rust-client/0.6.0' }, text],
];

let sent = 0;

/** Every response with an activity: a submit, its repetition, a vote, get_activity and list_activities. */
async function activitiesFor(headers: Readonly<Record<string, string>>): Promise<Record<string, Activity>> {
  const { url, organizationId, root } = coordinator;
  const ask = async <Body>(path: string, body: string, key = coordinator.client.key) => {
    const { headerName, headerValue } = stampBody(body, key);
    return (await send<Body>(`${url}${path}`, body, { [headerName]: headerValue, ...headers })).body;
  };
  const submit = (type: string, parameters: object, key = coordinator.client.key) => {
    const timestampMs = String(coordinator.clock.now() + ++sent);
    const body = JSON.stringify({ type, timestampMs, organizationId, parameters });
    return ask<{ activity: Activity }>(submitPath(type), body, key);
  };
  const query = <Body>(path: string, parameters: object) =>
    ask<Body>(`/public/v1/query/${path}`, JSON.stringify({ organizationId, ...parameters }));

  const tag = { userTagName: `tag ${++sent}`, userIds: [] };
  const timestampMs = String(coordinator.clock.now() + ++sent);
  const type = 'ACTIVITY_TYPE_CREATE_USER_TAG';
  const body = JSON.stringify({ type, timestampMs, organizationId, parameters: tag });
  const { activity: submitted } = await ask<{ activity: Activity }>(submitPath(type), body);
  const { activity: repeated } = await ask<{ activity: Activity }>(submitPath(type), body);

  const member = await coordinator.createUser(`Member ${sent}`);
  await coordinator.createPolicy({
    policyName: `two for ${member.userId}`,
    condition: "activity.type == 'ACTIVITY_TYPE_UPDATE_USER_NAME'",
    consensus: `approvers.any(user, user.id == '${member.userId}') && approvers.any(user, user.id == '${root.userId}')`,
  });
  const renamed = () =>
    submit('ACTIVITY_TYPE_UPDATE_USER_NAME', { userId: member.userId, userName: `Renamed ${++sent}` }, member.key);
  const { activity: waiting } = await renamed();
  const vote = { fingerprint: waiting.fingerprint };
  const { activity: approved } = await submit('ACTIVITY_TYPE_APPROVE_ACTIVITY', vote);
  const refused = { fingerprint: (await renamed()).activity.fingerprint };
  const { activity: rejected } = await submit('ACTIVITY_TYPE_REJECT_ACTIVITY', refused);
  const { activity: read } = await query<{ activity: Activity }>('get_activity', { activityId: submitted.id });
  const { activities } = await query<{ activities: readonly [Activity] }>('list_activities', {});
  expect([submitted, waiting, approved, rejected].map(({ status }) => status)).toEqual(
    ['COMPLETED', 'CONSENSUS_NEEDED', 'COMPLETED', 'REJECTED'].map((status) => `ACTIVITY_STATUS_${status}`),
  );
  return { submitted, repeated, waiting, approved, rejected, read, listed: activities[0] };
}

test.each(clients)('createdAt and updatedAt fit %s', async (_client, headers, time) => {
  const activities = await activitiesFor(headers);
  const times = Object.entries(activities).map(([name, { createdAt, updatedAt }]) => [name, createdAt, updatedAt]);
  expect(times).toEqual(Object.keys(activities).map((name) => [name, time, time]));
});

test('the setting ACTIVITY_TIMESTAMPS=object is for every client', async () => {
  await coordinator.restart({ settings: { ACTIVITY_TIMESTAMPS: 'object' } });
  for (const headers of [{}, { 'x-client-version': '@turnkey/http@6.6.0' }]) {
    for (const { createdAt, updatedAt } of Object.values(await activitiesFor(headers))) {
      expect([createdAt, updatedAt]).toEqual([object, object]);
    }
  }
});

test('an organization can choose objects for every client, and go back', async () => {
  const name = 'FEATURE_NAME_ACTIVITY_TIMESTAMPS';
  const set = await coordinator.client.submit('ACTIVITY_TYPE_SET_ORGANIZATION_FEATURE', { name, value: 'object' });
  expect(set.createdAt).toEqual(object);
  expect((await activitiesFor({}))['listed']).toMatchObject({ createdAt: object, updatedAt: object });
  const removed = await coordinator.client.submit('ACTIVITY_TYPE_REMOVE_ORGANIZATION_FEATURE', { name });
  expect(removed.createdAt).toEqual(text);
  await expect(
    coordinator.client.submit('ACTIVITY_TYPE_SET_ORGANIZATION_FEATURE', { name, value: 'seconds' }),
  ).rejects.toMatchObject({ status: 400, body: objectWith({ message: textLike('must be `object`, got `seconds`') }) });
});

test('webhooks have text, whoever caused them', async () => {
  await coordinator.listenForWebhooks();
  await activitiesFor({ 'x-client-version': 'go-sdk/v0.14.0' });
  await coordinator.settled();
  const bodies = coordinator.webhooks().map(({ body }) => body as Activity);
  expect(bodies.length).toBeGreaterThan(3);
  for (const { createdAt, updatedAt } of bodies) expect([createdAt, updatedAt]).toEqual([text, text]);
});
