/**
 * Changes the sources in small ways and counts the changes that no test notices: `npm run test:mutation -- machine`. Without a
 * folder it takes all of them, which takes hours. `--files` names some of a folder's files or lines, separated by commas:
 * `npm run test:mutation -- policy --files src/domain/policy/time.ts:10-40`. `--every 10` takes one of every ten stretches of
 * twelve lines. Results are kept, and a mutant is tried again only where its line or its tests have changed; `--force` tries all.
 */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { folders } from '../test/mutation/folders.mjs';
import { readArguments, refuse } from './arguments.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const { folder, files, every, concurrency, force } = readArguments({
  flags: ['force'],
  options: { files: '', every: 1, concurrency: 1 },
  values: { folder: 'all' },
});
if (folder !== 'all' && !Object.hasOwn(folders, folder)) {
  refuse(`unknown folder \`${folder}\`: use ${Object.keys(folders).join(', ')} or all`);
}

/** Stretches of lines, evenly spaced over all files of a folder. */
function sampleOf(mutated) {
  const lines = 12;
  const stretches = filesIn(mutated).flatMap((file) => {
    const { length } = readFileSync(root + file, 'utf8').split('\n');
    return Array.from(
      { length: Math.ceil(length / lines) },
      (_, at) => `${file}:${at * lines + 1}-${(at + 1) * lines}`,
    );
  });
  return stretches.filter((_, at) => at % every === Math.floor(every / 2));
}

function filesIn(path) {
  if (statSync(root + path).isFile()) return [path];
  const entries = readdirSync(root + path, { recursive: true }).filter((name) => name.endsWith('.ts'));
  return entries.sort().map((name) => `${path}/${name}`);
}

let isBelow = false;
for (const name of folder === 'all' ? Object.keys(folders) : [folder]) {
  const { status } = spawnSync('npx', ['--no-install', 'stryker', 'run', ...(force ? ['--force'] : [])], {
    cwd: root,
    env: {
      ...process.env,
      MUTATION_FOLDER: name,
      MUTATION_FILES: files || (every > 1 ? sampleOf(folders[name].mutate) : filesIn(folders[name].mutate)).join(','),
      MUTATION_CONCURRENCY: String(concurrency),
    },
    stdio: 'inherit',
  });
  isBelow ||= status !== 0;
}
process.exit(isBelow ? 1 : 0);
