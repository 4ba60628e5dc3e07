import { setImmediate as turn } from 'node:timers/promises';
import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { ReadModelDatabase, type Rows } from '../../src/read-models/database.js';
import { webhooksModel } from '../../src/read-models/webhooks.js';
import { ManualClock } from '../../src/testing/deterministic.js';
import { WebhookDeliveries } from '../../src/webhooks/deliveries.js';
import { id } from '../activities/given.js';
import { until } from '../e2e/until.js';

let rows: ReadModelDatabase;
beforeEach(() => {
  rows = new ReadModelDatabase(':memory:');
  rows.define(webhooksModel.schema);
});
let ends: () => Promise<unknown>;
afterEach(async () => {
  await ends();
  rows.close();
});

const clock = new ManualClock(Date.UTC(2026, 0, 1));

/** Something is pending for an endpoint with this number. */
function pending(number: number, retryAt: number): void {
  const [endpointId, organizationId] = [id(number), id(100_000 + number)];
  const at = clock.now();
  const times = { retryAt, since: at, createdAt: at, updatedAt: at };
  const activity = { activityId: id(1), activityType: 'A', activityStatus: 'ACTIVITY_STATUS_COMPLETED', revision: 0 };
  const source = { organizationId, endpointId, eventId: id(2), sourceOrganizationId: organizationId };
  rows.run('INSERT OR IGNORE INTO webhook_waiting VALUES (?, ?, 1, 0)', endpointId, organizationId);
  rows.run(
    `INSERT INTO webhook_deliveries VALUES (?, ?, ?, ?, ?, 'pending', 1, ?, ?)`,
    endpointId,
    number,
    organizationId,
    id(2),
    id(1),
    retryAt,
    JSON.stringify({ ...source, ...activity, state: 'pending', attempts: 0, ...times }),
  );
}

/** Deliveries from these rows, during one term; how often they have read the rows in one piece of the thread's time. */
function working(delivered: (endpointId: string) => void) {
  let inOnePiece = 0;
  let most = 0;
  const counted: Rows = {
    run: (sql, ...values) => rows.run(sql, ...values),
    get: (sql, ...values) => {
      most = Math.max(most, (inOnePiece += 1));
      return rows.get(sql, ...values);
    },
    all: (sql, ...values) => rows.all(sql, ...values),
    lost: (complaint) => rows.lost(complaint),
  };
  const term = new AbortController();
  const counting = (async () => {
    for (; !term.signal.aborted; inOnePiece = 0) await turn();
  })();
  const deliveries = new WebhookDeliveries({
    rows: counted,
    store: new InMemoryEventStore(),
    clock,
    fetch: (url) => {
      delivered(url);
      return Promise.resolve({ status: 204, headers: {}, body: new Uint8Array() });
    },
    signer: { jwk: { kid: 'key' }, sign: () => Promise.resolve(new Uint8Array(64)) },
    endpoint: (_organizationId, endpointId) =>
      Promise.resolve({ endpointId, url: endpointId, name: '', isActive: true, subscriptions: [] }),
    body: () => Promise.resolve({}),
    passed: () => Promise.resolve(),
    shown: () => -1n,
    observer: { settled: () => undefined, interrupted: (error) => expect(error).toBeUndefined() },
  });
  const { signal } = term;
  const work = deliveries.work({
    token: 1,
    signal,
    isHeld: () => !signal.aborted,
    assertCurrent: () => Promise.resolve(),
  });
  return {
    wake: () => deliveries.wake(),
    end: async () => {
      term.abort();
      await Promise.all([work, counting]);
      return most;
    },
  };
}

test('a look reads so many endpoints and no more, and what is due comes to its turn wherever it is', async () => {
  const hours = clock.now() + 7_200_000;
  const due = [1, 700, 1_999];
  for (let number = 0; number < 2_000; number++) pending(number, due.includes(number) ? 0 : hours);
  const delivered: string[] = [];
  const begun = working((endpointId) => delivered.push(endpointId));
  ends = begun.end;
  await until('all that is due is delivered', () => delivered.length === due.length);
  // While looks go on.
  for (const number of [2_001, 999]) {
    rows.run('DELETE FROM webhook_deliveries WHERE endpoint_id = ?', id(number));
    pending(number, 0);
    begun.wake();
  }
  await until('and what is due since', () => delivered.length === due.length + 2);
  expect(delivered.toSorted()).toEqual([1, 700, 999, 1_999, 2_001].map((number) => id(number)));
  expect(await begun.end()).toBeLessThanOrEqual(520);
});
