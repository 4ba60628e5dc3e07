import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { ManualClock } from '../../src/testing/deterministic.js';
import { DeliveryLog } from '../../src/webhooks/delivery-log.js';

/** A store that says which streams were read, and from where. */
class WatchedStore extends InMemoryEventStore {
  readonly reads: [string, number | undefined][] = [];

  readonly appended: number[] = [];

  override append(...[stream, events, expected]: Parameters<InMemoryEventStore['append']>) {
    this.appended.push(events.length);
    return super.append(stream, events, expected);
  }

  override read(stream: string, from?: number) {
    this.reads.push([stream, from]);
    return super.read(stream, from);
  }
}

const delivered = (eventId: string) =>
  ({
    type: 'WebhookDelivered',
    data: { endpointId: 'endpoint', eventId, attempts: 1, status: 200, fencingToken: 0 },
  }) as const;

test('the ends of 10,000 logs are kept; one that had to make room is read again, from what is known', async () => {
  const store = new WatchedStore();
  const log = new DeliveryLog(store, new ManualClock(0), (organizationId) => (organizationId === 'first' ? 1 : -1), 0);
  await log.record('first', 'correlation', delivered('1'));
  await log.record('first', 'correlation', delivered('2'));
  const stream = 'webhook-deliveries-first';
  const readsOf = () => store.reads.filter(([name]) => name === stream).map(([, from]) => from);
  expect(readsOf()).toEqual([1]);
  // One more than there is room for beside it, as the last of them is still being written.
  for (let count = 0; count < 10_001; count++) await log.record(`other ${count}`, 'correlation', delivered('1'));
  await log.record('first', 'correlation', delivered('3'));
  expect(readsOf()).toEqual([1, 1]);
  const revisions: number[] = [];
  for await (const { revision } of store.read(stream)) revisions.push(revision);
  expect(revisions).toEqual([0, 1, 2]);
});

test('what comes while an append is under way is recorded in the next one together, 64 at most', async () => {
  const store = new WatchedStore();
  const log = new DeliveryLog(store, new ManualClock(0), () => -1, 0);
  const positions = await Promise.all(
    Array.from({ length: 150 }, (_, count) => log.record('one', `activity ${count}`, delivered(String(count)))),
  );
  expect(store.appended).toEqual([1, 64, 64, 21]);
  const recorded: [number, string, unknown][] = [];
  for await (const { revision, data, metadata } of store.read('webhook-deliveries-one')) {
    const { $correlationId } = metadata as { readonly $correlationId: string };
    recorded.push([revision, (data as { readonly eventId: string }).eventId, $correlationId]);
  }
  expect(recorded).toEqual(Array.from({ length: 150 }, (_, count) => [count, String(count), `activity ${count}`]));
  expect(positions).toEqual([...positions].sort((one, other) => Number(one - other)));
});

test('an outcome that another writer was first with is recorded after it, with all that came together', async () => {
  const store = new WatchedStore();
  const ours = new DeliveryLog(store, new ManualClock(0), () => -1, 1);
  await ours.record('one', 'activity', delivered('0'));
  await new DeliveryLog(store, new ManualClock(0), () => -1, 0).record('one', 'activity', delivered('theirs'));
  await Promise.all(['1', '2', '3'].map((eventId) => ours.record('one', 'activity', delivered(eventId))));
  const recorded: string[] = [];
  for await (const { data } of store.read('webhook-deliveries-one')) {
    recorded.push((data as { readonly eventId: string }).eventId);
  }
  expect(recorded).toEqual(['0', 'theirs', '1', '2', '3']);
});
