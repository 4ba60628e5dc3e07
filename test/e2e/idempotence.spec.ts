import type { ActivityEnvelope } from '../../src/wire/envelope.js';
import {
  send,
  stampBody,
  startCoordinator,
  submitPath,
  type StampingClient,
  type TestCoordinator,
  type TestUser,
} from '../../src/testing/index.js';
import { refusal } from './exchange.js';

const tagType = 'ACTIVITY_TYPE_CREATE_USER_TAG';
const renameType = 'ACTIVITY_TYPE_UPDATE_USER_NAME';
const approveType = 'ACTIVITY_TYPE_APPROVE_ACTIVITY';

/** Sends exactly this body as a submit of this type. */
async function sendBody(client: StampingClient, type: string, body: string): Promise<ActivityEnvelope> {
  return (await client.post<{ activity: ActivityEnvelope }>(submitPath(type), body)).body.activity;
}

async function tagNames({ client }: TestCoordinator): Promise<readonly string[]> {
  const { userTags } = await client.query<{ userTags: { tagName: string }[] }>('list_user_tags');
  return userTags.map(({ tagName }) => tagName);
}

async function withPolicy(coordinator: TestCoordinator): Promise<{ alice: TestUser; bob: TestUser; carol: TestUser }> {
  const alice = await coordinator.createUser('Alice');
  const bob = await coordinator.createUser('Bob');
  const carol = await coordinator.createUser('Carol');
  const named = [alice, bob].map(({ userId }) => `approvers.any(user, user.id == '${userId}')`);
  await coordinator.createPolicy({
    policyName: 'Alice and Bob rename',
    condition: `activity.kind == 'UPDATE_USER_NAME'`,
    consensus: named.join(' && '),
  });
  return { alice, bob, carol };
}

describe.each(['memory', 'sqlite'] as const)('on %s', (store) => {
  let coordinator: TestCoordinator;

  beforeEach(async () => {
    coordinator = await startCoordinator({ store });
  });

  afterEach(() => coordinator.close());

  test('the same bytes are the same activity, one after the other', async () => {
    const { client } = coordinator;
    const body = client.submitBody(tagType, { userTagName: 'once' });
    const first = await sendBody(client, tagType, body);
    for (let count = 0; count < 5; count++) expect(await sendBody(client, tagType, body)).toEqual(first);
    expect(await tagNames(coordinator)).toEqual(['once']);
  });

  test('the same bytes fifty times at once are one activity', async () => {
    const { client } = coordinator;
    const before = (await coordinator.events()).length;
    const body = client.submitBody(tagType, { userTagName: 'once' });
    const answers = await Promise.all(Array.from({ length: 50 }, () => sendBody(client, tagType, body)));
    for (const answer of answers) expect(answer).toEqual(answers[0]);
    expect(answers[0]!.status).toBe('ACTIVITY_STATUS_COMPLETED');
    expect((await coordinator.events()).slice(before).map(({ type }) => type)).toEqual([
      'ActivitySubmitted',
      'UserTagCreated',
      'ActivityCompleted',
    ]);
  });

  test('many bodies, each three times at once, are one activity each: whatever shares an append, questions are answered after it', async () => {
    const { client } = coordinator;
    const bodies = Array.from({ length: 30 }, (_, index) =>
      client.submitBody(tagType, { userTagName: `tag ${index}` }),
    );
    const answers = await Promise.all(
      bodies.flatMap((body) => [body, body, body]).map((body) => sendBody(client, tagType, body)),
    );
    answers.forEach((answer, index) => expect(answer).toEqual(answers[index - (index % 3)]));
    expect(new Set(await tagNames(coordinator)).size).toBe(30);
  });

  test('requests that wait for votes, each three times at once, are one activity each', async () => {
    const { alice, bob } = await withPolicy(coordinator);
    const bodies = Array.from({ length: 20 }, (_, index) =>
      alice.client.submitBody(renameType, { userId: alice.userId, userName: `Alice ${index}` }),
    );
    const asked = await Promise.all(
      bodies.flatMap((body) => [body, body, body]).map((body) => sendBody(alice.client, renameType, body)),
    );
    expect(new Set(asked.map(({ id }) => id)).size).toBe(20);
    const approvals = [...new Set(asked.map(({ fingerprint }) => fingerprint))].map((fingerprint) =>
      bob.client.submitBody(approveType, { fingerprint }),
    );
    const approved = await Promise.all(
      approvals.flatMap((body) => [body, body]).map((body) => sendBody(bob.client, approveType, body)),
    );
    for (const { status, votes } of approved) {
      expect([status, votes.length]).toEqual(['ACTIVITY_STATUS_COMPLETED', 2]);
    }
    expect(await coordinator.client.query('whoami')).toMatchObject({ username: 'Root user' });
  });

  test('the same bytes are the same activity after a restart, and signed anew', async () => {
    const { client } = coordinator;
    const body = client.submitBody(tagType, { userTagName: 'once' });
    const first = await sendBody(client, tagType, body);
    coordinator = await coordinator.restart();
    expect(await sendBody(coordinator.client, tagType, body)).toEqual(first);
    expect(await tagNames(coordinator)).toEqual(['once']);

    // Their signatures are randomised, ours are not: the other form of the same signature is another stamp.
    const { headerValue } = stampBody(body, coordinator.client.key);
    const mirrored = Buffer.from(JSON.stringify(mirror(headerValue))).toString('base64url');
    expect(mirrored).not.toBe(headerValue);
    const path = `${coordinator.url}${submitPath(tagType)}`;
    const { body: answer } = await send<{ activity: ActivityEnvelope }>(path, body, { 'X-Stamp': mirrored });
    expect(answer.activity).toEqual(first);
  });

  test('a request that waits for votes is the same one after a restart, and so is a vote', async () => {
    const { alice, bob } = await withPolicy(coordinator);
    const body = alice.client.submitBody(renameType, { userId: alice.userId, userName: 'Alicia' });
    const asked = await sendBody(alice.client, renameType, body);
    expect(asked.status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
    coordinator = await coordinator.restart();
    const again = await sendBody(coordinator.clientFor(alice.key), renameType, body);
    expect(again).toEqual(asked);

    const approval = bob.client.submitBody(approveType, { fingerprint: asked.fingerprint });
    const approved = await sendBody(coordinator.clientFor(bob.key), approveType, approval);
    expect(approved).toMatchObject({ id: asked.id, status: 'ACTIVITY_STATUS_COMPLETED' });
    coordinator = await coordinator.restart();
    expect(await sendBody(coordinator.clientFor(bob.key), approveType, approval)).toEqual(approved);
    expect(await sendBody(coordinator.clientFor(alice.key), renameType, body)).toEqual({
      ...approved,
      votes: approved.votes,
    });
  });
});

describe('by another user', () => {
  let coordinator: TestCoordinator;
  let alice: TestUser;
  let bob: TestUser;
  let carol: TestUser;

  beforeEach(async () => {
    coordinator = await startCoordinator();
    ({ alice, bob, carol } = await withPolicy(coordinator));
  });

  afterEach(() => coordinator.close());

  const ask = async (userName: string) => {
    const body = alice.client.submitBody(renameType, { userId: alice.userId, userName });
    return { body, asked: await sendBody(alice.client, renameType, body) };
  };

  test('from a user who may approve, it is an approval', async () => {
    const { body, asked } = await ask('Alicia');
    const approved = await sendBody(bob.client, renameType, body);
    expect(approved).toMatchObject({ id: asked.id, status: 'ACTIVITY_STATUS_COMPLETED' });
    expect(approved.votes.map(({ userId, message }) => [userId, message])).toEqual([
      [alice.userId, body],
      [bob.userId, body],
    ]);
    // Once it is done the same bytes only show it.
    expect(await sendBody(bob.client, renameType, body)).toEqual(approved);
  });

  test('from a user who may not, it shows the activity and changes nothing', async () => {
    const { body, asked } = await ask('Alicia');
    const shown = await sendBody(carol.client, renameType, body);
    expect(shown).toEqual({ ...asked, canApprove: false, canReject: false });
    expect(shown.votes).toHaveLength(1);
  });

  test('from somebody unknown it is refused, and shows nothing', async () => {
    const { body } = await ask('Alicia');
    const stranger = coordinator.clientFor(coordinator.newKey());
    expect(await refusal(sendBody(stranger, renameType, body))).toMatchObject({
      status: 401,
      turnkeyErrorCode: 'PUBLIC_KEY_NOT_FOUND',
    });
  });

  test('the very body of a vote is one vote, whoever else sends it', async () => {
    const { asked } = await ask('Alicia');
    const { asked: other } = await ask('Alina');
    const approval = bob.client.submitBody(approveType, { fingerprint: asked.fingerprint });
    const approved = await sendBody(bob.client, approveType, approval);
    for (const { client } of [bob, carol, alice]) {
      const shown = await sendBody(client, approveType, approval);
      expect([shown.id, shown.status, shown.votes.length]).toEqual([approved.id, 'ACTIVITY_STATUS_COMPLETED', 2]);
    }
    const { activity } = await bob.client.query<{ activity: ActivityEnvelope }>('get_activity', {
      activityId: other.id,
    });
    expect(activity.votes).toHaveLength(1);
  });

  test('a second user who sends the body of a vote that waits for a third votes too', async () => {
    await coordinator.createPolicy({
      policyName: 'three of all',
      condition: `activity.kind == 'UPDATE_USER_EMAIL'`,
      consensus: 'approvers.count() >= 3',
    });
    const type = 'ACTIVITY_TYPE_UPDATE_USER_EMAIL';
    const asked = await alice.client.submit(type, { userId: alice.userId, userEmail: 'alice@example.com' });
    const approval = bob.client.submitBody(approveType, { fingerprint: asked.fingerprint });
    await sendBody(bob.client, approveType, approval);
    const third = await sendBody(carol.client, approveType, approval);
    // Bytes that two people stamped are two words, or one that is shown: what may not be is one that is lost silently.
    expect([third.status, third.votes.length]).toEqual(['ACTIVITY_STATUS_COMPLETED', 3]);
  });
});

describe('two sub-organizations of one parent', () => {
  let coordinator: TestCoordinator;

  beforeEach(async () => {
    coordinator = await startCoordinator();
  });

  afterEach(() => coordinator.close());

  async function subOrganization(name: string) {
    const key = coordinator.newKey();
    const apiKey = { apiKeyName: 'own', publicKey: key.publicKey, curveType: key.curve };
    const { result } = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8', {
      subOrganizationName: name,
      rootUsers: [{ userName: name, apiKeys: [apiKey], authenticators: [], oauthProviders: [] }],
      rootQuorumThreshold: 1,
    });
    const { subOrganizationId, rootUserIds } = Object.values(result)[0] as {
      subOrganizationId: string;
      rootUserIds: [string];
    };
    const client = coordinator.clientFor(key, subOrganizationId);
    return { organizationId: subOrganizationId, userId: rootUserIds[0], client };
  }

  test('the same bytes are known in each: a login is not done again because another has sent it first', async () => {
    const victim = await subOrganization('victim');
    const other = await subOrganization('other');
    const type = 'ACTIVITY_TYPE_STAMP_LOGIN';
    // It names the parent, and so it may be stamped and sent in any of its sub-organizations.
    const options = { organizationId: coordinator.organizationId };
    const parameters = { publicKey: coordinator.newKey().publicKey, expirationSeconds: '900' };
    const body = victim.client.submitBody(type, parameters, options);
    const taken = await sendBody(other.client, type, body);
    expect(taken.organizationId).toBe(other.organizationId);
    const login = await sendBody(victim.client, type, body);
    expect(login.organizationId).toBe(victim.organizationId);

    const user = () =>
      victim.client.query<{ user: { apiKeys: { apiKeyId: string; credential: { publicKey: string } }[] } }>(
        'get_user',
        { userId: victim.userId },
      );
    const { user: before } = await user();
    const session = before.apiKeys.find(({ credential }) => credential.publicKey === parameters.publicKey)!;
    await victim.client.submit('ACTIVITY_TYPE_DELETE_API_KEYS', {
      userId: victim.userId,
      apiKeyIds: [session.apiKeyId],
    });
    // Whatever is in the read models is in no memory any more.
    await user();

    expect((await sendBody(victim.client, type, body)).id).toBe(login.id);
    const { user: after } = await user();
    expect(after.apiKeys.map(({ credential }) => credential.publicKey)).toEqual([victim.client.key.publicKey]);
  });
});

/** The stamp with (r, n - s) in place of (r, s): a second valid signature of the same message by the same key. */
function mirror(headerValue: string): object {
  const stamp = JSON.parse(Buffer.from(headerValue, 'base64url').toString()) as { signature: string };
  const order = BigInt('0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551');
  const der = Buffer.from(stamp.signature, 'hex');
  const rLength = der[3]!;
  const r = der.subarray(4, 4 + rLength);
  const s = BigInt(`0x${der.subarray(6 + rLength).toString('hex')}`);
  const hex = (order - s).toString(16).padStart(64, '0');
  const bytes = Buffer.from(parseInt(hex.slice(0, 2), 16) > 127 ? `00${hex}` : hex, 'hex');
  const body = Buffer.concat([Buffer.from([2, rLength]), r, Buffer.from([2, bytes.length]), bytes]);
  return { ...stamp, signature: Buffer.concat([Buffer.from([0x30, body.length]), body]).toString('hex') };
}
