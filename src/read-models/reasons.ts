import { Described, Nested, Text, Uuid } from '../wire/fields.js';
import { ClauseShape } from '../wire/shapes.js';

/** What one policy said in a decision. */
export class PolicyOutcomeShape {
  @Uuid()
  policyId!: string;

  @Text({ optional: true, about: 'Its name at the time of the decision.' })
  policyName?: string;

  @Described({ type: 'string' }, { about: 'OUTCOME_…' })
  outcome!: string;

  @Described({ type: 'string' }, { optional: true, about: 'Why the policy is in doubt.' })
  error?: string;

  @Described(
    { type: 'string' },
    {
      optional: true,
      about:
        'unreadable: the request has something that the policy refers to, but it cannot be read, so a DENY applies; ' +
        'not-applicable: the request has no such thing. An ALLOW in doubt never applies.',
    },
  )
  doubt?: string;

  @Described(
    { type: 'string' },
    { optional: true, about: 'Index of the payload this refers to, unless it refers to all of them.' },
  )
  payload?: string;

  @Nested(() => ClauseShape, { optional: true, about: 'The deciding part of its text.' })
  clause?: ClauseShape;
}

/** Asks what policies said in the past decisions on one activity. */
export interface ReasonsQuestion {
  readonly organizationId: string;
  readonly activityId: string;
  /** How many decisions were made on it. */
  readonly decisions: number;
  /** Whoever asks has voted on it, or belongs to a root quorum: it may take longer to find out. */
  readonly isConcerned: boolean;
  /** The parent that decided, and the revision of its stream; only if its policies may be shown. */
  readonly authority?: { readonly organizationId: string; readonly revision: number };
}

export interface ReasonsPort {
  /** What policies said in the past decisions on an activity, explained as far as that does not take too long. */
  reasons(question: ReasonsQuestion): Promise<ReasonsAnswer>;
}

/** The explained outcomes of each decision, oldest first. */
export interface ReasonsAnswer {
  readonly told: readonly { readonly voteId: string; readonly outcomes: readonly PolicyOutcomeShape[] }[];
  /** Why there are no more. */
  readonly notExplained?: string;
}
