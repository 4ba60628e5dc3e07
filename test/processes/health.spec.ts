import { statfs } from 'node:fs/promises';
import { join } from 'node:path';
import Database from 'libsql';
import { exchange } from '../e2e/exchange.js';
import { Installation } from '../e2e/installation.js';
import { linesIn } from '../e2e/log-lines.js';
import { until } from '../e2e/until.js';

const patience = 120_000;

let installation: Installation;

beforeEach(async () => {
  installation = await Installation.make();
});

afterEach(() => installation.remove());

interface Readiness {
  readonly status: string;
  readonly conditions?: readonly { readonly name: string; readonly severity: string; readonly message: string }[];
}

async function readiness(url: string): Promise<Readiness & { readonly code: number }> {
  const { status: code, body } = await exchange(`${url}/health/ready`);
  return { code, ...(body as Readiness) };
}

async function conditionsIn(url: string): Promise<string[]> {
  const { text } = await exchange(`${url}/metrics`);
  return text.split('\n').filter((line) => line.startsWith('countersign_condition{'));
}

test(
  'a disk with less free space than MIN_FREE_DISK turns readiness red, and one that is nearly full degrades it',
  async () => {
    const full = await installation.start({ MIN_FREE_DISK: '8000TiB' });
    expect(await readiness(full.url)).toMatchObject({
      code: 503,
      status: 'failed',
      conditions: [
        { name: 'disk-space', severity: 'failing', message: expect.stringContaining('make room') as string },
      ],
    });
    expect(linesIn(full.stderr())).toContainEqual(
      expect.objectContaining({ level: 40, condition: 'disk-space', severity: 'failing' }),
    );
    for (const path of ['live', 'startup']) expect((await exchange(`${full.url}/health/${path}`)).status).toBe(200);
    full.child.kill('SIGTERM');
    expect((await full.exit).code).toBe(0);

    const { bavail, bsize } = await statfs(installation.dataDir);
    const half = String(Math.floor((bavail * bsize) / 1024 / 2));
    const nearly = await installation.start({ MIN_FREE_DISK: `${half}KiB` });
    expect(await readiness(nearly.url)).toMatchObject({
      code: 200,
      status: 'degraded',
      conditions: [{ name: 'disk-space', severity: 'degraded' }],
    });
    expect(await conditionsIn(nearly.url)).toEqual(['countersign_condition{name="disk-space",severity="degraded"} 1']);
  },
  patience,
);

test(
  'a store that nobody can write to turns readiness red though nobody writes, until it can be written to again',
  async () => {
    const server = await installation.start();
    expect(await readiness(server.url)).toMatchObject({ code: 200, status: 'ok' });
    const other = new Database(join(installation.dataDir, 'events.db'));
    other.exec('BEGIN IMMEDIATE');
    try {
      // An append of the last ten seconds proves that it can be written to.
      await until('it is not ready', async () => (await readiness(server.url)).code === 503);
      expect(await readiness(server.url)).toMatchObject({ code: 503 });
      expect((await exchange(`${server.url}/health/live`)).status).toBe(200);
    } finally {
      other.exec('ROLLBACK');
      other.close();
    }
    await until('it is ready', async () => (await readiness(server.url)).code === 200);
    const client = await installation.client(server.url);
    expect(await client.query('whoami')).toMatchObject({ username: 'Root user' });
  },
  patience,
);
