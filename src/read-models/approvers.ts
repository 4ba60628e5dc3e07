import { CoordinatorError } from '../domain/errors.js';
import { Described, ListOf, TextList, Uuid } from '../wire/fields.js';
import { defineQuery, OrganizationRequest, type QueryContext } from './define-query.js';

class ClassCountShape {
  @Described({ type: 'string' }, { about: 'Number of the class in `classes`.' })
  class!: string;

  @Described({ type: 'string' }, { about: 'How many of its users; any of them will do.' })
  count!: string;
}

class ApproverClassShape {
  @Described({ type: 'string' }, { about: 'Its number, from "1".' })
  number!: string;

  @Described({ type: 'string' }, { about: 'What its users have in common, or their names.' })
  text!: string;

  @Described({ type: 'string' }, { about: 'How many users it has.' })
  size!: string;

  @TextList({ about: 'Ids of its users, the first 1,000.' })
  userIds!: readonly string[];
}

/** Sets of users that differ only in which users of a class they have. */
class ApproverSetShape {
  @Described({ type: 'string' }, { about: 'The set in words.' })
  text!: string;

  @ListOf(() => ClassCountShape, { about: 'How many users of which classes.' })
  of!: readonly ClassCountShape[];

  @TextList({
    optional: true,
    about: 'Numbers of classes of which one more approval, cast before the last of the set, would undo it.',
  })
  undoneBy?: readonly string[];
}

/** The answer without its wrapping; `undefined` while the activity has not been read. */
export type ApproversAnswer = ListMinimalApproversResponse | 'not waiting' | 'not read';

export interface ApproversPort {
  /** Who could make an activity pass that waits for votes. */
  approvers(activityId: string): Promise<ApproversAnswer>;
}

class ListMinimalApproversRequest extends OrganizationRequest {
  @Uuid({ about: 'An activity that waits for votes.' })
  activityId!: string;
}

class ListMinimalApproversResponse {
  @Described({ type: 'string' }, { about: 'How many sets there are, in a sentence.' })
  text!: string;

  @ListOf(() => ApproverClassShape, { about: 'Users of one class are interchangeable.' })
  classes!: readonly ApproverClassShape[];

  @ListOf(() => ApproverSetShape, {
    about:
      'The smallest sets of users whose approvals would make the activity pass today, up to 1,000. A set passes exactly as it is.',
  })
  minimalSets!: readonly ApproverSetShape[];

  @Described({ type: 'string' }, { about: 'How many sets of users these are, told apart by user.' })
  setCount!: string;

  @ListOf(() => ApproverSetShape, {
    optional: true,
    about:
      'The smallest sets of users without whose approval it cannot pass, up to 1,000; absent if they are not known.',
  })
  blockingSets?: readonly ApproverSetShape[];

  @Described({ type: 'string' }, { optional: true, about: 'Why something is left out.' })
  notComplete?: string;
}

export const listMinimalApprovers = defineQuery({
  path: 'list_minimal_approvers',
  summary:
    'The smallest sets of users whose approvals would make a waiting activity pass, and those whose refusal keeps it from passing, for members of the root quorum and users who may vote on it.',
  request: ListMinimalApproversRequest,
  response: ListMinimalApproversResponse,
  readsHistory: true,
  isForVoters: true,
  async answer({ organizationId, activityId }, context: QueryContext & ApproversPort) {
    const answer = await context.approvers(activityId);
    if (answer === 'not waiting') {
      throw new CoordinatorError(
        'NOT_FOUND',
        `activity \`${activityId}\` is not waiting for votes in organization \`${organizationId}\`: read it with get_activity`,
      );
    }
    if (answer === 'not read') {
      throw new CoordinatorError(
        'UNAVAILABLE',
        `what activity \`${activityId}\` is about could not be read: send the same request again`,
        { retryAfterSeconds: 1 },
      );
    }
    return answer;
  },
});
