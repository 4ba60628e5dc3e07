/**
 * A submit on EventStoreDB beside one on SQLite: stamped update_user_name over HTTP, one coordinator on each, in short turns of
 * one and the other. Reads the processor time of all threads of the coordinator for a request, and what has reached the
 * store: appends, and reads of streams. EventStoreDB is the tests' double, in a process of its own with its log in memory, so its
 * time is not the coordinator's. `node bench/adapters.mjs [turns] [seconds a turn] [connections]`, or `--quick` to see that it runs.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { readArguments } from '../scripts/arguments.mjs';
import { benchFolder, Coordinator } from './load/coordinator.mjs';
import { startDouble } from './load/double.mjs';
import { median, printResult } from './load/result.mjs';
import { connection, stampedRename } from './load/stamped-renames.mjs';

const asked = readArguments({ flags: ['quick'], values: { turns: 12, seconds: 1, connections: 64 } });
const { connections } = asked;
const turns = asked.quick ? 1 : asked.turns;
const seconds = asked.quick ? 0.3 : asked.seconds;
/** How long threads may go on behind the last answer, in milliseconds. */
const settleMs = 300;

const double = await startDouble();
const places = {
  SQLite: await Coordinator.start(benchFolder()),
  EventStoreDB: await Coordinator.start(benchFolder(), { EVENT_STORE: double.connectionString }),
};

async function turn(server) {
  const { root, url } = server;
  const { host } = new URL(url);
  const { organizationId, userId, publicKey, key: privateKey } = root;
  const path = '/public/v1/submit/update_user_name';
  const ready = Array.from({ length: Math.ceil(seconds * 6_000) }, () =>
    stampedRename({ path, host, organizationId, userId, publicKey, privateKey }),
  );
  const before = [server.processorMs(false), server.processorMs(true)];
  let answered = 0;
  const begun = performance.now();
  const isOver = () => performance.now() - begun > seconds * 1_000;
  const lane = () =>
    connection(
      url,
      () => (isOver() ? undefined : ready.pop()),
      () => (answered += 1),
    );
  await Promise.all(Array.from({ length: connections }, lane));
  const elapsed = (performance.now() - begun) / 1_000;
  await pause(settleMs);
  const micros = (ofMain) => ((server.processorMs(ofMain) - before[ofMain ? 1 : 0]) * 1_000) / answered;
  return { answered, rate: answered / elapsed, all: micros(false), main: micros(true) };
}

try {
  for (const server of Object.values(places)) for (let count = 0; count < 2; count++) await turn(server);
  const runs = { SQLite: [], EventStoreDB: [] };
  const before = await double.counts();
  for (let index = 0; index < turns; index++) {
    const names = index % 2 === 0 ? ['SQLite', 'EventStoreDB'] : ['EventStoreDB', 'SQLite'];
    for (const name of names) runs[name].push(await turn(places[name]));
  }
  const after = await double.counts();
  const figures = {};
  console.log(`${connections} connections, ${turns} turns of ${seconds} s each, medians`);
  console.log('                  rate/s   µs of the main thread   µs of all threads');
  for (const [name, all] of Object.entries(runs)) {
    const [rate, main, every] = ['rate', 'main', 'all'].map((figure) => median(all.map((run) => run[figure])));
    console.log(
      name.padEnd(12) + rate.toFixed(0).padStart(12) + main.toFixed(0).padStart(24) + every.toFixed(0).padStart(20),
    );
    Object.assign(figures, {
      [`${name}: /s`]: rate,
      [`${name}: µs, main thread`]: main,
      [`${name}: µs, all threads`]: every,
    });
  }
  const ratio = median(runs.EventStoreDB.map(({ all }, index) => all / runs.SQLite[index].all));
  const answered = runs.EventStoreDB.reduce((sum, run) => sum + run.answered, 0);
  const [appends, reads] = ['appends', 'streamReads'].map((name) => (after[name] - before[name]) / answered);
  console.log(`EventStoreDB takes ${ratio.toFixed(2)} times the processor time of all threads`);
  console.log(
    `a submit there: ${appends.toFixed(3)} appends (several submits share one), ${reads.toFixed(3)} reads of a stream`,
  );
  figures['EventStoreDB of SQLite, all threads'] = ratio;
  figures['EventStoreDB: appends/submit'] = appends;
  figures['EventStoreDB: reads/submit'] = reads;
  printResult('adapters', figures);
} finally {
  for (const server of Object.values(places)) await server.remove();
  await double.stop();
}
