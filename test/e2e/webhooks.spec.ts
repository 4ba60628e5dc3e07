import { verifyTurnkeyWebhookSignature } from '@turnkey/crypto';
import type { ActivityEnvelope } from '../../src/wire/envelope.js';
import { guardedFetch } from '../../src/http-client/guarded-fetch.js';
import { startCoordinator, type StampingClient, type TestCoordinator, type TestUser } from '../../src/testing/index.js';
import { attempt, contentOf } from '../../src/webhooks/attempt.js';
import { exchange } from './exchange.js';
import { resultOf, sdkClient } from './login-world.js';
import { codeOf } from './one-time-codes.js';
import { until } from './until.js';
import { deliveriesLogged, deliveryLog, eventIdOf } from './webhook-log.js';
import { WebhookReceiver } from './webhook-receiver.js';

const settings = { ALLOW_PRIVATE_NETWORK: 'true' };

let receiver: WebhookReceiver;
let coordinator: TestCoordinator;
let ann: TestUser;
let bob: TestUser;
let places = 0;

beforeAll(async () => {
  receiver = await WebhookReceiver.start();
  // The published client stamps with the wall clock.
  coordinator = await startCoordinator({ at: new Date(), settings: { ...settings, VOTE_NOTICES: 'true' } });
  ann = await coordinator.createUser('Ann');
  bob = await coordinator.createUser('Bob', { userEmail: 'bob@example.com' });
  await coordinator.createPolicy({
    policyName: 'two of them rename',
    condition: "activity.kind == 'UPDATE_USER_NAME'",
    consensus: `approvers.any(user, user.id == '${ann.userId}') && approvers.any(user, user.id == '${bob.userId}')`,
  });
});
afterAll(async () => {
  await coordinator.close();
  await receiver.close();
});

/** An endpoint that is told of the renaming of users, at a path of its own. */
async function endpoint(more: { readonly types?: readonly string[] } = {}, by = coordinator.client) {
  const path = `/hooks/${++places}`;
  const filtersJson = JSON.stringify({ types: more.types ?? ['ACTIVITY_TYPE_UPDATE_USER_NAME'] });
  const { endpointId } = resultOf(
    await by.submit('ACTIVITY_TYPE_CREATE_WEBHOOK_ENDPOINT', {
      url: `${receiver.url}${path}`,
      name: path,
      subscriptions: [{ eventType: 'ACTIVITY_UPDATES', filtersJson }],
    }),
  );
  return { path, endpointId: endpointId! };
}

const rename = (to: string, by = ann.client) =>
  by.submit('ACTIVITY_TYPE_UPDATE_USER_NAME', { userId: ann.userId, userName: to });
const renameAtOnce = (to: string) => rename(to, coordinator.client);
const told = ({ body }: { readonly body: string }) => JSON.parse(body) as ActivityEnvelope;
const log = (endpointId: string, client = coordinator.client) => deliveryLog(client, endpointId);

/** The log of an endpoint, once so many deliveries are in that state. */
const logged = (endpointId: string, state: string, count = 1, client: StampingClient = coordinator.client) =>
  deliveriesLogged(client, endpointId, state, count);

async function verificationKeys({ url }: TestCoordinator) {
  const { body, headers } = await exchange(`${url}/public/v1/discovery/webhooks/jwks`);
  expect(headers.get('cache-control')).toBe('public, max-age=300');
  const { keys } = body as { keys: { kid: string; x: string }[] };
  return keys.map(({ kid, x }) => ({ keyId: kid, publicKey: Buffer.from(x, 'base64url').toString('hex') }));
}

test('a live token is delivered without its signature', async () => {
  const { path } = await endpoint({ types: ['ACTIVITY_TYPE_UPDATE_USER_EMAIL'] });
  const contact = 'told@example.com';
  const asked = { otpType: 'OTP_TYPE_EMAIL', contact, appName: 'Acme' };
  const { otpId } = resultOf(await coordinator.client.submit('ACTIVITY_TYPE_INIT_OTP_V3', asked));
  const verify = { otpId, otpCode: await codeOf(coordinator, otpId!) };
  const { verificationToken } = resultOf(await coordinator.client.submit('ACTIVITY_TYPE_VERIFY_OTP', verify));
  const change = { userId: coordinator.root.userId, userEmail: contact, verificationToken };
  await coordinator.client.submit('ACTIVITY_TYPE_UPDATE_USER_EMAIL', change);
  const [delivery] = await receiver.count(path, 1);
  const [, claims, signature] = verificationToken!.split('.');
  expect(delivery!.body).toContain(claims);
  expect(delivery!.body).not.toContain(signature);
  expect(told(delivery!)).toMatchObject({ redacted: true });
});

test('an endpoint of the published client is told of every activity, its own creation first, signed as that client checks it', async () => {
  const sdk = sdkClient(coordinator, coordinator.client.key);
  const { endpointId, webhookEndpoint } = await sdk.createWebhookEndpoint({ url: `${receiver.url}/all`, name: 'All' });
  expect((await sdk.listWebhookEndpoints({})).webhookEndpoints).toContainEqual(webhookEndpoint);
  const renamed = await renameAtOnce('Anna');
  const [first, second] = await receiver.count('/all', 2);
  expect(told(first!)).toMatchObject({
    type: 'ACTIVITY_TYPE_CREATE_WEBHOOK_ENDPOINT',
    status: 'ACTIVITY_STATUS_COMPLETED',
  });
  const { activity } = await coordinator.client.query<{ activity: ActivityEnvelope }>('get_activity', {
    activityId: renamed.id,
  });
  expect(told(second!)).toEqual({ ...activity, canApprove: false, canReject: false });

  const keys = await verificationKeys(coordinator);
  const check = (body: string, headers = second!.headers) =>
    verifyTurnkeyWebhookSignature({
      headers,
      body,
      verificationKeys: keys,
      maxTimestampAgeMs: 300_000,
      nowMs: coordinator.clock.now(),
    });
  const eventId = eventIdOf(second!);
  expect(check(second!.body)).toMatchObject({ ok: true, eventId, keyId: keys[0]!.keyId });
  expect(check(`${second!.body} `)).toMatchObject({ ok: false, reason: 'invalid_signature' });
  expect(second!.headers).toMatchObject({
    'content-type': 'application/json',
    'x-turnkey-organization-id': coordinator.organizationId,
    'x-turnkey-event-type': 'ACTIVITY_UPDATES',
    'x-turnkey-webhook-version': '1',
    'x-turnkey-signature-algorithm': 'ed25519',
    'x-turnkey-signature-version': 'v1',
  });
  const { events } = await coordinator.client.query<{ events: { id: string; type: string }[] }>(
    'list_activity_events',
    {
      activityId: renamed.id,
    },
  );
  expect(events.find(({ id }) => id === eventId)).toMatchObject({ type: 'ActivityCompleted' });
  await sdk.deleteWebhookEndpoint({ endpointId });
  expect((await sdk.listWebhookEndpoints({})).webhookEndpoints).not.toContainEqual(webhookEndpoint);
});

test('updates of one activity arrive in order, and others do not wait for them', async () => {
  const { path, endpointId } = await endpoint();
  receiver.teach(path, 503, 204);
  const waiting = await rename('Annika');
  const [failed] = await receiver.count(path, 1);
  const [entry] = await logged(endpointId, 'pending');
  await until('the failure is known', async () => (await log(endpointId))[0]?.attempts === 1);
  expect(entry).toMatchObject({ activityId: waiting.id });
  await bob.client.approve(waiting.fingerprint);
  const other = await renameAtOnce('Annette');
  // The endpoint rests for a second, the update for five.
  coordinator.clock.advance('2s');
  expect(told((await receiver.count(path, 2))[1]!)).toMatchObject({ id: other.id });
  coordinator.clock.advance('5s');
  const all = await receiver.count(path, 4);
  expect(all.map((one) => [told(one).id, told(one).status, told(one).canApprove])).toEqual([
    [waiting.id, 'ACTIVITY_STATUS_CONSENSUS_NEEDED', true],
    [other.id, 'ACTIVITY_STATUS_COMPLETED', false],
    [waiting.id, 'ACTIVITY_STATUS_CONSENSUS_NEEDED', true],
    [waiting.id, 'ACTIVITY_STATUS_COMPLETED', false],
  ]);
  // The same event and the same bytes, although the activity is over; stamped and signed anew.
  expect([eventIdOf(all[2]!), all[2]!.body]).toEqual([eventIdOf(failed!), failed!.body]);
  expect(told(all[2]!).votes).toHaveLength(1);
  expect(all[2]!.headers['x-turnkey-timestamp']).not.toBe(failed!.headers['x-turnkey-timestamp']);
  expect(all[2]!.headers['x-turnkey-signature']).not.toBe(failed!.headers['x-turnkey-signature']);
  const entries = await logged(endpointId, 'delivered', 3);
  expect(entries.map(({ attempts, httpStatus }) => [attempts, httpStatus])).toEqual([
    [1, 204],
    [1, 204],
    [2, 204],
  ]);
});

test('an endpoint that never answers, and one that is not there, hold up nobody', async () => {
  const [hanging, good] = [await endpoint(), await endpoint()];
  receiver.teach(hanging.path, 'never');
  await coordinator.client.submit('ACTIVITY_TYPE_CREATE_WEBHOOK_ENDPOINT', {
    url: 'http://127.0.0.1:9/',
    name: 'gone',
  });
  for (let count = 0; count < 8; count++) await renameAtOnce(`Ann ${count}`);
  const names = (await receiver.count(good.path, 8)).map((one) => told(one).intent);
  expect(names).toHaveLength(8);
  await logged(good.endpointId, 'delivered', 8);
  expect(receiver.at(hanging.path).length).toBeLessThanOrEqual(4);
  await coordinator.client.submit('ACTIVITY_TYPE_DELETE_WEBHOOK_ENDPOINT', { endpointId: hanging.endpointId });
});

test('what is answered 3xx or 4xx is final; the body of an answer does not matter, and no redirect is followed', async () => {
  const { path, endpointId } = await endpoint();
  const statuses = [301, 307, 400, 404, 410, 429, 200];
  receiver.teach(path, ...statuses);
  for (const [index] of statuses.entries()) {
    await renameAtOnce(`Ann of ${index}`);
    await receiver.count(path, index + 1);
  }
  await logged(endpointId, 'delivered');
  const entries = await logged(endpointId, 'abandoned', 6);
  expect(entries.map(({ state, httpStatus, reason, attempts }) => [state, httpStatus, reason, attempts])).toEqual(
    statuses
      .toReversed()
      .map((status) =>
        status === 200 ? ['delivered', 200, undefined, 1] : ['abandoned', status, `responded with status ${status}`, 1],
      ),
  );
  expect(receiver.at('/elsewhere')).toEqual([]);
});

test('what is answered 5xx is tried again eight times in all, later and later, and then given up', async () => {
  const { path, endpointId } = await endpoint();
  receiver.teach(path, 500);
  await renameAtOnce('Ann the persistent');
  const pauses = ['5s', '1m', '5m', '30m', '2h', '5h', '10h'] as const;
  for (const [index, pause] of pauses.entries()) {
    await receiver.count(path, index + 1);
    await until('the failure is known', async () => (await log(endpointId))[0]?.attempts === index + 1);
    coordinator.clock.advance(pause);
  }
  await receiver.count(path, 8);
  const [entry] = await logged(endpointId, 'abandoned');
  expect(entry).toMatchObject({ attempts: 8, httpStatus: 500, reason: 'responded with status 500' });
  expect(entry).not.toHaveProperty('retryAt');
  expect(new Set(receiver.at(path).map(eventIdOf)).size).toBe(1);
  const text = (await exchange(`${coordinator.url}/metrics`)).text;
  expect(text).toMatch(/countersign_webhook_attempts_total\{outcome="abandoned"\} [1-9]/);
});

test('what could not be delivered for three days is given up, and not tried again', async () => {
  const { path, endpointId } = await endpoint();
  receiver.teach(path, 500, 204);
  await renameAtOnce('Ann of three days ago');
  await receiver.count(path, 1);
  await until('the failure is known', async () => (await log(endpointId))[0]?.attempts === 1);
  coordinator.clock.advance('73h');
  const [entry] = await logged(endpointId, 'abandoned');
  expect(entry).toMatchObject({ attempts: 1, reason: 'not delivered within 72 hours' });
  expect(receiver.at(path)).toHaveLength(1);
});

test('a paused endpoint is notified of nothing, neither pending nor new events', async () => {
  const { path, endpointId } = await endpoint();
  const change = (isActive: boolean) =>
    coordinator.client.submit('ACTIVITY_TYPE_UPDATE_WEBHOOK_ENDPOINT', { endpointId, isActive });
  receiver.teach(path, 502, 204);
  await renameAtOnce('Ann before');
  await receiver.count(path, 1);
  await change(false);
  expect(await logged(endpointId, 'dropped')).toHaveLength(1);
  await renameAtOnce('Ann meanwhile');
  await change(true);
  coordinator.clock.advance('1h');
  const after = await renameAtOnce('Ann after');
  expect(told((await receiver.count(path, 2))[1]!).id).toBe(after.id);
  await logged(endpointId, 'delivered');
  expect(receiver.at(path)).toHaveLength(2);
});

test('a parent is told of its sub-organizations, a sub-organization of itself only', async () => {
  const { client, newKey } = coordinator;
  const types = ['ACTIVITY_TYPE_CREATE_USER_TAG'];
  const key = newKey();
  const { subOrganizationId } = resultOf(
    await client.submit('ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8', {
      subOrganizationName: 'child',
      rootUsers: [
        {
          userName: 'Child',
          apiKeys: [{ apiKeyName: 'child', publicKey: key.publicKey, curveType: key.curve }],
          authenticators: [],
          oauthProviders: [],
        },
      ],
      rootQuorumThreshold: 1,
    }),
  );
  const child = coordinator.clientFor(key, subOrganizationId);
  const [ours, theirs] = [await endpoint({ types }), await endpoint({ types }, child)];
  const tag = (by: StampingClient) => by.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'tag', userIds: [] });
  const below = await tag(child);
  const above = await tag(client);
  const atOurs = await receiver.count(ours.path, 2);
  expect(atOurs.map((one) => told(one).id).toSorted()).toEqual([below.id, above.id].toSorted());
  await logged(ours.endpointId, 'delivered', 2);
  await logged(theirs.endpointId, 'delivered', 1, child);
  const atTheirs = receiver.at(theirs.path);
  expect(atTheirs.map((one) => [told(one).id, one.headers['x-turnkey-organization-id']])).toEqual([
    [below.id, subOrganizationId],
  ]);
  // Whoever has both sees that it is one event.
  const sameAtOurs = atOurs.find((one) => told(one).id === below.id)!;
  expect(eventIdOf(sameAtOurs)).toBe(eventIdOf(atTheirs[0]!));
  await expect(log(ours.endpointId, child)).rejects.toMatchObject({ status: 404 });
});

test('what waits when a coordinator stops is delivered by the next one, once', async () => {
  const first = await startCoordinator({ store: 'sqlite', at: new Date(), settings, seed: 'restart' });
  const leases = 'lease-webhook-deliveries';
  expect(await first.events(leases)).toEqual([]);
  receiver.teach('/restart', 503, 204);
  const { endpointId } = resultOf(
    await first.client.submit('ACTIVITY_TYPE_CREATE_WEBHOOK_ENDPOINT', { url: `${receiver.url}/restart`, name: 'x' }),
  );
  await receiver.count('/restart', 1);
  await first.client.submit('ACTIVITY_TYPE_UPDATE_ORGANIZATION_NAME', { organizationName: 'Renamed' });
  // Neither the second one, for which the endpoint rests, nor the retry of the first is due.
  const second = await first.restart();
  try {
    await receiver.count('/restart', 2);
    second.clock.advance('5s');
    const all = await receiver.count('/restart', 3);
    await logged(endpointId!, 'delivered', 2, second.client);
    expect(receiver.at('/restart')).toHaveLength(3);
    expect(all.map((one) => told(one).type)).toEqual([
      'ACTIVITY_TYPE_CREATE_WEBHOOK_ENDPOINT',
      'ACTIVITY_TYPE_UPDATE_ORGANIZATION_NAME',
      'ACTIVITY_TYPE_CREATE_WEBHOOK_ENDPOINT',
    ]);
    expect(eventIdOf(all[2]!)).toBe(eventIdOf(all[0]!));
    expect((await second.events(leases)).map(({ type }) => type)).toContain('LeaseAcquired');
    const recorded = await second.events(`webhook-deliveries-${second.organizationId}`);
    expect(recorded.map(({ type }) => type)).toEqual(['WebhookAttemptFailed', 'WebhookDelivered', 'WebhookDelivered']);
  } finally {
    await second.close();
  }
});

test('a host that leads to a private address by the time of the delivery is not called', async () => {
  const answers = [['93.184.215.14'], ['127.0.0.1']];
  const resolve = () => Promise.resolve(answers.shift() ?? ['169.254.169.254']);
  const message = {
    url: 'https://hooks.example/',
    endpointId: 'endpoint',
    eventId: 'e',
    eventType: 'x',
    organizationId: 'o',
  };
  const signer = { jwk: { kid: 'k' }, sign: () => Promise.resolve(new Uint8Array(64)) };
  const content = await contentOf({}, { signer, eventId: 'e', at: 0, turn: () => undefined });
  const { signal } = new AbortController();
  await resolve();
  for (let count = 0; count < 2; count++) {
    const fetch = guardedFetch({ allowPrivateNetwork: false, resolve });
    expect(await attempt({ ...message, content }, { fetch, signer, signal })).toEqual({
      kind: 'failed',
      reason:
        'host `hooks.example` does not resolve to an address that this server calls: use a public one (for development, ' +
        'the setting ALLOW_PRIVATE_NETWORK=true allows http and private addresses)',
    });
  }
});

test('approvers are notified once by mail that an activity is waiting', async () => {
  const before = coordinator.messages().length;
  const waiting = await rename('Ann who waits');
  await bob.client.approve(waiting.fingerprint);
  const other = await rename('Ann who waits again');
  await until('all notices are sent', () => coordinator.messages().length >= before + 4);
  const notices = coordinator.messages().slice(before);
  const subject = 'Your vote is needed in Root organization';
  for (const { id } of [waiting, other]) {
    const about = notices.filter(({ text }) => text.includes(id));
    expect(about.map((notice) => [notice.channel, notice.to, notice.subject]).toSorted()).toEqual([
      ['email', 'bob@example.com', subject],
      // A member of the root quorum may vote on whatever waits.
      ['email', 'told@example.com', subject],
    ]);
  }
  expect(notices[0]!.text).toContain('Ann');
});
