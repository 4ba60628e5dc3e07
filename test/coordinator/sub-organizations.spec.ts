import { organizationStream } from '../../src/domain/organization/organization.js';
import { StoreRefused, StoreUnavailable } from '../../src/ledger/event-store.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
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

function keyOf(coordinator: BareCoordinator) {
  const { publicKey, curve } = coordinator.newKey();
  return { apiKeyName: 'key', publicKey, curveType: curve };
}
