import { EventStoreDBClient, jsonEvent, NO_STREAM } from '@eventstore/db-client';
import { jest } from '@jest/globals';
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { type EventStoreDbEventStore } from '../../src/ledger/stores/event-store-db/event-store-db.js';
import type { EventStoreDbOptions } from '../../src/ledger/stores/event-store-db/event-store-db.js';
import { StoreUnavailable, WrongRevision } from '../../src/ledger/event-store.js';
import type { NewEvent } from '../../src/ledger/event-store.js';
import { all, anEvent, aStream, follow, pause, someEvents } from '../contracts/event-store.contract.js';
import { type EventStoreDouble } from '../ledger/stores/double/double.js';
import type { AppendFault, Drop } from '../ledger/stores/double/double.js';
import { runningDoubles } from '../ledger/stores/double/running.js';
import { until } from '../e2e/until.js';

/** Generous, since the machines of tests are busy: a silent server costs a second. */
const quick = { appendTimeoutMs: 1_000, giveUpAfterMs: 15_000, retryAfterMs: 5 };
const modes = ['classic', 'batch'] as const;

let double: EventStoreDouble;
const { aDouble, storeAt } = runningDoubles(quick);

beforeEach(async () => {
  double = await aDouble();
});

function open(options: EventStoreDbOptions = {}, url = double.connectionString): Promise<EventStoreDbEventStore> {
  return storeAt(url, options);
}

/** What a promise has come to after a while, or that it has not come to anything. */
async function after<T>(milliseconds: number, promise: Promise<T>): Promise<T | 'pending'> {
  return Promise.race([promise, pause(milliseconds).then(() => 'pending' as const)]);
}

/**
 * Holds that something takes less than so many milliseconds. On a busy machine anything takes long now and then, so it
 * may be tried a few times; `ready` makes it ready each time.
 */
async function soonerThan(milliseconds: number, ready: () => MaybePromise<() => Promise<unknown>>): Promise<void> {
  let fastest = Infinity;
  for (let tries = 0; tries < 4 && fastest >= milliseconds; tries++) {
    const work = await ready();
    const begun = performance.now();
    await work();
    fastest = Math.min(fastest, performance.now() - begun);
  }
  expect(fastest).toBeLessThan(milliseconds);
}

type MaybePromise<T> = T | Promise<T>;

/** Runs the client alone; resolves with its exit code and everything it has said. */
async function bareClient(
  args: readonly string[],
  onSaid: (said: string, tell: () => void) => void = () => undefined,
): Promise<{ code: number | null; said: string }> {
  const script = fileURLToPath(new URL('../ledger/stores/double/bare-client.mjs', import.meta.url));
  const child = spawn(process.execPath, [script, ...args], { env: { ...process.env, NODE_OPTIONS: '' } });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (bytes: Buffer) => {
      said += bytes.toString();
      onSaid(said, () => void child.stdin.write('go on\n'));
    });
  }
  const code = await new Promise<number | null>((resolve) => child.on('exit', resolve));
  return { code, said };
}

function bareAppend(client: EventStoreDBClient, deadline?: number): Promise<unknown> {
  const options = { expectedRevision: NO_STREAM, ...(deadline === undefined ? {} : { deadline }) } as const;
  return client
    .appendToStream(aStream(), jsonEvent({ type: 'Happened', data: {} }), options)
    .catch((error: unknown) => error);
}

describe('defect 1: clients share their appends in flight', () => {
  it('a connection lost by one client ends the process in which another one gets a late answer', async () => {
    const other = await aDouble();
    let answer = (): void => undefined;
    const heldUntil = new Promise<void>((resolve) => (answer = resolve));
    double.appendFaults.push({ heldUntil, stream: 'organization-late' });
    other.appendFaults.push({ heldUntil, stream: 'organization-cut' });
    const ended = bareClient(['late-answer', String(double.port), String(other.port)], (sofar) => {
      if (sofar.includes('unavailable')) answer();
    });
    // The one append has to be in flight when the other's connection is lost: nothing else would end it.
    await until('both appends are in flight', () => double.appends.batch > 0 && other.appends.batch > 0);
    other.cut();
    const { code, said } = await ended;
    expect(said).toContain('["unavailable","unavailable"]');
    expect(said).toContain('is not iterable');
    expect(code).not.toBe(0);
    expect(said).not.toContain('alive');
  });

  it('so no second store of a process may append in batches, and classic ones do not touch each other', async () => {
    const other = await aDouble();
    await open({ appendMode: 'batch' });
    await expect(open({ appendMode: 'batch' }, other.connectionString)).rejects.toThrow('only one EventStoreDB');

    const patient = { appendTimeoutMs: 14_000 };
    const [mine, theirs] = [await open(patient), await open(patient, other.connectionString)];
    double.appendFaults.push({ delayMs: 200 });
    other.appendFaults.push('cut-before');
    const stream = aStream();
    const appended = await Promise.all([
      mine.append(stream, someEvents(1), 'no-stream'),
      theirs.append(stream, someEvents(1), 'no-stream'),
    ]);
    expect(appended.map(({ revision }) => revision)).toEqual([0, 0]);
    expect(double.appends.classic).toBe(1);
  });

  it('and stores with the same connection string share one connection, until the last is closed', async () => {
    const [one, two] = [await open(), await open()];
    await one.append(aStream(), someEvents(1), 'no-stream');
    await two.append(aStream(), someEvents(1), 'no-stream');
    expect(double.connections).toBe(1);
    await one.close();
    expect((await two.append(aStream(), someEvents(1), 'no-stream')).revision).toBe(0);
    await expect(one.head()).rejects.toThrow(StoreUnavailable);
  });
});

describe('defects 2 and 3: appends that are never answered', () => {
  it('the client waits for ever when the server ends the batch stream', async () => {
    const client = EventStoreDBClient.connectionString(double.connectionString);
    double.appendFaults.push('end-stream-after');
    const outcome = bareAppend(client);
    await until('the stream is ended', () => double.appendFaults.length === 0);
    // What is answered later over the same connection comes later.
    for await (const { event } of client.readAll({ maxCount: 1 })) expect(event?.type).toBe('Happened');
    expect(await after(0, outcome)).toBe('pending');
  });

  it('the client does not keep the deadline of a batch append', async () => {
    const client = EventStoreDBClient.connectionString(double.connectionString);
    double.appendFaults.push('silence-before');
    expect(await after(700, bareAppend(client, 100))).toBe('pending');
  });

  it('a store gives such a stream up and goes on with a new one', async () => {
    const store = await open({ appendMode: 'batch' });
    for (const fault of ['end-stream-before', 'end-stream-after', 'silence-before'] as const) {
      await soonerThan(quick.appendTimeoutMs, async () => {
        double.appendFaults.push(fault);
        const stream = aStream();
        expect((await store.append(stream, someEvents(2), 'no-stream')).revision).toBe(1);
        expect(await all(store.read(stream))).toHaveLength(2);
        return () => store.append(stream, someEvents(1), 1);
      });
    }
  });
});

describe('defect 4: wrong expectations as results', () => {
  it('the client answers with revision 1, whatever it is', async () => {
    const client = EventStoreDBClient.connectionString(`${double.connectionString}&throwOnAppendFailure=false`);
    const stream = aStream();
    const six = () => Array.from({ length: 6 }, () => jsonEvent({ type: 'Happened', data: {} }));
    await client.appendToStream(stream, six(), { expectedRevision: NO_STREAM });
    const refused = await client.appendToStream(stream, six(), { expectedRevision: NO_STREAM });
    expect(refused).toMatchObject({ success: false, nextExpectedRevision: 1n });
  });

  it('so a store does not take that option', async () => {
    await expect(open({}, `${double.connectionString}&throwOnAppendFailure=false`)).rejects.toThrow(
      'unknown option `throwOnAppendFailure`',
    );
  });
});

describe('defect 5: closing without a server', () => {
  it('the client waits for a batch stream that the server has ended', async () => {
    // The client has to have seen the end before it is closed, and how long that takes is for the machine to say.
    let outcome: unknown;
    for (let patience = 100; outcome !== 'pending' && patience <= 3_200; patience *= 2) {
      const client = EventStoreDBClient.connectionString(double.connectionString);
      double.appendFaults.push('end-stream-after');
      void bareAppend(client);
      await until('the stream is ended', () => double.appendFaults.length === 0);
      await pause(patience);
      outcome = await after(700, client.dispose());
    }
    expect(outcome).toBe('pending');
  });

  it('a store does not, whatever has become of its batch stream', async () => {
    const store = await open({ appendMode: 'batch', appendTimeoutMs: 300, giveUpAfterMs: 300 });
    double.appendFaults.push('end-stream-after');
    await expect(store.append(aStream(), someEvents(1), 'no-stream')).rejects.toThrow(StoreUnavailable);
    expect((await store.append(aStream(), someEvents(1), 'no-stream')).revision).toBe(0);
    double.appendFaults.push('end-stream-after');
    store.append(aStream(), someEvents(1), 'no-stream').catch(() => undefined);
    const begun = performance.now();
    await store.close();
    // It would be waited for for ever.
    expect(performance.now() - begun).toBeLessThan(15_000);
  });

  it('takes a store a second or two at most, with a subscription, a read and appends open', async () => {
    for (const appendMode of modes) {
      const store = await open({ appendMode, appendTimeoutMs: 300, giveUpAfterMs: 400 });
      const stream = aStream();
      await store.append(stream, someEvents(3), 'no-stream');
      const feed = follow(store, 'start');
      await feed.sees(3);
      const reading = store.read(stream)[Symbol.asyncIterator]();
      await reading.next();
      double.stall();
      const outcome = store.append(stream, someEvents(1), 2).catch((error: unknown) => error);
      const begun = performance.now();
      await store.close();
      expect(performance.now() - begun).toBeLessThan(10_000);
      expect(await outcome).toBeInstanceOf(StoreUnavailable);
      await double.down();
      await double.up();
    }
  });
});

describe('a sixth one: appends that the client holds back', () => {
  it('end the process when their stream is lost', async () => {
    const { code, said } = await bareClient(['lost-queue', String(double.port)], (sofar, tell) => {
      if (sofar.includes('queued')) return double.cut();
      double.stall();
      tell();
    });
    expect(said).toContain('triggerUncaughtException');
    expect(said).not.toContain('alive');
    expect(code).not.toBe(0);
  });

  it('do not exist in a store: it hands over no more than the stream takes', async () => {
    const unhandled: unknown[] = [];
    const note = (error: unknown): void => void unhandled.push(error);
    process.on('unhandledRejection', note);
    const store = await open({ appendMode: 'batch', appendTimeoutMs: 2_000 });
    const text = 'x'.repeat(50_000);
    await store.append(aStream(), someEvents(1), 'no-stream');
    double.stall();
    const appends = Array.from({ length: 60 }, () => store.append(aStream(), [anEvent({ text })], 'no-stream'));
    await pause(300);
    await double.down();
    await double.up();
    expect(new Set((await Promise.all(appends)).map(({ revision }) => revision))).toEqual(new Set([0]));
    process.off('unhandledRejection', note);
    expect(unhandled).toEqual([]);
  });
});

describe('an append whose first try fails', () => {
  const faults: AppendFault[] = [
    'cut-before',
    'cut-after',
    'silence-before',
    'silence-after',
    'unavailable-before',
    'unavailable-after',
    'reset-before',
    'reset-after',
    'timeout-after',
    'not-ready-before',
  ];
  for (const appendMode of modes) {
    it.each(faults)(`is written once and where it belongs (${appendMode}: %s)`, async (fault) => {
      const store = await open({ appendMode });
      const stream = aStream();
      await store.append(stream, someEvents(1), 'no-stream');
      double.appendFaults.push(fault);
      const events = someEvents(3);
      const appended = await store.append(stream, events, 0);
      expect(double.appendFaults).toEqual([]);
      const read = await all(store.read(stream, 1));
      expect(read.map(({ id }) => id)).toEqual(events.map(({ id }) => id));
      expect(appended).toEqual({ revision: 3, position: read.at(-1)?.position });
      expect(await store.head()).toBe(appended.position);
    });

    it(`knows its own events when the second try is refused (${appendMode})`, async () => {
      const store = await open({ appendMode });
      const stream = aStream();
      double.appendFaults.push('unavailable-after', 'wrong-version-after');
      const appended = await store.append(stream, someEvents(2), 'no-stream');
      const read = await all(store.read(stream));
      expect(appended).toEqual({ revision: 1, position: read[1]?.position });
      expect(read).toHaveLength(2);
    });

    it(`is a conflict when the first try left nothing and the stream has moved on (${appendMode})`, async () => {
      const store = await open({ appendMode, retryAfterMs: 200 });
      const stream = aStream();
      double.appendFaults.push('unavailable-before');
      const mine = store.append(stream, someEvents(2), 'no-stream');
      await until('the first try has failed', () => double.appendFaults.length === 0);
      const bytes = new TextEncoder().encode('{}');
      const theirs = { id: randomUUID(), type: 'Happened', contentType: 'application/json', data: bytes };
      double.log.append(stream, [{ ...theirs, metadata: bytes }], 'no_stream');
      await expect(mine).rejects.toMatchObject({ name: 'WrongRevision', expected: 'no-stream', actual: 0 });
      expect(await all(store.read(stream))).toHaveLength(1);
    });

    it(`has an unknown outcome when no try is answered (${appendMode})`, async () => {
      const store = await open({ appendMode, appendTimeoutMs: 150, giveUpAfterMs: 1_500 });
      double.appendFaults.push(...Array.from({ length: 20 }, () => 'silence-before' as const));
      const error = await store.append(aStream(), someEvents(1), 'no-stream').catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(StoreUnavailable);
      expect(String((error as Error).cause)).toMatch(/no response|deadline/i);
      expect((error as Error).message).toContain('outcome is unknown');
      expect(double.appends[appendMode]).toBeGreaterThan(1);
    });

    it(`does not wait longer because many others wait too (${appendMode})`, async () => {
      const store = await open({ appendMode, appendTimeoutMs: 300, giveUpAfterMs: 400 });
      double.stall();
      // One after the other they would take twice as long.
      await soonerThan(4_000, () => async () => {
        const appends = Array.from({ length: appendMode === 'batch' ? 400 : 1_600 }, () =>
          store.append(aStream(), someEvents(1), 'no-stream'),
        );
        const outcomes = await Promise.allSettled(appends);
        expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set(['rejected']));
      });
    });

    it(`is not tried again when it is too large (${appendMode})`, async () => {
      const store = await open({ appendMode });
      const text = 'x'.repeat(600_000);
      const error = await store
        .append(aStream(), [anEvent({ text }), anEvent({ text })], 'no-stream')
        .catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(StoreUnavailable);
      expect((error as Error).message).toContain('1048576 bytes; raise MaxAppendSize');
      expect(error).toMatchObject({ cause: { type: 'maximum-append-size-exceeded' } });
      expect(double.appends[appendMode]).toBe(1);
    });
  }

  it('does not overtake what was accepted after it', async () => {
    const store = await open();
    const stream = aStream();
    double.appendFaults.push('unavailable-before', 'unavailable-after');
    const appended = await Promise.all([
      store.append(stream, someEvents(1), 'no-stream'),
      store.append(stream, someEvents(1), 0),
      store.append(stream, someEvents(1), 1),
    ]);
    expect(appended.map(({ revision }) => revision)).toEqual([0, 1, 2]);
  });

  it('keeps histories of parallel writers whole under faults', async () => {
    const [one, other] = [await open(), await open({ appendMode: 'batch' })];
    const faults: AppendFault[] = [
      'cut-after',
      'unavailable-before',
      'reset-after',
      'silence-after',
      'not-ready-before',
    ];
    const streams = [aStream(), aStream(), aStream()];
    const written = new Map<string, NewEvent[][]>(streams.map((stream) => [stream, []]));
    let round = 0;
    const chaos = setInterval(() => {
      const fault = faults[round++ % faults.length];
      if (fault !== undefined && double.appendFaults.length === 0) double.appendFaults.push(fault);
    }, 150);
    try {
      await Promise.all(
        [one, other, one, other].flatMap((store) =>
          streams.map(async (stream) => {
            for (let count = 0; count < 6;) {
              const { length } = await all(store.read(stream));
              const events = someEvents(1 + (count % 2));
              try {
                await store.append(stream, events, length === 0 ? 'no-stream' : length - 1);
                written.get(stream)?.push(events);
                count++;
              } catch (error) {
                if (!(error instanceof WrongRevision)) throw error;
              }
            }
          }),
        ),
      );
    } finally {
      clearInterval(chaos);
    }
    for (const stream of streams) {
      const ids = (await all(one.read(stream))).map(({ id }) => id);
      expect(new Set(ids).size).toBe(ids.length);
      expect([...ids].sort()).toEqual(
        (written.get(stream) ?? [])
          .flat()
          .map(({ id }) => id)
          .sort(),
      );
    }
  });
});

describe('a cluster', () => {
  it('sends who has come to a follower on to the leader', async () => {
    for (const appendMode of modes) {
      const follower = await aDouble(double.log);
      follower.leader = { host: '127.0.0.1', port: double.port };
      const store = await open({ appendMode }, follower.connectionString);
      const stream = aStream();
      expect((await store.append(stream, someEvents(2), 'no-stream')).revision).toBe(1);
      expect(await all(store.read(stream))).toHaveLength(2);
      expect(follower.log).toBe(double.log);
      await store.close();
    }
    expect(double.appends).toEqual({ batch: 1, classic: 1 });
  });

  it('is left for its new leader when the leader changes', async () => {
    for (const appendMode of modes) {
      const [first, second] = [await aDouble(double.log), await aDouble(double.log)];
      const members = (leader: EventStoreDouble) =>
        [first, second].map(({ port }) => ({ host: '127.0.0.1', port, leader: port === leader.port }));
      first.members = second.members = members(first);
      second.leader = { host: '127.0.0.1', port: first.port };
      const url = `esdb://127.0.0.1:${first.port},127.0.0.1:${second.port}?tls=false`;
      const store = await open({ appendMode }, url);
      const stream = aStream();
      await store.append(stream, someEvents(1), 'no-stream');
      expect(first.appends[appendMode]).toBe(1);

      first.leader = { host: '127.0.0.1', port: second.port };
      second.leader = undefined;
      await store.append(stream, someEvents(1), 0);
      expect(second.appends[appendMode]).toBe(1);

      second.members = members(second);
      await first.down();
      await store.append(stream, someEvents(1), 1);
      expect(await all(store.read(stream))).toHaveLength(3);
      await store.close();
    }
  });

  it('is left for its new leader when the old one just falls silent', async () => {
    const [first, second] = [await aDouble(double.log), await aDouble(double.log)];
    const members = (leader: EventStoreDouble) => [{ host: '127.0.0.1', port: leader.port, leader: true }];
    first.members = second.members = members(first);
    const url = `esdb://127.0.0.1:${first.port},127.0.0.1:${second.port}?tls=false&gossipTimeout=1`;
    const store = await open({ giveUpAfterMs: 15_000 }, url);
    const stream = aStream();
    await store.append(stream, someEvents(1), 'no-stream');
    second.members = members(second);
    first.stall();
    await pause(500);
    expect((await store.append(stream, someEvents(1), 0)).revision).toBe(1);
    expect(await all(store.read(stream))).toHaveLength(2);
    // Tries that were given up may arrive late; their ids make them harmless.
    expect(second.appends.classic).toBeGreaterThan(0);
  });

  it('is waited for while it has no leader', async () => {
    double.members = [];
    const url = `esdb://127.0.0.1:${double.port},127.0.0.1:${double.port}?tls=false&maxDiscoverAttempts=1&discoveryInterval=1`;
    const opening = open({}, url);
    await until('it is asked twice', () => double.gossipAsked > 1);
    double.members = [{ host: '127.0.0.1', port: double.port, leader: true }];
    expect((await (await opening).append(aStream(), someEvents(1), 'no-stream')).revision).toBe(0);
  });
});

describe('a server that is away', () => {
  it('is no reason to start without it', async () => {
    await double.down();
    const error = await open({ giveUpAfterMs: 200 }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(StoreUnavailable);
    expect(error).toMatchObject({ cause: { code: 14 } });
  });

  it('is waited for at the start and in between', async () => {
    await double.down();
    for (const appendMode of modes) {
      const opening = open({ appendMode });
      await pause(100);
      await double.up();
      const store = await opening;
      const stream = aStream();
      await store.append(stream, someEvents(1), 'no-stream');
      await double.down();
      const appending = store.append(stream, someEvents(1), 0);
      const reading = all(store.read(stream));
      await pause(200);
      await double.up();
      expect((await appending).revision).toBe(1);
      expect((await reading).length).toBeGreaterThan(0);
      await double.down();
    }
    await double.up();
  });

  it('that does not say what it can do is no reason to stay with that', async () => {
    const store = await open({ appendMode: 'batch' });
    // INTERNAL: the client keeps the failed question, and every later append would fail with it.
    double.featuresFail = 13;
    const asked = double.featuresAsked;
    const appending = store.append(aStream(), someEvents(1), 'no-stream');
    await until('it is asked what it can do', () => double.featuresAsked > asked);
    double.featuresFail = undefined;
    expect((await appending).revision).toBe(0);
  });
});

describe('reads', () => {
  it('go on where they were interrupted', async () => {
    const store = await open();
    const stream = aStream();
    await store.append(stream, someEvents(50), 'no-stream');
    double.readFaults.push(
      { afterEvents: 0, how: 'unavailable' },
      { afterEvents: 20, how: 'unavailable' },
      { afterEvents: 7, how: 'silence' },
    );
    const revisions = (await all(store.read(stream))).map(({ revision }) => revision);
    expect(revisions).toEqual(Array.from({ length: 50 }, (_, index) => index));
    expect(double.readFaults).toEqual([]);
  });

  it('do not mistake the slowness of their reader for silence of the server', async () => {
    const store = await open({ appendTimeoutMs: 700, giveUpAfterMs: 700 });
    const stream = aStream();
    await store.append(stream, someEvents(3), 'no-stream');
    const seen: number[] = [];
    for await (const { revision } of store.read(stream)) {
      seen.push(revision);
      await pause(900);
    }
    expect(seen).toEqual([0, 1, 2]);
  });

  it('say what is wrong with a server that has no positions in streams', async () => {
    const store = await open();
    const stream = aStream();
    await store.append(stream, someEvents(1), 'no-stream');
    double.positionsInStreamReads = false;
    await expect(all(store.read(stream))).rejects.toThrow('22.6 or later');
  });

  it('give an append its position when the server does not', async () => {
    for (const appendMode of modes) {
      const store = await open({ appendMode });
      const stream = aStream();
      double.positionsInAppends = false;
      const { position } = await store.append(stream, someEvents(2), 'no-stream');
      expect((await all(store.read(stream)))[1]?.position).toBe(position);
      double.positionsInAppends = true;
    }
  });

  it('leave no calls open behind them', async () => {
    // A call that never ends would be waited for for a second.
    await soonerThan(950, async () => {
      const store = await open();
      const stream = aStream();
      const short = aStream();
      await store.append(stream, someEvents(1_000), 'no-stream');
      await store.append(short, someEvents(2), 'no-stream');
      for (let round = 0; round < 20; round++) {
        for await (const { revision } of store.read(stream)) if (revision === 3) break;
        // Here the server has sent everything before the reader leaves.
        for await (const _ of store.read(short)) break;
        await store.head();
      }
      return () => store.close();
    });
  });
});

describe('subscriptions', () => {
  const drops: (Drop | 'cut')[] = ['unavailable', 'cancelled', 'reset', 'end', 'cut'];

  it.each(drops)('miss and repeat nothing when they are dropped (%s)', async (how) => {
    const store = await open();
    const stream = aStream();
    await store.append(stream, someEvents(300), 'no-stream');
    const feed = follow(store, 'start', () => pause(1));
    await feed.sees(1);
    for (let revision = 299; revision < 349; revision += 10) {
      if (how === 'cut') double.cut();
      else double.dropSubscriptions(how);
      await store.append(stream, someEvents(10), revision);
      await pause(10);
    }
    await feed.sees(350);
    await feed.stop();
    expect(feed.events.map(({ revision }) => revision)).toEqual(Array.from({ length: 350 }, (_, index) => index));
  });

  it('live through a restart of the server', async () => {
    const store = await open();
    const stream = aStream();
    await store.append(stream, someEvents(1), 'no-stream');
    const feed = follow(store, 'start');
    await feed.sees(1);
    await double.down();
    await pause(300);
    await double.up();
    await store.append(stream, someEvents(1), 0);
    await feed.sees(2);
    await feed.stop();
  });

  it('end when the server refuses the user, and say so', async () => {
    const store = await open();
    const errors: unknown[] = [];
    store.subscribe({ after: 'start', onEvents: () => undefined, onError: (error) => errors.push(error) });
    await until('the store subscribes', () => double.subscriptions > 0);
    double.dropSubscriptions('access-denied');
    await until('the subscription ends', () => errors.length > 0);
    expect(errors[0]).toBeInstanceOf(StoreUnavailable);
    expect((errors[0] as Error).message).toContain('check user and password');
    expect(errors[0]).toMatchObject({ cause: { type: 'access-denied' } });
  });

  it('begin again at the last event that is kept, however much others have written since', async () => {
    const store = await open();
    const feed = follow(store, 'start');
    const { position } = await store.append(aStream(), someEvents(1), 'no-stream');
    await feed.sees(1);
    othersWrite(3_000);
    await until('a checkpoint is sent', () => double.checkpoints.length > 0);
    const begun = double.allReads.length;
    double.dropSubscriptions('unavailable');
    await until('it begins again', () => double.allReads.length > begun);
    expect(double.allReads.at(-1)).toBe(position);
    await store.append(aStream(), someEvents(1), 'no-stream');
    await feed.sees(2);
    await feed.stop();
  });

  it('get as far as the head, whatever others write and whatever is deleted', async () => {
    const [store, reader] = [await open(), await open({ appendTimeoutMs: 1_001 })];
    const { position } = await store.append(aStream(), someEvents(2), 'no-stream');
    const vault = `vault-${randomUUID()}`;
    await store.append(vault, someEvents(2), 'no-stream');
    await store.delete(vault);
    othersWrite(2_500);
    expect(await store.head()).toBe(position);
    expect(await reader.head()).toBe(position);
    const feed = follow(reader, 'start');
    await feed.sees(2);
    expect(feed.events.at(-1)?.position).toBe(position);
    double.log.scavenge();
    await feed.stop();
  });

  it('hide what was deleted from whoever had not seen it, before and after the scavenge', async () => {
    const store = await open();
    const [stream, gone, there] = [aStream(), `vault-${randomUUID()}`, `vault-${randomUUID()}`];
    for (const each of [stream, gone, there]) await store.append(each, someEvents(2), 'no-stream');
    await store.delete(gone);
    const lasts: string[] = [];
    for (let round = 0; round < 2; round++) {
      const feed = follow(store, 'start');
      await feed.sees(4 + round);
      // Whatever else it gets comes before this.
      const last = aStream();
      lasts.push(last);
      await store.append(last, someEvents(1), 'no-stream');
      await feed.sees(4 + lasts.length);
      await feed.stop();
      expect(feed.events.map((event) => event.stream)).toEqual([stream, stream, there, there, ...lasts]);
      double.log.scavenge();
    }
  });

  it('hold the server back while a handler is busy', async () => {
    const store = await open();
    let free = (): void => undefined;
    const stuck = new Promise<void>((resolve) => (free = resolve));
    const stream = aStream();
    const feed = follow(store, 'start', () => stuck);
    writeDirectly(stream, 6_000, 2_000);
    let sent = -1;
    while (double.sent !== sent || sent === 0) {
      sent = double.sent;
      await pause(300);
    }
    expect(sent).toBeLessThan(2_500);
    free();
    await feed.sees(6_000);
    await feed.stop();
    expect(feed.events.map(({ revision }) => revision)).toEqual(Array.from({ length: 6_000 }, (_, index) => index));
  });

  it('close at once while the server does not answer', async () => {
    const store = await open();
    const vault = `vault-${randomUUID()}`;
    await store.append(vault, someEvents(1), 'no-stream');
    let seen = false;
    const subscription = store.subscribe({
      after: 'start',
      onEvents: () => void (seen = true),
      onError: () => undefined,
    });
    await until('the event is seen', () => seen);
    // Now it asks whether the second vault was deleted, and asks again and again.
    double.readFaults.push(...Array.from({ length: 1_000 }, () => ({ afterEvents: 0, how: 'unavailable' as const })));
    writeDirectly(`vault-${randomUUID()}`, 1, 10);
    await until('it is asked again', () => double.readFaults.length <= 997);
    const begun = performance.now();
    await subscription.close();
    expect(performance.now() - begun).toBeLessThan(10_000);
    double.readFaults.splice(0);
  });

  it('take nothing twice, even from a server that sends what the client has already', async () => {
    const store = await open();
    const stream = aStream();
    await store.append(stream, someEvents(2), 'no-stream');
    double.subscriptionsInclude = true;
    const feed = follow(store, 'start');
    await feed.sees(2);
    double.dropSubscriptions('unavailable');
    await store.append(stream, someEvents(1), 1);
    await feed.sees(3);
    await feed.stop();
    expect(feed.events.map(({ revision }) => revision)).toEqual([0, 1, 2]);
  });
});

describe('deletions', () => {
  it('that were not answered are done or done again', async () => {
    const store = await open();
    const vault = `vault-${randomUUID()}`;
    await store.append(vault, someEvents(1), 'no-stream');
    await double.down();
    const deleting = store.delete(vault);
    await pause(50);
    await double.up();
    await deleting;
    await store.delete(vault);
    expect(double.log.read(vault)).toBe('deleted');
  });
});

describe('a connection string', () => {
  it('is refused before the client would print it, and never repeated', async () => {
    const warn = jest.spyOn(console, 'warn').mockImplementation(() => undefined);
    const wrong: [string, string][] = [
      ['esdb://ada:hunter2@127.0.0.1:1?tls=false&colour=green', 'unknown option `colour`'],
      ['esdb://ada:hunter2@127.0.0.1:1?tlsVerifyCert=false', 'tlsCAFile'],
      ['esdb://ada:hunter2@127.0.0.1:1?nodePreference=follower', 'leader'],
      ['esdb://ada:hunter2@127.0.0.1:1?throw_on_append_failure=false', 'unknown option'],
      ['esdb://ada:hunter2:x@127.0.0.1:1', 'percent-encode'],
      ['esdb://ada:hunter2%zz@127.0.0.1:1', 'percent-encode'],
      ['esdb://ada:hunter2@127.0.0.1:not-a-port', 'check hosts'],
      ['esdb://ada:hunter2@127.0.0.1:1?tlsCAFile=missing.pem', 'certificate file'],
      ['esdb://ada:hunter2@127.0.0.1:1?defaultDeadline=soon', 'check hosts'],
      ['https://ada:hunter2@127.0.0.1:1', 'of the form'],
      ['esdb://', 'of the form'],
    ];
    for (const [url, message] of wrong) {
      const error = await open({}, url).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(TypeError);
      expect([url, (error as Error).message]).toEqual([url, expect.stringContaining(message)]);
      expect(JSON.stringify(error, Object.getOwnPropertyNames(error)) + String((error as Error).cause)).not.toContain(
        'hunter2',
      );
    }
    expect(warn).not.toHaveBeenCalled();
    warn.mockRestore();
  });

  it('with a wrong certificate or user fails without showing the password', async () => {
    const error = await open(
      { appendTimeoutMs: 300, giveUpAfterMs: 50 },
      `esdb://ada:hunter2@127.0.0.1:${double.port}`,
    ).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(StoreUnavailable);
    const { cause } = error as Error;
    const everything = [error, cause ?? {}]
      .map((each) => JSON.stringify(each, Object.getOwnPropertyNames(each)))
      .join();
    expect(everything).not.toContain('hunter2');
  });

  it('decides the wire path where nobody else does', async () => {
    const store = await open();
    await store.append(aStream(), someEvents(1), 'no-stream');
    expect(double.appends).toEqual({ batch: 0, classic: 1 });
    await expect(open({ appendMode: 'classic' }, 'esdb://127.0.0.1:1')).rejects.toThrow('needs `user:password`');
  });
});

describe('ids', () => {
  it('must be what the server gives back, since the hash chain is over them', async () => {
    const store = await open();
    for (const id of [randomUUID().toUpperCase(), 'no-uuid', `{${randomUUID()}}`]) {
      await expect(store.append(aStream(), [{ ...anEvent(), id }], 'no-stream')).rejects.toThrow(
        'not a lower-case UUID',
      );
    }
  });
});

/** Other programs use the server too. */
function othersWrite(count: number): void {
  writeDirectly(`billing-${randomUUID()}`, count, 10);
}

function writeDirectly(stream: string, count: number, size: number): void {
  const data = new TextEncoder().encode(JSON.stringify({ text: 'x'.repeat(size) }));
  for (let written = 0; written < count; written += 500) {
    const events = Array.from({ length: Math.min(500, count - written) }, () => ({
      id: randomUUID(),
      type: 'Happened',
      contentType: 'application/json',
      data,
      metadata: new TextEncoder().encode('{}'),
    }));
    double.log.append(stream, events, 'any');
  }
}
