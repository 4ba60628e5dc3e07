/**
 * Memory of a coordinator under mixed load on the durable SQLite store: submits, votes, signatures, queries, and
 * sub-organizations that are created and rest from then on. Prints what the process takes each minute (resident), the slope over
 * the second half, what it takes when idle, and the bytes of an organization that is held folded and does nothing. `node bench/memory.mjs [--minutes N] [--connections N]`, an hour by default, or `--quick` to see that it runs.
 */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { runInNewContext } from 'node:vm';
import { setFlagsFromString } from 'node:v8';
import { OrganizationLoader } from '../dist/ledger/load-organization.js';
import { SqliteEventStore } from '../dist/ledger/stores/sqlite/sqlite.js';
import { generateApiKeyPair } from '../dist/testing/index.js';
import { readArguments } from '../scripts/arguments.mjs';
import { benchFolder, Coordinator, post, signer, stamped, submit } from './load/coordinator.mjs';
import { activityEvents, fill, foundingEvents, uuid } from './load/history.mjs';
import { printResult } from './load/result.mjs';

const asked = readArguments({ flags: ['quick'], options: { minutes: 60, connections: 16 } });
const minutes = asked.quick ? 0.1 : asked.minutes;
const { connections } = asked;
/** Of a minute, at most: a short run has several readings too. */
const everyMs = Math.min(60_000, (minutes * 60_000) / 6);

const server = await Coordinator.start(benchFolder());
try {
  const { root, url } = server;
  await pause(asked.quick ? 100 : 5_000);
  const idle = server.residentMiB();
  console.log(`idle, just started: ${idle.toFixed(0)} MiB`);
  const cast = await prepare(root, url);
  const counts = {};
  const begun = performance.now();
  const end = begun + minutes * 60_000;
  const kinds = mixed(root, url, cast);
  let next = 0;
  const lane = async () => {
    while (performance.now() < end) {
      const [name, work] = kinds[next++ % kinds.length];
      await work();
      counts[name] = (counts[name] ?? 0) + 1;
    }
  };
  const lanes = Promise.all(Array.from({ length: connections }, lane));
  const readings = [];
  while (performance.now() < end) {
    await Promise.race([pause(Math.min(everyMs, Math.max(1, end - performance.now()))), lanes]);
    const at = (performance.now() - begun) / 60_000;
    readings.push({ at, mib: server.residentMiB() });
    console.log(`minute ${at.toFixed(1)}: ${readings.at(-1).mib.toFixed(0)} MiB`);
  }
  await lanes;
  await pause(asked.quick ? 100 : 10_000);
  const after = server.residentMiB();
  const slope = slopeOf(readings.slice(Math.floor(readings.length / 2)));
  const most = Math.max(...readings.map(({ mib }) => mib));
  const done = Object.values(counts).reduce((sum, count) => sum + count, 0);
  console.log(
    `${done} requests: ${Object.entries(counts)
      .map(([name, count]) => `${count} ${name}`)
      .join(', ')}`,
  );
  console.log(
    `at most ${most.toFixed(0)} MiB; ${slope.toFixed(2)} MiB a minute in the second half; idle again: ${after.toFixed(0)} MiB`,
  );
  const held = await bytesOfIdle(asked.quick ? 50 : 2_000);
  console.log(`an organization that is held folded and does nothing: ${held.toFixed(0)} bytes`);
  printResult('memory', {
    minutes,
    requests: done,
    'idle: MiB': idle,
    'most: MiB': most,
    'slope: MiB/minute': slope,
    'idle again: MiB': after,
    'bytes/idle organization': held,
  });
} finally {
  await server.remove();
}

/** A wallet to sign with, and somebody whose renames wait for a vote. */
async function prepare(root, url) {
  const ask = (type, parameters) => submit(url, stamped(root, type, parameters));
  const wallet = { walletName: 'Bench', accounts: [account(0)] };
  const { addresses } = await ask('ACTIVITY_TYPE_CREATE_WALLET', wallet);
  const pair = generateApiKeyPair((count) => crypto.getRandomValues(new Uint8Array(count)));
  const apiKeys = [{ apiKeyName: 'Ann', publicKey: pair.publicKey, curveType: 'API_KEY_CURVE_P256' }];
  const ann = { userName: 'Ann', apiKeys, authenticators: [], oauthProviders: [], userTags: [] };
  const { userIds } = await ask('ACTIVITY_TYPE_CREATE_USERS_V3', { users: [ann] });
  await ask('ACTIVITY_TYPE_CREATE_POLICY_V3', {
    ...{ policyName: 'two people rename', effect: 'EFFECT_ALLOW', notes: '' },
    ...{ condition: "activity.kind == 'UPDATE_USER_NAME'", consensus: 'approvers.count() >= 2' },
  });
  const { organizationId } = root;
  return { address: addresses[0], ann: { organizationId, userId: userIds[0], ...signer(pair) } };
}

function account(index) {
  const path = `m/44'/60'/0'/0/${index}`;
  return { curve: 'CURVE_SECP256K1', pathFormat: 'PATH_FORMAT_BIP32', path, addressFormat: 'ADDRESS_FORMAT_ETHEREUM' };
}

/** In turn: seven submits, two that wait with their votes, two signatures, four queries, and a sub-organization with a wallet. */
function mixed(root, url, { address: signWith, ann }) {
  let counter = 0;
  const { userId } = root;
  const rename = () =>
    submit(url, stamped(root, 'ACTIVITY_TYPE_UPDATE_USER_NAME', { userId, userName: `Bench ${counter++}` }));
  const vote = async () => {
    const parameters = { userId: ann.userId, userName: `Ann ${counter++}` };
    const { activity } = await post(url, stamped(ann, 'ACTIVITY_TYPE_UPDATE_USER_NAME', parameters));
    await submit(url, stamped(root, 'ACTIVITY_TYPE_APPROVE_ACTIVITY', { fingerprint: activity.fingerprint }));
  };
  const sign = () =>
    submit(
      url,
      stamped(root, 'ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2', {
        signWith,
        payload: createHash('sha256').update(String(counter++)).digest('hex'),
        encoding: 'PAYLOAD_ENCODING_HEXADECIMAL',
        hashFunction: 'HASH_FUNCTION_NO_OP',
      }),
    );
  const list = () =>
    post(url, stamped(root, '/public/v1/query/list_activities', { paginationOptions: { limit: '10' } }));
  const whoAmI = () => post(url, stamped(root, '/public/v1/query/whoami', {}));
  const found = () =>
    submit(
      url,
      stamped(root, 'ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8', {
        subOrganizationName: `Bench ${counter++}`,
        rootQuorumThreshold: 1,
        rootUsers: [
          {
            userName: 'Bench',
            apiKeys: [{ apiKeyName: 'Bench', publicKey: root.publicKey, curveType: 'API_KEY_CURVE_P256' }],
            authenticators: [],
            oauthProviders: [],
          },
        ],
        wallet: { walletName: 'Bench', accounts: [account(0)] },
      }),
    );
  const [r, s, v] = [
    ['renames', rename],
    ['signatures', sign],
    ['renames by vote', vote],
  ];
  const [q, w, o] = [
    ['lists', list],
    ['identities', whoAmI],
    ['sub-organizations', found],
  ];
  return [r, s, r, q, v, r, w, r, s, r, q, v, r, w, r, o];
}

/** Bytes on the heap of an organization that is held folded, the mean of many with two activities each. */
async function bytesOfIdle(count) {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc');
  const heap = () => {
    collect();
    collect();
    return process.memoryUsage().heapUsed;
  };
  const ids = Array.from({ length: count }, (_, index) => uuid(`organization ${index}`));
  const store = await SqliteEventStore.open(join(server.folder, 'idle.db'));
  await fill(store, ids, foundingEvents + 2 * activityEvents);
  const loader = new OrganizationLoader(
    store,
    { decided() {}, appended() {}, conflict() {}, appendFailed() {}, folded() {} },
    {},
  );
  await loader.load(ids[0]);
  const before = heap();
  for (const id of ids.slice(1)) await loader.load(id);
  const bytes = (heap() - before) / (count - 1);
  await store.close();
  return bytes;
}

/** MiB a minute, by least squares. */
function slopeOf(readings) {
  const mean = (of) => readings.reduce((sum, reading) => sum + of(reading), 0) / readings.length;
  const [at, mib] = [mean((reading) => reading.at), mean((reading) => reading.mib)];
  const spread = mean((reading) => (reading.at - at) ** 2);
  return spread === 0 ? 0 : mean((reading) => (reading.at - at) * (reading.mib - mib)) / spread;
}
