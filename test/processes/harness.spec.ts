import { execFile, type ExecFileException } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** What the package gives a project of somebody else's, in the test runners that people use. */

const root = new URL('../..', import.meta.url).pathname;
const jest = join(dirname(createRequire(import.meta.url).resolve('jest/package.json')), 'bin', 'jest.js');
// What a coordinator that keeps its process alive would make of it: the run is killed, and has no exit code.
const limitMs = 60_000;

let project: string;

beforeAll(async () => {
  project = await mkdtemp(join(tmpdir(), 'countersign-project-'));
  await mkdir(join(project, 'node_modules'));
  await mkdir(join(project, 'tmp'));
  await symlink(root, join(project, 'node_modules', 'countersign'));
  await writeFile(
    join(project, 'package.json'),
    '{ "type": "module", "jest": { "testEnvironment": "node", "transform": {} } }',
  );
});

afterAll(() => rm(project, { recursive: true, force: true }));

interface Ended {
  readonly code: number | null | undefined;
  readonly output: string;
}

function run(...args: readonly string[]): Promise<Ended> {
  const { NODE_OPTIONS: _ours, ...env } = process.env;
  const options = { cwd: project, timeout: limitMs, env: { ...env, TMPDIR: join(project, 'tmp') } };
  return new Promise((ended) => {
    execFile(process.execPath, args, options, (error: ExecFileException | null, stdout, stderr) => {
      ended({ code: error ? (error.code as number | null) : 0, output: stdout + stderr });
    });
  });
}

const leftOpen = (store: string, then: string): string => `
  import { startCoordinator } from 'countersign/testing';
  const coordinator = await startCoordinator({ store: '${store}' });
  const alice = await coordinator.createUser('Alice');
  await alice.client.query('whoami');
  ${then}
`;

test.each(['memory', 'sqlite'])(
  'a coordinator on %s that nobody closes lets its process end, and leaves nothing behind',
  async (store) => {
    const script = leftOpen(store, "console.log('asked');");
    expect(await run('--input-type=module', '--eval', script)).toEqual({ code: 0, output: 'asked\n' });
    const left = await readdir(join(project, 'tmp'));
    expect(left.filter((name) => name.startsWith('countersign-'))).toEqual([]);
  },
  limitMs + 10_000,
);

const failing = `
  import { startCoordinator } from 'countersign/testing';
  IMPORT
  test('fails while a coordinator is open', async () => {
    const coordinator = await startCoordinator({ store: 'sqlite' });
    const { username } = await coordinator.client.query('whoami');
    FAIL
  });
`;

test(
  'a test of jest that fails before it closes its coordinator is reported, and jest ends',
  async () => {
    await writeFile(
      join(project, 'fails.test.js'),
      failing.replace('IMPORT', '').replace('FAIL', "expect(username).toBe('nobody');"),
    );
    const { code, output } = await run('--experimental-vm-modules', jest, '--runInBand', 'fails.test.js');
    expect(output).toContain('Expected: "nobody"');
    expect(output).not.toContain('did not exit');
    expect(code).toBe(1);
  },
  limitMs + 10_000,
);

test(
  'so is one of node:test',
  async () => {
    await writeFile(
      join(project, 'fails.mjs'),
      failing
        .replace('IMPORT', "import test from 'node:test'; import assert from 'node:assert';")
        .replace('FAIL', "assert.equal(username, 'nobody');"),
    );
    const { code, output } = await run('--test', '--test-reporter=tap', 'fails.mjs');
    expect(output).toContain("actual: 'Root user'");
    expect(code).toBe(1);
  },
  limitMs + 10_000,
);

test(
  'importing the package starts nothing, and gives a client',
  async () => {
    const script = "import { ActivityClient } from 'countersign'; console.log(typeof ActivityClient);";
    expect(await run('--input-type=module', '--eval', script)).toEqual({ code: 0, output: 'function\n' });
    expect(await readdir(project)).not.toContain('data');
  },
  limitMs + 10_000,
);
