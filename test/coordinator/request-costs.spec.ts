import { jest } from '@jest/globals';
import { CoordinatorError } from '../../src/domain/errors.js';
import { Meter } from '../../src/domain/steps.js';
import { organizationStream } from '../../src/domain/organization/organization.js';
import type { RecordedEvent } from '../../src/ledger/event-store.js';
import { SteeredStore } from '../ledger/steered-store.js';
import { CountedRows } from '../read-models/grown.js';
import { BareCoordinator, organizationId, type Member, type Stamped } from './bare-coordinator.js';

const rename = 'ACTIVITY_TYPE_UPDATE_USER_NAME';
const createTag = 'ACTIVITY_TYPE_CREATE_USER_TAG';
const createPolicy = 'ACTIVITY_TYPE_CREATE_POLICY_V3';
const signPayload = 'ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2';

/** What one request has caused, counted. */
interface Cost {
  /** Of deciding, on the main thread. */
  readonly steps: number;
  /** Of streams. */
  readonly reads: number;
  readonly appends: number;
  readonly events: number;
  /** Statements that the main thread asks of the rows. */
  readonly lookUps: number;
  /** Statements that write the rows of its events, in a batch of their own. */
  readonly written: number;
  /** What SQLite's virtual machine does for those. */
  readonly instructions: number;
}

/** What others do in the organization before it is counted again: so many times what the first requests did. */
const times = 60;

const store = new SteeredStore();
const rows = new CountedRows();
let here: BareCoordinator;
let ann: Member;
let bob: Member;
let walletAddress: string;
let projected = 0n;

/** Everything that was recorded and is not in the rows yet. */
async function recordedSince(): Promise<readonly RecordedEvent[]> {
  const events: RecordedEvent[] = [];
  for (const stream of [organizationStream(organizationId), `denials-${organizationId}`]) {
    for (const event of await here.events(stream)) if (event.position > projected) events.push(event);
  }
  events.sort((one, other) => Number(one.position - other.position));
  projected = events.at(-1)?.position ?? projected;
  return events;
}

function unlessDenied(error: unknown): void {
  if (!(error instanceof CoordinatorError) || error.code !== 'PERMISSION_DENIED') throw error;
}

async function catchUp(): Promise<void> {
  rows.project(await recordedSince());
}

async function costOf(stamped: Stamped): Promise<Cost> {
  await catchUp();
  store.asked.length = 0;
  const reads = jest.spyOn(store, 'read');
  const lookUps = (['get', 'all', 'run'] as const).map((name) => jest.spyOn(here.projecting.rows, name));
  const meter = new Meter();
  await here.execute(stamped, meter).catch(unlessDenied);
  const asked = {
    reads: reads.mock.calls.length,
    appends: store.asked.length,
    events: store.asked.reduce((sum, { events }) => sum + events.length, 0),
    lookUps: lookUps.reduce((sum, { mock }) => sum + mock.calls.length, 0),
  };
  jest.restoreAllMocks();
  const events = await recordedSince();
  const { steps: instructions, runs: written } = await rows.counted(() => rows.project(events));
  return { steps: meter.spent, ...asked, written, instructions };
}

/** On an organization that is in memory, and a store that nobody else writes to. */
const allowed = { reads: 0, appends: 1, lookUps: 1 };

let tags = 0;
const requests: Readonly<Record<string, () => Stamped | Promise<Stamped>>> = {
  'a submit that the root quorum allows': () =>
    here.stamp(here.root.key, rename, { userId: here.root.userId, userName: 'Another' }),
  'a submit that a policy allows': () => here.stamp(ann.key, rename, { userId: bob.userId, userName: 'Robert' }),
  'a submit that waits': () => here.stamp(ann.key, createTag, { userTagName: `tag ${++tags}`, userIds: [] }),
  'a vote that was the last to be waited for': async () => {
    const { fingerprint } = await here.submit(ann.key, createTag, { userTagName: `tag ${++tags}`, userIds: [] });
    return here.stamp(bob.key, 'ACTIVITY_TYPE_APPROVE_ACTIVITY', { fingerprint });
  },
  'a signature': () =>
    here.stamp(here.root.key, signPayload, {
      signWith: walletAddress,
      payload: 'ab'.repeat(32),
      encoding: 'PAYLOAD_ENCODING_HEXADECIMAL',
      hashFunction: 'HASH_FUNCTION_NO_OP',
    }),
  'a submit that is denied': () =>
    here.stamp(ann.key, createPolicy, {
      policyName: 'of Ann',
      effect: 'EFFECT_ALLOW',
      condition: 'true',
      consensus: 'true',
      notes: '',
    }),
  'the same bytes again': async () => {
    const stamped = here.stamp(here.root.key, rename, { userId: here.root.userId, userName: 'Once' });
    await here.execute(stamped);
    return stamped;
  },
};

async function costs(): Promise<Readonly<Record<string, Cost>>> {
  const counted: Record<string, Cost> = {};
  for (const [name, request] of Object.entries(requests)) counted[name] = await costOf(await request());
  return counted;
}

beforeAll(async () => {
  // Projections would ask the same database.
  here = await BareCoordinator.start({ store, readModels: false });
  ann = await here.createUser('Ann');
  bob = await here.createUser('Bob');
  await here.createPolicy({ condition: "activity.kind == 'UPDATE_USER_NAME'", consensus: 'true' });
  await here.createPolicy({ condition: "activity.kind == 'CREATE_USER_TAG'", consensus: 'approvers.count() >= 2' });
  const accounts = [
    {
      curve: 'CURVE_SECP256K1',
      pathFormat: 'PATH_FORMAT_BIP32',
      path: "m/44'/60'/0'/0/0",
      addressFormat: 'ADDRESS_FORMAT_ETHEREUM',
    },
  ];
  const { result } = await here.submit(here.root.key, 'ACTIVITY_TYPE_CREATE_WALLET', { walletName: 'w', accounts });
  [walletAddress] = (result['createWalletResult'] as { addresses: [string] }).addresses;
});

afterAll(async () => {
  await here.close();
  rows.rows.close();
});

/** Who makes a request dearer changes its line, and says why. */
const expected: Readonly<Record<string, Cost>> = {
  'a submit that the root quorum allows': { ...allowed, steps: 0, events: 3, written: 18, instructions: 637 },
  'a submit that a policy allows': { ...allowed, steps: 66.1875, events: 3, written: 18, instructions: 637 },
  'a submit that waits': { ...allowed, steps: 200.68359375, events: 1, written: 15, instructions: 577 },
  'a vote that was the last to be waited for': {
    ...allowed,
    ...{ steps: 347.43359375, events: 3, written: 20, instructions: 649 },
  },
  // Decided before the key is asked, and after.
  'a signature': { ...allowed, steps: 0, events: 2, lookUps: 2, written: 12, instructions: 554 },
  'a submit that is denied': { ...allowed, steps: 48.625, events: 1, written: 10, instructions: 514 },
  'the same bytes again': { steps: 0, reads: 0, appends: 0, events: 0, lookUps: 0, written: 0, instructions: 0 },
};

/** What the tree of an index that is a level deeper may take more. */
const slack = 60;

const withoutInstructions = (counted: Readonly<Record<string, Cost>>) =>
  Object.fromEntries(Object.entries(counted).map(([name, { instructions: _counted, ...rest }]) => [name, rest]));

test('a request costs what stands here, and no more with sixty times the history', async () => {
  for (const history of [1, times]) {
    for (let count = 0; count < history; count++) {
      // So many denials are recorded in a minute.
      here.clock.advance(60_000);
      for (const request of Object.values(requests)) await here.execute(await request()).catch(unlessDenied);
    }
    const counted = await costs();
    expect(withoutInstructions(counted)).toEqual(withoutInstructions(expected));
    for (const [name, { instructions }] of Object.entries(counted)) {
      expect([name, instructions <= expected[name]!.instructions + slack || instructions]).toEqual([name, true]);
    }
  }
});
