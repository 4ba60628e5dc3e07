/**
 * What a request at a limit costs (docs/limits.md): how long it keeps the main thread at most, in its processor time, and how
 * long it takes; and how long somebody else waits while strangers flood the server. `node bench/limits.mjs [rounds]`, or
 * `--quick` to see that it runs. The server is a process of its own; on a machine that does other things too everything takes longer.
 */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { flagsFor } from '../dist/cli/start/memory.js';
import { apiKeyPairFromPrivate, generateApiKeyPair, stampBody, submitPath } from '../dist/testing/index.js';
import { readArguments } from '../scripts/arguments.mjs';
import { freePort, ready } from './load/server.mjs';

const { quick: isQuick, rounds: wanted } = readArguments({ flags: ['quick'], values: { rounds: 5 } });
const rounds = isQuick ? 1 : wanted;
const floodMs = isQuick ? 200 : 8_000;

const folder = mkdtempSync(join(process.env.BENCH_DIR ?? tmpdir(), 'countersign-bench-'));
const timesFile = join(folder, 'main-thread.json');
const at = (path) => fileURLToPath(new URL(path, import.meta.url));
const port = await freePort();
const server = spawn(
  process.execPath,
  [
    ...flagsFor(1024 * 1024 * 1024),
    `--import=${new URL('../test/nets/main-thread.mjs', import.meta.url)}`,
    at('../dist/main.js'),
  ],
  {
    env: {
      PATH: process.env.PATH,
      PORT: String(port),
      DATA_DIR: folder,
      MAIN_THREAD_FILE: timesFile,
      LOG_LEVEL: 'error',
      TRUST_PROXY: 'true',
      PROXY_RATE_LIMIT_PER_ADDRESS: '0',
      PROXY_RATE_LIMIT_PER_CONFIGURATION: '0',
      PROXY_RATE_LIMIT_SIGN_UPS_PER_ADDRESS: '0',
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  },
);
process.on('exit', () => {
  server.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

const url = `http://127.0.0.1:${port}`;
await ready(server, url);
const root = JSON.parse(readFileSync(join(folder, 'root.json'), 'utf8'));
const owner = { key: apiKeyPairFromPrivate(root.apiPrivateKey), organizationId: root.organizationId };

let told = 0;
/** How long the main thread was kept at most since this was asked last, in ms. */
async function keptMs() {
  told += 1;
  server.kill('SIGUSR2');
  for (;;) {
    await sleep(10);
    const said = JSON.parse(
      (() => {
        try {
          return readFileSync(timesFile, 'utf8');
        } catch {
          return '{}';
        }
      })(),
    );
    if (said.told === told) return said.longestMs;
  }
}

let last = Date.now();
async function post(path, body, headers) {
  const response = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body,
  });
  return { status: response.status, text: await response.text() };
}
function stamped({ key, address = '198.51.100.1' }, path, body) {
  const { headerName, headerValue } = stampBody(body, key);
  return post(path, body, { [headerName]: headerValue, 'x-forwarded-for': address });
}
function submit(by, name, parameters) {
  last = Math.max(Date.now(), last + 1);
  const type = `ACTIVITY_TYPE_${name}`;
  const { organizationId } = by;
  return stamped(by, submitPath(type), JSON.stringify({ type, timestampMs: String(last), organizationId, parameters }));
}
const query = (by, path, request = {}) =>
  stamped(by, `/public/v1/query/${path}`, JSON.stringify({ organizationId: by.organizationId, ...request }));
const proxy = (path, body, address) =>
  post(`/v1/${path}`, JSON.stringify(body), {
    'x-auth-proxy-config-id': root.authProxyConfigId,
    'x-forwarded-for': address,
  });
async function done(asked) {
  const { status, text } = await asked;
  if (status !== 200) throw new Error(`${status} ${text.slice(0, 300)}`);
  const answer = JSON.parse(text);
  return answer.activity?.result ? Object.values(answer.activity.result)[0] : answer;
}

let strangers = 0;
async function stranger() {
  const key = generateApiKeyPair(randomBytes);
  const address = `203.0.113.${(strangers += 1)}`;
  const apiKeys = [{ apiKeyName: 'key', publicKey: key.publicKey, curveType: key.curve }];
  const { organizationId, userId } = await done(proxy('signup', { userName: 'Stranger', apiKeys }, address));
  const { addresses } = await done(
    submit({ key, organizationId, address }, 'CREATE_WALLET', {
      walletName: 'wallet',
      accounts: [
        {
          curve: 'CURVE_SECP256K1',
          pathFormat: 'PATH_FORMAT_BIP32',
          path: "m/44'/60'/0'/0/0",
          addressFormat: 'ADDRESS_FORMAT_ETHEREUM',
        },
      ],
    }),
  );
  return { key, organizationId, userId, address, signWith: addresses[0] };
}
const sign = (by, payload) =>
  submit(by, 'SIGN_RAW_PAYLOAD_V2', {
    signWith: by.signWith,
    payload,
    encoding: 'PAYLOAD_ENCODING_TEXT_UTF8',
    hashFunction: 'HASH_FUNCTION_SHA256',
  });
const typedPayloads = (count) =>
  Array.from({ length: count }, (_, index) =>
    JSON.stringify({
      types: { EIP712Domain: [{ name: 'name', type: 'string' }], Note: [{ name: 'text', type: 'string' }] },
      primaryType: 'Note',
      domain: { name: `app ${index}` },
      message: { text: '' },
    }),
  );
const policies = (count, condition, consensus = 'approvers.count() >= 1') => ({
  policies: Array.from({ length: count }, (_, index) => ({
    policyName: `policy ${last} ${index}`,
    effect: 'EFFECT_ALLOW',
    condition: condition(index),
    consensus,
    notes: '',
  })),
});
const names = (index) =>
  Array.from({ length: 20 }, (_, name) => `eth.eip_712.domain.name == '${index} ${name}'`).join(' || ');
/** A clause of comparisons with a text of so many characters. */
const clause = (count, characters) =>
  Array.from({ length: count }, (_, index) => `'${String(index).padEnd(characters, 'x')}' == 'y'`).join(' || ');
const structs = (count) => {
  const types = { S: [{ name: 's', type: 'S[]' }], Root: [{ name: 'all', type: 'S[]' }] };
  const text = JSON.stringify({ types, domain: {}, primaryType: 'Root', message: { all: [] } });
  return text.replace('"all":[]', `"all":[${Array.from({ length: count }, () => '{"s":[]}').join(',')}]`);
};
const token = `${Buffer.from('{"x":0,"y":"z"}').toString('base64url')}.`;
/** As many who have no policies yet as write one. */
const writers = [];
for (let count = 0; count < 2 * rounds; count++) writers.push(await stranger());
const activityOf = ({ text }) => JSON.parse(text).activity.id;

const plain = await stranger();
/** A stranger's organization with these policies, and a user to whom they apply: the root quorum decides without them. */
async function under(some) {
  const by = await stranger();
  const key = generateApiKeyPair(randomBytes);
  await done(submit(by, 'CREATE_POLICIES', some));
  const apiKeys = [{ apiKeyName: 'key', publicKey: key.publicKey }];
  const users = [{ userName: 'User', accessType: 'ACCESS_TYPE_API', userTags: [], authenticators: [], apiKeys }];
  await done(submit(by, 'CREATE_USERS', { users }));
  return { ...by, key };
}
const signTyped = (by, count) =>
  submit(by, 'SIGN_RAW_PAYLOADS', {
    signWith: by.signWith,
    payloads: typedPayloads(count),
    encoding: 'PAYLOAD_ENCODING_EIP712',
    hashFunction: 'HASH_FUNCTION_NO_OP',
  });
const asked = await under(policies(40, names));
const many = await under(policies(100, (index) => `eth.eip_712.domain.name == '${index}'`));
const voters = await under(policies(4, () => "eth.eip_712.domain.name != 'nothing'", 'approvers.count() >= 2'));
const reader = await stranger();
const tokens = activityOf(await sign(reader, token.repeat(2_100)));
const texts = activityOf(await sign(reader, JSON.stringify(Array.from({ length: 130_000 }, () => '{'))));
for (let count = 0; count < 4; count++) await sign(reader, `${count}${'ab'.repeat(970_000)}`);

/** Each request at a limit: its cost is that of the worst of them. */
const requests = {
  'ten thousand values, refused': () =>
    submit(plain, 'DELETE_POLICIES', { policyIds: Array.from({ length: 9_990 }, () => plain.organizationId) }),
  'a body of 2 MiB, signed': () => sign(plain, `${last}${'ab'.repeat(970_000)}`),
  'a page of 4 MiB': () => query(reader, 'list_activities', { paginationOptions: { limit: '100' } }),
  'an activity with more than 2,000 possible tokens': () => query(reader, 'get_activity', { activityId: tokens }),
  'an activity with more than 262,144 characters of JSON within texts': () =>
    query(reader, 'get_activity', { activityId: texts }),
  'a clause of 65,536 characters, written': () =>
    submit(
      writers.pop(),
      'CREATE_POLICIES',
      policies(1, () => clause(700, 68)),
    ),
  'a clause of 8,192 parts, written': () =>
    submit(
      writers.pop(),
      'CREATE_POLICIES',
      policies(1, () => clause(1_630, 8)),
    ),
  'policies that take 480,000 steps': () => signTyped(asked, 83),
  '1,000 payloads under 100 policies, which take more': () => signTyped(many, 1_000),
  '1,000 payloads that wait for votes by 4 policies': () => signTyped(voters, 1_000),
  'a contract interface of 400,000 characters, read in a thread': () =>
    submit(plain, 'CREATE_SMART_CONTRACT_INTERFACE', {
      label: `label ${last}`,
      type: 'SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM',
      smartContractAddress: `0x${String(last).padStart(40, '0')}`,
      notes: '',
      smartContractInterface: JSON.stringify(
        Array.from({ length: 2_000 }, (_, index) => ({
          type: 'function',
          name: `function${index}`,
          inputs: ['a', 'b', 'c'].map((name) => ({ name, type: 'uint256' })),
        })),
      ).slice(0, 400_000),
    }),
  'typed data of more than 10,000,000 steps, refused by a thread': () =>
    submit(plain, 'SIGN_RAW_PAYLOAD_V2', {
      signWith: plain.signWith,
      payload: structs(110_000),
      encoding: 'PAYLOAD_ENCODING_EIP712',
      hashFunction: 'HASH_FUNCTION_NO_OP',
    }),
};

const median = (numbers) => numbers.toSorted((one, other) => one - other)[Math.floor(numbers.length / 2)];
console.log(
  `load ${loadavg()[0].toFixed(1)}, Node ${process.version}; the main thread is kept, in ms of its processor time:`,
);
for (const [name, request] of Object.entries(requests)) {
  const [kept, took, statuses] = [[], [], new Set()];
  for (let round = 0; round < rounds; round++) {
    await sleep(isQuick ? 0 : 200);
    await keptMs();
    const begun = performance.now();
    const { status, text } = await request();
    took.push(performance.now() - begun);
    statuses.add(status === 200 ? status : `${status} ${text.slice(0, 120)}`);
    kept.push(await keptMs());
  }
  const worst = Math.max(...kept);
  console.log(
    `  ${name}: ${median(kept).toFixed(0)} (at most ${worst.toFixed(0)}), answered in ${median(took).toFixed(0)} ms; ` +
      [...statuses].join(', '),
  );
}

/** How long the owner waits for what it asks, while so many at a time do something else. */
async function besides(name, flood, atOnce) {
  let isOver = false;
  const floods = Array.from({ length: atOnce }, async (_, index) => {
    for (let count = 0; !isOver; count++) await flood(index, count);
  });
  const waits = { query: [], submit: [] };
  const ends = performance.now() + floodMs;
  for (let count = 0; performance.now() < ends; count++) {
    for (const [kind, ask] of [
      ['query', () => query(owner, 'whoami')],
      ['submit', () => submit(owner, 'UPDATE_USER_NAME', { userId: root.userId, userName: `name ${count}` })],
    ]) {
      const begun = performance.now();
      await done(ask());
      waits[kind].push(performance.now() - begun);
    }
  }
  isOver = true;
  await Promise.all(floods);
  const told = Object.entries(waits).map(([kind, times]) => {
    const sorted = times.toSorted((one, other) => one - other);
    const worst = sorted[Math.floor(sorted.length * 0.99)] ?? 0;
    return `${kind} ${median(times).toFixed(0)} ms, 99 % within ${worst.toFixed(0)} ms, at most ${sorted.at(-1).toFixed(0)} ms`;
  });
  console.log(`  ${name}: ${told.join('; ')} (${waits.query.length} rounds)`);
}

console.log('the owner of the parent waits, one request at a time:');
await besides('beside nobody', () => sleep(10), 1);
const unknown = { otpId: plain.organizationId, otpCode: '000000000' };
await besides('beside 50 callers of the auth proxy', (index) => proxy('otp_verify', unknown, `192.0.2.${index}`), 50);
await besides('beside 50 requests of one stranger at a time', (_, count) => sign(plain, `text ${count} ${last}`), 50);
await besides(
  'beside bodies of 2 MiB, 4 at a time',
  (_, count) => sign(plain, `${count}${last}${'ab'.repeat(970_000)}`),
  4,
);
await besides(
  'beside policies that take 480,000 steps, 8 at a time',
  () => requests['policies that take 480,000 steps'](),
  8,
);
server.kill('SIGTERM');
await once(server, 'exit');
