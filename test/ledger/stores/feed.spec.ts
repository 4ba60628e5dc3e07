import { jest } from '@jest/globals';
import type { RecordedEvent } from '../../../src/ledger/event-store.js';
import { eventsAfter, Feed, PAGE_SIZE } from '../../../src/ledger/stores/feed.js';
import type { StoredEvent } from '../../../src/ledger/stored-event.js';
import { pause } from '../../contracts/event-store.contract.js';
import { until } from '../../e2e/until.js';

describe('a feed', () => {
  it('does not sleep through an event that is recorded while it looks', async () => {
    const answers = [[], [recorded(1)], []];
    const seen: bigint[] = [];
    const feed: Feed = new Feed(
      async () => {
        const answer = answers.shift() ?? [];
        // The event comes after the store was read, but before the feed knows that it found nothing.
        if (answers.length === 2) feed.wake();
        await pause();
        return answer;
      },
      {
        after: 'start',
        onEvents: (events) => void seen.push(...events.map(({ position }) => position)),
        onError: fail,
      },
      () => undefined,
    );
    await until('the event is seen', () => seen.length > 0);
    await feed.close();
    expect(seen).toEqual([1n]);
  });

  it('asks for nothing while there is no news', async () => {
    jest.useFakeTimers();
    const anHour = () => jest.advanceTimersByTimeAsync(3_600_000);
    let asked = 0;
    const feed = new Feed(
      () => {
        asked++;
        return [];
      },
      { after: 'start', onEvents: () => undefined, onError: fail },
      () => undefined,
    );
    await anHour();
    expect(asked).toBe(1);
    feed.wake();
    feed.wake();
    await anHour();
    expect(asked).toBe(2);
    await feed.close();
    jest.useRealTimers();
  });

  it('does not call the subscriber before it has its subscription', async () => {
    let subscribed = false;
    const calls: boolean[] = [];
    const feed = new Feed(
      (after) => (after < 1n ? [recorded(1)] : []),
      { after: 'start', onEvents: () => void calls.push(subscribed), onError: fail },
      () => undefined,
    );
    subscribed = true;
    await until('the subscriber is called', () => calls.length > 0);
    await feed.close();
    expect(calls).toEqual([true]);
  });

  it('ends once, with the error of the store', async () => {
    const errors: unknown[] = [];
    let ended = 0;
    const failure = new Error('the disk is gone');
    const feed = new Feed(
      () => Promise.reject(failure),
      { after: 'start', onEvents: () => undefined, onError: (error) => errors.push(error) },
      () => ended++,
    );
    await until('it has ended', () => ended > 0);
    feed.wake();
    await feed.close();
    await feed.close();
    expect(errors).toEqual([failure]);
    expect(ended).toBe(1);
  });
});

describe('eventsAfter', () => {
  it('finds the place in a list with gaps, and takes at most a page', () => {
    const events = [3, 4, 9, 10, 11].map(stored);
    const after = (position: bigint): bigint[] => eventsAfter(events, position).map((event) => event.position);
    expect(after(-1n)).toEqual([3n, 4n, 9n, 10n, 11n]);
    expect(after(3n)).toEqual([4n, 9n, 10n, 11n]);
    expect(after(5n)).toEqual([9n, 10n, 11n]);
    expect(after(10n)).toEqual([11n]);
    expect(after(11n)).toEqual([]);
    expect(eventsAfter([], 0n)).toEqual([]);
    expect(
      eventsAfter(
        Array.from({ length: 1_200 }, (_, index) => stored(index)),
        99n,
      ),
    ).toHaveLength(PAGE_SIZE);
  });
});

function stored(position: number): StoredEvent {
  return { stream: 's', revision: position, position: BigInt(position), id: 'i', type: 't', data: '1', metadata: '2' };
}

function recorded(position: number): RecordedEvent {
  return { ...stored(position), data: 1, metadata: 2 };
}

function fail(error: unknown): never {
  throw error;
}
