import { execFile, spawn, type ExecFileException } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { copyFile, link, mkdir, mkdtemp, readdir, readFile, readlink, rm, symlink, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { until } from '../e2e/until.js';

/*
 * What `npm pack` makes, installed in an empty project of somebody else's: the command line, the client and its types, and the
 * harness in the test runners that people use. Nothing comes from a network, and what is only there for development is not there.
 */

const root = new URL('../..', import.meta.url).pathname;
const ofDevelopment = createRequire(import.meta.url);
const jest = join(dirname(ofDevelopment.resolve('jest/package.json')), 'bin', 'jest.js');
const tsc = ofDevelopment.resolve('typescript/bin/tsc');
const vitest = join(dirname(ofDevelopment.resolve('vitest/package.json')), 'vitest.mjs');
// What a coordinator that keeps its process alive would make of it: the run is killed, and has no exit code.
const limitMs = 60_000;

let project: string;
let packed: readonly string[];

beforeAll(async () => {
  project = await mkdtemp(join(tmpdir(), 'countersign-project-'));
  await mkdir(join(project, 'tmp'));
  const { overrides } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { overrides: object };
  const settings = {
    type: 'module',
    overrides,
    jest: { testEnvironment: 'node', transform: {}, testTimeout: limitMs },
  };
  await writeFile(join(project, 'package.json'), JSON.stringify(settings));
  await placeDependencies();
  const { stdout } = await npm(root, 'pack', '--ignore-scripts', '--json', '--pack-destination', project);
  const [{ filename, files }] = JSON.parse(stdout) as [{ filename: string; files: readonly { path: string }[] }];
  packed = files.map(({ path }) => path);
  const alone = ['--offline', '--cache', join(project, 'tmp', 'npm'), '--ignore-scripts', '--no-audit', '--no-fund'];
  await npm(project, 'install', ...alone, `./${filename}`);
}, limitMs);

afterAll(() => rm(project, { recursive: true, force: true }));

function npm(cwd: string, ...args: readonly string[]) {
  return promisify(execFile)('npm', args, { cwd, timeout: limitMs, maxBuffer: 8 * 1024 * 1024 });
}

/** What the package depends on, as the lock file has it and as npm would place it, so that npm need not fetch it. */
async function placeDependencies(): Promise<void> {
  const lock = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Readonly<Record<string, { readonly dev?: boolean; readonly link?: boolean }>>;
  };
  const isThere = (place: string): boolean => existsSync(join(root, place));
  const places = Object.entries(lock.packages).flatMap(([place, { dev, link }]) =>
    place.startsWith('node_modules/') && !dev && !link && isThere(place) ? [place] : [],
  );
  const outermost = places.filter((place) => place.lastIndexOf('node_modules/') === 0);
  for (const place of outermost) {
    for (const entry of await readdir(join(root, place), { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      const from = join(entry.parentPath, entry.name);
      const to = join(project, from.slice(root.length));
      await mkdir(dirname(to), { recursive: true });
      // The temporary folder may be on another device.
      await link(from, to).catch(() => copyFile(from, to));
    }
  }
  await mkdir(join(project, 'node_modules', '.bin'));
  for (const name of await readdir(join(root, 'node_modules', '.bin'))) {
    const target = await readlink(join(root, 'node_modules', '.bin', name));
    if (outermost.some((place) => `node_modules/${target.slice('../'.length)}`.startsWith(`${place}/`)))
      await symlink(target, join(project, 'node_modules', '.bin', name));
  }
}

interface Ended {
  readonly code: number | null | undefined;
  readonly output: string;
}

function run(...args: readonly string[]): Promise<Ended> {
  const { NODE_OPTIONS: _ours, ...env } = process.env;
  // Some programs colour what they print wherever `CI` is set.
  const options = { cwd: project, timeout: limitMs, env: { ...env, TMPDIR: join(project, 'tmp'), NO_COLOR: '1' } };
  return new Promise((ended) => {
    execFile(process.execPath, args, options, (error: ExecFileException | null, stdout, stderr) => {
      ended({ code: error ? (error.code as number | null) : 0, output: stdout + stderr });
    });
  });
}

/** Folders of coordinators that nobody has closed. */
async function leftBehind(): Promise<readonly string[]> {
  return (await readdir(join(project, 'tmp'))).filter((name) => name.startsWith('countersign-'));
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
    expect(await leftBehind()).toEqual([]);
  },
  limitMs + 10_000,
);

const failing = `
  test('fails while a coordinator is open', async () => {
    const coordinator = await startCoordinator({ store: 'sqlite' });
    const { username } = await coordinator.client.query('whoami');
    FAIL
  });
`;

const passing = `
  test('a signature takes two people', async () => {
    const coordinator = await startCoordinator();
    const [alice, bob] = [await coordinator.createUser('Alice'), await coordinator.createUser('Bob')];
    const { addresses } = await coordinator.createWallet('Treasury');
    await coordinator.createPolicy({
      policyName: 'two people', condition: "activity.action == 'SIGN'", consensus: 'approvers.count() >= 2',
    });
    const asked = await alice.client.submit('ACTIVITY_TYPE_SIGN_TRANSACTION_V2', {
      signWith: addresses[0],
      type: 'TRANSACTION_TYPE_ETHEREUM',
      unsignedTransaction: ethTransaction({ to: '0x' + '11'.repeat(20) }),
    });
    PASS
    await coordinator.close();
  });
`;

test(
  'workers of jest have a coordinator each; a test that fails before it closes its own is reported, and all is gone when jest ends',
  async () => {
    const imports = (...names: readonly string[]) => `import { ${names.join(', ')} } from 'countersign/testing';`;
    await writeFile(
      join(project, 'fails.test.js'),
      imports('startCoordinator') + failing.replace('FAIL', "expect(username).toBe('nobody');"),
    );
    await writeFile(
      join(project, 'passes.test.js'),
      `${imports('ethTransaction', 'matchers', 'startCoordinator')} expect.extend(matchers);` +
        passing.replace(
          'PASS',
          `await expect(asked).toNeedApprovalFrom(bob);
           await expect(bob.client.approve(asked.fingerprint)).toBeAllowed();`,
        ),
    );
    const { code, output } = await run('--experimental-vm-modules', jest, '--maxWorkers=2');
    expect(output).toContain('Expected: "nobody"');
    expect(output).toContain('1 failed, 1 passed');
    expect(output).not.toContain('did not exit');
    expect(code).toBe(1);
    expect(await leftBehind()).toEqual([]);
  },
  limitMs + 10_000,
);

/** Writes each piece of code of the page on the harness as a test, with what it takes for given. Returns how many there are. */
async function writeHarnessPage(folder: string): Promise<number> {
  const page = await readFile(join(root, 'docs', 'how-to', 'test-with-the-harness.md'), 'utf8');
  const [first, ...others] = [...page.matchAll(/^```js\n([^]*?)^```$/gm)].map(([, code]) => code!);
  await writeFile(join(folder, 'first.test.js'), first!);
  const given = `
    const coordinator = await startCoordinator();
    const { client } = coordinator;
    const [alice, bob] = [await coordinator.createUser('Alice'), await coordinator.createUser('Bob')];
    const { walletId } = await coordinator.createWallet('Treasury');
    const [walletIds, walletName] = [[walletId], 'Reserve'];
    await coordinator.createPolicy({
      policyName: 'no deletion', effect: 'EFFECT_DENY', condition: "activity.kind == 'DELETE_WALLETS'",
    });
    await coordinator.createPolicy({
      policyName: 'two people', condition: "activity.kind == 'UPDATE_WALLET'", consensus: 'approvers.count() >= 2',
    });
  `;
  const tests = others.map(
    (code, at) =>
      `test('block ${at}', async () => {${given} { ${code.replace(/^import .*$/gm, '')} } await coordinator.close(); });`,
  );
  const imports = `import { matchers, startCoordinator } from 'countersign/testing';`;
  await writeFile(join(folder, 'harness-page.test.js'), [imports, ...tests].join('\n'));
  return tests.length + 1;
}

test(
  'the guides on the harness, policies and a back end pass as they are written, and the test that fails says why',
  async () => {
    const folder = join(project, 'guides');
    await mkdir(folder);
    const shown: string[] = [];
    for (const page of ['test-your-policies', 'test-your-back-end']) {
      const text = await readFile(join(root, 'docs', 'how-to', `${page}.md`), 'utf8');
      const files = [...text.matchAll(/^```js\n\/\/ (\S+)\n([^]*?)^```$/gm)];
      for (const [, name, code] of files) await writeFile(join(folder, name!), code!);
      const prose = text.replace(/^```js\n[^]*?^```$/gm, '');
      shown.push(...[...prose.matchAll(/^```\n([^]*?)^```$/gm)].flatMap(([, said]) => said!.trimEnd().split('\n')));
    }
    const blocks = await writeHarnessPage(folder);
    expect(blocks).toBeGreaterThan(5);
    const { code, output } = await run('--experimental-vm-modules', jest, '--maxWorkers=2', 'guides');
    expect(output).toContain(`1 failed, ${9 + blocks} passed`);
    expect(shown).toHaveLength(4);
    for (const line of shown) expect(output).toContain(line.trim().replace(/ …$/, ''));
    expect(code).toBe(1);
  },
  limitMs + 10_000,
);

test(
  'so it is with node:test',
  async () => {
    await writeFile(
      join(project, 'both.mjs'),
      `import test from 'node:test';
       import assert from 'node:assert';
       import { ethTransaction, startCoordinator } from 'countersign/testing';` +
        failing.replace('FAIL', "assert.equal(username, 'nobody');") +
        passing.replace(
          'PASS',
          `const { status } = await bob.client.approve(asked.fingerprint);
           assert.equal(status, 'ACTIVITY_STATUS_COMPLETED');`,
        ),
    );
    const { code, output } = await run('--test', '--test-reporter=tap', 'both.mjs');
    expect(output).toContain("actual: 'Root user'");
    expect(output).toMatch(/^# pass 1$/m);
    expect(output).toMatch(/^# fail 1$/m);
    expect(code).toBe(1);
    expect(await leftBehind()).toEqual([]);
  },
  limitMs + 10_000,
);

test(
  'so it is with vitest: its workers have a coordinator each, and its matchers take ours',
  async () => {
    const folder = join(project, 'in-vitest');
    await mkdir(folder);
    await symlink(dirname(vitest), join(project, 'node_modules', 'vitest'));
    const imports = (...names: readonly string[]) => `
      import { expect, test } from 'vitest';
      import { ${names.join(', ')} } from 'countersign/testing';
    `;
    const files = {
      'fails.test.js': imports('startCoordinator') + failing.replace('FAIL', "expect(username).toBe('nobody');"),
      'passes.test.js':
        `${imports('ethTransaction', 'matchers', 'startCoordinator')} expect.extend(matchers);` +
        passing.replace(
          'PASS',
          `await expect(asked).toNeedApprovalFrom(bob);
           await expect(bob.client.approve(asked.fingerprint)).toBeAllowed();`,
        ),
      'closes.test.ts': `${imports('startCoordinator')}
        import 'countersign/testing/vitest';
        test('a coordinator is closed at the end of its test', async () => {
          await using coordinator = await startCoordinator({ store: 'sqlite' });
          const { username }: { username: string } = await coordinator.client.query('whoami');
          expect(username).toBe('Root user');
          await expect(coordinator).toHaveRecorded('OrganizationCreated');
        });
      `,
      'vitest.config.js':
        "export default { esbuild: { target: 'es2022' }, test: { testTimeout: 60_000, maxWorkers: 2 } };",
    };
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
    const strict = ['--strict', '--skipLibCheck', '--module', 'nodenext', '--target', 'esnext'];
    expect(await run(tsc, '--noEmit', ...strict, join(folder, 'closes.test.ts'))).toEqual({ code: 0, output: '' });
    const { code, output } = await run(vitest, 'run', '--root', folder, '--config', join(folder, 'vitest.config.js'));
    expect(output).toMatch(/expected 'Root user' to be 'nobody'/);
    expect(output).toMatch(/Tests {2}1 failed \| 2 passed \(3\)/);
    expect(output).not.toContain('did not exit');
    expect(code).toBe(1);
    expect(await leftBehind()).toEqual([]);
  },
  limitMs + 10_000,
);

/** Makes packages that are only there for development available to the project. */
async function placeForDevelopment(...names: readonly string[]): Promise<void> {
  for (const name of names) {
    const place = join(project, 'node_modules', name);
    await mkdir(dirname(place), { recursive: true });
    if (!existsSync(place)) await symlink(join(root, 'node_modules', name), place);
  }
}

/** A piece of code of the page on the harness, by what follows the three backticks. */
async function blockOf(info: string): Promise<string> {
  const page = await readFile(join(root, 'docs', 'how-to', 'test-with-the-harness.md'), 'utf8');
  const [, code] = new RegExp(`^\`\`\`${info}\\n([^]*?)^\`\`\`$`, 'm').exec(page)!;
  return code!;
}

const compilerOptions = {
  module: 'nodenext',
  target: 'es2022',
  strict: true,
  isolatedModules: true,
  skipLibCheck: true,
};

/** A test in TypeScript, with an import of its own files by the name that they get, and all matchers. */
const typescriptTest = (imports: string, matchers: string): string => `
  import { startCoordinator, type TestCoordinator } from 'countersign/testing';
  import '${matchers}';
  ${imports}
  import { tagName } from './name.js';

  let coordinator: TestCoordinator;
  beforeAll(async () => {
    coordinator = await startCoordinator();
  });
  afterAll(() => coordinator.close());

  test('a tag is created', async () => {
    const submitted = coordinator.client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: tagName, userIds: [] });
    await expect(submitted).toBeAllowed();
    await expect(coordinator).toHaveRecorded('UserTagCreated', { tagName });
    const last = (await coordinator.events()).find(({ type }) => type === 'UserTagCreated');
    expect(last?.type === 'UserTagCreated' ? last.data.tagName : undefined).toBe(tagName);
    expect(() => coordinator.fail('apend' as 'append')).toThrow('use read, append, head');
  });
`;

interface RunnerProject {
  readonly name: string;
  readonly settings: string;
  readonly imports?: string;
  readonly matchers: string;
}

const runnerProjects: readonly RunnerProject[] = [
  { name: 'ts-jest', settings: 'js jest.config.js for ts-jest', matchers: 'countersign/testing/jest' },
  {
    name: 'SWC',
    settings: 'js jest.config.js for SWC',
    imports: "import { afterAll, beforeAll, expect, test } from '@jest/globals';",
    matchers: 'countersign/testing/jest-globals',
  },
];

test.each(runnerProjects)(
  'with the settings of the guide, tests in TypeScript compile and pass with $name',
  async ({ name, settings, imports = '', matchers }) => {
    const folder = join(project, `with-${name}`);
    await mkdir(folder);
    await placeForDevelopment('ts-jest', '@swc/jest', '@swc/core', '@jest/globals', '@types/jest', 'expect');
    const files = {
      'jest.config.js': await blockOf(settings),
      'tsconfig.json': JSON.stringify({ compilerOptions }),
      'name.ts': "export const tagName: string = 'treasurers';",
      'tag.test.ts': typescriptTest(imports, matchers),
    };
    for (const [file, text] of Object.entries(files)) await writeFile(join(folder, file), text);
    expect(await run(tsc, '--noEmit', '--project', folder)).toEqual({ code: 0, output: '' });
    const { code, output } = await run(
      '--experimental-vm-modules',
      jest,
      '--rootDir',
      folder,
      '--config',
      join(folder, 'jest.config.js'),
    );
    expect(output).toContain('Tests:       1 passed, 1 total');
    expect(code).toBe(0);
  },
  2 * limitMs,
);

test(
  'with the settings of the guide, tests in CommonJS pass',
  async () => {
    const folder = join(project, 'with-commonjs');
    await mkdir(folder);
    await writeFile(join(folder, 'package.json'), JSON.stringify({ jest: { transform: {} } }));
    await writeFile(join(folder, 'root.test.js'), await blockOf('cjs'));
    const { code, output } = await run('--experimental-vm-modules', jest, '--rootDir', folder);
    expect(output).toContain('Tests:       1 passed, 1 total');
    expect(code).toBe(0);
  },
  limitMs + 10_000,
);

test('the package has what is made of the sources that are there, and nothing of earlier ones', () => {
  const built = packed.filter((path) => path.endsWith('.js') && !path.startsWith('dist/site/'));
  expect(built).toEqual(
    expect.arrayContaining(['dist/index.js', 'dist/testing/index.js', 'dist/cli/countersign.js', 'dist/main.js']),
  );
  expect(built.filter((path) => !existsSync(join(root, path.replace(/^dist\/(.*)\.js$/, 'src/$1.ts'))))).toEqual([]);
  expect(packed.filter((path) => /^dist\/\./.test(path))).toEqual([]);
});

test(
  '`npx countersign start` starts a coordinator, whose tour is taken with `npx countersign tour`',
  async () => {
    const countersign = ['--offline', 'countersign'];
    const env = { ...process.env, PORT: '0', LOG_LEVEL: 'error' };
    // A group of its own, so that all that npx starts is told to end.
    const server = spawn('npx', [...countersign, 'start'], { cwd: project, env, stdio: 'pipe', detached: true });
    try {
      let said = '';
      for (const output of [server.stdout, server.stderr])
        output.setEncoding('utf8').on('data', (text: string) => (said += text));
      await until('it is up, and says how to go on', () => Promise.resolve(said.includes('npx countersign tour')));
      const tour = promisify(execFile)('npx', [...countersign, 'tour'], { cwd: project, timeout: 2 * limitMs });
      const { stdout } = await tour;
      // The tour goes on without what is not installed with it.
      expect(stdout).toMatch(
        /Could one of them ever sign alone\?[^]+not here: analyze needs the package `countersign-analyze`/,
      );
      expect(stdout).toContain('That was it.');
    } finally {
      const gone = once(server, 'close');
      process.kill(-server.pid!, 'SIGTERM');
      await gone;
    }
    // The coordinator has ended in order: nothing holds its folder.
    const { stdout } = await promisify(execFile)('npx', [...countersign, 'verify'], { cwd: project, timeout: limitMs });
    expect(stdout).toContain('OK: ');
  },
  3 * limitMs,
);

test(
  'without countersign-analyze, `countersign policies analyze` says how to install it',
  async () => {
    const folder = join(root, 'examples', 'policies', 'treasury');
    expect(await run(join('node_modules', '.bin', 'countersign'), 'policies', 'analyze', folder)).toEqual({
      code: 2,
      output:
        'error: analyze needs the package `countersign-analyze`, which is not installed: pack it with `npm pack --workspace ' +
        'countersign-analyze` in a clone of the repository, and run `npm install <tarball>` where countersign is installed\n',
    });
  },
  limitMs + 10_000,
);

test(
  'importing the package starts nothing, and gives a client',
  async () => {
    const script = `
      import { ActivityClient, apiKeyPairFromPrivate } from 'countersign';
      const client = new ActivityClient('http://127.0.0.1:9', 'organization', apiKeyPairFromPrivate('11'.repeat(32)));
      console.log(await client.query('whoami').catch((error) => error.message));
    `;
    const before = await readdir(project);
    expect(await run('--input-type=module', '--eval', script)).toEqual({ code: 0, output: 'fetch failed\n' });
    expect(await readdir(project)).toEqual(before);
  },
  limitMs + 10_000,
);

const typed = `
  import { ActivityClient, apiKeyPairFromPrivate, type ParametersOf, type ResultOf } from 'countersign';
  import { matchers, startCoordinator, type TestUser } from 'countersign/testing';

  type Equal<One, Other> = [One] extends [Other] ? ([Other] extends [One] ? true : false) : false;

  export async function newTag(client: ActivityClient): Promise<string> {
    const parameters: ParametersOf<'ACTIVITY_TYPE_CREATE_USER_TAG'> = { userTagName: 'treasurers', userIds: [] };
    const { userTagId } = await client.perform('ACTIVITY_TYPE_CREATE_USER_TAG', parameters);
    // The compiler knows the members of the result and of the parameters, and no others.
    const result: Equal<keyof ResultOf<'ACTIVITY_TYPE_CREATE_USER_TAG'>, 'userTagId' | 'userIds'> = true;
    const sent: Equal<keyof ParametersOf<'ACTIVITY_TYPE_CREATE_USER_TAG'>, 'userTagName' | 'userIds'> = true;
    return result && sent ? userTagId : '';
  }

  export async function pays(): Promise<ResultOf<'ACTIVITY_TYPE_CREATE_WALLET'>> {
    const coordinator = await startCoordinator({ settings: { RATE_LIMIT_PER_CREDENTIAL: '50' } });
    const alice: TestUser = await coordinator.createUser('Alice');
    await newTag(alice.client);
    await matchers.toBeAllowed.call({ equals: Object.is }, alice.client.submit('ACTIVITY_TYPE_UPDATE_WALLET', {}));
    return coordinator.createWallet('Treasury').then(({ walletId, addresses }) => ({ walletId, addresses: [...addresses] }));
  }

  export const client = new ActivityClient('http://127.0.0.1:8080', '…', apiKeyPairFromPrivate('…'));
`;

test(
  'its types are whole: a project that checks every declaration compiles against them',
  async () => {
    await writeFile(join(project, 'typed.ts'), typed);
    const strict = ['--strict', '--skipLibCheck', 'false', '--module', 'nodenext', '--target', 'es2022'];
    expect(await run(tsc, '--noEmit', ...strict, 'typed.ts')).toEqual({ code: 0, output: '' });
  },
  limitMs + 10_000,
);

/** A line for each: what it says does not fit, and nothing else about it is wrong. */
const mistaken = [
  "client.perform('ACTIVITY_TYPE_CREATE_USER_TAG', { tagName: 'treasurers', userIds: [] })",
  "client.perform('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'treasurers', userIds: [1] })",
  "client.perform('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'treasurers' }).then(({ tagId }) => tagId)",
  "client.query('get_user', { user: 'x' })",
  "client.query('get_user')",
  "client.query('list_users', { paginationOptions: { limit: 10 } })",
  "client.query('get_user', { userId: 'x' }).then(({ user }) => user.name)",
  "client.query('list_wallets').then(({ users }) => users)",
  "client.query('list_events').then(({ events: [one] }) => one?.type === 'UserCreated' && one.data.policyName)",
  "client.query('whoam')",
  "client.query('of_a_later_release', { any: 'member' })",
  "client.perform('ACTIVITY_TYPE_UPDATE_USER_NAM', { userId: 'x', userName: 'y' })",
  "coordinator.events().then(([one]) => one?.type === 'UserCreatd')",
  "coordinator.events().then(([one]) => one?.type === 'UserTagCreated' && one.data.policyName)",
  "coordinator.fail('apend')",
];

const taken = [
  "client.perform('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'treasurers' }).then(({ userTagId }) => userTagId)",
  "client.perform<object>('ACTIVITY_TYPE_CREATE_POLICY', { whatever: 'an older version has' })",
  "client.perform(process.argv0, { whatever: 'its type has' })",
  'client.query(process.argv0).then(({ whatever }) => whatever)',
  "client.query('get_user', { userId: 'x' }).then(({ user }) => user.userName)",
  "client.query('list_users', { paginationOptions: { limit: '10' } }).then(({ users }) => users[0]?.apiKeys)",
  "client.query('get_wallet', { organizationId: 'another', walletId: 'x' }).then(({ wallet }) => wallet.walletName)",
  "client.query('list_events').then(({ events: [one] }) => one?.type === 'PolicyCreated' && one.data.policyName)",
  "coordinator.events().then(([one]) => one?.type === 'PolicyCreated' && one.data.policyName)",
  "coordinator.events('any-stream').then(([one]) => one?.type === 'OfThatStream' && one.data)",
  "client.query<{ mine: string }>('get_user', { user: 'x' }).then(({ mine }) => mine)",
];

test(
  'parameters, requests and members that are not there do not compile',
  async () => {
    const lines = [...mistaken, ...taken];
    const begin =
      "import type { ActivityClient } from 'countersign'; import type { TestCoordinator } from 'countersign/testing'; " +
      'declare const client: ActivityClient; declare const coordinator: TestCoordinator;';
    await writeFile(join(project, 'mistaken.ts'), [begin, ...lines.map((line) => `void ${line};`)].join('\n'));
    const { output } = await run(tsc, '--noEmit', '--strict', '--module', 'nodenext', '--skipLibCheck', 'mistaken.ts');
    const refused = new Set([...output.matchAll(/^mistaken\.ts\((\d+),/gm)].map(([, line]) => lines[Number(line) - 2]));
    expect([...refused]).toEqual(mistaken);
  },
  limitMs + 10_000,
);
