import { randomUUID } from 'node:crypto';
import { release } from '../../src/config/release.js';
import { startCoordinator, stampBody, type StartOptions, type TestCoordinator } from '../../src/testing/index.js';
import { exchange, refusal } from './exchange.js';

const tag = () => ({ userTagName: randomUUID(), userIds: [] });

let coordinator: TestCoordinator;

async function start(options: StartOptions = {}): Promise<void> {
  coordinator = await startCoordinator(options);
}

afterEach(() => coordinator.close());

/** The samples of a metric, by their labels as they are written. */
async function samples(name: string): Promise<Record<string, number>> {
  const { text } = await exchange(`${coordinator.url}/metrics`);
  const lines = [...text.matchAll(new RegExp(`^${name}(?:\\{(.*)\\})? (\\S+)$`, 'gm'))];
  return Object.fromEntries(lines.map(([, labels = '', value]) => [labels, Number(value)]));
}

function send(path: string, body: object, key = coordinator.client.key) {
  const text = JSON.stringify(body);
  const { headerName, headerValue } = stampBody(text, key);
  return exchange(`${coordinator.url}${path}`, { method: 'POST', body: text, headers: { [headerName]: headerValue } });
}

test('submits are counted by activity type and status, and no caller makes up a type', async () => {
  await start();
  await coordinator.client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', tag());
  const { client } = await coordinator.createUser('Mallory');
  expect((await refusal(client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', tag()))).status).toBe(403);
  expect((await send('/public/v1/submit/create_user_tag', { type: 'ACTIVITY_TYPE_OF_MINE' })).status).toBe(400);
  expect((await send('/public/v1/submit/of_mine', { type: 'ACTIVITY_TYPE_OF_MINE' })).status).toBe(404);
  const counted = await samples('countersign_submits_total');
  expect(counted).toMatchObject({
    'type="ACTIVITY_TYPE_CREATE_USER_TAG",status="200"': 1,
    'type="ACTIVITY_TYPE_CREATE_USER_TAG",status="403"': 1,
    'type="ACTIVITY_TYPE_CREATE_USER_TAG",status="400"': 1,
  });
  expect(JSON.stringify(counted)).not.toContain('OF_MINE');
});

test('refused authentication, rate limits and failed appends are counted', async () => {
  await start({ settings: { RATE_LIMIT_PER_CREDENTIAL: '1' } });
  const whoami = (key = coordinator.client.key) =>
    send('/public/v1/query/whoami', { organizationId: coordinator.organizationId }, key);
  expect((await whoami(coordinator.newKey())).status).toBe(401);
  expect((await Promise.all([whoami(), whoami(), whoami()])).map(({ status }) => status).sort()).toEqual([
    200, 429, 429,
  ]);
  expect(await samples('countersign_authentication_failures_total')).toEqual({ '': 1 });
  expect(await samples('countersign_rate_limited_requests_total')).toEqual({ '': 2 });
  expect(await samples('countersign_append_failures_total')).toEqual({ '': 0 });
  await coordinator.restart({ settings: { RATE_LIMIT_PER_CREDENTIAL: '' } });
  coordinator.fail('append');
  expect((await refusal(coordinator.client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', tag()))).status).toBe(503);
  coordinator.fail('append', false);
  expect(await samples('countersign_append_failures_total')).toEqual({ '': 1 });
});

test('waiting activities are counted by age until they are voted on', async () => {
  await start();
  const { client: asking } = await coordinator.createUser('Ann');
  await coordinator.createPolicy({
    policyName: 'two',
    condition: `activity.action == 'CREATE'`,
    consensus: 'approvers.count() >= 2',
  });
  const first = await asking.submit('ACTIVITY_TYPE_CREATE_USER_TAG', tag());
  expect(first.status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
  coordinator.clock.advance(2 * 60 * 60 * 1_000);
  await asking.submit('ACTIVITY_TYPE_CREATE_USER_TAG', tag());
  await coordinator.settled();
  const waiting = { 'age="up to 1h"': 1, 'age="up to 24h"': 1, 'age="up to 7d"': 0, 'age="longer"': 0 };
  expect(await samples('countersign_waiting_activities')).toEqual(waiting);
  await coordinator.client.approve(first.fingerprint);
  await coordinator.settled();
  expect(await samples('countersign_waiting_activities')).toEqual({ ...waiting, 'age="up to 24h"': 0 });
});

test('the build and the read models are there', async () => {
  await start({ settings: { BUILD_COMMIT: 'abcdef0' } });
  const labels = `version="${release()}",commit="abcdef0",node="${process.version}"`;
  expect(await samples('countersign_build_info')).toEqual({ [labels]: 1 });
  await coordinator.settled();
  expect(await samples('countersign_read_model_rebuild_ratio')).toEqual({ '': 1 });
  expect(await samples('countersign_messages_open')).toEqual({ '': 0 });
});

test('metrics are there while the store is not, and say that this server is not ready', async () => {
  await start();
  expect(await samples('countersign_ready')).toEqual({ '': 1 });
  coordinator.fail('head');
  expect(await samples('countersign_ready')).toEqual({ '': 0 });
  coordinator.fail('head', false);
  expect(await samples('countersign_ready')).toEqual({ '': 1 });
});
