import { chmod, lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';

/** Files of a coordinator in its folder, and the folders in which every file is its own. */
const files =
  /^(?:(?:events|read-models)\.db(?:-wal|-shm|-journal|\.pid|\.lock)?|in-use\.lock|outbox\.jsonl|store\.json|(?:root\.json|(?:old-)?kek)(?:\.\w+)*)$/;
const folders = ['snapshots'];

/**
 * Makes everything that a coordinator has left in its folder readable only by its owner, whatever the folder was: files
 * copied back from a backup may be readable by all. Links, and files that are not ours, are left
 * alone.
 */
export async function makePrivate(dataDir: string): Promise<void> {
  for (const name of await readdir(dataDir)) if (files.test(name)) await restrict(join(dataDir, name));
  for (const folder of folders) {
    const path = join(dataDir, folder);
    for (const name of await readdir(path).catch(() => [])) await restrict(join(path, name));
  }
}

/** Files of other users stay as they are: access was given on purpose, for example to a mounted secret. */
async function restrict(file: string): Promise<void> {
  const entry = await lstat(file).catch(() => undefined);
  if (!entry?.isFile() || (entry.mode & 0o077) === 0 || entry.uid !== process.getuid?.()) return;
  await chmod(file, entry.mode & 0o700);
}
