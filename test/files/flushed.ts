import { open, readdir, stat, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * Tells of whatever is flushed to the disk in a folder while something runs: the name of a file, as it is at that moment,
 * or `folder with` the names in it. What stands for chance in a name is left out.
 */
export async function tellFlushed<Result>(
  folder: string,
  tell: (flushed: string) => void,
  run: () => Promise<Result>,
): Promise<Result> {
  const handle = await open(folder);
  const prototype = Object.getPrototypeOf(handle) as { sync: FileHandle['sync'] };
  await handle.close();
  const { sync } = prototype;
  prototype.sync = async function (this: FileHandle) {
    await sync.call(this);
    const { ino } = await this.stat();
    const names = await readdir(folder);
    const inodes = await Promise.all(names.map(async (name) => (await stat(join(folder, name))).ino));
    const plain = names.map((name) => name.replace(/\.[0-9a-f]{12}\.new$/, '.new'));
    if (ino === (await stat(folder)).ino) tell(`folder with ${plain.toSorted().join(' and ')}`);
    else if (inodes.includes(ino)) tell(plain[inodes.indexOf(ino)]!);
  };
  try {
    return await run();
  } finally {
    prototype.sync = sync;
  }
}
