import { organizationStream } from '../../src/domain/organization/organization.js';
import { StoreUnavailable } from '../../src/event-store/event-store.js';
import { InMemoryEventStore } from '../../src/event-store/in-memory.js';
import { BareCoordinator, organizationId } from './bare-coordinator.js';
import { preparePorts } from './prepare-ports.js';
import { SteeredStore } from './steered-store.js';

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

test('a coordinator that dies between the founding and the parent’s word: the next one finishes the same', async () => {
  const inner = new InMemoryEventStore();
  const dying = new SteeredStore(inner);
  const one = await BareCoordinator.start({ store: dying, prepare: await preparePorts(inner, 'one') });
  const { root } = one;
  const request = one.stamp(root.key, type, {
    subOrganizationName: 'Child',
    rootUsers: [{ userName: 'Ann', apiKeys: [keyOf(one)], authenticators: [], oauthProviders: [] }],
    rootQuorumThreshold: 1,
    wallet,
  });
  dying.overtake = (stream) =>
    stream === parentStream ? Promise.reject(new StoreUnavailable('it died')) : Promise.resolve();
  await expect(one.send(request)).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  expect(await known(one)).toEqual([expect.objectContaining({ hidden: 1 })]);
  await one.close();

  const two = await BareCoordinator.start({ store: inner, seed: 'two', prepare: await preparePorts(inner, 'two') });
  two.clock.advance('10m');
  const answer = created((await two.send(request)).activity);
  expect(await known(two)).toEqual([{ organization_id: answer.subOrganizationId, hidden: 0 }]);
  const child = await two.events(organizationStream(answer.subOrganizationId));
  const accounts = child.flatMap(({ type: name, data }) =>
    name === 'WalletAccountsCreated' ? (data as { accounts: { address: string }[] }).accounts : [],
  );
  expect(accounts.map(({ address }) => address)).toEqual(answer.wallet.addresses);
  expect(created((await two.send(request)).activity)).toEqual(answer);
  const parent = await two.events();
  expect(parent.filter(({ type: name }) => name === 'SubOrganizationCreated')).toHaveLength(1);
  await two.close();
});

test('what the parent refuses after all is never listed', async () => {
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
  const refused = coordinator.submit(bob.key, type, {
    subOrganizationName: 'Child',
    rootUsers: [{ userName: 'Ann', apiKeys: [keyOf(coordinator)], authenticators: [], oauthProviders: [] }],
    rootQuorumThreshold: 1,
  });
  await expect(refused).rejects.toMatchObject({ code: 'PERMISSION_DENIED' });
  expect(isTaken).toBe(true);
  expect(await known(coordinator)).toEqual([expect.objectContaining({ hidden: 1 })]);
  await coordinator.close();
});

function keyOf(coordinator: BareCoordinator) {
  const { publicKey, curve } = coordinator.newKey();
  return { apiKeyName: 'key', publicKey, curveType: curve };
}
