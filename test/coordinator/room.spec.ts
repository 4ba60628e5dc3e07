import { WriterPauses } from '../../src/coordinator/writer-pauses.js';

/** Writes for as long as a stretch lasts, a second. */
function writesLong(room: WriterPauses, organizationId: string, tookMs: number): void {
  for (let begunAt = 0; begunAt + tookMs < 1_000; begunAt += 40) {
    room.wrote(organizationId, 0, 1, begunAt, begunAt + tookMs);
  }
  room.wrote(organizationId, 0, 1, 1_000 - tookMs, 1_000);
}

test('pauses are made for the 1,000 organizations that were written to last', () => {
  const room = new WriterPauses();
  for (const organizationId of ['first', 'second']) writesLong(room, organizationId, 2);
  expect(room.waitMs('first', 1_000)).toBe(25);
  for (let count = 0; count < 999; count++) writesLong(room, `other ${count}`, 2);
  expect([room.waitMs('first', 1_000), room.waitMs('second', 1_000)]).toEqual([0, 25]);
});

test.each([
  ['four of its own appends', 30, 120],
  ['a second at most', 500, 1_000],
])('the pause for others is longer on a slow machine: %s', (_, tookMs, pauseMs) => {
  const room = new WriterPauses();
  writesLong(room, 'slow', tookMs);
  expect(room.waitMs('slow', 1_000)).toBe(pauseMs);
});
