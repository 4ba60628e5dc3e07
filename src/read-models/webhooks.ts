import type { ActivityEvent, ActivityStatus } from '../domain/activity/events.js';
import { CoordinatorError } from '../domain/errors.js';
import { timestamp } from '../domain/organization/timestamp.js';
import type { WebhookDeliveryEvent } from '../domain/organization/webhook-deliveries.js';
import {
  wantsActivityUpdate,
  webhookEndpointResource,
  type WebhookEndpoint,
} from '../domain/organization/webhook-endpoints.js';
import { Described, Flag, ListOf, Nested, OneOf, Text, Uuid } from '../wire/fields.js';
import type { Row, Rows } from './database.js';
import { defineQuery, OrganizationRequest, PagedResponse, PaginatedRequest } from './define-query.js';
import { elementsOf, newestFirst, type Run } from './pages.js';
import type { ProjectedEvent, ReadModel } from './read-model.js';
import { TimestampShape } from '../wire/shapes.js';

const deliveryStates = ['pending', 'delivered', 'abandoned', 'dropped'] as const;

/** Deliveries that may wait for one endpoint; the oldest are dropped for newer ones. */
const mostWaiting = 10_000;
/** The same for an endpoint of a sub-organization, as anybody may have many. */
const mostWaitingOfSubOrganization = 1_000;
/** If more are dropped with their endpoint, their rows stay as they are, and only the endpoint's queue ends. */
const mostRewritten = 20;

/** The current state of a delivery. */
export interface WebhookDelivery {
  /** Owner of the endpoint. */
  readonly organizationId: string;
  readonly endpointId: string;
  readonly eventId: string;
  /** The organization of the activity: the owner itself, or one of its sub-organizations. */
  readonly sourceOrganizationId: string;
  readonly activityId: string;
  readonly activityType: string;
  readonly activityStatus: ActivityStatus;
  /** Place in the source's stream of the event that the endpoint is notified of. */
  readonly revision: number;
  /** `dropped`: its endpoint was paused or deleted first, or too many others were waiting for it. */
  readonly state: (typeof deliveryStates)[number];
  readonly attempts: number;
  /** From the latest attempt with a response. */
  readonly status?: number;
  /** Why the latest attempt failed, or the delivery was given up. */
  readonly reason?: string;
  /** Not before this time, while it is pending. */
  readonly retryAt: number;
  /** When its event was recorded, or when it was requested again; milliseconds since the epoch, like the others. */
  readonly since: number;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** Proofs do not change the status. */
type StatusEvent = Exclude<ActivityEvent, { type: 'AppProofsIssued' }>;

/**
 * Endpoints and their deliveries: one row for each endpoint and event, created by the event itself. So the rows are
 * both the queue of deliveries and their log, and a restart loses nothing. Of each activity's pending deliveries to an endpoint, only
 * the first has a `retry_at`: looking for what is due never reads those behind it.
 *
 * A paused or deleted endpoint begins another queue, and what waits in an earlier one is dropped: its rows stay as they are, since
 * writing them takes seconds for a hundred thousand, and everybody's queries wait for that. Rows that wait for nothing have queue 0.
 */
export const webhooksModel: ReadModel = {
  name: 'webhooks',
  version: 3,
  tables: [
    'webhook_endpoints',
    'webhook_parents',
    'webhook_activities',
    'webhook_deliveries',
    'webhook_waiting',
    'webhook_logs',
  ],
  schema: `
    CREATE TABLE webhook_endpoints (
      organization_id TEXT NOT NULL, endpoint_id TEXT NOT NULL, created INTEGER NOT NULL, deleted INTEGER NOT NULL,
      doc TEXT NOT NULL,
      PRIMARY KEY (organization_id, endpoint_id)
    ) WITHOUT ROWID;
    CREATE INDEX webhook_endpoints_there ON webhook_endpoints (organization_id, created, endpoint_id) WHERE deleted = 0;
    CREATE TABLE webhook_parents (organization_id TEXT PRIMARY KEY, parent_id TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE webhook_activities (activity_id TEXT PRIMARY KEY, type TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE webhook_deliveries (
      endpoint_id TEXT NOT NULL, position INTEGER NOT NULL, organization_id TEXT NOT NULL, event_id TEXT NOT NULL,
      activity_id TEXT NOT NULL, state TEXT NOT NULL, queue INTEGER NOT NULL, retry_at INTEGER, doc TEXT NOT NULL,
      PRIMARY KEY (endpoint_id, position)
    ) WITHOUT ROWID;
    CREATE INDEX webhook_deliveries_by_state ON webhook_deliveries (endpoint_id, state, queue, position);
    CREATE INDEX webhook_deliveries_by_event ON webhook_deliveries (endpoint_id, event_id);
    CREATE INDEX webhook_deliveries_due ON webhook_deliveries (endpoint_id, queue, retry_at, position)
      WHERE state = 'pending' AND retry_at IS NOT NULL;
    CREATE INDEX webhook_deliveries_in_order ON webhook_deliveries (endpoint_id, queue, activity_id, position)
      WHERE state = 'pending';
    CREATE TABLE webhook_waiting (
      endpoint_id TEXT PRIMARY KEY, organization_id TEXT NOT NULL, queue INTEGER NOT NULL, count INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX webhook_waiting_some ON webhook_waiting (endpoint_id) WHERE count > 0;
    INSERT INTO webhook_waiting VALUES ('', '', 0, 0);
    CREATE TRIGGER webhook_delivery_begins AFTER INSERT ON webhook_deliveries WHEN new.state = 'pending'
      BEGIN UPDATE webhook_waiting SET count = count + 1 WHERE endpoint_id IN ('', new.endpoint_id); END;
    CREATE TRIGGER webhook_delivery_changes AFTER UPDATE OF queue ON webhook_deliveries WHEN new.queue <> old.queue
      BEGIN UPDATE webhook_waiting SET count = count + (
        SELECT (new.queue = queue) - (old.queue = queue) FROM webhook_waiting WHERE endpoint_id = new.endpoint_id
      ) WHERE endpoint_id IN ('', new.endpoint_id); END;
    CREATE TABLE webhook_logs (organization_id TEXT PRIMARY KEY, revision INTEGER NOT NULL) WITHOUT ROWID;`,

  project(rows, events) {
    const batch = new Batch(rows);
    for (const event of events) batch.take(event);
    batch.end();
  },
};

/** Projects one batch of events, looking up only once what they share. */
class Batch {
  private readonly endpoints = new Map<string, readonly WebhookEndpoint[]>();
  private readonly parents = new Map<string, string | undefined>();
  /** Types of activities that have begun in this batch and not ended. */
  private readonly types = new Map<string, string>();
  private hasEndpoints: boolean;

  constructor(private readonly rows: Rows) {
    this.hasEndpoints = hasWebhookEndpoints(rows);
  }

  take(projected: ProjectedEvent): void {
    const { organizationId, position, revision, at, event } = projected;
    switch (event.type) {
      case 'OrganizationCreated': {
        const { parentOrganizationId } = event.data;
        if (parentOrganizationId === undefined) return;
        this.rows.run('INSERT OR REPLACE INTO webhook_parents VALUES (?, ?)', organizationId, parentOrganizationId);
        return;
      }
      case 'OrganizationDeleted':
        for (const { endpointId } of endpointsOf(this.rows, organizationId)) this.delete(organizationId, endpointId);
        return;
      case 'WebhookEndpointCreated':
        this.rows.run(
          'INSERT OR REPLACE INTO webhook_endpoints VALUES (?, ?, ?, 0, ?)',
          organizationId,
          event.data.endpointId,
          position,
          JSON.stringify(event.data),
        );
        this.rows.run(
          'INSERT OR IGNORE INTO webhook_waiting VALUES (?, ?, 1, 0)',
          event.data.endpointId,
          organizationId,
        );
        this.hasEndpoints = true;
        this.endpoints.delete(organizationId);
        return;
      case 'WebhookEndpointUpdated':
        return this.update(organizationId, event.data);
      case 'WebhookEndpointDeleted':
        return this.delete(organizationId, event.data.endpointId);
      case 'ActivitySubmitted':
        this.types.set(event.data.activityId, event.data.type);
        return this.queue(projected, event);
      case 'ActivityApproved':
      case 'ActivityRejected':
      case 'ActivityCompleted':
      case 'ActivityFailed':
        return this.queue(projected, event);
      case 'WebhookDelivered':
      case 'WebhookAttemptFailed':
      case 'WebhookDeliveryAbandoned':
      case 'WebhookRedeliveryRequested':
        this.rows.run('INSERT OR REPLACE INTO webhook_logs VALUES (?, ?)', organizationId, revision);
        return this.settle(organizationId, event, at);
    }
  }

  /** Stores the types of activities that continue after this batch. */
  end(): void {
    for (const [activityId, type] of this.types) {
      this.rows.run('INSERT OR REPLACE INTO webhook_activities VALUES (?, ?)', activityId, type);
    }
  }

  private update(organizationId: string, changes: { readonly endpointId: string; readonly isActive?: boolean }): void {
    const { endpointId } = changes;
    const known = endpointsOf(this.rows, organizationId).find((endpoint) => endpoint.endpointId === endpointId);
    if (!known) return;
    this.rows.run(
      'UPDATE webhook_endpoints SET doc = ? WHERE organization_id = ? AND endpoint_id = ?',
      JSON.stringify({ ...known, ...changes }),
      organizationId,
      endpointId,
    );
    this.endpoints.delete(organizationId);
    if (changes.isActive === false) this.drop(endpointId);
  }

  private delete(organizationId: string, endpointId: string): void {
    this.rows.run(
      'UPDATE webhook_endpoints SET deleted = 1 WHERE organization_id = ? AND endpoint_id = ?',
      organizationId,
      endpointId,
    );
    this.endpoints.delete(organizationId);
    this.drop(endpointId);
  }

  /** Drops all that waits for an endpoint; takes no longer for much than for little, because nobody waits for that. */
  private drop(endpointId: string): void {
    const { rows } = this;
    const { queue, count } = waitingFor(rows, endpointId);
    if (count <= mostRewritten) {
      rows.run(
        `UPDATE webhook_deliveries SET state = 'dropped', queue = 0, retry_at = NULL, doc = json_set(doc, '$.state', 'dropped')
         WHERE endpoint_id = ? AND state = 'pending' AND queue = ?`,
        endpointId,
        queue,
      );
      return;
    }
    rows.run('UPDATE webhook_waiting SET queue = queue + 1, count = 0 WHERE endpoint_id = ?', endpointId);
    rows.run(`UPDATE webhook_waiting SET count = count - ? WHERE endpoint_id = ''`, count);
  }

  /** An activity has reached a status: subscribed endpoints have to be notified. */
  private queue({ organizationId, id, position, revision, at }: ProjectedEvent, { data }: StatusEvent): void {
    const { activityId, status } = data;
    // It continues in the same append, whose last event has its final status.
    if (status === 'ACTIVITY_STATUS_PENDING') return;
    const type = this.typeOf(activityId, status);
    if (!this.hasEndpoints) return;
    for (const owner of [organizationId, this.parentOf(organizationId)]) {
      if (owner === undefined) continue;
      for (const endpoint of this.endpointsOf(owner)) {
        if (!wantsActivityUpdate(endpoint, { type, status })) continue;
        const { endpointId } = endpoint;
        const { queue } = waitingFor(this.rows, endpointId);
        const delivery: WebhookDelivery = {
          organizationId: owner,
          endpointId,
          eventId: id,
          sourceOrganizationId: organizationId,
          activityId,
          activityType: type,
          activityStatus: status,
          revision,
          state: 'pending',
          attempts: 0,
          retryAt: 0,
          since: at,
          createdAt: at,
          updatedAt: at,
        };
        this.rows.run(
          `INSERT OR IGNORE INTO webhook_deliveries VALUES (?, ?, ?, ?, ?, ?, ?, CASE WHEN EXISTS (
             SELECT 1 FROM webhook_deliveries INDEXED BY webhook_deliveries_in_order
             WHERE endpoint_id = ? AND queue = ? AND activity_id = ? AND state = 'pending'
           ) THEN NULL ELSE ? END, ?)`,
          endpointId,
          position,
          owner,
          id,
          activityId,
          delivery.state,
          queue,
          endpointId,
          queue,
          activityId,
          delivery.retryAt,
          JSON.stringify(delivery),
        );
        this.dropOldest(endpointId, this.parentOf(owner) === undefined ? mostWaiting : mostWaitingOfSubOrganization);
      }
    }
  }

  private dropOldest(endpointId: string, most: number): void {
    const { queue, count } = waitingFor(this.rows, endpointId);
    const beyond = count - most;
    if (beyond <= 0) return;
    const oldest = this.rows.all(
      `SELECT position, doc FROM webhook_deliveries INDEXED BY webhook_deliveries_by_state
       WHERE endpoint_id = ? AND state = 'pending' AND queue = ? ORDER BY position LIMIT ?`,
      endpointId,
      queue,
      beyond,
    );
    for (const { position, doc } of oldest) {
      const reason = `more than ${most} deliveries were waiting for this endpoint`;
      const dropped: WebhookDelivery = { ...readDelivery(doc), state: 'dropped', reason };
      this.rows.run(
        `UPDATE webhook_deliveries SET state = 'dropped', queue = 0, retry_at = NULL, doc = ? WHERE endpoint_id = ? AND position = ?`,
        JSON.stringify(dropped),
        endpointId,
        BigInt(position!),
      );
      this.letFirstGo(dropped);
    }
  }

  private settle(organizationId: string, event: WebhookDeliveryEvent, at: number): void {
    const { endpointId, eventId } = event.data;
    const row = this.rows.get(
      // Without a hint, SQLite may walk all deliveries to the endpoint.
      `SELECT position, queue, doc FROM webhook_deliveries INDEXED BY webhook_deliveries_by_event
       WHERE endpoint_id = ? AND event_id = ? AND organization_id = ?`,
      endpointId,
      eventId,
      organizationId,
    );
    if (!row) return;
    const delivery = readDelivery(row['doc']);
    if (event.type === 'WebhookRedeliveryRequested') {
      const endpoint = this.endpointsOf(organizationId).find((one) => one.endpointId === endpointId);
      if (!endpoint?.isActive) return;
    }
    const settled = settledBy(delivery, event, at);
    const isAgain = event.type === 'WebhookRedeliveryRequested';
    const queue = isAgain ? waitingFor(this.rows, endpointId).queue : Number(row['queue']);
    this.rows.run(
      'UPDATE webhook_deliveries SET state = ?, queue = ?, retry_at = NULL, doc = ? WHERE endpoint_id = ? AND position = ?',
      settled.state,
      settled.state === 'pending' ? queue : 0,
      JSON.stringify(settled),
      endpointId,
      BigInt(row['position']!),
    );
    this.letFirstGo(settled);
  }

  /**
   * After a change of one, of the pending deliveries of an activity to an endpoint the first is due when it says so, and no
   * other: the second had been the first if one before it is delivered again.
   */
  private letFirstGo({ endpointId, activityId }: WebhookDelivery): void {
    const [first, second] = this.rows.all(
      `SELECT position, retry_at, doc FROM webhook_deliveries INDEXED BY webhook_deliveries_in_order
       WHERE endpoint_id = ? AND queue = ? AND activity_id = ? AND state = 'pending' ORDER BY position LIMIT 2`,
      endpointId,
      waitingFor(this.rows, endpointId).queue,
      activityId,
    );
    const set = (row: Row, retryAt: number | null): void =>
      this.rows.run(
        'UPDATE webhook_deliveries SET retry_at = ? WHERE endpoint_id = ? AND position = ?',
        retryAt,
        endpointId,
        BigInt(row['position']!),
      );
    if (second && second['retry_at'] !== null) set(second, null);
    if (first && first['retry_at'] === null) set(first, readDelivery(first['doc']).retryAt);
  }

  /** The type of an activity, which is removed when the activity ends. */
  private typeOf(activityId: string, status: ActivityStatus): string {
    const isOpen = status === 'ACTIVITY_STATUS_CONSENSUS_NEEDED' || status === 'ACTIVITY_STATUS_AUTHENTICATORS_NEEDED';
    const known = this.types.get(activityId);
    if (known !== undefined) {
      if (!isOpen) this.types.delete(activityId);
      return known;
    }
    const row = this.rows.get('SELECT type FROM webhook_activities WHERE activity_id = ?', activityId);
    if (!row) throw new Error(`activity \`${activityId}\` has come to \`${status}\` before it was submitted`);
    if (!isOpen) this.rows.run('DELETE FROM webhook_activities WHERE activity_id = ?', activityId);
    return String(row['type']);
  }

  private endpointsOf(organizationId: string): readonly WebhookEndpoint[] {
    let endpoints = this.endpoints.get(organizationId);
    if (!endpoints) this.endpoints.set(organizationId, (endpoints = endpointsOf(this.rows, organizationId)));
    return endpoints;
  }

  private parentOf(organizationId: string): string | undefined {
    if (!this.parents.has(organizationId)) {
      const row = this.rows.get('SELECT parent_id FROM webhook_parents WHERE organization_id = ?', organizationId);
      this.parents.set(organizationId, row && String(row['parent_id']));
    }
    return this.parents.get(organizationId);
  }
}

function settledBy(delivery: WebhookDelivery, event: WebhookDeliveryEvent, at: number): WebhookDelivery {
  const { status: _status, reason: _reason, ...rest } = delivery;
  if (event.type === 'WebhookRedeliveryRequested') {
    return { ...rest, state: 'pending', attempts: 0, retryAt: 0, since: at, updatedAt: at };
  }
  const { attempts, status } = event.data;
  const tried = { ...rest, attempts, updatedAt: at, ...(status === undefined ? {} : { status }) };
  switch (event.type) {
    case 'WebhookDelivered':
      return { ...tried, state: 'delivered' };
    case 'WebhookAttemptFailed':
      // Stays dropped if its endpoint was paused in the meantime.
      return { ...tried, reason: event.data.reason, retryAt: event.data.retryAt };
    case 'WebhookDeliveryAbandoned':
      return { ...tried, state: 'abandoned', reason: event.data.reason };
  }
}

const readDelivery = (doc: unknown): WebhookDelivery => JSON.parse(String(doc)) as WebhookDelivery;

/** All endpoints of an organization in order of creation. */
function endpointsOf(rows: Rows, organizationId: string): WebhookEndpoint[] {
  return rows
    .all(
      'SELECT doc FROM webhook_endpoints WHERE organization_id = ? AND deleted = 0 ORDER BY created, endpoint_id',
      organizationId,
    )
    .map(({ doc }) => JSON.parse(String(doc)) as WebhookEndpoint);
}

/** Whether there is any endpoint: without one, there is nothing to deliver. */
export function hasWebhookEndpoints(rows: Rows): boolean {
  return (
    rows.get('SELECT 1 FROM webhook_endpoints INDEXED BY webhook_endpoints_there WHERE deleted = 0 LIMIT 1') !==
    undefined
  );
}

/** An endpoint with something waiting, its owner, and when the first of it is due. */
interface EndpointWithDeliveries {
  readonly endpointId: string;
  readonly organizationId: string;
  readonly parentOrganizationId: string | undefined;
  readonly dueAt: number;
}

/**
 * The endpoints with something to deliver, now or later, in order of their ids, from behind one of them on; takes one look-up per
 * endpoint, however much is waiting.
 */
export function* endpointsWithDeliveries(rows: Rows, after = ''): Generator<EndpointWithDeliveries, void, undefined> {
  for (let last = after; ;) {
    const row = rows.get(
      `SELECT endpoint_id, waiting.organization_id, parent_id, (
         SELECT min(retry_at) FROM webhook_deliveries AS due INDEXED BY webhook_deliveries_due
         WHERE due.endpoint_id = waiting.endpoint_id AND due.queue = waiting.queue
           AND state = 'pending' AND retry_at IS NOT NULL
       ) AS retry_at
       FROM webhook_waiting AS waiting INDEXED BY webhook_waiting_some
       LEFT JOIN webhook_parents AS parents ON parents.organization_id = waiting.organization_id
       WHERE count > 0 AND endpoint_id > ? ORDER BY endpoint_id LIMIT 1`,
      last,
    );
    if (!row) return;
    last = String(row['endpoint_id']);
    const parent = row['parent_id'];
    yield {
      endpointId: last,
      organizationId: String(row['organization_id']),
      parentOrganizationId: typeof parent === 'string' ? parent : undefined,
      dueAt: Number(row['retry_at']),
    };
  }
}

/** Number of waiting deliveries, including retries. */
export function pendingDeliveries(rows: Rows): number {
  return waitingFor(rows, '').count;
}

/** The queue of an endpoint, and the number of deliveries in it; under the empty id, those of all. */
function waitingFor(rows: Rows, endpointId: string): { readonly queue: number; readonly count: number } {
  const row = rows.get('SELECT queue, count FROM webhook_waiting WHERE endpoint_id = ?', endpointId);
  return { queue: Number(row?.['queue'] ?? 0), count: Number(row?.['count'] ?? 0) };
}

/**
 * The due deliveries to an endpoint, longest due first, at most this many: of each activity only the oldest unsettled
 * one, because its updates are delivered in order. Costs the same however many wait behind those, or for a later time.
 * @param except ids of events that are not wanted, but still come before later ones of their activities
 */
export function dueDeliveries(
  rows: Rows,
  endpointId: string,
  now: number,
  limit: number,
  except: readonly string[] = [],
): WebhookDelivery[] {
  return rows
    .all(
      `SELECT doc FROM webhook_deliveries INDEXED BY webhook_deliveries_due
       WHERE endpoint_id = ? AND queue = ? AND state = 'pending' AND retry_at <= ?
         AND event_id NOT IN (SELECT value FROM json_each(?))
       ORDER BY retry_at, position LIMIT ?`,
      endpointId,
      waitingFor(rows, endpointId).queue,
      now,
      JSON.stringify(except),
      limit,
    )
    .map(({ doc }) => readDelivery(doc));
}

/** Revision of the last known event in an organization's log of deliveries; -1 if there is none. */
export function deliveryLogRevision(rows: Rows, organizationId: string): number {
  const row = rows.get('SELECT revision FROM webhook_logs WHERE organization_id = ?', organizationId);
  return row ? Number(row['revision']) : -1;
}

class SubscriptionShape {
  @Text()
  eventType!: string;

  @Text({ optional: true, about: 'As submitted.' })
  filtersJson?: string;

  @Flag()
  isActive!: boolean;
}

class WebhookEndpointDataShape {
  @Uuid()
  endpointId!: string;

  @Uuid()
  organizationId!: string;

  @Text()
  url!: string;

  @Text()
  name!: string;

  @Flag()
  isActive!: boolean;

  @ListOf(() => SubscriptionShape)
  subscriptions!: readonly SubscriptionShape[];
}

class ListWebhookEndpointsResponse extends PagedResponse {
  @ListOf(() => WebhookEndpointDataShape)
  webhookEndpoints!: readonly WebhookEndpointDataShape[];
}

export const listWebhookEndpoints = defineQuery({
  path: 'list_webhook_endpoints',
  summary: 'All webhook endpoints of an organization, oldest first.',
  request: OrganizationRequest,
  response: ListWebhookEndpointsResponse,
  answer: async ({ organizationId }, { rows, page }) => ({
    webhookEndpoints: await page({
      inTurn: endpointsOf(rows, organizationId).map((one) => webhookEndpointResource(organizationId, one)),
      isBackward: false,
    }),
  }),
});

class ListWebhookDeliveriesRequest extends PaginatedRequest {
  @Uuid({ about: 'The endpoint; it may be a deleted one.' })
  endpointId!: string;

  @OneOf(deliveryStates, { optional: true, about: 'Only deliveries in this state.' })
  filterByState?: string;
}

class WebhookDeliveryShape {
  @Uuid({ about: 'Id of the recorded event; every attempt sends it as X-Turnkey-Event-Id.' })
  eventId!: string;

  @Uuid()
  endpointId!: string;

  @Text()
  eventType!: string;

  @Uuid({ about: 'Organization of the activity: this one, or one of its sub-organizations.' })
  organizationId!: string;

  @Uuid()
  activityId!: string;

  @Text()
  activityType!: string;

  @Text({ about: 'The new status of the activity.' })
  activityStatus!: string;

  @OneOf(deliveryStates, {
    about: 'Dropped: the endpoint was stopped or deleted before delivery, or too many were waiting for it.',
  })
  state!: WebhookDelivery['state'];

  @Described({ type: 'integer' }, { about: 'Number of attempts so far, since the last redelivery was requested.' })
  attempts!: number;

  @Described({ type: 'integer' }, { optional: true, about: 'HTTP status of the latest attempt that got a response.' })
  httpStatus?: number;

  @Described(
    { type: 'string' },
    { optional: true, about: 'Why the latest attempt failed, or why the delivery was given up.' },
  )
  reason?: string;

  @Nested(() => TimestampShape, { optional: true, about: 'When it will be retried.' })
  retryAt?: TimestampShape;

  @Nested(() => TimestampShape, { about: 'When its event was recorded.' })
  createdAt!: TimestampShape;

  @Nested(() => TimestampShape)
  updatedAt!: TimestampShape;
}

class ListWebhookDeliveriesResponse extends PagedResponse {
  @ListOf(() => WebhookDeliveryShape)
  webhookDeliveries!: readonly WebhookDeliveryShape[];
}

export const listWebhookDeliveries = defineQuery({
  path: 'list_webhook_deliveries',
  summary: 'Deliveries to a webhook endpoint, successful or not, newest first. A Countersign extension.',
  request: ListWebhookDeliveriesRequest,
  response: ListWebhookDeliveriesResponse,
  async answer({ organizationId, endpointId, filterByState, paginationOptions }, { rows, page }) {
    const place = [organizationId, endpointId] as const;
    if (!rows.get('SELECT 1 FROM webhook_endpoints WHERE organization_id = ? AND endpoint_id = ?', ...place)) {
      throw new CoordinatorError(
        'NOT_FOUND',
        `no webhook endpoint \`${endpointId}\` in organization \`${organizationId}\`: ` + `see list_webhook_endpoints`,
      );
    }
    const { queue } = waitingFor(rows, endpointId);
    const positionOf = (eventId: string): bigint | undefined => {
      const sql = `SELECT position FROM webhook_deliveries INDEXED BY webhook_deliveries_by_event
        WHERE endpoint_id = ? AND event_id = ?`;
      const row = rows.get(sql, endpointId, eventId);
      return row && BigInt(row['position']!);
    };
    const found = newestFirst(
      rows,
      {
        table: 'webhook_deliveries',
        column: 'position',
        order: 'position',
        runs: runsOf(endpointId, filterByState, queue),
        orderOf: positionOf,
      },
      paginationOptions,
    );
    const read = (at: string) => deliveryResource(deliveryAt(rows, endpointId, { position: BigInt(at), queue }));
    return { webhookDeliveries: await page(elementsOf(found, read)) };
  },
});

/** The parts of a list of deliveries in a state; what waits in a queue before this one, its endpoint's, is dropped. */
function runsOf(endpointId: string, state: string | undefined, queue: number): readonly Run[] {
  const of = { endpoint_id: endpointId };
  if (state === undefined) return [of];
  if (state === 'pending') return [{ ...of, state, queue: String(queue) }];
  const run = { ...of, state, queue: '0' };
  if (state !== 'dropped') return [run];
  const ended = Array.from({ length: queue - 1 }, (_, at) => ({ ...of, state: 'pending', queue: String(at + 1) }));
  return [run, ...ended];
}

function deliveryAt(
  rows: Rows,
  endpointId: string,
  { position, queue }: { readonly position: bigint; readonly queue: number },
): WebhookDelivery {
  const sql = 'SELECT queue, doc FROM webhook_deliveries WHERE endpoint_id = ? AND position = ?';
  const row = rows.get(sql, endpointId, position)!;
  const delivery = readDelivery(row['doc']);
  const isDropped = delivery.state === 'pending' && Number(row['queue']) !== queue;
  return isDropped ? { ...delivery, state: 'dropped' } : delivery;
}

function deliveryResource(delivery: WebhookDelivery): WebhookDeliveryShape {
  const { eventId, endpointId, sourceOrganizationId, activityId, activityType, activityStatus } = delivery;
  const { state, attempts, status, reason, retryAt, createdAt, updatedAt } = delivery;
  return {
    eventId,
    endpointId,
    eventType: 'ACTIVITY_UPDATES',
    organizationId: sourceOrganizationId,
    activityId,
    activityType,
    activityStatus,
    state,
    attempts,
    ...(status === undefined ? {} : { httpStatus: status }),
    ...(reason === undefined ? {} : { reason }),
    ...(state === 'pending' && retryAt > 0 ? { retryAt: timestamp(retryAt) } : {}),
    createdAt: timestamp(createdAt),
    updatedAt: timestamp(updatedAt),
  };
}
