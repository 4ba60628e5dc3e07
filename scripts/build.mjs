/** Builds `dist` where it is older than what it is made of: `npm start` and its like need not wait for a compiler. */
import './no-arguments.mjs';
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const built = `${root}dist/.built`;
const madeOf = ['src', 'tsconfig.json', 'tsconfig.build.json', 'nest-cli.json', 'package-lock.json'];

/** Folders count as well: a file that was deleted or renamed changes nothing else. */
function newest(path) {
  const { mtimeMs } = statSync(path);
  if (!statSync(path).isDirectory()) return mtimeMs;
  const entries = readdirSync(path, { withFileTypes: true, recursive: true });
  return Math.max(mtimeMs, ...entries.map((entry) => statSync(`${entry.parentPath}/${entry.name}`).mtimeMs));
}

const lastBuilt = statSync(built, { throwIfNoEntry: false })?.mtimeMs ?? 0;
if (madeOf.some((path) => newest(root + path) >= lastBuilt)) {
  const began = new Date();
  run('npx', ['--no-install', 'nest', 'build']);
  removeOrphans();
  writeFileSync(built, '');
  // What was changed meanwhile is built the next time.
  utimesSync(built, began, began);
}

// The last file that VitePress writes.
const pages = `${root}dist/site/code.css`;
const pagesMadeOf = ['docs', 'README.md', 'SECURITY.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'package-lock.json'];
const pagesBuilt = statSync(pages, { throwIfNoEntry: false })?.mtimeMs ?? 0;
if (pagesMadeOf.some((path) => newest(root + path) >= pagesBuilt)) {
  run('npx', ['--no-install', 'vitepress', 'build', 'docs']);
}

/** What was made of sources that are there no more would be packed, and could be imported. */
function removeOrphans() {
  for (const entry of readdirSync(`${root}dist`, { withFileTypes: true, recursive: true })) {
    const path = `${entry.parentPath}/${entry.name}`.slice(`${root}dist/`.length);
    const source = /^(?!site\/)(.+?)(?:\.js|\.js\.map|\.d\.ts)$/.exec(path)?.[1];
    if (source && !existsSync(`${root}src/${source}.ts`)) rmSync(`${root}dist/${path}`);
  }
}

function run(command, args) {
  const { status } = spawnSync(command, args, { cwd: root, stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}
