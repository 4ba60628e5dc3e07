import { EventStoreDBClient } from '@eventstore/db-client';
import { jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { EventEmitter } from 'node:events';
import type { RecordedEvent } from '../../../src/ledger/event-store.js';
import { CatchUp } from '../../../src/ledger/stores/event-store-db/catch-up.js';
import { Tries } from '../../../src/ledger/stores/event-store-db/failures.js';
import { all, anEvent, aStream, follow, pause, someEvents } from '../../contracts/event-store.contract.js';
import { until } from '../../e2e/until.js';
import type { EventStoreDouble } from './double/double.js';
import { runningDoubles } from './double/running.js';

/** What the adapter asks of a server and of its client at the same time, and what it remembers. */

let double: EventStoreDouble;
const { aDouble, storeAt } = runningDoubles({ appendTimeoutMs: 20_000, giveUpAfterMs: 60_000, retryAfterMs: 5 });

beforeEach(async () => {
  double = await aDouble();
});

function held(): { readonly until: Promise<void>; readonly release: () => void } {
  let release = (): void => undefined;
  const until = new Promise<void>((resolve) => (release = resolve));
  return { until, release };
}

test.each([
  ['classic', 64],
  ['batch', 15],
] as const)('%s appends are %d at a time, and the others follow', async (appendMode, most) => {
  const store = await storeAt(double.connectionString, { appendMode });
  const { until: heldUntil, release } = held();
  const streams = Array.from({ length: 100 }, aStream);
  double.appendFaults.push(...streams.map((stream) => ({ heldUntil, stream })));
  const appending = Promise.all(streams.map((stream) => store.append(stream, someEvents(1), 'no-stream')));
  await until('they have come', () => double.appends[appendMode] >= most);
  await pause(300);
  expect(double.appends[appendMode]).toBe(most);
  release();
  expect((await appending).map(({ revision }) => revision)).toEqual(streams.map(() => 0));
});

test('an append in a batch is one message, however large it is', async () => {
  double.maxAppendBytes = 16 * 1024 * 1024;
  const store = await storeAt(double.connectionString, { appendMode: 'batch' });
  const events = Array.from({ length: 5 }, () => anEvent({ text: 'x'.repeat(900_000) }));
  await store.append(aStream(), events, 'no-stream');
  expect([double.proposed, double.batchMessages]).toEqual([5, 1]);
});

test('whether streams were deleted is asked for 16 of them at a time', async () => {
  const store = await storeAt(double.connectionString);
  const { until: stuck, release } = held();
  const feed = follow(store, 'start', () => stuck);
  await store.append(aStream(), someEvents(1), 'no-stream');
  await feed.sees(1);
  for (let count = 0; count < 40; count += 1) await store.append(`vault-${randomUUID()}`, someEvents(1), 'no-stream');
  await until('the server has sent them', () => double.sent >= 41);
  await pause(300);
  const before = double.streamReads;
  double.readFaults.push(...Array.from({ length: 40 }, () => ({ afterEvents: 0, how: 'silence' as const })));
  release();
  await until('it is asked', () => double.streamReads - before >= 16);
  await pause(300);
  expect(double.streamReads - before).toBe(16);
  double.readFaults.splice(0);
  const warnings: Error[] = [];
  const note = (warning: Error): void => void warnings.push(warning);
  process.on('warning', note);
  double.cut();
  await feed.sees(41);
  await feed.stop();
  process.off('warning', note);
  expect(warnings).toEqual([]);
});

test('of calls that nobody answers, one makes a new client', async () => {
  const store = await storeAt(double.connectionString, { appendTimeoutMs: 700, giveUpAfterMs: 20_000 });
  const stream = aStream();
  await store.append(stream, someEvents(1), 'no-stream');
  const made = jest.spyOn(EventStoreDBClient, 'connectionString');
  try {
    double.readFaults.push(...Array.from({ length: 8 }, () => ({ afterEvents: 0, how: 'silence' as const })));
    await Promise.all(Array.from({ length: 8 }, () => all(store.read(stream))));
    expect(made).toHaveBeenCalledTimes(1);
  } finally {
    made.mockRestore();
  }
});

test('a client that does not end its streams is waited for no longer than a second', async () => {
  const store = await storeAt(double.connectionString, {
    appendMode: 'batch',
    appendTimeoutMs: 300,
    giveUpAfterMs: 300,
  });
  double.appendFaults.push('end-stream-after');
  await expect(store.append(aStream(), someEvents(1), 'no-stream')).rejects.toThrow('has not responded');
  const begun = performance.now();
  await store.close();
  expect(performance.now() - begun).toBeLessThan(15_000);
}, 45_000);

test('a call is tried again after a second at the latest', async () => {
  const tries = new Tries('a call', { retryAfterMs: 60_000, giveUpAfterMs: Infinity });
  const begun = performance.now();
  await tries.again(new Error('no response'));
  expect(performance.now() - begun).toBeLessThan(15_000);
});

test('10,000 events are recognized as repeated; the oldest has to make room', async () => {
  const stream = Object.assign(new EventEmitter(), {
    pause: () => undefined,
    resume: () => undefined,
    unsubscribe: () => Promise.resolve(),
  });
  let isOpen = false;
  const catchUp = new CatchUp<RecordedEvent>(
    {
      open: () => {
        isOpen = true;
        return stream;
      },
      check: () => Promise.resolve(),
      take: (event) => event,
      isKept: () => false,
      visible: (events) => Promise.resolve(events),
      dropped: () => undefined,
    },
    'start',
    1,
  );
  catchUp.start(() => undefined);
  await until('it subscribes', () => isOpen && stream.listenerCount('data') > 0);
  const event = (revision: number): RecordedEvent => ({
    ...{ stream: 'vault-1', revision, position: BigInt(revision), id: String(revision) },
    ...{ type: 'Happened', data: {}, metadata: {} },
  });
  for (let revision = 0; revision <= 10_000; revision += 1) stream.emit('data', event(revision));
  for (const repeated of [1, 10_000, 0]) stream.emit('data', event(repeated));
  const revisions = (await catchUp.next()).map(({ revision }) => revision);
  expect(revisions.slice(10_000)).toEqual([10_000, 0]);
  catchUp.stop();
});
