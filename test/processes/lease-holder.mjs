/**
 * A coordinator as far as a lease goes, in a process of its own: to be killed, stopped and woken up. While it holds the
 * lease it appends its token to the stream `installation-work`, over and over; it says what happens on its standard
 * output, one line each: `standing`, `held <token>`, `worked <token>`, `refused <token>`, `ended <token> <why>`, `done <token>`.
 *
 * Arguments: connection string of the EventStoreDB, name of the holder, time to live in milliseconds.
 */
import { randomUUID } from 'node:crypto';
import { writeSync } from 'node:fs';
import { Lease } from '../../dist/lease/lease.js';
import { EventStoreDbEventStore } from '../../dist/ledger/stores/event-store-db/event-store-db.js';
import { StoreUnavailable } from '../../dist/ledger/event-store.js';

const [, , connectionString, holder, ttlMs] = process.argv;
const stream = 'installation-work';
const store = await EventStoreDbEventStore.open(connectionString);
// Not through process.stdout: a line that waited in a buffer would be lost with the process.
const say = (line) => writeSync(1, `${line}\n`);

/** Advances the stream before anything else, and from then on only from where it has left it. */
async function work({ token, signal }) {
  let after = 'no-stream';
  for await (const { revision, data } of store.read(stream)) {
    if (data.token > token) return;
    after = revision;
  }
  for (let isLast = false; !isLast;) {
    // Once more after the term: what was on its way when it ended is what the stream has to refuse.
    isLast = signal.aborted;
    const event = { id: randomUUID(), type: 'Worked', data: { holder, token }, metadata: {} };
    try {
      ({ revision: after } = await insist(event, after));
    } catch {
      say(`refused ${token}`);
      return;
    }
    say(`worked ${token}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function insist(event, after) {
  for (;;) {
    try {
      return await store.append(stream, [event], after);
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
    }
  }
}

const lease = new Lease({
  store,
  clock: { now: () => Date.now() },
  name: 'work',
  holder,
  ttlMs: Number(ttlMs),
  work: (term) => work(term).finally(() => say(`done ${term.token}`)),
  observer: {
    held: (_, token) => say(`held ${token}`),
    ended: (_, token, why) => say(`ended ${token} ${why}`),
    interrupted: (_, error) => process.stderr.write(`${String(error)}\n`),
  },
});

// A coordinator has a server that keeps it alive: a lease does not.
const alive = setInterval(() => undefined, 60_000);
process.once('SIGTERM', async () => {
  await lease.close();
  await store.close();
  clearInterval(alive);
});
lease.start();
say('standing');
