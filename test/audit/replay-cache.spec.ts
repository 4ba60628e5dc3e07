import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BrokenChain, type EventMetadata } from '../../src/ledger/chain.js';
import type { EventReader, RecordedEvent } from '../../src/ledger/event-store.js';
import { emptyTail, seal } from '../../src/ledger/seal.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { foldTo } from '../../src/audit/timeline/fold-to.js';
import { OrganizationReplay } from '../../src/audit/timeline/organization-replay.js';
import { ReplayCache } from '../../src/audit/timeline/replay-cache.js';
import { startCoordinator, type TestCoordinator } from '../../src/testing/index.js';

/** Events between two states that are kept. */
const every = 10;

let coordinator: TestCoordinator;
let organizationId: string;
let history: readonly RecordedEvent[];
let folder: string;

beforeAll(async () => {
  coordinator = await startCoordinator({ seed: 'replay again' });
  for (let number = 0; number < 12; number++) await coordinator.createUser(`User ${number}`);
  organizationId = coordinator.organizationId;
  history = (await coordinator.recorded()).filter(({ stream }) => stream === `organization-${organizationId}`);
  expect(history.length).toBeGreaterThan(4 * every);
});

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'replay-cache-'));
});

afterEach(() => rm(folder, { recursive: true }));
afterAll(() => coordinator.close());

interface Counted extends EventReader {
  /** Revisions that were read, in order. */
  readonly seen: number[];
}

/** A store with these events and nothing else. */
async function storeOf(events: readonly Pick<RecordedEvent, 'id' | 'type' | 'data' | 'metadata'>[]): Promise<Counted> {
  const store = new InMemoryEventStore();
  const stream = `organization-${organizationId}`;
  const written = events.map(({ id, type, data, metadata }) => ({ id, type, data, metadata }));
  await store.append(stream, written, 'no-stream');
  const seen: number[] = [];
  return {
    seen,
    async *read(name, from) {
      for await (const event of store.read(name, from)) {
        seen.push(event.revision);
        yield event;
      }
    },
    subscribe: (options) => store.subscribe(options),
    head: () => store.head(),
    close: () => store.close(),
  };
}

const open = (store: EventReader) =>
  OrganizationReplay.open(store, organizationId, { every, cache: new ReplayCache(folder) });

/** As it is without a cache, at every event. */
async function expectSame(replay: OrganizationReplay, store: EventReader): Promise<void> {
  const plain = await OrganizationReplay.open(store, organizationId);
  expect(replay.last).toBe(plain.last);
  for (let revision = plain.last; revision >= 0; revision--) {
    expect(await replay.stateAt(revision)).toEqual((await foldTo(store, organizationId, revision)).organization);
    expect(replay.typeOf(revision)).toBe(plain.typeOf(revision));
    expect(replay.decisionOf(revision)).toBe(plain.decisionOf(revision));
    const { metadata, position } = history[revision]!;
    const { at } = metadata as EventMetadata;
    for (const point of [{ by: 'time', time: at } as const, { by: 'position', position } as const]) {
      expect(replay.revisionAt(point)).toBe(plain.revisionAt(point));
    }
  }
}

const changedName = (events: readonly RecordedEvent[], revision: number) =>
  events.map((event) =>
    event.revision === revision ? { ...event, data: { ...(event.data as object), userName: 'Mallory' } } : event,
  );

/** An event that names a user, in the middle of what is kept. */
const aUser = () => history.find(({ type, revision }) => type === 'UserCreated' && revision > 2 * every)!.revision;

test('a later pass begins where the one before has left a state', async () => {
  const store = await storeOf(history);
  await expectSame(await open(store), store);
  store.seen.length = 0;
  const again = await open(store);
  expect(store.seen[0]).toBe(again.last - (again.last % every));
  expect(store.seen.length).toBeLessThanOrEqual(every + 1);
  // The farthest from the state before it, which is read and confirmed, and gone on from.
  store.seen.length = 0;
  await again.stateAt(2 * every - 1);
  expect(store.seen.length).toBeLessThanOrEqual(every + 2);
  await expectSame(again, store);
});

test('a later pass goes on with what was recorded meanwhile, and leaves that too', async () => {
  await open(await storeOf(history.slice(0, 2 * every + 3)));
  const store = await storeOf(history);
  const further = await open(store);
  expect(store.seen[0]).toBe(2 * every);
  await expectSame(further, store);
  store.seen.length = 0;
  await expectSame(await open(store), store);
  expect(store.seen[0]).toBeGreaterThan(2 * every);
});

test('an event that was changed since is not served: whoever looks at it is told', async () => {
  await open(await storeOf(history));
  const revision = aUser();
  const replay = await open(await storeOf(changedName(history, revision)));
  await expect(replay.stateAt(revision)).rejects.toThrow(BrokenChain);
  const later = history.length - 1;
  const genuine = await foldTo(await storeOf(history), organizationId, later);
  expect(await replay.stateAt(later)).toEqual(genuine.organization);
});

test('a history that was made anew is folded anew', async () => {
  await open(await storeOf(history));
  const facts = changedName(history, aUser()).map(({ id, type, data, metadata }) => {
    const { hash: _hash, schemaVersion: _version, ...said } = metadata as EventMetadata;
    return { id, type, data, metadata: said };
  });
  const store = await storeOf(seal(`organization-${organizationId}`, emptyTail, facts).events);
  const replay = await open(store);
  expect(store.seen).toContain(0);
  expect([...(await replay.stateAt(replay.last)).users.values()].map(({ userName }) => userName)).toContain('Mallory');
  await expectSame(replay, store);
});

test.each(['.index', '.snapshot'])(
  'files %s that are not what was written are done without, and made again',
  async (kind) => {
    const store = await storeOf(history);
    await open(store);
    const files = (await readdir(folder, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile());
    expect(files.map(({ name }) => name.replace(/.*\./, '.'))).toEqual(expect.arrayContaining(['.index', '.snapshot']));
    for (const { parentPath, name } of files) {
      const path = join(parentPath, name);
      expect((await stat(path)).mode & 0o077).toBe(0);
      if (!name.endsWith(kind)) continue;
      const bytes = await readFile(path);
      bytes[Math.floor(bytes.length / 2)]! ^= 1;
      await writeFile(path, bytes);
    }
    store.seen.length = 0;
    await expectSame(await open(store), store);
    expect(store.seen[0]).toBe(0);
    store.seen.length = 0;
    await open(store);
    expect(store.seen[0]).toBeGreaterThan(0);
  },
);

test('where nothing can be written it is folded from the start each time', async () => {
  const file = join(folder, 'no folder');
  await writeFile(file, '');
  const store = await storeOf(history);
  for (let pass = 0; pass < 2; pass++) {
    store.seen.length = 0;
    const replay = await OrganizationReplay.open(store, organizationId, { every, cache: new ReplayCache(file) });
    expect(store.seen[0]).toBe(0);
    await expectSame(replay, store);
  }
});
