import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const rulesFile = '.dependency-cruiser.cjs';
const { forbidden } = createRequire(import.meta.url)(join(root, rulesFile)) as { forbidden: { name: string }[] };

interface Cruise {
  readonly exitCode: number;
  /** `rule: file` of everything that is forbidden. */
  readonly violations: readonly string[];
}

/** Runs dependency-cruiser on `src` and `packages` of a folder, as `npm run rules` does. */
async function cruise(folder: string): Promise<Cruise> {
  const command = join(root, 'node_modules/dependency-cruiser/bin/dependency-cruise.mjs');
  const args = [command, '--config', rulesFile, '--output-type', 'err', 'src', 'packages'];
  const options = { cwd: folder, env: { ...process.env, NO_COLOR: '1' } };
  return new Promise((resolve, reject) => {
    execFile(process.execPath, args, options, (error, stdout, stderr) => {
      if (!/\d+ modules, \d+ dependencies cruised/.test(stdout)) {
        return reject(new Error(`dependency-cruiser did not finish: ${stdout}${stderr}`));
      }
      const lines = [...stdout.matchAll(/^ {2}error ([\w-]+: \S+) →/gm)];
      const violations = lines.map(([, violation]) => violation!);
      resolve({ exitCode: Number(error?.code ?? 0), violations });
    });
  });
}

/** The files under a folder of the repository, as paths from its root. */
async function filesUnder(folder: string, pattern: RegExp): Promise<string[]> {
  const entries = await readdir(join(root, folder), { withFileTypes: true, recursive: true });
  return entries
    .filter((entry) => entry.isFile() && pattern.test(entry.name))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .toSorted();
}

const textOf = (path: string): Promise<string> => readFile(join(root, path), 'utf8');

/** For each rule, files that break it: a path, and what it imports. */
const planted: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'no-cycles': { 'src/wire/cycle-a.ts': './cycle-b.js' },
  'domain-knows-nothing': { 'src/domain/planted.ts': '../wire/nothing.js' },
  'domain-is-pure': { 'src/domain/impure.ts': 'node:fs', 'src/domain/packaged.ts': 'pino' },
  'activities-know-the-domain': { 'src/activities/planted.ts': '../ledger/event-store.js' },
  'wire-knows-the-domain': { 'src/wire/planted.ts': '../coordinator/nothing.js' },
  'ports-know-the-domain': { 'src/ports/planted.ts': '../coordinator/nothing.js' },
  'stores-know-errors': { 'src/ledger/stores/planted.ts': '../../domain/nothing.js' },
  'ledger-knows-the-domain': { 'src/ledger/planted.ts': '../coordinator/nothing.js' },
  'decide-is-a-function': { 'src/decide/planted.ts': '../coordinator/nothing.js' },
  'auth-proxy-knows-the-wire': { 'src/auth-proxy/planted.ts': '../coordinator/nothing.js' },
  'stamps-know-errors': { 'src/stamps/planted.ts': '../coordinator/nothing.js' },
  'keyring-knows-the-vault': { 'src/keyring/planted.ts': '../ledger/stores/sqlite/sqlite.js' },
  'files-know-nothing': { 'src/files/planted.ts': '../domain/nothing.js' },
  'vault-knows-the-store': { 'src/vault/planted.ts': '../ledger/stores/sqlite/sqlite.js' },
  'proofs-know-the-keyring': { 'src/proofs/planted.ts': '../ledger/stores/sqlite/sqlite.js' },
  'logging-knows-conditions': { 'src/logging/planted.ts': '../domain/nothing.js' },
  'metrics-know-ports': { 'src/metrics/planted.ts': '../domain/nothing.js' },
  'rate-limits-know-shares': { 'src/rate-limits/planted.ts': '../domain/nothing.js' },
  'delivery-knows-settings': { 'src/delivery/planted.ts': '../domain/nothing.js' },
  'http-client-knows-nothing': { 'src/http-client/planted.ts': '../domain/nothing.js' },
  'webhooks-know-ports': { 'src/webhooks/planted.ts': '../ledger/stores/sqlite/sqlite.js' },
  'oidc-knows-json': { 'src/oidc/planted.ts': '../domain/nothing.js' },
  'transactions-know-policy-values': { 'src/transactions/planted.ts': '../domain/nothing.js' },
  'config-knows-keys': { 'src/config/planted.ts': '../domain/nothing.js' },
  'client-takes-types-only': { 'src/client/loading.ts': '../activities/index.js' },
  'client-knows-the-wire': { 'src/client/planted.ts': '../coordinator/nothing.js' },
  'fairness-knows-errors': { 'src/fairness/planted.ts': '../domain/nothing.js' },
  'threads-know-errors': { 'src/threads/planted.ts': '../domain/nothing.js' },
  'audit-knows-decisions': { 'src/audit/planted.ts': '../coordinator/execute-activity.js' },
  'cli-knows-the-client': {
    'src/cli/planted.ts': '../coordinator/nothing.js',
    'src/cli/storing.ts': '../ledger/stores/sqlite/sqlite.js',
  },
  'read-models-know-domain-and-store': { 'src/read-models/planted.ts': '../ledger/stores/sqlite/sqlite.js' },
  'coordinator-knows-ports': { 'src/coordinator/planted.ts': '../ledger/stores/sqlite/sqlite.js' },
  'queries-know-the-coordinator': { 'src/queries/planted.ts': '../ledger/stores/sqlite/sqlite.js' },
  'leases-know-the-store': { 'src/lease/planted.ts': '../ledger/stores/sqlite/sqlite.js' },
  'http-knows-doors': {
    'src/http/planted.ts': '../coordinator/execute-activity.js',
    'src/http/planted.module.ts': '../coordinator/execute-activity.js',
  },
  'nest-builds-providers': {
    'src/activities/nested.ts': '@nestjs/common',
    'src/decide/nested.ts': '@nestjs/common',
    'src/domain/nested.ts': '@nestjs/common',
    'src/coordinator/nested.ts': '@nestjs/common',
    'src/stamps/nested.ts': '@nestjs/common',
  },
  'nobody-imports-the-root': {
    'src/http/rooted.ts': '../app/create-coordinator.js',
    'src/cli/rooted.ts': '../main.js',
  },
  'only-modules-import-modules': { 'src/http/wired.ts': '../coordinator/coordinator.module.js' },
  'the-proxy-alone-is-no-coordinator': { 'src/app/start-auth-proxy.ts': '../ledger/event-store.js' },
  'one-driver-for-sqlite': { 'src/read-models/driving.ts': 'libsql' },
  'libraries-for-secp256k1': { 'src/stamps/signing.ts': 'secp256k1' },
  'hosts-of-others-in-one-thread': { 'src/webhooks/calling.ts': 'undici' },
  'one-client-for-event-store-db': { 'src/ledger/stores/another.ts': '@eventstore/db-client' },
  'packages-know-one-entry': { 'packages/analyze/src/planted.ts': '../../../src/domain/nothing.js' },
  'the-product-needs-no-package': {
    'src/cli/packaged.ts': '../../packages/analyze/src/nothing.js',
    'src/http/entering.ts': '../internal.js',
  },
  'no-test-code-in-the-product': {
    'src/http/testing.ts': '../testing/nothing.js',
    'src/http/benched.ts': '../../bench/nothing.js',
  },
  resolvable: { 'src/http/lost.ts': './nowhere.js' },
};

/** What the plants import, so that all but the last can be found. */
const targets = [
  'packages/analyze/src/nothing.ts',
  'src/activities/index.ts',
  'src/app/create-coordinator.ts',
  'src/coordinator/coordinator.module.ts',
  'src/internal.ts',
  'src/main.ts',
  'src/coordinator/execute-activity.ts',
  'src/coordinator/nothing.ts',
  'src/domain/nothing.ts',
  'src/ledger/event-store.ts',
  'src/ledger/stores/sqlite/sqlite.ts',
  'src/wire/cycle-b.ts',
  'src/wire/nothing.ts',
  'src/testing/nothing.ts',
  'bench/nothing.ts',
];

/** A tree with these files in it, and the rules, packages and settings of this one. */
async function treeOf(files: Readonly<Record<string, string>>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'countersign-rules-'));
  for (const name of [rulesFile, 'tsconfig.json', 'package.json']) await copyFile(join(root, name), join(folder, name));
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
  const texts = [
    ...targets.map((path) => [path, 'export const nothing = 0;\n'] as const),
    ...Object.entries(files).map(([path, imported]) => [path, `import '${imported}';\n`] as const),
    ['src/wire/cycle-b.ts', "import './cycle-a.js';\n"] as const,
  ];
  for (const [path, text] of texts) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
  return folder;
}

describe('who may import whom', () => {
  it('has a planted violation for each rule', () => {
    expect(Object.keys(planted).toSorted()).toEqual(forbidden.map(({ name }) => name).toSorted());
  });

  it('fails on each violation, by the name of its rule', async () => {
    const folder = await treeOf(Object.assign({}, ...Object.values(planted)) as Record<string, string>);
    const { exitCode, violations } = await cruise(folder);
    await rm(folder, { recursive: true });
    expect(exitCode).toBe(violations.length);
    const plants = Object.values(planted).flatMap((files) => Object.keys(files));
    expect(violations.filter((violation) => !plants.some((path) => violation.endsWith(`: ${path}`)))).toEqual([]);
    for (const [rule, files] of Object.entries(planted)) {
      for (const path of Object.keys(files)) expect(violations).toContain(`${rule}: ${path}`);
    }
  }, 60_000);
});

describe('the rooms', () => {
  /** Those that a room imports from, types included. */
  async function roomsImportedBy(): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
    const rooms = new Map<string, Set<string>>();
    for (const file of await filesUnder('src', /\.ts$/)) {
      const [, room, ...rest] = file.split('/');
      if (rest.length === 0) continue;
      const imported = rooms.get(room!) ?? rooms.set(room!, new Set()).get(room!)!;
      for (const [, path] of (await textOf(file)).matchAll(/(?:from |import\(|^import )'(\.\.?\/[^']+)'/gm)) {
        const [, other, ...more] = relative(root, join(root, dirname(file), path!)).split('/');
        if (more.length > 0 && other !== room) imported.add(other!);
      }
    }
    return rooms;
  }

  it('form no circle, types and modules included', async () => {
    const rooms = new Map(await roomsImportedBy());
    expect(rooms.size).toBeGreaterThan(20);
    for (let before = Infinity; rooms.size < before;) {
      before = rooms.size;
      for (const [room, imported] of rooms) if (![...imported].some((other) => rooms.has(other))) rooms.delete(room);
    }
    expect([...rooms.keys()]).toEqual([]);
  });
});

describe('every activity', () => {
  const listed = async () => {
    const files = await filesUnder('src/activities', /\.ts$/);
    const verbs: string[] = [];
    for (const file of files) {
      if (/^export const \w+ = define(?:Activity|Vote)\(/m.test(await textOf(file))) verbs.push(file);
    }
    return verbs;
  };

  it('is in the list, once, and the list has no others', async () => {
    const text = await textOf('src/activities/index.ts');
    const imported = [...text.matchAll(/^import \{ \w+ \} from '\.\/(.+)\.js';$/gm)].map(
      (match) => `src/activities/${match[1]}.ts`,
    );
    const verbs = await listed();
    expect(verbs.length).toBeGreaterThanOrEqual(24);
    expect(imported.toSorted()).toEqual(verbs);
  });

  it('is decided by a spec of its area', async () => {
    const verbs = await listed();
    const specs = await filesUnder('test/activities', /\.(decisions|spec)\.ts$/);
    const decided = new Set<string>();
    for (const spec of specs) {
      for (const [, path] of (await textOf(spec)).matchAll(/^import .* from '(\.\.\/.+)\.js';$/gm)) {
        const file = relative(root, join(root, dirname(spec), `${path}.ts`));
        if (dirname(file) === dirname(spec).replace(/^test/, 'src')) decided.add(file);
      }
    }
    expect(verbs.filter((file) => !decided.has(file))).toEqual([]);
  });

  it('is named after its file', async () => {
    for (const file of await listed()) {
      const name = basename(file, '.ts').replace(/-([a-z])/g, (_dash, letter: string) => letter.toUpperCase());
      expect(await textOf(file)).toContain(`export const ${name} = define`);
    }
  });
});

describe('the rooms that decide and record', () => {
  /** Lines of the longest file in them. */
  const most = 250;

  it.each(['coordinator', 'decide', 'ledger'])('hold files of a size to read in one go: %s', async (room) => {
    const files = await filesUnder(`src/${room}`, /\.ts$/);
    expect(files.length).toBeGreaterThan(10);
    const lengths = await Promise.all(
      files.map(async (file) => [file, (await textOf(file)).split('\n').length - 1] as const),
    );
    expect(lengths.filter(([, lines]) => lines > most)).toEqual([]);
  });
});

describe('the map in CONTRIBUTING', () => {
  it('names paths that exist', async () => {
    const map = /^## The map\n(.*?)^## /ms.exec(await textOf('CONTRIBUTING.md'))?.[1] ?? '';
    const paths = [...map.matchAll(/`((?:src|test)\/[^`]+)`/g)].map(([, path]) => path!.replace(/\/<.*$/, ''));
    expect(paths.length).toBeGreaterThanOrEqual(10);
    for (const path of paths) expect([path, existsSync(join(root, path))]).toEqual([path, true]);
  });
});

/** What jest itself imports, by its default export. */
async function calledByJest(): Promise<readonly string[]> {
  const texts = await Promise.all(['jest.config.js', 'jest.browser.config.js'].map(textOf));
  return [...texts.join('\n').matchAll(/global(?:Setup|Teardown): '<rootDir>\/([^']+)'/g)].map(([, file]) => file!);
}

describe('nowhere in sources and tests', () => {
  // Written so that this file does not find itself.
  const words: readonly (readonly [string, RegExp])[] = [
    ['an escape from types', new RegExp(`\\bas ${'any'}\\b(?! (?!as\\b)\\w)|<${'any'}>`)],
    ['a silenced compiler', new RegExp(`@ts-${'ignore'}|@ts-${'nocheck'}|@ts-${'expect-error'}`)],
    ['a silenced linter', new RegExp(`eslint-${'disable'}|prettier-${'ignore'}`)],
    ['a test that stands alone', new RegExp(`\\.${'only'}\\(|\\b${'f'}(?:it|describe)\\(`)],
    ['a test that is left out', new RegExp(`\\.${'skip'}\\(|\\.${'todo'}\\(|\\b${'x'}(?:it|describe|test)\\(`)],
    ['something left to do', new RegExp(`\\b(?:${'TO'}DO|${'FIX'}ME|${'XX'}X)\\b`)],
    ['a default export', new RegExp(`^export ${'default'} `, 'm')],
    ['a folder of somebody’s machine', new RegExp(`['"\`\\s(]/(?:${'home'}|${'Users'}|${'work'}|${'root'})/\\w`)],
  ];

  it.each(words)('is %s', async (what, pattern) => {
    const files = [
      ...(await filesUnder('src', /\.ts$/)),
      ...(await filesUnder('packages/analyze/src', /\.ts$/)),
      ...(await filesUnder('test', /\.(?:ts|mjs)$/)),
    ];
    expect(files.length).toBeGreaterThan(150);
    const excepted = what === 'a default export' ? await calledByJest() : [];
    const found: string[] = [];
    for (const file of files) {
      if (excepted.includes(file)) continue;
      const match = pattern.exec(await textOf(file));
      if (match) found.push(`${file}: ${match[0]}`);
    }
    expect(found).toEqual([]);
  });

  it('would be overlooked', () => {
    const samples = [
      `x as ${'any'} as string`,
      `// @ts-${'ignore'}`,
      `// eslint-${'disable'}-next-line`,
      `it.${'only'}('x')`,
      `describe.${'skip'}('x')`,
      `// ${'TO'}DO later`,
      `export ${'default'} x`,
      `'/${'home'}/ann/x'`,
    ];
    expect(samples.map((sample, index) => words[index]![1].test(sample))).toEqual(samples.map(() => true));
  });
});

describe('the lock file', () => {
  it('pins every package by its content and names no registry', async () => {
    const { packages } = JSON.parse(await textOf('package-lock.json')) as {
      packages: Record<string, { resolved?: string; integrity?: string; link?: boolean; optional?: boolean }>;
    };
    // Links name folders of this repository.
    const installed = Object.entries(packages).filter(([path, { link }]) => path.includes('node_modules/') && !link);
    expect(installed.length).toBeGreaterThan(100);
    expect(installed.filter(([, { resolved }]) => resolved !== undefined).map(([path]) => path)).toEqual([]);
    // Builds for other platforms may be named without what nobody here could fetch.
    const unpinned = installed.filter(([, { integrity, optional }]) => !integrity && !optional);
    expect(unpinned.map(([path]) => path)).toEqual([]);
  });
});
