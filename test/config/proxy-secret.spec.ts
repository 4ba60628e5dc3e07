import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readProxySecret } from '../../src/config/proxy-secret.js';
import { saidWithoutRoom } from '../files/without-room.js';

let folder: string;
beforeEach(async () => (folder = await mkdtemp(join(tmpdir(), 'countersign-secret-'))));
afterEach(() => rm(folder, { recursive: true, force: true }));

const read = (app: 'all' | 'api' | 'proxy', proxySecretFile: string | undefined, proxySecret?: string) =>
  readProxySecret({ app, proxySecret, proxySecretFile });

test('uses a given secret unchanged', async () => {
  expect(await read('api', join(folder, 'secret'), 'given')).toBe('given');
  expect(await read('all', undefined)).toBeUndefined();
});

test('APIs that start at once share one secret, in a file that only its owner can read', async () => {
  const file = join(folder, 'deep', 'secret');
  const secrets = await Promise.all([1, 2, 3, 4].map(() => read('api', file)));
  expect(new Set(secrets).size).toBe(1);
  expect(secrets[0]).toMatch(/^[\w-]{43}$/);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(await read('proxy', file)).toBe(secrets[0]);
  expect(await readFile(file, 'utf8')).toBe(`${secrets[0]}\n`);
});

test('where there is no room for the secret, no file is left that the next start would refuse', async () => {
  const file = join(folder, 'secret');
  const given = JSON.stringify({ app: 'api', proxySecretFile: file });
  expect(saidWithoutRoom('config/proxy-secret.js', `tried.readProxySecret(${given})`)).toContain('EFBIG');
  expect(await readdir(folder)).toEqual([]);
  expect(await read('api', file)).toMatch(/^[\w-]{43}$/);
});

test('a proxy creates no file, and says what to do', async () => {
  const file = join(folder, 'secret');
  await expect(read('proxy', file)).rejects.toThrow(/PROXY_SECRET_FILE=.*start the API first, which creates it/);
  await expect(stat(file)).rejects.toThrow('ENOENT');
});

test.each(['', 'short', 'a secret with spaces that is long enough'])('a file with %j is refused', async (text) => {
  const file = join(folder, 'secret');
  await writeFile(file, text);
  await chmod(file, 0o600);
  await expect(read('api', file)).rejects.toThrow('must contain 32 to 512 printable characters');
});
