import { isDeepStrictEqual } from 'node:util';
import { beginningOf, recordedChild } from '../../decide/found-organization.js';
import type { Registry } from '../../decide/registry.js';
import { denialStream } from '../../domain/activity/denial.js';
import { recordedForm } from '../../domain/activity/recorded-form.js';
import { organizationStream } from '../../domain/organization/organization.js';
import type { EventMetadata } from '../../ledger/chain.js';
import type { RecordedEvent } from '../../ledger/event-store.js';
import { emptyTail, seal, type Fact, type Tail } from '../../ledger/seal.js';
import { NotDecidable, Redeciding } from '../verify/decide-again.js';
import { decidingTypes } from '../verify/deciding-events.js';
import type { HistoryEvent, HistoryHeader } from './history-file.js';
import { dataOf, withoutLiveSecrets, type Seen } from './live-secrets.js';
import type { Redactor } from './redact.js';

type Home = Pick<HistoryHeader, 'organizationId' | 'parentOrganizationId'>;

/** Events of one append that start with a decision, or one event that belongs to none. */
interface Unit {
  readonly stream: string;
  readonly events: RecordedEvent[];
}

/** Rebuilds events whose data changes, and every later link of the chain. */
export class Rewriting {
  changed = 0;
  readonly otherwise: string[] = [];
  private unit: Unit | undefined;
  private readonly tails = new Map<string, Tail>();
  /** Streams in which something changed: from there on, the chain differs. */
  private readonly broken = new Set<string>();
  private readonly redeciding = new Map<string, Redeciding>();
  /** The start of the organization's stream, as its parent recorded it. */
  private beginning: readonly HistoryEvent[] = [];

  constructor(
    private readonly home: Home,
    private readonly seen: Seen,
    private readonly registry: Registry,
    private readonly redactor: Redactor | undefined,
  ) {
    if (!redactor) return;
    for (const id of [home.parentOrganizationId, home.organizationId]) {
      if (id === undefined) continue;
      const redeciding = new Redeciding(registry, (authority) => {
        const parent = this.redeciding.get(organizationStream(home.parentOrganizationId ?? ''))?.folded();
        if (parent?.revision !== authority.revision) throw new Error('the parent has changed in the meantime');
        return parent;
      });
      this.redeciding.set(organizationStream(id), redeciding);
    }
  }

  /** Takes the next event; returns those that it settles. */
  take(event: RecordedEvent): readonly HistoryEvent[] {
    const { unit } = this;
    if (unit && belongs(unit, event)) {
      unit.events.push(event);
      return [];
    }
    const settled = this.end();
    this.unit = { stream: event.stream, events: [event] };
    return settled;
  }

  end(): readonly HistoryEvent[] {
    const { unit } = this;
    this.unit = undefined;
    return unit ? this.rewritten(unit) : [];
  }

  private rewritten({ stream, events }: Unit): readonly HistoryEvent[] {
    const known = this.founded(stream, events);
    if (known) return known;
    const told = events.map((event) => {
      const before = dataOf(event);
      const readable = withoutLiveSecrets(event, before, this.seen);
      return { event, before, data: this.redactor ? this.redactor.data(readable) : readable };
    });
    const isSame = told.every(({ before, data }) => data === before);
    if (isSame && !this.broken.has(stream)) {
      const { revision, metadata } = events.at(-1)!;
      this.tails.set(stream, { revision, hash: (metadata as EventMetadata).hash });
      return events;
    }
    this.broken.add(stream);
    const facts = told.map(({ event, before, data }) => this.factOf(event, before, data));
    return this.decided(stream, facts);
  }

  /** The start of a sub-organization's stream derives from its parent's event, including ids and links. */
  private founded(stream: string, events: readonly RecordedEvent[]): readonly HistoryEvent[] | undefined {
    if (!this.redactor || stream !== organizationStream(this.home.organizationId)) return undefined;
    const known = this.beginning.slice(events[0]!.revision, events[0]!.revision + events.length);
    if (known.length !== events.length) return undefined;
    this.changed += known.length;
    const redeciding = this.redeciding.get(stream);
    if (redeciding) this.follow(redeciding, known);
    this.keep(stream, known);
    return known;
  }

  private factOf({ id, type, metadata }: RecordedEvent, before: object, said: object): Fact {
    const { at, $correlationId, $causationId, unchained } = metadata as EventMetadata;
    const isChanged = !isDeepStrictEqual(said, before);
    if (isChanged) this.changed++;
    // Ids of events depend on their contents.
    const input = this.redactor ? {} : { id };
    return {
      ...input,
      type,
      data: recordedForm(type, said),
      metadata: {
        at,
        $correlationId,
        $causationId: this.redactor && $causationId !== $correlationId ? this.cause($causationId) : $causationId,
        ...(isChanged ? { redacted: true as const } : {}),
      },
      ...(unchained ? { unchained } : {}),
    };
  }

  private cause(id: string): string {
    return id.startsWith('sha256:') ? this.redactor!.fingerprint(id) : this.redactor!.id(id);
  }

  /** Decisions explain themselves in words that contain names: those words come from deciding on the pseudonyms. */
  private decided(stream: string, facts: readonly Fact[]): readonly HistoryEvent[] {
    const tail = this.tails.get(stream) ?? emptyTail;
    let made = this.sealed(stream, tail, facts);
    const redeciding = this.redeciding.get(stream);
    if (redeciding) {
      this.follow(redeciding, made);
      const again = this.settle(redeciding, stream, made);
      if (again) {
        const isSameLength = again.length <= made.length;
        const patched = facts.map((fact, index) => {
          const event = again[index] as { readonly type: string; readonly data: object } | undefined;
          return isSameLength && event?.type === fact.type
            ? { ...fact, data: recordedForm(fact.type, event.data) }
            : fact;
        });
        made = this.sealed(stream, tail, patched);
      }
    }
    this.keep(stream, made);
    return made;
  }

  private follow(redeciding: Redeciding, events: readonly HistoryEvent[]): void {
    for (const event of events) {
      redeciding.take({ ...event, position: 0n }, (event.metadata as EventMetadata).hash);
    }
  }

  /** The events as they come out, if they differ only in words. */
  private settle(redeciding: Redeciding, stream: string, made: readonly HistoryEvent[]): readonly object[] | undefined {
    try {
      const decided = redeciding.settle();
      if (!decided || isDeepStrictEqual(decided.recorded, decided.again)) return undefined;
      const { revision, activityType, outcome, outcomeAgain, recorded, again } = decided;
      const types = (events: readonly object[]) =>
        events.map((event) => (event as { readonly type: string }).type).join();
      if (outcome === outcomeAgain && types(recorded) === types(again)) return again;
      this.otherwise.push(
        `${stream} @ ${revision}: ${activityType} was decided \`${outcome}\`, and on the pseudonyms \`${outcomeAgain}\``,
      );
    } catch (error) {
      if (!(error instanceof NotDecidable)) throw error;
      const [{ revision }] = made as readonly [HistoryEvent];
      this.otherwise.push(`${stream} @ ${revision}: ${error.message}`);
    }
    return undefined;
  }

  private sealed(stream: string, tail: Tail, facts: readonly Fact[]): HistoryEvent[] {
    return seal(stream, tail, facts).events.map(({ id, type, data, metadata }, index) => ({
      stream,
      revision: tail.revision + 1 + index,
      id,
      type,
      data,
      metadata,
    }));
  }

  private keep(stream: string, events: readonly HistoryEvent[]): void {
    const { revision, metadata } = events.at(-1)!;
    this.tails.set(stream, { revision, hash: (metadata as EventMetadata).hash });
    const { organizationId, parentOrganizationId } = this.home;
    if (parentOrganizationId === undefined || stream !== organizationStream(parentOrganizationId)) return;
    for (const event of events) {
      const child = recordedChild(event, event.revision);
      if (child?.subOrganizationId !== organizationId) continue;
      const childStream = organizationStream(organizationId);
      this.beginning = beginningOf(child).map(({ id, type, data, metadata: about }, index) => {
        return { stream: childStream, revision: index, id, type, data, metadata: about };
      });
    }
  }
}

/** One append: a decision with its effects, or the founding of an organization. */
function belongs({ stream, events }: Unit, event: RecordedEvent): boolean {
  if (event.stream !== stream || decidingTypes.has(event.type)) return false;
  if (stream.startsWith(denialStream(''))) return false;
  const [first] = events as [RecordedEvent];
  const of = ({ metadata }: RecordedEvent) => {
    const { at, $correlationId, $causationId } = metadata as EventMetadata;
    return `${at} ${$correlationId} ${$causationId}`;
  };
  return of(first) === of(event);
}
