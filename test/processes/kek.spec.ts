import { chmod, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { EventStoreDouble } from '../ledger/stores/double/double.js';
import { countersign, Installation, main, stop, type Run } from '../e2e/installation.js';
import { until } from '../e2e/until.js';

const kek = (byte: number): string => Buffer.alloc(32, byte).toString('hex');

// A process starts in half a second, and in ten on a machine with other work to do.
const patience = 300_000;

let installation: Installation;

beforeEach(async () => {
  installation = await Installation.make();
});

afterEach(() => installation.remove());

const rotation = (settings: Readonly<Record<string, string>> = {}, args: readonly string[] = ['--yes']): Run =>
  installation.run(countersign, settings, ['kek', 'rotate', ...args]);

/** Every file under the data folder, with its content. */
async function everything(): Promise<Record<string, string>> {
  const entries = await readdir(installation.dataDir, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
  const contents = await Promise.all(files.map(async (file) => [file, (await readFile(file)).toString('base64')]));
  return Object.fromEntries(contents) as Record<string, string>;
}

const keyFile = (): string => join(installation.dataDir, 'kek');
const keysIn = async (file: string): Promise<string[]> => (await readFile(file, 'utf8')).trim().split('\n');

async function expectRefused(run: Run, line: RegExp, expected = 1): Promise<void> {
  const { code } = await run.exit;
  expect({ code, stdout: run.stdout() }).toEqual({ code: expected, stdout: '' });
  expect(run.stderr()).toMatch(/^[^\n]+\n$/);
  expect(run.stderr()).toMatch(line);
}

/** Creates a wallet, which seals something. */
async function createWallet(url: string, walletName: string): Promise<void> {
  const client = await installation.client(url);
  const { status } = await client.submit('ACTIVITY_TYPE_CREATE_WALLET', { walletName, accounts: [] });
  expect(status).toBe('ACTIVITY_STATUS_COMPLETED');
}

test(
  'with the wrong key, without it, or with text that is none, nothing starts and nothing is written',
  async () => {
    const first = await installation.start();
    await createWallet(first.url, 'sealed');
    await stop(first);
    const before = await everything();
    expect(Object.keys(before)).toEqual(expect.arrayContaining([keyFile(), join(installation.dataDir, 'events.db')]));

    await expectRefused(
      installation.run(main, { KEK: kek(1), PROXY_SECRET_FILE: join(installation.dataDir, 'proxy', 'secret') }),
      /^countersign cannot start: the vault of this store is sealed under key-encryption key \w+, but KEK contains \w+: put the right key there/,
    );
    await expectRefused(
      installation.run(main, { KEK_FILE: join(installation.dataDir, 'another') }),
      /^countersign cannot start: .* sealed under key-encryption key \w+, but \S+another is missing: put the key back/,
    );
    const bad = installation.run(main, { KEK: kek(1).slice(1) });
    expect((await bad.exit).code).toBe(2);
    expect(bad.stderr()).toBe(
      'countersign cannot start: KEK=…: must be 64 hex characters, or several such keys separated by commas; one has 63\n',
    );
    expect(await everything()).toEqual(before);

    await rename(keyFile(), join(installation.dataDir, 'elsewhere'));
    await writeFile(keyFile(), `${kek(1).slice(1)}\n`);
    const withBadFile = await everything();
    await expectRefused(
      installation.run(main),
      /^countersign cannot start: key 1 in \S+kek must be 64 hex characters, but has 63\n/,
    );
    expect(await everything()).toEqual(withBadFile);

    await rm(keyFile());
    const withoutFile = await everything();
    await expectRefused(installation.run(main), /but \S+kek is missing: put the key back, or set KEK or KEK_FILE\n/);
    expect(await everything()).toEqual(withoutFile);

    const again = await installation.start({ KEK_FILE: join(installation.dataDir, 'elsewhere') });
    await createWallet(again.url, 'sealed again');
    await stop(again);
  },
  patience,
);

test(
  'a first start with text that is not a key creates nothing at all',
  async () => {
    const file = join(installation.dataDir, 'secret');
    await writeFile(file, 'correct horse battery staple');
    const dataDir = join(installation.dataDir, 'data');
    await expectRefused(
      installation.run(main, { DATA_DIR: dataDir, KEK_FILE: file }),
      /^countersign cannot start: key 1 in \S+secret must be 64 hex characters, but has 28\n/,
    );
    expect(await readdir(installation.dataDir)).toEqual(['secret']);
    // And a key that has nowhere to be kept seals nothing.
    await expectRefused(
      installation.run(main, { DATA_DIR: dataDir, KEK_FILE: join(installation.dataDir, 'missing', 'kek') }),
      /^countersign cannot start: the key-encryption key cannot be written to \S+kek \(ENOENT\): create its folder/,
    );
    const server = await installation.start({ DATA_DIR: dataDir, KEK: kek(3) });
    await stop(server);
    expect(await readdir(dataDir)).not.toContain('kek');
  },
  patience,
);

test(
  'coordinators of one store need the same key',
  async () => {
    const double = await EventStoreDouble.start();
    double.maxAppendBytes = 4 * 1024 * 1024;
    try {
      const settings = { EVENT_STORE: double.connectionString };
      const first = await installation.start({ ...settings, KEK: kek(1) });
      const dataDir = join(installation.dataDir, 'second');
      await mkdir(dataDir);
      const second = installation.run(main, { ...settings, KEK: kek(2), DATA_DIR: dataDir });
      await expectRefused(second, /put the right key there, the same one for every coordinator\n$/);
      expect(await readdir(dataDir)).toEqual([]);
      const third = await installation.start({ ...settings, KEK: kek(1), DATA_DIR: dataDir });
      await stop(third);
      await stop(first);
    } finally {
      await double.stop();
    }
  },
  patience,
);

test(
  'a key file that others may read is used, with one warning at each start',
  async () => {
    const file = join(installation.dataDir, 'elsewhere');
    await writeFile(file, `${kek(5)}\n`);
    for (const [mode, said] of [
      [0o644, [expect.objectContaining({ level: 40, file, mode: '644' })]],
      [0o600, []],
    ] as const) {
      await chmod(file, mode);
      const server = await installation.start({ KEK_FILE: file });
      server.child.kill('SIGTERM');
      expect((await server.exit).code).toBe(0);
      const lines = server.stderr().concat(server.stdout()).split('\n');
      const warnings = lines.filter((line) =>
        line.includes('others may read or write the key-encryption key: run chmod 600'),
      );
      expect(warnings.map((line) => JSON.parse(line) as unknown)).toEqual(said);
    }
  },
  patience,
);

describe('kek:rotate', () => {
  test(
    'waits for nobody: it is refused while the coordinator runs, and goes on after a kill at any time',
    async () => {
      const first = await installation.start();
      for (let count = 0; count < 20; count++) await createWallet(first.url, `wallet ${count}`);
      const [old] = await keysIn(keyFile());
      await expectRefused(
        rotation(),
        /^error: the event store \S+events\.db\S* is in use by another process \(pid \d+\): stop it first/,
      );
      expect(await keysIn(keyFile())).toEqual([old]);
      await stop(first);

      const broken = rotation();
      await until('the new key is in the file', async () => (await keysIn(keyFile())).length === 2);
      broken.child.kill('SIGKILL');
      await broken.exit;
      const server = await installation.start();
      await createWallet(server.url, 'between');
      await stop(server);

      const rotated = rotation();
      expect({ ...(await rotated.exit), stderr: rotated.stderr() }).toEqual({ code: 0, signal: null, stderr: '' });
      expect(rotated.stdout()).toMatch(
        /^The key-encryption key is now \w{16}\.\n\d+ data keys in \d+ vaults can be opened with it alone; \d+ of them were re-encrypted\.\n\S+kek now holds only the new key\./,
      );
      const keys = await keysIn(keyFile());
      expect(keys).toHaveLength(1);
      expect(keys).not.toContain(old);
      for (const key of [...keys, old!]) expect(rotated.stdout()).not.toContain(key);
      // What older backups need is not lost by the command.
      const [keptName] = (await readdir(installation.dataDir)).filter((name) => /^old-kek\.\w{16}$/.test(name));
      expect(await keysIn(join(installation.dataDir, keptName!))).toEqual([old]);

      await expectRefused(installation.run(main, { KEK: old! }), /put the right key there/);
      const last = await installation.start();
      await createWallet(last.url, 'after');
      await stop(last);
    },
    patience,
  );

  test(
    'with keys in the environment, on EventStoreDB, beside a coordinator that has both',
    async () => {
      const double = await EventStoreDouble.start();
      double.maxAppendBytes = 4 * 1024 * 1024;
      try {
        const store = { EVENT_STORE: double.connectionString };
        await stop(await installation.start({ ...store, KEK: kek(1) }));
        const both = { ...store, KEK: `${kek(2)},${kek(1)}` };
        const server = await installation.start(both);
        await createWallet(server.url, 'under the new key');
        const rotated = rotation(both);
        expect({ ...(await rotated.exit), stderr: rotated.stderr() }).toEqual({ code: 0, signal: null, stderr: '' });
        expect(rotated.stdout()).toContain(
          'Left to do: set KEK to its first key alone, and restart every coordinator.',
        );
        await createWallet(server.url, 'beside it');
        await stop(server);
        const last = await installation.start({ ...store, KEK: kek(2) });
        await createWallet(last.url, 'under the new key alone');
        await stop(last);
      } finally {
        await double.stop();
      }
    },
    patience,
  );

  test(
    'asks first, takes no argument that it does not know, and does nothing until it is told to',
    async () => {
      await stop(await installation.start());
      const before = await everything();
      for (const [args, code, words] of [
        [['--help'], 0, /^Usage: countersign kek rotate /],
        [['--dry-run'], 2, /unknown option '--dry-run'/],
        [['now'], 2, /too many arguments/],
        [[], 2, /not confirmed: add --yes/],
      ] as const) {
        const asked = rotation({}, args);
        expect({ args, ...(await asked.exit) }).toMatchObject({ args, code });
        expect(asked.stdout() + asked.stderr()).toMatch(words);
      }
      expect(await everything()).toEqual(before);
    },
    patience,
  );

  test(
    'has nothing to do if nothing is stored, and creates nothing',
    async () => {
      await expectRefused(rotation({ EVENT_STORE: 'memory:' }), /keeps nothing between starts\n$/, 2);
      await expectRefused(rotation(), /\S+events\.db does not exist: set --data-dir or DATA_DIR/, 2);
      expect(await readdir(installation.dataDir)).toEqual([]);
    },
    patience,
  );
});
