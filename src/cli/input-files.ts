import { readFile } from 'node:fs/promises';
import { BadUsage } from './bad-usage.js';
import { printable } from './layout.js';

/** The bytes of a file that was named. @throws {BadUsage} if it cannot be read */
export async function bytesIn(path: string): Promise<Buffer> {
  return readFile(path).catch((cause: unknown) => {
    throw unreadable(path, cause);
  });
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'it does not exist',
  ENOTDIR: 'it does not exist',
  EISDIR: 'it is a folder',
  EACCES: 'you have no permission',
};

/** Says which file or folder could not be read, once, and why. */
export function unreadable(path: string, cause: unknown): BadUsage {
  const { code = '', message = String(cause) } = cause as Partial<NodeJS.ErrnoException>;
  return new BadUsage(`${printable(path)} cannot be read: ${reasons[code] ?? message}`, { cause });
}

/** A revision as typed after an option. @throws {BadUsage} if it is none */
export function typedRevision(option: string, text: string): number {
  if (/^\d{1,10}$/.test(text)) return Number(text);
  throw new BadUsage(`--${option} takes a revision such as 41, not \`${printable(text)}\``);
}
