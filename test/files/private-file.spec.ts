import { spawnSync } from 'node:child_process';
import { copyFile, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createPrivateFile, removeCopiesOf } from '../../src/files/private-file.js';
import { replaceKeyFile } from '../../src/vault/kek-source.js';

const dist = fileURLToPath(new URL('../../dist/', import.meta.url));
let folder: string;
let file: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'countersign-private-'));
  file = join(folder, 'kek');
});

afterEach(() => rm(folder, { recursive: true }));

/** A process that creates the file and is killed as it is about to remove the name before. */
function killedBetweenNames(text: string): void {
  const script = `
    import fs from 'node:fs/promises';
    import { syncBuiltinESMExports } from 'node:module';
    fs.rm = () => process.kill(process.pid, 'SIGKILL');
    syncBuiltinESMExports();
    const { createPrivateFile } = await import(${JSON.stringify(`${dist}files/private-file.js`)});
    await createPrivateFile(process.argv[1], process.argv[2]);
  `;
  const { signal } = spawnSync(process.execPath, ['--input-type=module', '-e', script, file, text], {
    timeout: 60_000,
  });
  expect(signal).toBe('SIGKILL');
}

const key = `${'ab'.repeat(32)}\n`;
const left = expect.stringMatching(/^kek\.[0-9a-f]{12}\.new$/) as string;

test.each([
  ['is created again', () => createPrivateFile(file, 'another').then((isOurs) => expect(isOurs).toBe(false)), key],
  ['is looked after', () => removeCopiesOf(file), key],
  ['is replaced', () => replaceKeyFile(file, [Buffer.alloc(32, 1)]), `${'01'.repeat(32)}\n`],
])('the second name that a crash leaves a key is gone once its file %s', async (_, doing, said) => {
  killedBetweenNames(key);
  expect(await readdir(folder)).toEqual(['kek', left]);
  await doing();
  expect(await readdir(folder)).toEqual(['kek']);
  expect(await readFile(file, 'utf8')).toBe(said);
});

test('only copies are removed: what says something else, or has another name, may be the only one of its kind', async () => {
  await writeFile(file, key);
  const others = ['kek.0123456789ab.new', 'kek.new', 'kek.copy', 'old-kek.0123456789ab.new', 'kek.0123456789ac.new'];
  await writeFile(join(folder, others[0]!), 'another key');
  for (const name of others.slice(1, 4)) await copyFile(file, join(folder, name));
  await symlink(file, join(folder, others[4]!));
  await copyFile(file, join(folder, 'kek.0123456789ad.new'));
  await removeCopiesOf(file);
  expect((await readdir(folder)).toSorted()).toEqual([...others, 'kek'].toSorted());
});

test('without the file nothing is removed: what is beside it may be all that there is', async () => {
  await writeFile(join(folder, 'kek.0123456789ab.new'), key);
  await removeCopiesOf(file);
  expect(await readdir(folder)).toEqual(['kek.0123456789ab.new']);
});
