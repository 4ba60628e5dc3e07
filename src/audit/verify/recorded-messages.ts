import type { Decision } from '../../domain/activity/events.js';
import type { OrganizationEvent } from '../../domain/organization/organization.js';

/**
 * The outcome of a decision, with a failure in the words recorded then: its code was decided, and wording may improve.
 */
export function withRecordedMessage(
  again: readonly OrganizationEvent[],
  recorded: readonly OrganizationEvent[],
): readonly OrganizationEvent[] {
  return again.map((made, index) => inWordsOf(index === again.length - 1 ? recorded.at(-1) : recorded[index], made));
}

function inWordsOf(recorded: OrganizationEvent | undefined, made: OrganizationEvent): OrganizationEvent {
  if (made.type === 'ActivityFailed' && recorded?.type === made.type) {
    const { failure } = recorded.data;
    return failure.code === made.data.failure.code ? { ...made, data: { ...made.data, failure } } : made;
  }
  if (made.type === 'ActivitySubmitted' && recorded?.type === made.type) {
    return { ...made, data: { ...made.data, decision: inWordsOfDecision(recorded.data.decision, made.data.decision) } };
  }
  if (made.type === 'ActivityApproved' && recorded?.type === made.type) {
    return { ...made, data: { ...made.data, decision: inWordsOfDecision(recorded.data.decision, made.data.decision) } };
  }
  return made;
}

/** Why a policy could not be read, as a sentence. */
function inWordsOfDecision(recorded: Decision, made: Decision): Decision {
  const policies = made.evaluations.map((one, index) => {
    const was = recorded.evaluations[index];
    if (one.error === undefined || was?.error === undefined || was.policyId !== one.policyId) return one;
    return { ...one, error: was.error };
  });
  return { ...made, evaluations: policies };
}
