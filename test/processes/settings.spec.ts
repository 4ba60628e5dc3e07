import { once } from 'node:events';
import { chmod, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { generateApiKeyPair, StampingClient } from '../../src/testing/index.js';
import { Installation, main, stop, countersign } from '../e2e/installation.js';

const tagType = 'ACTIVITY_TYPE_CREATE_USER_TAG';

// A process starts in half a second, and in ten on a machine with other work to do.
const patience = 120_000;

let installation: Installation;

beforeEach(async () => {
  installation = await Installation.make();
});

afterEach(() => installation.remove());

test(
  'a port in use is reported in one line',
  async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    try {
      const { port } = other.address() as AddressInfo;
      const attempt = installation.run(main, { PORT: String(port) });
      expect((await attempt.exit).code).toBe(1);
      expect(attempt.stderr()).toMatch(new RegExp(`^countersign cannot start: [^\\n]*${port}[^\\n]*\\n$`, 'm'));
      expect(attempt.stdout()).toBe('');
    } finally {
      other.close();
    }
  },
  patience,
);

test(
  'an invalid setting fails the start with one line that names it',
  async () => {
    const bad: readonly (readonly [string, string])[] = [
      ['PORT', '70000'],
      ['EVENT_STORE', 'postgres:'],
      ['LOG_LEVEL', 'loud'],
      ['PUBLIC_URL', 'api.example.com'],
      ['RATE_LIMIT_PER_ADDRESS', '0'],
      ['TRUST_PROXY', 'yes'],
    ];
    const attempts = bad.map(([name, value]) => installation.run(main, { [name]: value }));
    const codes = await Promise.all(attempts.map(async ({ exit }) => (await exit).code));
    expect(codes).toEqual(bad.map(() => 2));
    for (const [index, [name, value]] of bad.entries()) {
      expect(attempts[index]!.stderr()).toMatch(new RegExp(`^countersign cannot start: ${name}=${value}: [^\\n]+\\n$`));
    }
  },
  patience,
);

test(
  'an unreadable root.json is reported, and not overwritten',
  async () => {
    await writeFile(join(installation.dataDir, 'root.json'), '{"organizationId":');
    const attempt = installation.run(main);
    expect((await attempt.exit).code).toBe(1);
    expect(attempt.stderr()).toMatch(/^countersign cannot start: [^\n]*root\.json[^\n]*\n$/m);
    expect(await readFile(join(installation.dataDir, 'root.json'), 'utf8')).toBe('{"organizationId":');
  },
  patience,
);

test(
  'after a start that ended before it listened, the tour says so; of a file that it cannot read, it quotes nothing',
  async () => {
    await stop(await installation.start());
    const { apiUrl: _apiUrl, authProxyUrl: _authProxyUrl, ...root } = await installation.root();
    const { apiPrivateKey } = root;
    const file = join(installation.dataDir, 'root.json');
    await writeFile(file, JSON.stringify(root));
    const tour = async () => {
      const { exit, stdout, stderr } = installation.run(countersign, {}, ['tour', '--data-dir', installation.dataDir]);
      return { code: (await exit).code, stdout: stdout(), stderr: stderr() };
    };
    const first = await tour();
    expect(first).toMatchObject({ code: 2, stdout: '' });
    expect(first.stderr).toContain(`${file} has no address: a coordinator began here, but ended before it listened`);
    await writeFile(file, `"${apiPrivateKey}`);
    const second = await tour();
    expect(second).toMatchObject({ code: 2, stdout: '' });
    expect(second.stderr).toContain(`${file} is not JSON`);
    expect(second.stderr).not.toContain(apiPrivateKey!.slice(0, 4));
  },
  patience,
);

test(
  'with ROOT_API_PUBLIC_KEY no private key is made, and the given one is the root user’s',
  async () => {
    const key = generateApiKeyPair((count) => crypto.getRandomValues(new Uint8Array(count)));
    const server = await installation.start({ ROOT_API_PUBLIC_KEY: key.publicKey.toUpperCase() });
    const { organizationId, apiPublicKey, apiPrivateKey } = await installation.root();
    expect({ apiPublicKey, apiPrivateKey }).toEqual({ apiPublicKey: key.publicKey, apiPrivateKey: undefined });
    const client = new StampingClient(server.url, organizationId!, key);
    expect(await client.query('whoami')).toMatchObject({ username: 'Root user' });
    const attempt = installation.run(countersign, {}, ['tour']);
    expect((await attempt.exit).code).toBe(2);
    expect(attempt.stderr()).toMatch(/ROOT_API_PUBLIC_KEY was set/);
    await stop(server);
  },
  patience,
);

test(
  'settings may be in .env of the working folder, and the environment takes precedence',
  async () => {
    await writeFile(join(installation.dataDir, '.env'), 'LOG_LEVEL=loud\nTRUST_PROXY=perhaps\n');
    const attempt = installation.run(main);
    expect((await attempt.exit).code).toBe(2);
    expect(attempt.stderr()).toContain('TRUST_PROXY=perhaps');
  },
  patience,
);

test(
  'the tour completes, twice on the same data',
  async () => {
    const server = await installation.start();
    for (let count = 0; count < 2; count++) {
      const attempt = installation.run(countersign, {}, ['tour']);
      const { code } = await attempt.exit;
      expect({ code, stderr: attempt.stderr() }).toEqual({ code: 0, stderr: '' });
      expect(attempt.stdout()).toContain('That was it.');
      // It ends with a replay of itself.
      expect(attempt.stdout()).toMatch(/votes +'Alice \w+' approved [^\n]+: stamp verified\n[^]+made again: same/);
      expect(attempt.stdout()).toMatch(
        /What this tour has changed\n[^]+ policy 'Four eyes on users \w+' was created\n/,
      );
      expect(attempt.stdout()).toMatch(
        /signs alone: never\n.+ sign together: possible, and executed in a coordinator\n/,
      );
      expect(attempt.stdout()).toContain('OK: ');
      expect(attempt.stdout()).not.toContain((await installation.root())['apiPrivateKey']);
    }
    await stop(server);
    const alone = installation.run(countersign, {}, ['tour']);
    expect((await alone.exit).code).toBe(6);
    const address = new URL(server.url).host;
    expect(alone.stderr()).toBe(
      `error: the server does not respond (connect ECONNREFUSED ${address}): is it running?\n`,
    );
  },
  patience,
);

test(
  'files with data are for their owner only, whatever the folder is and whatever they were',
  async () => {
    await chmod(installation.dataDir, 0o755);
    const modes = async (): Promise<Record<string, string>> => {
      const entries = await readdir(installation.dataDir, { recursive: true, withFileTypes: true });
      const files = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
      const found = await Promise.all(files.map(async (file) => [file, (await stat(file)).mode & 0o777] as const));
      return Object.fromEntries(
        found.filter(([, mode]) => (mode & 0o077) !== 0).map(([file, mode]) => [file, mode.toString(8)]),
      );
    };
    const first = await installation.start();
    await (await installation.client(first.url)).submit(tagType, { userTagName: 'one' });
    expect(await readdir(installation.dataDir)).toEqual(
      expect.arrayContaining(['read-models.db', 'read-models.db-wal']),
    );
    expect(await modes()).toEqual({});
    await stop(first);
    // As earlier releases, or a copy of a backup, have left them.
    for (const name of await readdir(installation.dataDir)) await chmod(join(installation.dataDir, name), 0o755);
    for (const name of ['read-models.db', 'events.db', 'kek', 'root.json']) {
      await chmod(join(installation.dataDir, name), 0o644);
    }
    const second = await installation.start();
    expect(await modes()).toEqual({});
    await stop(second);
  },
  patience,
);

test(
  'a misspelled setting fails the start and names the one that was meant, and so does an argument',
  async () => {
    const misspelled = installation.run(main, { RATE_LIMIT_PER_ADRESS: '10' });
    const argument = installation.run(main, {}, ['--port=80']);
    expect([(await misspelled.exit).code, (await argument.exit).code]).toEqual([2, 2]);
    expect(misspelled.stderr()).toBe(
      'countersign cannot start: RATE_LIMIT_PER_ADRESS=…: is not a setting; did you mean RATE_LIMIT_PER_ADDRESS? ' +
        'See docs/reference/settings.md\n',
    );
    expect(argument.stderr()).toContain('arguments=--port=80: none are accepted');
    expect(await readdir(installation.dataDir)).toEqual([]);
  },
  patience,
);
