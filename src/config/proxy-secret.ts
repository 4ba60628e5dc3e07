import { randomBytes } from 'node:crypto';
import { mkdir, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { createPrivateFile } from '../files/private-file.js';
import type { Config } from './config.js';

/**
 * The secret that an auth proxy presents to the API; undefined if neither PROXY_SECRET nor PROXY_SECRET_FILE is set. A
 * missing file is created, but not by the proxy: of several APIs that start at once, one creates it, and all read it.
 * @throws if the file cannot be read or created
 */
export async function readProxySecret({
  app,
  proxySecret,
  proxySecretFile: file,
}: Pick<Config, 'app' | 'proxySecret' | 'proxySecretFile'>): Promise<string | undefined> {
  if (proxySecret !== undefined || file === undefined) return proxySecret;
  if (app !== 'proxy') await make(file);
  let secret: string;
  try {
    secret = (await readFile(file, 'utf8')).trim();
  } catch (error) {
    const hint = app === 'proxy' ? 'start the API first, which creates it' : 'make sure that it can be read';
    throw new Error(`PROXY_SECRET_FILE=${file}: cannot be read (${String(error)}): ${hint}`, { cause: error });
  }
  if (/^[\x21-\x7e]{32,512}$/.test(secret)) return secret;
  throw new Error(`PROXY_SECRET_FILE=${file}: must contain 32 to 512 printable characters without spaces`);
}

async function make(file: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  try {
    await createPrivateFile(file, `${randomBytes(32).toString('base64url')}\n`);
  } catch (error) {
    // If it cannot be created here, it may still exist, for example on a volume that another API writes to.
    if ((error as { code?: unknown }).code === 'EROFS') return;
    throw new Error(`PROXY_SECRET_FILE=${file}: cannot be created (${String(error)})`, { cause: error });
  }
}
