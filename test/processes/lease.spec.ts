import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Lease } from '../../src/lease/lease.js';
import { EventStoreDbEventStore } from '../../src/ledger/stores/event-store-db/event-store-db.js';
import { GENESIS_HASH, verifyChain } from '../../src/ledger/chain.js';
import type { RecordedEvent } from '../../src/ledger/event-store.js';
import { SqliteEventStore } from '../../src/ledger/stores/sqlite/sqlite.js';
import { EventStoreDouble } from '../ledger/stores/double/double.js';
import { untilEnd } from '../coordinator/lease-world.js';

const program = new URL('lease-holder.mjs', import.meta.url).pathname;
/** Long enough for a busy machine to renew in time; where it does not, the lease changes hands once more. */
const ttlMs = 4_000;

/** A process that stands for the lease, and what it has said. */
class Holder {
  private readonly child: ChildProcess;
  private said = '';
  private errors = '';

  constructor(name: string, connectionString: string) {
    this.child = spawn(process.execPath, [program, connectionString, name, String(ttlMs)], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.child.stdout!.setEncoding('utf8').on('data', (text: string) => (this.said += text));
    this.child.stderr!.setEncoding('utf8').on('data', (text: string) => (this.errors += text));
  }

  get lines(): readonly string[] {
    return this.said.split('\n').slice(0, -1);
  }

  /** Its latest token, -1 before the first. */
  get token(): number {
    return Number(this.lines.findLast((line) => line.startsWith('held '))?.slice(5) ?? -1);
  }

  /** So many steps of work were recorded under tokens above that one. */
  worked(above: number): number {
    return this.lines.filter((line) => line.startsWith('worked ') && Number(line.slice(7)) > above).length;
  }

  async until(isSo: (holder: this) => boolean): Promise<void> {
    while (!isSo(this)) {
      if (this.hasEnded) throw new Error(`the holder has ended: ${this.errors}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  private get hasEnded(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null;
  }

  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  async end(signal: NodeJS.Signals): Promise<number | null> {
    if (this.hasEnded) return this.child.exitCode;
    const closed = once(this.child, 'close');
    this.child.kill(signal);
    await closed;
    return this.child.exitCode;
  }
}

let double: EventStoreDouble;
let holders: Holder[];

beforeEach(async () => {
  double = await EventStoreDouble.start();
  holders = [];
});

afterEach(async () => {
  await Promise.all(holders.map((holder) => holder.end('SIGKILL')));
  await double.stop();
});

async function start(name: string): Promise<Holder> {
  const holder = new Holder(name, double.connectionString);
  holders.push(holder);
  await holder.until(({ lines }) => lines.includes('standing'));
  return holder;
}

async function recorded(stream: string): Promise<RecordedEvent[]> {
  const store = await EventStoreDbEventStore.open(double.connectionString);
  try {
    const events: RecordedEvent[] = [];
    for await (const event of store.read(stream)) events.push(event);
    return events;
  } finally {
    await store.close();
  }
}

/** Tokens only grow along the work, and the terms are chained. */
async function expectSound(): Promise<void> {
  const tokens = (await recorded('installation-work')).map(({ data }) => (data as { token: number }).token);
  expect(tokens).toEqual([...tokens].sort((a, b) => a - b));
  let hash = GENESIS_HASH;
  for (const event of await recorded('lease-work')) hash = verifyChain(hash, event);
}

describe('two processes on one EventStoreDB', () => {
  test('one is killed, the other takes over; a third follows it at once when it ends in order', async () => {
    const first = await start('first');
    await first.until((one) => one.worked(-1) > 0);
    const second = await start('second');
    await first.end('SIGKILL');
    const killed = first.token;
    await second.until((one) => one.worked(killed) > 3);

    const third = await start('third');
    expect(await second.end('SIGTERM')).toBe(0);
    await third.until((one) => one.worked(second.token) > 3);
    await third.until(() => double.log.read('renewals-work-0') === 'deleted');
    expect(await third.end('SIGTERM')).toBe(0);
    await expectSound();
    const { data } = (await recorded('lease-work')).at(-1)!;
    expect(data).toEqual({ holder: 'third', ttlMs });
  }, 120_000);

  test('one is stopped in the middle of its work, and refused when it wakes up after the other has begun', async () => {
    const both = [await start('one'), await start('other')];
    for (;;) {
      await Promise.race(both.map((one) => one.until(({ token }) => one.worked(token - 1) > 3)));
      const [holder, waiting] = both.sort((a, b) => b.token - a.token) as [Holder, Holder];
      holder.signal('SIGSTOP');
      const old = holder.token;
      await waiting.until((one) => one.worked(old) > 3);
      holder.signal('SIGCONT');
      await holder.until(({ lines }) => lines.includes(`done ${old}`));
      await expectSound();
      if (holder.lines.includes(`refused ${old}`)) break;
      // So busy a machine that its term was over before it was stopped: there was nothing to refuse.
    }
    await Promise.all(both.map((one) => one.end('SIGTERM')));
    await expectSound();
  }, 120_000);
});

test('on SQLite, who comes after a crash does not wait for the time to live', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'countersign-lease-'));
  try {
    for (let token = 0; token < 3; token++) {
      const store = await SqliteEventStore.open(join(folder, 'events.db'));
      const held = await new Promise<{ lease: Lease; token: number }>((resolve, reject) => {
        const lease = new Lease({
          store,
          clock: { now: () => Date.now() },
          name: 'work',
          holder: 'the only one',
          // Longer than the test may take.
          ttlMs: 3_600_000,
          work: untilEnd,
          observer: {
            held: (_, at) => resolve({ lease, token: at }),
            ended: () => undefined,
            interrupted: (_, error) => reject(new Error(String(error))),
          },
        });
        lease.start();
      });
      expect(held.token).toBe(token);
      // Gone before it could be released, as in a crash.
      await store.close();
      await held.lease.close();
    }
  } finally {
    await rm(folder, { recursive: true });
  }
});
