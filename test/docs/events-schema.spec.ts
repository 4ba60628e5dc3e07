import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { organizationEventTypes } from '../../src/domain/organization/organization.js';
import type { RecordedEvent } from '../../src/ledger/event-store.js';
import { startCoordinator, type TestCoordinator } from '../../src/testing/index.js';
import { goldenNames, goldenStream } from '../golden/streams.js';
import { deviations } from './event-validator.js';

// What back ends in other languages read events by: made from the types, and held against what was ever recorded.

const schemaFile = new URL('../../docs/reference/events.schema.json', import.meta.url);
const published = JSON.parse(readFileSync(schemaFile, 'utf8')) as { $defs: Readonly<Record<string, object>> };

const recorded = goldenNames.flatMap(goldenStream);

test('recorded events match their schema, and contain nothing else', () => {
  expect([...new Set(recorded.flatMap(deviations))]).toEqual([]);
  const seen = new Set(recorded.map(({ type }) => type));
  // The mark of a history in a test harness, and the act of an operator (test/e2e/clock-mend.spec.ts).
  expect(organizationEventTypes.filter((type) => !seen.has(type))).toEqual(['HistoryImported', 'ClockMended']);
});

test('streams other than those of organizations also match the schema', async () => {
  await using coordinator: TestCoordinator = await startCoordinator({ settings: { ALLOW_PRIVATE_NETWORK: 'true' } });
  const { client: other } = await coordinator.createUser('Other');
  await coordinator.listenForWebhooks();
  await expect(coordinator.createTag('tag')).resolves.toBeDefined();
  await expect(
    other.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'denied', userIds: [] }),
  ).rejects.toMatchObject({ status: 403 });
  await coordinator.createWallet('wallet');
  const key = coordinator.newKey();
  const { subOrganizationId } = await coordinator.client.perform('ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8', {
    subOrganizationName: 'sub',
    rootUsers: [
      {
        userName: 'sub',
        apiKeys: [{ apiKeyName: 'own', publicKey: key.publicKey, curveType: key.curve }],
        authenticators: [],
        oauthProviders: [],
      },
    ],
    rootQuorumThreshold: 1,
  });
  await coordinator.clientFor(key, subOrganizationId).submit('ACTIVITY_TYPE_CREATE_USER_TAG', {
    userTagName: 'proves the key',
    userIds: [],
  });
  await coordinator.settled();
  const events = await coordinator.recorded();
  expect([...new Set(events.flatMap(deviations))]).toEqual([]);
  const types = new Set(events.map(({ type }) => type));
  for (const type of ['ActivityDenied', 'CoordinatorInstalled', 'CoordinatorBooted', 'SecretSealed', 'ClaimProved']) {
    expect(types).toContain(type);
  }
  expect(types).toContain('WebhookDelivered');
});

test('a member that no type has, one that is missing, and one of another type are found', () => {
  const [event] = recorded.filter(({ type }) => type === 'PolicyCreated');
  const data = event!.data as Readonly<Record<string, unknown>>;
  const { policyName: _name, ...nameless } = data;
  for (const wrong of [{ ...data, secret: 'x' }, nameless, { ...data, effect: 'EFFECT_MAYBE' }]) {
    expect(deviations({ ...event!, data: wrong })).toHaveLength(1);
  }
});

test('the published schema is a valid one, in which a reader may meet members of later releases', () => {
  const ajv = new Ajv2020({ strict: true, strictTypes: false });
  const validate = ajv.compile(published);
  const [{ type, data }] = recorded.filter((one) => one.type === 'PolicyCreated') as [RecordedEvent];
  expect(validate({ type, data: { ...(data as object), later: true }, revision: '1' })).toBe(true);
  expect(validate({ type, data: {} })).toBe(false);
});
