/**
 * How the parts that grow with history behave: writing, folding one long stream, catching up the read models and starting
 * again, on SQLite and on EventStoreDB's double, for 10 000 and 100 000 events (`--million`: 1 000 000 too) and for 10 000
 * organizations. `npm run bench:store [-- --million]`, `--quick` to see that it runs. Each row is a process of its own; run it
 * on an idle machine.
 */
import { fork } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { readArguments } from '../scripts/arguments.mjs';

const here = fileURLToPath(import.meta.url);
const root = fileURLToPath(new URL('..', import.meta.url));
const [mode, ...parameters] = process.argv.slice(2);
const manyOrganizations = 10_000;
/** Events of an organization's founding, and of one activity. */
const foundingEvents = 4;
const activityEvents = 3;
/** Events of one append while the store is filled. */
const fillBatch = 300;

async function everything({ quick, million }) {
  const sizes = quick ? [1_000] : million ? [10_000, 100_000, 1_000_000] : [10_000, 100_000];
  const organizations = quick ? 50 : manyOrganizations;
  console.log(`Node ${process.version}, ${cpus().length} cores, load ${loadavg()[0].toFixed(1)} before it began`);
  for (const store of ['sqlite', 'double']) {
    for (const size of sizes) await child(store, size, 1);
    await child(store, organizations * (foundingEvents + 2 * activityEvents), organizations);
  }
}

async function child(...args) {
  const process = fork(here, ['--row', ...args.map(String)], {
    execArgv: ['--expose-gc', '--max-old-space-size=6000', '--max-semi-space-size=64'],
  });
  const [code] = await once(process, 'exit');
  if (code !== 0) throw new Error(`${args.join(' ')} ended with code ${code}`);
}

/** One store, one size: everything about it, printed. */
async function row(kind, events, organizations) {
  const folder = mkdtempSync(join(process.env.BENCH_DIR ?? tmpdir(), 'countersign-bench-'));
  const double = kind === 'double' ? await startDouble() : undefined;
  const open = await opener(kind, folder, double);
  const whole = (number) => Math.round(number).toLocaleString('en');
  try {
    const ids = Array.from({ length: Number(organizations) }, (_, index) => uuid(`organization ${index}`));
    const eventsEach = Math.floor(Number(events) / ids.length);
    const written = await withStore(open, (store) => fill(store, ids, eventsEach));
    const { count } = written.result;
    const line = (name, { seconds, cpu }, ...more) => {
      const figures = [`${whole(count / seconds)} events/s`, `${((cpu * 1e6) / count).toFixed(0)} µs CPU/event`];
      console.log(
        [
          `  ${name.padEnd(14)}`,
          ...[...figures, `${whole(seconds * 1000)} ms`].map((text) => text.padStart(20)),
          ...more,
        ].join('  '),
      );
    };
    console.log(`${kind}: ${whole(count)} events, ${whole(ids.length)} organization${ids.length > 1 ? 's' : ''}`);
    const onDisk = double ? written.result.bytes : statSync(join(folder, 'events.db')).size;
    line('written', written, `${whole(onDisk / count)} bytes/event on disk`);

    // What is loaded once is not an organization's.
    await withStore(open, (store) => foldAll(store, [], folder));
    const before = heap();
    const fold = await withStore(open, (store) => foldAll(store, ids, folder));
    const held = (heap() - before) / ids.length;
    line('folded', fold, `${whole(held)} bytes/organization in memory`);
    await fold.result.snapshots.settled();

    const caughtUp = await withStore(open, (store) => follow(store, folder));
    const rows = statSync(join(folder, 'read-models.db')).size;
    line('caught up', caughtUp, `${whole(rows / count)} bytes/event on disk`);
    for (const [name, took] of Object.entries(await listed(ids[0], folder))) {
      console.log(`  a page of 100 activities, ${name.padEnd(30)} ${took.toFixed(2)} ms`.padEnd(60));
    }
    const again = await withStore(open, (store) => foldAll(store, ids, folder));
    const snapshotBytes = fileSizes(join(folder, 'snapshots'));
    line(snapshotBytes > 0 ? 'from snapshot' : 'folded again', again, `${whole(snapshotBytes)} bytes of snapshots`);
    const started = await withStore(open, async (store) => {
      await follow(store, folder);
      await foldAll(store, ids.slice(0, 1), folder);
    });
    console.log(
      `  started again in ${whole(started.seconds * 1000)} ms: read models and snapshots there, one organization`,
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
    await double?.stop();
  }
}

/** Opens the store, works, and closes it; seconds and CPU seconds of all of this process's threads, without the closing. */
async function withStore(open, work) {
  const started = performance.now();
  const cpuBefore = process.cpuUsage();
  const store = await open();
  const result = await work(store);
  const seconds = (performance.now() - started) / 1000;
  const { user, system } = process.cpuUsage(cpuBefore);
  await store.close();
  return { result, seconds, cpu: (user + system) / 1e6 };
}

async function foldAll(store, organizationIds, folder) {
  const { OrganizationLoader } = await import('../dist/ledger/load-organization.js');
  const { Snapshots } = await import('../dist/ledger/snapshots.js');
  const snapshots = new Snapshots({
    folder: join(folder, 'snapshots'),
    checkpoint: () => BigInt(Number.MAX_SAFE_INTEGER),
    ignored: console.error,
    failed: console.error,
  });
  const loader = new OrganizationLoader(store, noMetrics, { snapshots });
  for (const id of organizationIds) await loader.load(id);
  return { loader, snapshots };
}

/** Follows the store with the read models until they have seen everything. */
async function follow(store, folder) {
  const { projectIntoFile } = await import('../dist/read-models/projecting.js');
  const { ReadModelRunner } = await import('../dist/read-models/runner.js');
  const head = await store.head();
  const projecting = await projectIntoFile(join(folder, 'read-models.db'), { identity: 'bench', head }, store);
  const runner = new ReadModelRunner(store, projecting, {
    projected() {},
    failed: (model, _position, reason) => console.error(model, reason),
    interrupted: console.error,
  });
  runner.start();
  await runner.passed(head, 3_600_000);
  await runner.close();
  await projecting.close();
}

/** Milliseconds that a page of `list_activities` takes by its rows, the median of many, by what is asked for. */
async function listed(organizationId, folder) {
  const { listActivities } = await import('../dist/read-models/activities.js');
  const { ReadModelDatabase } = await import('../dist/read-models/database.js');
  const rows = new ReadModelDatabase(join(folder, 'read-models.db'));
  const paginationOptions = { limit: '100' };
  const asked = {
    'of any kind': {},
    'of a status that none has': { filterByStatus: ['ACTIVITY_STATUS_REJECTED'] },
    'of a type that none has': { filterByType: ['ACTIVITY_TYPE_CREATE_WALLET'] },
  };
  const context = {
    rows,
    envelopes: () => (record) => record,
    page: async ({ inTurn }) => ({ texts: Array.from(inTurn, (element) => JSON.stringify(element)), hasMore: false }),
  };
  const took = {};
  for (const [name, filter] of Object.entries(asked)) {
    const times = [];
    for (let count = 0; count < 50; count++) {
      const begun = performance.now();
      await listActivities.answer({ organizationId, ...filter, paginationOptions }, context);
      times.push(performance.now() - begun);
    }
    took[name] = times.sort((one, other) => one - other)[25];
  }
  rows.close();
  return took;
}

function fileSizes(folder) {
  if (!existsSync(folder)) return 0;
  const names = readdirSync(folder, { recursive: true }).map((name) => join(folder, name));
  return names.map((name) => statSync(name)).reduce((sum, file) => sum + (file.isFile() ? file.size : 0), 0);
}

const noMetrics = { decided() {}, appended() {}, conflict() {}, folded() {} };

function heap() {
  globalThis.gc();
  globalThis.gc();
  return process.memoryUsage().heapUsed;
}

async function opener(kind, folder, double) {
  if (kind === 'sqlite') {
    const { SqliteEventStore } = await import('../dist/ledger/stores/sqlite/sqlite.js');
    return () => SqliteEventStore.open(join(folder, 'events.db'));
  }
  const { EventStoreDbEventStore } = await import('../dist/ledger/stores/event-store-db/event-store-db.js');
  return () => EventStoreDbEventStore.open(double.connectionString);
}

/** Histories of people who rename each other, chained as the coordinator does; signatures are of the right length only. */
async function fill(store, organizationIds, eventsEach) {
  const { chainEvent, GENESIS_HASH } = await import('../dist/ledger/chain.js');
  const counted = { count: 0, bytes: 0 };
  for (const organizationId of organizationIds) {
    const stream = `organization-${organizationId}`;
    let hash = GENESIS_HASH;
    let revision = -1;
    let batch = [];
    const write = async () => {
      if (batch.length > 0) {
        const last = revision - batch.length;
        await store.append(stream, batch.splice(0), last < 0 ? 'no-stream' : last);
      }
    };
    for (const { type, data, activityId } of history(organizationId, eventsEach)) {
      revision += 1;
      const id = uuid(`${stream} ${revision}`);
      const metadata = {
        at: 1_772_366_400_000 + revision,
        schemaVersion: 1,
        $correlationId: activityId,
        $causationId: activityId,
      };
      hash = chainEvent(hash, { stream, revision, id, type, data, metadata });
      batch.push({ id, type, data, metadata: { ...metadata, hash } });
      counted.count += 1;
      counted.bytes += JSON.stringify(batch.at(-1)).length;
      if (batch.length >= fillBatch) await write();
    }
    await write();
  }
  return counted;
}

function* history(organizationId, events) {
  const users = Math.max(1, Math.min(1_000, Math.floor(events / 100)));
  const userIds = Array.from({ length: users }, (_, index) => uuid(`${organizationId} user ${index}`));
  const fact = (type, data, activityId = organizationId) => ({ type, data, activityId });
  const publicKey = (userId) => `02${digest(userId)}`;
  yield fact('OrganizationCreated', { organizationId, name: 'Root organization' });
  for (const [index, userId] of userIds.entries()) {
    yield fact('UserCreated', { userId, userName: `User ${index}`, userTags: [] });
    const key = { curve: 'API_KEY_CURVE_P256', credentialType: 'CREDENTIAL_TYPE_API_KEY_P256' };
    yield fact('ApiKeyCreated', {
      userId,
      apiKeyId: uuid(`key ${userId}`),
      apiKeyName: 'key',
      publicKey: publicKey(userId),
      ...key,
    });
  }
  yield fact('RootQuorumUpdated', { threshold: 1, userIds: [userIds[0]] });
  for (let made = 2 + 2 * users, number = 0; made + activityEvents <= events; made += activityEvents, number++) {
    const activityId = uuid(`${organizationId} activity ${number}`, 1_772_366_400_000 + number);
    const userId = userIds[number % users];
    const intent = { userId: userIds[(number * 7) % users], userName: `Name ${number}` };
    const type = 'ACTIVITY_TYPE_UPDATE_USER_NAME';
    const timestampMs = String(1_772_366_400_000 + number);
    const message = JSON.stringify({ type, timestampMs, organizationId, parameters: intent });
    const fingerprint = `sha256:${digest(message)}`;
    const voteId = uuid(`vote ${activityId}`);
    const vote = {
      voteId,
      userId,
      selection: 'VOTE_SELECTION_APPROVED',
      message,
      fingerprint,
      scheme: 'SIGNATURE_SCHEME_TK_API_P256',
      signature: `3045022100${digest(voteId)}0220${digest(activityId)}`,
      credentialId: uuid(`key ${userId}`),
      publicKey: publicKey(userId),
    };
    const decision = { voteId, outcome: 'allow', by: 'root-quorum', policies: [], revision: made - 1 };
    const status = 'ACTIVITY_STATUS_PENDING';
    const submitted = { activityId, type, intent, fingerprint, timestampMs, status, vote, decision };
    yield fact('ActivitySubmitted', submitted, activityId);
    yield fact('UserUpdated', intent, activityId);
    const result = { updateUserNameResult: { userId: intent.userId } };
    yield fact('ActivityCompleted', { activityId, status: 'ACTIVITY_STATUS_COMPLETED', result }, activityId);
  }
}

function digest(text) {
  return createHash('sha256').update(text).digest('hex');
}

/** A UUID that follows from the text; with a time it begins with that, as the ids of activities do (RFC 9562, 5.7). */
function uuid(text, time) {
  const own = digest(text);
  const hex = time === undefined ? own : time.toString(16).padStart(12, '0') + own.slice(12);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

/** The double in a process of its own, as a server would be. */
async function startDouble() {
  const server = fork(here, ['--serve-double'], { execArgv: ['--max-old-space-size=8000'] });
  const [connectionString] = await once(server, 'message');
  return {
    connectionString,
    async stop() {
      server.kill('SIGTERM');
      await once(server, 'exit');
    },
  };
}

/** The double is a part of the tests, in TypeScript; what it imports is found from inside `node_modules`. */
async function serveDouble() {
  const { transformSync } = await import('@swc/core');
  const folder = join(root, 'node_modules', '.cache', `countersign-bench-${process.pid}`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  for (const name of ['double', 'log', 'wire']) {
    const source = readFileSync(new URL(`../test/ledger/stores/double/${name}.ts`, import.meta.url), 'utf8');
    const { code } = transformSync(source, { jsc: { parser: { syntax: 'typescript' }, target: 'es2022' } });
    writeFileSync(join(folder, `${name}.js`), code);
  }
  const { EventStoreDouble } = await import(pathToFileURL(join(folder, 'double.js')).href);
  rmSync(folder, { recursive: true });
  const double = await EventStoreDouble.start();
  process.send(double.connectionString);
}

if (mode === '--serve-double') await serveDouble();
else if (mode === '--row') await row(...parameters);
else await everything(readArguments({ flags: ['quick', 'million'] }));
