import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { copyFile, link, lstat, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/*
 * Files that may hold the only copy of a key: readable only by their owner, there with all of their text or not at all, and on
 * disk, with their name, once they are written. What a crash leaves beside them ends in `.new`; `removeCopiesOf` removes it.
 */

/** Replaces a file: a crash at any moment leaves the old one or the new one. */
export async function replacePrivateFile(file: string, text: string | Uint8Array): Promise<void> {
  await place(file, text, (beside) => rename(beside, file));
}

/** The same for a file that others may read, as far as the umask allows. */
export async function replaceSharedFile(file: string, text: string): Promise<void> {
  await place(file, text, (beside) => rename(beside, file), 0o666);
}

/** Creates a file, unless there is one; returns whether it did. Of several that are created at once, one is. */
export async function createPrivateFile(file: string, text: string): Promise<boolean> {
  // Where there is one, its folder need not be open to us for writing.
  if (await isThere(file)) {
    await removeCopiesOf(file);
    return false;
  }
  try {
    await place(file, text, (beside) => linkOrCopy(beside, file));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/**
 * Removes what a crash has left beside a file, if it says the same: a copy of a key should not outlive the key. Anything else may
 * be the only copy of one, or be given its name at this moment. Copies in a folder that is not ours to change stay.
 */
export async function removeCopiesOf(file: string): Promise<void> {
  const copies = await copiesOf(file).catch(() => []);
  if (copies.length === 0) return;
  try {
    // A copy goes only once the file could not be lost with its name.
    await sync(file, 'r');
    await syncFolderOf(file);
    for (const copy of copies) await rm(copy, { force: true });
  } catch (error) {
    if (!notOurs.has((error as NodeJS.ErrnoException).code)) throw error;
  }
}

const notOurs: ReadonlySet<string | undefined> = new Set(['EACCES', 'EPERM', 'EROFS']);

async function copiesOf(file: string): Promise<readonly string[]> {
  const start = `${basename(file)}.`;
  const names = (await readdir(dirname(file))).filter(
    (name) => name.startsWith(start) && besidePattern.test(name.slice(start.length)),
  );
  if (names.length === 0) return [];
  const said = await readFile(file);
  const copies: string[] = [];
  for (const beside of names.map((name) => join(dirname(file), name)))
    if ((await lstat(beside)).isFile() && said.equals(await readFile(beside))) copies.push(beside);
  return copies;
}

const besidePattern = /^[0-9a-f]{12}\.new$/;

/** Without this, a power failure could lose the name of a new file, and with it the only copy of a key. */
export async function syncFolderOf(file: string): Promise<void> {
  await sync(dirname(file), 'r');
}

async function sync(path: string, flags: string): Promise<void> {
  const handle = await open(path, flags);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Hard links are not everywhere: SMB and FAT have none. There, a crash can leave a part of the file. */
async function linkOrCopy(beside: string, file: string): Promise<void> {
  try {
    await link(beside, file);
  } catch (error) {
    if (!noLinks.has((error as NodeJS.ErrnoException).code)) throw error;
    await copyFile(beside, file, constants.COPYFILE_EXCL);
    await sync(file, 'r+');
  }
}

const noLinks: ReadonlySet<string | undefined> = new Set(['EPERM', 'ENOSYS', 'ENOTSUP', 'EOPNOTSUPP']);

/** A name of its own for each, because others may write the same file at the same moment. */
async function place(
  file: string,
  text: string | Uint8Array,
  give: (beside: string) => Promise<void>,
  mode = 0o600,
): Promise<void> {
  const beside = `${file}.${randomBytes(6).toString('hex')}.new`;
  try {
    const handle = await open(beside, 'wx', mode);
    try {
      await handle.writeFile(text);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await give(beside);
  } finally {
    await rm(beside, { force: true });
  }
  await syncFolderOf(file);
}

async function isThere(file: string): Promise<boolean> {
  try {
    await lstat(file);
    return true;
  } catch {
    return false;
  }
}
