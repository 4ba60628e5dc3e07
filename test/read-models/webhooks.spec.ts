import type { RecordedEvent } from '../../src/ledger/event-store.js';
import type { ReadModelDatabase } from '../../src/read-models/database.js';
import {
  dueDeliveries,
  endpointsWithDeliveries,
  listWebhookDeliveries,
  pendingDeliveries,
  webhooksModel,
} from '../../src/read-models/webhooks.js';
import { isPage } from '../../src/read-models/pages.js';
import { rowsAlone, rowsOf } from './projected.js';
import { WebhookHistory } from './webhook-history.js';

const now = 1_000_000;
const later = now + 60_000;

let history: WebhookHistory;
let begun: RecordedEvent;
beforeEach(() => {
  history = new WebhookHistory();
  begun = history.begins();
});

const dueIn = (rows: ReadModelDatabase, at = now, except: readonly string[] = []) =>
  dueDeliveries(rows, history.endpointId, at, 10, except).map(({ eventId }) => eventId);

/** Ids of what is due once these events have happened, whether they come at once or one by one. */
function due(events: readonly RecordedEvent[], at = now): readonly string[] {
  const [together, apart] = [rowsOf(webhooksModel, events), rowsOf(webhooksModel, ...events.map((event) => [event]))];
  const all = (rows: ReadModelDatabase) => rows.all('SELECT * FROM webhook_deliveries ORDER BY position');
  expect(all(apart)).toEqual(all(together));
  return dueIn(together, at);
}

const ids = (...events: readonly (RecordedEvent | undefined)[]) => events.map((event) => event!.id);

test('of each activity the first pending delivery is due, and the next one when that is settled', () => {
  const [a, b] = [history.waits('a', 2), history.waits('b', 1)];
  const events = [begun, ...a, ...b];
  expect(due(events)).toEqual(ids(a[0], b[0]));
  events.push(history.delivered(a[0]!));
  expect(due(events)).toEqual(ids(a[1], b[0]));
  events.push(history.abandoned(a[1]!), history.delivered(b[0]!));
  expect(due(events)).toEqual(ids(a[2], b[1]));
  events.push(history.delivered(b[1]!), history.delivered(a[2]!));
  expect(due(events)).toEqual([]);
  const more = history.waits('a', 0);
  expect(due([...events, ...more])).toEqual(ids(...more));
});

test('what waits for its retry holds back those behind it, and no others', () => {
  const [a, b] = [history.waits('a', 1), history.waits('b', 0)];
  const events = [begun, ...a, ...b, history.failed(a[0]!, later)];
  expect(due(events)).toEqual(ids(b[0]));
  expect(due(events, later)).toEqual(ids(b[0], a[0]));
  expect(due([...events, history.delivered(a[0]!)])).toEqual(ids(a[1], b[0]));
});

test('what is on its way is not due, and still comes before those behind it', () => {
  const a = history.waits('a', 1);
  expect(dueIn(rowsOf(webhooksModel, [begun, ...a]), now, ids(a[0]))).toEqual([]);
});

test('what is delivered once more comes before those behind it, which are due again as they were', () => {
  const a = history.waits('a', 3);
  const events = [begun, ...a, history.abandoned(a[0]!), history.delivered(a[1]!), history.failed(a[2]!, later)];
  expect([due(events), due(events, later)]).toEqual([[], ids(a[2])]);
  events.push(history.requestedAgain(a[1]!));
  expect(due(events, later)).toEqual(ids(a[1]));
  events.push(history.requestedAgain(a[0]!));
  expect(due(events, later)).toEqual(ids(a[0]));
  // It was on its way when the others were requested.
  events.push(history.failed(a[2]!, later + 1));
  expect(due(events, later + 1)).toEqual(ids(a[0]));
  events.push(history.delivered(a[0]!), history.delivered(a[1]!));
  expect([due(events, later), due(events, later + 1)]).toEqual([[], ids(a[2])]);
  // Behind one that waits, it has to wait.
  const waiting = [...events, history.requestedAgain(a[0]!), history.delivered(a[2]!), history.requestedAgain(a[2]!)];
  expect(due(waiting)).toEqual(ids(a[0]));
  expect(due([...waiting, history.abandoned(a[0]!)])).toEqual(ids(a[2]));
});

test('nothing is due of what was dropped, and what happens afterwards does not wait for it', () => {
  const a = history.waits('a', 1);
  const events = [begun, ...a, history.stops(), history.failed(a[0]!, now)];
  expect(due(events)).toEqual([]);
  events.push(history.goesOn());
  const b = history.waits('a', 1);
  events.push(...b);
  expect(due(events)).toEqual(ids(b[0]));
  const rows = rowsOf(webhooksModel, events);
  expect([pendingDeliveries(rows), [...endpointsWithDeliveries(rows)].length]).toEqual([2, 1]);
});

test('dropping what waits writes few rows, however many it is', () => {
  const events = [begun, ...history.waits('a', 1), ...history.waits('b', 199)];
  const [first] = events.slice(1);
  const stopped = [...events, history.stops()];
  const written = (upTo: readonly RecordedEvent[]) =>
    Number(rowsOf(webhooksModel, upTo).get('SELECT total_changes() AS count')!['count']);
  expect(written(stopped) - written(events)).toBeLessThan(20);
  const later = [history.goesOn(), ...history.waits('c', 0), history.delivered(first!), history.requestedAgain(first!)];
  const rows = rowsOf(webhooksModel, [...stopped, ...later]);
  expect(pendingDeliveries(rows)).toBe(2);
  expect(dueIn(rows)).toEqual(ids(first, later[1]));
  expect([...endpointsWithDeliveries(rows)].map(({ dueAt }) => dueAt)).toEqual([0]);
});

test('a list shows as dropped what waited when its endpoint was stopped', async () => {
  const a = history.waits('a', 49);
  const b = history.waits('b', 1);
  const events = [
    begun,
    ...a,
    history.delivered(a[0]!),
    history.stops(),
    history.goesOn(),
    ...b,
    history.delivered(b[0]!),
  ];
  const rows = rowsOf(webhooksModel, events);
  const { organizationId, endpointId } = history;
  const listed = async (filterByState?: string, after?: string) => {
    const request = {
      organizationId,
      endpointId,
      ...(filterByState === undefined ? {} : { filterByState }),
      paginationOptions: { limit: '30', ...(after === undefined ? {} : { after }) },
    };
    const { webhookDeliveries } = await listWebhookDeliveries.answer(request, rowsAlone(rows, organizationId));
    if (!isPage(webhookDeliveries)) throw new Error('the list is not a page');
    return webhookDeliveries.texts.map((text) => {
      const { eventId, state } = JSON.parse(String(text)) as { readonly eventId: string; readonly state: string };
      return [eventId, state];
    });
  };
  const as = (state: string, ...of: readonly RecordedEvent[]) => of.map(({ id }) => [id, state]).reverse();
  expect(await listed('pending')).toEqual(as('pending', b[1]!));
  expect(await listed('delivered')).toEqual(as('delivered', a[0]!, b[0]!));
  expect(await listed('dropped')).toEqual(as('dropped', ...a.slice(20)));
  expect(await listed('dropped', a[20]!.id)).toEqual(as('dropped', ...a.slice(1, 20)));
  expect((await listed()).slice(0, 3)).toEqual([
    ...as('pending', b[1]!),
    ...as('delivered', b[0]!),
    ...as('dropped', a[49]!),
  ]);
});

test.each([
  ['an organization', 10_000, () => []],
  ['a sub-organization', 1_000, () => [history.isFounded()]],
])('of what waits for an endpoint of %s, the oldest beyond %d is dropped', (_whose, most, founded) => {
  const start = [begun, ...founded()];
  const first = history.waits('a', 1);
  const others = Array.from({ length: most }, (_, number) => history.waits(`${number}`, 0)).flat();
  const full = rowsOf(webhooksModel, [...start, ...first, ...others.slice(0, -2)]);
  expect(pendingDeliveries(full)).toBe(most);
  expect(dueIn(full)[0]).toBe(first[0]!.id);
  const rows = rowsOf(webhooksModel, [...start, ...first, ...others]);
  expect(pendingDeliveries(rows)).toBe(most);
  // The second of the activity came after the first, and was dropped after it.
  expect(dueIn(rows)[0]).toBe(others[0]!.id);
  const dropped = rows.all("SELECT event_id, doc FROM webhook_deliveries WHERE state = 'dropped' ORDER BY position");
  expect(dropped.map((row) => row['event_id'])).toEqual(ids(...first));
  expect(JSON.parse(String(dropped[0]!['doc']))).toMatchObject({
    state: 'dropped',
    reason: `more than ${most} deliveries were waiting for this endpoint`,
  });
});
