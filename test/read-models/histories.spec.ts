import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { queryObjects } from 'node:v8';
import { organizationStream, type OrganizationEvent } from '../../src/domain/organization/organization.js';
import { chainEvent, GENESIS_HASH } from '../../src/ledger/chain.js';
import { SqliteEventStore } from '../../src/ledger/stores/sqlite/sqlite.js';
import { derivedId } from '../../src/ledger/ids.js';
import { projectIntoFile } from '../../src/read-models/projecting.js';
import { anOrganization, aUser } from '../activities/facts.js';
import { id } from '../activities/given.js';
import { runnerOn } from '../coordinator/bare-coordinator.js';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'countersign-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const stream = organizationStream(id(700));

/** A store with these events of one organization. */
async function storeOf(name: string, facts: readonly OrganizationEvent[]): Promise<SqliteEventStore> {
  const store = await SqliteEventStore.open(join(folder, `${name}.db`));
  let hash = GENESIS_HASH;
  const events = facts.map(({ type, data }, revision) => {
    const metadata = { at: 0, schemaVersion: 1, $correlationId: 'test', $causationId: 'test' };
    const fact = { id: derivedId(hash, JSON.stringify(data)), type, data, metadata };
    hash = chainEvent(hash, { stream, revision, ...fact });
    return { ...fact, metadata: { ...metadata, hash } };
  });
  await store.append(stream, events, 'no-stream');
  return store;
}

/** The names of users in the rows of one file, once they are made from the store. */
async function usersIn(store: SqliteEventStore): Promise<{ begins: bigint; names: string[] }> {
  const head = (await store.head()) ?? -1n;
  const projecting = await projectIntoFile(join(folder, 'rows.db'), { identity: 'one', head }, store);
  const begins = projecting.progress()[0]!.resumeAfter;
  const runner = runnerOn(store, projecting);
  runner.start();
  await runner.passed(head, 30_000);
  const names = projecting.rows.all('SELECT doc FROM users').map((row) => {
    return (JSON.parse(String(row['doc'])) as { userName: string }).userName;
  });
  await runner.close();
  await projecting.close();
  await store.close();
  return { begins, names: names.toSorted() };
}

test('rows of one branch of a backup do not survive under the longer other one', async () => {
  const common = [anOrganization(), aUser(id(1), { userName: 'Ann' })];
  const left = [...common, aUser(id(2), { userName: 'Lea' })];
  const right = [...common, aUser(id(3), { userName: 'Roy' }), aUser(id(4), { userName: 'Ria' })];
  expect(await usersIn(await storeOf('left', left))).toEqual({ begins: -1n, names: ['Ann', 'Lea'] });
  expect(await usersIn(await storeOf('right', right))).toEqual({ begins: -1n, names: ['Ann', 'Ria', 'Roy'] });
  // The same store again goes on where it was.
  const again = await SqliteEventStore.open(join(folder, 'right.db'));
  expect((await usersIn(again)).begins).toBeGreaterThan(0n);
});

test('nothing is kept of batches whose rows are written', async () => {
  const store = await storeOf('kept', [anOrganization()]);
  const projecting = await projectIntoFile(join(folder, 'rows.db'), { identity: 'one', head: -1n }, store);
  const before = queryObjects(Promise, { format: 'count' });
  for (let batch = 0; batch < 120; batch += 1) await projecting.project([]);
  expect(queryObjects(Promise, { format: 'count' })).toBeLessThan(before + 60);
  await projecting.close();
  await store.close();
});
