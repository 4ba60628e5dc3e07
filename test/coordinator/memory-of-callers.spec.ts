import { randomUUID } from 'node:crypto';
import { DenialLog } from '../../src/coordinator/denials.js';
import type { SubmitRequest } from '../../src/coordinator/read-submit.js';
import { CoordinatorError } from '../../src/domain/errors.js';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { ReadModelDatabase } from '../../src/read-models/database.js';
import { KeyCache } from '../../src/stamps/keys.js';
import { ManualClock } from '../../src/testing/deterministic.js';
import { BareCoordinator, organizationId, startedAt } from './bare-coordinator.js';

const createTag = 'ACTIVITY_TYPE_CREATE_USER_TAG';

test('nothing is remembered of organizations that nobody has', async () => {
  const coordinator = await BareCoordinator.start();
  try {
    for (let count = 0; count < 50; count++) {
      const parameters = { userTagName: 'x', userIds: [] };
      const body = { type: createTag, timestampMs: String(startedAt), organizationId: randomUUID(), parameters };
      const asked = coordinator.send(coordinator.stampAgain(coordinator.root, 'create_user_tag', JSON.stringify(body)));
      await expect(asked).rejects.toMatchObject({ code: 'NOT_FOUND' });
    }
    expect(coordinator.loader.remembered).toBe(0);
    await coordinator.submit(coordinator.root.key, createTag, { userTagName: 'x', userIds: [] });
  } finally {
    await coordinator.close();
  }
});

describe('the log of denials', () => {
  const request = {
    version: { type: createTag },
    fingerprint: 'sha256:00',
    text: '{}',
    stamp: { kind: 'api-key', scheme: 'SIGNATURE_SCHEME_TK_API_P256', publicKey: '02', signature: '30' },
    timestampMs: '0',
  } as unknown as SubmitRequest;
  const denial = new CoordinatorError('PERMISSION_DENIED', 'no');
  const by = { userId: 'user', at: startedAt, basis: { revision: 0, rules: 1 } };

  test('forgets no count of this minute, however many organizations are denied, and the others when the minute is over', async () => {
    const store = new InMemoryEventStore();
    const clock = new ManualClock(startedAt);
    const log = new DenialLog(store, clock);
    for (let count = 0; count < 61; count++) await log.record(organizationId, by, request, denial);
    for (let count = 0; count < 10_050; count++) await log.record(`organization ${count}`, by, request, denial);
    await log.record(organizationId, by, request, denial);
    const recorded: unknown[] = [];
    for await (const event of store.read(`denials-${organizationId}`)) recorded.push(event);
    expect(recorded).toHaveLength(60);
    clock.advance('2m');
    await log.record('one more', by, request, denial);
    expect(log.open).toBe(1);
  });

  test('keeps the first 65 536 characters of a body, and no half of a character', async () => {
    const store = new InMemoryEventStore();
    const log = new DenialLog(store, new ManualClock(startedAt));
    for (const text of ['x'.repeat(100_000), `${'x'.repeat(65_535)}\u{1f600}`]) {
      await log.record(organizationId, by, { ...request, text }, denial);
    }
    const lengths: number[] = [];
    for await (const { data } of store.read(`denials-${organizationId}`)) {
      lengths.push((data as { readonly message: string }).message.length);
    }
    expect(lengths).toEqual([65_536, 65_535]);
  });

  test('keeps 10 MB of bodies a day, and counts the denials beyond', async () => {
    const store = new InMemoryEventStore();
    const clock = new ManualClock(startedAt);
    const log = new DenialLog(store, clock);
    const denied = () => log.record(organizationId, by, { ...request, text: 'x'.repeat(65_536) }, denial);
    for (let count = 0; count < 200; count++) {
      await denied();
      clock.advance('2s');
    }
    clock.advance('24h');
    await denied();
    const recorded: unknown[] = [];
    for await (const { data } of store.read(`denials-${organizationId}`)) recorded.push(data);
    expect(recorded).toHaveLength(153);
    expect(recorded.at(-1)).toMatchObject({ omittedBefore: 48 });
  });

  test('reads on from what is known, not from its beginning', async () => {
    const from: (number | undefined)[] = [];
    const store = new (class extends InMemoryEventStore {
      override read(stream: string, revision?: number) {
        from.push(revision);
        return super.read(stream, revision);
      }
    })();
    const clock = new ManualClock(startedAt);
    await new DenialLog(store, clock).record(organizationId, by, request, denial);
    await new DenialLog(store, clock).record(organizationId, by, request, denial);
    const log = new DenialLog(store, clock, { lastDenial: () => 1 });
    await log.record(organizationId, by, request, denial);
    expect(from).toEqual([0, 0, 1]);
    const revisions: number[] = [];
    for await (const { revision } of store.read(`denials-${organizationId}`)) revisions.push(revision);
    expect(revisions).toEqual([0, 1, 2]);
  });
});

test('keys that are used are kept, whatever keys others name once', () => {
  const cache = new KeyCache<number>(8);
  for (const key of ['a', 'b']) {
    cache.set(key, 1);
    cache.get(key);
  }
  for (let count = 0; count < 100; count++) cache.set(`stranger ${count}`, 2);
  expect([cache.get('a'), cache.get('b'), cache.get('stranger 0'), cache.get('stranger 99')]).toEqual([
    1,
    1,
    undefined,
    2,
  ]);
});

test('statements that are kept ready are bounded, though callers choose the lengths of lists', () => {
  const rows = new ReadModelDatabase(':memory:');
  try {
    for (let count = 1; count < 2_100; count++) rows.get(`SELECT ${count} AS number`);
    expect(rows.ready).toBeLessThanOrEqual(1_000);
    expect(rows.get('SELECT 1 AS number')).toMatchObject({ number: 1 });
  } finally {
    rows.close();
  }
});
