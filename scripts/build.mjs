/**
 * Builds `dist`, and those of `packages`, where they are older than what they are made of: `npm start` and its like need not wait for
 * a compiler.
 */
import './no-arguments.mjs';
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const settings = ['tsconfig.json', 'package-lock.json'];

/** Folders count as well: a file that was deleted or renamed changes nothing else. */
function newest(path) {
  const { mtimeMs } = statSync(path);
  if (!statSync(path).isDirectory()) return mtimeMs;
  const entries = readdirSync(path, { withFileTypes: true, recursive: true });
  return Math.max(mtimeMs, ...entries.map((entry) => statSync(`${entry.parentPath}/${entry.name}`).mtimeMs));
}

build('', ['nest', 'build'], ['nest-cli.json', 'tsconfig.build.json']);
// An image of the product has none.
for (const name of existsSync(`${root}packages`) ? readdirSync(`${root}packages`) : []) {
  const config = `packages/${name}/tsconfig.build.json`;
  build(`packages/${name}/`, ['tsc', '--project', config], [config]);
}

/** Makes the `dist` of a folder of its `src`. */
function build(folder, command, madeOf) {
  const built = `${root}${folder}dist/.built`;
  const lastBuilt = statSync(built, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  if (![`${folder}src`, ...madeOf, ...settings].some((path) => newest(root + path) >= lastBuilt)) return;
  const began = new Date();
  run('npx', ['--no-install', ...command]);
  removeOrphans(folder);
  writeFileSync(built, '');
  // What was changed meanwhile is built the next time.
  utimesSync(built, began, began);
}

const pages = `${root}dist/site/search.json`;
const pagesMadeOf = [
  'docs',
  'README.md',
  'SECURITY.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'scripts/site',
  'scripts/build-docs.mjs',
];
const pagesBuilt = statSync(pages, { throwIfNoEntry: false })?.mtimeMs ?? 0;
if (pagesMadeOf.some((path) => newest(root + path) >= pagesBuilt)) run(process.execPath, ['scripts/build-docs.mjs']);

/** What was made of sources that are there no more would be packed, and could be imported. */
function removeOrphans(folder) {
  const dist = `${root}${folder}dist/`;
  for (const entry of readdirSync(dist, { withFileTypes: true, recursive: true })) {
    const path = `${entry.parentPath}/${entry.name}`.slice(dist.length);
    const source = /^(?!site\/)(.+?)(?:\.js|\.js\.map|\.d\.ts)$/.exec(path)?.[1];
    if (source && !existsSync(`${root}${folder}src/${source}.ts`)) rmSync(dist + path);
  }
}

function run(command, args) {
  const { status } = spawnSync(command, args, { cwd: root, stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}
