import {
  decideSubmit,
  decideVote,
  type Bench,
  type Party,
  type Prepared,
  type Submission,
  type Verdict,
} from '../../src/coordinator/deliberate.js';
import { fingerprintOf } from '../../src/coordinator/fingerprint.js';
import { apply, nothingLoaded } from '../../src/coordinator/load-organization.js';
import { activityVersion, newestIntent, type Registry } from '../../src/coordinator/registry.js';
import {
  apiKeyCredential,
  attestedCredential,
  authenticatorCredential,
  invitedBy,
} from '../../src/coordinator/resolve-caller.js';
import { parseStrictJson } from '../../src/schema/strict-json.js';
import { validate } from '../../src/schema/validate.js';
import type { ActivityEvent, Decision, Vote } from '../../src/domain/activity/events.js';
import { rulesNumber } from '../../src/domain/activity/rules.js';
import { CoordinatorError } from '../../src/domain/errors.js';
import type { OrganizationEvent, OrganizationView } from '../../src/domain/organization/organization.js';
import type { EventMetadata } from '../../src/event-store/chain.js';
import type { RecordedEvent } from '../../src/event-store/event-store.js';
import { upcast } from '../../src/event-store/upcast.js';
import { preparedFrom } from './prepared-from.js';

/** What history says of one decision, and what comes of deciding it again. Events as plain JSON, type and data. */
export interface Redecided {
  readonly revision: number;
  readonly activityType: string;
  readonly recorded: readonly object[];
  readonly again: readonly object[];
  readonly outcome: string;
  readonly outcomeAgain: string;
}

type Deciding = Extract<ActivityEvent, { type: 'ActivitySubmitted' | 'ActivityApproved' | 'ActivityRejected' }>;

/** What is said of each decision that an earlier release made by rules without a number. */
const beforeNumbers = 'made before rules were numbered, not decided again';

/** The decisions of a stream that `redecide` leaves out, and why. */
export function notDecidedAgain(stream: readonly RecordedEvent[]): { revision: number; why: string }[] {
  return stream.flatMap((recorded) => {
    const event = eventOf(recorded);
    return isDeciding(event) && rulesOf(event) === undefined
      ? [{ revision: recorded.revision, why: beforeNumbers }]
      : [];
  });
}

function rulesOf({ type, data }: Deciding): number | undefined {
  return type === 'ActivityRejected' ? data.rules : data.decision.rules;
}

/**
 * Makes every decision of a recorded stream again that was made by rules with a number: from the events before it, what the deciding event itself says of the
 * request, and its recorded time; for what a parent has decided in its sub-organization, also from the stream of the
 * parent. Checks on the way that each decision stands alone in one run of events of one cause.
 */
export function redecide(
  stream: readonly RecordedEvent[],
  registry: Registry,
  parentStream: readonly RecordedEvent[] = [],
): Redecided[] {
  const loaded = nothingLoaded();
  const made: Redecided[] = [];
  for (const [index, recorded] of stream.entries()) {
    const event = eventOf(recorded);
    if (isDeciding(event)) {
      const rest = stream.slice(index + 1);
      const end = rest.findIndex((later) => isDeciding(eventOf(later)));
      const following = end === -1 ? rest : rest.slice(0, end);
      const metadata = recorded.metadata as EventMetadata;
      for (const one of following) checkSameCause(recorded, one);
      const bench: Bench = {
        registry,
        organization: loaded.organization,
        revision: loaded.revision,
        now: metadata.at,
      };
      // Proofs of what was decided are made by the driver, with the key of a boot.
      const effects = following.map(eventOf).filter(({ type }) => type !== 'ActivityProved');
      const rules = rulesOf(event);
      if (rules !== undefined && rules !== rulesNumber) {
        throw new Error(`revision ${recorded.revision} was decided by rules ${rules}, which are not here`);
      }
      if (rules !== undefined) made.push(again(bench, event, effects, recorded.revision, parentStream));
    }
    apply(loaded, recorded);
  }
  return made;
}

function again(
  bench: Bench,
  event: Deciding,
  effects: readonly OrganizationEvent[],
  revision: number,
  parentStream: readonly RecordedEvent[],
): Redecided {
  const { vote } = event.data;
  const authority = event.type === 'ActivitySubmitted' ? authorityOf(event.data.decision, parentStream) : undefined;
  const party = authority ? { ...partyOf({ ...bench, ...authority }, vote), authority } : partyOf(bench, vote);
  if (fingerprintOf(Buffer.from(vote.message)) !== vote.fingerprint) {
    throw new Error(`the fingerprint of the vote at revision ${revision} is not that of its message`);
  }
  const { activityType, outcome, verdict } =
    event.type === 'ActivitySubmitted'
      ? submitAgain(bench, event, effects, party)
      : voteAgain(bench, event, effects, party);
  if (verdict === 'prepare-first') throw new Error(`${activityType} at revision ${revision} asks for what it had`);
  return {
    revision,
    activityType,
    recorded: [event, ...effects],
    again: verdict.events.map(plain),
    outcome,
    outcomeAgain: verdict.outcome,
  };
}

function submitAgain(
  bench: Bench,
  { data }: Extract<Deciding, { type: 'ActivitySubmitted' }>,
  effects: readonly OrganizationEvent[],
  party: Party,
) {
  const { activityId, type, intent: parameters, fingerprint, timestampMs, generateAppProofs, vote, decision } = data;
  const version = activityVersion(bench.registry, type);
  const prepared = preparation(bench.registry, type, parameters, effects, bench.organization);
  const { found } = decision;
  const rest = { activityId, type, parameters, fingerprint, timestampMs, generateAppProofs, found };
  const decide = (submission: Submission) => decideSubmit(bench, submission, vote, party, prepared);
  const verdict = decide({ ...rest, intent: newestIntent(version, parameters) });

  // From the signed bytes it must come out the same as from what was kept of them.
  const signed = parseStrictJson(Buffer.from(vote.message)).value;
  const submitted = validate(version.intent, signed['parameters'] as object, 'parameters');
  const fromBytes = decide({ ...rest, intent: newestIntent(version, submitted) });
  sameVerdict(verdict, fromBytes);
  const { parameters: signedParameters, type: signedType, timestampMs: signedTime } = signed;
  const kept = JSON.stringify([signedParameters, signedType, signedTime]);
  if (kept !== JSON.stringify([parameters, type, timestampMs])) {
    throw new Error(`activity \`${activityId}\` does not keep what was signed: ${kept}`);
  }
  return { activityType: type, outcome: decision.outcome, verdict };
}

function voteAgain(
  bench: Bench,
  event: Exclude<Deciding, { type: 'ActivitySubmitted' }>,
  effects: readonly OrganizationEvent[],
  party: Party,
) {
  const { activityId, vote } = event.data;
  const open = bench.organization.openActivities.get(activityId);
  if (!open) throw new Error(`a vote on activity \`${activityId}\`, which does not wait`);
  const prepared = preparation(bench.registry, open.type, open.intent, effects, bench.organization);
  // A vote whose approval does not suffice yet is recorded with the outcome that the policies gave.
  const recorded = event.type === 'ActivityApproved' ? event.data.decision.outcome : 'deny-explicit';
  const outcome = recorded === 'deny-implicit' ? 'consensus-needed' : recorded;
  return { activityType: open.type, outcome, verdict: decideVote(bench, open, vote, party, prepared) };
}

/** The parent as a decision in its sub-organization has seen it. */
function authorityOf({ authority }: Decision, parentStream: readonly RecordedEvent[]): Party['authority'] {
  if (!authority) return undefined;
  const parent = nothingLoaded();
  for (const event of parentStream.slice(0, authority.revision + 1)) apply(parent, event);
  const { organization, revision } = parent;
  const seen = { organizationId: organization.organizationId, revision };
  if (seen.organizationId !== authority.organizationId || seen.revision !== authority.revision) {
    throw new Error(`decided by ${JSON.stringify(authority)}, whose stream is not there: ${JSON.stringify(seen)}`);
  }
  return { organization, revision };
}

/** Who voted, with the credential as the organization knows it before the vote. */
function partyOf({ organization, now }: Bench, { userId, credentialId, publicKey, attestation }: Vote): Party {
  const invited = invitedBy(publicKey, organization, now);
  if (invited?.user.userId === userId) return { userId, credential: invited.credential };
  const user = organization.users.get(userId);
  if (!user) throw new Error(`a vote of user \`${userId}\`, who is not there`);
  const attested = attestation && attestedCredential(user, attestation, publicKey);
  const credential = [
    ...(attested ? [attested] : []),
    ...user.apiKeys.map((key) => apiKeyCredential(user, key)),
    ...user.authenticators.map((one) => authenticatorCredential(user, one)),
  ].find(({ id }) => id === credentialId);
  if (credential?.publicKey !== publicKey) throw new Error(`user \`${userId}\` has no credential \`${credentialId}\``);
  return { userId, credential };
}

/** What `prepare` must have given, or why it could not. */
function preparation(
  registry: Registry,
  type: string,
  parameters: object,
  effects: readonly OrganizationEvent[],
  organization: OrganizationView,
): Prepared {
  const version = activityVersion(registry, type);
  const end = effects.at(-1);
  if (!version.definition.prepare || !end) return undefined;
  // One that fails with effects was decided to fail, by what it had prepared.
  if (end.type === 'ActivityFailed' && effects.length === 1) {
    const { code, message } = end.data.failure;
    return { refusal: new CoordinatorError(code, message) };
  }
  const intent = newestIntent(version, parameters);
  return { value: preparedFrom(version.definition.type, { intent, organization, effects }) };
}

function sameVerdict(one: Verdict, other: Verdict): void {
  const text = (verdict: Verdict) => JSON.stringify(verdict);
  if (text(one) !== text(other))
    throw new Error(`decided otherwise from the signed bytes:\n${text(one)}\n${text(other)}`);
}

function checkSameCause(deciding: RecordedEvent, effect: RecordedEvent): void {
  const of = ({ metadata }: RecordedEvent) => {
    const { at, $correlationId, $causationId } = metadata as EventMetadata;
    return JSON.stringify([at, $correlationId, $causationId]);
  };
  if (of(deciding) === of(effect)) return;
  throw new Error(`revision ${effect.revision} does not follow from revision ${deciding.revision}: ${of(effect)}`);
}

function eventOf(recorded: RecordedEvent): OrganizationEvent {
  const { type, data } = upcast(recorded);
  return { type, data } as OrganizationEvent;
}

function isDeciding(event: OrganizationEvent): event is Deciding {
  return ['ActivitySubmitted', 'ActivityApproved', 'ActivityRejected'].includes(event.type);
}

const plain = (value: object): object => JSON.parse(JSON.stringify(value)) as object;
