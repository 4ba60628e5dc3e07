/*
 * Records the data folder of an earlier commit: what `npm start` of that commit leaves after its own tour and a few requests.
 *
 *   git archive COMMIT | tar -x -C CHECKOUT && (cd CHECKOUT && npm ci)
 *   node test/vectors/data-folders/record-data-folder.mjs CHECKOUT COMMIT
 *
 * Everything here runs the commit's own code. Written to a folder of that name:
 *   events.db.gz   the event store, closed
 *   root.json      as the start has left it; its key is of this recording alone
 *   states.json    what the commit folds each organization's stream into: revision, chain hash, and the state
 * Secrets are sealed under the key-encryption key in `kek.txt`, which is of these recordings alone. A folder that is there is left alone.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';

const [checkout, commit] = [resolve(process.argv[2]), process.argv[3]];
const target = fileURLToPath(new URL(`./${commit}`, import.meta.url));
if (existsSync(target)) throw new Error(`${target} is there: it is never recorded anew`);
const kek = readFileSync(new URL('./kek.txt', import.meta.url), 'utf8').trim();
const dataDir = mkdtempSync(join(tmpdir(), 'countersign-recording-'));
process.on('exit', () => rmSync(dataDir, { recursive: true, force: true }));
const env = {
  PATH: process.env.PATH,
  HOME: process.env.HOME,
  DATA_DIR: dataDir,
  PORT: '18642',
  KEK: kek,
  LOG_LEVEL: 'warn',
  CLOCK_BEGINS: String(Date.UTC(2025, 5, 1)),
  CLOCK_REAL: String(Date.now()),
  NODE_OPTIONS: `--import ${new URL('./shifted-clock.mjs', import.meta.url).href}`,
};
const run = (...args) => spawn('npm', args, { cwd: checkout, env, stdio: 'inherit', detached: true });
const built = (file) => import(pathToFileURL(join(checkout, 'dist', file)).href);

const server = run('start');
const url = `http://127.0.0.1:${env.PORT}`;
process.on('exit', () => server.exitCode === null && process.kill(-server.pid, 'SIGTERM'));
const isReady = () =>
  fetch(`${url}/health/ready`).then(
    ({ ok }) => ok,
    () => false,
  );
while (!(await isReady())) await pause(200);
const [told] = await once(run('run', 'tour'), 'close');
if (told !== 0) throw new Error('the tour has stopped');

const { apiKeyPairFromPrivate, generateApiKeyPair, StampingClient } = await built('testing/index.js');
const { organizationId, apiPrivateKey } = JSON.parse(readFileSync(join(dataDir, 'root.json'), 'utf8'));
const clock = { now: () => Date.now() + Number(env.CLOCK_BEGINS) - Number(env.CLOCK_REAL) };
const clientOf = (key) => new StampingClient(url, organizationId, key, clock);
const root = clientOf(apiKeyPairFromPrivate(apiPrivateKey));
const key = generateApiKeyPair((count) => crypto.getRandomValues(new Uint8Array(count)));
const apiKeys = [{ apiKeyName: 'key', publicKey: key.publicKey, curveType: key.curve }];
await root.submit('ACTIVITY_TYPE_CREATE_USERS_V4', {
  users: [{ userName: 'Carol', apiKeys, authenticators: [], oauthProviders: [], userTags: [] }],
});
const carol = clientOf(key);
const policy = { effect: 'EFFECT_ALLOW', notes: 'recorded' };
await root.submit('ACTIVITY_TYPE_CREATE_POLICY_V3', {
  ...policy,
  policyName: 'two tag',
  condition: "activity.kind == 'CREATE_USER_TAG'",
  consensus: 'approvers.count() >= 2',
});
const tag = (userTagName) => carol.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName, userIds: [] });
await root.reject((await tag('rejected')).fingerprint);
await tag('waits');
await carol.submit('ACTIVITY_TYPE_UPDATE_ORGANIZATION_NAME', { organizationName: 'Hers' }).then(
  () => Promise.reject(new Error('it was not denied')),
  () => undefined,
);

process.kill(-server.pid, 'SIGTERM');
await once(server, 'close');

const { SqliteEventStore } = await built('event-store/sqlite.js');
const { apply, nothingLoaded } = await built('coordinator/load-organization.js');
const store = await SqliteEventStore.open(join(dataDir, 'events.db'));
const streams = new Set();
const head = await store.head();
await new Promise((isRead, isBroken) => {
  const onEvents = (events) => {
    for (const { stream } of events) streams.add(stream);
    if (events.at(-1)?.position >= head) isRead();
  };
  store.subscribe({ after: 'start', onEvents, onError: isBroken });
});
const asLists = (value) =>
  JSON.parse(JSON.stringify(value, (_key, member) => (member instanceof Map ? [...member] : member)));
const states = {};
for (const stream of [...streams].filter((name) => name.startsWith('organization-')).sort()) {
  const loaded = nothingLoaded();
  for await (const event of store.read(stream)) apply(loaded, event);
  states[stream] = { revision: loaded.revision, hash: loaded.hash, state: asLists(loaded.organization) };
}
await store.close();

mkdirSync(target);
writeFileSync(join(target, 'events.db.gz'), gzipSync(readFileSync(join(dataDir, 'events.db')), { level: 9 }));
copyFileSync(join(dataDir, 'root.json'), join(target, 'root.json'));
writeFileSync(join(target, 'states.json'), `${JSON.stringify(states, undefined, 1)}\n`);
process.exit(0);
