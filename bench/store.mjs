/**
 * How the parts that grow with history behave: writing, folding one long stream, catching up the read models and starting
 * again, on SQLite and on EventStoreDB's double, for 10 000 and 100 000 events (`--million`: 1 000 000 too) and for 10 000
 * organizations. `npm run bench:store [-- --million]`, `--quick` to see that it runs. Each row is a process of its own; run it
 * on an idle machine.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { rmSync, statSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readArguments } from '../scripts/arguments.mjs';
import { benchFolder, bytesIn } from './load/coordinator.mjs';
import { startDouble } from './load/double.mjs';
import { nodeFlags } from './load/flags.mjs';
import { follow } from './load/follow.mjs';
import { activityEvents, fill, foundingEvents, uuid } from './load/history.mjs';
import { printResult } from './load/result.mjs';

const here = fileURLToPath(import.meta.url);
const [mode, ...parameters] = process.argv.slice(2);
const manyOrganizations = 10_000;

async function everything({ quick, million }) {
  const sizes = quick ? [1_000] : million ? [10_000, 100_000, 1_000_000] : [10_000, 100_000];
  const organizations = quick ? 50 : manyOrganizations;
  console.log(`Node ${process.version}, ${cpus().length} cores, load ${loadavg()[0].toFixed(1)} before it began`);
  const figures = {};
  for (const store of ['sqlite', 'double']) {
    for (const size of sizes) Object.assign(figures, await child(store, size, 1));
    const events = organizations * (foundingEvents + 2 * activityEvents);
    Object.assign(figures, await child(store, events, organizations));
  }
  printResult('store', figures);
}

async function child(...args) {
  const process = fork(here, ['--row', ...args.map(String)], {
    execArgv: ['--expose-gc', ...nodeFlags, '--max-old-space-size=6000'],
  });
  let figures;
  process.on('message', (told) => (figures = told));
  const [code] = await once(process, 'exit');
  if (code !== 0) throw new Error(`${args.join(' ')} ended with code ${code}`);
  return figures;
}

/** One store, one size: everything about it, printed, and told to the process that started this one. */
async function row(kind, events, organizations) {
  const folder = benchFolder();
  const double = kind === 'double' ? await startDouble() : undefined;
  const open = await opener(kind, folder, double);
  const whole = (number) => Math.round(number).toLocaleString('en');
  try {
    const ids = Array.from({ length: Number(organizations) }, (_, index) => uuid(`organization ${index}`));
    const eventsEach = Math.floor(Number(events) / ids.length);
    const written = await withStore(open, (store) => fill(store, ids, eventsEach));
    const { count } = written.result;
    const line = (name, { seconds, cpu }, ...more) => {
      const figures = [`${whole(count / seconds)} events/s`, `${((cpu * 1e6) / count).toFixed(0)} µs CPU/event`];
      console.log(
        [
          `  ${name.padEnd(14)}`,
          ...[...figures, `${whole(seconds * 1000)} ms`].map((text) => text.padStart(20)),
          ...more,
        ].join('  '),
      );
    };
    console.log(`${kind}: ${whole(count)} events, ${whole(ids.length)} organization${ids.length > 1 ? 's' : ''}`);
    const onDisk = double ? written.result.bytes : statSync(join(folder, 'events.db')).size;
    line('written', written, `${whole(onDisk / count)} bytes/event on disk`);
    const figures = {};
    const place = `${kind} ${events} events${ids.length > 1 ? ` ${ids.length} organizations` : ''}`;
    const note = (name, value) => (figures[`${place}: ${name}`] = value);
    const micros = ({ cpu }) => (cpu * 1e6) / count;
    note('store bytes/event', onDisk / count);

    // What is loaded once is not an organization's.
    await withStore(open, (store) => foldAll(store, [], folder));
    const before = heap();
    const fold = await withStore(open, (store) => foldAll(store, ids, folder));
    const held = (heap() - before) / ids.length;
    line('folded', fold, `${whole(held)} bytes/organization in memory`);
    note('folded µs/event', micros(fold));
    note('bytes/organization', held);
    await fold.result.snapshots.settled();

    const caughtUp = await withStore(open, (store) => follow(store, folder));
    const rows = statSync(join(folder, 'read-models.db')).size;
    line('caught up', caughtUp, `${whole(rows / count)} bytes/event on disk`);
    note('caught up µs/event', micros(caughtUp));
    note('rows bytes/event', rows / count);
    for (const [name, took] of Object.entries(await listed(ids[0], folder))) {
      console.log(`  a page of 100 activities, ${name.padEnd(30)} ${took.toFixed(2)} ms`.padEnd(60));
      note(`page ${name} ms`, took);
    }
    const again = await withStore(open, (store) => foldAll(store, ids, folder));
    const snapshotBytes = bytesIn(join(folder, 'snapshots'));
    line(snapshotBytes > 0 ? 'from snapshot' : 'folded again', again, `${whole(snapshotBytes)} bytes of snapshots`);
    const started = await withStore(open, async (store) => {
      await follow(store, folder);
      await foldAll(store, ids.slice(0, 1), folder);
    });
    console.log(
      `  started again in ${whole(started.seconds * 1000)} ms: read models and snapshots there, one organization`,
    );
    note('started ms', started.seconds * 1000);
    process.send(figures);
  } finally {
    rmSync(folder, { recursive: true, force: true });
    await double?.stop();
  }
}

/** Opens the store, works, and closes it; seconds and CPU seconds of all of this process's threads, without the closing. */
async function withStore(open, work) {
  const started = performance.now();
  const cpuBefore = process.cpuUsage();
  const store = await open();
  const result = await work(store);
  const seconds = (performance.now() - started) / 1000;
  const { user, system } = process.cpuUsage(cpuBefore);
  await store.close();
  return { result, seconds, cpu: (user + system) / 1e6 };
}

async function foldAll(store, organizationIds, folder) {
  const { OrganizationLoader } = await import('../dist/ledger/load-organization.js');
  const { Snapshots } = await import('../dist/ledger/snapshots.js');
  const snapshots = new Snapshots({
    folder: join(folder, 'snapshots'),
    checkpoint: () => BigInt(Number.MAX_SAFE_INTEGER),
    ignored: console.error,
    failed: console.error,
  });
  const loader = new OrganizationLoader(store, noMetrics, { snapshots });
  for (const id of organizationIds) await loader.load(id);
  return { loader, snapshots };
}

/** Milliseconds that a page of `list_activities` takes by its rows, the median of many, by what is asked for. */
async function listed(organizationId, folder) {
  const { listActivities } = await import('../dist/read-models/activities.js');
  const { ReadModelDatabase } = await import('../dist/read-models/database.js');
  const rows = new ReadModelDatabase(join(folder, 'read-models.db'));
  const paginationOptions = { limit: '100' };
  const asked = {
    'of any kind': {},
    'of a status that none has': { filterByStatus: ['ACTIVITY_STATUS_REJECTED'] },
    'of a type that none has': { filterByType: ['ACTIVITY_TYPE_CREATE_WALLET'] },
  };
  const context = {
    rows,
    envelopes: () => (record) => record,
    page: async ({ inTurn }) => ({ texts: Array.from(inTurn, (element) => JSON.stringify(element)), hasMore: false }),
  };
  const took = {};
  for (const [name, filter] of Object.entries(asked)) {
    const times = [];
    for (let count = 0; count < 50; count++) {
      const begun = performance.now();
      await listActivities.answer({ organizationId, ...filter, paginationOptions }, context);
      times.push(performance.now() - begun);
    }
    took[name] = times.sort((one, other) => one - other)[25];
  }
  rows.close();
  return took;
}

const noMetrics = { decided() {}, appended() {}, conflict() {}, appendFailed() {}, folded() {} };

function heap() {
  globalThis.gc();
  globalThis.gc();
  return process.memoryUsage().heapUsed;
}

async function opener(kind, folder, double) {
  if (kind === 'sqlite') {
    const { SqliteEventStore } = await import('../dist/ledger/stores/sqlite/sqlite.js');
    return () => SqliteEventStore.open(join(folder, 'events.db'));
  }
  const { EventStoreDbEventStore } = await import('../dist/ledger/stores/event-store-db/event-store-db.js');
  return () => EventStoreDbEventStore.open(double.connectionString);
}

if (mode === '--row') await row(...parameters);
else await everything(readArguments({ flags: ['quick', 'million'] }));
