import { setMaxListeners } from 'node:events';
import type { Term } from '../coordinator/lease-term.js';
import type { Clock } from '../coordinator/ports.js';
import type { WebhookDeliveryEvent } from '../domain/organization/webhook-deliveries.js';
import type { WebhookEndpoint } from '../domain/organization/webhook-endpoints.js';
import type { EventStore } from '../event-store/event-store.js';
import type { GuardedFetch } from '../http-client/guarded-fetch.js';
import type { Rows } from '../read-models/database.js';
import {
  deliveryLogRevision,
  dueDeliveries,
  endpointsWithDeliveries,
  type WebhookDelivery,
} from '../read-models/webhooks.js';
import { attempt, longestLifeMs, retryAt, type Signer } from './attempt.js';
import { DeliveryLog } from './delivery-log.js';

/** What became of an attempt, for metrics and the log. */
interface DeliveryObserver {
  settled(outcome: 'delivered' | 'retrying' | 'abandoned', delivery: WebhookDelivery, reason?: string): void;
  /** The store or the read model did not answer; the delivery is taken up again. */
  interrupted(error: unknown): void;
}

interface Ports {
  readonly rows: Rows;
  readonly store: EventStore;
  readonly clock: Clock;
  readonly fetch: GuardedFetch;
  readonly signer: Signer;
  /** The endpoint as it is recorded now, whatever the rows say; undefined when it is gone. */
  readonly endpoint: (organizationId: string, endpointId: string) => Promise<WebhookEndpoint | undefined>;
  /** What is told: the activity as the delivery's event left it. */
  readonly body: (delivery: WebhookDelivery) => object;
  /** Resolves when the rows hold everything up to the position. @throws when they never will */
  readonly passed: (position: bigint, signal: AbortSignal) => Promise<void>;
  readonly observer: DeliveryObserver;
}

/** Deliveries on their way to one endpoint at a time; one while it fails. */
const mostPerEndpoint = 4;
/** Deliveries on their way at a time, and those of them that go to endpoints that fail: these must not crowd out others. */
const most = 128;
const mostFailing = 32;
/** After an attempt that failed the whole endpoint rests, a second at first and a minute at most. */
const shortestRestMs = 1_000;
const longestRestMs = 60_000;
/** How often it is looked whether a retry is due, in milliseconds; what is new is told of. */
const lookMs = 250;
/** What is on its way when the work is to end may take so long, in milliseconds. */
const windDownMs = 2_000;

/** What is known of an endpoint while we deliver to it. */
interface Lane {
  /** Ids of the events that are on their way. */
  readonly busy: Set<string>;
  failuresInARow: number;
  restUntil: number;
}

/**
 * Delivers what waits in the rows, as long as a term lasts. Each endpoint has its own lane, so that a slow one holds up
 * nobody else, and of each activity one update is on its way at a time, so that they arrive in order (docs/adr/0020).
 */
export class WebhookDeliveries {
  private readonly lanes = new Map<string, Lane>();
  private hasNews = false;
  private wakeUp: () => void = () => undefined;

  constructor(private readonly ports: Ports) {}

  /** Something new may wait. */
  wake(): void {
    this.hasNews = true;
    this.wakeUp();
  }

  /** Delivers until the term ends; resolves when nothing is on its way any more. */
  async work(term: Term): Promise<void> {
    const { rows, store, clock, passed } = this.ports;
    // Under the term before, others may have delivered what our rows still have waiting.
    await passed((await store.head()) ?? -1n, term.signal);
    const log = new DeliveryLog(
      store,
      clock,
      (organizationId) => deliveryLogRevision(rows, organizationId),
      term.token,
    );
    const calledOff = new AbortController();
    setMaxListeners(most + 1, calledOff.signal);
    const running = new Set<Promise<void>>();
    this.lanes.clear();
    while (term.isHeld()) {
      this.hasNews = false;
      for (const { lane, delivery } of this.startable()) {
        lane.busy.add(delivery.eventId);
        const one = this.deliver(delivery, lane, { term, log, signal: calledOff.signal })
          .catch((error: unknown) => {
            // Once the term is over whatever breaks off is the next one's to do.
            if (!term.signal.aborted) this.interrupted(lane, error);
          })
          .finally(() => {
            lane.busy.delete(delivery.eventId);
            running.delete(one);
            this.wake();
          });
        running.add(one);
      }
      await this.sleep(term.signal);
    }
    const late = setTimeout(() => calledOff.abort(), windDownMs);
    await Promise.all(running);
    clearTimeout(late);
  }

  private *startable(): Generator<{ readonly lane: Lane; readonly delivery: WebhookDelivery }, void, undefined> {
    const now = this.ports.clock.now();
    for (const endpointId of endpointsWithDeliveries(this.ports.rows)) {
      const lane = this.laneOf(endpointId);
      const room = (lane.failuresInARow > 0 ? 1 : mostPerEndpoint) - lane.busy.size;
      if (room <= 0 || now < lane.restUntil) continue;
      const due = dueDeliveries(this.ports.rows, endpointId, now, room + lane.busy.size);
      for (const delivery of due.filter(({ eventId }) => !lane.busy.has(eventId)).slice(0, room)) {
        if (!this.hasRoom(lane)) break;
        yield { lane, delivery };
      }
    }
  }

  private hasRoom({ failuresInARow }: Lane): boolean {
    const busy = [...this.lanes.values()].filter((lane) => lane.busy.size > 0);
    const count = (lanes: readonly Lane[]) => lanes.reduce((sum, lane) => sum + lane.busy.size, 0);
    if (count(busy) >= most) return false;
    return failuresInARow === 0 || count(busy.filter((lane) => lane.failuresInARow > 0)) < mostFailing;
  }

  private laneOf(endpointId: string): Lane {
    let lane = this.lanes.get(endpointId);
    if (!lane) this.lanes.set(endpointId, (lane = { busy: new Set(), failuresInARow: 0, restUntil: 0 }));
    return lane;
  }

  private async deliver(
    delivery: WebhookDelivery,
    lane: Lane,
    { term, log, signal }: { readonly term: Term; readonly log: DeliveryLog; readonly signal: AbortSignal },
  ): Promise<void> {
    const { ports } = this;
    const { organizationId, endpointId, activityId } = delivery;
    await term.assertCurrent();
    const endpoint = await ports.endpoint(organizationId, endpointId);
    if (!endpoint?.isActive) {
      // The rows have yet to see it, and drop what waits.
      await ports.passed((await ports.store.head()) ?? -1n, term.signal);
      return;
    }
    const event = await this.outcomeOf(delivery, endpoint, lane, term.token, signal);
    if (!event) return;
    const position = await log.record(organizationId, activityId, event);
    const reason = 'reason' in event.data ? event.data.reason : undefined;
    ports.observer.settled(settledAs[event.type], delivery, reason);
    // Until then it would look as if it still waited.
    await ports.passed(position, term.signal);
  }

  /** Tries, and says what is to be recorded; nothing when the attempt was called off by us. */
  private async outcomeOf(
    delivery: WebhookDelivery,
    { url }: WebhookEndpoint,
    lane: Lane,
    token: number,
    signal: AbortSignal,
  ): Promise<SettledEvent | undefined> {
    const { clock, fetch, signer, body } = this.ports;
    const { endpointId, eventId, sourceOrganizationId, since, attempts: before } = delivery;
    const name = { endpointId, eventId, token };
    if (clock.now() - since > longestLifeMs) {
      const reason = `not delivered within ${longestLifeMs / 3_600_000} hours`;
      return { type: 'WebhookDeliveryAbandoned', data: { ...name, attempts: before, reason } };
    }
    const message = {
      url,
      eventId,
      eventType: 'ACTIVITY_UPDATES',
      organizationId: sourceOrganizationId,
      body: Buffer.from(JSON.stringify(body(delivery))),
    };
    const outcome = await attempt(message, { fetch, signer, now: clock.now(), signal });
    if (signal.aborted && outcome.kind !== 'delivered') return undefined;
    const attempts = before + 1;
    const status = outcome.status === undefined ? {} : { status: outcome.status };
    // Whoever answers is there, whatever the answer.
    if (outcome.kind === 'failed') rest(lane, clock.now());
    else lane.failuresInARow = 0;
    if (outcome.kind === 'delivered') {
      return { type: 'WebhookDelivered', data: { ...name, attempts, ...status } };
    }
    const { reason } = outcome;
    const next = outcome.kind === 'failed' ? retryAt(attempts, clock.now()) : undefined;
    return next === undefined
      ? { type: 'WebhookDeliveryAbandoned', data: { ...name, attempts, ...status, reason } }
      : { type: 'WebhookAttemptFailed', data: { ...name, attempts, ...status, reason, retryAt: next } };
  }

  private interrupted(lane: Lane, error: unknown): void {
    rest(lane, this.ports.clock.now());
    this.ports.observer.interrupted(error);
  }

  private sleep(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', wake);
        this.wakeUp = () => undefined;
        resolve();
      };
      const timer = setTimeout(wake, lookMs);
      timer.unref();
      signal.addEventListener('abort', wake);
      this.wakeUp = wake;
      if (signal.aborted || this.hasNews) wake();
    });
  }
}

type SettledEvent = Exclude<WebhookDeliveryEvent, { type: 'WebhookRedeliveryRequested' }>;

const settledAs = {
  WebhookDelivered: 'delivered',
  WebhookAttemptFailed: 'retrying',
  WebhookDeliveryAbandoned: 'abandoned',
} as const satisfies Record<SettledEvent['type'], string>;

function rest(lane: Lane, now: number): void {
  lane.restUntil = now + Math.min(longestRestMs, shortestRestMs * 2 ** lane.failuresInARow);
  lane.failuresInARow += 1;
}
