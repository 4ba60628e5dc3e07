import { activityStatuses, isActivityEvent, type ActivityStatus } from '../domain/activity/events.js';
import { intentIn } from '../domain/activity/recorded-form.js';
import { evolveWithoutIntent, type ActivityRecord } from '../domain/activity/record.js';
import type { ActivityEvent, Decision } from '../domain/activity/events.js';
import { readableActivity, readableEvent } from '../domain/activity/redaction.js';
import { CoordinatorError } from '../domain/errors.js';
import type { TurnFor } from '../fairness/turns.js';
import { organizationEvent, type OrganizationEvent } from '../domain/organization/organization.js';
import { timestamp } from '../domain/organization/timestamp.js';
import type { User } from '../domain/organization/users.js';
import { Described, ListOf, ListOfOneOf, Nested, Text, TextList, Uuid } from '../wire/fields.js';
import type { Rows } from './database.js';
import {
  defineQuery,
  ListPage,
  OrganizationRequest,
  PagedResponse,
  PaginatedRequest,
  type QueryContext,
} from './define-query.js';
import type { EventMetadata } from '../ledger/chain.js';
import type { RecordedEvent } from '../ledger/event-store.js';
import { readEvent } from '../ledger/read-event.js';
import { elementsOf, newestFirst, partOf, type Run } from './pages.js';
import type { ReadModel } from './read-model.js';
import { PolicyOutcomeShape, type ReasonsAnswer, type ReasonsPort } from './reasons.js';
import type { ActivityEnvelope } from '../wire/envelope.js';
import { ActivityShape, AppProofShape, redactedAbout, TimestampShape } from '../wire/shapes.js';
import { userAt } from './user-versions.js';

/** A voter is stored as the position of the vote: the users model knows who the user was then. */
type StoredActivity = ActivityRecord<string> & {
  /** Places of its own events in the organization's stream; its effects follow them. */
  readonly revisions: readonly number[];
};

/** Without what the body of its first vote says: what was intended. */
type ActivityRow = Omit<StoredActivity, 'intent'>;

/** As `doc` has it: the other columns, and the first vote, say the rest. */
type ActivityDoc = Omit<ActivityRow, 'activityId' | 'organizationId' | 'type' | 'status' | 'fingerprint'>;

export const activitiesModel: ReadModel = {
  name: 'activities',
  version: 1,
  tables: ['activities', 'activity_fingerprints'],
  // Activities are large; one that is missing is noticed by its fingerprint.
  guards: ['activity_fingerprints'],
  // In the order of submission, which is where new ones are written. Ids are random: what is ordered by them is small.
  schema: `
    CREATE TABLE activities (
      submitted INTEGER PRIMARY KEY, organization_id TEXT NOT NULL, activity_id TEXT NOT NULL,
      type TEXT NOT NULL, status TEXT NOT NULL, doc TEXT NOT NULL
    );
    CREATE UNIQUE INDEX activities_by_id ON activities (activity_id, organization_id);
    CREATE INDEX activities_by_status ON activities (organization_id, status);
    CREATE INDEX activities_by_type ON activities (organization_id, type, status);
    CREATE INDEX activities_waiting ON activities (json_extract(doc, '$.createdAt'))
      WHERE status = 'ACTIVITY_STATUS_CONSENSUS_NEEDED';
    CREATE TABLE activity_fingerprints (
      organization_id TEXT NOT NULL, fingerprint BLOB NOT NULL, submitted INTEGER NOT NULL,
      PRIMARY KEY (organization_id, fingerprint)
    ) WITHOUT ROWID;`,

  project(rows, events) {
    // An activity often begins and ends in one batch: it is assembled in memory and written once.
    const changed = new Map<string, { submitted: bigint; record: ActivityRow }>();
    for (const { organizationId, position, revision, at, event } of events) {
      if (!isActivityEvent(event)) continue;
      const { activityId } = event.data;
      const known =
        changed.get(activityId) ??
        (event.type === 'ActivitySubmitted' ? undefined : storedRow(rows, organizationId, activityId));
      const submitted = known?.submitted ?? position;
      const record = evolveWithoutIntent(known?.record, event, { organizationId, at, voter: () => String(position) });
      const revisions = [...(known?.record.revisions ?? []), revision];
      changed.set(activityId, { submitted, record: { revisions, ...record } });
      const fingerprint = fingerprintIn(event);
      if (fingerprint) {
        // Only the organization's own: a body that names the parent has the same fingerprint in all its
        // sub-organizations.
        rows.run(
          'INSERT OR IGNORE INTO activity_fingerprints VALUES (?, ?, ?)',
          organizationId,
          digestOf(fingerprint),
          submitted,
        );
      }
    }
    for (const { submitted, record } of changed.values()) {
      const { organizationId, activityId, type, status, fingerprint: _ofFirstVote, ...doc } = record;
      rows.run(
        `INSERT INTO activities VALUES (?, ?, ?, ?, ?, ?)
         ON CONFLICT (submitted) DO UPDATE SET status = excluded.status, doc = excluded.doc`,
        submitted,
        organizationId,
        activityId,
        type,
        status,
        JSON.stringify(doc satisfies ActivityDoc),
      );
    }
  },
};

const hourMs = 60 * 60 * 1_000;
/** Upper bounds of the ages that waiting activities are counted by. */
const ages = { 'up to 1h': hourMs, 'up to 24h': 24 * hourMs, 'up to 7d': 7 * 24 * hourMs, longer: Infinity } as const;

/** How many activities of all organizations wait for votes, by the time since their submission. Reads an index of these alone. */
export function waitingByAge(rows: Rows, now: number): Readonly<Record<keyof typeof ages, number>> {
  let younger = 0;
  const counts = Object.entries(ages).map(([age, most]): [string, number] => {
    const row = rows.get(
      `SELECT count(*) AS waiting FROM activities
       WHERE status = 'ACTIVITY_STATUS_CONSENSUS_NEEDED' AND json_extract(doc, '$.createdAt') > ?`,
      most === Infinity ? 0 : now - most,
    );
    const upTo = Number(row?.['waiting'] ?? 0);
    const own = upTo - younger;
    younger = upTo;
    return [age, own];
  });
  return Object.fromEntries(counts) as Record<keyof typeof ages, number>;
}

function fingerprintIn(event: ActivityEvent): string | undefined {
  switch (event.type) {
    case 'ActivitySubmitted':
      return event.data.fingerprint;
    case 'ActivityApproved':
    case 'ActivityRejected':
      return event.data.vote.fingerprint;
    default:
      return undefined;
  }
}

function storedRow(rows: Rows, organizationId: string, activityId: string) {
  const row = activityRow(rows, organizationId, activityId);
  return row && { submitted: row.submitted, record: rowIn(row) };
}

/** Read, and its doc not parsed yet: that of a large one takes a turn for itself. */
function activityRow(rows: Rows, organizationId: string, activityId: string) {
  const row = rows.get(
    'SELECT submitted, type, status, doc FROM activities WHERE organization_id = ? AND activity_id = ?',
    organizationId,
    activityId,
  );
  if (!row) return undefined;
  const columns = { organizationId, activityId, type: String(row['type']), status: row['status'] as ActivityStatus };
  return { submitted: BigInt(row['submitted']!), columns, text: String(row['doc']) };
}

function rowIn({ columns, text }: NonNullable<ReturnType<typeof activityRow>>): ActivityRow {
  const doc = JSON.parse(text) as ActivityDoc;
  return { ...columns, fingerprint: doc.votes[0]!.fingerprint, ...doc };
}

function withIntent(row: ActivityRow): StoredActivity {
  return { ...row, intent: intentIn(row.votes[0]!.message) };
}

/**
 * Id of this organization's activity whose submission, or a vote on it, had this fingerprint.
 * @throws as `Rows.lost` if the row of that activity was lost: the request must not happen again
 */
export function findByFingerprint(rows: Rows, organizationId: string, fingerprint: string): string | undefined {
  const row = rows.get(
    `SELECT activity_id FROM activity_fingerprints known LEFT JOIN activities USING (submitted)
     WHERE known.organization_id = ? AND fingerprint = ?`,
    organizationId,
    digestOf(fingerprint),
  );
  if (row?.['activity_id'] === null) rows.lost('an activity is missing whose request is known');
  return row && String(row['activity_id']);
}

/** Random keys scatter over the pages of their table, so they are kept as short as possible. */
function digestOf(fingerprint: string): Uint8Array {
  return Buffer.from(fingerprint.slice('sha256:'.length), 'hex');
}

/**
 * As `activityOf`, what is large in several turns.
 * @param turn awaited between two steps of work on so many characters, and once they are done
 * @throws {CoordinatorError} NOT_FOUND
 */
async function activityInTurns(
  rows: Rows,
  organizationId: string,
  activityId: string,
  turn: TurnFor,
): Promise<{ readonly record: StoredActivity; readonly characters: number }> {
  const row = activityRow(rows, organizationId, activityId);
  if (!row) throw noSuchActivity(organizationId, activityId);
  const characters = row.text.length;
  await turn(characters);
  const stored = rowIn(row);
  await turn(characters);
  const record = withIntent(stored);
  await turn(characters);
  return { record, characters };
}

/** @throws {CoordinatorError} NOT_FOUND */
export function activityOf(rows: Rows, organizationId: string, activityId: string): ActivityRecord<User | undefined> {
  const stored = storedRow(rows, organizationId, activityId);
  if (!stored) throw noSuchActivity(organizationId, activityId);
  return withVoters(rows, withIntent(stored.record));
}

/**
 * The activity as its own event at a revision of the organization's stream left it, if it was then waiting for votes or
 * finished.
 * @param turn awaited between two steps of work on so many characters, and once they are done
 * @throws {CoordinatorError} NOT_FOUND
 */
export async function activityAsOf(
  rows: Rows,
  { organizationId, activityId, revision }: { organizationId: string; activityId: string; revision: number },
  turn: TurnFor,
): Promise<{ readonly record: ActivityRecord<User | undefined>; readonly characters: number }> {
  const { record, characters } = await activityInTurns(rows, organizationId, activityId, turn);
  const index = record.revisions.indexOf(revision);
  if (index < 0) throw noSuchActivity(organizationId, activityId);
  return { record: withVoters(rows, asOf(record, index)), characters };
}

/** As the event with this number among its own left it. */
function asOf(record: StoredActivity, index: number): StoredActivity {
  if (index === record.revisions.length - 1) return record;
  // Each event before the last was its submission or an approval: one vote each, with the decision on it.
  const { result: _result, failure: _failure, ...rest } = record;
  const votes = record.votes.slice(0, index + 1);
  return {
    ...rest,
    status: 'ACTIVITY_STATUS_CONSENSUS_NEEDED',
    votes,
    decisions: record.decisions.slice(0, index + 1),
    updatedAt: votes.at(-1)!.at,
  };
}

function noSuchActivity(organizationId: string, activityId: string): CoordinatorError {
  return new CoordinatorError('NOT_FOUND', `no activity \`${activityId}\` in organization \`${organizationId}\``);
}

function withVoters(rows: Rows, record: StoredActivity): ActivityRecord<User | undefined> {
  return {
    ...record,
    votes: record.votes.map((vote) => ({
      ...vote,
      voter: userAt(rows, record.organizationId, vote.userId, vote.voter),
    })),
  };
}

class ActivityRequest extends OrganizationRequest {
  @Uuid()
  activityId!: string;
}

class GetActivityResponse {
  @Nested(() => ActivityShape)
  activity!: ActivityShape;
}

/** Activities as a caller sees them. */
export interface EnvelopesPort {
  /** One activity, with what it waits for, and what it would sign. */
  explained(record: ActivityRecord<User | undefined>): ActivityEnvelope;
  /** Several activities, as far as the steps of one request last for them together. */
  envelopes(activityIds: readonly string[]): (record: ActivityRecord<User | undefined>) => ActivityEnvelope;
  /** What each policy says of an activity that waits for votes, as things stand; undefined where that is not told. */
  saysNow(activityId: string): readonly PolicyOutcomeShape[] | undefined;
}

export const getActivity = defineQuery({
  path: 'get_activity',
  summary: 'One activity, with its votes.',
  request: ActivityRequest,
  response: GetActivityResponse,
  async answer({ organizationId, activityId }, context: QueryContext & EnvelopesPort) {
    const { rows, turn } = context;
    const { record } = await activityInTurns(rows, organizationId, activityId, turn);
    return { activity: context.explained(withVoters(rows, record)) };
  },
});

class ListActivitiesRequest extends PaginatedRequest {
  @ListOfOneOf(activityStatuses, { optional: true, about: 'Only activities of these statuses.' })
  filterByStatus?: string[];

  @TextList({ optional: true, about: 'Only activities of these types.' })
  filterByType?: string[];
}

class ListActivitiesResponse extends PagedResponse {
  @ListOf(() => ActivityShape)
  activities!: readonly ActivityShape[];
}

export const listActivities = defineQuery({
  path: 'list_activities',
  summary: 'Activities, newest first.',
  request: ListActivitiesRequest,
  response: ListActivitiesResponse,
  async answer(
    { organizationId, filterByStatus = [], filterByType = [], paginationOptions },
    context: QueryContext & EnvelopesPort,
  ) {
    const { rows, page, turn } = context;
    const found = newestFirst(
      rows,
      {
        table: 'activities',
        column: 'activity_id',
        order: 'submitted',
        runs: runsOf(organizationId, new Set(filterByStatus), new Set(filterByType)),
        orderOf: (id) => submittedAt(rows, organizationId, id),
      },
      paginationOptions,
    );
    const envelope = context.envelopes(found.keys);
    const read = async (id: string) => {
      const { record } = await activityInTurns(rows, organizationId, id, turn);
      return envelope(withVoters(rows, record));
    };
    return { activities: await page(elementsOf(found, read)) };
  },
});

/** The parts of the list that contain the requested rows, each ordered by an index. */
function runsOf(organizationId: string, statuses: ReadonlySet<string>, types: ReadonlySet<string>): readonly Run[] {
  const equals = { organization_id: organizationId };
  const wanted = statuses.size === 0 ? activityStatuses : [...statuses];
  if (types.size === 0) return wanted.map((status) => ({ ...equals, status }));
  return [...types].flatMap((type) => wanted.map((status) => ({ ...equals, type, status })));
}

function submittedAt(rows: Rows, organizationId: string, activityId: string): bigint | undefined {
  const row = rows.get(
    'SELECT submitted FROM activities WHERE organization_id = ? AND activity_id = ?',
    organizationId,
    activityId,
  );
  return row && BigInt(row['submitted']!);
}

class PolicyEvaluationShape {
  @Uuid()
  id!: string;

  @Uuid()
  activityId!: string;

  @Uuid()
  organizationId!: string;

  @Uuid()
  voteId!: string;

  @ListOf(() => PolicyOutcomeShape)
  policyEvaluations!: readonly PolicyOutcomeShape[];

  @Described({ type: 'string' }, { about: 'allow, or consensus-needed.' })
  outcome!: string;

  @Described({ type: 'string' }, { about: 'root-quorum, policy, own-credentials or none.' })
  decidedBy!: string;

  @Described(
    { type: 'string' },
    { about: "Last revision of the organization's stream on which the decision is based." },
  )
  revision!: string;

  @Described({ type: 'integer' }, { about: 'Number of the rules that decided it.' })
  rules!: number;

  @Nested(() => TimestampShape)
  createdAt!: TimestampShape;
}

class GetPolicyEvaluationsRequest extends ActivityRequest {
  @Nested(() => ListPage, { optional: true, about: 'A Countersign extension.' })
  paginationOptions?: ListPage;
}

class GetPolicyEvaluationsResponse extends PagedResponse {
  @ListOf(() => PolicyEvaluationShape)
  policyEvaluations!: readonly PolicyEvaluationShape[];

  @ListOf(() => PolicyOutcomeShape, {
    optional: true,
    about:
      'For an activity that is waiting for votes: the current outcome of each policy, and the deciding part of its text.',
  })
  now?: readonly PolicyOutcomeShape[];

  @Text({
    optional: true,
    about: 'Why names and deciding parts are missing from some past decisions; they are there on every one otherwise.',
  })
  notExplained?: string;
}

export const getPolicyEvaluations = defineQuery({
  path: 'get_policy_evaluations',
  summary:
    'Explains the decisions on an activity: for each vote, what each policy said, and which part of its text decided.',
  request: GetPolicyEvaluationsRequest,
  response: GetPolicyEvaluationsResponse,
  async answer({ organizationId, activityId, paginationOptions }, context: QueryContext & EnvelopesPort & ReasonsPort) {
    const { rows, page, callerOrganizationId, callerUserId } = context;
    const { decisions, votes } = activityOf(rows, organizationId, activityId);
    const { authority } = decisions[0]!;
    const requested = {
      organizationId,
      activityId,
      decisions: decisions.length,
      isConcerned: votes.some(({ userId }) => userId === callerUserId),
      // What a parent's policies say is for its own members.
      ...(authority?.organizationId === callerOrganizationId ? { authority } : {}),
    };
    // Where the root quorum decided, no policy was asked.
    const isExplained = decisions.some(({ decidedBy }) => decidedBy !== 'root-quorum');
    const { told, notExplained }: ReasonsAnswer = isExplained ? await context.reasons(requested) : { told: [] };
    const explained = new Map(told.map(({ voteId, outcomes }) => [voteId, outcomes]));
    const evaluations = decisions.map((decision) => {
      const { voteId, outcome, decidedBy, revision, rules, at } = decision;
      const policies: readonly PolicyOutcomeShape[] = explained.get(voteId) ?? decision.evaluations;
      const isOthers = isDecidedByOthers(callerOrganizationId, decision);
      return {
        // One evaluation per vote, so the vote's id identifies it.
        id: voteId,
        activityId,
        organizationId,
        voteId,
        policyEvaluations: isOthers ? policies.map(withoutReason) : policies,
        outcome,
        decidedBy,
        revision: String(revision),
        rules,
        createdAt: timestamp(at),
      };
    });
    const now = context.saysNow(activityId);
    return {
      policyEvaluations: await page(partOf(evaluations, ({ id }) => id, paginationOptions)),
      ...(now ? { now: [...now] } : {}),
      ...(notExplained === undefined ? {} : { notExplained }),
    };
  },
});

/**
 * Whether the policies of another organization decided, the caller's parent. What they say is for its own members: why one
 * is in doubt quotes its text, and the set is all that the parent has.
 */
function isDecidedByOthers(callerOrganizationId: string, { authority }: Pick<Decision, 'authority'>): boolean {
  return authority !== undefined && authority.organizationId !== callerOrganizationId;
}

function withoutReason<Told extends { readonly error?: string }>({ error: _error, ...evaluation }: Told) {
  return evaluation;
}

/** An event as its reader may see the decision in it. */
export function withDecisionSaidTo(callerOrganizationId: string, event: OrganizationEvent): OrganizationEvent {
  if (event.type !== 'ActivitySubmitted' && event.type !== 'ActivityApproved') return event;
  const { policySet: _policySet, ...decision } = event.data.decision;
  if (!isDecidedByOthers(callerOrganizationId, decision)) return event;
  const said = { ...decision, evaluations: decision.evaluations.map(withoutReason) };
  return event.type === 'ActivitySubmitted'
    ? { type: event.type, data: { ...event.data, decision: said } }
    : { type: event.type, data: { ...event.data, decision: said } };
}

class ListAppProofsResponse {
  @ListOf(() => AppProofShape)
  appProofs!: readonly AppProofShape[];
}

export const listAppProofs = defineQuery({
  path: 'list_app_proofs',
  summary: 'Signed proofs about an activity submitted with generateAppProofs; none until it has ended.',
  request: ActivityRequest,
  response: ListAppProofsResponse,
  answer: ({ organizationId, activityId }, { rows, now }) => ({
    appProofs: [...(readableActivity(activityOf(rows, organizationId, activityId), now).appProofs ?? [])],
  }),
});

/** An event as responses show it; what its type says about `data` is known to the compiler by `Typed`. */
export class RecordedEventShape {
  @Uuid()
  id!: string;

  @Described({ type: 'string' }, { about: "Revision in the organization's stream, decimal, from 0." })
  revision!: string;

  @Described({ type: 'string' }, { about: 'Event type, in the past tense.' })
  type!: string;

  @Described({ type: 'object' }, { about: "By the event's type: docs/reference/events.md." })
  data!: object;

  @Described({ type: 'string', format: 'date-time' })
  recordedAt!: string;

  @Described({ type: 'string' }, { about: 'Hash-chain link: covers this event and all earlier ones.' })
  hash!: string;

  @Described({ type: 'boolean', const: true }, { optional: true, about: redactedAbout })
  redacted?: true;
}

/** Such a shape for each event of an organization: a union that its `type` tells apart. */
export type Typed<Shape extends RecordedEventShape> = OrganizationEvent & Omit<Shape, 'type' | 'data'>;

class ListActivityEventsResponse extends PagedResponse {
  @ListOf(() => RecordedEventShape)
  events!: readonly Typed<RecordedEventShape>[];
}

export interface HistoryPort {
  /** Recorded events of an organization from a revision on. */
  history(organizationId: string, fromRevision: number): AsyncIterable<RecordedEvent>;
}

class ListActivityEventsRequest extends ActivityRequest {
  @Uuid({ optional: true, about: 'Only events recorded after this one.' })
  after?: string;
}

export const listActivityEvents = defineQuery({
  path: 'list_activity_events',
  summary: 'The recorded events of an activity, its lifecycle and its effects, in stream order.',
  request: ListActivityEventsRequest,
  response: ListActivityEventsResponse,
  async answer({ organizationId, activityId, after }, context: QueryContext & HistoryPort) {
    const { rows, now, page, turn, callerOrganizationId } = context;
    const { record } = await activityInTurns(rows, organizationId, activityId, turn);
    async function* inTurn({ revisions, ...record }: StoredActivity): AsyncGenerator<Typed<RecordedEventShape>> {
      let next = 0;
      let isAfter = after === undefined;
      for (const start of revisions) {
        if (start < next) continue;
        for await (const event of context.history(organizationId, start)) {
          const { $correlationId, at, hash } = event.metadata as EventMetadata;
          if ($correlationId !== activityId) break;
          const { id, revision } = event;
          const recorded = organizationEvent(readEvent(event));
          const recordedAt = new Date(at).toISOString();
          const said = readableEvent(withDecisionSaidTo(callerOrganizationId, recorded), record, now, { at });
          const redacted = said === recorded ? {} : { redacted: true as const };
          next = revision + 1;
          if (isAfter) yield { id, revision: String(revision), ...said, recordedAt, hash, ...redacted };
          isAfter ||= id === after;
        }
      }
    }
    return { events: await page({ inTurn: inTurn(record), isBackward: false }) };
  },
});
