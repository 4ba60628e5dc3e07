/**
 * Ready after `kill -9` with a long history: SQLite is filled with activities of other organizations, the coordinator catches up once,
 * and is then killed several times while it answers submits. Reads the time from the start of the process until
 * `/health/ready` says 200. `node bench/restart.mjs [events] [kills]`, or `--quick` to see that it runs.
 */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { SqliteEventStore } from '../dist/ledger/stores/sqlite/sqlite.js';
import { readArguments } from '../scripts/arguments.mjs';
import { benchFolder, Coordinator } from './load/coordinator.mjs';
import { activityEvents, fill, foundingEvents, uuid } from './load/history.mjs';
import { median, printResult } from './load/result.mjs';
import { connection, stampedRename } from './load/stamped-renames.mjs';

const asked = readArguments({ flags: ['quick'], values: { events: 840_000, kills: 5 } });
const events = asked.quick ? 3_000 : asked.events;
const kills = asked.quick ? 1 : asked.kills;
const organizations = asked.quick ? 10 : 1_000;
const loadMs = asked.quick ? 300 : 2_000;

let server = await Coordinator.start(benchFolder());
try {
  await server.stop();
  const store = await SqliteEventStore.open(join(server.folder, 'events.db'));
  const ids = Array.from({ length: organizations }, (_, index) => uuid(`organization ${index}`));
  const each = foundingEvents + activityEvents * Math.ceil((events / organizations - foundingEvents) / activityEvents);
  const { count } = await fill(store, ids, each);
  await store.close();
  const begun = performance.now();
  server = await Coordinator.start(server.folder, {}, 10);
  const first = (performance.now() - begun) / 1_000;
  console.log(
    `${count.toLocaleString('en')} events: ready after ${first.toFixed(1)} s the first time, with all rows to write`,
  );
  const times = [];
  for (let kill = 0; kill < kills; kill++) {
    await underLoad(() => server.kill());
    const started = performance.now();
    server = await Coordinator.start(server.folder);
    times.push((performance.now() - started) / 1_000);
  }
  const bare = await bareStart();
  const [middle, longest] = [median(times), Math.max(...times)];
  console.log(`after kill -9 under load: median ${middle.toFixed(2)} s, longest ${longest.toFixed(2)} s, of ${kills}`);
  console.log(`a process of Node.js that only loads the coordinator: ${bare.toFixed(2)} s`);
  printResult('restart', {
    events: count,
    'first: s': first,
    'median: s': middle,
    'longest: s': longest,
    'loading: s': bare,
  });
} finally {
  await server.remove();
}

/** Submits at 16 connections while it is killed; who is not answered then is what the kill was for. */
async function underLoad(kill) {
  const { organizationId, userId, publicKey, key: privateKey } = server.root;
  const { url } = server;
  const path = '/public/v1/submit/update_user_name';
  const { host } = new URL(url);
  const next = () => stampedRename({ path, host, organizationId, userId, publicKey, privateKey });
  const lanes = Array.from({ length: 16 }, () => connection(url, next, () => undefined).catch(() => undefined));
  await new Promise((later) => setTimeout(later, loadMs));
  await kill();
  // A connection that was answered in full and then closed waits for nothing more.
  await Promise.race([Promise.all(lanes), new Promise((later) => setTimeout(later, 500))]);
}

/** Seconds that it takes to load the modules: what a start costs on this machine without any data. */
async function bareStart() {
  const begun = performance.now();
  const module = JSON.stringify(new URL('../dist/app/create-coordinator.js', import.meta.url).href);
  const child = spawn(process.execPath, ['--input-type=module', '-e', `await import(${module})`], { stdio: 'inherit' });
  await new Promise((ended) => child.on('exit', ended));
  return (performance.now() - begun) / 1_000;
}
