import { readdirSync, readFileSync } from 'node:fs';
import { copyFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';

const folder = new URL('../vectors/data-folders/', import.meta.url);

/** The commits whose data folders are kept, and the key-encryption key that they were recorded with. */
export const commits: readonly string[] = readdirSync(folder).filter((name) => !name.includes('.'));
export const keyOfFolders = readFileSync(new URL('kek.txt', folder), 'utf8').trim();

/** What its own commit has folded a stream into, maps as lists of [key, value]. */
export interface OwnFold {
  readonly revision: number;
  readonly hash: string;
  readonly state: Readonly<Record<string, unknown>>;
}

/** By stream, as the commit has folded it. */
export function ownFolds(commit: string): ReadonlyMap<string, OwnFold> {
  const text = readFileSync(new URL(`${commit}/states.json`, folder), 'utf8');
  return new Map(Object.entries(JSON.parse(text) as Record<string, OwnFold>));
}

/** Unpacks a data folder as its commit has left it. */
export async function unpack(commit: string, dataDir: string): Promise<void> {
  const from = new URL(`${commit}/`, folder);
  await writeFile(join(dataDir, 'events.db'), gunzipSync(readFileSync(new URL('events.db.gz', from))));
  await copyFile(new URL('root.json', from), join(dataDir, 'root.json'));
}
