import type { MessagePort } from 'node:worker_threads';
import { activities } from '../activities/index.js';
import { buildRegistry } from '../decide/registry.js';
import type { WhatIfQuestion, WhatIfResponse } from '../read-models/what-if.js';
import { eventsOverPort } from './timeline/events-over-port.js';
import { RequestedEvents } from './timeline/requested-events.js';
import { decidedActivities } from './lint/decided-activities.js';
import { readDraft } from './simulate/parse-draft.js';
import { lintPolicies, type LintReport } from './lint/lint-policies.js';
import type { LintSubject } from './lint/lint-subject.js';
import { minimalApprovers } from './approvers/minimal-approvers.js';
import { approverSetsOf, type ApproverSets, type ApproversTask } from './approvers/approver-sets.js';
import { boundedWhatIf } from './simulate/what-if.js';

/* What threads do for the policy lab. */

const registry = buildRegistry(activities);
const rules = { environment: registry.policyEnvironment, activities: decidedActivities(registry) };

export function approvers({ asked, tagNames }: ApproversTask): ApproverSets {
  return approverSetsOf(minimalApprovers(asked, rules.environment), asked, tagNames);
}

export function lint(subject: LintSubject): LintReport {
  return lintPolicies(subject, rules);
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
  const events = new RequestedEvents(head, eventsOverPort(port));
  return boundedWhatIf(events, {
    ...rest,
    registry,
    draft: readDraft(draft, registry.policyEnvironment),
    hidesParent: readsParent === undefined,
  });
}
