import Database from 'libsql';
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { emptyTail, seal } from '../../src/ledger/seal.js';
import { EventStoreDbEventStore } from '../../src/ledger/stores/event-store-db/event-store-db.js';
import { countersign, Installation, main, stop, type Run } from '../e2e/installation.js';
import { EventStoreDouble } from '../ledger/stores/double/double.js';

// A process starts in half a second, and in ten on a machine with other work to do.
const patience = 180_000;

let installation: Installation;

beforeEach(async () => {
  installation = await Installation.make();
});

afterEach(() => installation.remove());

const problem = (store: string, format: number) =>
  `the event store ${store} has format ${format}, but this release uses format 2: start the release that wrote it, or set ` +
  'DATA_DIR or EVENT_STORE to another store';

/** A start is refused in one line. */
async function expectRefused({ exit, stdout, stderr }: Run, line: string): Promise<void> {
  expect({ ...(await exit), out: stdout(), err: stderr() }).toEqual({
    code: 1,
    signal: null,
    out: '',
    err: `countersign cannot start: ${line}\n`,
  });
}

/** Of a file's content: jest takes minutes to tell how two files differ. */
const digest = (file: string) =>
  readFile(file).then(
    (bytes) => createHash('sha256').update(bytes).digest('hex'),
    () => 'a folder',
  );

describe('SQLite', () => {
  const folder = async () =>
    Promise.all(
      (await readdir(installation.dataDir))
        // A reader marks its place in the index of the log.
        .filter((name) => !/\.(lock|pid|db-shm)$/.test(name))
        .map(async (name) => [name, await digest(join(installation.dataDir, name))]),
    );

  test.each([
    ['a later', 3],
    ['an earlier', 1],
  ])(
    'a start on a store of %s format is refused, and changes no file',
    async (_which, format) => {
      await stop(await installation.start());
      const file = join(installation.dataDir, 'events.db');
      const database = new Database(file);
      database.exec(`PRAGMA user_version = ${format}`);
      database.close();
      const before = await folder();

      await expectRefused(installation.run(main), problem(`\`${file}\``, format));
      const verified = installation.run(countersign, {}, ['verify']);
      expect((await verified.exit).code).toBe(1);
      expect(verified.stderr()).toContain(problem(`\`${file}\``, format));
      const examined = installation.run(countersign, {}, ['doctor']);
      await examined.exit;
      expect(examined.stdout()).toContain(problem(`\`${file}\``, format));
      expect(await folder()).toEqual(before);
    },
    patience,
  );
});

describe('EventStoreDB', () => {
  let double: EventStoreDouble;

  beforeEach(async () => {
    double = await EventStoreDouble.start();
    double.maxAppendBytes = 4 * 1024 * 1024;
  });

  afterEach(() => double.stop());

  async function write(stream: string, type: string, data: object): Promise<void> {
    const store = await EventStoreDbEventStore.open(double.connectionString);
    const metadata = { at: 1, $correlationId: 'x', $causationId: 'x' };
    await store.append(stream, seal(stream, emptyTail, [{ type, data, metadata }]).events, 'no-stream');
    await store.close();
  }

  const settings = () => ({ EVENT_STORE: double.connectionString });

  test.each([
    ['of a later format', 3, () => write('installation-format', 'StoreFormatted', { format: 3 })],
    ['without a format', 1, () => write('installation-root', 'CoordinatorInstalled', {})],
  ])(
    'a start on a store %s is refused, and writes nothing',
    async (_which, format, prepare) => {
      await prepare();
      const before = double.log.end;
      const line = problem('at EVENT_STORE', format);
      await expectRefused(installation.run(main, settings()), line);
      const verified = installation.run(countersign, settings(), ['verify']);
      expect((await verified.exit).code).toBe(1);
      expect(verified.stderr()).toContain(line);
      expect(double.log.end).toBe(before);
      expect(await readdir(installation.dataDir)).toEqual([]);
    },
    patience,
  );

  test(
    'the first start records the format before anything else, and later ones accept it',
    async () => {
      await stop(await installation.start(settings()));
      const store = await EventStoreDbEventStore.open(double.connectionString);
      const first = await new Promise<{ stream: string; type: string; data: unknown }>((resolve, reject) => {
        store.subscribe({ after: 'start', onEvents: ([event]) => resolve(event!), onError: reject });
      });
      await store.close();
      expect(first).toMatchObject({ stream: 'installation-format', type: 'StoreFormatted', data: { format: 2 } });
      await stop(await installation.start(settings()));
    },
    patience,
  );
});
