import { readFile } from 'node:fs/promises';
import { BadUsage } from './bad-usage.js';
import { printable } from './replay-text.js';

/** The bytes of a file that was named. @throws {BadUsage} if it cannot be read */
export async function bytesIn(path: string): Promise<Buffer> {
  return readFile(path).catch((cause: unknown) => {
    throw new BadUsage(`${path} cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  });
}

/** A revision as typed after an option. @throws {BadUsage} if it is none */
export function typedRevision(option: string, text: string): number {
  if (/^\d{1,10}$/.test(text)) return Number(text);
  throw new BadUsage(`--${option} takes a revision such as 41, not \`${printable(text)}\``);
}
