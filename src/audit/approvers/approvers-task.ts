import { waiting } from '../../decide/approvals.js';
import { metered, type DecisionContext } from '../../decide/decision-context.js';
import { policyContext } from '../../decide/authorization-request.js';
import { CoordinatorError } from '../../domain/errors.js';
import { isAuthProxyUser } from '../../domain/organization/auth-proxy.js';
import type { OpenActivity } from '../../domain/organization/open-activities.js';
import { ballotOf } from '../../domain/policy/ballot.js';
import type { ApproversTask } from './approver-sets.js';

/**
 * Who could make an activity pass, as a question for another thread. Conditions are read here, with the steps of a
 * decision.
 * @throws {ReadFirst} if something has to be read elsewhere before
 * @throws {CoordinatorError} RESOURCE_EXHAUSTED if reading the policies takes too long
 */
export function approversTask(input: DecisionContext, open: OpenActivity): ApproversTask {
  const context = metered(input);
  const { organization } = context;
  const { snapshot, approvals, question, member } = waiting(context, open);
  const ballot = ballotOf(question, approvals, policyContext(context));
  if (context.steps.left <= 0) {
    throw new CoordinatorError(
      'RESOURCE_EXHAUSTED',
      `reading the policies for activity \`${open.activityId}\` takes too long to say who could approve it: see what it waits for in get_activity`,
    );
  }
  const tagNames = Array.from(organization.userTags.values(), ({ tagId, tagName }) => [tagId, tagName] as const);
  return {
    asked: {
      ballot,
      mayVote: snapshot.context.eligible,
      unasked: ballot.users.map(({ userId }) => userId).filter((userId) => isAuthProxyUser(organization, userId)),
      ...(member === undefined ? {} : { member }),
    },
    tagNames: Object.fromEntries(tagNames),
  };
}
