import type { ProofShape } from '../../src/read-models/explanations.js';
import { activities } from '../../src/activities/index.js';
import { buildRegistry } from '../../src/decide/registry.js';
import { chainEvent, GENESIS_HASH, type EventMetadata } from '../../src/ledger/chain.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { verifyHistory } from '../../src/audit/verify/verify.js';
import { startCoordinator, type StampingClient, type TestCoordinator, type TestUser } from '../../src/testing/index.js';
import { refusal, textLike, type Refusal } from './exchange.js';
import { until } from './until.js';

/** A denial is explained as it was decided, whatever has changed since, to everybody who may list it. */

interface Explained {
  readonly proof?: ProofShape;
  readonly notExplained?: string;
}

interface Listed {
  readonly denialId: string;
  readonly revision?: string;
  readonly rules?: number;
}

let coordinator: TestCoordinator;
let alice: TestUser;
let bob: TestUser;

beforeAll(async () => {
  coordinator = await startCoordinator({ seed: 'explained denials' });
  alice = await coordinator.createUser('Alice');
  bob = await coordinator.createUser('Bob');
});
afterAll(() => coordinator.close());

const newTag = (client: StampingClient, userTagName: string) =>
  client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName, userIds: [] });
const explain = (activityId: string, client: StampingClient) =>
  client.query<Explained>('explain_activity', { activityId });
const isTag = "activity.kind == 'CREATE_USER_TAG'";
const remove = (policyId: string) => coordinator.client.submit('ACTIVITY_TYPE_DELETE_POLICY', { policyId });

/** The id that a 403 says, once the denial is listed: a refusal has no position to wait for. */
async function listed({ status, details }: Refusal, client: StampingClient = coordinator.client): Promise<Listed> {
  expect(status).toBe(403);
  const denialId = details.map((detail) => detail['denialId']).find((id) => id !== undefined);
  const list = async () => (await client.query<{ denials: Listed[] }>('list_denials')).denials;
  const found = async () => (await list()).find((one) => one.denialId === denialId);
  await until('the denial is listed', async () => (await found()) !== undefined);
  return (await found())!;
}

const policiesIn = ({ proof }: Explained) =>
  proof!.parts.flatMap(({ policies }) => policies.map(({ policyName, outcome }) => [policyName, outcome]));

test('a denied submit: which policies and clauses decided, at the revision at which they did', async () => {
  const policyId = await coordinator.createPolicy({
    policyName: 'Bob tags',
    condition: `${isTag} && requester.id == '${bob.userId}'`,
  });
  const { revision, denialId, rules } = await listed(await refusal(newTag(alice.client, 'denied')));
  const events = await coordinator.events();
  expect([revision, rules]).toEqual([String(events.length - 1), 1]);

  const { proof } = await explain(denialId, coordinator.client);
  expect(proof).toMatchObject({
    outcome: 'deny-implicit',
    decidedBy: 'none',
    text: 'Denied: no policy allows it.',
    revision,
    rules,
    decidedAt: new Date(coordinator.clock.now()).toISOString(),
  });
  const [clause] = proof!.parts[0]!.policies.find((one) => one.policyId === policyId)!.clauses;
  expect(clause!.parts.map(({ text, value }) => [text, value])).toContainEqual([
    `requester.id == '${bob.userId}'`,
    'false',
  ]);

  // What it would take is said as of then, also after the policy is gone and Alice may do it.
  await remove(policyId);
  const all = await coordinator.createPolicy({ policyName: 'all tag', condition: isTag });
  expect((await explain(denialId, coordinator.client)).proof).toEqual(proof);
  await remove(all);
});

test('an explicit denial, and one outside the time of a policy, whenever it is asked', async () => {
  const nobody = await coordinator.createPolicy({ policyName: 'nobody', effect: 'EFFECT_DENY', condition: isTag });
  const { denialId } = await listed(await refusal(newTag(alice.client, 'explicit')));
  expect(await explain(denialId, coordinator.client)).toMatchObject({
    proof: { outcome: 'deny-explicit', decidedBy: 'policy', text: 'Denied by “nobody”.' },
  });
  await remove(nobody);

  const until = new Date(coordinator.clock.now() + 60_000).toISOString().replace(/\.\d+/, '');
  const late = await coordinator.createPolicy({
    policyName: 'later',
    condition: isTag,
    time: `time.now >= Timestamp('${until}')`,
  });
  const early = await listed(await refusal(newTag(alice.client, 'early')));
  coordinator.clock.advance('2m');
  await newTag(alice.client, 'in time');
  expect(policiesIn(await explain(early.denialId, coordinator.client))).toContainEqual([
    'later',
    'OUTCOME_TIME_INACTIVE',
  ]);
  await remove(late);
});

test('a denied vote: the DENY that came while the activity waited', async () => {
  const two = await coordinator.createPolicy({
    policyName: 'two tag',
    condition: isTag,
    consensus: 'approvers.count() >= 2',
  });
  const { fingerprint } = await newTag(alice.client, 'waits');
  const deny = await coordinator.createPolicy({ policyName: 'frozen', effect: 'EFFECT_DENY', condition: isTag });
  const { denialId } = await listed(
    await refusal(bob.client.submit('ACTIVITY_TYPE_APPROVE_ACTIVITY', { fingerprint })),
  );
  await remove(deny);
  const explained = await explain(denialId, bob.client);
  expect(policiesIn(explained)).toEqual([
    ['Auth proxy', 'OUTCOME_DENY_IMPLICIT'],
    ['two tag', 'OUTCOME_ALLOW'],
    ['frozen', 'OUTCOME_DENY_EXPLICIT'],
  ]);
  expect(explained.proof!.text).toBe('Denied by “frozen”; the root quorum may still approve it.');
  await coordinator.client.reject(fingerprint);
  await remove(two);
});

test('a denial by another rule than a policy: that rule', async () => {
  const both = [alice.userId, coordinator.root.userId];
  const consensus = both.map((id) => `approvers.any(user, user.id == '${id}')`).join(' && ');
  const policyId = await coordinator.createPolicy({ policyName: 'with the root user', condition: isTag, consensus });
  const { fingerprint } = await newTag(alice.client, 'waits for the root user');
  const refused = await refusal(bob.client.submit('ACTIVITY_TYPE_APPROVE_ACTIVITY', { fingerprint }));
  expect(refused).toMatchObject({ status: 403, message: textLike(/could not count/) });
  const newest = async () =>
    (await bob.client.query<{ denials: (Listed & { reason: string })[] }>('list_denials')).denials[0]!;
  await until('it is listed', async () => (await newest()).reason === refused.message);
  expect(await explain((await newest()).denialId, bob.client)).toEqual({
    notExplained: `no policy denied it, but this rule: ${refused.message}`,
  });
  await coordinator.client.reject(fingerprint);
  await remove(policyId);
});

/** A sub-organization with one root user. */
async function child() {
  const key = coordinator.newKey();
  const { subOrganizationId } = await coordinator.client.perform('ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8', {
    subOrganizationName: 'Child',
    rootUsers: [
      {
        userName: 'Owner',
        apiKeys: [{ apiKeyName: 'key', publicKey: key.publicKey, curveType: key.curve }],
        authenticators: [],
        oauthProviders: [],
      },
    ],
    rootQuorumThreshold: 1,
  });
  return { organizationId: subOrganizationId, client: coordinator.clientFor(key, subOrganizationId) };
}

test('to everybody who may list it, and nobody else', async () => {
  const wallet = { walletName: 'x', accounts: [] };
  const { denialId } = await listed(await refusal(alice.client.submit('ACTIVITY_TYPE_CREATE_WALLET', wallet)));
  for (const { client } of [alice, bob]) {
    expect(await explain(denialId, client)).toMatchObject({ proof: { outcome: 'deny-implicit' } });
  }
  const { client } = await child();
  const { organizationId } = coordinator;
  for (const path of ['list_denials', 'explain_activity']) {
    const asked = await refusal(client.query(path, { organizationId, activityId: denialId }));
    expect([path, [400, 401].includes(asked.status)]).toEqual([path, true]);
  }
  expect(await refusal(explain(denialId, client))).toMatchObject({ status: 403 });
  // What voters on an activity may ask, readers of a denial may not.
  for (const [path, more] of [
    ['what_if', { draft: {} }],
    ['list_minimal_approvers', {}],
  ] as const) {
    const asked = refusal(alice.client.query(path, { activityId: denialId, ...more }));
    expect([path, (await asked).status]).toEqual([path, 403]);
  }
});

test('a denial by the policies of the parent, to the parent’s members alone', async () => {
  const { organizationId, client } = await child();
  const email = { otpType: 'OTP_TYPE_EMAIL', contact: 'owner@example.com' } as const;
  const policyId = await coordinator.createPolicy({
    policyName: 'no codes',
    effect: 'EFFECT_DENY',
    condition: "activity.kind == 'INIT_OTP_AUTH'",
  });
  const denied = await refusal(alice.client.submit('ACTIVITY_TYPE_INIT_OTP_AUTH', email, { organizationId }));
  await remove(policyId);
  const { denialId } = await listed(denied, client);
  const activityId = denialId;
  expect(await bob.client.query('explain_activity', { organizationId, activityId })).toMatchObject({
    proof: { outcome: 'deny-explicit', text: 'Denied by “no codes”.', authorityId: coordinator.organizationId },
  });
  expect(await explain(denialId, client)).toEqual({
    notExplained: 'the parent’s policies decided: they are for its own members',
  });
});

describe('the recorded revision', () => {
  type Fact = Awaited<ReturnType<TestCoordinator['events']>>[number];

  /** What `verify` says of the denial, with other data and the chain made to fit. */
  async function verified(change: (data: Readonly<Record<string, unknown>>) => object): Promise<readonly string[]> {
    const name = `denials-${coordinator.organizationId}`;
    const store = new InMemoryEventStore();
    const sealed = (events: readonly Fact[], data: (event: Fact) => unknown) => {
      let link = GENESIS_HASH;
      return events.map((event) => {
        const { stream, revision, id, type } = event;
        const { hash: _hash, ...metadata } = event.metadata as EventMetadata;
        const said = data(event);
        link = chainEvent(link, { stream, revision, id, type, data: said, metadata });
        return { id, type, data: said, metadata: { ...metadata, hash: link } };
      });
    };
    const own = await coordinator.events();
    await store.append(
      own[0]!.stream,
      sealed(own, ({ data }) => data),
      'no-stream',
    );
    const denials = (await coordinator.events(name)).slice(0, 1);
    const forged = sealed(denials, ({ data }) => change(data as Readonly<Record<string, unknown>>));
    await store.append(name, forged, 'no-stream');
    const { findings } = await verifyHistory(store, { registry: buildRegistry(activities) });
    return findings.flatMap(({ stream, problem }) => (stream === name ? [problem] : []));
  }

  test.each([
    ['beyond the stream', (end: number) => ({ revision: end + 1 }), /is based on revision \d+ of organization/],
    ['below it', () => ({ revision: -1 }), /is based on revision -1 of/],
    ['no whole number', () => ({ revision: 1.5 }), /is based on revision 1.5 of/],
    ['of a parent without a stream', () => ({ authority: { organizationId: 'x', revision: 0 } }), /organization `x`/],
  ])('%s is a finding', async (_what, other, finding) => {
    const end = (await coordinator.events()).length - 1;
    expect(await verified((data) => ({ ...data, ...other(end) }))).toEqual([expect.stringMatching(finding)]);
  });

  test('and none is not, nor one as it was', async () => {
    expect(await verified((data) => data)).toEqual([]);
    expect(await verified(({ revision: _revision, ...data }) => data)).toEqual([]);
  });
});
