import { RecentEvents } from '../../../src/ledger/stores/sqlite/recent-events.js';

/** Appends of one event each, as the store keeps them; `size` is the length of what each event says. */
function keep(recent: RecentEvents, first: number, count: number, size = 2): void {
  for (let at = first; at < first + count; at++) {
    const event = { id: `${at}`, type: 'Tested', data: JSON.stringify('x'.repeat(size)), metadata: '{}' };
    recent.keep({ stream: 'stream', first: at, events: [event] }, at);
  }
}

test('of the last events so many are kept, and what is before them is read from disk', () => {
  const recent = new RecentEvents();
  keep(recent, 1, 2_048);
  expect(recent.after(0n)).toBeDefined();
  keep(recent, 2_049, 1);
  expect(recent.after(1_024n)).toBeUndefined();
  expect(recent.after(1_025n)?.[0]).toMatchObject({ position: 1_026n });
});

test('of the last events so much text is kept, and what is before it is read from disk', () => {
  const recent = new RecentEvents();
  // Each with 8,192 UTF-16 units: 256 of them have twice what is kept.
  keep(recent, 1, 256, 8_188);
  expect(recent.after(0n)).toHaveLength(256);
  keep(recent, 257, 1);
  expect(recent.after(128n)).toBeUndefined();
  expect(recent.after(129n)).toHaveLength(128);
  keep(recent, 258, 127, 8_188);
  expect(recent.after(129n)).toHaveLength(255);
});

test('a deleted stream has no part of that text', () => {
  const recent = new RecentEvents();
  keep(recent, 1, 255, 8_188);
  recent.drop('stream');
  keep(recent, 256, 255, 8_188);
  expect(recent.after(0n)).toHaveLength(255);
});

test('an event that is long is read from disk, and so is what was before it', () => {
  const recent = new RecentEvents();
  keep(recent, 1, 10);
  keep(recent, 11, 1, 16 * 1024);
  keep(recent, 12, 1);
  expect(recent.after(10n)).toBeUndefined();
  expect(recent.after(11n)?.map(({ position }) => position)).toEqual([12n]);
});
