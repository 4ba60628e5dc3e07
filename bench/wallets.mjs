/**
 * Many sub-organizations, each with a wallet of its own: how fast they are created, and how fast each signs once, when the
 * coordinator has just started again and when it has them in memory. Stamped, over HTTP, on the durable SQLite store.
 * `node bench/wallets.mjs [count]`, or `--quick` to see that it runs. The server is a process of its own; its processor
 * time says more than the rates where the machine has other work.
 */
import { spawn } from 'node:child_process';
import { createHash, sign } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { apiKeyPairFromPrivate } from '../dist/stamps/sign.js';
import { readArguments } from '../scripts/arguments.mjs';
import { freePort, ready } from './load/server.mjs';
import { privateKeyObject } from './load/stamped-renames.mjs';

const asked = readArguments({ flags: ['quick'], values: { count: 3_000 } });
const count = asked.quick ? 40 : asked.count;
/** Requests under way at once: while creating, and while signing. */
const connections = { creating: 16, signing: 32 };
/** Of the clock that Linux counts processor time with. */
const ticksPerSecond = 100;

const folder = mkdtempSync(join(process.env.BENCH_DIR ?? tmpdir(), 'countersign-bench-'));
const port = await freePort();
const url = `http://127.0.0.1:${port}`;

async function start() {
  const server = spawn(
    process.execPath,
    ['--max-semi-space-size=64', ...profiled(), fileURLToPath(new URL('../dist/main.js', import.meta.url))],
    { env: { ...process.env, PORT: String(port), DATA_DIR: folder }, stdio: ['ignore', 'ignore', 'inherit'] },
  );
  await ready(server, url);
  return server;
}

/** With PROFILE set to a folder, profiles of each start are written there. */
function profiled() {
  return process.env.PROFILE ? ['--cpu-prof', `--cpu-prof-dir=${process.env.PROFILE}`] : [];
}

async function stop(server) {
  server.kill('SIGTERM');
  if (server.exitCode === null) await once(server, 'exit');
}

/** Milliseconds of processor time that all threads of a process have used, or its main thread. */
function processorTime(pid, ofMain) {
  const stat = readFileSync(ofMain ? `/proc/${pid}/task/${pid}/stat` : `/proc/${pid}/stat`, 'utf8');
  const [user, system] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13);
  return ((Number(user) + Number(system)) / ticksPerSecond) * 1_000;
}

let last = 0;
function stamped({ organizationId, apiPublicKey, key }, type, parameters) {
  last = Math.max(last + 1, Date.now());
  const body = JSON.stringify({ type, timestampMs: String(last), organizationId, parameters });
  const signature = sign('sha256', Buffer.from(body), key).toString('hex');
  const stamp = JSON.stringify({ publicKey: apiPublicKey, scheme: 'SIGNATURE_SCHEME_TK_API_P256', signature });
  const kind = type
    .replace(/^ACTIVITY_TYPE_/, '')
    .replace(/_V\d+$/, '')
    .toLowerCase();
  return { path: `/public/v1/submit/${kind}`, body, headers: { 'x-stamp': Buffer.from(stamp).toString('base64url') } };
}

async function post({ path, body, headers }) {
  const answer = await fetch(`${url}${path}`, { method: 'POST', body, headers });
  const text = await answer.text();
  if (!answer.ok) throw new Error(text.slice(0, 600));
  return JSON.parse(text).activity.result;
}

/** Sends every request, so many at once; prints a row; gives the results in order. */
async function measure(name, server, requests, atOnce) {
  const before = [processorTime(server.pid, false), processorTime(server.pid, true)];
  const begun = performance.now();
  const results = [];
  let next = 0;
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (next < requests.length) {
        const at = next++;
        results[at] = await post(requests[at]);
      }
    }),
  );
  const seconds = (performance.now() - begun) / 1_000;
  const each = (ofMain) => (processorTime(server.pid, ofMain) - before[ofMain ? 1 : 0]) / requests.length;
  console.log(
    `| ${name} | ${(requests.length / seconds).toFixed(0)} | ${each(false).toFixed(2)} | ${each(true).toFixed(2)} |`,
  );
  return results;
}

let server = await start();
try {
  const root = JSON.parse(readFileSync(join(folder, 'root.json'), 'utf8'));
  const pair = apiKeyPairFromPrivate(root.apiPrivateKey);
  const key = privateKeyObject(pair);
  const caller = (organizationId) => ({ organizationId, apiPublicKey: pair.publicKey, key });
  const creations = Array.from({ length: count }, (_, at) =>
    stamped(caller(root.organizationId), 'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8', {
      subOrganizationName: `Bench ${at}`,
      rootQuorumThreshold: 1,
      rootUsers: [
        {
          userName: 'Bench',
          apiKeys: [{ apiKeyName: 'Bench', publicKey: pair.publicKey, curveType: 'API_KEY_CURVE_P256' }],
          authenticators: [],
          oauthProviders: [],
        },
      ],
      wallet: {
        walletName: 'Bench',
        accounts: [
          {
            curve: 'CURVE_SECP256K1',
            pathFormat: 'PATH_FORMAT_BIP32',
            path: "m/44'/60'/0'/0/0",
            addressFormat: 'ADDRESS_FORMAT_ETHEREUM',
          },
        ],
      },
    }),
  );
  console.log(`${count} sub-organizations; load ${loadavg()[0].toFixed(1)}, Node ${process.versions.node}`);
  console.log('| each | a second | ms of processor time, all threads | main thread |');
  console.log('| --- | ---: | ---: | ---: |');
  const created = await measure('is created, with a wallet', server, creations, connections.creating);
  const places = created.map((result) => {
    const { subOrganizationId, wallet } = Object.values(result)[0];
    return { organizationId: subOrganizationId, signWith: wallet.addresses[0] };
  });
  let round = 0;
  const signatures = () => {
    round += 1;
    return places.map(({ organizationId, signWith }) =>
      stamped(caller(organizationId), 'ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2', {
        signWith,
        payload: createHash('sha256').update(`${round} ${signWith}`).digest('hex'),
        encoding: 'PAYLOAD_ENCODING_HEXADECIMAL',
        hashFunction: 'HASH_FUNCTION_NO_OP',
      }),
    );
  };
  await stop(server);
  server = await start();
  await measure('signs once, just restarted', server, signatures(), connections.signing);
  await measure('signs once, in memory', server, signatures(), connections.signing);
} finally {
  await stop(server);
  rmSync(folder, { recursive: true, force: true });
}
