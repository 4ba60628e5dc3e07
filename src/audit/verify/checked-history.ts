import { isDeepStrictEqual } from 'node:util';
import type { Founding } from '../../decide/found-organization.js';
import { isSealed } from '../../domain/sealable.js';
import { fingerprintOf } from '../../stamps/fingerprint.js';
import type { Registry } from '../../decide/registry.js';
import { denialStream, longestDeniedMessage, type DenialEvent } from '../../domain/activity/denial.js';
import { rulesNumber } from '../../domain/activity/rules.js';
import type { ActivityEvent, Vote } from '../../domain/activity/events.js';
import { bootStream } from '../../domain/boots.js';
import { marksImport } from '../../domain/organization/imported.js';
import { organizationStream, type OrganizationEvent } from '../../domain/organization/organization.js';
import { endingsOf, mayEndByMend } from '../../domain/organization/clock-mends.js';
import type { EventMetadata } from '../../ledger/chain.js';
import { StoreUnavailable, type EventReader, type RecordedEvent } from '../../ledger/event-store.js';
import { installationStream } from '../../ledger/installation-stream.js';
import { isOfMend } from '../../ledger/mend-clock.js';
import { schemaVersion } from '../../ledger/read-event.js';
import { beginningIn, firstOf } from './check-founding.js';
import { CheckedChains, isChained } from './checked-chains.js';
import type { FoldedOrganization } from './checked-vaults.js';
import { CheckedStamps, type StampVerifier } from './checked-stamps.js';
import { foldTo } from '../timeline/fold-to.js';
import { NotDecidable, Redeciding } from './decide-again.js';
import { decidingTypes, eventOf, type Deciding } from './deciding-events.js';
import type { Counts, Kept } from './saved-progress.js';
import { difference, messageOf, type Finding } from './finding.js';
import { followedOrganizations, type Followed, type Place } from './followed-organization.js';
import type { ParentAt } from './recorded-context.js';
import { parseStrictJson } from '../../wire/strict-json.js';
import { isKeyOf, SignedBoots, SignedPasskeys } from './signed-facts.js';
import { ownText, Spill, SpilledSet, type SpilledMap } from './spill.js';
import type { RecordedStamp } from './verify-vote.js';

const organizationName = /^organization-(.+)$/;

/** A store while it is read from its first event: what each stream has come to, and what is wrong. */
export class History {
  readonly findings: Finding[] = [];
  readonly counts: Counts = { decisions: 0, stamps: 0, stampsNotKept: 0, stampsRedacted: 0 };
  readonly chains: CheckedChains;
  /** The root organization, by the first event of `installation-root`. */
  private installed: Founding | undefined;
  private installedAt: Place | undefined;
  private readonly spill = new Spill();
  private readonly organizations: SpilledMap<Followed>;
  /** Fingerprint and user of each stamp, by organization. */
  private readonly words = new SpilledSet(this.spill, 'words');
  /** First event of each mend whose end has not come yet, by organization. */
  private readonly mends = new Map<string, Place>();
  /** The organization whose last decision has not been made again yet. */
  private open: Followed | undefined;
  /** The parent as that decision saw it, if it was the parent's. */
  private parent: ReturnType<ParentAt> | undefined;
  /** The passkeys that its request registers. */
  private passkeys: SignedPasskeys | undefined;
  private readonly boots = new SignedBoots();
  private readonly stamps: CheckedStamps;

  constructor(
    private readonly store: EventReader,
    private readonly registry: Registry,
    stamps: StampVerifier,
  ) {
    this.chains = new CheckedChains(this.spill);
    this.organizations = followedOrganizations(this.spill, (stream) => this.newlyFollowed(stream));
    this.stamps = new CheckedStamps(stamps, (recorded, name, problem) => {
      if (problem === undefined) this.counts.stamps++;
      else this.found(recorded, `${name} does not verify: ${problem}`);
    });
  }

  get streams(): number {
    return this.chains.count;
  }

  /**
   * Takes the next event of the store.
   * @param isKnown it was verified before: its link is followed and it is folded, but its stamp and its decision are not checked
   */
  async take(recorded: RecordedEvent, isKnown = false): Promise<void> {
    // A decision is one append, and no event of another stream lies between its events.
    if (this.open?.deciding?.stream !== recorded.stream) {
      this.end();
      this.organizations.shrink();
    }
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
      if (!followed) await this.checkOther(recorded, isKnown);
      else if (!followed.isLost) {
        await this.checkEvent(organizationId!, followed, recorded, hash, isKnown);
        if (followed.redeciding.revision >= followed.measureAt) this.organizations.set(organizationId!, followed);
      }
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
      if (followed) this.lost(followed, error);
      else this.found(recorded, `cannot be read: ${messageOf(error)}`);
    }
  }

  /** Imported by a test harness (docs/adr/0029). */
  private get isImported(): boolean {
    return this.installed?.imported !== undefined;
  }

  /** An event of a chained stream that is no organization's. */
  private async checkOther(recorded: RecordedEvent, isKnown: boolean): Promise<void> {
    const { stream, revision, type, data } = recorded;
    const { at, schemaVersion: version, $correlationId, $causationId } = recorded.metadata as EventMetadata;
    if (version !== schemaVersion) this.found(recorded, `its schema version is not ${schemaVersion}`);
    if (stream.startsWith(denialStream('')) && !isKnown) await this.checkDenial(recorded);
    if (stream === bootStream) {
      const isItsOwn = $correlationId === recorded.id && $causationId === recorded.id;
      const problem = isItsOwn ? await this.boots.problemWith(recorded) : 'it is recorded as caused by something else';
      if (problem !== undefined) this.found(recorded, problem);
    }
    const isFirst = stream === installationStream && revision === 0 && type === 'CoordinatorInstalled';
    if (isFirst) {
      this.installed = data as Founding;
      const { organizationId, at: installedAt } = this.installed;
      if (at !== installedAt || $correlationId !== organizationId || $causationId !== organizationId) {
        this.found(recorded, 'it is recorded at another time, or as of another organization, than it says');
      }
      this.installedAt = { stream: ownText(stream), revision, position: recorded.position };
    } else if (stream === installationStream || type === 'CoordinatorInstalled') {
      this.found(recorded, 'only the first event of `installation-root` says what was installed');
    }
  }

  /**
   * Whether the collected events are complete, because the event starts something else; then all of them are checked.
   */
  endsBefore(recorded: RecordedEvent): boolean {
    if (this.open?.deciding?.stream === recorded.stream && !decidingTypes.has(recorded.type) && !isOfMend(recorded))
      return false;
    this.end();
    return true;
  }

  /** Continues after the events of an interrupted verification, with its results. */
  resume({ counts, findings }: Pick<Kept, 'counts' | 'findings'>): void {
    Object.assign(this.counts, counts);
    const isNew = (finding: Finding) => !findings.some((known) => isDeepStrictEqual(known, finding));
    this.findings.splice(0, Infinity, ...findings, ...this.findings.filter(isNew));
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

  /** The store ends here. */
  finish(): void {
    this.end();
    for (const organizationId of [...this.mends.keys()]) this.checkMendEnded(organizationId);
    const { installed, installedAt } = this;
    if (!installed || this.isImported || this.chains.has(organizationStream(installed.organizationId))) return;
    this.found(
      installedAt!,
      `it names organization \`${installed.organizationId}\`, which the store does not have: if the first start was interrupted, start again`,
    );
  }

  /** Releases the temporary file. */
  close(): void {
    this.spill.close();
  }

  /**
   * Every organization that could be folded to its end; none of a history imported for tests, whose secrets are
   * elsewhere. Only after `finish`.
   */
  *folded(): Generator<FoldedOrganization> {
    if (this.isImported) return;
    for (const [, { redeciding, isLost, last }] of this.organizations.entries()) {
      if (!isLost && last) yield { organization: redeciding.folded().organization, last };
    }
  }

  private followed(organizationId: string): Followed {
    const known = this.organizations.get(organizationId);
    if (known) return known;
    const made = this.newlyFollowed(ownText(organizationStream(organizationId)));
    this.organizations.set(organizationId, made);
    return made;
  }

  private newlyFollowed(stream: string): Followed {
    return {
      stream,
      redeciding: new Redeciding(this.registry, (authority) => this.parentsAt(authority), !this.isImported),
      isLost: false,
      last: undefined,
      deciding: undefined,
      isKnown: false,
      beginning: undefined,
      lastTime: -Infinity,
      measureAt: 0,
    };
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
    isKnown: boolean,
  ): Promise<void> {
    const place = { stream: followed.stream, revision: recorded.revision, position: recorded.position };
    followed.last = place;
    const event = eventOf(recorded);
    // No decision has it among its effects; nor has one that was known to be whole.
    if (this.open === followed && (isOfMend(recorded) || (followed.isKnown && !isKnown))) this.end();
    const before = followed.lastTime;
    this.checkTime(followed, recorded);
    if (!isOfMend(recorded)) this.checkMendEnded(organizationId);
    if (followed.redeciding.isNextDecision(recorded)) {
      this.end();
      if (followed.isLost) return;
      this.open = followed;
      followed.deciding = place;
      followed.isKnown = isKnown;
      this.parent = isKnown ? undefined : await this.parentOf(event);
      const { organization } = followed.redeciding.folded();
      const isChecked = !isKnown && !this.isRedacted(recorded);
      this.passkeys = isChecked ? new SignedPasskeys(this.registry, event as Deciding, organization) : undefined;
    } else if (marksImport(event) && this.isImported) {
      // No decision has it among its effects.
      this.end();
    } else if (this.open !== followed && !this.isMending(followed, recorded, event, before) && !isKnown) {
      await this.checkUndecided(organizationId, followed, recorded);
    }
    if (this.open === followed && !isKnown) await this.checkSigned(recorded, event);
    followed.redeciding.take(recorded, hash);
    if (isVoted(event)) await this.checkVote(organizationId, recorded, event.data.vote, isKnown);
  }

  /** Time runs backwards in no stream, except where an operator has mended it. */
  private checkTime(followed: Followed, recorded: RecordedEvent): void {
    const { at } = recorded.metadata as EventMetadata;
    if (at < followed.lastTime && recorded.type !== 'ClockMended' && !this.isImported) {
      this.found(
        recorded,
        `it was recorded at ${timeText(at)}, before the event that precedes it, at ${timeText(followed.lastTime)}`,
      );
    }
    followed.lastTime = at;
  }

  /** The events of a mend are followed by the one that says so. */
  private checkMendEnded(organizationId: string): void {
    const mend = this.mends.get(organizationId);
    if (mend) this.found(mend, 'a mend of the clock that was not finished: run countersign clock mend again');
    this.mends.delete(organizationId);
  }

  /** Whether an event belongs to a mend: ends something that the false time could keep alive, or the false time itself. */
  private isMending(followed: Followed, recorded: RecordedEvent, event: OrganizationEvent, before: number): boolean {
    if (!isOfMend(recorded)) return false;
    const { organization } = followed.redeciding.folded();
    if (event.type !== 'ClockMended') {
      if (!mayEndByMend(organization, event)) return false;
      const { organizationId } = organization;
      if (!this.mends.has(organizationId)) this.mends.set(organizationId, followed.last!);
      return true;
    }
    this.mends.delete(organization.organizationId);
    const { at } = recorded.metadata as EventMetadata;
    const [left] = endingsOf(organization, before, at);
    if (event.data.lastTime !== before || at > before) {
      this.found(
        recorded,
        `it ends a time until ${timeText(event.data.lastTime)}, but the event before it is of ${timeText(before)}`,
      );
    }
    if (left)
      this.found(
        recorded,
        `it has not ended everything of the false time: ${JSON.stringify(left)} is missing before it`,
      );
    return true;
  }

  /** An event outside of every decision: an organization begins with some, and has no others. */
  private async checkUndecided(organizationId: string, followed: Followed, recorded: RecordedEvent): Promise<void> {
    followed.beginning ??= await this.checkBeginning(organizationId, recorded);
    if (recorded.revision < followed.beginning) return;
    this.found(recorded, 'no decision has recorded it');
  }

  /** With how many events the organization begins. @param recorded its first event that is not in a decision, as far as is known */
  private async checkBeginning(organizationId: string, recorded: RecordedEvent): Promise<number> {
    const first = recorded.revision === 0 ? recorded : await firstOf(this.store, recorded.stream);
    if (first?.type !== 'OrganizationCreated') return 0;
    const { length, problem } = await beginningIn(this.store, organizationId, first, this.installed);
    if (problem !== undefined) this.found(first, problem);
    return length;
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

  /** What is signed in an effect, and no decision computes. */
  private async checkSigned(recorded: RecordedEvent, event: OrganizationEvent): Promise<void> {
    try {
      const problem =
        event.type === 'AppProofsIssued' && !this.isImported
          ? this.boots.problemWithProofs(event.data)
          : await this.passkeys?.problemWith(event);
      if (problem !== undefined) this.found(recorded, problem);
    } catch (error) {
      this.found(recorded, `what is signed in it cannot be read: ${messageOf(error)}`);
    }
  }

  private async checkVote(
    organizationId: string,
    recorded: RecordedEvent,
    vote: Vote,
    isKnown: boolean,
  ): Promise<void> {
    // The identical body from another user counts as that user's vote (docs/protocol.md, fingerprints).
    if (!this.words.add(JSON.stringify([organizationId, vote.fingerprint, vote.userId]))) {
      this.found(recorded, `the same signed request of the same user, ${vote.fingerprint}, is recorded twice`);
    }
    if (!isKnown) await this.checkStamp(recorded, { vote }, `the stamp of user \`${vote.userId}\``);
  }

  private async checkStamp(recorded: RecordedEvent, stamp: RecordedStamp, name: string): Promise<void> {
    if (this.isImported && this.isRedacted(recorded)) this.counts.stampsRedacted++;
    else await this.stamps.check(recorded, stamp, name);
  }

  private isRedacted({ metadata }: RecordedEvent): boolean {
    return (metadata as EventMetadata).redacted === true;
  }

  private async checkDenial(recorded: RecordedEvent): Promise<void> {
    const denial = recorded.data as DenialEvent['data'];
    const isRedacted = this.isRedacted(recorded);
    const isWhole = fingerprintOf(denial.message) === denial.fingerprint;
    const problem =
      this.problemWithBasis(recorded.stream, denial) ??
      (isRedacted || isSealed(denial.message) ? undefined : this.problemWithDenial(recorded, isWhole));
    if (problem !== undefined) this.found(recorded, problem);
    if (!this.isImported && !(await this.isByUser(recorded))) {
      this.found(recorded, `the key that stamped it never was one of user \`${denial.userId}\``);
    }
    if (denial.publicKey === undefined || isSealed(denial.message) || !isWhole) {
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

  /** A denial is recorded after the state that it is based on. */
  private problemWithBasis(stream: string, { revision, rules, authority }: DenialEvent['data']): string | undefined {
    if (revision === undefined) return undefined;
    if (rules !== rulesNumber) return `it was decided by rules ${rules}, not by those of this release (${rulesNumber})`;
    const own = { organizationId: stream.slice(denialStream('').length), revision };
    for (const context of authority ? [own, authority] : [own]) {
      const end = this.chains.endOf(organizationStream(context.organizationId))?.revision ?? -1;
      if (Number.isSafeInteger(context.revision) && context.revision >= 0 && context.revision <= end) continue;
      return `it is based on revision ${context.revision} of organization \`${context.organizationId}\`, which then ended at ${end}`;
    }
    return undefined;
  }

  /** What a denial says besides the stamped body has to follow from it. */
  private problemWithDenial(recorded: RecordedEvent, isWhole: boolean): string | undefined {
    const { message, type, timestampMs, fingerprint, credentialId, scheme } = recorded.data as DenialEvent['data'];
    const { $correlationId, $causationId } = recorded.metadata as EventMetadata;
    if (recorded.type !== 'ActivityDenied' || $correlationId !== fingerprint || $causationId !== fingerprint) {
      return 'it is not recorded as the denial of its request';
    }
    if (credentialId !== undefined && scheme !== 'SIGNATURE_SCHEME_TK_WEBAUTHN')
      return `a passkey has no \`${scheme}\``;
    if (!isWhole) {
      // One code unit less if the last character was half of a pair.
      return message.length >= longestDeniedMessage - 1 ? undefined : 'its fingerprint is not that of its message';
    }
    try {
      const signed = parseStrictJson(Buffer.from(message), Infinity).value;
      if (signed['type'] === type && signed['timestampMs'] === timestampMs) return undefined;
      return `what was signed is \`${String(signed['type'])}\` at ${String(signed['timestampMs'])}`;
    } catch (error) {
      return `what was signed is not a request: ${messageOf(error)}`;
    }
  }

  /** Who stamped it; of an attested stamp, only its token knows. */
  private async isByUser({ stream, data }: RecordedEvent): Promise<boolean> {
    const denial = data as DenialEvent['data'];
    if (denial.userId === '' || denial.scheme === 'SIGNATURE_SCHEME_TK_ATTESTED_P256') return true;
    const own = this.organizations.get(stream.slice(denialStream('').length));
    const parentId = own?.redeciding.folded().organization.parentOrganizationId;
    const homes = [own, parentId === undefined ? undefined : this.organizations.get(parentId)];
    const organizations = homes.flatMap((home) => (home ? [home.redeciding.folded().organization] : []));
    return isKeyOf(denial, organizations, this.store);
  }

  /** Makes the decision again that an organization's last events belong to. */
  private settle(followed: Followed): void {
    const { redeciding, deciding, isKnown } = followed;
    try {
      if (isKnown) return redeciding.foldOnly();
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

  private found({ stream, revision, position }: Place, problem: string, at = revision): void {
    this.findings.push({ stream: ownText(stream), revision: at, position, problem });
  }
}

const timeText = (ms: number): string => new Date(ms).toISOString();

type Voted = Extract<ActivityEvent, { data: { vote: unknown } }>;

function isVoted(event: OrganizationEvent): event is Voted {
  return 'vote' in event.data;
}
