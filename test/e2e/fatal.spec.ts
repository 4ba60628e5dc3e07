import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startCoordinator, type TestCoordinator } from '../../src/testing/index.js';
import { verifyNothingAtClose } from '../audit/verified-at-close.js';
import { exchange, refusal } from './exchange.js';
import { until } from './until.js';

const tagType = 'ACTIVITY_TYPE_CREATE_USER_TAG';

// A store that has ended reads nothing more.
verifyNothingAtClose();

/** Runs a harness whose file is in a folder that the test knows. */
async function withFile(
  run: (coordinator: TestCoordinator, folder: string, told: readonly string[]) => Promise<void>,
): Promise<void> {
  const temporary = await mkdtemp(join(tmpdir(), 'countersign-fatal-'));
  const before = process.env['TMPDIR'];
  process.env['TMPDIR'] = temporary;
  const told: string[] = [];
  try {
    const coordinator = await startCoordinator({ store: 'sqlite', onFatal: ({ message }) => told.push(message) });
    const [folder] = await readdir(temporary);
    try {
      await run(coordinator, join(temporary, folder!), told);
    } finally {
      await coordinator.close();
    }
  } finally {
    if (before === undefined) delete process.env['TMPDIR'];
    else process.env['TMPDIR'] = before;
    await rm(temporary, { recursive: true, force: true });
  }
}

test('a harness whose file is deleted calls onFatal once, and refuses every later request; health and metrics say why', () =>
  withFile(async (coordinator, folder, told) => {
    await coordinator.client.submit(tagType, { userTagName: 'before' });
    await rm(join(folder, 'events.db'));
    await until('it has noticed', () => told.length > 0);
    const words = expect.stringMatching(/events\.db` was deleted while the coordinator was using it/) as string;
    for (const asked of [
      coordinator.client.submit(tagType, { userTagName: 'after' }),
      coordinator.client.query('whoami'),
      coordinator.client.query('list_user_tags'),
    ]) {
      expect(await refusal(asked)).toMatchObject({
        status: 503,
        code: 14,
        message: expect.stringContaining('this server has stopped after a fault and must be restarted') as string,
      });
    }
    const ready = await exchange(`${coordinator.url}/health/ready`);
    expect([ready.status, ready.text]).toEqual([
      503,
      expect.stringContaining('was deleted while the coordinator was using it') as string,
    ]);
    expect((await exchange(`${coordinator.url}/health/live`)).status).toBe(200);
    expect((await exchange(`${coordinator.url}/metrics`)).text).toMatch(/countersign_condition\{[^}]*name="stopped"/);
    expect(told).toEqual([words]);
  }));

test('a harness whose disk refused a write serves again after a restart, with everything that was acknowledged', () =>
  withFile(async (coordinator, folder, told) => {
    const { userTagId } = await coordinator.client.perform(tagType, { userTagName: 'before', userIds: [] });
    const { default: Database } = await import('libsql');
    const other = new Database(join(folder, 'events.db'));
    other.exec('PRAGMA busy_timeout = 5000');
    other.exec(`CREATE TRIGGER refusing BEFORE INSERT ON events BEGIN SELECT RAISE(ABORT, 'no more'); END`);
    const refused = await refusal(coordinator.client.submit(tagType, { userTagName: 'refused' }));
    expect(refused.status).toBe(503);
    expect(told).toEqual([expect.stringMatching(/could not be written: no more; make sure that the disk is sound/)]);
    other.exec('DROP TRIGGER refusing');
    other.close();
    await coordinator.restart();
    await coordinator.client.submit(tagType, { userTagName: 'after' });
    const { userTags } = await coordinator.client.query('list_user_tags');
    expect(userTags.map(({ tagName }) => tagName).sort()).toEqual(['after', 'before']);
    expect(userTags.map((tag) => tag.tagId)).toContain(userTagId);
    expect(told).toHaveLength(1);
  }));
