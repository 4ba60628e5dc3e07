import { isDeepStrictEqual } from 'node:util';
import { beginningOf, recordedChild, type Founding } from '../decide/found-organization.js';
import { fingerprintOf } from '../decide/fingerprint.js';
import type { Registry } from '../decide/registry.js';
import type { DenialEvent } from '../domain/activity/denial.js';
import type { ActivityEvent, Vote } from '../domain/activity/events.js';
import { CoordinatorError } from '../domain/errors.js';
import { marksImport } from '../domain/organization/imported.js';
import { organizationStream, type OrganizationEvent } from '../domain/organization/organization.js';
import { GENESIS_HASH, verifyCanonicalChain, type EventMetadata } from '../ledger/chain.js';
import { StoreUnavailable, type EventReader, type RecordedEvent } from '../ledger/event-store.js';
import { foldTo } from './fold-to.js';
import {
  decidingTypes,
  eventOf,
  isNumbered,
  NotDecidable,
  Redeciding,
  type ParentAt,
  type Redecided,
} from './decide-again.js';
import { everythingIn } from './everything.js';
import type { KeptProgress } from './kept-progress.js';
import { StampThread } from './stamp-thread.js';
import { problemWith, type RecordedStamp } from './verify-vote.js';

/** Something in the store that no correct history has. */
interface Finding {
  readonly stream: string;
  readonly revision: number;
  readonly position: bigint;
  /** What is wrong, as a sentence. */
  readonly problem: string;
}

/** What was checked, and what was found. */
export interface Verification {
  readonly events: number;
  readonly streams: number;
  /** Decisions that were made again. */
  readonly decisions: number;
  /** Decisions of earlier releases, by rules without a number: they are folded, and cannot be made again. */
  readonly unnumbered: number;
  /** Stamps of requests, votes and denials whose signature is valid for the stored bytes. */
  readonly stamps: number;
  /**
   * Denials whose request was too long to be stored in full, or was stamped by a passkey: their stamps cannot be
   * verified.
   */
  readonly stampsNotKept: number;
  /**
   * Stamps of events that an export has redacted, which no key verifies any more; only in a history imported for tests.
   */
  readonly stampsRedacted: number;
  readonly findings: readonly Finding[];
  /** There were more findings than these. */
  readonly isCut: boolean;
}

export interface VerifyOptions {
  readonly registry: Registry;
  /** Called now and then with the number of events so far, and the part of the store that is done, from 0 to 1. */
  readonly onProgress?: (events: number, share: number) => void;
  /** Called with each event before it is checked; the next event waits for it. */
  readonly onEvent?: (recorded: RecordedEvent) => Promise<void> | undefined;
  /** Verify stamps in a separate thread, which pays off from a few hundred stamps on. */
  readonly threads?: boolean;
  /** Where it saves its progress, and continues from after an interruption. */
  readonly progress?: KeptProgress;
  /** Findings after which it stops; 100 by default. */
  readonly maxFindings?: number;
}

const progressEvery = 1_000;

/**
 * Folds the whole store again and trusts nothing in it: checks the chain of every stream that has one, verifies every
 * stored stamp over its bytes, and makes every decision again on the events before it, by the rules that applied. Only
 * reads. What a token or an attestation vouched for is not verified again, because its issuer may be gone.
 * @throws {StoreUnavailable} if the store cannot be read
 */
export async function verifyHistory(
  store: EventReader,
  { registry, onProgress, onEvent, threads = false, progress, maxFindings = 100 }: VerifyOptions,
): Promise<Verification> {
  const thread = threads ? new StampThread() : undefined;
  const history = new History(store, registry, thread ?? { problemWith, isBusy: true });
  try {
    const head = (await store.head()) ?? 0n;
    const kept = await progress?.read();
    if (kept) history.goOn(kept.state);
    let isKnown = kept === undefined;
    let events = 0;
    let before: RecordedEvent | undefined;
    for await (const recorded of everythingIn(store)) {
      await onEvent?.(recorded);
      if (++events % progressEvery === 0) onProgress?.(events, Number(recorded.position) / Number(head));
      if (kept && recorded.position <= kept.position) {
        if (recorded.position === kept.position) isKnown = linkOf(recorded) === kept.hash;
        continue;
      }
      if (!isKnown) break;
      if (before && progress?.isDue && history.endsBefore(recorded)) {
        const { position } = before;
        await progress.write({ events, position, hash: linkOf(before), state: await history.soFar() });
      }
      await history.take(recorded);
      before = recorded;
      if (history.findings.length >= maxFindings) break;
    }
    if (!isKnown) throw new Error('the saved progress is of another history: remove its file, or choose another');
    if (history.findings.length < maxFindings) history.end();
    await history.settled();
    onProgress?.(events, 1);
    await progress?.remove();
    const { counts, streams } = history;
    const findings = history.findings.toSorted((one, other) => Number(one.position - other.position));
    return {
      events,
      streams,
      ...counts,
      findings: findings.slice(0, maxFindings),
      isCut: findings.length >= maxFindings,
    };
  } finally {
    await thread?.close();
  }
}

/** The verifier of stamps; while it is busy, we wait. */
type StampVerifier = Pick<StampThread, 'problemWith' | 'isBusy'>;

/** One organization while its stream is read. */
interface Followed {
  readonly redeciding: Redeciding;
  /** Fingerprint and user of each stamp. */
  words: Set<string>;
  /** Its first broken event was found: nothing can be said about what follows. */
  isLost: boolean;
  last: RecordedEvent | undefined;
  /** The last event that recorded a decision. */
  deciding: RecordedEvent | undefined;
}

/** @see History.soFar */
interface State {
  readonly findings: Finding[];
  readonly counts: History['counts'];
  readonly hashes: Map<string, { hash: string; revision: number }>;
  readonly isImported: boolean;
  readonly organizations: readonly (readonly [
    string,
    Omit<Followed, 'redeciding'> & { readonly folded: ReturnType<Redeciding['soFar']> },
  ])[];
}

/** Our own streams that are read from their first event; the others lose events over time, and decide nothing. */
const chained = /^(organization|denials|claims|webhook-deliveries|vault|installation)-/;
const organizationName = /^organization-(.+)$/;

class History {
  findings: Finding[] = [];
  counts = { decisions: 0, unnumbered: 0, stamps: 0, stampsNotKept: 0, stampsRedacted: 0 };
  /** Imported by a test harness (docs/adr/0065). */
  private isImported = false;
  private hashes = new Map<string, { hash: string; revision: number }>();
  private readonly organizations = new Map<string, Followed>();
  /** The organization whose last decision has not been made again yet. */
  private open: Followed | undefined;
  /** The parent as that decision saw it, if it was the parent's. */
  private parent: ReturnType<ParentAt> | undefined;
  private readonly verifying = new Set<Promise<void>>();

  constructor(
    private readonly store: EventReader,
    private readonly registry: Registry,
    private readonly stamps: StampVerifier,
  ) {}

  get streams(): number {
    return this.hashes.size;
  }

  async take(recorded: RecordedEvent): Promise<void> {
    // A decision is one append, and no event of another stream lies between its events.
    if (this.open?.deciding?.stream !== recorded.stream) this.end();
    if (!chained.test(recorded.stream)) return;
    const hash = this.follow(recorded);
    const organizationId = organizationName.exec(recorded.stream)?.[1];
    if ((recorded.metadata as Partial<EventMetadata> | null)?.redacted && !this.isImported) {
      this.found(recorded, 'it is marked as redacted, which only events in a history imported for tests may be');
    }
    if (organizationId === undefined) {
      if (recorded.type === 'CoordinatorInstalled')
        this.isImported = (recorded.data as Founding).imported !== undefined;
      if (hash !== undefined && recorded.type === 'ActivityDenied') await this.checkDenial(recorded);
      return;
    }
    const followed = this.followed(organizationId);
    if (hash === undefined) followed.isLost = true;
    else if (!followed.isLost) await this.checkEvent(organizationId, followed, recorded, hash);
  }

  /**
   * Whether the collected events are complete, because the event starts something else; then all of them are checked.
   */
  endsBefore({ stream, type }: RecordedEvent): boolean {
    if (this.open?.deciding?.stream === stream && !decidingTypes.has(type)) return false;
    this.end();
    return true;
  }

  /** Everything needed to continue elsewhere, serializable by `v8.serialize`. */
  async soFar(): Promise<State> {
    await this.settled();
    const { findings, counts, hashes, isImported } = this;
    const organizations = [...this.organizations].map(([organizationId, followed]) => {
      const { redeciding, words, isLost, last, deciding } = followed;
      const folded = redeciding.soFar();
      return [organizationId, { folded, words, isLost, last: plainly(last), deciding: plainly(deciding) }] as const;
    });
    return { findings, counts, hashes, isImported, organizations };
  }

  /** Continues from another one's state. */
  goOn(state: unknown): void {
    const { findings, counts, hashes, isImported, organizations } = state as State;
    Object.assign(this, { findings, counts, hashes, isImported });
    for (const [organizationId, { folded, words, isLost, last, deciding }] of organizations) {
      const followed = this.followed(organizationId);
      followed.redeciding.goOn(folded);
      Object.assign(followed, { words, isLost, last, deciding });
    }
  }

  /** Resolves once every stamp seen is verified. */
  async settled(): Promise<void> {
    await Promise.all(this.verifying);
  }

  /** Makes the decision of the last collected events again. */
  end(): void {
    if (this.open && !this.open.isLost) this.settle(this.open);
    this.open = undefined;
  }

  /** The event's link, if it is the next one in its stream's chain. */
  private follow(recorded: RecordedEvent): string | undefined {
    const { stream, revision } = recorded;
    const before = this.hashes.get(stream) ?? { hash: GENESIS_HASH, revision: -1 };
    if (before.hash === '') return undefined;
    try {
      if (revision !== before.revision + 1) throw new Error(`revision ${before.revision} comes before it in the store`);
      const hash = verifyCanonicalChain(before.hash, recorded);
      this.hashes.set(stream, { hash, revision });
      return hash;
    } catch (error) {
      this.hashes.set(stream, { hash: '', revision });
      this.found(recorded, `${messageOf(error)}; the rest of this stream was not checked`);
      return undefined;
    }
  }

  private followed(organizationId: string): Followed {
    const known = this.organizations.get(organizationId);
    if (known) return known;
    const redeciding = new Redeciding(this.registry, (authority) => this.parentsAt(authority));
    const made: Followed = { redeciding, words: new Set(), isLost: false, last: undefined, deciding: undefined };
    this.organizations.set(organizationId, made);
    return made;
  }

  private parentsAt({ organizationId, revision }: Parameters<ParentAt>[0]): ReturnType<ParentAt> {
    if (this.parent) return this.parent;
    throw new Error(
      `it was decided on revision ${revision} of organization \`${organizationId}\`, which cannot be folded`,
    );
  }

  private async checkEvent(
    organizationId: string,
    followed: Followed,
    recorded: RecordedEvent,
    hash: string,
  ): Promise<void> {
    followed.last = recorded;
    let event: OrganizationEvent;
    try {
      event = eventOf(recorded);
      if (followed.redeciding.isNextDecision(recorded)) {
        this.end();
        if (followed.isLost) return;
        this.open = followed;
        followed.deciding = recorded;
        if (!isNumbered(event)) this.counts.unnumbered++;
        this.parent = await this.parentOf(event);
      } else if (marksImport(event)) {
        // No decision has it among its effects.
        this.end();
      }
      followed.redeciding.take(recorded, hash);
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
      this.lost(followed, error);
      return;
    }
    if (event.type === 'OrganizationCreated') await this.checkFounding(organizationId, recorded);
    if (isVoted(event)) await this.checkVote(followed, recorded, event.data.vote);
  }

  /** The parent's decision in its sub-organization was based on one revision of the parent's stream. */
  private async parentOf(event: OrganizationEvent): Promise<ReturnType<ParentAt> | undefined> {
    if (event.type !== 'ActivitySubmitted' || !event.data.decision.authority) return undefined;
    const { organizationId, revision } = event.data.decision.authority;
    const followed = this.organizations.get(organizationId);
    if (followed && !followed.isLost && followed.redeciding.revision === revision) return followed.redeciding.folded();
    // The parent has continued since. Without one, the decision turns out to have none.
    return foldTo(this.store, organizationId, revision).catch((error: unknown) => {
      if (error instanceof StoreUnavailable) throw error;
      return undefined;
    });
  }

  private async checkVote(followed: Followed, recorded: RecordedEvent, vote: Vote): Promise<void> {
    // The identical body from another user counts as that user's vote (client protocol 2.5).
    const word = `${vote.fingerprint} ${vote.userId}`;
    if (followed.words.has(word)) {
      this.found(recorded, `the same signed request of the same user, ${vote.fingerprint}, is recorded twice`);
    }
    followed.words.add(word);
    await this.checkStamp(recorded, { vote }, `the stamp of user \`${vote.userId}\``);
  }

  private async checkStamp(recorded: RecordedEvent, stamp: RecordedStamp, name: string): Promise<void> {
    if (this.isImported && (recorded.metadata as EventMetadata).redacted) {
      this.counts.stampsRedacted++;
      return;
    }
    const checked = this.stamps.problemWith(stamp).then((problem) => {
      this.verifying.delete(checked);
      if (problem === undefined) this.counts.stamps++;
      else this.found(recorded, `${name} does not verify: ${problem}`);
    });
    this.verifying.add(checked);
    // The caller waiting for all of them sees the error.
    checked.catch(() => undefined);
    if (this.stamps.isBusy) await Promise.race(this.verifying);
  }

  private async checkDenial(recorded: RecordedEvent): Promise<void> {
    const denial = recorded.data as DenialEvent['data'];
    if (denial.publicKey === undefined || fingerprintOf(Buffer.from(denial.message)) !== denial.fingerprint) {
      this.counts.stampsNotKept++;
      return;
    }
    const { message, publicKey, signature, scheme } = denial;
    await this.checkStamp(
      recorded,
      { denial: { message, publicKey, signature, scheme } },
      'the stamp of a denied request',
    );
  }

  /** A sub-organization must match what its parent recorded about it. */
  private async checkFounding(organizationId: string, recorded: RecordedEvent): Promise<void> {
    const { parentOrganizationId, parentRevision } = recorded.data as {
      readonly parentOrganizationId?: string;
      readonly parentRevision?: number;
    };
    if (parentOrganizationId === undefined || parentRevision === undefined) return;
    for await (const said of this.store.read(organizationStream(parentOrganizationId), parentRevision)) {
      const child = recordedChild(said, parentRevision);
      if (child?.subOrganizationId !== organizationId) break;
      const beginning = beginningOf(child).map(factOf);
      const stored = await this.firstOf(recorded.stream, beginning.length);
      const isAlike = isDeepStrictEqual(stored.map(factOf), beginning);
      if (!isAlike) this.found(recorded, `it does not begin as \`${parentOrganizationId}\` recorded it`);
      return;
    }
    this.found(
      recorded,
      `organization \`${parentOrganizationId}\` has not recorded this sub-organization at its revision ${parentRevision}`,
    );
  }

  private async firstOf(stream: string, count: number): Promise<RecordedEvent[]> {
    const events: RecordedEvent[] = [];
    for await (const event of this.store.read(stream)) {
      if (events.push(event) === count) break;
    }
    return events;
  }

  /** Makes the decision again that an organization's last events belong to. */
  private settle(followed: Followed): void {
    const { redeciding, deciding } = followed;
    try {
      const made = redeciding.settle();
      if (made && deciding) this.compare(deciding, made);
    } catch (error) {
      if (error instanceof NotDecidable && deciding) {
        this.counts.decisions++;
        this.found(deciding, `no decision could have recorded this: ${messageOf(error.cause)}`);
      } else this.lost(followed, error);
    }
  }

  private compare(deciding: RecordedEvent, { activityType, outcome, outcomeAgain, recorded, again }: Redecided): void {
    this.counts.decisions++;
    if (outcome !== outcomeAgain) {
      this.found(deciding, `${activityType} was decided \`${outcome}\`, but deciding again yields \`${outcomeAgain}\``);
      return;
    }
    const length = Math.max(recorded.length, again.length);
    const at = Array.from({ length }, (_, index) => index).find(
      (index) => !isDeepStrictEqual(recorded[index], again[index]),
    );
    if (at === undefined) return;
    this.found(deciding, `${activityType} yields a different event than this one`, deciding.revision + at);
  }

  private lost(followed: Followed, error: unknown): void {
    followed.isLost = true;
    this.found(followed.last!, `cannot be folded: ${messageOf(error)}; the rest of this stream was not checked`);
  }

  private found({ stream, revision, position }: RecordedEvent, problem: string, at = revision): void {
    this.findings.push({ stream, revision: at, position, problem });
  }
}

type Voted = Extract<ActivityEvent, { data: { vote: unknown } }>;

function isVoted(event: OrganizationEvent): event is Voted {
  return 'vote' in event.data;
}

function linkOf({ metadata }: RecordedEvent): string | undefined {
  return (metadata as Partial<EventMetadata> | null)?.hash;
}

/** Only where it stands is asked of an event that is behind. */
function plainly(event: RecordedEvent | undefined): RecordedEvent | undefined {
  if (!event) return undefined;
  const { stream, revision, position, id, type } = event;
  return { stream, revision, position, id, type, data: null, metadata: null };
}

function factOf({ type, data, metadata }: Pick<RecordedEvent, 'type' | 'data' | 'metadata'>): unknown {
  return { type, data, hash: (metadata as EventMetadata).hash };
}

function messageOf(error: unknown): string {
  if (error instanceof CoordinatorError) return `${error.code}: ${error.message}`;
  return error instanceof Error ? error.message : String(error);
}
