import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';

/**
 * Opens a file that somebody else may have made: a device never ends, and a pipe waits for a writer.
 * @throws {Error} if it is not a regular file, or has more bytes
 */
export async function openRegularFile(path: string, mostBytes: number): Promise<FileHandle> {
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const about = await handle.stat();
    if (!about.isFile()) throw new Error('it is not a file');
    if (about.size > mostBytes) throw new Error(`it has ${about.size} bytes; at most ${mostBytes} are allowed`);
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** The text of a regular file of at most so many bytes, even if it grows meanwhile. @throws {Error} */
export async function regularText(path: string, mostBytes: number): Promise<string> {
  const handle = await openRegularFile(path, mostBytes);
  try {
    const bytes = Buffer.alloc(mostBytes);
    let length = 0;
    for (;;) {
      const { bytesRead } = await handle.read(bytes, length, mostBytes - length, length);
      if (bytesRead === 0) return bytes.toString('utf8', 0, length);
      length += bytesRead;
    }
  } finally {
    await handle.close();
  }
}
