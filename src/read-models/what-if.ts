import { Described, ListOf, Nested, OneOf, Text, TextList, Uuid, Whole } from '../wire/fields.js';
import { defineQuery, OrganizationRequest, type QueryContext } from './define-query.js';
import { Draft } from './draft-shapes.js';

/** What would have become of an organization, asked of another thread. */
export interface WhatIfQuestion {
  readonly organizationId: string;
  readonly draft: Draft;
  readonly from?: number;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** The parent's events may be read: its decisions are made again, and not taken as recorded. */
  readonly readsParent?: string;
}

const kinds = ['newly-allowed', 'newly-denied', 'now-waits', 'not-judged', 'otherwise'] as const;
const prospects = ['passes', 'needs-votes', 'denied', 'not-there'] as const;

class DivergenceCountsShape {
  @Described({ type: 'integer' }, { about: 'Allowed, and were denied, or waited.' })
  'newly-allowed'!: number;

  @Described({ type: 'integer' }, { about: 'Denied, and were not.' })
  'newly-denied'!: number;

  @Described({ type: 'integer' }, { about: 'Waiting for votes, and did not.' })
  'now-waits'!: number;

  @Described({ type: 'integer' }, { about: 'Nobody can say: history does not have what they would need.' })
  'not-judged'!: number;

  @Described({ type: 'integer' }, { about: 'Otherwise different.' })
  otherwise!: number;
}

class DivergenceShape {
  @OneOf(kinds)
  kind!: (typeof kinds)[number];

  @Described(
    { type: 'boolean' },
    { about: 'The draft alone makes the difference; false if it follows from an earlier one.' },
  )
  isFirst!: boolean;

  @Described({ type: 'integer' }, { about: 'Revision at which it was decided; of a denial, in the stream of denials.' })
  revision!: number;

  @Described({ type: 'boolean' }, { about: 'It was denied.' })
  isDenial!: boolean;

  @Described({ type: 'string', format: 'date-time' })
  at!: string;

  @Described({ type: 'string' }, { about: 'Its id; of a denial, that of its record.' })
  activityId!: string;

  @Described({ type: 'string' })
  activityType!: string;

  @Described({ type: 'string' }, { about: 'Who submitted it, or voted.' })
  userId!: string;

  @Described({ type: 'string' }, { optional: true })
  userName?: string | undefined;

  @Described({ type: 'string' }, { about: 'How it came out, in words.' })
  was!: string;

  @Described({ type: 'string' }, { about: 'How it would come out, in words.' })
  is!: string;

  @TextList({ about: 'Policies that say something else, the first 20.' })
  because!: readonly string[];
}

class WaitingOtherwiseShape {
  @Uuid()
  activityId!: string;

  @Described({ type: 'string' })
  activityType!: string;

  @OneOf(prospects, { about: 'What can become of it by votes; passes: with the next approval, whoever gives it.' })
  was!: (typeof prospects)[number];

  @OneOf(prospects)
  is!: (typeof prospects)[number];
}

class NotJudgedShape {
  @Text()
  why!: string;

  @Described({ type: 'integer' })
  count!: number;
}

class UnchangedShape {
  @Described({ type: 'integer' }, { about: 'Decisions that come out as they did.' })
  decisions!: number;

  @Described({ type: 'integer' }, { about: 'Of them, those that other policies decide.' })
  forOtherReasons!: number;

  @Described({ type: 'integer' }, { about: 'Requests that are denied again.' })
  denials!: number;

  @Described({ type: 'integer' }, { about: 'Decisions of the parent, taken as recorded: its policies are its own.' })
  asRecorded!: number;
}

class WhatIfRequest extends OrganizationRequest {
  @Nested(() => Draft, { about: 'What should have held.' })
  draft!: Draft;

  @Whole({
    min: 0,
    max: 2 ** 31 - 1,
    optional: true,
    about: 'Revision from which the draft holds; from the founding if absent.',
  })
  from?: number;

  @Uuid({
    optional: true,
    about: 'A waiting activity: the response is about this activity only, and users who may vote on it may ask, too.',
  })
  activityId?: string;
}

/** What would have become of an organization. */
export class WhatIfResponse {
  @Uuid()
  organizationId!: string;

  @Described({ type: 'integer' }, { about: 'Revision of the last event that was reached.' })
  last!: number;

  @Described({ type: 'integer' }, { about: 'Number of events before the draft holds.' })
  from!: number;

  @Nested(() => DivergenceCountsShape, { about: 'How many requests and votes come out otherwise.' })
  counts!: DivergenceCountsShape;

  @ListOf(() => DivergenceShape, {
    about: 'Newly allowed first, then by kind; up to 1,000 of a kind, and as many as have room.',
  })
  divergences!: readonly DivergenceShape[];

  @Described({ type: 'integer' }, { about: 'How many more there are.' })
  more!: number;

  @ListOf(() => WaitingOtherwiseShape, {
    about: 'Activities that wait at the end and have another prospect; up to 1,000.',
  })
  waiting!: readonly WaitingOtherwiseShape[];

  @ListOf(() => NotJudgedShape, { about: 'Why requests cannot be judged, and how many.' })
  notJudged!: readonly NotJudgedShape[];

  @TextList({ about: 'Parts of the draft that never took effect, as what they name was never there.' })
  neverHeld!: readonly string[];

  @Nested(() => UnchangedShape)
  unchanged!: UnchangedShape;

  @TextList({ about: 'What differs at the end, in words; up to 200.' })
  differences!: readonly string[];

  @Described({ type: 'integer' }, { about: 'How many more there are.' })
  moreDifferences!: number;

  @Text({ optional: true, about: 'Which bound was hit, and how far it came.' })
  notComplete?: string;
}

export interface WhatIfPort {
  /**
   * What a draft would have changed in the whole history, as far as that does not take too long.
   * @throws {CoordinatorError} INVALID_ARGUMENT for a draft that cannot hold; NOT_FOUND for a revision that there is not
   */
  whatIf(question: WhatIfQuestion): Promise<WhatIfResponse>;
}

export const whatIf = defineQuery({
  path: 'what_if',
  summary:
    'What a draft of policies, tags, quorum or users would have changed in the whole history: each request is decided again as if it ' +
    'had held, newly allowed ones first; for members of the root quorum, and users who may vote on `activityId`.',
  request: WhatIfRequest,
  response: WhatIfResponse,
  readsHistory: true,
  isForVoters: true,
  async answer({ organizationId, draft, from, activityId }, context: QueryContext & WhatIfPort) {
    const { now, callerOrganizationId } = context;
    const whole = await context.whatIf({
      organizationId,
      draft,
      now,
      ...(from === undefined ? {} : { from }),
      ...(callerOrganizationId === organizationId ? {} : { readsParent: callerOrganizationId }),
    });
    return activityId === undefined ? whole : partAbout(whole, activityId);
  },
});

/** What the response says of one activity: its voters need not be allowed to know about others. */
function partAbout(
  { organizationId, last, from, notComplete, ...rest }: WhatIfResponse,
  activityId: string,
): WhatIfResponse {
  const isAbout = (one: { readonly activityId: string }) => one.activityId === activityId;
  const divergences = rest.divergences.filter(isAbout);
  const counts = Object.fromEntries(
    kinds.map((kind) => [kind, divergences.filter((one) => one.kind === kind).length]),
  ) as Record<(typeof kinds)[number], number>;
  return {
    organizationId,
    last,
    from,
    counts,
    divergences,
    more: 0,
    waiting: rest.waiting.filter(isAbout),
    notJudged: [],
    neverHeld: [],
    unchanged: { decisions: 0, forOtherReasons: 0, denials: 0, asRecorded: 0 },
    differences: [],
    moreDifferences: 0,
    ...(notComplete === undefined ? {} : { notComplete }),
  };
}
