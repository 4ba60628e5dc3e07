/**
 * How much memory and time `countersign verify` takes as the history grows: half of the events are one organization's, the others those of
 * small organizations with a vault each, which are met again long after their founding. Stamps and decisions are real. Runs the command
 * in a process of its own on the durable SQLite store: without the read models, with them, and `--since` heads that were saved when a
 * tenth of the events was missing; at half the size, and at the whole. `node bench/verify.mjs [events]`, 200,000 by default, or `--quick`
 * to see that it runs. Two million events take 5 GB in BENCH_DIR (or the folder for temporary files).
 */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { apply, nothingLoaded } from '../dist/ledger/loaded-organization.js';
import { emptyTail, seal } from '../dist/ledger/seal.js';
import { SqliteEventStore } from '../dist/ledger/stores/sqlite/sqlite.js';
import { generateApiKeyPair } from '../dist/testing/index.js';
import { readArguments } from '../scripts/arguments.mjs';
import { randomUuid, recorded, renamed } from './load/decided.mjs';
import { follow } from './load/follow.mjs';
import { printResult } from './load/result.mjs';
import { privateKeyObject } from './load/stamped-renames.mjs';

const { quick, events } = readArguments({ flags: ['quick'], values: { events: 200_000 } });
const most = quick ? 2_000 : events;
/** Organizations that are founded before the first of them is met again. */
const together = quick ? 20 : 10_000;
const times = 2;
const key = generateApiKeyPair((bytes) => crypto.getRandomValues(new Uint8Array(bytes)));
const user = { publicKey: key.publicKey, signing: privateKeyObject(key) };
let now = Date.now() - 30 * 86_400_000;

const folder = await mkdtemp(join(process.env.BENCH_DIR ?? tmpdir(), 'countersign-verify-'));
const heads = join(folder, 'heads.json');
const figures = {};
try {
  const store = await SqliteEventStore.open(join(folder, 'events.db'));
  const large = await founded(store);
  for (const size of [most / 2, most]) {
    await grow(store, large, size * 0.9);
    await measured(size * 0.9, 'heads saved', ['--no-rows', '--heads', heads]);
    await grow(store, large, size);
    await follow(store, folder);
    await measured(size, 'since those heads', ['--since', heads]);
    await measured(size, 'without the read models', ['--no-rows']);
    await measured(size, 'everything', []);
    await rm(heads);
  }
  await store.close();
  printResult('verify', figures);
} finally {
  await rm(folder, { recursive: true, force: true });
}

/** An organization whose only user is the root user, and its vault, which nothing names yet. */
async function founded(store) {
  const organizationId = randomUuid();
  const userId = randomUuid();
  const at = (now += 1);
  const metadata = { at, $correlationId: organizationId, $causationId: organizationId };
  const apiKey = {
    ...{ userId, apiKeyId: randomUuid(), apiKeyName: 'key', publicKey: key.publicKey },
    ...{ curve: 'API_KEY_CURVE_P256', credentialType: 'CREDENTIAL_TYPE_API_KEY_P256' },
  };
  const facts = [
    { type: 'OrganizationCreated', data: { organizationId, name: `Organization ${at}` } },
    { type: 'UserCreated', data: { userId, userName: 'Root user', userTags: [] } },
    { type: 'ApiKeyCreated', data: apiKey },
    { type: 'RootQuorumUpdated', data: { threshold: 1, userIds: [userId] } },
  ].map((fact) => ({ ...fact, metadata }));
  const stream = `organization-${organizationId}`;
  const vault = `vault-${randomUuid()}`;
  const secret = { type: 'SecretSealed', data: { name: 'a secret' }, metadata };
  await store.append(vault, seal(vault, emptyTail, [secret]).events, 'no-stream');
  const { events: sealed } = seal(stream, emptyTail, facts);
  const { position } = await store.append(stream, sealed, 'no-stream');
  const loaded = nothingLoaded();
  for (const [revision, event] of sealed.entries()) apply(loaded, { ...event, stream, revision, position });
  return { loaded, user: { ...user, userId }, count: sealed.length + 1 };
}

async function rename(store, { loaded, user: by }, activities) {
  const expected = loaded.revision;
  const batch = Array.from({ length: activities }, () => renamed(loaded, by, (now += 1))).flat();
  await store.append(`organization-${loaded.organization.organizationId}`, batch, expected);
  recorded(loaded);
  return batch.length;
}

/** Until the store has so many events. */
async function grow(store, large, size) {
  let has = Number(await store.head());
  while (has < size) {
    const missing = size - has;
    const small = Array.from({ length: Math.ceil(Math.min(together, missing / 22)) }, () => founded(store));
    const organizations = await Promise.all(small);
    has += organizations.reduce((sum, { count }) => sum + count, 0);
    for (let time = 0; time < times; time++) {
      const counts = await Promise.all(organizations.map((organization) => rename(store, organization, 1)));
      has += counts.reduce((sum, count) => sum + count, 0);
      for (const until = has + (organizations.length * 11) / times; has < until;)
        has += await rename(store, large, 100);
    }
  }
}

/** Runs the command, and prints what its process took: its clock, its processors, and the most memory it ever had. */
async function measured(size, what, options) {
  const command = fileURLToPath(new URL('../dist/cli/countersign.js', import.meta.url));
  const began = performance.now();
  const child = spawn(process.execPath, [command, 'verify', '--data-dir', folder, '--quiet', ...options], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  child.stdout.on('data', (part) => (text += part));
  const status = { mib: 0, cpu: 0 };
  const look = setInterval(() => Object.assign(status, statusOf(child.pid)), 100);
  const code = await new Promise((resolve) => child.once('close', resolve));
  clearInterval(look);
  if (code !== 0) throw new Error(`verify ended with ${code}: ${text}`);
  const seconds = (performance.now() - began) / 1000;
  const whole = Math.round(size).toLocaleString('en');
  const name = `${what}, ${whole} events`;
  figures[`${name}: MiB`] = status.mib;
  figures[`${name}: s`] = seconds;
  console.log(
    `${name.padEnd(46)} ${status.mib.toFixed(0).padStart(6)} MiB at most ${seconds.toFixed(1).padStart(7)} s, ` +
      `${status.cpu.toFixed(1)} s of processors\n    ${text.trim().split('\n').join('\n    ')}`,
  );
}

/** Of a process on Linux; where the system does not say, what was known before. */
function statusOf(pid) {
  try {
    const [, kib] = /^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1')) ?? [];
    // Ticks of 10 ms, for the process and in the system.
    const ticks = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1].split(' ').slice(11, 13);
    return kib === undefined ? {} : { mib: Number(kib) / 1024, cpu: (Number(ticks[0]) + Number(ticks[1])) / 100 };
  } catch {
    return {};
  }
}
