import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ApiError, StampingClient } from '../client/stamping-client.js';
import { environment } from '../config.js';
import { apiKeyPairFromPrivate } from '../stamps/sign.js';
import { keys } from './tour/keys.js';
import { login } from './tour/login.js';
import { people } from './tour/people.js';
import { green, say } from './tour/stage.js';

/** Plays a story against a running server with real stamps, and tells it on the terminal. */

interface RootFile {
  readonly apiUrl: string;
  readonly organizationId: string;
  readonly apiPrivateKey?: string;
  readonly authProxyUrl?: string;
  readonly authProxyConfigId?: string;
}

async function readRoot(): Promise<RootFile & { readonly apiPrivateKey: string }> {
  const file = join(environment()['DATA_DIR'] ?? './data', 'root.json');
  const text = await readFile(file, 'utf8').catch(() => undefined);
  if (text === undefined)
    throw new Error(`${file} is not there: start the server first (npm start), in another terminal`);
  const root = JSON.parse(text) as RootFile;
  if (!root.apiPrivateKey)
    throw new Error(`${file} has no private key (ROOT_API_PUBLIC_KEY was set): the tour needs one`);
  return { ...root, apiPrivateKey: root.apiPrivateKey };
}

/** It takes none, and whoever gives one expects something else of it. */
function refuseArguments(): void {
  const given = process.argv.slice(2);
  if (given.length === 0) return;
  process.stderr.write(
    `the tour takes no arguments, got ${given.join(' ')}: npm run tour, beside a server that runs\n`,
  );
  process.exit(2);
}

async function tour(): Promise<void> {
  const root = await readRoot();
  const { apiUrl, organizationId } = root;
  const client = new StampingClient(apiUrl, organizationId, apiKeyPairFromPrivate(root.apiPrivateKey));
  const run = randomBytes(2).toString('hex');
  const cast = await people(apiUrl, client, run);
  await keys(apiUrl, cast, run);
  const { authProxyUrl, authProxyConfigId } = root;
  if (authProxyUrl && authProxyConfigId) await login(apiUrl, { authProxyUrl, authProxyConfigId }, client, run);
  say(`\n${green('That was it.')} The reference is at ${apiUrl}/docs`);
}

try {
  refuseArguments();
  await tour();
} catch (error) {
  const reason =
    error instanceof ApiError ? `${error.message}\n${JSON.stringify(error.body.details, null, 2)}` : String(error);
  const isDown = error instanceof TypeError && error.message === 'fetch failed';
  process.stderr.write(`\ntour stopped: ${isDown ? 'the server does not answer: is npm start running?' : reason}\n`);
  process.exit(1);
}
