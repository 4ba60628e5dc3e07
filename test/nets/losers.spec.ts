import { copyFile, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { activities } from '../../src/activities/index.js';
import { createCoordinator } from '../../src/app/create-coordinator.js';
import { StampingClient } from '../../src/client/stamping-client.js';
import { readConfig } from '../../src/config/config.js';
import { derivedId } from '../../src/ledger/ids.js';
import { NoDelivery } from '../delivery/no-delivery.js';
import type { ActivityEnvelope } from '../../src/wire/envelope.js';
import { organizationStream, type OrganizationEvent } from '../../src/domain/organization/organization.js';
import { chainEvent, GENESIS_HASH, type EventMetadata } from '../../src/ledger/chain.js';
import type { EventStore, RecordedEvent } from '../../src/ledger/event-store.js';
import { openEventStore } from '../../src/ledger/stores/open-event-store.js';
import { createLogger } from '../../src/logging/logger.js';
import { install } from '../../src/app/installation.js';
import { projectInMemory, projectIntoFile } from '../../src/read-models/projecting.js';
import {
  ApiError,
  apiKeyPairFromPrivate,
  generateApiKeyPair,
  ManualClock,
  SeededRandomness,
  startCoordinator,
  type TestCoordinator,
} from '../../src/testing/index.js';
import { LocalKeyEncryption } from '../../src/vault/key-encryption.js';
import { furnish, sampleSettings, submitSamples, type Furnished } from '../e2e/samples.js';
import { until } from '../e2e/until.js';
import { isLong } from '../long.js';

/**
 * Lets every verb that touches the world before it is decided lose: against itself, to a vote, to a process that dies
 * between two writes. Of what did not happen nothing may be left: no vault, no organization, no row, no login (R7).
 */

/** `LONG=1` also dies with each write done and not answered, at every write. */

/** Verbs that prepare. */
const verbs = activities.flatMap((one) => ('prepare' in one ? [one.type] : []));

interface World {
  coordinator: TestCoordinator;
  readonly furnished: Furnished;
  readonly samples: Readonly<Record<string, object>>;
  /** Vaults of the installation, which no organization names. */
  readonly ownVaults: ReadonlySet<string>;
}

const tried = { races: 0, votes: 0, deaths: 0, recorded: 0 };
const open: World[] = [];

afterAll(async () => {
  for (const { coordinator } of open) await coordinator.close();
  console.log(`losers: ${verbs.length} verbs, ${JSON.stringify(tried)}`);
});

async function newWorld(seed: string): Promise<World> {
  const coordinator = await startCoordinator({ seed, settings: sampleSettings });
  const ownVaults = new Set(await vaultsOf(coordinator));
  const furnished = await furnish(coordinator);
  const world = { coordinator, furnished, samples: submitSamples(furnished), ownVaults };
  open.push(world);
  return world;
}

const vaultsOf = async ({ recorded }: TestCoordinator) =>
  (await recorded()).flatMap(({ stream }) => (stream.startsWith('vault-') ? [stream] : []));

/** Who submits a sample. */
function submitterOf({ coordinator, furnished }: World, type: string): StampingClient {
  const by = type === 'ACTIVITY_TYPE_ACCEPT_INVITATION' ? furnished.invited.client : coordinator.client;
  // A restart has moved the server.
  return coordinator.clientFor(by.key, by.organizationId);
}

/** The status of an answer, or of a refusal. */
async function statusOf(attempt: Promise<unknown>): Promise<number> {
  try {
    await attempt;
    return 200;
  } catch (error) {
    if (error instanceof ApiError) return error.status;
    throw error;
  }
}

/** What is in the store and should not be, or should be and is not. */
async function leftovers({ coordinator, ownVaults }: World): Promise<string[]> {
  return leftoversIn(await coordinator.recorded(), coordinator.organizationId, ownVaults);
}

function leftoversIn(
  all: readonly Pick<RecordedEvent, 'stream' | 'type' | 'data'>[],
  organizationId: string,
  ownVaults: ReadonlySet<string>,
): string[] {
  const streams = new Set(all.map(({ stream }) => stream));
  const texts = new Map<string, string>();
  const said = new Map<string, string>();
  for (const { stream, type, data } of all) {
    if (!stream.startsWith('organization-')) continue;
    texts.set(stream, `${texts.get(stream) ?? ''}${JSON.stringify(data)}`);
    if (type !== 'SubOrganizationCreated') continue;
    said.set(`organization-${(data as { subOrganizationId: string }).subOrganizationId}`, stream);
  }
  const history = [...texts.values()].join('');
  const own = `organization-${organizationId}`;
  const wrong: string[] = [];
  for (const stream of streams) {
    const isVault = stream.startsWith('vault-') && !ownVaults.has(stream);
    if (isVault && !history.includes(stream.slice('vault-'.length))) wrong.push(`${stream} is named by nothing`);
    if (texts.has(stream) && stream !== own && !said.has(stream)) wrong.push(`${stream} was recorded by no parent`);
  }
  for (const stream of said.keys()) if (!streams.has(stream)) wrong.push(`${stream} was recorded, and is not there`);
  return wrong;
}

test('a vault and an organization that nobody names are found, and an organization that is missing', () => {
  const named = [
    { stream: 'organization-own', type: 'WalletCreated', data: { walletId: 'named' } },
    { stream: 'organization-own', type: 'SubOrganizationCreated', data: { subOrganizationId: 'child' } },
    { stream: 'organization-child', type: 'OrganizationCreated', data: {} },
    { stream: 'vault-named', type: 'SecretSealed', data: {} },
    { stream: 'vault-of-the-installation', type: 'SecretSealed', data: {} },
  ];
  const found = (more: typeof named) => leftoversIn([...named, ...more], 'own', new Set(['vault-of-the-installation']));
  expect(found([])).toEqual([]);
  expect(found([{ stream: 'vault-left', type: 'SecretSealed', data: {} }])).toEqual(['vault-left is named by nothing']);
  expect(found([{ stream: 'organization-left', type: 'OrganizationCreated', data: {} }])).toEqual([
    'organization-left was recorded by no parent',
  ]);
  const data = { subOrganizationId: 'lost' };
  expect(found([{ stream: 'organization-own', type: 'SubOrganizationCreated', data }])).toEqual([
    'organization-lost was recorded, and is not there',
  ]);
});

const questions = [
  'get_organization',
  'list_wallets',
  'list_wallet_accounts',
  'list_private_keys',
  'list_suborgs',
  'list_verified_suborgs',
  'list_users',
  'list_invitations',
  'list_oauth2_credentials',
  'list_fiat_on_ramp_credentials',
  'list_webhook_endpoints',
  'list_activities',
];

const answersOf = async ({ coordinator: { client } }: World) =>
  Promise.all(questions.map((question) => client.query(question)));

describe('against itself', () => {
  test('each verb three times at once, with the same parameters', async () => {
    const world = await newWorld('races');
    for (const type of verbs) {
      const client = submitterOf(world, type);
      const answers = await Promise.all([1, 2, 3].map(() => statusOf(client.submit(type, world.samples[type]!))));
      tried.races += 3;
      // Some verbs may be done any number of times; each can be done once.
      expect([type, answers.includes(200), answers.some((status) => status >= 500)]).toEqual([type, true, false]);
    }
    expect(await leftovers(world)).toEqual([]);
  });

  test('the same bytes three times at once', async () => {
    const world = await newWorld('repeats');
    for (const type of verbs) {
      const client = submitterOf(world, type);
      const body = client.submitBody(type, world.samples[type]!);
      const path = `/public/v1/submit/${/^ACTIVITY_TYPE_(.+?)(?:_V\d+)?$/.exec(type)![1]!.toLowerCase()}`;
      const answers = await Promise.all([1, 2, 3].map(() => statusOf(client.post(path, body))));
      tried.races += 3;
      expect([type, answers.some((status) => status >= 500)]).toEqual([type, false]);
    }
    expect(await leftovers(world)).toEqual([]);
  });
});

describe('to a vote', () => {
  test('the last approval while another rejects, and the last approval twice', async () => {
    const world = await newWorld('votes');
    const { coordinator, furnished, samples } = world;
    const voters = await Promise.all(['V1', 'V2', 'V3'].map((name) => coordinator.createUser(name)));
    const [asker, one, other] = voters as [(typeof voters)[0], (typeof voters)[0], (typeof voters)[0]];
    await coordinator.createPolicy({ policyName: 'two do anything', consensus: 'approvers.count() >= 2' });
    const keys: { key: ReturnType<TestCoordinator['newKey']>; activityId: string }[] = [];
    for (const type of verbs) {
      for (const how of ['rejected', 'twice'] as const) {
        let parameters = samples[type]!;
        const key = coordinator.newKey();
        const isChild = type === 'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8';
        if (isChild) {
          const apiKeys = [{ apiKeyName: 'own', publicKey: key.publicKey, curveType: key.curve }];
          const user = { userName: 'Root', apiKeys, authenticators: [], oauthProviders: [] };
          parameters = { ...parameters, rootUsers: [user] };
        }
        let asked: ActivityEnvelope;
        try {
          asked = await asker.client.submit(type, parameters);
        } catch (error) {
          // What nobody else may ask for, or can be done no second time.
          if (error instanceof ApiError) continue;
          throw error;
        }
        if (isChild) keys.push({ key, activityId: asked.id });
        if (asked.status !== 'ACTIVITY_STATUS_CONSENSUS_NEEDED') continue;
        const { fingerprint } = asked;
        const second = how === 'rejected' ? other.client.reject(fingerprint) : other.client.approve(fingerprint);
        await Promise.all([statusOf(one.client.approve(fingerprint)), statusOf(second)]);
        tried.votes += 2;
      }
    }
    expect(tried.votes).toBeGreaterThan(60);
    expect(await leftovers(world)).toEqual([]);
    // Whoever would be the root user of what was refused is nobody anywhere.
    for (const { key, activityId } of keys) {
      const { activity } = await coordinator.client.query<{ activity: ActivityEnvelope }>('get_activity', {
        activityId,
      });
      const isDone = activity.status === 'ACTIVITY_STATUS_COMPLETED';
      const status = await statusOf(coordinator.clientFor(key).query('whoami'));
      expect([activity.status, status]).toEqual([activity.status, isDone ? 200 : 401]);
    }
    expect(furnished.waiting.status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
  });
});

describe('to a process that dies', () => {
  /** Dies at the n-th write of each verb, until the verb has no more; then nothing may be left, an hour later. */
  async function dieAtEach(seed: string, isWritten: boolean): Promise<void> {
    const world = await newWorld(seed);
    for (const type of verbs) {
      let status = 503;
      for (let write = 0; status === 503; write++) {
        if (write > 12) throw new Error(`${type} writes without end`);
        const before = await answersOf(world);
        const parameters = world.samples[type]!;
        const client = submitterOf(world, type);
        world.coordinator.breakAfter(write, isWritten);
        status = await statusOf(client.submit(type, parameters));
        if (status !== 503) {
          // The break is behind everything that this verb writes, and would meet the next one.
          world.coordinator.breakAfter(Infinity);
          tried.recorded += status === 200 ? 1 : 0;
          break;
        }
        tried.deaths += 1;
        world.coordinator = await world.coordinator.restart();
        const after = await answersOf(world);
        const [was, is] = [before, after].map((answers) => (answers.at(-1) as { activities: object[] }).activities);
        // Unless it happened, nobody sees that it was tried.
        if (is![0] && was![0] && JSON.stringify(is![0]) === JSON.stringify(was![0])) expect(after).toEqual(before);
      }
    }
    // What a dying process has left behind is nobody's secret for more than an hour.
    world.coordinator.clock.advance('61m');
    world.coordinator = await world.coordinator.restart();
    await until('nothing is left', async () => (await leftovers(world)).length === 0).catch(async () => {
      expect(await leftovers(world)).toEqual([]);
    });
  }

  test('before a write', () => dieAtEach('before', false));

  if (isLong) test('after a write, before it is answered', () => dieAtEach('after', true));
});

describe('to the time', () => {
  test('what was made half an hour before is recorded by nobody', async () => {
    const world = await newWorld('time');
    let named = 0;
    for (const type of verbs) {
      const client = submitterOf(world, type);
      const { coordinator } = world;
      // The process stands still when it is about to seal what it has made.
      coordinator.beforeWrite(0, () => coordinator.clock.advance('31m'));
      expect([type, (await statusOf(client.submit(type, world.samples[type]!))) >= 500]).toEqual([type, false]);
      coordinator.beforeWrite(Infinity, () => undefined);
    }
    const recorded = await world.coordinator.recorded();
    const made = new Map(
      recorded.flatMap(({ stream, data }) => {
        const { attempt } = data as { attempt?: { at: number } };
        return stream.startsWith('vault-') && attempt ? [[stream.slice('vault-'.length), attempt.at] as const] : [];
      }),
    );
    for (const { stream, type, data, metadata } of recorded) {
      if (!stream.startsWith('organization-')) continue;
      const text = JSON.stringify(data);
      for (const [vaultId, at] of made) {
        if (!text.includes(vaultId)) continue;
        named += 1;
        expect([type, (metadata as EventMetadata).at - at < 30 * 60_000]).toEqual([type, true]);
      }
    }
    expect(named).toBeGreaterThan(8);
    expect(await leftovers(world)).toEqual([]);
  });
});

/** A server on a store and a folder of rows as an operator may have them, with what a test needs to ask it. */
async function serve(store: EventStore, rows: 'memory' | { readonly file: string }, at = Date.UTC(2026, 0, 1)) {
  const clock = new ManualClock(at);
  const randomness = new SeededRandomness('served');
  const keyEncryption = new LocalKeyEncryption([Buffer.alloc(32, 7)], randomness);
  const config = readConfig({ PORT: '0' });
  let root: { apiPrivateKey?: string } | undefined = { apiPrivateKey: rootKey.privateKey };
  const { founding } = await install(config, { store, clock, randomness, keyEncryption }, root, (remembered) => {
    root = remembered;
    return Promise.resolve();
  });
  const { organizationId } = founding;
  const head = (await store.head()) ?? -1n;
  const server = await createCoordinator(config, {
    store,
    clock,
    randomness,
    keyEncryption,
    delivery: new NoDelivery(),
    logger: createLogger('silent'),
    projecting:
      rows === 'memory'
        ? projectInMemory()
        : await projectIntoFile(rows.file, { identity: organizationId, head }, store),
  });
  await server.app.listen(0, '127.0.0.1');
  const url = await server.app.getUrl();
  const clientFor = (key = rootKey, organization = organizationId) => new StampingClient(url, organization, key, clock);
  return { organizationId, clock, client: clientFor(), clientFor, close: () => server.close() };
}

const keys = new SeededRandomness('keys of losers');
const newKey = () => generateApiKeyPair((count) => keys.bytes(count));
const rootKey = apiKeyPairFromPrivate(newKey().privateKey);

/** Appends events to a stream as a release would that has no decision for them. */
async function plant(store: EventStore, stream: string, facts: readonly OrganizationEvent[], at: number) {
  let [revision, hash] = [-1, GENESIS_HASH];
  for await (const event of store.read(stream, 0)) {
    ({ revision } = event);
    ({ hash } = event.metadata as EventMetadata);
  }
  const events = facts.map(({ type, data }, index) => {
    const id = derivedId(hash, String(index));
    const metadata = { at, schemaVersion: 1, $correlationId: id, $causationId: id };
    hash = chainEvent(hash, { stream, revision: revision + 1 + index, id, type, data, metadata });
    return { id, type, data, metadata: { ...metadata, hash } };
  });
  await store.append(stream, events, revision < 0 ? 'no-stream' : revision);
}

test('a sub-organization is there as soon as its parent has recorded it, and nobody’s if not', async () => {
  const store = await openEventStore('memory:', '');
  const first = await serve(store, 'memory');
  const { organizationId } = first;
  const at = first.clock.now();
  const children = Array.from({ length: 8 }, (_none, number) => {
    const [childId, userId] = [derivedId('child', String(number)), derivedId('user', String(number))];
    return { childId, userId, key: newKey(), isRecorded: number % 2 === 0 };
  });
  // A crash has kept the streams of the recorded ones from being written.
  for (const { childId, userId, key, isRecorded } of children) {
    const { publicKey } = key;
    const apiKey = { apiKeyId: derivedId('key', userId), apiKeyName: 'key', publicKey } as const;
    const founding: OrganizationEvent[] = [
      {
        type: 'OrganizationCreated',
        data: { organizationId: childId, name: 'Child', parentOrganizationId: organizationId },
      },
      { type: 'UserCreated', data: { userId, userName: 'Ann', userTags: [] } },
      {
        type: 'ApiKeyCreated',
        data: { userId, ...apiKey, curve: 'API_KEY_CURVE_P256', credentialType: 'CREDENTIAL_TYPE_API_KEY_P256' },
      },
      { type: 'RootQuorumUpdated', data: { threshold: 1, userIds: [userId] } },
    ];
    if (!isRecorded) continue;
    const said: OrganizationEvent = {
      type: 'SubOrganizationCreated',
      data: { subOrganizationId: childId, name: 'Child', initialEvents: founding },
    };
    await plant(store, organizationStream(organizationId), [said], at);
  }
  const server = await serve(store, 'memory', at + 1);
  try {
    const { client } = server;
    const { organizationIds } = await client.query<{ organizationIds: readonly string[] }>('list_suborgs');
    expect([...organizationIds].sort()).toEqual(
      children
        .filter(({ isRecorded }) => isRecorded)
        .map(({ childId }) => childId)
        .sort(),
    );
    for (const { childId, key, isRecorded } of children) {
      const own = server.clientFor(key, childId);
      server.clock.advance(1);
      const answers = [
        await statusOf(own.query('whoami')),
        await statusOf(own.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'x', userIds: [] })),
        await statusOf(client.query('list_users', { organizationId: childId })),
      ];
      expect([isRecorded, answers]).toEqual([isRecorded, isRecorded ? [200, 200, 200] : [404, 404, 404]]);
    }
  } finally {
    await first.close();
    await server.close();
  }
});

test('rows that were made from another branch of a backup say nothing of it', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'countersign-'));
  const rows = { file: join(folder, 'read-models.db') };
  const asked = ['list_users', 'list_user_tags', 'list_policies', 'list_activities', 'get_organization'];
  /** Makes users and tags on a branch, and says what it is asked about them. */
  const goOn = async (name: string, into: 'memory' | typeof rows, count: number) => {
    const store = await openEventStore(`sqlite:`, join(folder, name));
    const server = await serve(store, into);
    for (let number = 0; number < count; number++) {
      server.clock.advance(1);
      const tag = { userTagName: `${name} ${number}`, userIds: [] };
      await server.client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', tag);
    }
    const answers: unknown[] = [];
    for (const question of asked) answers.push(await server.client.query(question));
    await server.close();
    return answers;
  };
  try {
    for (const name of ['common', 'left', 'shorter', 'equal', 'longer']) await mkdir(join(folder, name));
    await goOn('common', 'memory', 2);
    const branch = async (name: string) =>
      copyFile(join(folder, 'common', 'events.db'), join(folder, name, 'events.db'));
    for (const [name, count] of Object.entries({ shorter: 1, equal: 3, longer: 5 })) {
      await rm(join(folder, 'left'), { recursive: true });
      await mkdir(join(folder, 'left'));
      for (const suffix of ['', '-wal', '-shm']) await rm(rows.file + suffix, { force: true });
      await branch('left');
      await branch(name);
      await goOn('left', rows, 3);
      await goOn(name, 'memory', count);
      // Started once more, on what it has; and by somebody who has no rows at all.
      const [kept, anew] = [await goOn(name, rows, 0), await goOn(name, 'memory', 0)];
      expect([name, JSON.stringify(kept).includes('left')]).toEqual([name, false]);
      expect([name, kept]).toEqual([name, anew]);
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
