import { organizationStream, type OrganizationView } from '../../domain/organization/organization.js';
import type { EventMetadata } from '../../ledger/chain.js';
import type { EventReader, RecordedEvent } from '../../ledger/event-store.js';
import { fold, nothingLoaded, type LoadedOrganization } from '../../ledger/loaded-organization.js';
import { isSameAppend } from '../../read-models/events.js';
import type { Point } from '../../read-models/states.js';
import { decidingTypes } from '../verify/deciding-events.js';
import { foldToPoint, keptState } from './fold-to.js';
import type { Confirmed } from './nearest-state.js';
import { checkReached } from './point-reached.js';
import type { ReplayCache } from './replay-cache.js';

/** Events between two kept states: folding so many takes a fraction of a second. */
const usualEvery = 10_000;
/** Maximum entries of all kept states together; beyond, every second state is dropped. An entry takes about fifty bytes. */
const mostEntries = 4_000_000;
/** How many recently requested states are kept. */
const mostLately = 4;

interface Kept {
  readonly loaded: LoadedOrganization;
  readonly entries: number;
}

export interface ReplayOptions {
  /** Called now and then with the number of events so far. */
  readonly onProgress?: (events: number) => void;
  /** Events between two kept states, if not the default. */
  readonly every?: number;
  /** Where passes leave their states for later ones; by default nowhere. */
  readonly cache?: ReplayCache;
}

const progressEvery = 5_000;

/**
 * One organization's history, for moving back and forth. A first pass folds all of it, checks the chain and keeps states on
 * the way, so that every event is near one. Events recorded afterwards are ignored.
 */
export class OrganizationReplay {
  /** For each event, by revision. */
  private readonly types: string[] = [];
  private readonly typeNames = new Map<string, string>();
  private readonly times: number[] = [];
  private readonly positions: number[] = [];
  /** Revision of the event that records its decision; -1 if unknown. */
  private readonly decidedAt: number[] = [];
  private kept: Kept[] = [];
  /** Entries of the states in the cache. */
  private cachedEntries = 0;
  private every: number;
  /** Recently requested states, from which stepping continues. They are never changed. */
  private lately: LoadedOrganization[] = [];

  private constructor(
    readonly store: EventReader,
    readonly organizationId: string,
    every: number,
    private readonly cache: ReplayCache | undefined,
  ) {
    this.every = every;
  }

  /**
   * @throws {BrokenChain} if an event is not the one that was recorded
   * @throws {CoordinatorError} NOT_FOUND if the organization has no events
   */
  static async open(
    store: EventReader,
    organizationId: string,
    { onProgress, every = usualEvery, cache }: ReplayOptions = {},
  ): Promise<OrganizationReplay> {
    const replay = new OrganizationReplay(store, organizationId, every, cache);
    const started = await replay.begin();
    const current = started?.loaded ?? nothingLoaded();
    let before = started?.event;
    for await (const event of store.read(organizationStream(organizationId), current.revision + 1, current.hash)) {
      fold(current, event);
      replay.note(event, before);
      before = event;
      if (event.revision % replay.every === 0) replay.keep(copyOf(current));
      if (event.revision % progressEvery === 0) onProgress?.(event.revision);
    }
    checkReached(organizationId, { by: 'newest' }, current.revision);
    replay.lately = [current];
    await replay.leave();
    return replay;
  }

  /** Continues from an earlier pass, if that was on this history. */
  private async begin(): Promise<Confirmed | undefined> {
    const left = await this.cache?.begin(this.store, this.organizationId);
    if (!left) return undefined;
    const { every, entries, names, types, times, positions, decidedAt } = left.index;
    // There are enough of them: this pass keeps fewer.
    if (entries > mostEntries) return undefined;
    for (let revision = 0; revision < types.length; revision++) {
      this.types.push(names[types[revision]!]!);
      this.times.push(times[revision]!);
      this.positions.push(positions[revision]!);
      this.decidedAt.push(decidedAt[revision]!);
    }
    for (const name of names) this.typeNames.set(name, name);
    this.every = every;
    this.cachedEntries = entries;
    return left.last;
  }

  /** Saves the states of this pass for the next one, unless the history is short and quickly folded. */
  private async leave(): Promise<void> {
    const { cache, kept, organizationId, every } = this;
    const revision = kept.at(-1)?.loaded.revision ?? 0;
    if (!cache || revision === 0) return;
    if (this.cachedEntries === 0) await cache.forget(organizationId);
    const names = [...this.typeNames.keys()];
    const places = new Map(names.map((name, place) => [name, place]));
    const upTo = revision + 1;
    await cache.keep(
      organizationId,
      kept.map(({ loaded }) => loaded),
      {
        ...{ revision, every, names },
        entries: this.cachedEntries + kept.reduce((sum, { entries }) => sum + entries, 0),
        types: Uint16Array.from(this.types.slice(0, upTo), (name) => places.get(name)!),
        times: Float64Array.from(this.times.slice(0, upTo)),
        positions: Float64Array.from(this.positions.slice(0, upTo)),
        decidedAt: Int32Array.from(this.decidedAt.slice(0, upTo)),
      },
    );
  }

  /** Revision of the last event. */
  get last(): number {
    return this.types.length - 1;
  }

  /** The type of an event. */
  typeOf(revision: number): string {
    return this.types[revision]!;
  }

  /** Revision of the event with the request and the decision that caused this one, if known. */
  decisionOf(revision: number): number | undefined {
    const at = this.decidedAt[revision]!;
    return at < 0 ? undefined : at;
  }

  /** The nearest decision after an event, or before it; undefined if there is none. */
  nextDecision(revision: number, step: 1 | -1): number | undefined {
    for (let at = revision + step; at >= 0 && at <= this.last; at += step) {
      if (decidingTypes.has(this.types[at]!)) return at;
    }
    return undefined;
  }

  /**
   * The last event up to a point.
   * @throws {CoordinatorError} NOT_FOUND if there is none
   */
  revisionAt(point: Point): number {
    const upTo = (values: readonly number[], most: number) => {
      let [low, high] = [0, values.length];
      while (low < high) {
        const middle = (low + high) >>> 1;
        if (values[middle]! <= most) low = middle + 1;
        else high = middle;
      }
      return low - 1;
    };
    const found = () => {
      switch (point.by) {
        case 'newest':
          return this.last;
        case 'revision':
          return Math.min(point.revision, this.last);
        case 'position':
          return upTo(this.positions, Number(point.position));
        case 'time':
          return upTo(this.times, point.time);
      }
    };
    const revision = found();
    checkReached(this.organizationId, point, revision);
    return revision;
  }

  /** The organization after an event; at revision -1, before the first one. */
  async stateAt(revision: number): Promise<OrganizationView> {
    return (await this.foldedTo(revision)).organization;
  }

  /** Like `stateAt`, with what further folding needs; the caller may change it. */
  async loadedAt(revision: number): Promise<LoadedOrganization> {
    return copyOf(await this.foldedTo(revision));
  }

  private async foldedTo(revision: number): Promise<LoadedOrganization> {
    if (revision < 0) return nothingLoaded();
    const near = [...this.kept.map(({ loaded }) => loaded), ...this.lately]
      .filter((loaded) => loaded.revision <= revision)
      .reduce((best, loaded) => (loaded.revision > best.revision ? loaded : best), nothingLoaded());
    if (near.revision === revision) return near;
    const from = (await this.cachedAfter(near.revision, revision)) ?? copyOf(near);
    const loaded = await foldToPoint(this.store, this.organizationId, { by: 'revision', revision }, from);
    this.lately = [...this.lately.slice(1 - mostLately), loaded];
    return loaded;
  }

  /** A nearer state in the cache. */
  private async cachedAfter(revision: number, upTo: number): Promise<LoadedOrganization | undefined> {
    // There is none between two that follow each other.
    if (upTo - (upTo % this.every) <= revision) return undefined;
    const found = await this.cache?.nearest(this.store, this.organizationId, upTo);
    return found && found.loaded.revision > revision ? found.loaded : undefined;
  }

  /** At most so many events from a revision on. */
  async events(from: number, count: number): Promise<RecordedEvent[]> {
    const events: RecordedEvent[] = [];
    if (count <= 0) return events;
    for await (const event of this.store.read(organizationStream(this.organizationId), from)) {
      if (event.revision > this.last) break;
      if (events.push(event) === count) break;
    }
    return events;
  }

  /** Every event of the first pass. */
  async *everyEvent(): AsyncGenerator<RecordedEvent> {
    for await (const event of this.store.read(organizationStream(this.organizationId))) {
      if (event.revision > this.last) return;
      yield event;
    }
  }

  /** A decision and its effects. */
  async decision(revision: number): Promise<RecordedEvent[]> {
    let end = revision + 1;
    while (end <= this.last && this.decidedAt[end] === revision) end++;
    return this.events(revision, end - revision);
  }

  private note(event: RecordedEvent, before: RecordedEvent | undefined): void {
    const { type, revision, position, metadata } = event;
    // One string per type, however many events have it.
    const known = this.typeNames.get(type) ?? type;
    this.typeNames.set(known, known);
    this.types.push(known);
    this.times.push((metadata as EventMetadata).at);
    this.positions.push(Number(position));
    const isOfBefore = before !== undefined && isSameAppend(before, event);
    this.decidedAt.push(decidingTypes.has(type) ? revision : isOfBefore ? this.decidedAt[revision - 1]! : -1);
  }

  private keep(loaded: LoadedOrganization): void {
    const entries = Object.values(loaded.organization)
      .map((slice: unknown) => (slice instanceof Map ? slice.size : 1))
      .reduce((sum, size) => sum + size, 0);
    this.kept.push({ loaded, entries });
    if (this.kept.reduce((sum, one) => sum + one.entries, 0) <= mostEntries) return;
    this.kept = this.kept.filter((_, index) => index % 2 === 0);
    this.every *= 2;
  }
}

/** Its records are never changed, so only the maps are copied. */
function copyOf(loaded: LoadedOrganization): LoadedOrganization {
  return {
    ...loaded,
    organization: keptState(loaded.organization),
    pending: [...loaded.pending],
    recent: new Map(loaded.recent),
  };
}
