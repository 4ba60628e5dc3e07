import { writeFile } from 'node:fs/promises';
import { organizationStream } from '../../src/domain/organization/organization.js';
import { activities } from '../../src/activities/index.js';
import { buildRegistry } from '../../src/decide/registry.js';
import { Steps } from '../../src/domain/steps.js';
import { responseCapacity } from '../../src/audit/simulate/what-if-report.js';
import { RequestedEvents } from '../../src/audit/timeline/requested-events.js';
import { readDraft } from '../../src/audit/simulate/parse-draft.js';
import { boundedWhatIf, whatIf } from '../../src/audit/simulate/what-if.js';
import type { ResponseOf } from '../../src/client/activity-client.js';
import type { StampingClient } from '../../src/client/stamping-client.js';
import type { EventReader } from '../../src/ledger/event-store.js';
import { startCoordinator, type TestCoordinator, type TestUser } from '../../src/testing/index.js';
import { TypingUser } from '../cli/typed.js';
import { refusal } from '../e2e/exchange.js';
import { aPolicy } from '../activities/facts.js';
import { renamed, streamOf } from './long-stream.js';
import { queryTasks } from '../coordinator/query-tasks.js';
import { storeOf } from './store-of.js';

type Answer = ResponseOf<'what_if'>;

const registry = buildRegistry(activities);
const tag = 'ACTIVITY_TYPE_CREATE_USER_TAG';
const open = {
  policies: [{ policyName: 'tags', effect: 'EFFECT_ALLOW' as const, condition: "activity.kind == 'CREATE_USER_TAG'" }],
};

let coordinator: TestCoordinator;
let alice: TestUser;

beforeAll(async () => {
  coordinator = await startCoordinator({ seed: 'what_if', at: new Date() });
  alice = await coordinator.createUser('Alice');
  for (const name of ['One', 'Two', 'Three']) {
    await expect(alice.client.submit(tag, { userTagName: name, userIds: [] })).rejects.toThrow();
  }
  await coordinator.client.submit(tag, { userTagName: 'Four', userIds: [] });
});
afterAll(() => coordinator.close());

const onStore = async (plain: object, bounds: { meter?: Steps; room?: typeof responseCapacity } = {}) =>
  whatIf(await storeOf(await coordinator.recorded()), {
    organizationId: coordinator.organizationId,
    registry,
    draft: readDraft(plain, registry.policyEnvironment),
    now: coordinator.clock.now(),
    ...bounds,
  });

test('a coordinator says what the command says on its store', async () => {
  const answer = await coordinator.client.query('what_if', { draft: open });
  expect(answer.counts['newly-allowed']).toBe(3);
  expect(answer).toEqual(JSON.parse(JSON.stringify(await onStore(open))));
  const from = answer.last + 1;
  expect(await coordinator.client.query('what_if', { draft: open, from })).toMatchObject({
    from,
    counts: { 'newly-allowed': 0 },
  });
});

test('the command asks a coordinator, and fails where something is newly allowed', async () => {
  const user = await TypingUser.sitDown();
  try {
    await writeFile(user.path('root.json'), JSON.stringify({ ...coordinator.root, apiUrl: coordinator.url }));
    await user.json(['login', '--key-file', 'root.json']);
    await writeFile(user.path('draft.json'), JSON.stringify(open));
    const asks = ['policies', 'what-if', '--profile', 'default', '--file', 'draft.json'];
    const { code, out, error } = await user.types([...asks, '--fail-on', 'new-allow']);
    expect([code, error]).toEqual([1, '']);
    expect(out).toMatch(/\nNewly allowed \(3\):\n/);
    expect(await user.json(asks)).toEqual(await coordinator.client.query('what_if', { draft: open }));
    expect((await user.types([...asks, '--data-dir', '.'])).code).toBe(2);
  } finally {
    await user.leaves();
  }
});

test('only members of the root quorum may ask', async () => {
  expect(await refusal(alice.client.query('what_if', { draft: open }))).toMatchObject({ status: 403 });
});

test('a draft that cannot hold is refused, with what is wrong', async () => {
  const refused = async (draft: object, from?: number) =>
    refusal(coordinator.client.query('what_if', { draft, ...(from === undefined ? {} : { from }) }));
  expect(await refused({ policies: [{ ...open.policies[0], condition: 'activity.kin == 1' }] })).toMatchObject({
    status: 400,
    details: [{ fieldViolations: [{ field: 'policies[0].condition' }] }, { turnkeyErrorCode: 'REQUEST_INVALID' }],
  });
  expect(await refused({})).toMatchObject({ status: 400 });
  const many = Array.from({ length: 10_000 }, (_, at) => ({ policyName: `policy ${at}`, effect: 'EFFECT_ALLOW' }));
  expect(await refused({ policies: many })).toMatchObject({ status: 400 });
  expect(await refused(open, 1_000_000)).toMatchObject({ status: 404 });
});

test('it ends where its steps are used up, and says how far it came', async () => {
  const whole = await onStore(open);
  const meter = new Steps(Infinity);
  await onStore(open, { meter });
  const cut = await onStore(open, { meter: new Steps(meter.spent * 0.5) });
  expect(cut.last).toBeGreaterThan(0);
  expect(cut.notComplete).toMatch(`used up at revision ${cut.last}: what came later was not decided again`);
  expect(cut.last).toBeLessThan(whole.last);
  expect(whole).not.toHaveProperty('notComplete');
});

test('what a draft costs is counted: names are sought in all users', async () => {
  const [one, many] = [new Steps(Infinity), new Steps(Infinity)];
  await onStore({ withoutUsers: ['Nobody'] }, { meter: one });
  const withoutUsers = Array.from({ length: 100 }, (_, at) => `Nobody ${at}`);
  const userTags = Array.from({ length: 100 }, () => ({ tag: 'Four', users: withoutUsers }));
  await onStore({ withoutUsers, userTags }, { meter: many });
  expect(many.spent).toBeGreaterThan(2 * one.spent);
});

test('one question has 100 million steps, however much its draft names', async () => {
  const users = Array.from({ length: 100 }, () => 'Nobody');
  const userTags = Array.from({ length: 50 }, () => ({ tag: 'none', users }));
  const draft = readDraft({ userTags }, registry.policyEnvironment);
  const policies = Array.from({ length: 200 }, (_, at) => aPolicy(`policy ${at}`, `number ${at}`));
  const answerTo = (renamings: number) => {
    const history = [...streamOf('acme', [...policies, ...renamed(renamings, 'Acme')])];
    const events = new RequestedEvents(
      ({ stream, from, most = 1 }) => {
        const page = stream === organizationStream('acme') ? history.slice(from, from + most) : [];
        return Promise.resolve({ events: page, isEnd: page.length < most });
      },
      { end: BigInt(history.length) },
    );
    return boundedWhatIf(events, { organizationId: 'acme', registry, draft, now: 0, hidesParent: true });
  };
  // Ten thousand names are looked for among up to 200 for each policy, and among 200 for each later event: half a million steps.
  expect(await answerTo(50)).not.toHaveProperty('notComplete');
  const { last, notComplete } = await answerTo(300);
  expect(notComplete).toMatch(`used up at revision ${last}`);
  expect(last).toBeLessThan(310);
});

test('of the states at the end 200 differences are told', async () => {
  const history = [
    ...streamOf(
      'acme',
      Array.from({ length: 200 }, (_, at) => aPolicy(`policy ${at}`, `number ${at}`)),
    ),
  ];
  const hundred = (from: number) => Array.from({ length: 100 }, (_, at) => `number ${from + at}`);
  const draft = {
    policies: hundred(200).map((policyName) => ({ policyName, effect: 'EFFECT_DENY' })),
    changedPolicies: hundred(100).map((policy) => ({ policy, effect: 'EFFECT_DENY' })),
    withoutPolicies: hundred(0),
  };
  const answer = await whatIf(await storeOf(history), {
    organizationId: 'acme',
    registry,
    draft: readDraft(draft, registry.policyEnvironment),
    now: 0,
  });
  expect([answer.differences.length, answer.moreDifferences]).toEqual([200, 100]);
});

test('its answer has a size: newly allowed requests have most of the room', async () => {
  const bytes = { ...responseCapacity.bytes, 'newly-allowed': 1 };
  const answer = await onStore(open, { room: { ...responseCapacity, bytes, characters: 10 } });
  expect(answer.divergences.filter(({ kind }) => kind === 'newly-allowed')).toHaveLength(1);
  expect([answer.counts['newly-allowed'], answer.more]).toEqual([3, 2]);
  expect(answer.divergences[0]!.was).toMatch(/^.{10}…$/);
});

test('a family has one at a time and another waiting, and a stranger is answered meanwhile', async () => {
  const { organizationId } = coordinator;
  const store = await storeOf(await coordinator.recorded());
  let goOn = (): void => undefined;
  const held = new Promise<void>((resolve) => (goOn = resolve));
  let [reading, most] = [0, 0];
  const slow: Pick<EventReader, 'read' | 'head'> = {
    head: async () => {
      most = Math.max(most, ++reading);
      await held;
      reading--;
      return store.head();
    },
    read: (stream, from) => store.read(stream, from),
  };
  const tasks = queryTasks({ store: slow });
  const draft = { withoutUsers: ['Alice'] };
  const ask = () =>
    tasks.whatIf({ family: organizationId, organizationId }, { organizationId, draft, now: 0 }, () => undefined);
  const both = [ask(), ask()];
  await expect(ask()).rejects.toMatchObject({ code: 'RESOURCE_EXHAUSTED' });
  goOn();
  expect((await Promise.all(both)).map((one) => one.counts)).toEqual([expect.anything(), expect.anything()]);
  expect(most).toBe(1);
  await tasks.close();
});

test('a thread that was lost is replaced', async () => {
  const { organizationId } = coordinator;
  const store = await storeOf(await coordinator.recorded());
  const tasks = queryTasks({ store, longestMs: 1 });
  const ask = () =>
    tasks.whatIf(
      { family: organizationId, organizationId },
      { organizationId, draft: { withoutUsers: ['Alice'] }, now: 0 },
      () => undefined,
    );
  await expect(ask()).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  await expect(ask()).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  await tasks.close();
});

test('in a sub-organization the parent’s decisions are its own; a member of the parent sees what becomes of them', async () => {
  const key = coordinator.newKey();
  const { result } = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8', {
    subOrganizationName: 'Customer',
    rootQuorumThreshold: 1,
    rootUsers: [
      {
        userName: 'Customer',
        userEmail: 'customer@example.com',
        apiKeys: [{ apiKeyName: 'key', publicKey: key.publicKey, curveType: key.curve }],
        authenticators: [],
        oauthProviders: [],
      },
    ],
  });
  const { subOrganizationId } = Object.values(result)[0] as { readonly subOrganizationId: string };
  const asParent = coordinator.clientFor(coordinator.client.key, subOrganizationId);
  await asParent.submit('ACTIVITY_TYPE_INIT_OTP_AUTH_V3', {
    otpType: 'OTP_TYPE_EMAIL',
    contact: 'customer@example.com',
    appName: 'Countersign',
  });
  const draft = { withoutUsers: ['Nobody'] };
  const ask = (client: StampingClient) => client.query<Answer>('what_if', { draft });
  const own = coordinator.clientFor(key, subOrganizationId);
  expect(await refusal(ask(own))).toMatchObject({ status: 403 });
  expect((await ask(asParent)).unchanged).toMatchObject({ asRecorded: 0, decisions: 1 });
  const feature = { name: 'FEATURE_NAME_SUB_ORGANIZATION_EVENTS', value: '' };
  await coordinator.client.submit('ACTIVITY_TYPE_SET_ORGANIZATION_FEATURE', feature);
  expect((await ask(own)).unchanged).toMatchObject({ asRecorded: 1, decisions: 0 });
});
