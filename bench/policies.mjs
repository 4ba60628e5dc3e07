/**
 * Deciding by policies, beside Cedar (`@cedar-policy/cedar-wasm`, its set parsed before) on the same policies and requests: in
 * one process, by turns, by its processor time. A policy allows one user one kind of activity on one wallet, every tenth denies
 * it. They are spread over the kinds of activity, or all speak of one, where no index helps. `npm run bench:policies`, `--quick`
 * to see that it runs; ends with 1 where the two decide a request differently.
 */
import { setFlagsFromString } from 'node:v8';
import { preparsePolicySet, statefulIsAuthorized } from '@cedar-policy/cedar-wasm/nodejs';
import { activities } from '../dist/activities/index.js';
import { buildRegistry } from '../dist/decide/registry.js';
import { authorize } from '../dist/domain/policy/authorize.js';
import { readArguments } from '../scripts/arguments.mjs';
import { median, printResult } from './load/result.mjs';

// Node 20.20.2 ends with "unreachable code" in V8's deoptimizer when optimized code that has calls of WebAssembly in it goes back.
setFlagsFromString('--no-turbo-inline-js-wasm-calls');

const { quick: isQuick } = readArguments({ flags: ['quick'] });
const sizes = [1, 10, 100, 1_000];
/** Of each, for a size; and how long one turn takes, in milliseconds. */
const turns = isQuick ? 1 : 9;
const turnMs = isQuick ? 5 : 40;
const now = Date.UTC(2026, 10, 23);

const environment = buildRegistry(activities).policyEnvironment;
const kinds = activities
  .filter(({ policy }) => policy?.resource !== undefined)
  .map(({ type, policy: { resource, action } }) => ({ type, kind: type, resource, action }));
const users = Array.from({ length: 16 }, (_, index) => {
  const userId = `user ${index}`;
  const credential = { id: `key ${index}`, userId, type: 'CREDENTIAL_TYPE_API_KEY_P256', publicKey: '00' };
  return { userId, userName: userId, tags: [], credentials: [credential] };
});
const byId = new Map(users.map((user) => [user.userId, user]));
const wallets = Array.from({ length: 8 }, (_, index) => `wallet ${index}`);

/** What the policy of an index speaks of. */
function spokenOf(index, isSpread) {
  return {
    activity: kinds[isSpread ? index % kinds.length : 0],
    user: users[(index * 7) % users.length],
    wallet: wallets[(index * 3) % wallets.length],
    isDenied: index % 10 === 9,
  };
}

function ours(index, isSpread) {
  const { activity, user, wallet, isDenied } = spokenOf(index, isSpread);
  return {
    policyId: `policy ${String(index).padStart(4, '0')}`,
    policyName: `Policy ${index}`,
    effect: isDenied ? 'EFFECT_DENY' : 'EFFECT_ALLOW',
    condition: `activity.type == '${activity.type}' && requester.id == '${user.userId}' && wallet.id == '${wallet}'`,
    notes: '',
    createdAt: 0,
    updatedAt: 0,
  };
}

function inCedar(index, isSpread) {
  const { activity, user, wallet, isDenied } = spokenOf(index, isSpread);
  const scope = `principal == User::"${user.userId}", action == Action::"${activity.type}", resource == Wallet::"${wallet}"`;
  return `${isDenied ? 'forbid' : 'permit'}(${scope});`;
}

/** Half of the requests are those that a policy speaks of; the others are by somebody else, or about another wallet. */
function requestsFor(size, isSpread) {
  return Array.from({ length: 64 }, (_, index) => {
    const { activity, user, wallet } = spokenOf((index * 37) % size, isSpread);
    if (index % 4 === 1) return { activity, user: users[(index * 5) % users.length], wallet };
    return { activity, user, wallet: index % 4 === 3 ? wallets[(index * 5) % wallets.length] : wallet };
  });
}

/** The same questions for both: functions that decide the request of an index. */
function asked(size, isSpread) {
  const indexes = Array.from({ length: size }, (_, index) => index);
  const policies = new Map(indexes.map((index) => [index, ours(index, isSpread)]));
  const requests = requestsFor(size, isSpread);
  const byOurs = (index) => {
    const { activity, user, wallet } = requests[index];
    const { type, kind, resource, action } = activity;
    const request = {
      activity: { type, kind, params: {}, resource, action },
      resources: { wallet: { id: wallet, imported: false, exported: false, label: wallet } },
      submitterId: user.userId,
      rootQuorumOnly: false,
      ownCredentials: false,
    };
    const { outcome } = authorize(request, [{ userId: user.userId, credential: user.credentials[0] }], {
      policies: [...policies.values()],
      rootQuorum: { threshold: 1, userIds: ['nobody'] },
      users,
      user: (userId) => byId.get(userId),
      environment,
      now,
    });
    return outcome;
  };
  const setId = `${size} ${isSpread}`;
  const parsed = preparsePolicySet(setId, {
    staticPolicies: Object.fromEntries(indexes.map((index) => [`policy${index}`, inCedar(index, isSpread)])),
  });
  if (parsed.type !== 'success') throw new Error(JSON.stringify(parsed));
  const byCedar = (index) => {
    const { activity, user, wallet } = requests[index];
    const answer = statefulIsAuthorized({
      principal: { type: 'User', id: user.userId },
      action: { type: 'Action', id: activity.type },
      resource: { type: 'Wallet', id: wallet },
      context: {},
      preparsedPolicySetId: setId,
      entities: [],
    });
    if (answer.type !== 'success') throw new Error(JSON.stringify(answer));
    const { decision, diagnostics } = answer.response;
    if (decision === 'allow') return 'allow';
    return diagnostics.reason.length > 0 ? 'deny-explicit' : 'deny-implicit';
  };
  return {
    count: requests.length,
    deciders: { indexed: byOurs, cedar: byCedar },
  };
}

/** Microseconds of processor time for one decision. */
function timed(decide, count) {
  let decided = 0;
  const begun = process.cpuUsage();
  const end = performance.now() + turnMs;
  do {
    for (let index = 0; index < count; index++) decide(index);
    decided += count;
  } while (performance.now() < end);
  const { user, system } = process.cpuUsage(begun);
  return (user + system) / decided;
}

let differing = 0;
const questions = [true, false].flatMap((isSpread) =>
  sizes.map((size) => ({ size, isSpread, ...asked(size, isSpread) })),
);
for (const { size, isSpread, count, deciders } of questions) {
  for (let index = 0; index < count; index++) {
    const verdicts = Object.values(deciders).map((decide) => decide(index));
    if (new Set(verdicts).size === 1) continue;
    differing += 1;
    const where = `request ${index} of ${size} policies${isSpread ? ', spread' : ''}`;
    console.error(`${where}: ${Object.keys(deciders).join(', ')} say ${verdicts.join(', ')}`);
  }
  // For the compiler.
  for (const decide of Object.values(deciders)) timed(decide, count);
}
const rows = [];
const told = {};
for (const { size, isSpread, count, deciders } of questions) {
  const figures = { indexed: [], cedar: [] };
  for (let turn = 0; turn < turns; turn++) {
    for (const [name, decide] of Object.entries(deciders)) figures[name].push(timed(decide, count));
  }
  const [indexed, cedar] = [figures.indexed, figures.cedar].map(median);
  const place = `${size} of ${isSpread ? 'many types' : 'one type'}`;
  told[`${place}: µs`] = indexed;
  told[`${place}: times as fast as Cedar`] = cedar / indexed;
  rows.push({
    policies: size,
    of: isSpread ? `${Math.min(size, kinds.length)} kinds` : 'one kind',
    'those that could apply, µs': indexed.toFixed(1),
    'Cedar, µs': cedar.toFixed(1),
    'Cedar / ours': (cedar / indexed).toFixed(1),
  });
}
console.table(rows);
printResult('policies', told);
if (differing > 0) {
  console.error(`${differing} requests are decided differently`);
  process.exitCode = 1;
}
