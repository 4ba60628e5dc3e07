import { InMemoryEventStore } from '../../src/ledger/stores/in-memory.js';
import { ManualClock } from '../../src/testing/deterministic.js';
import { DeliveryLog } from '../../src/webhooks/delivery-log.js';

/** A store that says which streams were read, and from where. */
class WatchedStore extends InMemoryEventStore {
  readonly reads: [string, number | undefined][] = [];

  override read(stream: string, from?: number) {
    this.reads.push([stream, from]);
    return super.read(stream, from);
  }
}

const delivered = (eventId: string) =>
  ({
    type: 'WebhookDelivered',
    data: { endpointId: 'endpoint', eventId, attempts: 1, status: 200, token: 0 },
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
