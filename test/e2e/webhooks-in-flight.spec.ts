import { setTimeout as pause } from 'node:timers/promises';
import { startCoordinator, type StampingClient, type TestCoordinator } from '../../src/testing/index.js';
import { until } from './until.js';
import { WebhookReceiver } from './webhook-receiver.js';

let receiver: WebhookReceiver;
let world: TestCoordinator;
let founded = 0;

beforeAll(async () => {
  receiver = await WebhookReceiver.start();
});
beforeEach(async () => {
  world = await startCoordinator({ settings: { ALLOW_PRIVATE_NETWORK: 'true' } });
});
afterEach(() => world.close());
afterAll(() => receiver.close());

/** A new sub-organization with one member, who calls. */
async function found() {
  const key = world.newKey();
  const { subOrganizationId, rootUserIds } = await world.client.perform('ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8', {
    subOrganizationName: `Sub ${++founded}`,
    rootUsers: [
      {
        userName: 'Mallory',
        apiKeys: [{ apiKeyName: 'key', publicKey: key.publicKey, curveType: key.curve }],
        authenticators: [],
        oauthProviders: [],
      },
    ],
    rootQuorumThreshold: 1,
  });
  const client = world.clientFor(key, subOrganizationId);
  const [userId] = rootUserIds!;
  const rename = (to: string) => client.submit('ACTIVITY_TYPE_UPDATE_USER_NAME', { userId, userName: to });
  return { client, rename };
}

/** An endpoint that is told of everything. */
const hook = (by: StampingClient, path: string) =>
  by.submit('ACTIVITY_TYPE_CREATE_WEBHOOK_ENDPOINT', {
    subscriptions: [{ eventType: 'ACTIVITY_UPDATES' }],
    url: `${receiver.url}${path}`,
    name: path,
  });
const under = (prefix: string) => receiver.received.filter(({ path }) => path.startsWith(prefix)).length;

test('slow endpoints of some sub-organizations do not hold up those of another, nor the parent’s', async () => {
  // Each is told of every creation after its own: there is more to deliver than may be on its way.
  const others = await Promise.all([1, 2, 3, 4, 5].map(found));
  for (let number = 0; number < 10; number++) {
    for (const [owner, { client }] of others.entries()) {
      receiver.teach(`/slow/${owner}/${number}`, 'never');
      await hook(client, `/slow/${owner}/${number}`);
    }
  }
  await until('slow endpoints are being told', () => under('/slow/') >= 20);
  await hook((await found()).client, '/quick/sub-organization');
  await hook(world.client, '/quick/parent');
  await receiver.count('/quick/sub-organization', 1);
  await receiver.count('/quick/parent', 1);
  // Four of each organization; some more where the machine is so slow that attempts have been given up meanwhile.
  expect(under('/slow/')).toBeLessThanOrEqual(60);
});

test('endpoints of a sub-organization that turn slow, having answered soon, leave places for its siblings', async () => {
  const turning = await found();
  for (let number = 0; number < 10; number++) await hook(turning.client, `/turning/${number}`);
  // Each has answered: that of its own creation at least.
  for (let number = 0; number < 10; number++) await receiver.count(`/turning/${number}`, 10 - number);
  for (let number = 0; number < 10; number++) receiver.teach(`/turning/${number}`, 'never');
  const before = under('/turning/');
  for (let time = 0; time < 10; time++) await turning.rename(`Mallory ${time}`);
  await until('they are being told', () => under('/turning/') >= before + 8);
  await hook((await found()).client, '/sibling');
  await receiver.count('/sibling', 1);
  // Eight, and some more where the machine is so slow that attempts have been given up meanwhile; all ten could have 80.
  expect(under('/turning/') - before).toBeLessThanOrEqual(24);
});

test('a quick answer among late ones does not bring an endpoint more deliveries', async () => {
  const { client, rename } = await found();
  await hook(client, '/mixed');
  await receiver.count('/mixed', 1);
  const soon = { status: 204, afterMs: 600 };
  receiver.teach('/mixed', 'never', 'never', 'never', 'never', soon);
  for (let time = 0; time < 40; time++) await rename(`Mallory ${time}`);
  await until('some answers are late', () => under('/mixed') >= 9);
  await pause(2_500);
  // Eight at first, and four each time when those that are quick have been answered, within the second.
  expect(under('/mixed')).toBeLessThanOrEqual(17);
});
