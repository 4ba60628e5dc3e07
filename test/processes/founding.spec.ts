import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { apiKeyPairFromPrivate } from '../../src/testing/index.js';
import { Installation, main, stop } from '../e2e/installation.js';
import { EventStoreDouble } from '../ledger/stores/double/double.js';
import { isLong } from '../long.js';
import { DiskFaults } from './faults/faults.js';

// A process starts in half a second, and in ten on a machine with other work to do.
const patience = 180_000;

let installation: Installation;

beforeEach(async () => {
  installation = await Installation.make();
});

afterEach(() => installation.remove());

const file = (name: string): string => join(installation.dataDir, name);

/** Why it does not start, in one line. */
async function refusal(settings: Readonly<Record<string, string>> = {}): Promise<string> {
  const run = installation.run(main, settings);
  expect({ code: (await run.exit).code, stdout: run.stdout() }).toEqual({ code: 1, stdout: '' });
  const [, line] = /^countersign cannot start: ([^\n]+)\n$/.exec(run.stderr()) ?? [];
  expect([run.stderr(), line]).toEqual([run.stderr(), expect.any(String)]);
  return line!;
}

async function removeEvents(): Promise<void> {
  for (const name of ['events.db', 'events.db-wal', 'events.db-shm']) await rm(file(name), { force: true });
}

async function removeTraces(...names: readonly string[]): Promise<void> {
  for (const name of names) await rm(file(name), { force: true });
}

const rows = ['read-models.db', 'read-models.db-wal', 'read-models.db-shm'];

describe('where an installation has been, none is founded', () => {
  test(
    'without its events, whichever trace is left, and nothing is created; in an empty folder it is',
    async () => {
      await stop(await installation.start());
      await removeEvents();
      const before = await readdir(installation.dataDir);
      const said = await refusal();
      expect(said).toMatch(/^there are no events in `\S+events\.db`, but an installation has used the folder `\S+`/);
      expect(said).toMatch(/root\.json, store\.json, read-models\.db, which was built from events up to position \d+/);
      expect(said).toContain('put events.db back from a backup');
      expect(said).toContain('to begin anew on purpose, use an empty folder, or move root.json, store.json');
      expect(await readdir(installation.dataDir)).toEqual(before);

      await writeFile(file('events.db'), '');
      expect(await refusal()).toContain('there are no events in');
      await removeTraces('root.json', 'store.json');
      expect(await refusal()).toMatch(/\(read-models\.db, which was built from events up to position \d+\)/);
      await removeTraces(...rows);
      await writeFile(file('read-models.db'), 'no database, but long enough to be looked at'.repeat(100));
      expect(await refusal()).toContain('(read-models.db, which cannot be read)');
      await removeTraces(...rows);
      // A key is no trace: operators put it there first.
      expect(await readdir(installation.dataDir)).toContain('kek');
      await stop(await installation.start());
    },
    patience,
  );

  test(
    'where only the write-ahead log is left: SQLite would throw it away',
    async () => {
      const server = await installation.start();
      server.child.kill('SIGKILL');
      await server.exit;
      await removeTraces('events.db', 'root.json', 'store.json', ...rows);
      expect(await refusal()).toContain('(events.db-wal)');
    },
    patience,
  );

  test(
    'a folder of one kind of event store is refused with the other, without credentials in the message',
    async () => {
      const server = await EventStoreDouble.start();
      server.maxAppendBytes = 4 * 1024 * 1024;
      const other = await EventStoreDouble.start();
      other.maxAppendBytes = 4 * 1024 * 1024;
      try {
        await stop(await installation.start());
        const address = server.connectionString;
        const secret = address.replace('//', '//admin:changeit@');
        const host = new URL(address).host;
        const remote = `esdb://${host}`;
        expect(await refusal({ EVENT_STORE: secret })).toMatch(
          new RegExp(`^the data folder \`\\S+\` belongs to EVENT_STORE=sqlite:, but EVENT_STORE is ${remote};`),
        );
        await removeTraces('store.json');
        expect(await refusal({ EVENT_STORE: secret })).toContain(
          `belongs to EVENT_STORE=sqlite:, but EVENT_STORE is ${remote}`,
        );

        const dataDir = file('remote');
        await mkdir(dataDir);
        const settings = { DATA_DIR: dataDir, KEK: '11'.repeat(32) };
        await stop(await installation.start({ ...settings, EVENT_STORE: address }));
        expect(await refusal(settings)).toContain(`belongs to EVENT_STORE=${remote}, but EVENT_STORE is sqlite:`);
        expect(await readdir(dataDir)).not.toContain('events.db');
        // The same server with nothing in it, or with another installation.
        expect(await refusal({ ...settings, EVENT_STORE: other.connectionString })).toMatch(
          /^there are no events in esdb:\/\/\S+, but an installation has used the folder/,
        );
        await mkdir(file('third'));
        await stop(
          await installation.start({ ...settings, DATA_DIR: file('third'), EVENT_STORE: other.connectionString }),
        );
        expect(await refusal({ ...settings, EVENT_STORE: other.connectionString })).toMatch(
          /belongs to organization \S+ at EVENT_STORE=esdb:\/\/\S+, but EVENT_STORE=esdb:\/\/\S+ contains organization/,
        );
        await stop(await installation.start({ ...settings, EVENT_STORE: address }));
      } finally {
        await server.stop();
        await other.stop();
      }
    },
    patience,
  );
});

test(
  'a first start on a port that is in use creates nothing',
  async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    try {
      const { port } = other.address() as AddressInfo;
      expect(await refusal({ PORT: String(port) })).toContain(`127.0.0.1:${port} is in use`);
      expect(await readdir(installation.dataDir)).toEqual([]);
    } finally {
      other.close();
    }
  },
  patience,
);

test(
  'in memory, nothing is written into the data folder: what is needed is in a temporary one, which the banner names',
  async () => {
    const temporary = await mkdtemp(join(tmpdir(), 'countersign-tmp-'));
    try {
      const server = await installation.start({ EVENT_STORE: 'memory:', TMPDIR: temporary });
      const [, dataDir] = /Data +(\S+) \(temporary, removed at the end\)/.exec(server.stdout())!;
      expect(server.stdout()).toContain(`Take the tour:   npm run tour -- --data-dir ${dataDir}`);
      const root = JSON.parse(await readFile(join(dataDir!, 'root.json'), 'utf8')) as Record<string, string>;
      expect(root).toMatchObject({ apiUrl: server.url });
      expect(apiKeyPairFromPrivate(root['apiPrivateKey']!).publicKey).toBe(root['apiPublicKey']);
      expect(await readdir(installation.dataDir)).toEqual([]);
      await stop(server);
      expect(await readdir(temporary)).toEqual([]);
      expect(await readdir(installation.dataDir)).toEqual([]);
    } finally {
      await rm(temporary, { recursive: true, force: true });
    }
  },
  patience,
);

test(
  'only the start that founds an installation offers the tour',
  async () => {
    const first = await installation.start();
    expect(first.stdout()).toContain('Take the tour:');
    await stop(first);
    const second = await installation.start();
    expect(second.stdout()).not.toContain('tour');
    await stop(second);
  },
  patience,
);

describe('a first start that is killed', () => {
  const script = fileURLToPath(new URL('./faults/found.mjs', import.meta.url));

  /** The next start resumes, with the credentials that are in root.json. */
  async function expectResumed(run: ReturnType<Installation['run']>, dataDir: string): Promise<void> {
    expect({ ...(await run.exit), stderr: run.stderr() }).toEqual({ code: 0, signal: null, stderr: '' });
    const founding = JSON.parse(run.stdout()) as { organizationId: string; apiPublicKey: string };
    const root = JSON.parse(await readFile(join(dataDir, 'root.json'), 'utf8')) as Record<string, string>;
    expect(root).toMatchObject({ organizationId: founding.organizationId, apiPublicKey: founding.apiPublicKey });
    expect(apiKeyPairFromPrivate(root['apiPrivateKey']!).publicKey).toBe(founding.apiPublicKey);
    expect(await readdir(dataDir)).not.toContain('root.json.founding');
  }

  // Every write in a long run; in a short one a part of them, another one each time.
  const step = isLong ? 1 : 12;

  test(
    'at any write is continued by the next one',
    async () => {
      const killed: number[] = [];
      for (let call = 1 + Math.floor(Math.random() * step); ; call += step) {
        const dataDir = file(`at-${call}`);
        await mkdir(dataDir);
        const faults = new DiskFaults(dataDir);
        try {
          const run = installation.run(script, { ...faults.killedAt(call), DATA_DIR: dataDir });
          const { signal } = await run.exit;
          await expectResumed(installation.run(script, { DATA_DIR: dataDir }), dataDir);
          await expectResumed(installation.run(script, { DATA_DIR: dataDir }), dataDir);
          if (signal === null) break;
          killed.push(call);
        } catch (error) {
          throw new Error(`killed before call ${call}: ${String(error)}`, { cause: error });
        } finally {
          faults.remove();
          await rm(dataDir, { recursive: true });
        }
      }
      expect(killed.at(-1)).toBeGreaterThan(60);
    },
    isLong ? 3_600_000 : 300_000,
  );
});
