/**
 * How fast history is folded and verified: an organization whose users rename each other, with real stamps and decisions, on
 * SQLite. Folds with the chain checked, by one thread and by two, goes to events anywhere after a first pass, opens again,
 * verifies everything, and decides everything again under two drafts of policies.
 * `npm run bench:replay [-- --million]`, `--quick` to see that it runs. Run it on an idle machine.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { apply, fold, nothingLoaded } from '../dist/ledger/loaded-organization.js';
import { SqliteEventStore } from '../dist/ledger/stores/sqlite/sqlite.js';
import { GENESIS_HASH } from '../dist/ledger/chain.js';
import { readDraft } from '../dist/audit/simulate/parse-draft.js';
import { whatIf } from '../dist/audit/simulate/what-if.js';
import { ReplayCache } from '../dist/audit/timeline/replay-cache.js';
import { OrganizationReplay } from '../dist/audit/timeline/organization-replay.js';
import { verifyHistory } from '../dist/audit/verify/verify.js';
import { startCoordinator } from '../dist/testing/index.js';
import { readArguments } from '../scripts/arguments.mjs';
import { activityEvents, recorded, registry, renamed } from './load/decided.mjs';
import { printResult } from './load/result.mjs';
import { privateKeyObject } from './load/stamped-renames.mjs';

const { quick, million } = readArguments({ flags: ['quick', 'million'] });
const events = quick ? 2_000 : million ? 1_000_000 : 100_000;
/** Activities in one append. */
const together = 100;

const rounds = quick ? 1 : 5;

const whole = (number) => Math.round(number).toLocaleString('en');

/** Seconds, of this thread's clock and of all processors; of the threads that worked most, the most first. */
async function timed(work) {
  const [began, before, threadsBefore] = [performance.now(), process.cpuUsage(), threadSeconds()];
  const result = await work();
  const { user, system } = process.cpuUsage(before);
  const threads = [...threadSeconds()]
    .map(([thread, seconds]) => seconds - (threadsBefore.get(thread) ?? 0))
    .sort((one, other) => other - one);
  return { result, seconds: (performance.now() - began) / 1000, cpu: (user + system) / 1e6, threads };
}

/** Processor time of each thread so far, in seconds; of none where the system does not say. */
function threadSeconds() {
  const folder = '/proc/self/task';
  const read = (thread) => Number(readFileSync(`${folder}/${thread}/schedstat`, 'latin1').split(' ')[0]) / 1e9;
  try {
    return new Map(readdirSync(folder).map((thread) => [thread, read(thread)]));
  } catch {
    return new Map();
  }
}

/** The founding by a real coordinator, and then decisions as it makes them, without HTTP. */
async function fill(store) {
  const coordinator = await startCoordinator({ seed: 'bench' });
  const users = [];
  for (let count = 0; count < 50; count++) {
    const { userId, key } = await coordinator.createUser(`User ${count}`);
    users.push({ userId, publicKey: key.publicKey, signing: privateKeyObject(key) });
  }
  await coordinator.createPolicy({ policyName: 'renaming', condition: "activity.kind == 'UPDATE_USER_NAME'" });
  const stream = `organization-${coordinator.organizationId}`;
  const loaded = nothingLoaded();
  for (const event of await coordinator.recorded()) {
    // With the vaults that it names, which verifying looks for.
    if (event.stream !== stream && !event.stream.startsWith('vault-')) continue;
    const { id, type, data, metadata, revision } = event;
    await store.append(event.stream, [{ id, type, data, metadata }], revision === 0 ? 'no-stream' : revision - 1);
    if (event.stream === stream) apply(loaded, event);
  }
  const { organizationId } = coordinator;
  let now = coordinator.clock.now();
  await coordinator.close();
  while (loaded.revision + 1 < events) {
    const expected = loaded.revision;
    const batch = Array.from({ length: together }, () => renamed(loaded, users[++now % users.length], now));
    await store.append(stream, batch.flat(), expected);
    recorded(loaded);
  }
  return organizationId;
}

/** @param after the link that the thread which reads follows the chain from; without it, this thread does */
async function foldAll(store, organizationId, after) {
  const loaded = nothingLoaded();
  for await (const event of store.read(`organization-${organizationId}`, 0, after)) fold(loaded, event);
  return loaded.revision + 1;
}

/** The run with the median of what its busiest thread took, of several. */
async function median(work) {
  const runs = [];
  for (let count = 0; count < rounds; count++) runs.push(await timed(work));
  return runs.sort((one, other) => one.threads[0] - other.threads[0])[Math.floor(rounds / 2)];
}

console.log(`Node ${process.version}, ${cpus().length} cores, load ${loadavg()[0].toFixed(1)} before it began`);
const figures = {};
const folder = mkdtempSync(join(process.env.BENCH_DIR ?? tmpdir(), 'countersign-replay-'));
const file = join(folder, 'events.db');
try {
  const writing = await SqliteEventStore.open(file);
  const organizationId = await fill(writing);
  await writing.close();
  const store = await SqliteEventStore.openForReading(file);
  const busiest = ({ threads: [most = 0, next = 0], result }) =>
    most > 0
      ? `busiest threads ${[most, next].map((seconds) => ((seconds * 1e6) / result).toFixed(1)).join(' and ')} µs/event: ` +
        `${whole(result / most)} events/s on idle cores`
      : '';
  const line = (name, { seconds, cpu }, count, more = '') => {
    figures[`${name}: events/s`] = count / seconds;
    figures[`${name}: µs/event`] = (cpu * 1e6) / count;
    const rate = `${whole(count / seconds)} events/s`.padStart(18);
    console.log(
      `  ${name.padEnd(26)}${rate}  ${((cpu * 1e6) / count).toFixed(1)} µs CPU/event  ${seconds.toFixed(2)} s  ${more}`,
    );
  };
  // What is compiled once is not an event's.
  await foldAll(store, organizationId);
  const folded = await median(() => foldAll(store, organizationId));
  console.log(`${whole(folded.result)} events, ${activityEvents} for each activity`);
  figures['by thread, one: events/s'] = folded.result / folded.threads[0];
  line('folded, chain checked', folded, folded.result, busiest(folded));
  await foldAll(store, organizationId, GENESIS_HASH);
  const beside = await median(() => foldAll(store, organizationId, GENESIS_HASH));
  figures['by thread, two: events/s'] = beside.result / beside.threads[0];
  line('chain in the second thread', beside, beside.result, busiest(beside));
  const cache = new ReplayCache(join(folder, 'replay'));
  const first = await timed(() => OrganizationReplay.open(store, organizationId, { cache }));
  line('first pass of replay', first, folded.result);
  const opened = await timed(() => OrganizationReplay.open(store, organizationId, { cache }));
  figures['opened again: s'] = opened.seconds;
  console.log(`  opened again in            ${opened.seconds.toFixed(3)} s`);
  let longest = 0;
  for (let count = 0; count < 20; count++) {
    // Just before a state that is kept, which is the farthest from the one before.
    const revision = Math.min(folded.result - 1, Math.floor((folded.result * count) / 20) + 9_999);
    longest = Math.max(longest, (await timed(() => opened.result.stateAt(revision))).seconds);
  }
  figures['any event: s'] = longest;
  console.log(`  any of 20 events within    ${longest.toFixed(3)} s`);
  const verified = await timed(() => verifyHistory(store, { registry, threads: true }));
  const { findings, decisions, stamps } = verified.result;
  if (findings.length > 0) throw new Error(`what was made here does not verify: ${findings[0].problem}`);
  line('verified', verified, verified.result.events, `${whole(decisions)} decisions, ${whole(stamps)} stamps`);
  const drafts = {
    'what if: nothing differs': {
      policies: [{ policyName: 'x', effect: 'EFFECT_DENY', condition: "activity.kind == 'CREATE_WALLET'" }],
    },
    'what if: all is denied': { withoutPolicies: ['renaming'] },
  };
  for (const [name, plain] of Object.entries(drafts)) {
    const draft = readDraft(plain, registry.policyEnvironment);
    const asked = await timed(() => whatIf(store, { organizationId, registry, draft, now: Date.now() }));
    const { counts, unchanged } = asked.result;
    const activities = counts['newly-denied'] + unchanged.decisions;
    const minute = `100,000 activities in ${whole((asked.seconds / activities) * 100_000)} s`;
    line(name, asked, folded.result, `${whole(activities)} decisions; ${minute}`);
  }
  await store.close();
  printResult('replay', figures);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
