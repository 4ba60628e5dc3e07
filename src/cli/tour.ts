import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { StampingClient } from '../client/stamping-client.js';
import { environment } from '../config/environment.js';
import { apiKeyPairFromPrivate } from '../stamps/sign.js';
import { BadUsage } from './bad-usage.js';
import type { Outcome } from './command.js';
import type { Terminal } from './terminal.js';
import { again } from './tour/again.js';
import { analysed } from './tour/analysis.js';
import { keys } from './tour/keys.js';
import { login } from './tour/login.js';
import { people } from './tour/people.js';
import { openStage } from './tour/stage.js';

interface RootFile {
  /** Absent until a coordinator has listened. */
  readonly apiUrl?: string;
  readonly organizationId: string;
  readonly apiPrivateKey?: string;
  readonly authProxyUrl?: string;
  readonly authProxyConfigId?: string;
}

async function readRoot(
  folder: string,
): Promise<RootFile & { readonly apiUrl: string; readonly apiPrivateKey: string }> {
  const file = join(folder, 'root.json');
  const text = await readFile(file, 'utf8').catch(() => undefined);
  if (text === undefined)
    throw new BadUsage(`${file} does not exist: start a coordinator first (countersign start), in another terminal`);
  const { apiUrl, apiPrivateKey, ...root } = parsed(text, file);
  if (!apiPrivateKey)
    throw new BadUsage(`${file} has no private key (ROOT_API_PUBLIC_KEY was set): the tour needs one`);
  if (!apiUrl)
    throw new BadUsage(
      `${file} has no address: a coordinator began here, but ended before it listened. Start it again (countersign start), in ` +
        'another terminal',
    );
  return { ...root, apiUrl, apiPrivateKey };
}

/** The text has a secret in it: no error may quote it. */
function parsed(text: string, file: string): RootFile {
  try {
    return JSON.parse(text) as RootFile;
  } catch {
    throw new BadUsage(`${file} is not JSON: repair it; it holds the key that the tour needs`);
  }
}

export interface TourOptions {
  readonly dataDir?: string;
  readonly json?: boolean;
}

/** Plays a story against a running server with real stamps, and tells it on the terminal. */
export async function tour(terminal: Terminal, options: TourOptions): Promise<Outcome> {
  const { dataDir, json: isForProgram = false } = options;
  const folder = terminal.path(dataDir ?? environment(terminal.env)['DATA_DIR'] ?? './data');
  const root = await readRoot(folder);
  const { apiUrl, organizationId } = root;
  const client = new StampingClient(apiUrl, organizationId, apiKeyPairFromPrivate(root.apiPrivateKey));
  const run = randomBytes(2).toString('hex');
  const stage = openStage(terminal, { isForProgram });
  const cast = await people(stage, apiUrl, client, run);
  await keys(stage, apiUrl, cast, run);
  await analysed(stage, terminal);
  const { authProxyUrl, authProxyConfigId } = root;
  if (authProxyUrl && authProxyConfigId)
    await login(stage, apiUrl, { authProxyUrl, authProxyConfigId }, client, { run, dataDir: folder });
  await again(stage, terminal, dataDir === undefined ? {} : { dataDir }, cast);
  return {
    text: `\n${stage.green('That was it.')} The docs are at ${apiUrl}/docs\n`,
    json: { organizationId, apiUrl, chapters: stage.chapters },
  };
}
