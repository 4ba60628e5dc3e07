import { invalidField } from '../domain/errors.js';
import { DecimalString, Described, ListOf, Nested, Text, TextList } from '../wire/fields.js';
import { defineQuery, OrganizationRequest, PagedResponse, type QueryContext } from './define-query.js';
import type { TextPage } from './pages.js';

/**
 * A point in the history of an organization: after one of its events, after all up to a position or a time, or its end.
 */
export type Point =
  | { readonly by: 'revision'; readonly revision: number }
  | { readonly by: 'position'; readonly position: bigint }
  /** Milliseconds since the epoch. */
  | { readonly by: 'time'; readonly time: number }
  | { readonly by: 'newest' };

/** A query about the states of an organization. Elements of the response's list start after the number `after`. */
export type StateQuestion =
  | { readonly asks: 'state'; readonly at: Point; readonly lists: readonly string[]; readonly after: number }
  | { readonly asks: 'changes'; readonly from: Point; readonly to: Point; readonly after: number };

/** The result. */
export interface StateAnswer<Asks extends StateQuestion['asks'] = StateQuestion['asks']> {
  /** For each requested point, in order: the event that its state follows. */
  readonly reached: readonly ReachedShape[];
  /** The organization itself; only for a state. */
  readonly organization: Readonly<Record<string, unknown>> | undefined;
  readonly elements: TextPage<{ state: StateElementShape; changes: StateChangeShape }[Asks]>;
}

const mostRevisions = 9_999_999_999;
const mostElements = 9_999_999_999;
/** Positions and times will always have fewer digits than this. */
const mostPosition = Number.MAX_SAFE_INTEGER;

class PointShape {
  @DecimalString({ min: 0, max: mostRevisions, optional: true, about: "Revision in the organization's stream." })
  revision?: string;

  @DecimalString({ min: 0, max: mostPosition, optional: true, about: 'Position in the whole store.' })
  position?: string;

  @Text({ max: 40, optional: true, about: 'In RFC 3339 format, such as "2026-11-23T12:00:00.000Z".' })
  time?: string;
}

/** The event that a state follows. */
export class ReachedShape {
  @Described({ type: 'string' }, { about: "Revision of the last event up to then in the organization's stream." })
  revision!: string;

  @Described({ type: 'string' }, { about: 'Id of that event.' })
  eventId!: string;

  @Described({ type: 'string' }, { about: 'When it was recorded, in RFC 3339 format.' })
  recordedAt!: string;

  @Described({ type: 'string' }, { about: 'Hash-chain link at that event; every link up to it was checked.' })
  hash!: string;
}

const number = { about: 'Position in the list, from "1"; the same for every repetition of the query.' } as const;
const list = { about: 'The list it belongs to: users, policies, wallets, activities …' } as const;

/** Something in an organization. */
export class StateElementShape {
  @Described({ type: 'string' }, number)
  number!: string;

  @Described({ type: 'string' }, list)
  list!: string;

  @Described({ type: 'string' }, { about: 'Its id or name.' })
  id!: string;

  @Described(
    { type: 'object', additionalProperties: true },
    { about: 'Its fields, with times in RFC 3339 format. Secrets, hashes of codes and signed requests are omitted.' },
  )
  value!: Readonly<Record<string, unknown>>;
}

/** The change of something between two states. */
export class StateChangeShape {
  @Described({ type: 'string' }, number)
  number!: string;

  @Described(
    { type: 'string' },
    { about: 'The list that changed: organization, users, policies, wallets, activities …' },
  )
  list!: string;

  @Described({ type: 'string' }, { about: 'Id or name of the changed element.' })
  id!: string;

  @Described({ type: 'string', enum: ['CREATED', 'CHANGED', 'DELETED'] }, { about: 'Kind of change.' })
  change!: 'CREATED' | 'CHANGED' | 'DELETED';

  @Described({ type: 'string' }, { about: 'The change in a sentence.' })
  text!: string;
}

const afterAbout = 'Only elements after this number, for the next page; default: from the first.';

class GetOrganizationStateRequest extends OrganizationRequest {
  @Nested(() => PointShape, { optional: true, about: 'Default: the latest state.' })
  at?: PointShape;

  @TextList({ max: 40, optional: true, about: 'Only elements of these lists, such as "policies"; default: all.' })
  lists?: string[];

  @DecimalString({ min: 0, max: mostElements, optional: true, about: afterAbout })
  after?: string;
}

class CompareStatesRequest extends OrganizationRequest {
  @Nested(() => PointShape, { about: 'The earlier state.' })
  from!: PointShape;

  @Nested(() => PointShape, { optional: true, about: 'The later state; default: the latest.' })
  to?: PointShape;

  @DecimalString({ min: 0, max: mostElements, optional: true, about: afterAbout })
  after?: string;
}

class GetOrganizationStateResponse extends PagedResponse {
  @Nested(() => ReachedShape, { about: 'The event after which the state holds.' })
  at!: ReachedShape;

  @Described(
    { type: 'object', additionalProperties: true },
    { about: 'The organization itself: name, root quorum, auth proxy and other single values.' },
  )
  organization!: Readonly<Record<string, unknown>>;

  @ListOf(() => StateElementShape)
  elements!: readonly StateElementShape[];
}

class CompareStatesResponse extends PagedResponse {
  @Nested(() => ReachedShape, { about: 'The event after which the earlier state holds.' })
  from!: ReachedShape;

  @Nested(() => ReachedShape, { about: 'The event after which the later state holds.' })
  to!: ReachedShape;

  @ListOf(() => StateChangeShape)
  changes!: readonly StateChangeShape[];
}

export interface StatesPort {
  /** What an organization was at points of its history, or what has changed between two, as it may be read. */
  states<Question extends StateQuestion>(
    organizationId: string,
    question: Question,
  ): Promise<StateAnswer<Question['asks']>>;
}

export const getOrganizationState = defineQuery({
  path: 'get_organization_state',
  summary: 'The state of an organization at any event, position or time, for members of the root quorum.',
  request: GetOrganizationStateRequest,
  response: GetOrganizationStateResponse,
  readsHistory: true,
  async answer({ organizationId, at, lists = [], after = '0' }, context: QueryContext & StatesPort) {
    const question = { asks: 'state', at: pointOf(at, 'at'), lists, after: Number(after) } as const;
    const { reached, organization, elements } = await context.states(organizationId, question);
    return { at: reached[0]!, organization: organization!, elements };
  },
});

export const compareStates = defineQuery({
  path: 'compare_states',
  summary:
    'What changed in an organization between two events, positions or times, in words, for members of the root quorum.',
  request: CompareStatesRequest,
  response: CompareStatesResponse,
  readsHistory: true,
  async answer({ organizationId, from, to, after = '0' }, context: QueryContext & StatesPort) {
    const points = { from: pointOf(from, 'from'), to: pointOf(to, 'to') };
    const { reached, elements } = await context.states(organizationId, {
      asks: 'changes',
      ...points,
      after: Number(after),
    });
    return { from: reached[0]!, to: reached[1]!, changes: elements };
  },
});

/** RFC 3339 with a zone: without one, the time is ambiguous. */
const timePattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)$/;

/** @throws {CoordinatorError} INVALID_ARGUMENT */
function pointOf(shape: PointShape | undefined, field: string): Point {
  if (!shape) return { by: 'newest' };
  const { revision, position, time } = shape;
  const said = [revision, position, time].filter((one) => one !== undefined);
  if (said.length !== 1) {
    throw invalidField(field, `must have exactly one of \`revision\`, \`position\` and \`time\`, got ${said.length}`);
  }
  if (revision !== undefined) return { by: 'revision', revision: Number(revision) };
  if (position !== undefined) return { by: 'position', position: BigInt(position) };
  const ms = timePattern.test(time!) ? Date.parse(time!) : NaN;
  if (Number.isNaN(ms)) {
    throw invalidField(`${field}.time`, `must be a time such as \`2026-11-23T12:00:00.000Z\`, got \`${time!}\``);
  }
  return { by: 'time', time: ms };
}
