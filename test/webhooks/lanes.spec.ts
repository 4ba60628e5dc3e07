import { Lanes, rest } from '../../src/webhooks/lanes.js';

const endpoint = (endpointId: string) => ({
  endpointId,
  organizationId: 'organization',
  parentOrganizationId: undefined,
});
const nothingWaits = new Set<string>();

/** An endpoint whose latest response was good, with nothing left to do. */
function proven(lanes: Lanes, endpointId: string): void {
  lanes.of(endpoint(endpointId)).isProven = true;
  lanes.forgetAllBut(nothingWaits, 0);
}

test('of endpoints with nothing to do, 10,000 are remembered as good, and none as failing', () => {
  const lanes = new Lanes();
  for (const name of ['first', 'second']) proven(lanes, name);
  lanes.of(endpoint('failing')).failuresInARow = 3;
  for (let count = 0; count < 9_999; count++) proven(lanes, `other ${count}`);
  expect(lanes.of(endpoint('first')).isProven).toBe(false);
  expect(lanes.of(endpoint('second')).isProven).toBe(true);
  expect(lanes.of(endpoint('failing')).failuresInARow).toBe(0);
});

test('an endpoint with something to do keeps its lane, however many others there are', () => {
  const lanes = new Lanes();
  const waiting = new Set(['waiting']);
  const live = ['waiting', 'in flight', 'settled', 'queued', 'resting'].map((name) => lanes.of(endpoint(name)));
  const [, inFlight, settled, queued, resting] = live;
  lanes.begin(inFlight!, 'event');
  settled!.settled.set('event', undefined);
  queued!.isQueued = true;
  resting!.restUntil = 2;
  for (let count = 0; count < 10_001; count++) lanes.of(endpoint(`other ${count}`)).isProven = true;
  lanes.forgetAllBut(waiting, 1);
  for (const lane of live)
    expect([lane.endpointId, lanes.of(endpoint(lane.endpointId)) === lane]).toEqual([lane.endpointId, true]);
  expect(lanes.busy()).toEqual([inFlight]);
  lanes.forgetAllBut(waiting, 2);
  expect(lanes.of(endpoint('resting'))).not.toBe(resting);
});

test('an outcome is remembered until the rows show it, and one that is being recorded all the while', () => {
  const lanes = new Lanes();
  const { settled } = lanes.of(endpoint('one'));
  settled.set('shown', 4n);
  settled.set('being recorded', undefined);
  settled.set('to be shown', 6n);
  lanes.shown(5n);
  expect([...settled.keys()]).toEqual(['being recorded', 'to be shown']);
});

test('an endpoint that keeps failing rests for twice as long each time, and for a minute at most', () => {
  const lane = new Lanes().of(endpoint('failing'));
  const rests = Array.from({ length: 9 }, (_, index) => {
    const now = index * 1_000_000;
    rest(lane, now);
    return (lane.restUntil - now) / 1_000;
  });
  expect(rests).toEqual([1, 2, 4, 8, 16, 32, 60, 60, 60]);
});

test('attempts that fail together are one failure, however many they are', () => {
  const lane = new Lanes().of(endpoint('failing'));
  for (let attempt = 0; attempt < 8; attempt++) rest(lane, attempt);
  expect([lane.restUntil, lane.failuresInARow]).toEqual([1_000, 1]);
  rest(lane, 1_000);
  expect([lane.restUntil, lane.failuresInARow]).toEqual([3_000, 2]);
});

test('lanes with deliveries in flight are told until the last of them has ended', () => {
  const lanes = new Lanes();
  const [one, other] = ['one', 'other'].map((name) => lanes.of(endpoint(name)));
  for (const eventId of ['first', 'second']) lanes.begin(one!, eventId);
  lanes.begin(other!, 'third');
  expect(lanes.busy()).toEqual([one, other]);
  expect([lanes.end(one!, 'first'), lanes.end(other!, 'third'), lanes.end(other!, 'third')]).toEqual([
    true,
    true,
    false,
  ]);
  expect(lanes.busy()).toEqual([one]);
  lanes.end(one!, 'second');
  expect(lanes.busy()).toEqual([]);
});
