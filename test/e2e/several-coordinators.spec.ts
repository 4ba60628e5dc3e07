import { jest } from '@jest/globals';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ActivityEnvelope } from '../../src/domain/activity/envelope.js';
import type { ActivityEvent } from '../../src/domain/activity/events.js';
import { GENESIS_HASH, verifyChain } from '../../src/event-store/chain.js';
import type { RecordedEvent } from '../../src/event-store/event-store.js';
import { ApiError, apiKeyPairFromPrivate, type ApiKeyPair, type StampingClient } from '../../src/testing/index.js';
import { refusal, textLike } from './exchange.js';
import { caughtUp, clientOf, newKey, Pair, patienceMs, queryFrom, until, type Instance } from './pair.js';

const tagType = 'ACTIVITY_TYPE_CREATE_USER_TAG';
const tagPath = '/public/v1/submit/create_user_tag';
const renameType = 'ACTIVITY_TYPE_UPDATE_USER_NAME';
const nameType = 'ACTIVITY_TYPE_UPDATE_ORGANIZATION_NAME';
const namePath = '/public/v1/submit/update_organization_name';

// A process starts in half a second, and in ten on a machine with other work to do.
jest.setTimeout(2 * patienceMs);

type Answer = { readonly activity: ActivityEnvelope };

/** A user whose key signs on either instance. */
interface Voter {
  readonly userId: string;
  readonly key: ApiKeyPair;
  readonly one: StampingClient;
  readonly two: StampingClient;
}

let pair: Pair;
let rootKey: ApiKeyPair;

beforeAll(async () => {
  pair = await Pair.make();
  await pair.one.start();
  await pair.two.start();
  rootKey = await pair.rootKey();
});

afterAll(() => pair.remove());

const root = (instance: Instance) => clientOf(instance, rootKey);

async function voter(userName: string): Promise<Voter> {
  const key = newKey();
  const { result } = await root(pair.one).submit('ACTIVITY_TYPE_CREATE_USERS_V4', {
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
  return { userId: userIds[0]!, key, one: clientOf(pair.one, key), two: clientOf(pair.two, key) };
}

/** Lets renames of users through when so many have approved. */
async function policy(approvers: number): Promise<string> {
  const { result } = await root(pair.one).submit('ACTIVITY_TYPE_CREATE_POLICY_V3', {
    policyName: `renames ${crypto.randomUUID()}`,
    effect: 'EFFECT_ALLOW',
    condition: "activity.kind == 'UPDATE_USER_NAME'",
    consensus: `approvers.count() >= ${approvers}`,
    notes: '',
  });
  return (result['createPolicyResult'] as { policyId: string }).policyId;
}

async function about(activityId: string): Promise<RecordedEvent[]> {
  return (await pair.events()).filter(({ data }) => (data as { activityId?: string }).activityId === activityId);
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
  const { one, two } = pair;
  expect(one.running.stdout()).toContain('with a new root organization');
  expect(two.running.stdout()).not.toContain('new root organization');
  expect(two.organizationId).toBe(one.organizationId);
  await expect(readFile(join(two.installation.dataDir, 'root.json'))).rejects.toThrow('ENOENT');
  expect(await root(two).query('whoami')).toMatchObject({ username: 'Root user' });
});

test('two that start at the same moment agree on one organization', async () => {
  const other = await Pair.make();
  try {
    // The first of both appends is held up, so that the other instance gets ahead of it between reading and writing.
    other.double.appendFaults.push({ delayMs: 1_500 });
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

test('one request sent to both at once is one activity with one effect', async () => {
  const [one, two] = [root(pair.one), root(pair.two)];
  for (let round = 0; round < 8; round++) {
    const userTagName = `raced ${round}`;
    const body = one.submitBody(tagType, { userTagName });
    const answers = await Promise.all(
      [one, two, one, two].map(async (client) => (await insist(client, tagPath, body)).activity),
    );
    expect(answers).toEqual(answers.map(() => answers[0]));
    expect(answers[0]).toMatchObject({ status: 'ACTIVITY_STATUS_COMPLETED' });
    const events = await pair.events();
    expect(
      events.filter(
        ({ type, data }) => type === 'UserTagCreated' && (data as { tagName: string }).tagName === userTagName,
      ),
    ).toHaveLength(1);
  }
});

describe('votes', () => {
  let alice: Voter;
  let bob: Voter;
  let carol: Voter;

  beforeAll(async () => {
    [alice, bob, carol] = [await voter('Alice'), await voter('Bob'), await voter('Carol')];
  });

  const ask = (userName: string) => alice.one.submit(renameType, { userId: alice.userId, userName });

  test('on different instances add up', async () => {
    const policyId = await policy(3);
    const asked = await ask('Alicia');
    expect(await bob.two.approve(asked.fingerprint)).toMatchObject({
      id: asked.id,
      status: 'ACTIVITY_STATUS_CONSENSUS_NEEDED',
    });
    const done = await carol.one.approve(asked.fingerprint);
    expect(done).toMatchObject({ id: asked.id, status: 'ACTIVITY_STATUS_COMPLETED' });
    expect(done.votes.map(({ userId }) => userId)).toEqual([alice, bob, carol].map(({ userId }) => userId));
    await root(pair.two).submit('ACTIVITY_TYPE_DELETE_POLICY', { policyId });
  });

  test('the last one, given on both at once, completes it once', async () => {
    const policyId = await policy(2);
    for (let round = 0; round < 8; round++) {
      const asked = await ask(`Alina ${round}`);
      const outcomes = await Promise.allSettled([
        bob.one.approve(asked.fingerprint),
        carol.two.approve(asked.fingerprint),
      ]);
      const answered = outcomes.filter((outcome) => outcome.status === 'fulfilled').map(({ value }) => value);
      expect(answered.map(({ id, status }) => [id, status])).toEqual([[asked.id, 'ACTIVITY_STATUS_COMPLETED']]);
      // The other one came too late, and is told for which activity.
      const late = outcomes.filter((outcome) => outcome.status === 'rejected').map(({ reason }) => reason as ApiError);
      expect(late.map(({ status, body }) => [status, body.message])).toEqual([
        [400, textLike(`\`${asked.id}\`.*finished`)],
      ]);
      expect((await about(asked.id)).map(({ type }) => type)).toEqual([
        'ActivitySubmitted',
        'ActivityApproved',
        'ActivityCompleted',
      ]);
    }
    await root(pair.one).submit('ACTIVITY_TYPE_DELETE_POLICY', { policyId });
  });

  test('the same one, sent to both at once, counts once and is answered alike', async () => {
    const policyId = await policy(2);
    for (let round = 0; round < 4; round++) {
      const asked = await ask(`Aline ${round}`);
      const body = bob.one.submitBody('ACTIVITY_TYPE_APPROVE_ACTIVITY', { fingerprint: asked.fingerprint });
      const answers = await Promise.all(
        [bob.one, bob.two].map((client) => insist(client, '/public/v1/submit/approve_activity', body)),
      );
      expect(answers[0]!.activity).toMatchObject({ id: asked.id, status: 'ACTIVITY_STATUS_COMPLETED' });
      expect(answers[1]!.activity).toEqual(answers[0]!.activity);
      expect(await about(asked.id)).toHaveLength(3);
    }
    await root(pair.one).submit('ACTIVITY_TYPE_DELETE_POLICY', { policyId });
  });
});

test('every decision is made on the state just before it, while the policy changes on the other instance', async () => {
  const dora = await voter('Dora');
  const policyId = await policy(1);
  const admin = root(pair.two);
  const conflictsOfOne = () => pair.one.metric('countersign_append_conflicts_total');
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

  const events = await pair.events();
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
});

describe('reading', () => {
  const tagNames = (body: unknown) =>
    (body as { userTags: { tagName: string }[] }).userTags.map(({ tagName }) => tagName);

  test('what was written is read at once on the same instance, and on the other from its X-Position on', async () => {
    for (let round = 0; round < 10; round++) {
      const [here, there] = round % 2 === 0 ? [pair.one, pair.two] : [pair.two, pair.one];
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
    const { status, headers, body } = await queryFrom(pair.two, rootKey, 'whoami', String(2n ** 62n));
    const elapsedMs = performance.now() - begun;
    expect({ status, body }).toMatchObject({ status: 503, body: { code: 14 } });
    expect(headers.get('retry-after')).toMatch(/^[1-9]$/);
    expect(elapsedMs).toBeGreaterThan(1_900);
    expect(elapsedMs).toBeLessThan(patienceMs);
    expect((await queryFrom(pair.two, rootKey, 'whoami', '0')).status).toBe(200);
  });
});

test('a credential deleted on one instance is refused on the other at once', async () => {
  for (const [here, there] of [
    [pair.one, pair.two],
    [pair.two, pair.one],
  ] as const) {
    const { userId } = await voter(`Leaves ${here === pair.one ? 'one' : 'two'}`);
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

describe.each(['one', 'two'] as const)('instance %s killed under load', (which) => {
  test('has lost nothing that it had answered and doubled nothing; the other goes on, and it catches up', async () => {
    const victim = pair[which];
    const survivor = which === 'one' ? pair.two : pair.one;
    const answered: ActivityEnvelope[] = [];
    const submitted: string[] = [];
    let last = 0n;
    let killed: Promise<void> | undefined;
    let answeredSince = 0;
    const work = async (instance: Instance) => {
      const client = root(instance);
      while (answeredSince < 20) {
        const body = client.submitBody(nameType, { organizationName: `Name ${submitted.length}` });
        submitted.push(body);
        try {
          const { activity, position } = await insist(client, namePath, body);
          answered.push(activity);
          if (position > last) last = position;
        } catch (error) {
          // Only the one that is gone may leave a request without an answer.
          if (instance !== victim || error instanceof ApiError) throw error;
          return;
        }
        if (killed) answeredSince++;
        else if (answered.length >= 40 && instance === victim) killed = victim.kill();
      }
    };
    await Promise.all([victim, survivor].flatMap((instance) => Array.from({ length: 6 }, () => work(instance))));
    await killed;
    expect(victim.running.child.signalCode).toBe('SIGKILL');

    await victim.start();
    expect(victim.organizationId).toBe(survivor.organizationId);
    for (const instance of [victim, survivor]) {
      const client = root(instance);
      await caughtUp(instance, rootKey, last);
      const read = await Promise.all(answered.map(({ id }) => client.query('get_activity', { activityId: id })));
      expect(read).toEqual(answered.map((activity) => ({ activity })));
    }
    // What was not answered has happened once or not at all; sent again, to whichever, it has happened once.
    const again = await Promise.all(
      submitted.map(
        async (body, index) => (await insist(root(index % 2 === 0 ? victim : survivor), namePath, body)).activity,
      ),
    );
    expect(new Set(again.map(({ id }) => id)).size).toBe(submitted.length);
    const fingerprints = new Set(again.map(({ fingerprint }) => fingerprint));
    const recorded = (await pair.events()).filter(
      ({ type, data }) =>
        type === 'ActivitySubmitted' && fingerprints.has((data as { fingerprint: string }).fingerprint),
    );
    expect(recorded).toHaveLength(submitted.length);
    const known = new Set(again.map(({ id }) => id));
    expect(answered.filter(({ id }) => !known.has(id))).toEqual([]);
  });
});
