/**
 * Stamped update_user_name, end to end over HTTP on the durable SQLite store, at 1, 16 and 64 connections, beside the
 * limit of the same process: an empty Fastify route that only verifies a P-256 signature over the body. Run it on an idle
 * machine; the load comes from this process, so server and load share the cores. `node bench/submit.mjs [seconds]`, or `--quick` to see that it runs.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { createPrivateKey, sign } from 'node:crypto';
import { apiKeyPairFromPrivate } from '../dist/stamps/sign.js';

const [first = '4', second = '3'] = process.argv.slice(2);
const isQuick = first === '--quick';
const seconds = isQuick ? 0.5 : Number(first);
const rounds = isQuick ? 1 : Number(second);
const connections = [1, 16, 64];

const server = spawn(
  process.execPath,
  ['--max-semi-space-size=64', fileURLToPath(new URL('limit-server.mjs', import.meta.url))],
  {
    stdio: ['ignore', 'pipe', 'inherit'],
  },
);
const [line] = await once(createInterface({ input: server.stdout }), 'line');
const target = JSON.parse(line);
const pair = apiKeyPairFromPrivate(target.apiPrivateKey);
const privateKey = privateKeyObject(pair);

/** node:crypto signs twenty times faster than pure JavaScript, and the load must not be the bottleneck. */
function privateKeyObject({ publicKey, privateKey: d }) {
  const prefix = Buffer.from('30310201010420', 'hex');
  const curve = Buffer.from('a00a06082a8648ce3d030107', 'hex');
  void publicKey;
  return createPrivateKey({ key: Buffer.concat([prefix, Buffer.from(d, 'hex'), curve]), format: 'der', type: 'sec1' });
}

let counter = 0;
function requestTo(path, host) {
  counter += 1;
  const body = Buffer.from(
    JSON.stringify({
      type: 'ACTIVITY_TYPE_UPDATE_USER_NAME',
      timestampMs: String(Date.now()),
      organizationId: target.organizationId,
      parameters: { userId: target.userId, userName: `Bench ${counter}` },
    }),
  );
  const signature = sign('sha256', body, privateKey).toString('hex');
  const stamp = Buffer.from(
    JSON.stringify({ publicKey: pair.publicKey, scheme: 'SIGNATURE_SCHEME_TK_API_P256', signature }),
  ).toString('base64url');
  const head =
    `POST ${path} HTTP/1.1\r\nhost: ${host}\r\ncontent-type: application/json\r\n` +
    `x-stamp: ${stamp}\r\ncontent-length: ${body.length}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), body]);
}

/** One keep-alive connection that sends the next request when the answer to the last one is complete. */
function client(url, requests, latencies, until) {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname);
    socket.setNoDelay(true);
    let started = 0;
    let buffer = '';
    const next = () => {
      const request = performance.now() < until() ? requests() : undefined;
      if (!request) return socket.end(resolve);
      started = performance.now();
      socket.write(request);
    };
    socket.on('connect', next);
    socket.on('error', reject);
    socket.on('data', (chunk) => {
      buffer += chunk.toString('latin1');
      const headEnd = buffer.indexOf('\r\n\r\n');
      if (headEnd < 0) return;
      const length = Number(/content-length: (\d+)/i.exec(buffer)?.[1] ?? 0);
      if (buffer.length < headEnd + 4 + length) return;
      if (!buffer.startsWith('HTTP/1.1 200')) return reject(new Error(buffer.slice(0, 600)));
      latencies.push(performance.now() - started);
      buffer = '';
      next();
    });
  });
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
      client(
        url,
        () => ready.pop(),
        latencies,
        () => end,
      ),
    ),
  );
  const elapsed = (performance.now() - start) / 1000;
  latencies.sort((one, other) => one - other);
  const at = (share) => latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))];
  return { rate: latencies.length / elapsed, p50: at(0.5), p99: at(0.99) };
}

const median = (values) => values.sort((one, other) => one - other)[Math.floor(values.length / 2)];

try {
  // Both paths warm before anything counts.
  await measure(target.limit, '/verify', 16);
  await measure(target.coordinator, '/public/v1/submit/update_user_name', 16);
  console.log(`stamped update_user_name, durable, ${seconds} s a run, median of ${rounds} runs`);
  console.log('connections   coordinator/s   p50 ms   p99 ms      limit/s   p50 ms   p99 ms    ratio');
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
  }
} finally {
  server.kill('SIGTERM');
  await once(server, 'exit');
  rmSync(target.folder, { recursive: true, force: true });
}
