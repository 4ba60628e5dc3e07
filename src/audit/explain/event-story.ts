import { isDeepStrictEqual } from 'node:util';
import type { ExplainedOutcome } from '../../decide/refusals.js';
import type { Registry } from '../../decide/registry.js';
import { readableEvent } from '../../domain/activity/redaction.js';
import type { ActivityEvent, Decision, Vote } from '../../domain/activity/events.js';
import { Steps } from '../../domain/steps.js';
import type { OrganizationEvent, OrganizationView } from '../../domain/organization/organization.js';
import type { EventMetadata } from '../../ledger/chain.js';
import { StoreUnavailable, type EventReader, type RecordedEvent } from '../../ledger/event-store.js';
import { compareStates, type StateChange } from '../timeline/compare-states.js';
import { NotDecidable, Redeciding } from '../verify/decide-again.js';
import { eventOf, rulesOf } from '../verify/deciding-events.js';
import type { ParentAt } from '../verify/recorded-context.js';
import { reasonsOf } from './decision-reasons.js';
import { noEventsOf } from '../timeline/find-organization.js';
import { foldTo } from '../timeline/fold-to.js';
import type { OrganizationReplay } from '../timeline/organization-replay.js';
import { reasonsSteps } from './explain-decisions.js';
import { problemWith } from '../verify/verify-vote.js';
import { messageOf } from '../verify/finding.js';
import { SignedPasskeys } from '../verify/signed-facts.js';

/** One user's vote, and whether its stamp is valid for the stored bytes. */
interface VoteTold {
  readonly userId: string;
  readonly userName: string | undefined;
  readonly selection: Vote['selection'];
  readonly credential: string;
  readonly publicKey: string;
  readonly at: string;
  /** What is wrong with the stamp; undefined if it is genuine. */
  readonly problem?: string;
}

/** A recorded decision, and the result of making it again. */
export interface DecisionTold {
  readonly revision: number;
  readonly activityId: string;
  readonly activityType: string;
  /** The signed request or vote, without secrets that are still usable. */
  readonly request: string;
  readonly outcome: string;
  readonly by: Decision['decidedBy'] | 'vote';
  readonly rules: number;
  /** With their names at that time, and the part of each policy's text that decided. */
  readonly policies: readonly ExplainedOutcome[];
  readonly votes: readonly VoteTold[];
  /** `same`, or the difference, or why it was not made again. */
  readonly again: string;
}

/** An event with everything that led to it and everything that it changed. */
export interface EventTold {
  readonly revision: number;
  readonly position: string;
  readonly eventId: string;
  readonly type: string;
  readonly recordedAt: string;
  readonly hash: string;
  readonly activityId: string;
  readonly data: object;
  readonly decision?: DecisionTold;
  readonly changes: readonly StateChange[];
}

/** An event with the signed request that caused it: stamps verified, its decision made again. */
export async function tellEvent(
  replay: OrganizationReplay,
  registry: Registry,
  revision: number,
  now: number,
): Promise<EventTold> {
  const [event] = await replay.events(revision, 1);
  const before = await replay.stateAt(revision - 1);
  const after = await replay.stateAt(revision);
  const decidedAt = replay.decisionOf(revision);
  const decision = decidedAt === undefined ? undefined : await tellDecision(replay, registry, decidedAt, now);
  return { ...told(event!, now), ...(decision ? { decision } : {}), changes: [...compareStates(before, after, now)] };
}

function told(recorded: RecordedEvent, now: number): Omit<EventTold, 'decision' | 'changes'> {
  const { id, revision, position, metadata } = recorded;
  const { at, hash, $correlationId } = metadata as EventMetadata;
  const event = eventOf(recorded);
  return {
    revision,
    position: String(position),
    eventId: id,
    type: event.type,
    recordedAt: new Date(at).toISOString(),
    hash,
    activityId: $correlationId,
    data: readable(event, at, now),
  };
}

/** Whether it was completed is not looked up, so its codes stay hidden. */
function readable(event: OrganizationEvent, at: number, now: number): object {
  return readableEvent(event, { status: 'ACTIVITY_STATUS_PENDING' }, now, { at }).data;
}

type Deciding = Extract<ActivityEvent, { data: { vote: unknown } }>;

async function tellDecision(
  replay: OrganizationReplay,
  registry: Registry,
  revision: number,
  now: number,
): Promise<DecisionTold> {
  const run = await replay.decision(revision);
  const before = await replay.stateAt(revision - 1);
  const event = eventOf(run[0]!) as Deciding;
  const { activityId, vote } = event.data;
  const open = before.openActivities.get(activityId);
  const { at } = run[0]!.metadata as EventMetadata;
  const votes: VoteTold[] = [];
  for (const one of [...(open?.votes ?? []), { ...vote, at }]) votes.push(await tellVote(one, before));
  const decision = event.type === 'ActivityRejected' ? undefined : event.data.decision;
  const parent = decision?.authority && (await parentAt(replay.store, decision.authority));
  const policies =
    event.type === 'ActivityRejected'
      ? []
      : reasonsOf(
          {
            registry,
            event,
            organization: before,
            revision: revision - 1,
            at,
            ...(parent ? { authority: parent } : {}),
          },
          new Steps(reasonsSteps),
        );
  const { message } = (readable(event, at, now) as { readonly vote: Vote }).vote;
  const outcome = decision?.outcome ?? 'deny-explicit';
  return {
    revision,
    activityId,
    activityType: event.type === 'ActivitySubmitted' ? event.data.type : (open?.type ?? 'unknown'),
    request: message,
    outcome: outcome === 'deny-implicit' && event.type === 'ActivityApproved' ? 'consensus-needed' : outcome,
    by: decision?.decidedBy ?? 'vote',
    rules: rulesOf(event),
    policies: policies ?? decision?.evaluations ?? [],
    votes,
    again: await decidedAgain(replay, registry, revision, run, before, parent),
  };
}

async function tellVote(vote: Vote & { readonly at: number }, organization: OrganizationView): Promise<VoteTold> {
  const { userId, selection, credentialId, publicKey, scheme, at } = vote;
  const user = organization.users.get(userId);
  const key = user?.apiKeys.find(({ apiKeyId }) => apiKeyId === credentialId)?.apiKeyName;
  const passkey = user?.authenticators.find(({ authenticatorId }) => authenticatorId === credentialId);
  const problem = await problemWith({ vote });
  return {
    userId,
    userName: user?.userName,
    selection,
    credential: key ?? passkey?.authenticatorName ?? scheme,
    publicKey,
    at: new Date(at).toISOString(),
    ...(problem === undefined ? {} : { problem }),
  };
}

async function decidedAgain(
  replay: OrganizationReplay,
  registry: Registry,
  revision: number,
  run: readonly RecordedEvent[],
  before: OrganizationView,
  parent: ReturnType<ParentAt> | undefined,
): Promise<string> {
  const redeciding = new Redeciding(registry, () => {
    if (parent) return parent;
    throw new Error('the parent’s stream, on which the decision is based, is missing');
  });
  try {
    redeciding.goOn(await replay.loadedAt(revision - 1));
    for (const event of run) redeciding.take(event);
    const made = redeciding.settle();
    if (!made) throw new Error(`revision ${revision} starts no decision`);
    if (made.outcome !== made.outcomeAgain) return `yields \`${made.outcomeAgain}\``;
    const length = Math.max(made.recorded.length, made.again.length);
    for (let at = 0; at < length; at++) {
      if (!isDeepStrictEqual(made.recorded[at], made.again[at])) {
        return `yields a different event than the one at revision ${revision + at}`;
      }
    }
    const passkeys = new SignedPasskeys(registry, eventOf(run[0]!) as Deciding, before);
    for (const effect of run) {
      const problem = await passkeys.problemWith(eventOf(effect));
      if (problem !== undefined) return problem;
    }
    return 'same';
  } catch (error) {
    const cause = error instanceof NotDecidable ? error.cause : error;
    return `no decision could have recorded this: ${messageOf(cause)}`;
  }
}

async function parentAt(
  store: EventReader,
  { organizationId, revision }: NonNullable<Decision['authority']>,
): Promise<ReturnType<ParentAt> | undefined> {
  return foldTo(store, organizationId, revision).catch((error: unknown) => {
    if (error instanceof StoreUnavailable) throw error;
    return undefined;
  });
}

/** A step in the life of an activity. */
export interface ActivityStep {
  readonly revision: number;
  readonly recordedAt: string;
  /** Milliseconds since the step before. */
  readonly after: number;
  readonly type: string;
  readonly decision?: DecisionTold;
  readonly data: object;
  readonly changes: readonly StateChange[];
}

/**
 * The whole life of an activity, from its submission on.
 * @throws {CoordinatorError} NOT_FOUND if no event of the organization belongs to it
 */
export async function tellActivity(
  replay: OrganizationReplay,
  registry: Registry,
  activityId: string,
  now: number,
): Promise<ActivityStep[]> {
  const steps: ActivityStep[] = [];
  let last: number | undefined;
  for (const revision of await revisionsOf(replay, activityId)) {
    const { decision, ...event } = await tellEvent(replay, registry, revision, now);
    const at = Date.parse(event.recordedAt);
    const isItsOwn = decision?.revision === revision;
    steps.push({ ...event, after: at - (last ?? at), ...(decision && isItsOwn ? { decision } : {}) });
    last = at;
  }
  if (steps.length > 0) return steps;
  throw noEventsOf(activityId, replay.organizationId);
}

async function revisionsOf(replay: OrganizationReplay, activityId: string): Promise<number[]> {
  const revisions: number[] = [];
  for await (const event of replay.everyEvent()) {
    if ((event.metadata as EventMetadata).$correlationId === activityId) revisions.push(event.revision);
  }
  return revisions;
}
