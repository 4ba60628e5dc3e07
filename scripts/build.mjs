/**
 * Builds `dist` (code and pages), and those of `packages`, where they are older than what they are made of: `npm start` and its like
 * need not wait for a compiler.
 */
import './no-arguments.mjs';
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const settings = ['tsconfig.json', 'package-lock.json'];
// An image of the product has none.
const packages = existsSync(`${root}packages`) ? readdirSync(`${root}packages`) : [];

await Promise.all([
  buildCode('', ['nest', 'build'], ['tsconfig.build.json', 'nest-cli.json']),
  build(
    'dist/.pages',
    ['docs', 'README.md', 'SECURITY.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'package-lock.json'],
    ['vitepress', 'build', 'docs', '--logLevel', 'warn'],
  ),
  ...packages.map((name) => {
    const config = `packages/${name}/tsconfig.build.json`;
    return buildCode(`packages/${name}/`, ['tsc', '--project', config], [config]);
  }),
]);

/** Makes the `dist` of a folder of its `src`. */
async function buildCode(folder, command, madeOf) {
  const isBuilt = await build(`${folder}dist/.built`, [`${folder}src`, ...madeOf, ...settings], command);
  if (isBuilt) removeOrphans(folder);
}

/** Runs a program if a stamp is older than its sources; what was changed meanwhile is built the next time. */
async function build(stamp, sources, command) {
  const lastBuilt = statSync(root + stamp, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  if (!sources.some((path) => newest(root + path) >= lastBuilt)) return false;
  const started = new Date();
  if ((await run(command)) !== 0) process.exit(1);
  writeFileSync(root + stamp, '');
  utimesSync(root + stamp, started, started);
  return true;
}

/** Folders count as well: a file that was deleted or renamed changes nothing else. */
function newest(path) {
  const { mtimeMs } = statSync(path);
  if (!statSync(path).isDirectory()) return mtimeMs;
  const entries = readdirSync(path, { withFileTypes: true, recursive: true })
    // VitePress has a temporary folder in it.
    .filter(({ name }) => name !== '.vitepress');
  return Math.max(mtimeMs, ...entries.map((entry) => statSync(`${entry.parentPath}/${entry.name}`).mtimeMs));
}

/** Code that was made of sources that no longer exist would be packed, and could be imported. */
function removeOrphans(folder) {
  const dist = `${root}${folder}dist/`;
  for (const entry of readdirSync(dist, { withFileTypes: true, recursive: true })) {
    const path = `${entry.parentPath}/${entry.name}`.slice(dist.length);
    const source = /^(?!site\/)(.+?)(?:\.js|\.js\.map|\.d\.ts)$/.exec(path)?.[1];
    if (source && !existsSync(`${root}${folder}src/${source}.ts`)) rmSync(dist + path);
  }
}

/** Resolves to the exit code of a program of a package, or 1. */
function run(command) {
  return new Promise((resolve) => {
    const child = spawn('npx', ['--no-install', ...command], { cwd: root, stdio: 'inherit' });
    child.on('close', (code) => resolve(code ?? 1));
  });
}
