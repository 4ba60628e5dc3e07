import { jest } from '@jest/globals';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ActivityEnvelope } from '../../src/wire/envelope.js';
import type { ActivityEvent } from '../../src/domain/activity/events.js';
import { GENESIS_HASH, verifyChain } from '../../src/ledger/chain.js';
import type { RecordedEvent } from '../../src/ledger/event-store.js';
import {
  ApiError,
  apiKeyPairFromPrivate,
  SeededRandomness,
  StampingClient,
  type ApiKeyPair,
} from '../../src/testing/index.js';
import { exchange, refusal, textLike } from '../e2e/exchange.js';
import { patienceMs, until } from '../e2e/until.js';
import { caughtUp, clientOf, Coordinators, newKey, queryFrom, type Instance } from './coordinators.js';
import { isLong } from '../long.js';

const tagType = 'ACTIVITY_TYPE_CREATE_USER_TAG';
const tagPath = '/public/v1/submit/create_user_tag';
const renameType = 'ACTIVITY_TYPE_UPDATE_USER_NAME';
const nameType = 'ACTIVITY_TYPE_UPDATE_ORGANIZATION_NAME';
const namePath = '/public/v1/submit/update_organization_name';

// A process starts in half a second, and in ten on a machine with other work to do.
jest.setTimeout(2 * patienceMs);

type Answer = { readonly activity: ActivityEnvelope };

/** A user whose key signs on every instance. */
interface Voter {
  readonly userId: string;
  readonly key: ApiKeyPair;
  readonly one: StampingClient;
  readonly two: StampingClient;
  readonly three: StampingClient;
}

let cluster: Coordinators;
let rootKey: ApiKeyPair;

beforeAll(async () => {
  cluster = await Coordinators.make(3);
  await cluster.one.start();
  await Promise.all([cluster.two.start(), cluster.three.start()]);
  rootKey = await cluster.rootKey();
});

afterAll(() => cluster.remove());

const root = (instance: Instance) => clientOf(instance, rootKey);

async function voter(userName: string): Promise<Voter> {
  const key = newKey();
  const { result } = await root(cluster.one).submit('ACTIVITY_TYPE_CREATE_USERS_V4', {
    users: [
      {
        userName,
        apiKeys: [{ apiKeyName: 'first', publicKey: key.publicKey, curveType: key.curve }],
        authenticators: [],
        oauthProviders: [],
        userTags: [],
      },
    ],
  });
  const { userIds } = result['createUsersResult'] as { userIds: string[] };
  const [one, two, three] = [clientOf(cluster.one, key), clientOf(cluster.two, key), clientOf(cluster.three, key)];
  return { userId: userIds[0]!, key, one, two, three };
}

async function keysOf({ userId }: Voter): Promise<{ apiKeyIds: string[] }> {
  const { apiKeys } = await root(cluster.one).query<{ apiKeys: { apiKeyId: string }[] }>('get_api_keys', { userId });
  return { apiKeyIds: apiKeys.map(({ apiKeyId }) => apiKeyId) };
}

/** Lets renames of users through when so many have approved. */
async function policy(approvers: number): Promise<string> {
  const { result } = await root(cluster.one).submit('ACTIVITY_TYPE_CREATE_POLICY_V3', {
    policyName: `renames ${crypto.randomUUID()}`,
    effect: 'EFFECT_ALLOW',
    condition: "activity.kind == 'UPDATE_USER_NAME'",
    consensus: `approvers.count() >= ${approvers}`,
    notes: '',
  });
  return (result['createPolicyResult'] as { policyId: string }).policyId;
}

async function about(activityId: string): Promise<RecordedEvent[]> {
  return (await cluster.events()).filter(({ data }) => (data as { activityId?: string }).activityId === activityId);
}

/** Posts until it is answered: what was overtaken all the time (409), or has to wait (503), is to be sent again. */
async function insist(
  client: StampingClient,
  path: string,
  body: string,
): Promise<{ readonly activity: ActivityEnvelope; readonly position: bigint }> {
  const begun = performance.now();
  for (;;) {
    try {
      const { body: answer, headers } = await client.post<Answer>(path, body);
      return { ...answer, position: BigInt(headers.get('x-position')!) };
    } catch (error) {
      const isToBeSentAgain = error instanceof ApiError && [409, 503].includes(error.status);
      if (!isToBeSentAgain || performance.now() - begun > patienceMs) throw error;
    }
  }
}

test('the second finds the organization that the first has made, and keeps no key of its own', async () => {
  const { one, two } = cluster;
  expect(one.running.stdout()).toContain('with a new root organization');
  expect(two.running.stdout()).not.toContain('new root organization');
  expect(two.organizationId).toBe(one.organizationId);
  await expect(readFile(join(two.installation.dataDir, 'root.json'))).rejects.toThrow('ENOENT');
  expect(await root(two).query('whoami')).toMatchObject({ username: 'Root user' });
});

test('one that is asked rarely, and is farther from the store, answers every request while another one is kept busy with the same organization', async () => {
  const far = await cluster.farAway(10);
  await far.start();
  const busy = root(cluster.one);
  const rare = root(far);
  let isOver = false;
  // As few as write without a break: more would only keep the machine busy, which all share here.
  const writers = Array.from({ length: 3 }, async (_, writer) => {
    for (let turn = 0; !isOver; turn++) {
      await busy.submit(nameType, { organizationName: `busy ${writer} ${turn}` });
    }
  });
  try {
    for (let turn = 0; turn < 3; turn++) {
      // Patience ends after 5 s, which may be too few pauses of the busy one on a machine that has much to do.
      const { activity } = await insist(
        rare,
        namePath,
        rare.submitBody(nameType, { organizationName: `rare ${turn}` }),
      );
      expect(activity.status).toBe('ACTIVITY_STATUS_COMPLETED');
    }
  } finally {
    isOver = true;
    await Promise.all(writers);
    await far.kill();
  }
  expect((await cluster.events()).reduce(verifyChain, GENESIS_HASH)).toMatch(/^[0-9a-f]{64}$/);
});

test('two that start at the same moment agree on one organization', async () => {
  const other = await Coordinators.make(2);
  try {
    // The first of both appends is held up, so that the other instance gets ahead of it between reading and writing.
    const heldUntil = until('both have something to write', () => other.double.appends.classic >= 2);
    other.double.appendFaults.push({ heldUntil, stream: 'installation-root' });
    await Promise.all([other.one.start(), other.two.start()]);
    expect(other.double.appendFaults).toEqual([]);
    const { organizationId } = other.one;
    expect(other.two.organizationId).toBe(organizationId);
    const installer = other.one.running.stdout().includes('with a new root') ? other.one : other.two;
    const finder = installer === other.one ? other.two : other.one;
    expect(finder.running.stdout()).not.toContain('with a new root');
    const { apiPrivateKey } = await installer.installation.root();
    const key = apiKeyPairFromPrivate(apiPrivateKey!);
    for (const instance of [other.one, other.two]) {
      expect(await clientOf(instance, key).query('whoami')).toMatchObject({ organizationId });
    }
    expect(other.double.log.read('installation-root')).toHaveLength(1);
    await expect(readFile(join(finder.installation.dataDir, 'root.json'))).rejects.toThrow('ENOENT');
  } finally {
    await other.remove();
  }
});

test('one request sent to all at once is one activity with one effect', async () => {
  const clients = [...cluster.all, ...cluster.all].map(root);
  for (let round = 0; round < 8; round++) {
    const userTagName = `raced ${round}`;
    const body = clients[0]!.submitBody(tagType, { userTagName });
    const answers = await Promise.all(clients.map(async (client) => (await insist(client, tagPath, body)).activity));
    expect(answers).toEqual(answers.map(() => answers[0]));
    expect(answers[0]).toMatchObject({ status: 'ACTIVITY_STATUS_COMPLETED' });
    const events = await cluster.events();
    expect(
      events.filter(
        ({ type, data }) => type === 'UserTagCreated' && (data as { tagName: string }).tagName === userTagName,
      ),
    ).toHaveLength(1);
  }
});

test('a second one with the data folder of the first is refused, until that has ended however', async () => {
  const second = cluster.three.double();
  expect(await second.exit).toMatchObject({ code: 1 });
  expect(second.stderr()).toMatch(
    /^countersign cannot start: the data folder `[^`]+` is in use by another coordinator/,
  );
  expect(cluster.three.running.child.exitCode).toBeNull();
  await cluster.three.kill();
  await cluster.three.start();
});

describe('votes', () => {
  let alice: Voter;
  let bob: Voter;
  let carol: Voter;
  let dave: Voter;

  beforeAll(async () => {
    [alice, bob, carol, dave] = [await voter('Alice'), await voter('Bob'), await voter('Carol'), await voter('Dave')];
  });

  const ask = (userName: string) => alice.one.submit(renameType, { userId: alice.userId, userName });

  test('on different instances add up', async () => {
    const policyId = await policy(4);
    const asked = await ask('Alicia');
    for (const client of [bob.two, carol.three]) {
      expect(await client.approve(asked.fingerprint)).toMatchObject({
        id: asked.id,
        status: 'ACTIVITY_STATUS_CONSENSUS_NEEDED',
      });
    }
    const done = await dave.one.approve(asked.fingerprint);
    expect(done).toMatchObject({ id: asked.id, status: 'ACTIVITY_STATUS_COMPLETED' });
    expect(done.votes.map(({ userId }) => userId)).toEqual([alice, bob, carol, dave].map(({ userId }) => userId));
    await root(cluster.two).submit('ACTIVITY_TYPE_DELETE_POLICY', { policyId });
  });

  test('the last one, given on all at once, completes it once', async () => {
    const policyId = await policy(2);
    for (let round = 0; round < 8; round++) {
      const asked = await ask(`Alina ${round}`);
      const outcomes = await Promise.allSettled([
        bob.one.approve(asked.fingerprint),
        carol.two.approve(asked.fingerprint),
        dave.three.approve(asked.fingerprint),
      ]);
      const answered = outcomes.filter((outcome) => outcome.status === 'fulfilled').map(({ value }) => value);
      expect(answered.map(({ id, status }) => [id, status])).toEqual([[asked.id, 'ACTIVITY_STATUS_COMPLETED']]);
      // The others came too late, and are told for which activity.
      const late = outcomes.filter((outcome) => outcome.status === 'rejected').map(({ reason }) => reason as ApiError);
      const finished = [400, textLike(`\`${asked.id}\`.*finished`)];
      expect(late.map(({ status, body }) => [status, body.message])).toEqual([finished, finished]);
      expect((await about(asked.id)).map(({ type }) => type)).toEqual([
        'ActivitySubmitted',
        'ActivityApproved',
        'ActivityCompleted',
      ]);
    }
    await root(cluster.one).submit('ACTIVITY_TYPE_DELETE_POLICY', { policyId });
  });

  test('the same one, sent to all at once, counts once and is answered alike', async () => {
    const policyId = await policy(2);
    for (let round = 0; round < 4; round++) {
      const asked = await ask(`Aline ${round}`);
      const body = bob.one.submitBody('ACTIVITY_TYPE_APPROVE_ACTIVITY', { fingerprint: asked.fingerprint });
      const answers = await Promise.all(
        [bob.one, bob.two, bob.three].map((client) => insist(client, '/public/v1/submit/approve_activity', body)),
      );
      expect(answers[0]!.activity).toMatchObject({ id: asked.id, status: 'ACTIVITY_STATUS_COMPLETED' });
      expect(answers.map(({ activity }) => activity)).toEqual(answers.map(() => answers[0]!.activity));
      expect(await about(asked.id)).toHaveLength(3);
    }
    await root(cluster.one).submit('ACTIVITY_TYPE_DELETE_POLICY', { policyId });
  });
});

test('every decision is made on the state just before it, while the policy changes on the other instance', async () => {
  const dora = await voter('Dora');
  const policyId = await policy(1);
  const admin = root(cluster.two);
  const conflictsOfOne = () => cluster.one.metric('countersign_append_conflicts_total');
  const begun = { at: performance.now(), conflicts: await conflictsOfOne() };
  const answers = new Map<string, number>();
  const answersInAll = () => [...answers.values()].reduce((sum, count) => sum + count, 0);
  let [changes, conflicts] = [0, 0];
  let isEnough = false;
  /** What must have happened before this test has proved anything. */
  const missing = () => [
    ...['COMPLETED', 'CONSENSUS_NEEDED'].filter((status) => !answers.has(status)).map((status) => `an ask ${status}`),
    ...(conflicts > 0 ? [] : ['a conflict on the instance that is asked']),
    ...(changes >= 6 ? [] : [`${6 - changes} more changes`]),
  ];
  const change = async () => {
    while (missing().length > 0 && !isEnough) {
      if (performance.now() - begun.at > patienceMs) throw new Error(`still missing: ${missing().join(', ')}`);
      const policyConsensus = `approvers.count() >= ${changes % 2 === 0 ? 2 : 1}`;
      const body = admin.submitBody('ACTIVITY_TYPE_UPDATE_POLICY_V2', { policyId, policyConsensus });
      await insist(admin, '/public/v1/submit/update_policy', body);
      changes++;
      // Of two workers' next three answers one at least belongs to an ask that was sent after the change.
      const before = answersInAll();
      await until('three more asks are answered', () => isEnough || answersInAll() >= before + 3);
      conflicts = (await conflictsOfOne()) - begun.conflicts;
    }
  };
  const ask = async (worker: number) => {
    for (let round = 0; !isEnough; round++) {
      const parameters = { userId: dora.userId, userName: `Dora ${worker}.${round}` };
      const body = dora.one.submitBody(renameType, parameters);
      const { activity } = await insist(dora.one, '/public/v1/submit/update_user_name', body);
      const status = activity.status.replace('ACTIVITY_STATUS_', '');
      answers.set(status, (answers.get(status) ?? 0) + 1);
    }
  };
  // Whoever ends, the others end with it: the changer because nothing is missing, an asker because it has failed.
  await Promise.all([change(), ask(0), ask(1)].map((work) => work.finally(() => (isEnough = true))));

  const events = await cluster.events();
  let hash = GENESIS_HASH;
  let needed = 0;
  let decided = 0;
  for (const event of events) {
    hash = verifyChain(hash, event);
    const { consensus, policyId: about } = event.data as { policyId?: string; consensus?: string };
    if (about === policyId && consensus !== undefined) needed = Number(consensus.at(-1));
    const { decision, status, type, vote } = event.data as Partial<
      Extract<ActivityEvent, { type: 'ActivitySubmitted' }>['data']
    >;
    if (!decision) continue;
    expect(decision.revision).toBe(event.revision - 1);
    if (type !== renameType || vote?.userId !== dora.userId) continue;
    expect(status === 'ACTIVITY_STATUS_CONSENSUS_NEEDED').toBe(needed === 2);
    decided++;
  }
  expect(decided).toBe(answersInAll());
  await admin.submit('ACTIVITY_TYPE_DELETE_POLICY', { policyId });
});

describe('reading', () => {
  const tagNames = (body: unknown) =>
    (body as { userTags: { tagName: string }[] }).userTags.map(({ tagName }) => tagName);

  test('what was written is read at once on the same instance, and on the other from its X-Position on', async () => {
    for (let round = 0; round < 10; round++) {
      const [here, there] = round % 2 === 0 ? [cluster.one, cluster.two] : [cluster.two, cluster.one];
      const client = root(here);
      const userTagName = `read ${round}`;
      const { headers } = await client.post(tagPath, client.submitBody(tagType, { userTagName }));
      const [own, other] = await Promise.all([
        client.query('list_user_tags'),
        queryFrom(there, rootKey, 'list_user_tags', headers.get('x-position')!),
      ]);
      for (const body of [own, other.body]) expect(tagNames(body)).toContain(userTagName);
    }
  });

  test('a position that does not come is answered with 503 and when to try again', async () => {
    const begun = performance.now();
    const { status, headers, body } = await queryFrom(cluster.two, rootKey, 'whoami', String(2n ** 62n));
    const elapsedMs = performance.now() - begun;
    expect({ status, body }).toMatchObject({ status: 503, body: { code: 14 } });
    expect(headers.get('retry-after')).toMatch(/^[1-9]$/);
    expect(elapsedMs).toBeGreaterThan(1_900);
    expect(elapsedMs).toBeLessThan(patienceMs);
    expect((await queryFrom(cluster.two, rootKey, 'whoami', '0')).status).toBe(200);
  });
});

test('a credential deleted on one instance is refused on the other at once', async () => {
  for (const [here, there] of [
    [cluster.one, cluster.two],
    [cluster.two, cluster.one],
  ] as const) {
    const { userId } = await voter(`Leaves ${here === cluster.one ? 'one' : 'two'}`);
    const admin = root(here);
    for (let round = 0; round < 4; round++) {
      const key = newKey();
      const body = admin.submitBody('ACTIVITY_TYPE_CREATE_API_KEYS_V2', {
        userId,
        apiKeys: [{ apiKeyName: `key ${round}`, publicKey: key.publicKey, curveType: key.curve }],
      });
      const { headers, body: created } = await admin.post<Answer>('/public/v1/submit/create_api_keys', body);
      const { apiKeyIds } = created.activity.result['createApiKeysResult'] as { apiKeyIds: string[] };
      const owner = clientOf(there, key);
      const who = await queryFrom(there, key, 'whoami', headers.get('x-position')!);
      expect(who).toMatchObject({ status: 200, body: { userId } });
      await admin.submit('ACTIVITY_TYPE_DELETE_API_KEYS', { userId, apiKeyIds });
      const refused = await Promise.all([
        refusal(owner.query('whoami')),
        refusal(owner.submit(renameType, { userId, userName: 'still here' })),
      ]);
      expect(refused.map(({ status }) => status)).toEqual([401, 401]);
    }
  }
});

test('a credential deleted on one instance is refused on another that is about to write', async () => {
  const [here, there] = [cluster.one, cluster.two];
  const gone = await voter('Leaves three');
  const { apiKeyIds } = await keysOf(gone);
  await until('the other one has read of the user', async () => {
    const { status } = await queryFrom(there, gone.key, 'whoami', '0');
    return status === 200;
  });
  let release = (): void => undefined;
  const heldUntil = new Promise<void>((resolve) => (release = resolve));
  try {
    cluster.double.appendFaults.push({ heldUntil, stream: cluster.stream });
    const client = root(there);
    const late = insist(client, tagPath, client.submitBody(tagType, { userTagName: 'about to be written' }));
    await until('its append has reached the store', () => cluster.double.appendFaults.length === 0);
    expect(await gone.two.query('whoami')).toMatchObject({ userId: gone.userId });
    await root(here).submit('ACTIVITY_TYPE_DELETE_API_KEYS', { userId: gone.userId, apiKeyIds });
    expect((await refusal(gone.two.query('whoami'))).status).toBe(401);
    release();
    expect((await late).activity.status).toBe('ACTIVITY_STATUS_COMPLETED');
    expect((await refusal(gone.two.query('whoami'))).status).toBe(401);
  } finally {
    release();
  }
});

/** Rounds of the next test; `LONG=1` plays many, each instance being the victim. Each has its own seed, by which it can be played again. */
const rounds = isLong ? 12 : 1;

test('a contact is written to as often as if there were one instance, whoever asks and wherever', async () => {
  const configId = (await cluster.one.installation.root())['authProxyConfigId']!;
  const instances = [cluster.one, cluster.two, cluster.three];
  const contact = 'victim@example.com';
  const asked = (userIdentifier: string) => ({ otpType: 'OTP_TYPE_EMAIL', contact, appName: 'x', userIdentifier });
  const send = (client: StampingClient, number: number) =>
    client.submit('ACTIVITY_TYPE_INIT_OTP_V3', asked(`user ${number}`)).then(
      () => 'sent',
      ({ status }: { status: number }) => String(status),
    );
  /** What three strangers are told, each on an instance of its own, for so many messages each, all at the same time. */
  const strangers = await Promise.all(
    instances.map(async ({ running: { url } }) => {
      const key = newKey();
      const headers = { 'content-type': 'application/json', 'x-auth-proxy-config-id': configId };
      const apiKeys = [{ apiKeyName: 'key', publicKey: key.publicKey, curveType: key.curve }];
      const body = JSON.stringify({ userName: 'Mallory', userEmail: contact, apiKeys });
      const answer = await exchange(`${url}/v1/signup`, { method: 'POST', headers, body });
      expect(answer.status).toBe(200);
      return new StampingClient(url, (answer.body as { organizationId: string }).organizationId, key);
    }),
  );
  const toldTo = (clients: readonly StampingClient[], times: number) =>
    Promise.all(clients.flatMap((client) => Array.from({ length: times }, (_, number) => send(client, number))));
  const told = [...(await toldTo(strangers, 3)), ...(await toldTo(strangers, 1))];
  expect(told.filter((one) => one === 'sent')).toHaveLength(4);
  expect(new Set(told)).toEqual(new Set(['sent', '429']));
  // And members of the parent on each: thirty in all, less those four.
  const outcomes: string[] = [];
  for (let round = 0; round < 11; round++) {
    outcomes.push(...(await Promise.all(instances.map((instance, at) => send(root(instance), 100 + 3 * round + at)))));
  }
  expect(outcomes.filter((outcome) => outcome === 'sent')).toHaveLength(26);
  expect(new Set(outcomes)).toEqual(new Set(['sent', '429']));
});

describe('under load', () => {
  const dice = new SeededRandomness('kill -9');
  const below = (limit: number) => Buffer.from(dice.bytes(4)).readUInt32BE() % limit;
  let voters: readonly [Voter, Voter, Voter];
  let policyId: string;

  beforeAll(async () => {
    voters = [await voter('Frank'), await voter('Grace'), await voter('Heidi')];
    policyId = await policy(2);
  });

  afterAll(() => root(cluster.one).submit('ACTIVITY_TYPE_DELETE_POLICY', { policyId }));

  /** Sends to that instance, and the same bytes to the next one when it is gone. */
  async function persist(at: number, key: ApiKeyPair, path: string, body: string) {
    for (let next = at; ; next++) {
      try {
        return await insist(clientOf(cluster.number(next), key), path, body);
      } catch (error) {
        if (error instanceof ApiError || next > at + 1_000) throw error;
      }
    }
  }

  test.each(Array.from({ length: rounds }, (_, round) => round))(
    'an instance that is killed (round %d) has lost nothing that was answered, and nothing is doubled',
    async (round) => {
      const victim = cluster.number(round);
      const killAfter = 10 + below(40);
      const answered: { readonly body: string; readonly activity: ActivityEnvelope }[] = [];
      const elections: ActivityEnvelope[] = [];
      let [last, done] = [0n, 0];
      let killed: { readonly done: number; readonly elections: number; readonly gone: Promise<void> } | undefined;
      const note = ({ position }: { readonly position: bigint }) => {
        if (position > last) last = position;
        done++;
        if (done >= killAfter && !killed) killed = { done, elections: elections.length, gone: victim.kill() };
      };
      // The others must have done some of everything without it.
      const isEnough = () => killed && done >= killed.done + 20 && elections.length > killed.elections + 2;

      const rename = async (at: number, worker: number) => {
        for (let count = 0; !isEnough(); count++) {
          const organizationName = `Name ${round}.${at}.${worker}.${count}`;
          const body = root(cluster.number(at)).submitBody(nameType, { organizationName });
          const answer = await persist(at, rootKey, namePath, body);
          answered.push({ body, activity: answer.activity });
          note(answer);
        }
      };
      const [asker, ...others] = voters;
      const elect = async (at: number) => {
        for (let count = 0; !isEnough(); count++) {
          const parameters = { userId: asker.userId, userName: `Frank ${round}.${at}.${count}` };
          const body = asker.one.submitBody(renameType, parameters);
          const asked = await persist(at, asker.key, '/public/v1/submit/update_user_name', body);
          const { fingerprint } = asked.activity;
          const votes = await Promise.allSettled(
            others.map((one, index) => {
              const approval = one.one.submitBody('ACTIVITY_TYPE_APPROVE_ACTIVITY', { fingerprint });
              return persist(at + 1 + index, one.key, '/public/v1/submit/approve_activity', approval);
            }),
          );
          for (const vote of votes) {
            if (vote.status === 'fulfilled') note(vote.value);
            else if (!(vote.reason instanceof ApiError) || vote.reason.status !== 400) throw vote.reason;
          }
          const [completed] = votes.filter((vote) => vote.status === 'fulfilled');
          expect(completed?.value.activity).toMatchObject({
            id: asked.activity.id,
            status: 'ACTIVITY_STATUS_COMPLETED',
          });
          elections.push(completed!.value.activity);
        }
      };
      const numbers = cluster.all.map((_, index) => index);
      await Promise.all(numbers.flatMap((at) => [rename(at, 0), rename(at, 1), elect(at)]));
      await killed!.gone;
      expect(victim.running.child.signalCode).toBe('SIGKILL');

      await victim.start();
      expect(victim.organizationId).toBe(cluster.number(round + 1).organizationId);
      const everything = [...answered.map(({ activity }) => activity), ...elections];
      for (const instance of cluster.all) {
        await caughtUp(instance, rootKey, last);
        const client = root(instance);
        const read = await Promise.all(everything.map(({ id }) => client.query('get_activity', { activityId: id })));
        // What a reader may do about it is the only thing that readers see differently.
        expect(read).toMatchObject(everything.map(({ id, status, result }) => ({ activity: { id, status, result } })));
      }
      // Sent again, to whichever, everything has happened before.
      const again = await Promise.all(
        answered.map(async ({ body }, index) => (await insist(root(cluster.number(index)), namePath, body)).activity),
      );
      expect(again).toEqual(answered.map(({ activity }) => activity));

      const events = await cluster.events();
      expect(events.reduce(verifyChain, GENESIS_HASH)).toMatch(/^[0-9a-f]{64}$/);
      const typesOf = new Map<string, string[]>();
      for (const { type, data } of events) {
        const { activityId = '' } = data as { activityId?: string };
        typesOf.set(activityId, [...(typesOf.get(activityId) ?? []), type]);
      }
      const once = ['ActivitySubmitted', 'ActivityCompleted'];
      for (const { activity } of answered) expect([activity.id, typesOf.get(activity.id)]).toEqual([activity.id, once]);
      const elected = ['ActivitySubmitted', 'ActivityApproved', 'ActivityCompleted'];
      for (const { id } of elections) expect([id, typesOf.get(id)]).toEqual([id, elected]);
      const fingerprints = events.flatMap(({ type, data }) =>
        type === 'ActivitySubmitted' ? [(data as { fingerprint: string }).fingerprint] : [],
      );
      expect(new Set(fingerprints).size).toBe(fingerprints.length);
    },
  );
});
