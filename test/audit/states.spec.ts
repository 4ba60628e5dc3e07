import { compareStates } from '../../src/audit/timeline/compare-states.js';
import { foldToPoint } from '../../src/audit/timeline/fold-to.js';
import { checkReached } from '../../src/audit/timeline/point-reached.js';
import type { Point } from '../../src/read-models/states.js';
import { allThings, listNames, organizationTold } from '../../src/audit/timeline/state-things.js';
import { organizationStream } from '../../src/domain/organization/organization.js';
import type { EventMetadata } from '../../src/ledger/chain.js';
import type { RecordedEvent } from '../../src/ledger/event-store.js';
import { startCoordinator, type TestCoordinator } from '../../src/testing/index.js';

let coordinator: TestCoordinator;
let organizationId: string;
let events: readonly RecordedEvent[];

/** What was done, each to the revision behind it. */
const behind: Record<string, number> = {};

beforeAll(async () => {
  coordinator = await startCoordinator({ seed: 'states' });
  ({ organizationId } = coordinator);
  const mark = async (name: string) => (behind[name] = (await coordinator.events()).length - 1);
  const { client } = coordinator;
  await mark('start');
  const alice = await coordinator.createUser('Alice');
  await mark('Alice');
  const policyId = await coordinator.createPolicy({ policyName: 'Treasury signs', condition: 'true' });
  await mark('policy');
  await client.submit('ACTIVITY_TYPE_UPDATE_POLICY_V2', { policyId, policyEffect: 'EFFECT_DENY' });
  await mark('policy changed');
  const [{ userId: rootId } = { userId: '' }] = (await client.query<{ users: { userId: string }[] }>('list_users'))
    .users;
  const longer = `${'true && '.repeat(30)}true`;
  await client.submit('ACTIVITY_TYPE_UPDATE_POLICY_V2', { policyId, policyCondition: longer });
  await mark('longer');
  await client.submit('ACTIVITY_TYPE_UPDATE_ROOT_QUORUM', { threshold: 2, userIds: [rootId, alice.userId] });
  await mark('quorum');
  await client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: "it's", userIds: [] });
  await mark('waiting');
  events = await coordinator.events();
});

afterAll(() => coordinator.close());

const store = {
  async *read(stream: string, from = 0) {
    await Promise.resolve();
    if (stream === organizationStream(organizationId)) yield* events.slice(from);
  },
};
const at = async (point: Point) => foldToPoint(store, organizationId, point);
const atRevision = async (revision: number) => (await at({ by: 'revision', revision })).organization;

async function changes(from: string, to: string): Promise<readonly string[]> {
  const [before, after] = [await atRevision(behind[from]!), await atRevision(behind[to]!)];
  return [...compareStates(before, after, coordinator.clock.now())].map(({ text }) => text);
}

test('a point is a revision, a position, a time or the end', async () => {
  const { position, metadata } = events[behind['Alice']!]!;
  const { at: time } = metadata as EventMetadata;
  const revision = behind['Alice']!;
  const wanted = (await at({ by: 'revision', revision })).hash;
  expect((await at({ by: 'position', position })).hash).toBe(wanted);
  // Everything that was recorded in the same millisecond.
  const last = events.filter((event) => (event.metadata as EventMetadata).at <= time).length - 1;
  expect((await at({ by: 'time', time })).revision).toBe(last);
  expect((await at({ by: 'newest' })).revision).toBe(events.length - 1);
  const before = await at({ by: 'time', time: 0 });
  expect(before.revision).toBe(-1);
  expect(() => checkReached(organizationId, { by: 'time', time: 0 }, before.revision)).toThrow(
    `organization \`${organizationId}\` has no event up to 1970-01-01T00:00:00.000Z`,
  );
  const beyond = await at({ by: 'revision', revision: 10_000 });
  expect(() => checkReached(organizationId, { by: 'revision', revision: 10_000 }, beyond.revision)).toThrow(
    `has no event at revision \`10000\`: the last one is ${events.length - 1}`,
  );
});

test('two states differ in words that people read', async () => {
  expect(await changes('start', 'start')).toEqual([]);
  expect(await changes('start', 'Alice')).toContain("user 'Alice' was created");
  expect(await changes('Alice', 'policy')).toEqual(["policy 'Treasury signs' was created"]);
  expect(await changes('policy', 'policy changed')).toEqual([
    "policy 'Treasury signs' was changed: effect 'EFFECT_ALLOW' → 'EFFECT_DENY'",
  ]);
  // A value of 120 characters at most.
  expect(await changes('policy changed', 'longer')).toEqual([
    `policy 'Treasury signs' was changed: condition 'true' → '${'true && '.repeat(15).slice(0, 119)}…`,
  ]);
  expect(await changes('longer', 'quorum')).toEqual(["'Alice' was added to the root quorum (threshold 1 → 2)"]);
  expect(await changes('quorum', 'longer')).toEqual(["'Alice' was removed from the root quorum (threshold 2 → 1)"]);
  const [waiting] = await changes('quorum', 'waiting');
  expect(waiting).toMatch(/^activity ACTIVITY_TYPE_CREATE_USER_TAG `[0-9a-f-]{36}` waits for votes$/);
  const whole = [
    ...compareStates((await at({ by: 'time', time: 0 })).organization, await atRevision(behind['policy']!), 0),
  ];
  expect(whole.map(({ text }) => text)).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/^organization '.*' was founded$/) as string,
      "user 'Alice' was created",
      "policy 'Treasury signs' was created",
    ]),
  );
});

test('a state is told in the words of the wire, without what lies in the vault or proves something', async () => {
  const { organization } = await at({ by: 'newest' });
  const now = coordinator.clock.now();
  expect(organizationTold(organization, now)).toMatchObject({
    organizationId,
    rootQuorum: { threshold: 2 },
    authProxy: { configId: expect.any(String) as string },
  });
  const things = [...allThings(organization)].map((thing) => ({ list: thing.list, ...thing.told(now) }));
  expect(things).toContainEqual(expect.objectContaining({ list: 'policies', policyName: 'Treasury signs' }));
  expect(things).toContainEqual(
    expect.objectContaining({ list: 'activities', intent: { userTagName: "it's", userIds: [] } }),
  );
  for (const { list } of things) expect(listNames).toContain(list);
  const text = JSON.stringify([organizationTold(organization, now), things]);
  expect(text).not.toMatch(/vaultId|codeHash|"signature"|"message"/);
});
