import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { StampingClient } from '../client/stamping-client.js';
import { environment } from '../config.js';
import { apiKeyPairFromPrivate } from '../stamps/sign.js';
import type { Terminal } from './terminal.js';
import { keys } from './tour/keys.js';
import { login } from './tour/login.js';
import { people } from './tour/people.js';
import { green, say } from './tour/stage.js';

interface RootFile {
  readonly apiUrl: string;
  readonly organizationId: string;
  readonly apiPrivateKey?: string;
  readonly authProxyUrl?: string;
  readonly authProxyConfigId?: string;
}

async function readRoot(folder: string): Promise<RootFile & { readonly apiPrivateKey: string }> {
  const file = join(folder, 'root.json');
  const text = await readFile(file, 'utf8').catch(() => undefined);
  if (text === undefined)
    throw new Error(`${file} is not there: start a coordinator first (countersign start), in another terminal`);
  const root = JSON.parse(text) as RootFile;
  if (!root.apiPrivateKey)
    throw new Error(`${file} has no private key (ROOT_API_PUBLIC_KEY was set): the tour needs one`);
  return { ...root, apiPrivateKey: root.apiPrivateKey };
}

/** Plays a story against a running server with real stamps, and tells it on the terminal. */
export async function tour(terminal: Terminal, { dataDir }: { readonly dataDir?: string }): Promise<void> {
  const folder = terminal.path(dataDir ?? environment(terminal.env)['DATA_DIR'] ?? './data');
  const root = await readRoot(folder);
  const { apiUrl, organizationId } = root;
  const client = new StampingClient(apiUrl, organizationId, apiKeyPairFromPrivate(root.apiPrivateKey));
  const run = randomBytes(2).toString('hex');
  const cast = await people(apiUrl, client, run);
  await keys(apiUrl, cast, run);
  const { authProxyUrl, authProxyConfigId } = root;
  if (authProxyUrl && authProxyConfigId)
    await login(apiUrl, { authProxyUrl, authProxyConfigId }, client, { run, dataDir: folder });
  say(`\n${green('That was it.')} The docs are at ${apiUrl}/docs`);
}
