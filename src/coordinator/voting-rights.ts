import { saysNow, toSignOf } from '../decide/explain.js';
import { isAuthProxyUser } from '../domain/organization/auth-proxy.js';
import { decodedForMail } from '../domain/policy/decoded.js';
import type { DecodedFact } from '../domain/policy/decoded/account.js';
import { clausesOf, ReadFirst, type DecisionContext } from '../decide/decision-context.js';
import { approversOf, rightsOf, rightsOfAnybody } from '../decide/rights.js';
import type { OpenActivity } from '../domain/organization/open-activities.js';
import type { OrganizationView } from '../domain/organization/organization.js';
import type { User } from '../domain/organization/users.js';
import type { ClausesRead } from '../domain/policy/language.js';
import { decisionSteps, decodingSteps, Meter, weights, type Steps } from '../domain/steps.js';
import type { ToReadAhead } from '../activities/define-activity.js';
import { assembleContext, readElsewhere, type ContextPorts } from './assemble-context.js';
import { decodedIn, wordsOf, type Rights, type Words } from './rights-and-texts.js';

/**
 * Maximum steps for what the activities on one page wait for and would sign: 20 ms. Rights on all of them are computed
 * first.
 */
const pageOfWordsSteps = 200_000;
const wordsNotComputed: Words = { waitsForNotComputed: true };

export const noRights: Rights = { canApprove: false, canReject: false };
const notComputed: Rights = { ...noRights, notComputed: true };

/** What has to be read before rights can be computed, because it takes long. */
export type Unread = { readonly ahead: ToReadAhead; readonly organization: OrganizationView }[];

/** Computes what users may do about waiting activities, by the guards that would refuse the vote. */
export class VotingRights {
  constructor(private readonly ports: ContextPorts) {}

  /**
   * What a user may do about an activity now; nothing for one that is not waiting for votes.
   * @throws {ReadFirst}
   */
  of(organization: OrganizationView, activityId: string, userId: string, meter = new Meter()): Rights {
    if (!organization.openActivities.has(activityId)) return noRights;
    return this.together(organization, userId, meter)(activityId);
  }

  /** Like `of`, with what the activity waits for. */
  private inWords(organization: OrganizationView, activityId: string, userId: string, meter: Meter): Rights {
    const rights = this.of(organization, activityId, userId, meter);
    return { ...rights, ...this.saidToMember(organization, activityId, userId, meter, wordsOf) };
  }

  /**
   * What somebody could do about a waiting activity, as recorded at that time, under today's users and policies; and
   * what it would sign, decoded as policies read it now.
   */
  async ofAnybody(organization: OrganizationView, activity: OpenActivity): Promise<Rights> {
    const meter = new Meter();
    if (organization.isDeleted) return noRights;
    const read = (): Rights => {
      const today = assembleContext(this.ports, organization, 0, undefined, meter.reading);
      const context = { ...today, now: activity.updatedAt, steps: meter.upTo(decisionSteps) };
      const decoded = decodedIn(today, activity);
      const rights = rightsOfAnybody(context, activity);
      return { ...(meter.left > 0 ? rights : notComputed), ...(decoded ? { decoded } : {}) };
    };
    return this.readingFirst(meter, (unread) => this.otherwiseRead(organization, unread, read, notComputed));
  }

  /**
   * The current outcome of each policy for a waiting activity; undefined for any other activity, for anyone but the
   * organization's users, and while the activity has not been read.
   */
  saysNow(
    organization: OrganizationView,
    activityId: string,
    userId: string,
    meter: Meter,
    unread: Unread,
  ): ReturnType<typeof saysNow> {
    const read = () => this.saidToMember(organization, activityId, userId, meter, saysNow);
    return this.otherwiseRead(organization, unread, read, undefined);
  }

  /** What a question about a waiting activity is asked on, with the steps of a decision. */
  assembleContext(organization: OrganizationView, meter: Meter): DecisionContext {
    const context = assembleContext(this.ports, organization, 0, undefined, meter.reading);
    return { ...context, steps: meter.upTo(decisionSteps) };
  }

  private saidToMember<Said>(
    organization: OrganizationView,
    activityId: string,
    userId: string,
    meter: Meter,
    say: (context: DecisionContext, open: OpenActivity, userId: string) => Said,
  ): Said | undefined {
    const open = openToMember(organization, activityId, userId);
    if (!open || meter.left <= 0) return undefined;
    const context = assembleContext(this.ports, organization, 0, undefined, meter.reading);
    return say({ ...context, steps: meter.upTo(decisionSteps) }, open, userId);
  }

  /**
   * Like `of`, with the rest of the meter and with what the activity waits for; not computed while the activity has not
   * been read: `unread` reads it, after which it can be asked again.
   */
  ifRead(organization: OrganizationView, activityId: string, userId: string, meter: Meter, unread: Unread): Rights {
    const read = () => this.inWords(organization, activityId, userId, meter);
    return this.otherwiseRead(organization, unread, read, notComputed);
  }

  /** Like `ifRead`, after reading what rights depend on. */
  afterReading(organization: OrganizationView, activityId: string, userId: string, meter: Meter): Promise<Rights> {
    return this.readingFirst(meter, (unread) => this.ifRead(organization, activityId, userId, meter, unread));
  }

  /** Whether a user may vote on an activity, after reading what that depends on. */
  async hasAny(organization: OrganizationView, activityId: string, userId: string, meter: Meter): Promise<boolean> {
    const read = () => this.of(organization, activityId, userId, meter);
    const { canApprove, canReject } = await this.readingFirst(meter, (unread) =>
      this.otherwiseRead(organization, unread, read, notComputed),
    );
    return canApprove || canReject;
  }

  /**
   * Like `ifRead`, for several activities. Policies are parsed once for all of them, and one meter holds for the
   * request: beyond it, rights are not computed. What the activities wait for is computed as long as its part of the
   * meter lasts.
   */
  onPage(
    organization: OrganizationView,
    activityIds: readonly string[],
    userId: string,
    meter: Meter,
    unread: Unread,
  ): (activityId: string) => Rights {
    const clauses = clausesOf(assembleContext(this.ports, organization, 0, undefined, meter.reading));
    const rights = this.together(organization, userId, meter, clauses);
    const told = new Map(
      activityIds.map((activityId) => {
        const read = () => rights(activityId);
        return [activityId, this.otherwiseRead(organization, unread, read, notComputed)];
      }),
    );
    const left = meter.upTo(pageOfWordsSteps);
    return (activityId) => {
      const known = told.get(activityId) ?? noRights;
      if (known.notComputed) return known;
      const say = () => this.wordsOnPage(organization, activityId, userId, { meter, left, clauses });
      return { ...known, ...this.otherwiseRead(organization, unread, say, wordsNotComputed) };
    };
  }

  private wordsOnPage(
    organization: OrganizationView,
    activityId: string,
    userId: string,
    { meter, left, clauses }: { readonly meter: Meter; readonly left: Steps; readonly clauses: ClausesRead },
  ): Words | undefined {
    const open = openToMember(organization, activityId, userId);
    if (!open) return undefined;
    if (left.left <= 0) return wordsNotComputed;
    const context = assembleContext(this.ports, organization, 0, undefined, meter.reading);
    const steps = left.upTo(decisionSteps, clauses.spent);
    const words = wordsOf({ ...context, steps, clauses }, open, userId);
    left.note(JSON.stringify(words ?? {}).length * weights.byteWritten);
    // What ran out of steps may have come out wrong.
    return left.left > 0 ? words : wordsNotComputed;
  }

  /** Reads what rights depend on, one activity after the other, as long as the steps of the request last. */
  async readUnread(unread: Unread, meter: Meter): Promise<void> {
    for (const { ahead, organization } of unread) {
      if (meter.decoding.isSpent) return;
      // If it cannot be read now, the next attempt does not read it either, and nobody waits for it.
      await readElsewhere(this.ports, ahead, organization, meter).catch(() => meter.decoding.note(decodingSteps));
    }
  }

  /**
   * Users who may approve an activity that has started waiting, and what it would sign; nothing while it has not been
   * read.
   */
  async approvers(
    open: OpenActivity,
    organization: OrganizationView,
    meter: Meter,
  ): Promise<{ readonly found: readonly User[]; readonly wouldSign: readonly DecodedFact[] }> {
    return this.readingFirst(meter, (unread) => {
      const today = assembleContext(this.ports, organization, 0, undefined, meter.reading);
      const context = { ...today, steps: meter.upTo(decisionSteps) };
      const wanted = this.otherwiseRead(organization, unread, () => approversOf(context, open), new Set<string>());
      const found = [...organization.users.values()].filter(({ userId }) => wanted.has(userId));
      const toSign = this.otherwiseRead(organization, unread, () => toSignOf(today, open), undefined);
      return { found, wouldSign: toSign ? decodedForMail(toSign) : [] };
    });
  }

  /** Looks, and once more if something had to be read first. */
  private async readingFirst<Answer>(meter: Meter, look: (unread: Unread) => Answer): Promise<Answer> {
    const unread: Unread = [];
    const atOnce = look(unread);
    if (unread.length === 0) return atOnce;
    await this.readUnread(unread, meter);
    return look([]);
  }

  private together(
    organization: OrganizationView,
    userId: string,
    meter: Meter,
    shared?: ClausesRead,
  ): (activityId: string) => Rights {
    const context = assembleContext(this.ports, organization, 0, undefined, meter.reading);
    const clauses = shared ?? clausesOf(context);
    return (activityId) => {
      const open = organization.openActivities.get(activityId);
      if (!open || organization.isDeleted || !organization.users.has(userId)) return noRights;
      // Each is computed as it would be decided: alone.
      const steps = meter.upTo(decisionSteps, clauses.spent);
      const rights = meter.left > 0 ? rightsOf({ ...context, steps, clauses }, open, userId) : noRights;
      return meter.left > 0 ? rights : notComputed;
    };
  }

  private otherwiseRead<Answer>(
    organization: OrganizationView,
    unread: Unread,
    read: () => Answer,
    otherwise: Answer,
  ): Answer {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof ReadFirst)) throw error;
      unread.push({ ahead: error.ahead, organization });
      return otherwise;
    }
  }
}

/** The waiting activity, if this user may see such details. */
function openToMember(organization: OrganizationView, activityId: string, userId: string): OpenActivity | undefined {
  const isMember = organization.users.has(userId) && !isAuthProxyUser(organization, userId);
  return isMember && !organization.isDeleted ? organization.openActivities.get(activityId) : undefined;
}
