import type { Founding } from '../decide/found-organization.js';
import { fingerprintOf } from '../decide/fingerprint.js';
import type { Registry } from '../decide/registry.js';
import type { DenialEvent } from '../domain/activity/denial.js';
import type { ActivityEvent, Vote } from '../domain/activity/events.js';
import { marksImport } from '../domain/organization/imported.js';
import type { OrganizationEvent } from '../domain/organization/organization.js';
import type { EventMetadata } from '../ledger/chain.js';
import { StoreUnavailable, type EventReader, type RecordedEvent } from '../ledger/event-store.js';
import { beginningIn } from './check-founding.js';
import { CheckedChains, isChained } from './checked-chains.js';
import type { FoldedOrganization } from './checked-vaults.js';
import { CheckedStamps, type StampVerifier } from './checked-stamps.js';
import { foldTo } from './fold-to.js';
import { NotDecidable, Redeciding } from './decide-again.js';
import { decidingTypes, eventOf, isNumbered } from './deciding-events.js';
import { difference, messageOf, type Finding } from './finding.js';
import type { ParentAt } from './recorded-basis.js';
import type { RecordedStamp } from './verify-vote.js';

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
  /** With how many events it begins that none of its decisions has recorded. */
  beginning: number;
}

/** @see History.soFar */
interface State {
  readonly findings: Finding[];
  readonly counts: History['counts'];
  readonly hashes: CheckedChains['ends'];
  readonly installed: Founding | undefined;
  readonly isNumbered: boolean;
  readonly organizations: readonly (readonly [
    string,
    Omit<Followed, 'redeciding'> & { readonly folded: ReturnType<Redeciding['soFar']> },
  ])[];
}

const organizationName = /^organization-(.+)$/;

/** A store while it is read from its first event: what each stream has come to, and what is wrong. */
export class History {
  findings: Finding[] = [];
  readonly counts = { decisions: 0, unnumbered: 0, stamps: 0, stampsNotKept: 0, stampsRedacted: 0 };
  /** The root organization, by the first event of `installation-root`. */
  private installed: Founding | undefined;
  /** Whether a decision of before said which rules made it. */
  private isNumbered = false;
  private readonly chains = new CheckedChains();
  private readonly organizations = new Map<string, Followed>();
  /** The organization whose last decision has not been made again yet. */
  private open: Followed | undefined;
  /** The parent as that decision saw it, if it was the parent's. */
  private parent: ReturnType<ParentAt> | undefined;
  private readonly stamps: CheckedStamps;

  constructor(
    private readonly store: EventReader,
    private readonly registry: Registry,
    stamps: StampVerifier,
  ) {
    this.stamps = new CheckedStamps(stamps, (recorded, name, problem) => {
      if (problem === undefined) this.counts.stamps++;
      else this.found(recorded, `${name} does not verify: ${problem}`);
    });
  }

  get streams(): number {
    return this.chains.ends.size;
  }

  async take(recorded: RecordedEvent): Promise<void> {
    // A decision is one append, and no event of another stream lies between its events.
    if (this.open?.deciding?.stream !== recorded.stream) this.end();
    if (!isChained(recorded.stream)) return;
    const hash = this.chains.follow(recorded, (problem) => this.found(recorded, problem));
    const organizationId = organizationName.exec(recorded.stream)?.[1];
    const followed = organizationId === undefined ? undefined : this.followed(organizationId);
    if (hash === undefined) {
      if (followed) followed.isLost = true;
      return;
    }
    try {
      if ((recorded.metadata as EventMetadata).redacted && !this.isImported) {
        this.found(recorded, 'it is marked as redacted, which only events in a history imported for tests may be');
      }
      if (!followed) await this.checkOther(recorded);
      else if (!followed.isLost) await this.checkEvent(organizationId!, followed, recorded, hash);
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
      if (followed) this.lost(followed, error);
      else this.found(recorded, `cannot be read: ${messageOf(error)}`);
    }
  }

  /** Imported by a test harness (docs/adr/0065). */
  private get isImported(): boolean {
    return this.installed?.imported !== undefined;
  }

  /** An event of a chained stream that is no organization's. */
  private async checkOther(recorded: RecordedEvent): Promise<void> {
    const { stream, revision, type, data } = recorded;
    if (type === 'ActivityDenied') await this.checkDenial(recorded);
    if (type !== 'CoordinatorInstalled') return;
    if (stream === 'installation-root' && revision === 0) this.installed = data as Founding;
    else this.found(recorded, 'only the first event of `installation-root` says what was installed');
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
    const { findings, counts, installed, isNumbered } = this;
    const hashes = this.chains.ends;
    const organizations = [...this.organizations].map(([organizationId, followed]) => {
      const { redeciding, words, isLost, last, deciding, beginning } = followed;
      const folded = redeciding.soFar();
      const plain = { last: plainly(last), deciding: plainly(deciding) };
      return [organizationId, { folded, words, isLost, beginning, ...plain }] as const;
    });
    return { findings, counts, hashes, installed, isNumbered, organizations };
  }

  /** Continues from another one's state. */
  goOn(state: unknown): void {
    const { findings, counts, hashes, installed, isNumbered, organizations } = state as State;
    this.findings = findings;
    this.installed = installed;
    this.isNumbered = isNumbered;
    this.chains.ends = hashes;
    Object.assign(this.counts, counts);
    for (const [organizationId, { folded, ...rest }] of organizations) {
      const followed = this.followed(organizationId);
      followed.redeciding.goOn(folded);
      Object.assign(followed, rest);
    }
  }

  /** Resolves once every stamp seen is verified. */
  async settled(): Promise<void> {
    await this.stamps.settled();
  }

  /** Makes the decision of the last collected events again. */
  end(): void {
    if (this.open && !this.open.isLost) this.settle(this.open);
    this.open = undefined;
  }

  /**
   * Every organization that could be folded to its end; none of a history imported for tests, whose secrets are
   * elsewhere. Only after `end`.
   */
  *folded(): Generator<FoldedOrganization> {
    if (this.isImported) return;
    for (const { redeciding, isLost, last } of this.organizations.values()) {
      if (!isLost && last) yield { organization: redeciding.folded().organization, last };
    }
  }

  private followed(organizationId: string): Followed {
    const known = this.organizations.get(organizationId);
    if (known) return known;
    const redeciding = new Redeciding(this.registry, (authority) => this.parentsAt(authority));
    const made: Followed = {
      redeciding,
      words: new Set(),
      isLost: false,
      last: undefined,
      deciding: undefined,
      beginning: 0,
    };
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
    const event = eventOf(recorded);
    if (followed.redeciding.isNextDecision(recorded)) {
      this.end();
      if (followed.isLost) return;
      this.open = followed;
      followed.deciding = recorded;
      this.noteNumber(recorded, event);
      this.parent = await this.parentOf(event);
    } else if (marksImport(event) && this.isImported) {
      // No decision has it among its effects.
      this.end();
    } else if (this.open !== followed) await this.checkUndecided(organizationId, followed, recorded, event);
    followed.redeciding.take(recorded, hash);
    if (isVoted(event)) await this.checkVote(followed, recorded, event.data.vote);
  }

  /** An event outside of every decision: an organization begins with some, and has no others. */
  private async checkUndecided(
    organizationId: string,
    followed: Followed,
    recorded: RecordedEvent,
    event: OrganizationEvent,
  ): Promise<void> {
    if (event.type === 'OrganizationCreated') {
      const { length, problem } = await beginningIn(this.store, organizationId, recorded, this.installed);
      followed.beginning = length;
      if (problem !== undefined) this.found(recorded, problem);
    }
    if (recorded.revision < followed.beginning) return;
    // Releases from before rules were numbered recorded a sub-organization by itself, after they had founded it.
    const isOfBefore = event.type === 'SubOrganizationCreated' && !event.data.founding && !this.isNumbered;
    if (!isOfBefore) this.found(recorded, 'no decision has recorded it');
  }

  /** Rules are numbered since one release: what claims to be older cannot come later. */
  private noteNumber(recorded: RecordedEvent, event: OrganizationEvent): void {
    if (isNumbered(event)) this.isNumbered = true;
    else {
      this.counts.unnumbered++;
      if (this.isNumbered && !this.isImported)
        this.found(recorded, 'it does not say which rules decided, as decisions before it do');
    }
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
    if (this.isImported && (recorded.metadata as EventMetadata).redacted) this.counts.stampsRedacted++;
    else await this.stamps.check(recorded, stamp, name);
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

  /** Makes the decision again that an organization's last events belong to. */
  private settle(followed: Followed): void {
    const { redeciding, deciding } = followed;
    try {
      const made = redeciding.settle();
      if (!made || !deciding) return;
      this.counts.decisions++;
      const differs = difference(made);
      if (differs) this.found(deciding, differs.problem, deciding.revision + differs.at);
    } catch (error) {
      if (error instanceof NotDecidable && deciding) {
        this.counts.decisions++;
        this.found(deciding, `no decision could have recorded this: ${messageOf(error.cause)}`);
      } else this.lost(followed, error);
    }
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

export function linkOf({ metadata }: RecordedEvent): string | undefined {
  return (metadata as Partial<EventMetadata> | null)?.hash;
}

/** Only where it stands is asked of an event that is behind. */
function plainly(event: RecordedEvent | undefined): RecordedEvent | undefined {
  if (!event) return undefined;
  const { stream, revision, position, id, type } = event;
  return { stream, revision, position, id, type, data: null, metadata: null };
}
