import { jest } from '@jest/globals';
import { CoordinatorError } from '../../src/domain/errors.js';
import { organizationStream } from '../../src/domain/organization/organization.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { SteeredStore } from '../ledger/steered-store.js';
import { BareCoordinator, organizationId, type Member } from './bare-coordinator.js';
import { preparePorts } from './prepare-ports.js';

const stream = organizationStream(organizationId);
const rename = 'ACTIVITY_TYPE_UPDATE_USER_NAME';
const createWallet = 'ACTIVITY_TYPE_CREATE_WALLET';
const signPayload = 'ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2';

/** Counted, never timed: what a request asks of a store that others may write to as well. */
describe('on a store that several coordinators share', () => {
  const inner = new InMemoryEventStore();
  const store = new SteeredStore(inner, false);
  let here: BareCoordinator;
  let elsewhere: BareCoordinator;
  let ann: Member;
  let reads: jest.SpiedFunction<SteeredStore['read']>;

  beforeAll(async () => {
    // Of coordinators that follow nothing, what they hold is as old as can be.
    here = await BareCoordinator.start({ store, readModels: false });
    elsewhere = await BareCoordinator.start({ store: new SteeredStore(inner, false), seed: 'else', readModels: false });
    ann = await here.createUser('Ann');
    await here.createPolicy({ condition: "activity.resource == 'POLICY'", consensus: 'approvers.count() >= 2' });
    reads = jest.spyOn(store, 'read');
  });
  beforeEach(() => {
    reads.mockClear();
    store.asked.length = 0;
  });
  afterAll(async () => {
    await here.close();
    await elsewhere.close();
  });

  const asked = () => ({
    reads: reads.mock.calls.map(([name]) => name),
    appends: store.asked.map((one) => one.stream),
  });
  const renameAs = (member: Member, userName: string) =>
    here.submit(member.key, rename, { userId: member.userId, userName });
  const refusal = async (answer: Promise<unknown>): Promise<CoordinatorError> => {
    const error = await answer.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    if (!(error instanceof CoordinatorError)) throw new Error(`it was answered: ${String(error)}`);
    return error;
  };

  it('a submit that is allowed reads nothing and appends once', async () => {
    for (const userName of ['One', 'Two']) {
      store.asked.length = 0;
      await renameAs(here.root, userName);
      expect(asked()).toEqual({ reads: [], appends: [stream] });
    }
  });

  it('so does a vote', async () => {
    const bob = await here.createUser('Bob');
    const policy = {
      effect: 'EFFECT_ALLOW',
      policyName: 'wallets',
      condition: "activity.resource == 'WALLET'",
      consensus: 'true',
      notes: '',
    };
    const { fingerprint } = await here.submit(ann.key, 'ACTIVITY_TYPE_CREATE_POLICY_V3', policy);
    reads.mockClear();
    store.asked.length = 0;
    const { status } = await here.submit(bob.key, 'ACTIVITY_TYPE_APPROVE_ACTIVITY', { fingerprint });
    expect([status, asked()]).toEqual(['ACTIVITY_STATUS_COMPLETED', { reads: [], appends: [stream] }]);
  });

  it('so does a signature', async () => {
    const accounts = [
      {
        curve: 'CURVE_SECP256K1',
        pathFormat: 'PATH_FORMAT_BIP32',
        path: "m/44'/60'/0'/0/0",
        addressFormat: 'ADDRESS_FORMAT_ETHEREUM',
      },
    ];
    const { result } = await here.submit(here.root.key, createWallet, { walletName: 'w', accounts });
    const [signWith] = (result['createWalletResult'] as { addresses: [string] }).addresses;
    const parameters = {
      signWith,
      payload: 'ab'.repeat(32),
      encoding: 'PAYLOAD_ENCODING_HEXADECIMAL',
      hashFunction: 'HASH_FUNCTION_NO_OP',
    };
    reads.mockClear();
    store.asked.length = 0;
    const { status } = await here.submit(here.root.key, signPayload, parameters);
    expect([status, asked()]).toEqual(['ACTIVITY_STATUS_COMPLETED', { reads: [], appends: [stream] }]);
  });

  it('what is refused first looks whether the head is current', async () => {
    const stranger = { userId: ann.userId, key: here.newKey() };
    expect((await refusal(renameAs(stranger, 'Mallory'))).code).toBe('UNAUTHENTICATED');
    expect(asked()).toEqual({ reads: [stream], appends: [] });
    expect((await refusal(renameAs({ ...ann, userId: here.root.userId }, 'Mallory'))).code).toBe('PERMISSION_DENIED');
  });

  it('what was known before is answered after one look', async () => {
    const stamped = here.stamp(here.root.key, rename, { userId: here.root.userId, userName: 'Once' });
    const first = await here.send(stamped);
    const again = here.stamp(ann.key, 'ACTIVITY_TYPE_CREATE_POLICY_V3', {
      effect: 'EFFECT_ALLOW',
      policyName: 'waits',
      condition: 'true',
      consensus: 'true',
      notes: '',
    });
    const waiting = await here.send(again);
    reads.mockClear();
    store.asked.length = 0;
    expect((await here.send(again)).activity.id).toBe(waiting.activity.id);
    expect(asked()).toEqual({ reads: [stream], appends: [] });
    expect(first.activity.status).toBe('ACTIVITY_STATUS_COMPLETED');
  });

  describe('a key that another coordinator has revoked', () => {
    let eve: Member;
    let prepared: string[];
    let watched: BareCoordinator;

    beforeEach(async () => {
      prepared = [];
      const real = await preparePorts();
      watched = await BareCoordinator.start({
        store: new SteeredStore(inner, false),
        seed: 'watched',
        readModels: false,
        prepare: {
          ...real,
          keyring: {
            ...real.keyring,
            createWallet: (input) => {
              prepared.push('wallet');
              return real.keyring.createWallet(input);
            },
          },
        },
      });
    });
    afterEach(() => watched.close());

    /** Eve's key is good in what `watched` holds, and was revoked elsewhere since. */
    async function revoked(act: () => Promise<unknown> = () => Promise.resolve()): Promise<void> {
      eve = await elsewhere.createUser('Eve');
      await watched.loader.load(organizationId);
      await act();
      await elsewhere.submit(elsewhere.root.key, 'ACTIVITY_TYPE_DELETE_USERS', { userIds: [eve.userId] });
    }

    it('submits nothing', async () => {
      await revoked();
      const { code } = await refusal(watched.submit(eve.key, rename, { userId: eve.userId, userName: 'Eve' }));
      expect(code).toBe('UNAUTHENTICATED');
    });

    it('votes on nothing', async () => {
      let fingerprint = '';
      await revoked(async () => {
        const policy = { effect: 'EFFECT_ALLOW', policyName: 'later', condition: 'true', consensus: 'true', notes: '' };
        ({ fingerprint } = await elsewhere.submit(ann.key, 'ACTIVITY_TYPE_CREATE_POLICY_V3', policy));
        await watched.loader.load(organizationId);
      });
      const vote = watched.submit(eve.key, 'ACTIVITY_TYPE_APPROVE_ACTIVITY', { fingerprint });
      expect((await refusal(vote)).code).toBe('UNAUTHENTICATED');
    });

    it('is not answered with what it had submitted before', async () => {
      let stamped: ReturnType<BareCoordinator['stamp']> | undefined;
      await revoked(async () => {
        stamped = watched.stamp(eve.key, 'ACTIVITY_TYPE_CREATE_POLICY_V3', {
          effect: 'EFFECT_ALLOW',
          policyName: 'eve',
          condition: 'true',
          consensus: 'true',
          notes: '',
        });
        await watched.send(stamped);
      });
      expect((await refusal(watched.send(stamped!))).code).toBe('UNAUTHENTICATED');
    });

    it('has nothing prepared that leaves a trace', async () => {
      await revoked();
      prepared.length = 0;
      const asking = watched.submit(eve.key, createWallet, { walletName: 'eve', accounts: [] });
      expect([(await refusal(asking)).code, prepared]).toEqual(['UNAUTHENTICATED', []]);
    });
  });

  it('whoever has lost an append reads before the next, and loses no more', async () => {
    const before = here.counts.conflicts;
    for (const userName of ['One', 'Two', 'Three']) {
      await elsewhere.submit(elsewhere.root.key, rename, { userId: here.root.userId, userName: `Not ${userName}` });
      await renameAs(here.root, userName);
      expect(here.counts.conflicts - before).toBe(1);
    }
  });
});
