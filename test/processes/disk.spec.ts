import { join } from 'node:path';
import Database from 'libsql';
import { Installation, stop } from '../e2e/installation.js';

let installation: Installation;

beforeEach(async () => {
  installation = await Installation.make();
});

afterEach(() => installation.remove());

/** Bytes of the files of a coordinator that has ended, with what is only in their logs yet. */
function bytesOnDisk(): { readonly events: number; readonly rows: number } {
  const [events, rows] = ['events.db', 'read-models.db'].map((name) => {
    const database = new Database(join(installation.dataDir, name));
    const sql = 'SELECT page_count * page_size AS bytes FROM pragma_page_count, pragma_page_size';
    const [{ bytes }] = database.prepare(sql).all([]) as [{ bytes: number }];
    database.close();
    return bytes;
  });
  return { events: events!, rows: rows! };
}

test('a submit of three events takes 5 kB: 3 of events and 2 of rows', async () => {
  const submits = 1_000;
  await stop(await installation.start());
  const before = bytesOnDisk();
  const server = await installation.start();
  const client = await installation.client(server.url);
  const { userId } = await installation.root();
  const rename = (count: number) =>
    client.submit('ACTIVITY_TYPE_UPDATE_USER_NAME', { userId, userName: `Renamed ${count}` });
  for (let done = 0; done < submits - 1; done += 37) {
    await Promise.all(Array.from({ length: 37 }, (_, at) => rename(done + at)));
  }
  // Rows follow the events; those of the last submit are the last.
  const { id: activityId } = await rename(submits);
  await client.query('get_activity', { activityId });
  await stop(server);
  const after = bytesOnDisk();
  // With pages of 4 KiB instead of 8, a third of each would stay empty: 4.3 kB.
  expect((after.events - before.events) / submits).toBeLessThan(3_100);
  expect((after.rows - before.rows) / submits).toBeLessThan(2_050);
}, 120_000);
