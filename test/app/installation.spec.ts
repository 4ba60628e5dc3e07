import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lockDataFolder } from '../../src/app/data-folder.js';
import type { EventStore } from '../../src/ledger/event-store.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { install, RootFile, type RootCredentials } from '../../src/app/installation.js';
import { ManualClock, SeededRandomness } from '../../src/testing/index.js';
import { tellFlushed } from '../files/flushed.js';
import { saidWithoutRoom } from '../files/without-room.js';

const world = (store: EventStore, seed = 'installation') => ({
  store,
  clock: new ManualClock(Date.UTC(2026, 0, 1)),
  randomness: new SeededRandomness(seed),
});

async function recorded(store: EventStore): Promise<string[]> {
  const types: string[] = [];
  for await (const { data } of store.read('installation-root')) {
    const { organizationId } = data as { organizationId: string };
    for await (const { type } of store.read(`organization-${organizationId}`)) types.push(type);
  }
  return types;
}

const founded = ['OrganizationCreated', 'UserCreated', 'ApiKeyCreated', 'RootQuorumUpdated'];

/** A store that fails, once, before its n-th append. */
class Failing extends InMemoryEventStore {
  constructor(
    private left: number,
    private readonly asked: () => void = () => undefined,
  ) {
    super();
  }

  override append(...args: Parameters<InMemoryEventStore['append']>): ReturnType<InMemoryEventStore['append']> {
    this.asked();
    if (this.left-- === 0) return Promise.reject(new Error('power cut'));
    return super.append(...args);
  }
}

test.each([0, 1])('cut off before append %i, the next start goes on with the same credentials', async (appends) => {
  const store = new Failing(appends);
  let root: Omit<RootCredentials, 'apiUrl'> | undefined;
  const remember = (credentials: Omit<RootCredentials, 'apiUrl'> | undefined) => {
    root = credentials;
    return Promise.resolve();
  };
  await expect(install({ rootApiPublicKey: undefined }, world(store), root, remember)).rejects.toThrow('power cut');
  const first = root;
  expect(first?.apiPrivateKey).toMatch(/^[0-9a-f]{64}$/);
  const { founding, isNew } = await install({ rootApiPublicKey: undefined }, world(store, 'later'), root, remember);
  expect(root).toEqual(first);
  expect(founding).toMatchObject({ organizationId: first!.organizationId, apiPublicKey: first!.apiPublicKey });
  expect(isNew).toBe(appends === 0);
  expect(await recorded(store)).toEqual(founded);
});

test('a later start changes nothing, whatever key it is given', async () => {
  const store = new InMemoryEventStore();
  const remembered: unknown[] = [];
  const remember = (root: unknown) => Promise.resolve(void remembered.push(root));
  const { founding } = await install({ rootApiPublicKey: undefined }, world(store), undefined, remember);
  const again = await install({ rootApiPublicKey: `02${'1'.repeat(64)}` }, world(store, 'other'), undefined, remember);
  expect(again).toEqual({ founding, isNew: false });
  expect(remembered).toHaveLength(1);
  expect(await recorded(store)).toEqual(founded);
});

test('two that install on one store at the same time end with the same root organization', async () => {
  const store = new InMemoryEventStore();
  const files: Record<string, { readonly organizationId: string } | undefined> = {};
  const both = await Promise.all(
    ['one', 'other'].map((seed) =>
      install({ rootApiPublicKey: undefined }, world(store, seed), undefined, (root) => {
        files[seed] = root;
        return Promise.resolve();
      }),
    ),
  );
  // A key that opens nothing must not be left in anybody's hands.
  const kept = Object.values(files).flatMap((root) => root?.organizationId ?? []);
  expect(kept).toEqual([both[0]!.founding.organizationId]);
  expect(both[0]!.founding).toEqual(both[1]!.founding);
  expect(both.map(({ isNew }) => isNew).sort()).toEqual([false, true]);
  expect(await recorded(store)).toEqual(founded);
});

describe('root.json', () => {
  let folder: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'countersign-root-'));
  });

  afterEach(() => rm(folder, { recursive: true, force: true }));

  test('is for its owner only, also when it was open to others before', async () => {
    const file = join(folder, 'deeper', 'root.json');
    const root = new RootFile(join(folder, 'deeper'));
    expect(await root.read()).toBeUndefined();
    await root.write({ organizationId: 'one' });
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect((await stat(join(folder, 'deeper'))).mode & 0o777).toBe(0o700);
    await rm(file);
    await writeFile(file, '{}', { mode: 0o644 });
    await root.write({ organizationId: 'two' });
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await root.read()).toEqual({ organizationId: 'two' });
    expect(await readFile(file, 'utf8')).toBe('{\n  "organizationId": "two"\n}\n');
  });

  test('is on the disk, in its folder, before the event that names its key', async () => {
    const steps: string[] = [];
    const store = new Failing(Infinity, () => steps.push('event'));
    const root = new RootFile(folder);
    await tellFlushed(
      folder,
      (flushed) => steps.push(flushed),
      () =>
        install({ rootApiPublicKey: undefined }, world(store), undefined, (credentials) =>
          root.writeFounding(credentials),
        ),
    );
    expect(steps).toEqual(['root.json.founding.new', 'folder with root.json.founding', 'event', 'event']);
    expect(await readdir(folder)).toEqual(['root.json.founding']);
  });

  test('stays as it is where there is no room for another, with nothing beside it', async () => {
    await new RootFile(folder).write({ organizationId: 'one' });
    const said = saidWithoutRoom(
      'app/installation.js',
      `new tried.RootFile(process.argv[1]).write({ organizationId: 'two' })`,
      folder,
    );
    expect(said).toContain('EFBIG');
    expect(await readdir(folder)).toEqual(['root.json']);
    expect(await new RootFile(folder).read()).toEqual({ organizationId: 'one' });
  });

  test('that is broken is told by its name', async () => {
    await writeFile(join(folder, 'root.json'), 'x');
    await expect(new RootFile(folder).read()).rejects.toThrow(
      /root\.json cannot be read .*: repair it, or move it away/,
    );
  });
});

test('a data folder belongs to one coordinator at a time', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'countersign-lock-'));
  try {
    const release = lockDataFolder(folder);
    expect(() => lockDataFolder(folder)).toThrow(
      `\`${folder}\` is in use by another coordinator: give each coordinator its own DATA_DIR`,
    );
    expect((await stat(join(folder, 'in-use.lock'))).mode & 0o777).toBe(0o600);
    release();
    lockDataFolder(folder)();
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
