import { saysNow, toSignOf, waitsFor } from '../decide/explain.js';
import type { WaitsFor } from '../decide/waits-for.js';
import { isAuthProxyUser } from '../domain/organization/auth-proxy.js';
import { decodedForMail, decodedOf } from '../domain/policy/decoded.js';
import type { Decoded, DecodedFact } from '../domain/policy/decoded/account.js';
import { clausesOf, ReadFirst, type Basis } from '../decide/basis.js';
import { approversOf, rightsOf } from '../decide/rights.js';
import type { OpenActivity } from '../domain/organization/open-activities.js';
import type { OrganizationView } from '../domain/organization/organization.js';
import type { User } from '../domain/organization/users.js';
import { decisionSteps, decodingSteps, Meter } from '../domain/steps.js';
import { rulesNumber } from '../domain/activity/rules.js';
import type { ToReadAhead } from '../activities/define-activity.js';
import { basisOf, readElsewhere, type BasisPorts } from './basis.js';

/** What a user may do about an activity; `notComputed` where telling would have taken too long. */
export interface Rights {
  readonly canApprove: boolean;
  readonly canReject: boolean;
  readonly notComputed?: true;
  /** Of one activity that waits for votes, told where there are steps left for it. */
  readonly waitsFor?: WaitsFor;
  /** What it would sign, decoded. */
  readonly decoded?: readonly Decoded[];
}

const noRights: Rights = { canApprove: false, canReject: false };
const notComputed: Rights = { ...noRights, notComputed: true };

/** What rights could not be told without, as it takes long to read. */
export type Unread = { readonly ahead: ToReadAhead; readonly organization: OrganizationView }[];

/** Tells what users may do about activities that wait for votes, by the guards that would refuse the vote. */
export class VotingRights {
  constructor(private readonly ports: BasisPorts) {}

  /**
   * What a user may do about an activity now; nothing about one that does not wait for votes.
   * @throws {ReadFirst}
   */
  of(organization: OrganizationView, activityId: string, userId: string, meter = new Meter()): Rights {
    if (!organization.openActivities.has(activityId)) return noRights;
    return this.together(organization, userId, meter)(activityId);
  }

  /** As `of`, with what the activity waits for. */
  private inWords(organization: OrganizationView, activityId: string, userId: string, meter: Meter): Rights {
    const rights = this.of(organization, activityId, userId, meter);
    const said = this.saidToMember(organization, activityId, userId, meter, (basis, open) => {
      const missing = waitsFor(basis, open, userId);
      return missing && { waitsFor: missing, decoded: decodedIn(basis, open) };
    });
    const { waitsFor: missing, decoded } = said ?? {};
    return { ...rights, ...(missing ? { waitsFor: missing } : {}), ...(decoded ? { decoded } : {}) };
  }

  /** What an activity would sign, decoded as policies read it now; undefined of one that signs nothing. */
  async decoded(
    organization: OrganizationView,
    activity: Pick<OpenActivity, 'type' | 'intent'>,
  ): Promise<readonly Decoded[] | undefined> {
    const unread: Unread = [];
    const meter = new Meter();
    const read = () => decodedIn(basisOf(this.ports, organization, 0, undefined, meter.reading), activity);
    const atOnce = this.otherwiseRead(organization, unread, read, undefined);
    if (unread.length === 0) return atOnce;
    await this.readUnread(unread, meter);
    return this.otherwiseRead(organization, [], read, undefined);
  }

  /**
   * What each policy says of an activity that waits for votes, as things stand; undefined of another, to others than the
   * organization's users, and as long as the activity was not read.
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

  private saidToMember<Said>(
    organization: OrganizationView,
    activityId: string,
    userId: string,
    meter: Meter,
    say: (basis: Basis, open: OpenActivity, userId: string) => Said,
  ): Said | undefined {
    const open = organization.openActivities.get(activityId);
    const isMember = organization.users.has(userId) && !isAuthProxyUser(organization, userId);
    if (!open || !isMember || organization.isDeleted || meter.left <= 0) return undefined;
    const basis = basisOf(this.ports, organization, 0, undefined, meter.reading);
    return say({ ...basis, steps: meter.upTo(decisionSteps(rulesNumber)) }, open, userId);
  }

  /**
   * As `of`, with the rest of the meter and with what the activity waits for, and not computed as long as the activity was
   * not read; `unread` reads it, and they are asked for again then.
   */
  ifRead(organization: OrganizationView, activityId: string, userId: string, meter: Meter, unread: Unread): Rights {
    const read = () => this.inWords(organization, activityId, userId, meter);
    return this.otherwiseRead(organization, unread, read, notComputed);
  }

  /**
   * As `ifRead`, about each of several activities. Policies are read once for all of them, and one meter holds for
   * the request: beyond it, rights are not computed.
   */
  onPage(organization: OrganizationView, userId: string, meter: Meter, unread: Unread): (activityId: string) => Rights {
    const rights = this.together(organization, userId, meter);
    return (activityId) => this.otherwiseRead(organization, unread, () => rights(activityId), notComputed);
  }

  /** Reads what rights could not be told without, one after the other as long as the steps of the request for that last. */
  async readUnread(unread: Unread, meter: Meter): Promise<void> {
    for (const { ahead, organization } of unread) {
      if (meter.decoding.isSpent) return;
      // What is not read now is not read when it is asked for again either, and then nobody waits for it.
      await readElsewhere(this.ports, ahead, organization, meter).catch(() => meter.decoding.note(decodingSteps));
    }
  }

  /** Users who may approve an activity that has begun to wait, and what it would sign; nothing as long as it was not read. */
  async approvers(
    open: OpenActivity,
    organization: OrganizationView,
    meter: Meter,
  ): Promise<{ readonly found: readonly User[]; readonly wouldSign: readonly DecodedFact[] }> {
    const look = () => {
      const unread: Unread = [];
      const today = basisOf(this.ports, organization, 0, undefined, meter.reading);
      const basis = { ...today, steps: meter.upTo(decisionSteps(rulesNumber)) };
      const wanted = this.otherwiseRead(organization, unread, () => approversOf(basis, open), new Set<string>());
      const found = [...organization.users.values()].filter(({ userId }) => wanted.has(userId));
      const toSign = this.otherwiseRead(organization, unread, () => toSignOf(today, open), undefined);
      return { unread, found, wouldSign: toSign ? decodedForMail(toSign) : [] };
    };
    const atOnce = look();
    if (atOnce.unread.length === 0) return atOnce;
    await this.readUnread(atOnce.unread, meter);
    return look();
  }

  private together(organization: OrganizationView, userId: string, meter: Meter): (activityId: string) => Rights {
    const basis = basisOf(this.ports, organization, 0, undefined, meter.reading);
    const clauses = clausesOf(basis);
    return (activityId) => {
      const open = organization.openActivities.get(activityId);
      if (!open || organization.isDeleted || !organization.users.has(userId)) return noRights;
      // Each is told as it would be decided: as if it were alone.
      const steps = meter.upTo(decisionSteps(rulesNumber), clauses.spent);
      const rights = meter.left > 0 ? rightsOf({ ...basis, steps, clauses }, open, userId) : noRights;
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

function decodedIn(basis: Basis, activity: Pick<OpenActivity, 'type' | 'intent'>): readonly Decoded[] | undefined {
  const toSign = toSignOf(basis, activity);
  return toSign && decodedOf(toSign);
}
