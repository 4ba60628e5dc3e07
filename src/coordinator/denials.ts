import { Inject, Injectable } from '@nestjs/common';
import { denialStream, longestDeniedMessage, type DenialBasis, type DenialEvent } from '../domain/activity/denial.js';
import type { CoordinatorError } from '../domain/errors.js';
import { verifyChain, type EventMetadata } from '../ledger/chain.js';
import { appendWithRetry } from '../ledger/append-with-retry.js';
import { EVENT_STORE, type EventStore } from '../ledger/event-store.js';
import { emptyTail } from '../ledger/seal.js';
import { CLOCK, type Clock } from '../ports/clock.js';
import { KNOWN_ACTIVITIES, type KnownActivities } from '../ports/known-activities.js';
import { PolicyDenial } from '../decide/refusals.js';
import { storeRefusal } from '../ledger/store-refusals.js';
import type { SubmitRequest } from './read-submit.js';

/** Denials of one organization recorded individually per minute; more are only counted. */
const perMinute = 60;
/** UTF-8 bytes of request bodies recorded with the denials of one organization a day; beyond, denials are only counted. */
const bytesPerDay = 10_000_000;
const dayMs = 24 * 60 * 60 * 1_000;
/** Attempts at an append after another coordinator was first. */
const maxAttempts = 5;
/** Organizations whose denial streams are kept open in memory; one that has counted this minute is never evicted. */
const maxOpenStreams = 10_000;

interface DenialStream {
  revision: number;
  hash: string;
  windowStart: number;
  inWindow: number;
  dayStart: number;
  bytesInDay: number;
  omitted: number;
  /** Denials being appended. */
  waiting: number;
  /** Appends to one stream run one after the other. */
  tail: Promise<void>;
}

/** Who is denied, and the decision that denies it. */
export interface Deniable {
  readonly userId: string;
  /** The time of the decision, milliseconds since the epoch. */
  readonly at: number;
  readonly basis: DenialBasis;
}

/**
 * Records denied requests in a stream of their own that is never folded: an auditor must be able to see them, and
 * nobody must be able to fill an organization's history by being refused.
 */
@Injectable()
export class DenialLog {
  private readonly streams = new Map<string, DenialStream>();

  constructor(
    @Inject(EVENT_STORE) private readonly store: EventStore,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(KNOWN_ACTIVITIES) private readonly known: Pick<KnownActivities, 'lastDenial'> = { lastDenial: () => -1 },
  ) {}

  /** Number of organizations remembered. */
  get open(): number {
    return this.streams.size;
  }

  /**
   * Resolves once the denial is durable, to its id; or to none if it was only counted because of too many this minute.
   * @param by undefined if nobody is known to have sent the request
   * @throws {CoordinatorError} UNAVAILABLE or ABORTED if it could not be recorded
   */
  record(
    organizationId: string,
    by: Deniable | undefined,
    request: SubmitRequest,
    denial: CoordinatorError,
  ): Promise<string | undefined> {
    const stream = this.streamOf(organizationId);
    stream.waiting += 1;
    const written = stream.tail
      .then(() => this.write(organizationId, by, stream, request, denial))
      .catch((error: unknown) => {
        throw storeRefusal(error, organizationId, maxAttempts);
      });
    stream.tail = written.catch(() => undefined).then(() => void (stream.waiting -= 1));
    return written;
  }

  private streamOf(organizationId: string): DenialStream {
    const open = this.streams.get(organizationId);
    if (open) return open;
    this.forgetOld();
    const stream: DenialStream = {
      revision: -2,
      hash: emptyTail.hash,
      windowStart: 0,
      inWindow: 0,
      dayStart: 0,
      bytesInDay: 0,
      omitted: 0,
      waiting: 0,
      tail: Promise.resolve(),
    };
    this.streams.set(organizationId, stream);
    return stream;
  }

  /** Frees an entry. Only one without a current count may go: otherwise an organization could record as much again. */
  private forgetOld(): void {
    if (this.streams.size < maxOpenStreams) return;
    const now = this.clock.now();
    for (const [organizationId, { windowStart, waiting }] of this.streams) {
      if (waiting === 0 && now - windowStart >= 60_000) this.streams.delete(organizationId);
    }
  }

  private async write(
    organizationId: string,
    by: Deniable | undefined,
    stream: DenialStream,
    request: SubmitRequest,
    denial: CoordinatorError,
  ): Promise<string | undefined> {
    const now = this.clock.now();
    if (now - stream.windowStart >= 60_000) {
      stream.windowStart = now;
      stream.inWindow = 0;
    }
    if (now - stream.dayStart >= dayMs) {
      stream.dayStart = now;
      stream.bytesInDay = 0;
    }
    const { version, fingerprint, text, stamp, timestampMs } = request;
    // Half a surrogate pair is not valid text and could not be hashed.
    const message = text.slice(0, longestDeniedMessage).replace(/[\ud800-\udbff]$/, '');
    const bytes = Buffer.byteLength(message);
    stream.inWindow += 1;
    if (stream.inWindow > perMinute || stream.bytesInDay + bytes > bytesPerDay) {
      stream.omitted += 1;
      return undefined;
    }
    stream.bytesInDay += bytes;
    const data: DenialEvent['data'] = {
      type: version.type,
      userId: by?.userId ?? '',
      ...by?.basis,
      fingerprint,
      timestampMs,
      message,
      scheme: stamp.scheme,
      ...(stamp.kind === 'webauthn' ? { credentialId: stamp.credentialId } : { publicKey: stamp.publicKey }),
      signature: stamp.signature,
      reason: denial.message,
      details: denial instanceof PolicyDenial ? denial.recordedDetails : denial.details,
      ...(stream.omitted > 0 ? { omittedBefore: stream.omitted } : {}),
    };
    const id = await this.append(organizationId, stream, fingerprint, by?.at ?? now, data);
    stream.omitted = 0;
    return id;
  }

  private async append(organizationId: string, stream: DenialStream, fingerprint: string, at: number, data: object) {
    const name = denialStream(organizationId);
    const metadata = { at, $correlationId: fingerprint, $causationId: fingerprint };
    const decide = async () => {
      await this.catchUp(organizationId, name, stream);
      const tail = { revision: stream.revision, hash: stream.hash };
      // Until this is known to be recorded, the stream has to be read again before the next.
      this.forget(stream);
      return { tail, facts: [{ type: 'ActivityDenied', data, metadata }] };
    };
    const added = await appendWithRetry(this.store, name, decide, { attempts: maxAttempts });
    Object.assign(stream, added?.tail);
    return added?.ids[0];
  }

  /** Reads from the last known denial, because there may be years of them. */
  private async catchUp(organizationId: string, name: string, stream: DenialStream): Promise<void> {
    if (stream.revision !== -2) return;
    const from = Math.max(0, this.known.lastDenial(organizationId));
    stream.revision = -1;
    for await (const event of this.store.read(name, from)) {
      const isFirst = stream.revision < 0 && event.revision > 0;
      stream.hash = isFirst ? (event.metadata as EventMetadata).hash : verifyChain(stream.hash, event);
      stream.revision = event.revision;
    }
  }

  private forget(stream: DenialStream): void {
    stream.revision = -2;
    stream.hash = emptyTail.hash;
  }
}
