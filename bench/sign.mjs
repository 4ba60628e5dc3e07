/**
 * sign_raw_payloads, stamped, end to end over HTTP on the durable SQLite store, with 1 and 100 payloads to an activity,
 * beside noble and OpenSSL alone on the same digests in the same run (OpenSSL's ECDSA has random nonces).
 * `node bench/sign.mjs [seconds] [rounds]`, or `--quick` to see that it runs. The server is a process of its own; on a machine
 * that has other work, read the ratio, not the rate.
 */
import { spawn } from 'node:child_process';
import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ed25519 } from '@noble/curves/ed25519.js';
import { p256 } from '@noble/curves/nist.js';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { apiKeyPairFromPrivate } from '../dist/stamps/sign.js';
import { readArguments } from '../scripts/arguments.mjs';
import { median, printResult } from './load/result.mjs';
import { nodeFlags } from './load/flags.mjs';
import { freePort, ready } from './load/server.mjs';
import { privateKeyObject } from './load/stamped-renames.mjs';

const asked = readArguments({ flags: ['quick'], values: { seconds: 3, rounds: 3 } });
const seconds = asked.quick ? 0.5 : asked.seconds;
const rounds = asked.quick ? 1 : asked.rounds;
/** Requests under way at once: enough that the server never waits for the load or the disk. */
const connections = 32;
const sizes = [1, 100];
/** Requests a second that no server here answers. */
const mostRequests = 6_000;
/** Signatures a second that no server here makes. */
const mostSignatures = 30_000;

const noble = (curve) => {
  const key = curve.utils.randomSecretKey();
  return (digest) => curve.sign(digest, key, { prehash: false, lowS: true, format: 'recovered' });
};
const nobleEd25519 = () => {
  const key = ed25519.utils.randomSecretKey();
  return (message) => ed25519.sign(message, key);
};
const openSsl = (type, hash, options) => {
  const { privateKey } = generateKeyPairSync(type, options);
  return (message) => sign(hash, message, privateKey);
};
const curves = [
  ['CURVE_SECP256K1', 'HASH_FUNCTION_NO_OP', noble(secp256k1), openSsl('ec', 'sha256', { namedCurve: 'secp256k1' })],
  ['CURVE_ED25519', 'HASH_FUNCTION_NOT_APPLICABLE', nobleEd25519(), openSsl('ed25519', null)],
  ['CURVE_P256', 'HASH_FUNCTION_NO_OP', noble(p256), openSsl('ec', 'sha256', { namedCurve: 'prime256v1' })],
];

const folder = mkdtempSync(join(process.env.BENCH_DIR ?? tmpdir(), 'countersign-bench-'));
const port = await freePort();
const server = spawn(process.execPath, [...nodeFlags, fileURLToPath(new URL('../dist/main.js', import.meta.url))], {
  env: { ...process.env, PORT: String(port), DATA_DIR: folder },
  stdio: ['ignore', 'ignore', 'inherit'],
});

function stamper({ publicKey, privateKey }) {
  const key = privateKeyObject({ privateKey });
  return (body) => {
    const signature = sign('sha256', Buffer.from(body), key).toString('hex');
    const stamp = JSON.stringify({ publicKey, scheme: 'SIGNATURE_SCHEME_TK_API_P256', signature });
    return Buffer.from(stamp).toString('base64url');
  };
}

let last = 0;
function stamped({ organizationId }, stampOf, type, parameters) {
  last = Math.max(last + 1, Date.now());
  const body = JSON.stringify({ type, timestampMs: String(last), organizationId, parameters });
  const kind = type.replace(/^ACTIVITY_TYPE_/, '').toLowerCase();
  return { url: `http://127.0.0.1:${port}/public/v1/submit/${kind}`, body, headers: { 'x-stamp': stampOf(body) } };
}

async function post({ url, body, headers }) {
  const answer = await fetch(url, { method: 'POST', body, headers });
  const text = await answer.text();
  if (!answer.ok) throw new Error(text.slice(0, 600));
  return text;
}

const digestOf = (index) => createHash('sha256').update(String(index)).digest();
let counter = 0;
const digests = (count) => Array.from({ length: count }, () => digestOf(counter++));

/** Signatures a second of the library alone. */
function measureLibrary(signOne) {
  const all = digests(256);
  const start = performance.now();
  const end = start + seconds * 1000;
  let count = 0;
  for (; performance.now() < end; count++) signOne(all[count % all.length]);
  return count / ((performance.now() - start) / 1000);
}

/** Signatures a second over HTTP, of requests that are there already. */
async function measureServer(size, requests) {
  const start = performance.now();
  const end = start + seconds * 1000;
  let done = 0;
  await Promise.all(
    Array.from({ length: connections }, async () => {
      for (let request = requests.pop(); request && performance.now() < end; request = requests.pop()) {
        await post(request);
        done += 1;
      }
    }),
  );
  return (done * size) / ((performance.now() - start) / 1000);
}

try {
  await ready(server, `http://127.0.0.1:${port}`);
  const root = JSON.parse(readFileSync(join(folder, 'root.json'), 'utf8'));
  const stampOf = stamper(apiKeyPairFromPrivate(root.apiPrivateKey));
  const accounts = curves.map(([curve]) => ({
    curve,
    pathFormat: 'PATH_FORMAT_BIP32',
    path: "m/44'/60'/0'",
    addressFormat: 'ADDRESS_FORMAT_COMPRESSED',
  }));
  const created = await post(stamped(root, stampOf, 'ACTIVITY_TYPE_CREATE_WALLET', { walletName: 'Bench', accounts }));
  const { addresses } = JSON.parse(created).activity.result.createWalletResult;
  console.log(`sign_raw_payloads, durable, ${connections} connections, ${seconds} s a run, median of ${rounds} rounds`);
  console.log(`load of the machine: ${loadavg()[0].toFixed(1)}`);
  console.log('curve             payloads   signatures/s      noble/s    OpenSSL/s   of noble   of OpenSSL');
  const figures = {};
  for (const [index, [curve, hashFunction, byNoble, byOpenSsl]] of curves.entries()) {
    const make = (payloads) =>
      stamped(root, stampOf, 'ACTIVITY_TYPE_SIGN_RAW_PAYLOADS', {
        signWith: addresses[index],
        payloads,
        encoding: 'PAYLOAD_ENCODING_HEXADECIMAL',
        hashFunction,
      });
    for (const size of sizes) {
      // More than can be sent in the time, made before any clock runs.
      const wanted = Math.ceil((Math.min(mostSignatures, size * mostRequests) * seconds) / size) + connections;
      const runs = [];
      for (let round = 0; round < rounds; round++) {
        const requests = Array.from({ length: wanted }, () =>
          make(digests(size).map((digest) => digest.toString('hex'))),
        );
        const alone = { noble: measureLibrary(byNoble), openSsl: measureLibrary(byOpenSsl) };
        runs.push({ ...alone, server: await measureServer(size, requests) });
      }
      const middle = (of) => median(runs.map(of));
      const place = `${curve}, ${size} payload${size > 1 ? 's' : ''}`;
      figures[`${place}: /s`] = middle(({ server }) => server);
      figures[`${place}: of noble`] = middle(({ server, noble }) => server / noble);
      figures[`${place}: of OpenSSL`] = middle(({ server, openSsl }) => server / openSsl);
      console.log(
        curve.padEnd(16) +
          String(size).padStart(10) +
          middle(({ server }) => server)
            .toFixed(0)
            .padStart(15) +
          middle(({ noble }) => noble)
            .toFixed(0)
            .padStart(13) +
          middle(({ openSsl }) => openSsl)
            .toFixed(0)
            .padStart(13) +
          middle(({ server, noble }) => server / noble)
            .toFixed(2)
            .padStart(11) +
          middle(({ server, openSsl }) => server / openSsl)
            .toFixed(2)
            .padStart(13),
      );
    }
  }
  printResult('sign', figures);
} finally {
  server.kill('SIGTERM');
  if (server.exitCode === null) await once(server, 'exit');
  rmSync(folder, { recursive: true, force: true });
}
