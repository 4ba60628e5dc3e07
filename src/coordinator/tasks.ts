import type { LintSubject } from '../audit/lint/lint-subject.js';
import type { AskedWhatIf, HistoryQuery } from '../audit/policy-tasks.js';
import type { ApproversTask } from '../audit/approvers/approver-sets.js';
import type { ProofQuestion } from '../read-models/explanations.js';
import type { ReasonsQuestion } from '../read-models/reasons.js';
import type { ToTell } from '../read-models/telling.js';
import type { StatesQuery } from '../audit/timeline/query-states.js';
import { task } from '../threads/task.js';
import type { ToRead } from '../transactions/reading.js';

/*
 * What the threads of a coordinator do. A thread loads what a task needs when it first has one of that kind. No key gets here: these
 * threads read what others send.
 */

const policies = () => import('../audit/policy-tasks.js');

/** Decodes transactions, payloads and contract interfaces. */
export const read = task(async (job: ToRead) => (await import('../transactions/between-threads.js')).answerFor(job));

/** Makes a page of events: secrets are sought in long requests. */
export const pages = task(async (job: ToTell) => (await import('../read-models/telling.js')).tellEvents(job));

export const states = task(async (requested: StatesQuery) =>
  (await import('../audit/timeline/query-states.js')).queryStates(requested),
);

/** Explains past decisions. */
export const reasons = task(async (requested: HistoryQuery<ReasonsQuestion>) => (await policies()).reasons(requested));

/** Proves decisions. */
export const proofs = task(async (requested: HistoryQuery<ProofQuestion>) => (await policies()).proof(requested));

export const approvers = task(async (question: ApproversTask) => (await policies()).approvers(question));

export const lint = task(async (subject: LintSubject) => (await policies()).lint(subject));

export const whatIf = task(async (requested: AskedWhatIf) => (await policies()).whatIf(requested));
