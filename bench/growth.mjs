/**
 * What each kind of work costs at 1, 10 and 100 times its input, in processor time of all threads, and the exponent: the slope of
 * cost over size, both as logarithms. 0 is constant, 1 is linear. The requests are stamped and go over HTTP to a coordinator on the
 * durable SQLite store; policies and approvers are what `bench/policies.mjs` and `bench/approvers.mjs` say. Ends with 1 where
 * what is to be constant grows with an exponent over 0.15, or anything over 1.15. `node bench/growth.mjs [smallest history in
 * activities]`, or `--quick` to see that it runs; steps and statements are counted by `test/coordinator/request-costs.spec.ts`.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { SqliteEventStore } from '../dist/ledger/stores/sqlite/sqlite.js';
import { generateApiKeyPair } from '../dist/testing/index.js';
import { readArguments } from '../scripts/arguments.mjs';
import { benchFolder, Coordinator, each, post, signer, stamped, submit } from './load/coordinator.mjs';
import { follow } from './load/follow.mjs';
import { activityEvents, fill, uuid } from './load/history.mjs';
import { median, printResult } from './load/result.mjs';

const asked = readArguments({ flags: ['quick'], values: { smallest: 1_000 } });
const isQuick = asked.quick;
const times = isQuick ? [1, 2] : [1, 10, 100];
const histories = times.map((factor) => factor * (isQuick ? 40 : asked.smallest));
const parts = isQuick ? [1, 2] : [1, 10, 100];
const founded = isQuick ? [2, 4] : [30, 300, 3_000];
/** Requests of a measurement, and how many measurements the median is taken of. */
const [count, turns] = isQuick ? [3, 1] : [300, 3];
/** How long threads may go on behind the last answer, in milliseconds. */
const settleMs = isQuick ? 50 : 400;
const most = { constant: 0.15, linear: 1.15 };

/** How many names have been given so far. */
let renamed = 0;
const rows = [];
const costs = new Map();
/** Costs of the same work, from the smallest input to the largest. */
const note = (what, aim, cost) => costs.set(what, { aim, values: [...(costs.get(what)?.values ?? []), cost] });

for (const activities of histories) await overHistory(activities);
await overParts();
fromOthers();
report();

/** Requests in an organization with so many activities behind it. */
async function overHistory(activities) {
  const ann = member();
  const folder = benchFolder();
  let server = await Coordinator.start(folder);
  try {
    await server.stop();
    const store = await SqliteEventStore.open(join(folder, 'events.db'));
    const organizationId = uuid('organization');
    // Ten users whatever the history is, so that only the history grows.
    const users = 10;
    const events = 2 + 2 * users + activityEvents * activities;
    await fill(store, [organizationId], events, { users, member: ann.publicKey });
    note('read models of a history, from the start', 'linear', await caughtUp(store));
    await store.close();
    server = await Coordinator.start(folder);
    const root = { organizationId, ...ann };
    const userId = uuid(`${organizationId} user 0`);
    const before = server.processorMs();
    await rename(server, root, userId);
    note('first request after a start', 'linear', (server.processorMs() - before) * 1_000);
    const other = member();
    const voter = await createVoter(server, root, other);
    const measured = (what, work) => cost(server, work).then((micros) => note(what, 'constant', micros));
    await measured('submit', () => rename(server, root, userId));
    await measured('submit that waits, and the vote', () => vote(server, root, voter));
    const query = (path, more) => post(server.url, stamped(root, `/public/v1/query/${path}`, more));
    const limit = { paginationOptions: { limit: '10' } };
    await measured('query whoami', () => query('whoami', {}));
    await measured('query list_activities, a page of 10', () => query('list_activities', limit));
    await measured('query list_activities, none of that status', () =>
      query('list_activities', { ...limit, filterByStatus: ['ACTIVITY_STATUS_REJECTED'] }),
    );
  } finally {
    await server.remove();
  }
}

/** Microseconds of processor time, in this process, to write all rows. */
async function caughtUp(store) {
  let spent = 0;
  // The first one is for the compiler.
  for (let turn = 0; turn < 2; turn++) {
    const folder = benchFolder();
    const before = process.cpuUsage();
    await follow(store, folder);
    const { user, system } = process.cpuUsage(before);
    spent = user + system;
    rmSync(folder, { recursive: true, force: true });
  }
  return spent;
}

/** Requests with so many parts, and founding beside so many sub-organizations. */
async function overParts() {
  const server = await Coordinator.start(benchFolder());
  try {
    const { root } = server;
    const ask = (type, parameters) => submit(server.url, stamped(root, type, parameters));
    let number = 0;
    const account = (index) => ({
      ...{ curve: 'CURVE_SECP256K1', pathFormat: 'PATH_FORMAT_BIP32', path: `m/44'/60'/0'/0/${index}` },
      addressFormat: 'ADDRESS_FORMAT_ETHEREUM',
    });
    const wallet = (accounts) => ({
      walletName: `Bench ${number++}`,
      accounts: Array.from({ length: accounts }, (_, index) => account(index)),
    });
    const { addresses } = await ask('ACTIVITY_TYPE_CREATE_WALLET', wallet(1));
    const digest = () => createHash('sha256').update(String(number++)).digest('hex');
    for (const size of parts) {
      const some = Math.max(3, Math.floor(count / 10));
      const sign = () =>
        ask('ACTIVITY_TYPE_SIGN_RAW_PAYLOADS', {
          ...{ signWith: addresses[0], payloads: Array.from({ length: size }, digest) },
          ...{ encoding: 'PAYLOAD_ENCODING_HEXADECIMAL', hashFunction: 'HASH_FUNCTION_NO_OP' },
        });
      note('payloads signed in an activity', 'linear', await cost(server, sign, some));
      // An organization may have a hundred wallets.
      const few = isQuick ? 2 : 8;
      note(
        'accounts of a new wallet',
        'linear',
        await cost(server, () => ask('ACTIVITY_TYPE_CREATE_WALLET', wallet(size)), few),
      );
    }
    const found = () => ask('ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8', subOrganization(root, number++));
    let all = 0;
    for (const size of founded) {
      const fresh = isQuick ? 1 : 30;
      await each(Array.from({ length: size - all }), 16, found);
      note('founding a sub-organization beside others', 'constant', await cost(server, found, fresh));
      all = size + fresh * (turns + 1);
    }
  } finally {
    await server.remove();
  }
}

/** Sizes and figures that other benchmarks have already. */
function fromOthers() {
  const figuresOf = (name) => {
    const program = fileURLToPath(new URL(`${name}.mjs`, import.meta.url));
    const said = execFileSync(process.execPath, [program, ...(isQuick ? ['--quick'] : [])], { encoding: 'utf8' });
    return JSON.parse(said.trim().split('\n').at(-1)).figures;
  };
  const policies = figuresOf('policies');
  for (const of of ['many types', 'one type']) {
    for (const size of [10, 100, 1_000])
      note(`a decision by policies of ${of}`, 'linear', policies[`${size} of ${of}: µs`]);
  }
  const approvers = figuresOf('approvers');
  const consensus = 'two of a tag, one of another, one of two people';
  for (const size of [10, 100, 1_000]) {
    note('smallest sets of approvers', 'linear', approvers[`${consensus}, ${size} users: ms`] * 1_000);
  }
}

/** Microseconds of processor time of the server for one, the median of a few turns after one that warms it. */
async function cost(server, work, some = count) {
  const found = [];
  for (let turn = 0; turn <= turns; turn++) {
    const before = server.processorMs();
    await each(Array.from({ length: some }), 8, work);
    await pause(settleMs);
    if (turn > 0 || isQuick) found.push(((server.processorMs() - before) * 1_000) / some);
  }
  return median(found);
}

function report() {
  const figures = {};
  let isMissed = false;
  for (const [what, { aim, values }] of costs) {
    // A clock of 10 ms may count nothing for something short.
    const logs = values.map((value) => Math.log10(Math.max(value, 1)));
    const span = Math.log10(values.length === 3 ? 100 : 2);
    const exponent = (logs.at(-1) - logs[0]) / span;
    isMissed ||= exponent > most[aim];
    figures[`${what}: exponent`] = exponent;
    const shown = values.map((value) => value.toFixed(0));
    rows.push(
      `| ${what} | ${shown.join(' | ')} | ${exponent.toFixed(2)} | ${aim}${exponent > most[aim] ? ' **missed**' : ''} |`,
    );
  }
  console.log(`µs of processor time, at ${times.join(', ')} times the input`);
  console.log(`| what | ${times.map((factor) => `${factor} ×`).join(' | ')} | exponent | aim |`);
  console.log(`| --- | ${times.map(() => '---: |').join(' ')} ---: | --- |`);
  for (const row of rows) console.log(row);
  printResult('growth', figures);
  if (isMissed && !isQuick) process.exitCode = 1;
}

function member() {
  return signer(generateApiKeyPair((bytes) => crypto.getRandomValues(new Uint8Array(bytes))));
}

function rename({ url }, caller, userId) {
  return submit(url, stamped(caller, 'ACTIVITY_TYPE_UPDATE_USER_NAME', { userId, userName: `Bench ${renamed++}` }));
}

/** Somebody whose renames wait for the root user's vote. */
async function createVoter({ url }, root, other) {
  const apiKeys = [{ apiKeyName: 'Bob', publicKey: other.publicKey, curveType: 'API_KEY_CURVE_P256' }];
  const user = { userName: 'Bob', apiKeys, authenticators: [], oauthProviders: [], userTags: [] };
  const { userIds } = await submit(url, stamped(root, 'ACTIVITY_TYPE_CREATE_USERS_V3', { users: [user] }));
  await submit(
    url,
    stamped(root, 'ACTIVITY_TYPE_CREATE_POLICY_V3', {
      ...{ policyName: 'two people rename', effect: 'EFFECT_ALLOW', notes: '' },
      ...{ condition: "activity.kind == 'UPDATE_USER_NAME'", consensus: 'approvers.count() >= 2' },
    }),
  );
  return { ...other, organizationId: root.organizationId, userId: userIds[0] };
}

async function vote({ url }, root, voter) {
  const parameters = { userId: voter.userId, userName: `Bob ${renamed++}` };
  const { activity } = await post(url, stamped(voter, 'ACTIVITY_TYPE_UPDATE_USER_NAME', parameters));
  await submit(url, stamped(root, 'ACTIVITY_TYPE_APPROVE_ACTIVITY', { fingerprint: activity.fingerprint }));
}

function subOrganization({ publicKey }, number) {
  const apiKeys = [{ apiKeyName: 'Bench', publicKey, curveType: 'API_KEY_CURVE_P256' }];
  return {
    ...{ subOrganizationName: `Bench ${number}`, rootQuorumThreshold: 1 },
    rootUsers: [{ userName: 'Bench', apiKeys, authenticators: [], oauthProviders: [] }],
  };
}
