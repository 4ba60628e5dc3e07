import { Writable } from 'node:stream';
import { createCoordinator } from '../../src/app/create-coordinator.js';
import { readConfig } from '../../src/config/config.js';
import { NoDelivery } from '../../src/delivery/no-delivery.js';
import { organizationStream } from '../../src/domain/organization/organization.js';
import { chainEvent, GENESIS_HASH } from '../../src/ledger/chain.js';
import { StoreRefused, StoreUnavailable, type EventStore } from '../../src/ledger/event-store.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { createLogger } from '../../src/http/logger.js';
import { install } from '../../src/app/installation.js';
import { projectInMemory } from '../../src/read-models/projecting.js';
import { ManualClock, SeededRandomness } from '../../src/testing/deterministic.js';
import { LocalKeyEncryption } from '../../src/vault/key-encryption.js';
import { until } from '../e2e/until.js';
import { BareCoordinator, organizationId } from './bare-coordinator.js';
import { preparePorts } from './prepare-ports.js';
import { SteeredStore } from '../ledger/steered-store.js';

const type = 'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8';
const parentStream = organizationStream(organizationId);
const wallet = {
  walletName: 'first',
  accounts: [
    {
      curve: 'CURVE_SECP256K1',
      pathFormat: 'PATH_FORMAT_BIP32',
      path: "m/44'/60'/0'/0/0",
      addressFormat: 'ADDRESS_FORMAT_ETHEREUM',
    },
  ],
};

interface Created {
  readonly subOrganizationId: string;
  readonly wallet: { readonly walletId: string; readonly addresses: readonly string[] };
}

const created = ({ result }: { readonly result: Readonly<Record<string, unknown>> }) =>
  result['createSubOrganizationResultV8'] as Created;

/** Ids of all sub-organizations as the read model has them, listed or not. */
const known = async (coordinator: BareCoordinator) => {
  await coordinator.projected();
  return coordinator.projecting.rows.all('SELECT organization_id, created IS NULL AS hidden FROM sub_organizations');
};

const intentOf = (coordinator: BareCoordinator) => ({
  subOrganizationName: 'Child',
  rootUsers: [{ userName: 'Ann', apiKeys: [keyOf(coordinator)], authenticators: [], oauthProviders: [] }],
  rootQuorumThreshold: 1,
  wallet,
});

describe.each([true, false])('on a store that is one process’s alone: %s', (exclusive) => {
  test('a coordinator that dies between the parent’s word and the founding: the next one finishes it', async () => {
    const inner = new SteeredStore(new InMemoryEventStore(), exclusive);
    const dying = new SteeredStore(inner, exclusive);
    const one = await BareCoordinator.start({ store: dying, prepare: await preparePorts(inner, 'one') });
    const request = one.stamp(one.root.key, type, intentOf(one));
    dying.overtake = (stream) =>
      stream.startsWith('organization-') && stream !== parentStream
        ? Promise.reject(new StoreUnavailable('it died'))
        : Promise.resolve();
    await expect(one.send(request)).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    const [{ organization_id: childId }] = (await known(one)) as [{ organization_id: string }];
    expect(await one.events(organizationStream(childId))).toEqual([]);
    await one.close();

    const two = await BareCoordinator.start({ store: inner, seed: 'two', prepare: await preparePorts(inner, 'two') });
    two.clock.advance('10m');
    await two.projected();
    // By whoever asks for it first, at the same moment too.
    const loaded = await Promise.all([two.loader.load(childId), two.loader.load(childId)]);
    expect(loaded.map(({ organization: { name } }) => name)).toEqual(['Child', 'Child']);
    const answer = created((await two.send(request)).activity);
    expect(answer.subOrganizationId).toBe(childId);
    const child = await two.events(organizationStream(childId));
    const accounts = child.flatMap(({ type: name, data }) =>
      name === 'WalletAccountsCreated' ? (data as { accounts: { address: string }[] }).accounts : [],
    );
    expect(accounts.map(({ address }) => address)).toEqual(answer.wallet.addresses);
    const parent = await two.events();
    const word = parent.filter(({ type: name }) => name === 'SubOrganizationCreated');
    expect(word).toHaveLength(1);
    expect(child[0]!.data).toMatchObject({ parentOrganizationId: organizationId, parentRevision: word[0]!.revision });
    await two.close();
  });
});

test('the same coordinator finishes a founding that its store has failed, before the read models know of it', async () => {
  const store = new SteeredStore();
  const coordinator = await BareCoordinator.start({ store, prepare: await preparePorts(store), readModels: false });
  const request = coordinator.stamp(coordinator.root.key, type, intentOf(coordinator));
  let failures = 0;
  store.overtake = (stream) =>
    stream.startsWith('organization-') && stream !== parentStream && ++failures === 1
      ? Promise.reject(new StoreUnavailable('for a moment'))
      : Promise.resolve();
  await expect(coordinator.send(request)).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  const word = (await coordinator.events()).find(({ type: name }) => name === 'SubOrganizationCreated')!;
  const { subOrganizationId } = word.data as Created;
  expect((await coordinator.loader.load(subOrganizationId)).organization.name).toBe('Child');
  await coordinator.close();
});

test('whoever asks for one whose beginning is too large for its store is told what to do, and it is finished after that', async () => {
  const store = new SteeredStore();
  const coordinator = await BareCoordinator.start({ store, prepare: await preparePorts(store) });
  const request = coordinator.stamp(coordinator.root.key, type, intentOf(coordinator));
  store.overtake = (stream) =>
    stream.startsWith('organization-') && stream !== parentStream
      ? Promise.reject(new StoreRefused('an append', { kind: 'too-large', limit: 1_000 }))
      : Promise.resolve();
  const told = {
    code: 'UNAVAILABLE',
    message: expect.stringMatching(/is recorded.* accepts 1000 bytes .*MaxAppendSize/) as unknown,
  };
  await expect(coordinator.send(request)).rejects.toMatchObject(told);
  const [{ organization_id: childId }] = (await known(coordinator)) as [{ organization_id: string }];
  await expect(coordinator.loader.load(childId)).rejects.toMatchObject(told);
  store.overtake = () => Promise.resolve();
  expect((await coordinator.loader.load(childId)).organization.name).toBe('Child');
  await coordinator.close();
});

test('what the parent refuses after all leaves nothing behind', async () => {
  const store = new SteeredStore();
  const coordinator = await BareCoordinator.start({ store, prepare: await preparePorts(store) });
  const { root } = coordinator;
  const bob = await coordinator.createUser('Bob');
  const policyId = await coordinator.createPolicy({
    condition: "activity.kind == 'CREATE_SUB_ORGANIZATION'",
    consensus: `approvers.any(user, user.id == '${bob.userId}')`,
  });
  let isTaken = false;
  // Between what is prepared and what is decided, the right to do it goes.
  store.overtake = async (stream) => {
    if (isTaken || stream === parentStream) return;
    isTaken = true;
    await coordinator.submit(root.key, 'ACTIVITY_TYPE_DELETE_POLICY', { policyId });
  };
  const refused = coordinator.submit(bob.key, type, intentOf(coordinator));
  await expect(refused).rejects.toMatchObject({ code: 'PERMISSION_DENIED' });
  expect(isTaken).toBe(true);
  expect(await known(coordinator)).toEqual([]);
  const streams = store.asked.map(({ stream }) => stream);
  expect(streams.filter((stream) => stream.startsWith('organization-') && stream !== parentStream)).toEqual([]);
  await coordinator.close();
});

test('one of an earlier release exists if its parent has recorded it, and the start names the others', async () => {
  const store = new SteeredStore();
  const coordinator = await BareCoordinator.start({ store });
  const childId = '00000000-0000-4000-8000-0000000000c1';
  await foundBefore(coordinator, childId);
  await expect(coordinator.loader.load(childId)).rejects.toMatchObject({ code: 'NOT_FOUND' });
  await coordinator.projected();
  const ignored: (readonly string[])[] = [];
  const children = coordinator.childrenReporting({ ignored: (ids) => ignored.push(ids) });
  await children.sweep(AbortSignal.timeout(5_000));
  expect(ignored).toEqual([[childId]]);

  // A word of its parent that names it, and nobody else's.
  await coordinator.record({ type: 'SubOrganizationCreated', data: { subOrganizationId: childId, name: 'Old' } });
  expect((await coordinator.loader.load(childId)).organization.name).toBe('Old');
  await coordinator.projected();
  await children.sweep(AbortSignal.timeout(5_000));
  expect(ignored).toHaveLength(1);
  await coordinator.close();
});

test('a start logs the sub-organizations of an earlier release that no parent has recorded, once, and goes on', async () => {
  const clock = new ManualClock(Date.UTC(2026, 0, 1));
  const randomness = new SeededRandomness('start');
  const keyEncryption = new LocalKeyEncryption([Buffer.alloc(32, 7)], randomness);
  const store = new InMemoryEventStore();
  const config = readConfig({});
  const { founding } = await install(config, { store, clock, randomness, keyEncryption }, undefined, () =>
    Promise.resolve(),
  );
  const childId = '00000000-0000-4000-8000-0000000000c2';
  await foundBefore({ store }, childId, founding.organizationId);
  let log = '';
  const sink = new Writable({
    write(chunk, _encoding, done) {
      log += String(chunk);
      done();
    },
  });
  const server = await createCoordinator(config, {
    store,
    clock,
    randomness,
    keyEncryption,
    delivery: new NoDelivery(),
    logger: createLogger('warn', sink),
    projecting: projectInMemory(),
  });
  try {
    await until('the start has looked at all sub-organizations', () => log.includes('no parent has recorded'));
    const said = log.split('\n').filter((line) => line.includes('no parent has recorded'));
    expect(said.map((line) => JSON.parse(line) as object)).toMatchObject([{ count: 1, organizationIds: [childId] }]);
  } finally {
    await server.close();
  }
});

/** The stream of a sub-organization as earlier releases wrote it before its parent had decided. */
async function foundBefore(
  { store }: { readonly store: EventStore },
  childId: string,
  parentOrganizationId = organizationId,
): Promise<void> {
  const stream = organizationStream(childId);
  const data = { organizationId: childId, name: 'Old', parentOrganizationId };
  const cause = { at: 0, schemaVersion: 1, $correlationId: childId, $causationId: childId };
  const fact = { id: childId, type: 'OrganizationCreated', data, metadata: cause };
  const hash = chainEvent(GENESIS_HASH, { stream, revision: 0, ...fact });
  await store.append(stream, [{ ...fact, metadata: { ...cause, hash } }], 'no-stream');
}

function keyOf(coordinator: BareCoordinator) {
  const { publicKey, curve } = coordinator.newKey();
  return { apiKeyName: 'key', publicKey, curveType: curve };
}
