/** Builds `dist` where it is older than what it is made of: `npm start` and its like need not wait for a compiler. */
import { spawnSync } from 'node:child_process';
import { readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
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
if (madeOf.every((path) => newest(root + path) < lastBuilt)) process.exit(0);

const began = new Date();
const { status } = spawnSync('npx', ['--no-install', 'nest', 'build'], { cwd: root, stdio: 'inherit' });
if (status !== 0) process.exit(status ?? 1);
writeFileSync(built, '');
// What was changed meanwhile is built the next time.
utimesSync(built, began, began);
