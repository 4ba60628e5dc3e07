import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { organizationStream } from '../../src/domain/organization/organization.js';
import { chainEvent, GENESIS_HASH } from '../../src/ledger/chain.js';
import type { RecordedEvent } from '../../src/ledger/event-store.js';
import { bytesOf } from '../../src/ledger/fold-cache.js';
import { nothingLoaded, type LoadedOrganization } from '../../src/ledger/loaded-organization.js';
import type { Point, StateAnswer, StateQuestion } from '../../src/read-models/states.js';
import { CachedStates, usualBounds, type StateBounds } from '../../src/audit/timeline/cached-states.js';
import { put } from '../../src/domain/organization/slices.js';
import { queryTasks } from '../coordinator/query-tasks.js';

/** Events between two states that are kept. */
const every = 10;
const length = 95;
const uuid = (number: number) => `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;
const acme = uuid(1);

/** A chained history: the founding, then a policy with each event, or a new name. */
function historyOf(organizationId: string, count = length, notes = '', name?: string): readonly RecordedEvent[] {
  let hash = GENESIS_HASH;
  const stream = organizationStream(organizationId);
  return Array.from({ length: count }, (_, revision) => {
    const policyId = uuid(1_000 + revision);
    const [type, data] =
      revision === 0
        ? ['OrganizationCreated', { organizationId, name: 'Acme' }]
        : name !== undefined
          ? ['OrganizationRenamed', { name }]
          : ['PolicyCreated', { policyId, policyName: `number ${revision}`, effect: 'EFFECT_ALLOW', notes }];
    const metadata = { at: revision * 1_000, schemaVersion: 1, $correlationId: 'none', $causationId: 'none' };
    hash = chainEvent(hash, { stream, revision, id: `event ${revision}`, type, data, metadata });
    const place = { stream, revision, position: BigInt(revision * 3), id: `event ${revision}` };
    return { ...place, type, data, metadata: { ...metadata, hash } };
  });
}

/** A store with these histories, which counts. */
function storeOf(...histories: readonly (readonly RecordedEvent[])[]) {
  const seen: number[] = [];
  return {
    seen,
    async *read(stream: string, from = 0) {
      for (const event of histories.find(([first]) => first!.stream === stream)?.slice(from) ?? []) {
        seen.push(event.revision);
        yield await Promise.resolve(event);
      }
    },
  };
}

let stateFolder: string;
type Tasks = ReturnType<typeof queryTasks>;

const opened: Tasks[] = [];

beforeEach(async () => {
  stateFolder = await mkdtemp(join(tmpdir(), 'kept-states-'));
});

afterEach(async () => {
  for (const tasks of opened.splice(0)) await tasks.close();
  await rm(stateFolder, { recursive: true });
});

/** A thread of a new process, with the states of the one before. */
function tasksOn(store: ReturnType<typeof storeOf>, bounds?: Partial<StateBounds>, steps?: number): Tasks {
  const given = steps === undefined ? {} : { steps };
  const tasks = queryTasks({ store, stateFolder, every, bounds: { ...usualBounds, ...bounds }, ...given });
  opened.push(tasks);
  return tasks;
}

const newest: StateQuestion = { asks: 'state', at: { by: 'newest' }, lists: [], after: 0 };
const ask = (
  tasks: Tasks,
  question: StateQuestion = newest,
  organizationId = acme,
  family = uuid(900),
): Promise<StateAnswer> =>
  tasks.states({ family, organizationId }, { organizationId, question, now: 0 }, () => undefined);

async function files(): Promise<{ path: string; bytes: number }[]> {
  const entries = await readdir(stateFolder, { recursive: true, withFileTypes: true });
  return Promise.all(
    entries
      .filter((entry) => entry.isFile())
      .map(async ({ parentPath, name }) => {
        const path = join(parentPath, name);
        return { path: path.slice(stateFolder.length + 1), bytes: (await stat(path)).size };
      }),
  );
}
const sum = (some: readonly { readonly bytes: number }[]) => some.reduce((bytes, one) => bytes + one.bytes, 0);

const points: readonly Point[] = [0, 9, 10, 11, 42, 90, length - 1].flatMap((revision) => [
  { by: 'revision', revision } as const,
  { by: 'position', position: BigInt(revision * 3 + 1) } as const,
  { by: 'time', time: revision * 1_000 + 1 } as const,
]);
const questions: readonly StateQuestion[] = [
  newest,
  ...points.map((at): StateQuestion => ({ asks: 'state', at, lists: [], after: 0 })),
  ...points.map((from): StateQuestion => ({ asks: 'changes', from, to: { by: 'newest' }, after: 0 })),
];

test('a question goes on from the nearest state that one before has come by, and is answered as without', async () => {
  const history = historyOf(acme);
  const plain = queryTasks({ store: storeOf(history) });
  opened.push(plain);
  await ask(tasksOn(storeOf(history)));
  expect((await files()).map(({ path }) => Number(/(\d+)\.snapshot$/.exec(path)?.[1])).sort((a, b) => a - b)).toEqual([
    10, 20, 30, 40, 50, 60, 70, 80, 90,
  ]);
  const store = storeOf(history);
  const tasks = tasksOn(store);
  for (const question of questions) {
    store.seen.length = 0;
    expect(await ask(tasks, question)).toEqual(await ask(plain, question));
    const point = question.asks === 'state' ? question.at : question.from;
    const wanted =
      point.by === 'newest'
        ? length - 1
        : point.by === 'revision'
          ? point.revision
          : point.by === 'time'
            ? Math.floor(point.time / 1_000)
            : Number(point.position) / 3;
    const state = Math.floor(wanted / every) * every;
    const { seen } = store;
    const last = seen.findLastIndex((revision, index) => revision !== seen[index - 1]! + 1);
    // What is folded begins with the state's last event, or behind it. Each state that was looked at before took one event.
    expect(state === 0 ? [0] : [state, state + 1]).toContain(seen[last]);
    expect(last).toBeLessThanOrEqual(5);
  }
  store.seen.length = 0;
  await ask(tasks);
  expect(store.seen).toEqual([90, 91, 92, 93, 94]);
});

test('a file that is not what was written is not believed, nor the state of another history', async () => {
  const history = historyOf(acme);
  const plain = queryTasks({ store: storeOf(history) });
  opened.push(plain);
  const wanted = await ask(plain);
  await ask(tasksOn(storeOf(history)));
  const whole = await files();
  for (const { path } of whole) {
    const file = join(stateFolder, path);
    expect((await stat(file)).mode & 0o077).toBe(0);
    const bytes = await readFile(file);
    // A name in the state.
    const at = bytes.indexOf('number 1');
    bytes[at + 'number '.length]! ^= 2;
    await writeFile(file, bytes);
  }
  const store = storeOf(history);
  expect(await ask(tasksOn(store), newest)).toEqual(wanted);
  expect(store.seen.filter((revision) => revision === 0)).toEqual([0]);
  expect(store.seen).toHaveLength(length);
  // They were made again.
  expect(await files()).toEqual(whole);

  const other = storeOf(historyOf(acme, length, 'other'));
  const answer = await ask(tasksOn(other), newest);
  expect(answer.elements.texts.every((text) => text.includes('"other"'))).toBe(true);
  expect(other.seen).toContain(0);
  other.seen.length = 0;
  expect(await ask(tasksOn(other), newest)).toEqual(answer);
  expect(other.seen[0]).toBe(90);
});

test('a history with fewer events than lie between two states leaves nothing', async () => {
  await ask(tasksOn(storeOf(historyOf(acme, every))));
  expect(await files()).toEqual([]);
});

test('what is kept is bounded in bytes: of a state, an organization, a family and all', async () => {
  const organizations = [11, 12, 13].map(uuid);
  const families = [901, 902].map(uuid);
  const histories = organizations.map((organizationId) => historyOf(organizationId, length, 'x'.repeat(100)));
  const store = storeOf(...histories);
  const askAll = async (bounds: Partial<StateBounds>) => {
    await rm(stateFolder, { recursive: true });
    const tasks = tasksOn(store, bounds);
    for (const family of families) for (const id of organizations) await ask(tasks, newest, id, family);
    return files();
  };
  const unbounded = await askAll({});
  expect(unbounded).toHaveLength(6 * 9);
  const ofOne = sum(unbounded) / 6;
  const largest = Math.max(...unbounded.map(({ bytes }) => bytes));

  const small = await askAll({ one: largest / 2 });
  expect(Math.max(...small.map(({ bytes }) => bytes))).toBeLessThanOrEqual(largest / 2);
  expect(small.length).toBeGreaterThan(0);

  const ofOrganization = await askAll({ organization: ofOne / 2 });
  for (const family of families) {
    for (const id of organizations) {
      const own = ofOrganization.filter(({ path }) => path.startsWith(join(family, id)));
      expect(sum(own)).toBeLessThanOrEqual(ofOne / 2);
      // The last ones that were used.
      expect(own.map(({ path }) => path)).toContain(join(family, id, '90.snapshot'));
    }
  }

  const ofFamily = await askAll({ family: ofOne });
  for (const family of families) {
    const own = ofFamily.filter(({ path }) => path.startsWith(family));
    expect(sum(own)).toBeLessThanOrEqual(ofOne);
    expect(own.map(({ path }) => path)).toContain(join(family, organizations.at(-1)!, '90.snapshot'));
  }

  const ofAll = await askAll({ all: ofOne * 2 });
  expect(sum(ofAll)).toBeLessThanOrEqual(ofOne * 2);
  // A later process holds to them too, and begins with those that were used least lately.
  const later = tasksOn(store, { all: ofOne });
  await ask(later, { ...newest, at: { by: 'revision', revision: 35 } }, uuid(11), families[0]);
  const left = await files();
  expect(sum(left)).toBeLessThanOrEqual(ofOne);
  expect(left.map(({ path }) => path)).toContain(join(families[0]!, uuid(11), '30.snapshot'));
});

describe('a state of more than 4 MiB', () => {
  const most = 4 * 1024 * 1024;
  const family = uuid(900);
  const stateNamed = (name: string): LoadedOrganization => {
    const loaded = nothingLoaded();
    loaded.organization.organizationId = acme;
    loaded.organization.name = name;
    // Of many small things, memory holds more than a file does.
    for (const tagId of Array.from({ length: 100 }, (_, at) => uuid(at))) {
      put(loaded.organization, 'userTags', tagId, { tagId, tagName: '', createdAt: 0, updatedAt: 0 });
    }
    loaded.revision = 10;
    return loaded;
  };
  const bytesOfFile = async (bounds: StateBounds, loaded: LoadedOrganization) => {
    await new CachedStates(stateFolder, bounds).keep(family, loaded);
    const [file] = await files();
    if (file) await rm(join(stateFolder, file.path));
    return file?.bytes;
  };
  const unbounded = { one: Infinity, organization: Infinity, family: Infinity, all: Infinity };

  test('is not written, going by what it takes in memory', async () => {
    const empty = bytesOf(stateNamed(''));
    const fits = stateNamed('x'.repeat(most - empty));
    expect(await bytesOfFile(usualBounds, fits)).toBe(await bytesOfFile(unbounded, fits));
    // Its file would be small enough.
    const larger = stateNamed('x'.repeat(most - empty + 1));
    expect(await bytesOfFile(unbounded, larger)).toBeLessThan(most);
    expect(await bytesOfFile(usualBounds, larger)).toBeUndefined();
  });

  test('is removed where its file is larger than that', async () => {
    const loaded = stateNamed('ж'.repeat(most / 2));
    expect(bytesOf(loaded)).toBeLessThan(most);
    expect(await bytesOfFile(unbounded, loaded)).toBeGreaterThan(most);
    expect(await bytesOfFile(usualBounds, loaded)).toBeUndefined();
  });
});

test('a question at an earlier point leaves the later states', async () => {
  const store = storeOf(historyOf(acme));
  const tasks = tasksOn(store);
  await ask(tasks);
  const before = (await files()).length;
  await rm(join(stateFolder, uuid(900), acme, '20.snapshot'));
  await ask(tasksOn(store), { ...newest, at: { by: 'revision', revision: 25 } });
  expect(await files()).toHaveLength(before);
});

test('a history that is too long for one question is answered to who asks again', async () => {
  const steps = 300_000;
  // A byte takes a quarter of a step.
  const store = storeOf(historyOf(acme, length, '', 'x'.repeat(Math.ceil((4.4 * steps) / length))));
  const question: StateQuestion = { ...newest, lists: ['users'] };
  const tasks = tasksOn(store, {}, steps);
  await expect(ask(tasks, question)).rejects.toMatchObject({ code: 'RESOURCE_EXHAUSTED' });
  expect((await ask(tasks, question)).reached[0]).toMatchObject({ revision: String(length - 1) });
});
