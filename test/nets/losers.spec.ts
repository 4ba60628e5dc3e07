import { activities } from '../../src/activities/index.js';
import type { ActivityEnvelope } from '../../src/domain/activity/envelope.js';
import { ApiError, startCoordinator, type StampingClient, type TestCoordinator } from '../../src/testing/index.js';
import { furnish, sampleSettings, submitSamples, type Furnished } from '../e2e/samples.js';
import { until } from '../e2e/until.js';

/**
 * Lets every verb that touches the world before it is decided lose: against itself, to a vote, to a process that dies
 * between two writes. Of what did not happen nothing may be left: no vault, no organization, no row, no login (R7).
 */

/** `LONG=1` also dies with each write done and not answered, at every write. */
const isLong = process.env['LONG'] === '1';

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
  const all = await coordinator.recorded();
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
  const own = `organization-${coordinator.organizationId}`;
  const wrong: string[] = [];
  for (const stream of streams) {
    const isVault = stream.startsWith('vault-') && !ownVaults.has(stream);
    if (isVault && !history.includes(stream.slice('vault-'.length))) wrong.push(`${stream} is named by nothing`);
    if (texts.has(stream) && stream !== own && !said.has(stream)) wrong.push(`${stream} was recorded by no parent`);
  }
  for (const stream of said.keys()) if (!streams.has(stream)) wrong.push(`${stream} was recorded, and is not there`);
  return wrong;
}

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
