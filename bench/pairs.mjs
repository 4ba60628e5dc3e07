/**
 * Two checkouts side by side: stamped update_user_name over HTTP on the durable SQLite store, in short turns of one and
 * the other, so that whatever else the machine does falls on both. Reads the rate and the processor time of all threads
 * for a request. `node bench/pairs.mjs <other checkout, built> [turns] [seconds a turn] [connections]`, by default 64
 * connections, or `--quick` for this checkout beside itself, to see that it runs.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, readdirSync, rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { availableMemory } from '../dist/cli/start/memory.js';
import { apiKeyPairFromPrivate } from '../dist/stamps/sign.js';
import { readArguments, refuse } from '../scripts/arguments.mjs';
import { median, printResult } from './load/result.mjs';
import { connection, privateKeyObject, stampedRename } from './load/stamped-renames.mjs';

const here = fileURLToPath(new URL('..', import.meta.url));
const values = { checkout: undefined, turns: 20, seconds: 1, connections: 64 };
const asked = readArguments({ flags: ['quick'], values });
const isQuick = asked.quick;
if (!isQuick && asked.checkout === undefined) refuse('name the folder of the other checkout');
const { connections } = asked;
const rounds = isQuick ? 1 : asked.turns;
const seconds = isQuick ? 0.3 : asked.seconds;
/** How long the threads of the store and the read models may go on behind the last answer, in milliseconds. */
const settleMs = 300;

async function start(folder) {
  const { flagsFor } = await import(pathToFileURL(resolve(folder, 'dist/cli/start/memory.js')).href);
  const server = spawn(process.execPath, [...flagsFor(availableMemory()), resolve(folder, 'bench/limit-server.mjs')], {
    stdio: ['ignore', 'pipe', 'inherit'],
    cwd: folder,
  });
  const [line] = await once(createInterface({ input: server.stdout }), 'line');
  const target = JSON.parse(line);
  const pair = apiKeyPairFromPrivate(target.apiPrivateKey);
  return { server, target, pair, privateKey: privateKeyObject(pair) };
}

function requestTo({ target: { organizationId, userId }, pair: { publicKey }, privateKey }, host) {
  const path = '/public/v1/submit/update_user_name';
  return stampedRename({ path, host, organizationId, userId, publicKey, privateKey });
}

/** Processor time of each thread of a process, in clock ticks of 10 ms. */
function ticksOf(pid) {
  return readdirSync(`/proc/${pid}/task`).map((task) => {
    const stat = readFileSync(`/proc/${pid}/task/${task}/stat`, 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { task: Number(task), ticks: Number(fields[11]) + Number(fields[12]) };
  });
}

async function turn(one) {
  const url = one.target.coordinator;
  const { host } = new URL(url);
  const ready = Array.from({ length: Math.ceil(seconds * 6_000) }, () => requestTo(one, host));
  const before = ticksOf(one.server.pid);
  let answered = 0;
  const begun = performance.now();
  const isOver = () => performance.now() - begun > seconds * 1000;
  await Promise.all(
    Array.from({ length: connections }, () =>
      connection(
        url,
        () => (isOver() ? undefined : ready.pop()),
        () => (answered += 1),
      ),
    ),
  );
  const elapsed = (performance.now() - begun) / 1000;
  await new Promise((later) => setTimeout(later, settleMs));
  const after = ticksOf(one.server.pid);
  const of = ({ task, ticks }) => ticks - (before.find((known) => known.task === task)?.ticks ?? 0);
  const main = after.find(({ task }) => task === one.server.pid);
  const micros = (ticks) => (ticks * 10_000) / answered;
  return {
    rate: answered / elapsed,
    main: micros(of(main)),
    all: micros(after.reduce((sum, thread) => sum + of(thread), 0)),
  };
}

const pair = [await start(isQuick ? here : resolve(asked.checkout)), await start(here)];
try {
  // Warm before anything counts.
  for (const one of pair) await turn(one);
  for (const one of pair) await turn(one);
  const runs = [[], []];
  for (let round = 0; round < rounds; round++) {
    for (const index of round % 2 === 0 ? [0, 1] : [1, 0]) runs[index].push(await turn(pair[index]));
  }
  console.log(`${connections} connections, ${rounds} turns of ${seconds} s each, medians`);
  console.log('                  rate/s   µs of the main thread   µs of all threads');
  for (const [index, name] of ['other', 'this'].entries()) {
    const of = (figure) => median(runs[index].map((run) => run[figure])).toFixed(0);
    console.log(`${name.padEnd(12)}${of('rate').padStart(12)}${of('main').padStart(24)}${of('all').padStart(20)}`);
  }
  const ratio = (figure) => median(runs[1].map((run, index) => run[figure] / runs[0][index][figure])).toFixed(3);
  const ours = (figure) => median(runs[1].map((run) => run[figure]));
  const figures = { '/s': ours('rate'), 'µs, main thread': ours('main'), 'µs, all threads': ours('all') };
  console.log(
    `${'this/other'.padEnd(12)}${ratio('rate').padStart(12)}${ratio('main').padStart(24)}${ratio('all').padStart(20)}`,
  );
  for (const name of ['rate', 'main', 'all']) figures[`this/other: ${name}`] = ratio(name);
  printResult('pairs', figures);
} finally {
  for (const { server, target } of pair) {
    server.kill('SIGTERM');
    await once(server, 'exit');
    rmSync(target.folder, { recursive: true, force: true });
  }
}
