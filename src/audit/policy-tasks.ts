import type { MessagePort } from 'node:worker_threads';
import { activities } from '../activities/index.js';
import { buildRegistry } from '../decide/registry.js';
import type { ProofAnswer, ProofQuestion } from '../read-models/explanations.js';
import type { ReasonsAnswer, ReasonsQuestion } from '../read-models/reasons.js';
import type { WhatIfQuestion, WhatIfResponse } from '../read-models/what-if.js';
import { eventsOverPort } from './timeline/events-over-port.js';
import { RequestedEvents } from './timeline/requested-events.js';
import { decidedActivities } from './lint/decided-activities.js';
import { readDraft } from './simulate/parse-draft.js';
import { lintPolicies, type LintReport } from './lint/lint-policies.js';
import type { LintSubject } from './lint/lint-subject.js';
import { minimalApprovers } from './approvers/minimal-approvers.js';
import { approverSetsOf, type ApproverSets, type ApproversTask } from './approvers/approver-sets.js';
import { proveDecision } from './explain/prove-decision.js';
import { explainDecisions } from './explain/explain-decisions.js';
import { boundedWhatIf } from './simulate/what-if.js';

/* What threads of a coordinator do for questions about policies and decisions. */

const registry = buildRegistry(activities);
const rules = { environment: registry.policyEnvironment, activities: decidedActivities(registry) };

export function approvers({ asked: requested, tagNames }: ApproversTask): ApproverSets {
  return approverSetsOf(minimalApprovers(requested, rules.environment), requested, tagNames);
}

export function lint(subject: LintSubject): LintReport {
  return lintPolicies(subject, rules);
}

/** A question whose answer is found in the history of an organization, and where a thread gets the events. */
export interface HistoryQuery<Question> {
  readonly question: Question;
  readonly port: MessagePort;
}

/** Explains past decisions. @throws {BrokenChain} if an event is not the one that was recorded */
export function reasons({ question, port }: HistoryQuery<ReasonsQuestion>): Promise<ReasonsAnswer> {
  return explainDecisions(question, registry, new RequestedEvents(eventsOverPort(port)));
}

/** Proves a decision: flips are tried on the state before. @throws {BrokenChain} as `reasons` */
export function proof({ question, port }: HistoryQuery<ProofQuestion>): Promise<ProofAnswer> {
  return proveDecision(question, registry, new RequestedEvents(eventsOverPort(port)));
}

export interface AskedWhatIf {
  readonly question: WhatIfQuestion;
  /** Position of the last event in the store. */
  readonly head: bigint;
  readonly port: MessagePort;
}

/** @throws {CoordinatorError} as `boundedWhatIf`; INVALID_ARGUMENT for a draft that cannot hold */
export async function whatIf({ question, head, port }: AskedWhatIf): Promise<WhatIfResponse> {
  const { draft, readsParent, ...rest } = question;
  // Of parents, and of what came later, often one event is enough.
  const events = new RequestedEvents(eventsOverPort(port), { end: head, first: 16 });
  return boundedWhatIf(events, {
    ...rest,
    registry,
    draft: readDraft(draft, registry.policyEnvironment),
    hidesParent: readsParent === undefined,
  });
}
