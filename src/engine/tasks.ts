import type { LintSubject } from '../lab/lint-subject.js';
import type { AskedWhatIf } from '../lab/lab-tasks.js';
import type { ToldQuestion } from '../lab/told-approvers.js';
import type { ProofAnswer, ProofQuestion } from '../read-models/explanations.js';
import type { ReasonsAnswer, ReasonsQuestion } from '../read-models/reasons.js';
import type { ToTell } from '../read-models/telling.js';
import type { AskedOfHistory } from '../replay/answer-from-history.js';
import type { AskedStates } from '../replay/answer-states.js';
import { task } from '../threads/task.js';
import type { ToRead } from '../transactions/reading.js';

/*
 * What the threads of a coordinator do. A thread loads what a task needs when it first has one of that kind. No key gets here: these
 * threads read what others send.
 */

const lab = () => import('../lab/lab-tasks.js');
const history = () => import('../replay/answer-from-history.js');

/** Decodes transactions, payloads and contract interfaces. */
export const read = task(async (job: ToRead) => (await import('../transactions/between-threads.js')).answerFor(job));

/** Makes a page of events: secrets are sought in long requests. */
export const pages = task(async (job: ToTell) => (await import('../read-models/telling.js')).tellEvents(job));

export const states = task(async (asked: AskedStates) =>
  (await import('../replay/answer-states.js')).answerStates(asked),
);

/** Explains past decisions. */
export const reasons = task(async (asked: AskedOfHistory<ReasonsQuestion>): Promise<ReasonsAnswer> => {
  const { ReasonsTelling } = await import('../replay/tell-reasons.js');
  return (await history()).answerFromHistory(asked, (question, registry) => new ReasonsTelling(question, registry));
});

/** Proves decisions: flips are tried on the state before. */
export const proofs = task(async (asked: AskedOfHistory<ProofQuestion>): Promise<ProofAnswer> => {
  const { ExplanationTelling } = await import('../lab/tell-explanation.js');
  return (await history()).answerFromHistory(asked, (question, registry) => new ExplanationTelling(question, registry));
});

export const approvers = task(async (question: ToldQuestion) => (await lab()).approvers(question));

export const lint = task(async (subject: LintSubject) => (await lab()).lint(subject));

export const whatIf = task(async (asked: AskedWhatIf) => (await lab()).whatIf(asked));
