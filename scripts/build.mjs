/** Builds `dist` where it is older than what it is made of: `npm start` and its like need not wait for a compiler. */
import './no-arguments.mjs';
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const parts = [
  {
    stamp: `${root}dist/.built`,
    sources: ['src', 'tsconfig.json', 'tsconfig.build.json', 'nest-cli.json', 'package-lock.json'],
    command: ['nest', 'build'],
  },
  {
    stamp: `${root}dist/.pages`,
    sources: ['docs', 'README.md', 'SECURITY.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'package-lock.json'],
    command: ['vitepress', 'build', 'docs', '--logLevel', 'warn'],
  },
];

/** Folders count as well: a file that was deleted or renamed changes nothing else. */
function newest(path) {
  const { mtimeMs } = statSync(path);
  if (!statSync(path).isDirectory()) return mtimeMs;
  const entries = readdirSync(path, { withFileTypes: true, recursive: true })
    // VitePress has a temporary folder in it.
    .filter(({ name }) => name !== '.vitepress');
  return Math.max(mtimeMs, ...entries.map((entry) => statSync(`${entry.parentPath}/${entry.name}`).mtimeMs));
}

const began = new Date();
const stale = parts.filter(({ stamp, sources }) => {
  const lastBuilt = statSync(stamp, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  return sources.some((path) => newest(root + path) >= lastBuilt);
});
const codes = await Promise.all(stale.map(({ command }) => run(command)));
if (codes.some((code) => code !== 0)) process.exit(1);
if (stale.includes(parts[0])) removeOrphans();
for (const { stamp } of stale) {
  writeFileSync(stamp, '');
  // What was changed meanwhile is built the next time.
  utimesSync(stamp, began, began);
}

/** What was made of sources that are there no more would be packed, and could be imported. */
function removeOrphans() {
  for (const entry of readdirSync(`${root}dist`, { withFileTypes: true, recursive: true })) {
    const path = `${entry.parentPath}/${entry.name}`.slice(`${root}dist/`.length);
    const source = /^(?!site\/)(.+?)(?:\.js|\.js\.map|\.d\.ts)$/.exec(path)?.[1];
    if (source && !existsSync(`${root}src/${source}.ts`)) rmSync(`${root}dist/${path}`);
  }
}

/** Resolves to the exit code of a program of a package, or 1. */
function run(command) {
  return new Promise((resolve) => {
    const child = spawn('npx', ['--no-install', ...command], { cwd: root, stdio: 'inherit' });
    child.on('close', (code) => resolve(code ?? 1));
  });
}
