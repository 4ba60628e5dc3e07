import { setMaxListeners } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import type { Term } from '../lease/lease-term.js';
import type { Clock } from '../ports/clock.js';
import type { WebhookDeliveryEvent } from '../domain/organization/webhook-deliveries.js';
import type { WebhookEndpoint } from '../domain/organization/webhook-endpoints.js';
import type { EventStore } from '../ledger/event-store.js';
import { FairQueue } from '../fairness/fair-queue.js';
import { largeBody, thisThread, type TurnFor } from '../fairness/turns.js';
import type { GuardedFetch } from '../http-client/guarded-request.js';
import type { Rows } from '../read-models/database.js';
import {
  deliveryLogRevision,
  dueDeliveries,
  endpointsWithDeliveries,
  type WebhookDelivery,
} from '../read-models/webhooks.js';
import { attempt, contentOf, longestLifeMs, retryAt, type Content, type Signer } from './attempt.js';
import { DeliveryLog } from './delivery-log.js';
import { Lanes, rest, type Lane } from './lanes.js';
import { SharedResult } from './shared-result.js';
import { lanePath, mostDeliveries, openTo, roomOfEndpoint } from './shares.js';

/** The outcome of an attempt, for metrics and the log. */
interface DeliveryObserver {
  settled(outcome: 'delivered' | 'retrying' | 'abandoned', delivery: WebhookDelivery, reason?: string): void;
  /** The store or the read model did not respond; the delivery is resumed later. */
  interrupted(error: unknown): void;
}

interface Ports {
  readonly rows: Rows;
  readonly store: EventStore;
  readonly clock: Clock;
  readonly fetch: GuardedFetch;
  readonly signer: Signer;
  /** The endpoint as recorded now, whatever the rows say; undefined if deleted. */
  readonly endpoint: (organizationId: string, endpointId: string) => Promise<WebhookEndpoint | undefined>;
  /** The content: the activity as the delivery's event left it. What is large is made in several turns. */
  readonly body: (delivery: WebhookDelivery, turn: TurnFor) => Promise<object>;
  /** Resolves once the rows include everything up to the position. @throws if they never will */
  readonly passed: (position: bigint, signal: AbortSignal) => Promise<void>;
  /** Up to where the rows include everything. */
  readonly shown: () => bigint;
  readonly observer: DeliveryObserver;
}

/** An endpoint that takes longer to respond is slow, in milliseconds. */
const soonMs = 1_000;
/** Deliveries to one endpoint that are looked up together, beside those on their way. */
const page = 32;
/** Endpoints that one look reads: the next one goes on behind them. */
const mostLookedAt = 500;
/** Interval between checks for due retries, in milliseconds; new deliveries are announced. */
const lookMs = 250;
/** The share of the thread's time that checking may take, because there may be any number of endpoints. */
const lookShare = 0.2;
/** How long deliveries in flight may take when the work is to end, in milliseconds. */
const windDownMs = 2_000;

/**
 * Delivers what waits in the rows, as long as a term lasts. Each endpoint has its own lane, so that a slow one delays
 * nobody else; lanes take turns and have shares, so that nobody's endpoints delay another's (docs/adr/0024). Only one
 * update of each activity is in flight at a time, so that they arrive in order (docs/adr/0023).
 */
export class WebhookDeliveries {
  private lanes = new Lanes();
  private waiting = new FairQueue<Lane>();
  private lastShown = -1n;
  private hasNews = false;
  /** The endpoint that the latest look has ended with, and all since the first look of the round; '' and none between rounds. */
  private lookedUpTo = '';
  private withDeliveries = new Set<string>();
  private wakeUp: () => void = () => undefined;

  constructor(private readonly ports: Ports) {}

  /** Called when something new may be waiting. */
  wake(): void {
    this.hasNews = true;
    this.wakeUp();
  }

  /** Delivers until the term ends; resolves once nothing is in flight. */
  async work(term: Term): Promise<void> {
    const { rows, store, clock, passed } = this.ports;
    // During the previous term, others may have delivered what our rows still show as waiting.
    await passed((await store.head()) ?? -1n, term.signal);
    const log = new DeliveryLog(
      store,
      clock,
      (organizationId) => deliveryLogRevision(rows, organizationId),
      term.token,
    );
    const calledOff = new AbortController();
    setMaxListeners(mostDeliveries + 1, calledOff.signal);
    const isCurrent = new SharedResult(() => term.assertCurrent());
    const running = new Set<Promise<void>>();
    const during = { term, isCurrent, log, signal: calledOff.signal, running };
    this.lanes = new Lanes();
    this.waiting = new FairQueue();
    this.lookedUpTo = '';
    this.withDeliveries = new Set();
    while (term.isHeld()) {
      // What comes during a round may be of an endpoint that it has passed.
      if (this.lookedUpTo === '') this.hasNews = false;
      const started = performance.now();
      this.look(during);
      await pause((performance.now() - started) / lookShare);
      if (this.lookedUpTo === '') await this.sleep(term.signal);
    }
    const late = setTimeout(() => calledOff.abort(), windDownMs);
    await Promise.all(running);
    clearTimeout(late);
  }

  /**
   * Looks which endpoints have something due, and begins what there is room for. There may be any number of them, so each look of a
   * round reads so many at most, and only the last one knows which lanes are of no use any more.
   */
  private look(during: During): void {
    const now = this.ports.clock.now();
    const shown = this.ports.shown();
    if (shown !== this.lastShown) this.lanes.shown((this.lastShown = shown));
    let count = 0;
    let last = '';
    for (const endpoint of endpointsWithDeliveries(this.ports.rows, this.lookedUpTo)) {
      this.withDeliveries.add(endpoint.endpointId);
      const lane = this.lanes.of(endpoint);
      if (now >= endpoint.dueAt && now >= lane.restUntil) this.queue(lane);
      count += 1;
      if (count < mostLookedAt) continue;
      last = endpoint.endpointId;
      break;
    }
    this.lookedUpTo = last;
    if (last === '') {
      this.lanes.forgetAllBut(this.withDeliveries, now);
      this.withDeliveries = new Set();
    }
    this.beginQueued(now, during);
  }

  /** Something of a lane has ended: what the last look has found for it begins at once, since looking is rationed. */
  private goOn(lane: Lane, during: During): void {
    if (!during.term.isHeld()) return;
    if (lane.due.length > 0) this.queue(lane);
    else this.wake();
    this.beginQueued(this.ports.clock.now(), during);
  }

  /** Begins what waits, as long as there is room, in order of turns. */
  private beginQueued(now: number, during: During): void {
    for (let lane = this.next(); lane; lane = this.next()) {
      lane.isQueued = false;
      const delivery = roomOf(lane) > 0 && now >= lane.restUntil ? this.nextOf(lane, now) : undefined;
      if (!delivery) continue;
      this.begin(lane, delivery, during);
      if (lane.due.length > 0) this.queue(lane);
    }
  }

  private begin(lane: Lane, delivery: WebhookDelivery, during: During): void {
    const { term, running } = during;
    this.lanes.begin(lane, delivery.eventId);
    const one = this.deliver(delivery, lane, during)
      .catch((error: unknown) => {
        // After the term is over, whatever breaks off is left to the next holder.
        if (!term.signal.aborted) this.interrupted(lane, error);
      })
      .finally(() => {
        running.delete(one);
        if (this.lanes.end(lane, delivery.eventId)) this.goOn(lane, during);
      });
    running.add(one);
  }

  private nextOf(lane: Lane, now: number): WebhookDelivery | undefined {
    const { busy, settled, endpointId } = lane;
    if (lane.due.length === 0 || now - lane.dueAt > lookMs) {
      lane.due = dueDeliveries(this.ports.rows, endpointId, now, page, [...busy, ...settled.keys()]);
      lane.dueAt = now;
    }
    return lane.due.shift();
  }

  /**
   * The endpoint as it is now, if our term is, too.
   * @throws {CoordinatorError} ABORTED if the term is over
   */
  private async endpointOf(
    { organizationId, endpointId }: WebhookDelivery,
    isCurrent: SharedResult<void>,
  ): Promise<WebhookEndpoint | undefined> {
    const [endpoint] = await Promise.all([this.ports.endpoint(organizationId, endpointId), isCurrent.ask()]);
    return endpoint;
  }

  /** Where there is room, and it does not wait already. */
  private queue(lane: Lane): void {
    if (lane.isQueued || roomOf(lane) <= 0) return;
    lane.isQueued = true;
    this.waiting.push(lanePath(lane), lane);
  }

  /** The lane whose turn it is, out of those that have not used up their share. */
  private next(): Lane | undefined {
    const inFlight = this.lanes.busy().map(({ path, isProven, busy }) => ({ path, isProven, busy: busy.size }));
    return this.waiting.shift(openTo(inFlight));
  }

  private async deliver(delivery: WebhookDelivery, lane: Lane, during: During): Promise<void> {
    const { ports } = this;
    const { term, isCurrent, log } = during;
    const { organizationId, activityId, eventId } = delivery;
    // Nothing is sent before all of this is known.
    const [endpoint, content] = await Promise.all([
      this.endpointOf(delivery, isCurrent),
      isTooOld(delivery, ports.clock.now()) ? undefined : this.contentFor(delivery, lane),
    ]);
    if (!endpoint?.isActive) {
      lane.due = [];
      // The rows have yet to include this, and then drop what waits.
      await ports.passed((await ports.store.head()) ?? -1n, term.signal);
      return;
    }
    const event = content ? await this.outcomeOf(delivery, content, endpoint, lane, during) : tooOld(delivery, term);
    if (!event) return;
    // The next delivery does not wait for the record.
    lane.settled.set(eventId, undefined);
    this.lanes.end(lane, eventId);
    this.goOn(lane, during);
    try {
      lane.settled.set(eventId, await log.record(organizationId, activityId, event));
    } catch (error) {
      lane.settled.delete(eventId);
      throw error;
    }
    const reason = 'reason' in event.data ? event.data.reason : undefined;
    ports.observer.settled(settledAs[event.type], delivery, reason);
  }

  /** What is sent, in the turns of the endpoint's organization. */
  private async contentFor(delivery: WebhookDelivery, lane: Lane): Promise<Content> {
    const { clock, signer, body } = this.ports;
    const nextTurn = () => thisThread.next(lane.path);
    const turn: TurnFor = (characters) =>
      characters > largeBody ? thisThread.next(lane.path, { alone: true }) : undefined;
    const begins = thisThread.next(lane.path);
    if (begins) await begins;
    const value = await body(delivery, turn);
    const { eventId } = delivery;
    const content = await contentOf(value, { signer, eventId, at: clock.now(), turn: nextTurn });
    // Signing hashes it twice.
    await turn(content.body.length);
    return content;
  }

  /** Makes an attempt, and returns what to record; nothing if we cancelled the attempt. */
  private async outcomeOf(
    delivery: WebhookDelivery,
    content: Content,
    { url }: WebhookEndpoint,
    lane: Lane,
    { term: { token }, signal }: During,
  ): Promise<SettledEvent | undefined> {
    const { clock, fetch, signer } = this.ports;
    const { endpointId, eventId, sourceOrganizationId, attempts: before } = delivery;
    const name = { endpointId, eventId, fencingToken: token };
    const message = {
      url,
      endpointId,
      eventId,
      eventType: 'ACTIVITY_UPDATES',
      organizationId: sourceOrganizationId,
      content,
    };
    const started = performance.now();
    const late = setTimeout(() => {
      lane.late.add(eventId);
      lane.isProven = false;
    }, soonMs);
    const trying = attempt(message, { fetch, signer, signal });
    const outcome = await trying.finally(() => {
      clearTimeout(late);
      lane.late.delete(eventId);
    });
    const isSoon = performance.now() - started < soonMs;
    // A quick answer proves nothing while others are waited for.
    lane.isProven = outcome.kind !== 'failed' && isSoon && lane.late.size === 0;
    if (signal.aborted && outcome.kind !== 'delivered') return undefined;
    const attempts = before + 1;
    const status = outcome.status === undefined ? {} : { status: outcome.status };
    // Any response shows that someone is there.
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

/** What every delivery of a term needs. */
interface During {
  readonly term: Term;
  /** Whether the term is current by the store. */
  readonly isCurrent: SharedResult<void>;
  readonly log: DeliveryLog;
  /** Aborted when what is in flight after the term has had its time. */
  readonly signal: AbortSignal;
  /** Deliveries in flight. */
  readonly running: Set<Promise<void>>;
}

type SettledEvent = Exclude<WebhookDeliveryEvent, { type: 'WebhookRedeliveryRequested' }>;

const settledAs = {
  WebhookDelivered: 'delivered',
  WebhookAttemptFailed: 'retrying',
  WebhookDeliveryAbandoned: 'abandoned',
} as const satisfies Record<SettledEvent['type'], string>;

function isTooOld({ since }: WebhookDelivery, now: number): boolean {
  return now - since > longestLifeMs;
}

function tooOld({ endpointId, eventId, attempts }: WebhookDelivery, { token }: Term): SettledEvent {
  const reason = `not delivered within ${longestLifeMs / 3_600_000} hours`;
  return { type: 'WebhookDeliveryAbandoned', data: { endpointId, eventId, fencingToken: token, attempts, reason } };
}

/** How many more may go to an endpoint now; below 0 if it has turned slow with several in flight. */
function roomOf({ isProven, busy, settled }: Lane): number {
  return roomOfEndpoint({ isProven, settled: settled.size }) - busy.size;
}
