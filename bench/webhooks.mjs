/**
 * Webhook deliveries to one endpoint that answers at once, on the durable SQLite store: how many a second when nothing else
 * happens, and how long one waits beside a steady load of submits. `node bench/webhooks.mjs [deliveries] [seconds] [submits a
 * second]`, or `--quick` to see that it runs. The coordinator is a process of its own, and so is the receiver.
 */
import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { apiKeyPairFromPrivate } from '../dist/stamps/sign.js';
import { readArguments } from '../scripts/arguments.mjs';
import { printResult } from './load/result.mjs';
import { nodeFlags } from './load/flags.mjs';
import { freePort, ready } from './load/server.mjs';
import { connection, privateKeyObject, stampedRename } from './load/stamped-renames.mjs';

if (process.argv[2] === '--receiver') receive();
else await measure(readArguments({ flags: ['quick'], values: { deliveries: 4_000, seconds: 10, rate: 1_000 } }));

/** Answers at once, or, while it is told to hold, as soon as it no longer is. Says what came when it is asked. */
function receive() {
  let held;
  /** Milliseconds from the record of the event to its arrival, by event. */
  const waits = new Map();
  const server = createServer((request, response) => {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', async () => {
      if (held) await held.promise;
      const { updatedAt } = JSON.parse(Buffer.concat(chunks).toString());
      const id = request.headers['x-turnkey-event-id'];
      if (!waits.has(id)) waits.set(id, Date.now() - Date.parse(updatedAt));
      response.end();
    });
  }).listen(0, '127.0.0.1', () => process.send({ port: server.address().port }));
  process.on('message', (asked) => {
    if (asked === 'hold') held = Promise.withResolvers?.() ?? resolvers();
    if (asked === 'release') held = held?.resolve();
    if (asked === 'count') process.send({ count: waits.size });
    if (asked === 'waits') {
      process.send({ waits: [...waits.values()] });
      waits.clear();
    }
  });
}

function resolvers() {
  let resolve;
  const promise = new Promise((done) => (resolve = done));
  return { promise, resolve };
}

async function measure({ quick: isQuick, ...asked }) {
  const { deliveries, seconds, rate } = isQuick ? { deliveries: 50, seconds: 0.5, rate: 50 } : asked;
  const folder = mkdtempSync(join(process.env.BENCH_DIR ?? tmpdir(), 'countersign-bench-'));
  const port = await freePort();
  const receiver = fork(fileURLToPath(import.meta.url), ['--receiver']);
  const ask = async (what) => {
    receiver.send(what);
    return (await once(receiver, 'message'))[0];
  };
  const [{ port: target }] = await once(receiver, 'message');
  const server = spawn(process.execPath, [...nodeFlags, fileURLToPath(new URL('../dist/main.js', import.meta.url))], {
    env: { ...process.env, PORT: String(port), DATA_DIR: folder, ALLOW_PRIVATE_NETWORK: 'true' },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const url = `http://127.0.0.1:${port}`;
  try {
    await ready(server, url);
    const { apiPrivateKey, organizationId, userId } = JSON.parse(readFileSync(join(folder, 'root.json'), 'utf8'));
    const pair = apiKeyPairFromPrivate(apiPrivateKey);
    const privateKey = privateKeyObject(pair);
    const path = '/public/v1/submit/update_user_name';
    const { publicKey } = pair;
    const rename = () =>
      stampedRename({ path, host: `127.0.0.1:${port}`, organizationId, userId, publicKey, privateKey });
    await createEndpoint({ url, organizationId, pair, target: `http://127.0.0.1:${target}/` });
    const arrived = async (count) => {
      for (const end = Date.now() + 120_000; (await ask('count')).count < count;) {
        if (Date.now() > end) throw new Error(`only ${(await ask('count')).count} of ${count} deliveries have arrived`);
        await pause(10);
      }
    };
    const send = (requests, connections) =>
      Promise.all(
        Array.from({ length: connections }, () =>
          connection(
            url,
            () => requests.pop(),
            () => undefined,
          ),
        ),
      );
    // Warm.
    await send(Array.from({ length: isQuick ? 5 : 200 }, rename), 4);
    await arrived(isQuick ? 5 : 200);
    await ask('waits');

    receiver.send('hold');
    await send(Array.from({ length: deliveries }, rename), 64);
    const before = processorMs(server.pid);
    const begun = performance.now();
    receiver.send('release');
    await arrived(deliveries);
    const took = performance.now() - begun;
    await ask('waits');
    const spent = processorMs(server.pid) - before;
    console.log(`load of the machine: ${loadavg()[0].toFixed(1)}`);
    console.log(
      `${deliveries} that wait, nothing else: ${((deliveries / took) * 1000).toFixed(0)} deliveries/s, ` +
        `${((spent / deliveries) * 1000).toFixed(0)} µs of processor time each, all threads`,
    );

    const figures = {
      'alone: /s': (deliveries / took) * 1000,
      'alone: µs, all threads': (spent / deliveries) * 1000,
    };
    const wanted = Math.round(rate * seconds);
    const requests = Array.from({ length: wanted }, rename);
    const started = performance.now();
    await Promise.all(
      Array.from({ length: 16 }, async (_, lane) => {
        for (let at = lane; at < wanted; at += 16 * 8) {
          const due = started + (at / rate) * 1000;
          if (due > performance.now()) await pause(due - performance.now());
          const some = Array.from({ length: 8 }, () => requests.pop()).filter(Boolean);
          await send(some, 1);
        }
      }),
    );
    await send(requests, 16);
    const submitted = (wanted / (performance.now() - started)) * 1000;
    await arrived(wanted);
    const drained = performance.now() - started;
    const { waits } = await ask('waits');
    waits.sort((one, other) => one - other);
    const at = (share) => waits[Math.min(waits.length - 1, Math.floor(waits.length * share))].toFixed(0);
    console.log(
      `beside ${submitted.toFixed(0)} submits/s: ${((wanted / drained) * 1000).toFixed(0)} deliveries/s, ` +
        `waits p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, longest ${at(1)} ms`,
    );
    figures['beside submits: submits/s'] = submitted;
    figures['beside submits: deliveries/s'] = (wanted / drained) * 1000;
    figures['beside submits: longest wait ms'] = waits.at(-1);
    printResult('webhooks', figures);
  } finally {
    receiver.kill();
    server.kill('SIGTERM');
    if (server.exitCode === null) await once(server, 'exit');
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Processor time of all threads of a process, in milliseconds. */
function processorMs(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

async function createEndpoint({ url, organizationId, pair, target }) {
  const { stampBody } = await import('../dist/stamps/sign.js');
  const filtersJson = JSON.stringify({ types: ['ACTIVITY_TYPE_UPDATE_USER_NAME'] });
  const body = JSON.stringify({
    type: 'ACTIVITY_TYPE_CREATE_WEBHOOK_ENDPOINT',
    timestampMs: String(Date.now()),
    organizationId,
    parameters: { url: target, name: 'Bench', subscriptions: [{ eventType: 'ACTIVITY_UPDATES', filtersJson }] },
  });
  const { headerName, headerValue } = stampBody(body, pair);
  const answer = await fetch(`${url}/public/v1/submit/create_webhook_endpoint`, {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/json', [headerName]: headerValue },
  });
  if (!answer.ok) throw new Error((await answer.text()).slice(0, 600));
}
