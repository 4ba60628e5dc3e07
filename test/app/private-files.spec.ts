import { chmod, mkdir, mkdtemp, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makePrivate } from '../../src/app/private-files.js';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'countersign-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const modeOf = async (name: string) => ((await stat(join(folder, name))).mode & 0o777).toString(8);

test('only the owner may read what a coordinator keeps, however it was left; what is not ours stays as it is', async () => {
  await mkdir(join(folder, 'snapshots'));
  const ours = [
    ...['events.db', 'events.db-wal', 'events.db-shm', 'read-models.db', 'in-use.lock', 'outbox.jsonl', 'root.json'],
    ...['kek', 'old-kek', 'old-kek.0123456789abcdef', 'snapshots/one', 'snapshots/two'],
    // As a crash leaves them.
    ...['root.json.0123456789ab.new', 'kek.0123456789ab.new', 'kek.new'],
  ];
  const others = ['notes.txt', 'events.db.backup-of-somebody'];
  for (const name of [...ours, ...others]) {
    await writeFile(join(folder, name), 'x');
    await chmod(join(folder, name), 0o664);
  }
  await symlink(join(folder, 'notes.txt'), join(folder, 'kek.old'));
  await makePrivate(folder);
  for (const name of ours) expect([name, await modeOf(name)]).toEqual([name, '600']);
  for (const name of others) expect([name, await modeOf(name)]).toEqual([name, '664']);
  expect(await readdir(folder)).toHaveLength(ours.length + others.length);
});
