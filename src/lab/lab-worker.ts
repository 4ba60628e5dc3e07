import { parentPort } from 'node:worker_threads';
import { activities } from '../activities/index.js';
import { buildRegistry } from '../decide/registry.js';
import { decidedActivities } from './decided-activities.js';
import type { FromLabWorker, ToLabWorker } from './lab-thread.js';
import { lintPolicies } from './lint-policies.js';
import { minimalApprovers } from './minimal-approvers.js';
import { toldApprovers } from './told-approvers.js';

/** The thread that answers about policies: one question, one answer. */

const port = parentPort;
const registry = buildRegistry(activities);
const rules = { environment: registry.policyEnvironment, activities: decidedActivities(registry) };

function heard(question: ToLabWorker): FromLabWorker {
  try {
    if (question.asks === 'lint') return { kind: 'lint', report: lintPolicies(question.subject, rules) };
    const { asked, tagNames } = question;
    return { kind: 'approvers', told: toldApprovers(minimalApprovers(asked, rules.environment), asked, tagNames) };
  } catch (error) {
    return { kind: 'failed', reason: error instanceof Error ? error.message : String(error) };
  }
}

port?.on('message', (question: ToLabWorker) => port.postMessage(heard(question)));
