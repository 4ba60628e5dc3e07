import { readableEvent } from '../domain/activity/redaction.js';
import type { ActivityStatus } from '../domain/activity/events.js';
import { CoordinatorError } from '../domain/errors.js';
import { organizationEvent } from '../domain/organization/organization.js';
import type { EventMetadata } from '../ledger/chain.js';
import type { RecordedEvent } from '../ledger/event-store.js';
import { readEvent } from '../ledger/read-event.js';
import { DecimalString, Described, ListOf, Nested, Uuid } from '../wire/fields.js';
import { RecordedEventShape, withDecisionSaidTo, type Typed } from './activities.js';
import type { Rows } from './database.js';
import { defineQuery, OrganizationRequest, PagedResponse, type QueryContext } from './define-query.js';
import type { TextPage } from './pages.js';

/** No stream has a higher revision. */
const mostRevisions = 9_999_999_999;
const usualLimit = 10;

class ListEventsRequest extends OrganizationRequest {
  @DecimalString({
    min: 0,
    max: mostRevisions,
    optional: true,
    about: 'Only events after this revision; default: from the first event.',
  })
  after?: string;

  @DecimalString({ min: 1, max: 100, optional: true, about: 'Page size, from "1" to "100"; default "10".' })
  limit?: string;
}

class GetEventRequest extends OrganizationRequest {
  @DecimalString({ min: 0, max: mostRevisions, about: "Revision in the organization's stream." })
  revision!: string;
}

/** An event of an organization, with where to find its cause. */
class OrganizationEventShape extends RecordedEventShape {
  @Uuid({ optional: true, about: 'The activity it belongs to; absent if no request to this organization caused it.' })
  activityId?: string;

  @Described(
    { type: 'string' },
    {
      optional: true,
      about:
        'Revision of the event that holds the signed request, its stamp and the decision: this event or an earlier one.',
    },
  )
  decidedAt?: string;
}

/** An event of an organization as `list_events` and `get_event` return it: its `type` says what `data` is. */
export type ListedEvent = Typed<OrganizationEventShape>;

class ListEventsResponse extends PagedResponse {
  @ListOf(() => OrganizationEventShape)
  events!: readonly ListedEvent[];
}

class GetEventResponse {
  @Nested(() => OrganizationEventShape)
  event!: ListedEvent;

  @Nested(() => OrganizationEventShape, {
    optional: true,
    about:
      'The event that caused it, with the signed request, its stamp and the decision; absent if it is the same event.',
  })
  decision?: ListedEvent;
}

export interface EventsPort {
  /** Events of an organization from a revision on, so many at most, as they may be read. */
  events(organizationId: string, fromRevision: number, limit: number): Promise<TextPage<ListedEvent>>;
}

export const listEvents = defineQuery({
  path: 'list_events',
  summary: "All events of an organization by revision, for members of its root quorum or of its parent's.",
  request: ListEventsRequest,
  response: ListEventsResponse,
  readsHistory: true,
  async answer({ organizationId, after, limit = String(usualLimit) }, context: QueryContext & EventsPort) {
    return { events: await context.events(organizationId, after === undefined ? 0 : Number(after) + 1, Number(limit)) };
  },
});

export const getEvent = defineQuery({
  path: 'get_event',
  summary: 'One event of an organization, with the signed request, stamp and decision that caused it.',
  request: GetEventRequest,
  response: GetEventResponse,
  readsHistory: true,
  async answer({ organizationId, revision }, context: QueryContext & EventsPort) {
    const one = async (at: number) => {
      const { texts } = await context.events(organizationId, at, 1);
      return texts[0] === undefined ? undefined : (JSON.parse(texts[0]) as ListedEvent);
    };
    const event = await one(Number(revision));
    if (!event) {
      throw new CoordinatorError(
        'NOT_FOUND',
        `organization \`${organizationId}\` has no event at revision \`${revision}\``,
      );
    }
    const { decidedAt = revision } = event;
    const decision = decidedAt === revision ? undefined : await one(Number(decidedAt));
    return { event, ...(decision ? { decision } : {}) };
  },
});

/** What the rows say about the activity of an event. */
export interface EventCause {
  readonly status: ActivityStatus;
  /** Revision of the event that its activity was decided with, if known. */
  readonly decidedAt: number | undefined;
}

const decidingTypes: ReadonlySet<string> = new Set(['ActivitySubmitted', 'ActivityApproved', 'ActivityRejected']);

/** Reads an organization's stream from a revision on. */
type ReadFrom = (revision: number) => AsyncIterable<RecordedEvent>;

/**
 * The cause of each event in a run of a stream; undefined for what no activity of the organization caused. Requests are
 * long, and votes on many of them may be adjacent, so the document of a row is read only for the first event.
 */
export async function causesOf(
  rows: Rows,
  organizationId: string,
  events: readonly RecordedEvent[],
  readFrom: ReadFrom,
): Promise<(EventCause | undefined)[]> {
  const causes: (EventCause | undefined)[] = [];
  for (const [index, event] of events.entries()) {
    const before = events[index - 1];
    const status = statusOf(rows, organizationId, event);
    if (!status) causes.push(undefined);
    else if (isDeciding(event)) causes.push({ status, decidedAt: event.revision });
    else if (before)
      causes.push({ status, decidedAt: isSameAppend(before, event) ? causes[index - 1]?.decidedAt : undefined });
    else causes.push({ status, decidedAt: await decisionBefore(rows, organizationId, event, readFrom) });
  }
  return causes;
}

const isDeciding = ({ type }: RecordedEvent) => decidingTypes.has(type);

function statusOf(rows: Rows, organizationId: string, { metadata }: RecordedEvent): ActivityStatus | undefined {
  const { $correlationId } = metadata as EventMetadata;
  const sql = 'SELECT status FROM activities WHERE organization_id = ? AND activity_id = ?';
  return rows.get(sql, organizationId, $correlationId)?.['status'] as ActivityStatus | undefined;
}

/** A decision and its effects have one cause. */
export function isSameAppend(one: RecordedEvent, other: RecordedEvent): boolean {
  const [before, after] = [one.metadata as EventMetadata, other.metadata as EventMetadata];
  return before.$correlationId === after.$correlationId && before.$causationId === after.$causationId;
}

/** Of an activity's own events, only its end, and before that its decision, can precede an effect. */
async function decisionBefore(rows: Rows, organizationId: string, event: RecordedEvent, readFrom: ReadFrom) {
  const { $correlationId } = event.metadata as EventMetadata;
  const sql = 'SELECT doc FROM activities WHERE organization_id = ? AND activity_id = ?';
  const doc = rows.get(sql, organizationId, $correlationId)?.['doc'];
  const { revisions } = JSON.parse(String(doc)) as { readonly revisions: readonly number[] };
  for (const revision of revisions
    .filter((one) => one < event.revision)
    .slice(-2)
    .reverse()) {
    for await (const recorded of readFrom(revision)) {
      if (isDeciding(recorded) && isSameAppend(recorded, event)) return revision;
      break;
    }
  }
  return undefined;
}

/** An event for a member of an organization, without secrets that are still usable, and what a parent's policies say is for its own. */
export function toldEvent(
  recorded: RecordedEvent,
  cause: EventCause | undefined,
  now: number,
  readerOrganizationId: string,
): ListedEvent {
  const { id, revision } = recorded;
  const { $correlationId, at, hash } = recorded.metadata as EventMetadata;
  const event = organizationEvent(readEvent(recorded));
  // Codes in a request that is not known to be done are omitted.
  const saidToReader = withDecisionSaidTo(readerOrganizationId, event);
  const said = readableEvent(saidToReader, { status: cause?.status ?? 'ACTIVITY_STATUS_PENDING' }, now, { at });
  return {
    id,
    revision: String(revision),
    ...said,
    recordedAt: new Date(at).toISOString(),
    hash,
    ...(cause ? { activityId: $correlationId } : {}),
    ...(cause?.decidedAt === undefined ? {} : { decidedAt: String(cause.decidedAt) }),
    ...(said === event ? {} : { redacted: true }),
  };
}
