/**
 * Stamped update_user_name, end to end over HTTP on the durable SQLite store, at 1, 16 and 64 connections, beside the
 * limit of the same process: an empty Fastify route that only verifies a P-256 signature over the body. Run it on an idle
 * machine; the load comes from this process, so server and load share the cores. `node bench/submit.mjs [seconds] [rounds]`,
 * or `--quick` to see that it runs.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { apiKeyPairFromPrivate } from '../dist/stamps/sign.js';
import { readArguments } from '../scripts/arguments.mjs';
import { median, printResult } from './load/result.mjs';
import { nodeFlags } from './load/flags.mjs';
import { connection, privateKeyObject, stampedRename } from './load/stamped-renames.mjs';

const asked = readArguments({ flags: ['quick'], values: { seconds: 4, rounds: 3 } });
const seconds = asked.quick ? 0.5 : asked.seconds;
const rounds = asked.quick ? 1 : asked.rounds;
const connections = [1, 16, 64];

const server = spawn(process.execPath, [...nodeFlags, fileURLToPath(new URL('limit-server.mjs', import.meta.url))], {
  stdio: ['ignore', 'pipe', 'inherit'],
});
const [line] = await once(createInterface({ input: server.stdout }), 'line');
const target = JSON.parse(line);
const pair = apiKeyPairFromPrivate(target.apiPrivateKey);
const privateKey = privateKeyObject(pair);

function requestTo(path, host) {
  const { organizationId, userId } = target;
  return stampedRename({ path, host, organizationId, userId, publicKey: pair.publicKey, privateKey });
}

async function measure(url, path, count) {
  const { host } = new URL(url);
  // Signed before the clock runs: more than can be sent in the time.
  const ready = [];
  const wanted = Math.ceil(seconds * (count === 1 ? 6_000 : 16_000));
  for (let made = 0; made < wanted; made++) ready.push(requestTo(path, host));
  const latencies = [];
  const start = performance.now();
  const end = start + seconds * 1000;
  await Promise.all(
    Array.from({ length: count }, () =>
      connection(
        url,
        () => (performance.now() < end ? ready.pop() : undefined),
        (ms) => latencies.push(ms),
      ),
    ),
  );
  const elapsed = (performance.now() - start) / 1000;
  latencies.sort((one, other) => one - other);
  const at = (share) => latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))];
  return { rate: latencies.length / elapsed, p50: at(0.5), p99: at(0.99) };
}

try {
  // Both paths warm before anything counts.
  await measure(target.limit, '/verify', 16);
  await measure(target.coordinator, '/public/v1/submit/update_user_name', 16);
  console.log(`stamped update_user_name, durable, ${seconds} s a run, median of ${rounds} runs`);
  console.log('connections   coordinator/s   p50 ms   p99 ms      limit/s   p50 ms   p99 ms    ratio');
  const figures = {};
  for (const count of connections) {
    const ours = [];
    const limits = [];
    for (let round = 0; round < rounds; round++) {
      limits.push(await measure(target.limit, '/verify', count));
      ours.push(await measure(target.coordinator, '/public/v1/submit/update_user_name', count));
    }
    const figure = (runs, name) => median(runs.map((run) => run[name]));
    const row = [
      figure(ours, 'rate').toFixed(0).padStart(15),
      figure(ours, 'p50').toFixed(2).padStart(8),
      figure(ours, 'p99').toFixed(2).padStart(8),
      figure(limits, 'rate').toFixed(0).padStart(12),
      figure(limits, 'p50').toFixed(2).padStart(8),
      figure(limits, 'p99').toFixed(2).padStart(8),
      median(ours.map(({ rate }, index) => rate / limits[index].rate))
        .toFixed(2)
        .padStart(8),
    ];
    console.log(`${String(count).padStart(11)} ${row.join(' ')}`);
    const [rate, p50, p99, limit, , , ratio] = row.map(Number);
    const named = { '/s': rate, 'p50 ms': p50, 'p99 ms': p99, 'limit/s': limit, 'of the limit': ratio };
    for (const [name, value] of Object.entries(named)) figures[`${count} connections: ${name}`] = value;
  }
  printResult('submit', figures);
} finally {
  server.kill('SIGTERM');
  await once(server, 'exit');
  rmSync(target.folder, { recursive: true, force: true });
}
