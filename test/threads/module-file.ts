import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const folders: string[] = [];
afterAll(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true }))));

/** The file of a module with this code, which threads load. */
export async function moduleFile(code: string): Promise<URL> {
  const folder = await mkdtemp(join(tmpdir(), 'tasks-'));
  folders.push(folder);
  const file = join(folder, 'tasks.mjs');
  await writeFile(file, code);
  return pathToFileURL(file);
}
