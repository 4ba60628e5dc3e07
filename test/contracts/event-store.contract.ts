import { randomUUID } from 'node:crypto';
import { GENESIS_HASH, verifyChain, type EventMetadata } from '../../src/ledger/chain.js';
import { sendsKept, WrongRevision } from '../../src/ledger/event-store.js';
import type { EventStore, NewEvent, RecordedEvent, SubscribeOptions } from '../../src/ledger/event-store.js';
import { emptyTail, seal } from '../../src/ledger/seal.js';

/** A store under test, and how to remove it. */
export interface StoreUnderTest {
  readonly store: EventStore;
  /** Closes the store and opens it again with its data; only for stores that keep data. */
  readonly reopen?: () => Promise<EventStore>;
  readonly cleanup: () => Promise<void>;
}

/**
 * What every adapter of the event store port must do. `open` opens a store that no other test writes to; `another` opens one
 * more beside it.
 */
export function eventStoreContract(name: string, open: () => Promise<StoreUnderTest>, another = open): void {
  /** Opens another store of this kind, uses it, and closes it. */
  async function opensAndCloses(): Promise<void> {
    const { store, cleanup } = await another();
    await delivered(store, (await store.append(aStream(), someEvents(1), 'no-stream')).position);
    await cleanup();
  }

  describe(`${name} keeps the event store contract`, () => {
    let under: StoreUnderTest;
    let store: EventStore;

    beforeEach(async () => {
      under = await open();
      store = under.store;
    });
    afterEach(async () => under.cleanup());

    describe('append and read', () => {
      it('reads back what was appended, in order, with revisions from 0', async () => {
        const stream = aStream();
        const first = [anEvent({ n: 0 }), anEvent({ n: 1 })];
        const second = [anEvent({ n: 2 })];

        const appended = await store.append(stream, first, 'no-stream');
        expect(appended.revision).toBe(1);
        const next = await store.append(stream, second, 1);
        expect(next.revision).toBe(2);
        expect(next.position > appended.position).toBe(true);

        const events = await all(store.read(stream));
        expect(events.map(({ id, type, data, metadata }) => ({ id, type, data, metadata }))).toEqual([
          ...first,
          ...second,
        ]);
        expect(events.map(({ revision }) => revision)).toEqual([0, 1, 2]);
        expect(events.map((event) => event.stream)).toEqual([stream, stream, stream]);
        expect(events.map(({ position }) => position)).toEqual(ascending(events.map(({ position }) => position)));
        expect(events[1]?.position).toBe(appended.position);
        expect(events[2]?.position).toBe(next.position);
      });

      it('reads from a revision on', async () => {
        const stream = aStream();
        await store.append(stream, someEvents(5), 'no-stream');
        expect((await all(store.read(stream, 3))).map(({ revision }) => revision)).toEqual([3, 4]);
        expect(await all(store.read(stream, 5))).toEqual([]);
      });

      it('reads a missing stream as empty', async () => {
        expect(await all(store.read(aStream()))).toEqual([]);
        expect(await store.last(aStream(), 3)).toEqual([]);
      });

      it('reads the last events of a stream, in order', async () => {
        const stream = aStream();
        await store.append(stream, someEvents(5), 'no-stream');
        const events = await all(store.read(stream));
        expect(await store.last(stream, 2)).toEqual(events.slice(-2));
        expect(await store.last(stream, 5)).toEqual(events);
        expect(await store.last(stream, 99)).toEqual(events);
      });

      it('keeps enough of a stream that is cut, whose revisions go on, and lets nobody delete it', async () => {
        const stream = `message-counts-${randomUUID()}`;
        const written = someEvents(sendsKept + 5);
        for (const [at, event] of written.entries()) {
          expect((await store.append(stream, [event], at === 0 ? 'no-stream' : at - 1)).revision).toBe(at);
        }
        const last = await store.last(stream, sendsKept);
        expect(last.map(({ id }) => id)).toEqual(written.slice(-sendsKept).map(({ id }) => id));
        expect(last.map(({ revision }) => revision)).toEqual(Array.from({ length: sendsKept }, (_, at) => at + 5));
        await expect(store.append(stream, [anEvent()], 'no-stream')).rejects.toThrow(WrongRevision);
        await expect(store.append(stream, [anEvent()], sendsKept)).rejects.toThrow(WrongRevision);
        await expect(store.delete(stream)).rejects.toThrow('is permanent');
        const { position } = await store.append(aStream(), [anEvent()], 'no-stream');
        // Feeds continue after it, whether or not they deliver it.
        await delivered(store, position);
        const reopened = (await under.reopen?.()) ?? store;
        expect((await reopened.last(stream, 1)).map(({ revision }) => revision)).toEqual([sendsKept + 4]);
        expect((await reopened.append(stream, [anEvent()], sendsKept + 4)).revision).toBe(sendsKept + 5);
      });

      it('reads a stream of many pages whole, and stops when the reader does', async () => {
        const stream = aStream();
        const total = 1_700;
        await store.append(stream, someEvents(total), 'no-stream');

        const events = await all(store.read(stream));
        expect(events.map(({ revision }) => revision)).toEqual(Array.from({ length: total }, (_, index) => index));
        expect(events.map(({ data }) => data)).toEqual(someEventData(total));

        const seen: number[] = [];
        for await (const { revision } of store.read(stream)) {
          seen.push(revision);
          if (revision === 1) break;
        }
        expect(seen).toEqual([0, 1]);
        expect((await store.append(stream, [anEvent()], total - 1)).revision).toBe(total);
      });

      it('keeps the streams apart', async () => {
        const [one, other] = [aStream(), aStream()];
        await store.append(one, [anEvent({ of: 'one' })], 'no-stream');
        await store.append(other, [anEvent({ of: 'other' })], 'no-stream');
        await store.append(one, [anEvent({ of: 'one' })], 0);
        expect((await all(store.read(one))).map(({ data }) => data)).toEqual([{ of: 'one' }, { of: 'one' }]);
        expect((await all(store.read(other))).map(({ data }) => data)).toEqual([{ of: 'other' }]);
      });

      it('neither the writer nor a reader can edit the past', async () => {
        const stream = aStream();
        const data = { list: [1], nested: { name: 'before' } };
        const appending = store.append(stream, [anEvent(data)], 'no-stream');
        data.nested.name = 'after';
        await appending;
        data.list.push(2);

        const [read] = await all(store.read(stream));
        const edit = (): void => {
          (read?.data as typeof data).nested.name = 'edited';
        };
        try {
          edit();
        } catch {
          // A store may also hand out frozen values.
        }
        const [again] = await all(store.read(stream));
        expect(again?.data).toEqual({ list: [1], nested: { name: 'before' } });
      });
    });

    describe('expectations', () => {
      it('refuses a wrong revision, says where the stream is, and writes nothing', async () => {
        const stream = aStream();
        await store.append(stream, someEvents(3), 'no-stream');
        const head = await store.head();

        for (const wrong of [0, 1, 3, 99]) {
          const refused = store.append(stream, [anEvent()], wrong);
          await expect(refused).rejects.toBeInstanceOf(WrongRevision);
          await expect(refused).rejects.toMatchObject({ stream, expected: wrong, actual: 2 });
        }
        expect(await all(store.read(stream))).toHaveLength(3);
        expect(await store.head()).toBe(head);
      });

      it('refuses `no-stream` for a stream that exists', async () => {
        const stream = aStream();
        await store.append(stream, [anEvent()], 'no-stream');
        await expect(store.append(stream, [anEvent()], 'no-stream')).rejects.toMatchObject({
          name: 'WrongRevision',
          expected: 'no-stream',
          actual: 0,
        });
        expect(await all(store.read(stream))).toHaveLength(1);
      });

      it('refuses a revision of a stream that does not exist, and does not make it', async () => {
        const stream = aStream();
        await expect(store.append(stream, [anEvent()], 0)).rejects.toMatchObject({
          name: 'WrongRevision',
          expected: 0,
          actual: 'no-stream',
        });
        expect(await all(store.read(stream))).toEqual([]);
        expect((await store.append(stream, [anEvent()], 'no-stream')).revision).toBe(0);
      });

      it('takes a repeated append as done, and writes nothing', async () => {
        const stream = aStream();
        const [first, second, third] = [someEvents(2), someEvents(3), someEvents(1)];
        const appended = [
          await store.append(stream, first, 'no-stream'),
          await store.append(stream, second, 1),
          await store.append(stream, third, 4),
        ];
        const head = await store.head();

        expect(await store.append(stream, third, 4)).toEqual(appended[2]);
        expect(await store.append(stream, second, 1)).toEqual(appended[1]);
        expect(await store.append(stream, first, 'no-stream')).toEqual(appended[0]);
        expect((await all(store.read(stream))).map(({ id }) => id)).toEqual(
          [...first, ...second, ...third].map(({ id }) => id),
        );
        expect(await store.head()).toBe(head);
      });

      it('writes once what is appended twice at the same time', async () => {
        const stream = aStream();
        const events = someEvents(2);
        const [one, other] = await Promise.all([
          store.append(stream, events, 'no-stream'),
          store.append(stream, events, 'no-stream'),
        ]);
        expect(other).toEqual(one);
        expect(await all(store.read(stream))).toHaveLength(2);
      });

      it('does not take a partly different append for a repetition', async () => {
        const stream = aStream();
        const events = someEvents(3);
        await store.append(stream, events, 'no-stream');
        const [first, second, third] = events as [NewEvent, NewEvent, NewEvent];

        await expect(store.append(stream, [first, second, anEvent()], 'no-stream')).rejects.toThrow(WrongRevision);
        await expect(store.append(stream, [anEvent(), second, third], 'no-stream')).rejects.toThrow(WrongRevision);
        await expect(store.append(stream, [second, first, third], 'no-stream')).rejects.toThrow(WrongRevision);
        await expect(store.append(stream, [third, anEvent()], 1)).rejects.toThrow(WrongRevision);
        expect((await all(store.read(stream))).map(({ id }) => id)).toEqual(events.map(({ id }) => id));
      });

      it('lets exactly one of many parallel appends win', async () => {
        const stream = aStream();
        await store.append(stream, [anEvent()], 'no-stream');
        const rivals = Array.from({ length: 20 }, () => someEvents(2));
        const results = await Promise.allSettled(rivals.map((events) => store.append(stream, events, 0)));

        const winners = rivals.filter((_, index) => results[index]?.status === 'fulfilled');
        expect(winners).toHaveLength(1);
        for (const result of results) {
          if (result.status === 'rejected') expect(result.reason).toBeInstanceOf(WrongRevision);
        }
        expect((await all(store.read(stream, 1))).map(({ id }) => id)).toEqual(winners[0]?.map(({ id }) => id));
      });

      it('judges each of the appends that wait together on its own', async () => {
        const [good, bad, repeated, deleted] = [aStream(), aStream(), aStream(), `vault-${randomUUID()}`];
        const events = someEvents(2);
        await store.append(repeated, events, 'no-stream');
        await store.delete(deleted);

        const results = await Promise.allSettled([
          store.append(good, someEvents(2), 'no-stream'),
          store.append(bad, someEvents(2), 7),
          store.append(repeated, events, 'no-stream'),
          store.append(deleted, someEvents(1), 'no-stream'),
          store.append(good, someEvents(2), 1),
          store.append(bad, someEvents(1), 'no-stream'),
        ]);
        expect(results.map(({ status }) => status)).toEqual([
          'fulfilled',
          'rejected',
          'fulfilled',
          'rejected',
          'fulfilled',
          'fulfilled',
        ]);
        expect((await all(store.read(good))).map(({ revision }) => revision)).toEqual([0, 1, 2, 3]);
        expect((await all(store.read(bad))).map(({ revision }) => revision)).toEqual([0]);
        expect(await all(store.read(repeated))).toHaveLength(2);
      });

      it('refuses an append of nothing', async () => {
        const stream = aStream();
        await expect(store.append(stream, [], 'no-stream')).rejects.toThrow('at least one event');
        await store.append(stream, [anEvent()], 'no-stream');
        await expect(store.append(stream, [], 0)).rejects.toThrow('at least one event');
      });

      it('refuses an expectation that is no revision', async () => {
        for (const wrong of [-1, 0.5, Number.NaN, 2 ** 60]) {
          await expect(store.append(aStream(), [anEvent()], wrong)).rejects.toThrow('revision');
        }
      });

      it('refuses an event without an id or a type, and a stream without a name, and writes nothing', async () => {
        const stream = aStream();
        for (const lack of [{ id: '' }, { type: '' }, { id: undefined }, { type: undefined }, { id: 7 }, { type: 7 }]) {
          const wrong = { ...anEvent(), ...lack } as NewEvent;
          await expect(store.append(stream, [anEvent(), wrong], 'no-stream')).rejects.toThrow('has no id or type');
        }
        await expect(store.append('', [anEvent()], 'no-stream')).rejects.toThrow('a stream needs a name');
        expect(await all(store.read(stream))).toEqual([]);
      });

      it('writes a batch whole or not at all', async () => {
        const stream = aStream();
        const unwritable = { ...anEvent(), data: undefined };
        await expect(store.append(stream, [anEvent(), anEvent(), unwritable], 'no-stream')).rejects.toThrow();
        expect(await all(store.read(stream))).toEqual([]);
        expect((await store.append(stream, someEvents(3), 'no-stream')).revision).toBe(2);
      });
    });

    describe('values', () => {
      it('keeps every JSON value', async () => {
        const stream = aStream();
        const data = {
          text: 'Grüße, 世界 – 🔐 \u0000 \u2028 "quoted" \\ \n\t',
          'ключ 🗝': ['', 'é', 'e\u0301'],
          amount: (2n ** 256n - 1n).toString(),
          numbers: [0, -1, 1.5, 1e21, 5e-324, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER],
          truth: [true, false, null],
          empty: [{}, [], ''],
        };
        await store.append(stream, [{ ...anEvent(data), metadata: data }], 'no-stream');
        const [event] = await all(store.read(stream));
        expect(event?.data).toEqual(data);
        expect(event?.metadata).toEqual(data);
        expect(event?.data).not.toBe(event?.metadata);
      });

      it('keeps data that is no object', async () => {
        const stream = aStream();
        const values = [null, 'text', 17, true, [1, [2]]];
        await store.append(stream, values.map(anEvent), 'no-stream');
        expect((await all(store.read(stream))).map(({ data }) => data)).toEqual(values);
      });

      it('keeps an event whose JSON the writer has made already, in whatever order its members are', async () => {
        const stream = aStream();
        const event = { ...anEvent({ b: 1, a: { d: '🔐', c: null } }), metadata: { at: 1, by: 'x' } };
        const json = { data: '{"a":{"c":null,"d":"🔐"},"b":1}', metadata: '{"by":"x","at":1}' };
        await store.append(stream, [{ ...event, json }], 'no-stream');
        const [read] = await all(store.read(stream));
        expect(read?.data).toEqual(event.data);
        expect(read?.metadata).toEqual(event.metadata);
      });

      it('keeps metadata that the chain does not cover, and checks the chain around it', async () => {
        const stream = aStream();
        const metadata = { at: 1, $correlationId: 'a', $causationId: 'b' };
        const unchained = { traceparent: '00-4bf9-00f0-01', later: { a: ['🔐'] } };
        const facts = Array.from({ length: 250 }, (_, index) => ({
          type: 'OrganizationRenamed',
          data: { name: `${index}` },
          metadata,
          ...(index % 120 === 60 ? { unchained } : {}),
        }));
        const { events, hashes } = seal(stream, emptyTail, facts);
        await store.append(stream, events, 'no-stream');
        let hash = GENESIS_HASH;
        const links: string[] = [];
        const found: unknown[] = [];
        for await (const event of store.read(stream, 0, GENESIS_HASH)) {
          hash = verifyChain(hash, event);
          links.push(hash);
          found.push((event.metadata as EventMetadata).unchained);
        }
        expect(links).toEqual(hashes);
        expect(found).toEqual(facts.map((fact) => fact.unchained));
      });

      it('keeps payloads of nearly 1 MiB', async () => {
        const stream = aStream();
        const text = 'ab🔐'.repeat(170_000);
        await store.append(stream, [anEvent({ text })], 'no-stream');
        await store.append(stream, [anEvent({ text })], 0);
        const events = await all(store.read(stream));
        expect(events.map(({ data }) => (data as { text: string }).text === text)).toEqual([true, true]);
      });
    });

    describe('head', () => {
      it('is undefined for an empty store, then the position of the last event', async () => {
        if (store.exclusive) expect(await store.head()).toBeUndefined();
        const first = await store.append(aStream(), someEvents(3), 'no-stream');
        expect(await store.head()).toBe(first.position);
        const second = await store.append(aStream(), someEvents(1), 'no-stream');
        expect(await store.head()).toBe(second.position);
      });
    });

    describe('subscriptions', () => {
      it('deliver everything recorded so far and everything that comes, once and in order', async () => {
        const streams = [aStream(), aStream(), aStream()];
        await fill(store, streams, 0, 700);
        const feed = follow(store, 'start');
        await feed.sees(2_100);
        await fill(store, streams, 700, 5);
        await feed.sees(2_115);
        await feed.stop();
        await expectEverythingOnce(store, streams, feed.events);
      });

      it('have no gap and no overlap while several writers write and new feeds start', async () => {
        const streams = Array.from({ length: 8 }, aStream);
        const writing = Promise.all(
          streams.map(async (stream) => {
            for (let revision = 0; revision < 60; revision++) {
              await store.append(stream, [anEvent({ revision })], revision === 0 ? 'no-stream' : revision - 1);
            }
          }),
        );
        const first = follow(store, 'start');
        const feeds = [first];
        for (const seen of [120, 280]) {
          await first.sees(seen);
          feeds.push(follow(store, 'start'));
        }
        await writing;

        for (const feed of feeds) {
          await feed.sees(480);
          await feed.stop();
          await expectEverythingOnce(store, streams, feed.events);
        }
      });

      it('start after a position', async () => {
        const stream = aStream();
        await store.append(stream, someEvents(2), 'no-stream');
        const { position } = await store.append(stream, someEvents(2), 1);
        await store.append(stream, someEvents(2), 3);
        const [, , third] = await all(store.read(stream));

        const whole = follow(store, position);
        const inside = follow(store, third?.position ?? 'start');
        await whole.sees(2);
        await inside.sees(3);
        await store.append(stream, someEvents(1), 5);
        await whole.sees(3);
        await inside.sees(4);
        await whole.stop();
        await inside.stop();
        expect(whole.events.map(({ revision }) => revision)).toEqual([4, 5, 6]);
        expect(inside.events.map(({ revision }) => revision)).toEqual([3, 4, 5, 6]);
      });

      it('after the head deliver only what comes', async () => {
        const stream = aStream();
        await store.append(stream, someEvents(3), 'no-stream');
        const feed = follow(store, (await store.head()) ?? 'start');
        await store.append(stream, someEvents(1), 2);
        // Events come in position order, so an unwanted one would have come earlier.
        await feed.sees(1);
        await feed.stop();
        expect(feed.events.map(({ revision }) => revision)).toEqual([3]);
      });

      it('deliver the same as a read', async () => {
        const stream = aStream();
        const feed = follow(store, (await store.head()) ?? 'start');
        await store.append(stream, [anEvent({ text: 'Grüße 🔐', nested: { list: [1, null] } })], 'no-stream');
        await store.append(stream, [anEvent({ text: 'x'.repeat(100_000) }), ...someEvents(3)], 0);
        await store.append(stream, someEvents(2), 4);
        await feed.sees(7);
        await feed.stop();
        expect(feed.events).toEqual(await all(store.read(stream)));
      });

      it('give each subscriber values of its own', async () => {
        const stream = aStream();
        const after = (await store.head()) ?? 'start';
        const feeds = [follow(store, after), follow(store, after)];
        await store.append(stream, [anEvent({ name: 'before' })], 'no-stream');
        for (const feed of feeds) await feed.sees(1);
        const [mine, theirs] = feeds.map(({ events }) => events[0]?.data as { name: string });
        try {
          if (mine !== undefined) mine.name = 'edited';
        } catch {
          // A store may also hand out frozen values.
        }
        expect(theirs).toEqual({ name: 'before' });
        for (const feed of feeds) await feed.stop();
      });

      it('wait for a slow handler, with one batch at a time, and slow nobody else', async () => {
        const stream = aStream();
        const after = (await store.head()) ?? 'start';
        let running = 0;
        let most = 0;
        const slow = follow(store, after, async () => {
          most = Math.max(most, ++running);
          await pause(3);
          running--;
        });
        const quick = follow(store, after);
        for (let revision = 0; revision < 100; revision++) {
          await store.append(stream, [anEvent({ revision })], revision === 0 ? 'no-stream' : revision - 1);
        }
        await quick.sees(100);
        await slow.sees(100);
        await slow.stop();
        await quick.stop();
        expect(most).toBe(1);
        expect(slow.events.map(({ revision }) => revision)).toEqual(Array.from({ length: 100 }, (_, index) => index));
      });

      it('hold nothing back from a subscriber that was stuck while thousands were written', async () => {
        const stream = aStream();
        const after = (await store.head()) ?? 'start';
        let free = (): void => undefined;
        const stuck = new Promise<void>((resolve) => (free = resolve));
        const feed = follow(store, after, () => stuck);
        await store.append(stream, someEvents(1), 'no-stream');
        for (let revision = 0; revision < 4_000; revision += 500) await store.append(stream, someEvents(500), revision);
        free();
        await feed.sees(4_001);
        await feed.stop();
        expect(feed.events.map(({ revision }) => revision)).toEqual(Array.from({ length: 4_001 }, (_, index) => index));
      });

      it('end with onError when the handler fails, and do not go on', async () => {
        const stream = aStream();
        await store.append(stream, someEvents(1), 'no-stream');
        const failure = new Error('the handler failed');
        for (const fail of [() => Promise.reject(failure), thrower(failure)]) {
          let calls = 0;
          const error = await new Promise<unknown>((resolve) => {
            store.subscribe({
              after: 'start',
              onEvents: () => {
                calls++;
                return fail();
              },
              onError: resolve,
            });
          });
          expect(error).toBe(failure);
          const { length } = await all(store.read(stream));
          const { position } = await store.append(stream, someEvents(1), length - 1);
          await delivered(store, position);
          expect(calls).toBe(1);
        }
      });

      it('deliver nothing more once closed, and close after the running handler', async () => {
        const stream = aStream();
        await store.append(stream, someEvents(2), 'no-stream');
        const happened: string[] = [];
        let started = (): void => undefined;
        const start = new Promise<void>((resolve) => (started = resolve));
        let free = (): void => undefined;
        const freed = new Promise<void>((resolve) => (free = resolve));
        const subscription = store.subscribe({
          after: 'start',
          onEvents: async () => {
            happened.push('started');
            started();
            await freed;
            happened.push('returned');
          },
          onError: (error) => happened.push(String(error)),
        });
        await start;
        const closing = subscription.close().then(() => happened.push('closed'));
        // Long enough for a close that does not wait: meanwhile another subscription begins, is served, and closes.
        const { position } = await store.append(stream, someEvents(1), 1);
        await delivered(store, position);
        expect(happened).toEqual(['started']);
        free();
        await closing;
        await delivered(store, (await store.append(stream, someEvents(1), 2)).position);
        expect(happened).toEqual(['started', 'returned', 'closed']);
        await subscription.close();
      });

      it('can append from inside a handler', async () => {
        const [source, derived] = [aStream(), aStream()];
        const feed = follow(store, (await store.head()) ?? 'start', async (events) => {
          for (const { stream } of events) {
            if (stream === source) await store.append(derived, [anEvent()], 'no-stream');
          }
        });
        await store.append(source, someEvents(1), 'no-stream');
        await feed.sees(2);
        await feed.stop();
        expect(feed.events.map(({ stream }) => stream)).toEqual([source, derived]);
      });
    });

    describe('delete', () => {
      it('removes a vault stream for good: it reads as empty and its name cannot be used again', async () => {
        for (const kind of ['vault', 'snapshot', 'renewals']) {
          const stream = `${kind}-${randomUUID()}`;
          const events = someEvents(2);
          await store.append(stream, events, 'no-stream');
          await store.delete(stream);
          expect(await all(store.read(stream))).toEqual([]);
          await expect(store.append(stream, someEvents(1), 'no-stream')).rejects.toThrow('deleted');
          await expect(store.append(stream, someEvents(1), 1)).rejects.toThrow('deleted');
          await expect(store.append(stream, events, 'no-stream')).rejects.toThrow('deleted');
          expect(await all(store.read(stream))).toEqual([]);
          await store.delete(stream);
        }
      });

      it('waits its turn behind the appends that were accepted before it', async () => {
        const stream = `vault-${randomUUID()}`;
        const other = aStream();
        const [appended, , otherAppended] = await Promise.all([
          store.append(stream, someEvents(1), 'no-stream'),
          store.delete(stream),
          store.append(other, someEvents(1), 'no-stream'),
        ]);
        expect(appended.revision).toBe(0);
        expect(otherAppended.revision).toBe(0);
        expect(await all(store.read(stream))).toEqual([]);
      });

      it('refuses every other stream', async () => {
        for (const stream of [aStream(), `denials-${randomUUID()}`, 'vault-', 'vaults', ` vault-${randomUUID()}`]) {
          if (stream.startsWith('organization')) await store.append(stream, someEvents(1), 'no-stream');
          await expect(store.delete(stream)).rejects.toThrow('is permanent');
          if (stream.startsWith('organization')) expect(await all(store.read(stream))).toHaveLength(1);
        }
      });

      it('hides the events from new subscribers, and never gives out their positions again', async () => {
        const [stream, vault] = [aStream(), `vault-${randomUUID()}`];
        const { position: after } = await store.append(aStream(), someEvents(1), 'no-stream');
        const early = follow(store, after);
        await store.append(stream, someEvents(1), 'no-stream');
        const gone = await store.append(vault, someEvents(2), 'no-stream');
        await store.delete(vault);
        const { position } = await store.append(stream, someEvents(1), 0);
        expect(position > gone.position).toBe(true);

        await early.sees(2);
        const feed = follow(store, after);
        await feed.sees(2);
        await feed.stop();
        await early.stop();
        expect(feed.events.map((event) => [event.stream, event.revision])).toEqual([
          [stream, 0],
          [stream, 1],
        ]);
      });
    });

    describe('close', () => {
      it('finishes what was accepted, then takes nothing more', async () => {
        const stream = aStream();
        const accepted = [
          store.append(stream, someEvents(2), 'no-stream'),
          store.append(stream, someEvents(1), 1),
          store.append(aStream(), someEvents(1), 'no-stream'),
        ];
        const closing = store.close();
        expect((await Promise.all(accepted)).map(({ revision }) => revision)).toEqual([1, 2, 0]);
        await closing;
        await expect(store.append(stream, someEvents(1), 2)).rejects.toMatchObject({ name: 'StoreUnavailable' });
        await expect(all(store.read(stream))).rejects.toMatchObject({ name: 'StoreUnavailable' });
        await expect(store.head()).rejects.toMatchObject({ name: 'StoreUnavailable' });
        await store.close();
      });

      it('ends the subscriptions without an error, after their running handlers', async () => {
        const happened: string[] = [];
        let started = (): void => undefined;
        const start = new Promise<void>((resolve) => (started = resolve));
        let free = (): void => undefined;
        const freed = new Promise<void>((resolve) => (free = resolve));
        store.subscribe({
          after: 'start',
          onEvents: async () => {
            started();
            await freed;
            happened.push('returned');
          },
          onError: (error) => happened.push(String(error)),
        });
        store.subscribe({
          after: 'start',
          onEvents: () => undefined,
          onError: (error) => happened.push(String(error)),
        });
        await store.append(aStream(), someEvents(1), 'no-stream');
        await start;
        const closing = store.close().then(() => happened.push('closed'));
        // Long enough for a close that does not wait: meanwhile another store is opened, is used, and closes.
        await opensAndCloses();
        expect(happened).toEqual([]);
        free();
        await closing;
        await opensAndCloses();
        expect(happened).toEqual(['returned', 'closed']);
      });

      it('keeps everything for the next time, where something is kept', async () => {
        if (under.reopen === undefined) return;
        const [stream, vault] = [aStream(), `vault-${randomUUID()}`];
        const events = someEvents(600);
        await store.append(stream, events.slice(0, 300), 'no-stream');
        const last = await store.append(stream, events.slice(300), 299);
        const shredded = await store.append(vault, someEvents(1), 'no-stream');
        const before = await all(store.read(stream));
        await store.delete(vault);

        const reopened = await under.reopen();
        expect(await all(reopened.read(stream))).toEqual(before);
        expect(await reopened.head()).toBe(last.position);
        expect(await reopened.append(stream, events.slice(300), 299)).toEqual(last);
        await expect(reopened.append(stream, someEvents(1), 300)).rejects.toThrow(WrongRevision);
        await expect(reopened.append(vault, someEvents(1), 'no-stream')).rejects.toThrow('deleted');
        const next = await reopened.append(stream, someEvents(1), 599);
        expect(next.revision).toBe(600);
        expect(next.position > shredded.position).toBe(true);

        const feed = follow(reopened, before.at(-2)?.position ?? 'start');
        await feed.sees(2);
        await feed.stop();
        expect(feed.events.map(({ revision }) => revision)).toEqual([599, 600]);
      });
    });
  });
}

/** A name no other test uses. */
export function aStream(): string {
  return `organization-${randomUUID()}`;
}

/** An ordinary event. */
export function anEvent(data: unknown = { name: 'Ada' }): NewEvent {
  return { id: randomUUID(), type: 'UserCreated', data, metadata: { at: 1_700_000_000_000, schemaVersion: 1 } };
}

/** Events whose data are numbered from 0. */
export function someEvents(count: number): NewEvent[] {
  return someEventData(count).map(anEvent);
}

function someEventData(count: number): unknown[] {
  return Array.from({ length: count }, (_, number) => ({ number, text: 'some text of an event' }));
}

/** Everything that an iterable yields. */
export async function all(events: AsyncIterable<RecordedEvent>): Promise<RecordedEvent[]> {
  const read: RecordedEvent[] = [];
  for await (const event of events) read.push(event);
  return read;
}

/** A subscription that records what it receives; `sees(n)` waits until it has received n events in all. */
export function follow(
  store: Pick<EventStore, 'subscribe'>,
  after: bigint | 'start',
  handler: SubscribeOptions['onEvents'] = () => undefined,
): { events: RecordedEvent[]; sees(count: number): Promise<void>; stop(): Promise<void> } {
  const events: RecordedEvent[] = [];
  let failure: unknown;
  const subscription = store.subscribe({
    after,
    onEvents: async (batch) => {
      events.push(...batch);
      await handler(batch);
    },
    onError: (error) => (failure = error),
  });
  return {
    events,
    async sees(count) {
      const deadline = Date.now() + 15_000;
      while (events.length < count) {
        if (failure !== undefined) throw new Error('the feed has ended', { cause: failure });
        if (Date.now() > deadline) throw new Error(`only ${events.length} of ${count} events have come`);
        await pause();
      }
    },
    async stop() {
      await subscription.close();
      if (failure !== undefined) throw new Error('the feed has ended', { cause: failure });
    },
  };
}

/** Waits until a subscription that begins now has come this far: earlier ones have had the same chance. */
async function delivered(store: EventStore, position: bigint): Promise<void> {
  const feed = follow(store, 'start');
  const deadline = Date.now() + 15_000;
  while ((feed.events.at(-1)?.position ?? -1n) < position) {
    if (Date.now() > deadline) throw new Error(`the feed has not come to position ${position}`);
    await pause();
  }
  await feed.stop();
}

/** Waits for so many milliseconds. */
export function pause(milliseconds = 1): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

function thrower(error: Error): () => never {
  return () => {
    throw error;
  };
}

function ascending(positions: readonly bigint[]): bigint[] {
  return [...positions].sort((a, b) => (a < b ? -1 : 1));
}

async function fill(store: EventStore, streams: readonly string[], from: number, count: number): Promise<void> {
  for (const stream of streams) await store.append(stream, someEvents(count), from === 0 ? 'no-stream' : from - 1);
}

async function expectEverythingOnce(
  store: EventStore,
  streams: readonly string[],
  seen: readonly RecordedEvent[],
): Promise<void> {
  const positions = seen.map(({ position }) => position);
  expect(positions).toEqual(ascending(positions));
  expect(new Set(seen.map(({ id }) => id)).size).toBe(seen.length);
  for (const stream of streams) {
    const ids = seen.filter((event) => event.stream === stream).map(({ id }) => id);
    expect(ids).toEqual((await all(store.read(stream))).map(({ id }) => id));
  }
}
