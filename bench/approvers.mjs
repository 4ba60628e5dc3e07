/**
 * Who could make a waiting activity pass: all smallest sets of approvers and of those who block it, in an organization of up to
 * 1,000 users. `npm run bench:approvers`, `--quick` to see that it runs; ends with 1 if 1,000 users take a second or an answer
 * is not complete.
 */
import { activities } from '../dist/activities/index.js';
import { buildRegistry } from '../dist/decide/registry.js';
import { eligibleApprovers } from '../dist/domain/policy/authorize.js';
import { ballotOf } from '../dist/domain/policy/ballot.js';
import { minimalApprovers } from '../dist/audit/approvers/minimal-approvers.js';
import { readArguments } from '../scripts/arguments.mjs';
import { printResult } from './load/result.mjs';

const { quick: isQuick } = readArguments({ flags: ['quick'] });
const repeats = isQuick ? 1 : 9;
const environment = buildRegistry(activities).policyEnvironment;

const tagged = (tag, count) => `approvers.filter(u, u.tags.contains('${tag}')).count() >= ${count}`;
const named = (...ids) => `approvers.any(u, u.id in [${ids.map((id) => `'${id}'`).join(', ')}])`;
const consensuses = {
  'two of a tag, one of another, one of two people': `${tagged('t1', 2)} && ${tagged('t2', 1)} && ${named('u1', 'u2')}`,
  'ten people, five of them': `approvers.filter(u, u.id in [${Array.from({ length: 10 }, (_, index) => `'u${index}'`).join(', ')}]).count() >= 5`,
  'exactly two of a tag (votes are tried)': `approvers.filter(u, u.tags.contains('t1')).count() == 2 && ${named('u1', 'u2')}`,
};

function questionFor(count, consensus) {
  const users = Array.from({ length: count }, (_, index) => {
    const userId = `u${index}`;
    const credential = { id: `key ${index}`, userId, type: 'CREDENTIAL_TYPE_API_KEY_P256', publicKey: '00' };
    return { userId, userName: userId, tags: [`t${index % 4}`], credentials: [credential] };
  });
  const policies = [
    { policyId: 'p', policyName: 'p', effect: 'EFFECT_ALLOW', consensus, notes: '', createdAt: 0, updatedAt: 0 },
  ];
  const request = {
    activity: { type: 'T', kind: 'K', resource: 'WALLET', action: 'CREATE', params: {} },
    submitterId: 'u0',
    rootQuorumOnly: false,
    ownCredentials: false,
  };
  const cast = [{ userId: 'u0', credential: users[0].credentials[0] }];
  const context = { policies, rootQuorum: { threshold: 1, userIds: ['root'] }, users, environment, now: 0 };
  const mayVote = [...eligibleApprovers(request, cast, context)];
  return { ballot: ballotOf(request, cast, context), mayVote, unasked: [] };
}

let isMissed = false;
const figures = {};
console.log('| consensus | users | median, ms | sets of users | classes of sets |\n| --- | --- | --- | --- | --- |');
for (const [name, consensus] of Object.entries(consensuses)) {
  for (const count of [10, 100, 1_000]) {
    const question = questionFor(count, consensus);
    const times = [];
    let answer;
    for (let run = 0; run < repeats; run++) {
      const begun = performance.now();
      answer = minimalApprovers(question, environment);
      times.push(performance.now() - begun);
    }
    const median = times.sort((one, other) => one - other)[Math.floor(repeats / 2)];
    figures[`${name}, ${count} users: ms`] = median;
    isMissed ||= median > 1_000 || !answer.isComplete || answer.blocking === undefined;
    console.log(`| ${name} | ${count} | ${median.toFixed(1)} | ${answer.sets} | ${answer.passing.length} |`);
  }
}
printResult('approvers', figures);
if (isMissed) process.exitCode = 1;
