import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Installation, stop } from '../e2e/installation.js';

let installation: Installation;

beforeEach(async () => {
  installation = await Installation.make();
});

afterEach(() => installation.remove());

/** Bytes of the files of a coordinator that has ended, which has then emptied their logs into them. */
async function bytesOnDisk(): Promise<{ readonly events: number; readonly rows: number }> {
  const [events, rows] = await Promise.all(
    ['events.db', 'read-models.db'].map(async (name) => (await stat(join(installation.dataDir, name))).size),
  );
  return { events: events!, rows: rows! };
}

test('a submit of three events takes 3 kB of events and 3.2 kB of rows', async () => {
  const submits = 1_000;
  await stop(await installation.start());
  const before = await bytesOnDisk();
  const server = await installation.start();
  const client = await installation.client(server.url);
  const { userId } = await installation.root();
  for (let done = 0; done < submits; done += 50) {
    await Promise.all(
      Array.from({ length: 50 }, (_, at) =>
        client.perform('ACTIVITY_TYPE_UPDATE_USER_NAME', { userId, userName: `Renamed ${done + at}` }),
      ),
    );
  }
  await stop(server);
  const after = await bytesOnDisk();
  // Of pages of 4 KiB, a third of those of events is empty: 4.3 kB (docs/adr/0114).
  expect((after.events - before.events) / submits).toBeLessThan(3_100);
  expect((after.rows - before.rows) / submits).toBeLessThan(3_300);
}, 120_000);
