import { decideSubmit } from '../decide/submit.js';
import { decideVote } from '../decide/vote.js';
import { RecordedActivity } from '../activities/recorded-activity.js';
import type { Basis, Voter, Prepared, Submission, DecisionResult } from '../decide/basis.js';
import { fingerprintOf } from '../decide/fingerprint.js';
import { apply, nothingLoaded, type LoadedOrganization } from '../ledger/loaded-organization.js';
import { activityVersion, newestIntent, type Registry } from '../decide/registry.js';
import { attestedCredential, credentialsOf, invitedBy, testKeyCaller } from '../decide/resolve-caller.js';
import { parseStrictJson } from '../wire/strict-json.js';
import { validate } from '../wire/validate.js';
import type { ActivityEvent, Decision, Vote } from '../domain/activity/events.js';
import { rulesNumber } from '../domain/activity/rules.js';
import { CoordinatorError } from '../domain/errors.js';
import { isLimitsSet } from '../domain/organization/limits.js';
import type { OpenActivity } from '../domain/organization/open-activities.js';
import type { OrganizationEvent, OrganizationView } from '../domain/organization/organization.js';
import type { EventMetadata } from '../ledger/chain.js';
import type { RecordedEvent } from '../ledger/event-store.js';
import { upcast } from '../ledger/upcast.js';

/** What history says about one decision, and the result of deciding it again. Events as plain JSON, type and data. */
export interface Redecided {
  readonly revision: number;
  readonly activityType: string;
  readonly recorded: readonly object[];
  readonly again: readonly object[];
  readonly outcome: string;
  readonly outcomeAgain: string;
}

/** An event that starts a decision: a request or a vote. */
export type Deciding = Extract<ActivityEvent, { type: 'ActivitySubmitted' | 'ActivityApproved' | 'ActivityRejected' }>;

/** Events that start a decision, with its basis. */
export const decidingTypes: ReadonlySet<string> = new Set<Deciding['type']>([
  'ActivitySubmitted',
  'ActivityApproved',
  'ActivityRejected',
]);

/** Reported for each decision that an earlier release made by rules without a number. */
const beforeNumbers = 'made before rules were numbered, so not decided again';

/** The decisions of a stream that `redecide` skips, and why. */
export function notDecidedAgain(stream: readonly RecordedEvent[]): { revision: number; why: string }[] {
  return stream.flatMap((recorded) => {
    const event = eventOf(recorded);
    return isDeciding(event) && rulesOf(event) === undefined
      ? [{ revision: recorded.revision, why: beforeNumbers }]
      : [];
  });
}

/** Whether an event says which rules decided. */
export function isNumbered(event: OrganizationEvent): boolean {
  return isDeciding(event) && rulesOf(event) !== undefined;
}

/** The number of the rules that decided, if it says so. */
export function rulesOf({ type, data }: Deciding): number | undefined {
  return type === 'ActivityRejected' ? data.rules : data.decision.rules;
}

/** What is recorded as a decision cannot be one: `cause` says why. */
export class NotDecidable extends Error {
  constructor(override readonly cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
    this.name = 'NotDecidable';
  }
}

/** A parent as a decision in its sub-organization saw it: at one revision of its stream. */
export type ParentAt = (authority: NonNullable<Decision['authority']>) => NonNullable<Voter['authority']>;

/** An event, and its link in the chain if that was verified. */
interface Taken {
  readonly recorded: RecordedEvent;
  readonly hash: string | undefined;
}

/**
 * Folds one organization's stream event by event, and makes each of its decisions again once all that it has recorded is
 * there: from the events before it, what the deciding event itself says of the request, and its recorded time.
 */
export class Redeciding {
  private loaded = nothingLoaded();
  /** A deciding event and what follows from it, not folded yet: it was decided on what came before. */
  private held: Taken[] = [];

  constructor(
    private readonly registry: Registry,
    private readonly parentAt: ParentAt,
  ) {}

  /** Revision of the last event taken; -1 before the first. */
  get revision(): number {
    return this.loaded.revision + this.held.length;
  }

  /** Whether the event starts another decision, so that the previous one has to be settled first. */
  isNextDecision(recorded: RecordedEvent): boolean {
    return decidingTypes.has(recorded.type);
  }

  /**
   * Takes the next event of the stream.
   * @param hash its link in the chain, if that was verified before
   * @throws {Error} if it cannot be folded
   */
  take(recorded: RecordedEvent, hash?: string): void {
    if (this.held.length > 0 || this.isNextDecision(recorded)) this.held.push({ recorded, hash });
    else this.fold({ recorded, hash });
  }

  /**
   * The stream, or the append, ends here: the decision that its last events belong to, made again; undefined if there
   * is none, or none with a rules number.
   * @throws {NotDecidable} if no decision of this organization can have recorded them; they are folded anyway
   */
  settle(): Redecided | undefined {
    const held = this.held;
    this.held = [];
    if (held.length === 0) return undefined;
    let made: Redecided | undefined;
    let failure: unknown;
    try {
      const [deciding, ...following] = held.map(({ recorded }) => recorded);
      made = this.again(deciding!, following);
    } catch (error) {
      failure = error;
    }
    for (const taken of held) this.fold(taken);
    if (failure) throw new NotDecidable(failure);
    return made;
  }

  private fold({ recorded, hash }: Taken): void {
    apply(this.loaded, recorded, hash);
    // Only answering repeated requests needs those.
    this.loaded.recent.clear();
  }

  /** The organization after `settle`. */
  folded(): Pick<LoadedOrganization, 'organization' | 'revision'> {
    return this.loaded;
  }

  /** Everything needed to continue elsewhere, serializable by `v8.serialize`; only between two decisions. */
  soFar(): LoadedOrganization {
    return this.loaded;
  }

  goOn(folded: LoadedOrganization): void {
    this.loaded = folded;
  }

  private again(recorded: RecordedEvent, following: readonly RecordedEvent[]): Redecided | undefined {
    const event = eventOf(recorded) as Deciding;
    for (const one of following) checkSameCause(recorded, one);
    const rules = rulesOf(event);
    if (rules === undefined) return undefined;
    if (rules < 1 || rules > rulesNumber) {
      throw new Error(`revision ${recorded.revision} was decided by rules ${rules}, which this release does not have`);
    }
    const { organization, revision } = this.loaded;
    const { at: now } = recorded.metadata as EventMetadata;
    // The driver signs proofs of decisions, with the key of a boot.
    const effects = following.map(eventOf).filter(({ type }) => type !== 'ActivityProved');
    const limits = event.type === 'ActivityRejected' ? undefined : event.data.decision.limits;
    if (!isLimitsSet({ ...limits?.organization, ...limits?.subOrganizations })) {
      throw new Error(`revision ${recorded.revision} was decided with limits that nobody can set`);
    }
    const basis: Basis = {
      registry: this.registry,
      organization,
      revision,
      now,
      rules,
      ...(limits ? { limits } : {}),
    };
    const { redacted } = recorded.metadata as EventMetadata;
    return again(basis, event, effects, recorded.revision, this.parentAt, redacted);
  }
}

/**
 * Makes every decision of a whole stream again whose rules have a number; for what a parent decided in its
 * sub-organization, also from the parent's stream.
 * @throws {Error} as `Redeciding` does
 */
export function redecide(
  stream: readonly RecordedEvent[],
  registry: Registry,
  parentStream: readonly RecordedEvent[] = [],
): Redecided[] {
  const redeciding = new Redeciding(registry, (authority) => {
    const parent = nothingLoaded();
    for (const event of parentStream.slice(0, authority.revision + 1)) apply(parent, event);
    return parent;
  });
  const made = stream.map((recorded) => {
    const before = redeciding.isNextDecision(recorded) ? redeciding.settle() : undefined;
    redeciding.take(recorded);
    return before;
  });
  return [...made, redeciding.settle()].filter((one) => one !== undefined);
}

function again(
  basis: Basis,
  event: Deciding,
  effects: readonly OrganizationEvent[],
  revision: number,
  parentAt: ParentAt,
  redacted = false,
): Redecided {
  const { vote } = event.data;
  const authority = event.type === 'ActivitySubmitted' ? authorityOf(event.data.decision, parentAt) : undefined;
  const voter = authority ? { ...voterOf({ ...basis, ...authority }, vote), authority } : voterOf(basis, vote);
  // Parts replaced in an export match no fingerprint; `verify` accepts such events only from an import.
  if (!redacted && fingerprintOf(Buffer.from(vote.message)) !== vote.fingerprint) {
    throw new Error(`the fingerprint of the vote at revision ${revision} is not that of its message`);
  }
  const { activityType, outcome, result } =
    event.type === 'ActivitySubmitted'
      ? submitAgain(basis, event, effects, voter)
      : voteAgain(basis, event, effects, voter);
  if (result === 'prepare-first') throw new Error(`${activityType} at revision ${revision} asks for what it had`);
  return {
    revision,
    activityType,
    recorded: [event, ...effects],
    again: inRecordedWords(result.events.map(plain), [event, ...effects]),
    outcome,
    outcomeAgain: result.outcome,
  };
}

/**
 * The outcome of a decision, with a failure in the words recorded then: its code was decided, and wording may improve.
 */
export function inRecordedWords(
  again: readonly OrganizationEvent[],
  recorded: readonly OrganizationEvent[],
): readonly OrganizationEvent[] {
  return again.map((made, index) => inWordsOf(index === again.length - 1 ? recorded.at(-1) : recorded[index], made));
}

function inWordsOf(recorded: OrganizationEvent | undefined, made: OrganizationEvent): OrganizationEvent {
  if (made.type === 'ActivityFailed' && recorded?.type === made.type) {
    const { failure } = recorded.data;
    return failure.code === made.data.failure.code ? { ...made, data: { ...made.data, failure } } : made;
  }
  if (made.type === 'ActivitySubmitted' && recorded?.type === made.type) {
    return { ...made, data: { ...made.data, decision: inWordsOfDecision(recorded.data.decision, made.data.decision) } };
  }
  if (made.type === 'ActivityApproved' && recorded?.type === made.type) {
    return { ...made, data: { ...made.data, decision: inWordsOfDecision(recorded.data.decision, made.data.decision) } };
  }
  return made;
}

/** Why a policy could not be read, as a sentence. */
function inWordsOfDecision(recorded: Decision, made: Decision): Decision {
  const policies = made.policies.map((one, index) => {
    const was = recorded.policies[index];
    if (one.error === undefined || was?.error === undefined || was.policyId !== one.policyId) return one;
    return { ...one, error: was.error };
  });
  return { ...made, policies };
}

function submitAgain(
  basis: Basis,
  { data }: Extract<Deciding, { type: 'ActivitySubmitted' }>,
  effects: readonly OrganizationEvent[],
  voter: Voter,
) {
  const { activityId, type, intent: parameters, fingerprint, timestampMs, generateAppProofs, vote, decision } = data;
  const version = activityVersion(basis.registry, type);
  const prepared = preparation(basis.registry, type, parameters, effects, basis.organization);
  const { found } = decision;
  const rest = { activityId, type, parameters, fingerprint, timestampMs, generateAppProofs, found };
  const decide = (submission: Submission) => decideSubmit(basis, submission, vote, voter, prepared);
  const result = decide({ ...rest, intent: newestIntent(version, parameters) });

  // Deciding from the signed bytes must give the same as from what was kept of them.
  const signed = parseStrictJson(Buffer.from(vote.message), Infinity).value;
  const submitted = validate(version.intent, signed['parameters'] as object, 'parameters');
  const fromBytes = decide({ ...rest, intent: newestIntent(version, submitted) });
  sameResult(result, fromBytes);
  const { parameters: signedParameters, type: signedType, timestampMs: signedTime } = signed;
  const kept = JSON.stringify([signedParameters, signedType, signedTime]);
  if (kept !== JSON.stringify([parameters, type, timestampMs])) {
    throw new Error(`activity \`${activityId}\` does not keep what was signed: ${kept}`);
  }
  checkSignedFor(basis, signed['organizationId']);
  return { activityType: type, outcome: decision.outcome, result };
}

function voteAgain(
  basis: Basis,
  event: Exclude<Deciding, { type: 'ActivitySubmitted' }>,
  effects: readonly OrganizationEvent[],
  voter: Voter,
) {
  const { activityId, vote } = event.data;
  const open = basis.organization.openActivities.get(activityId);
  if (!open) throw new Error(`a vote on activity \`${activityId}\`, which is not waiting for votes`);
  checkWord(basis, event, open);
  const prepared = preparation(basis.registry, open.type, open.intent, effects, basis.organization);
  // A vote whose approval is not enough yet is recorded with the outcome of the policies.
  const recorded = event.type === 'ActivityApproved' ? event.data.decision.outcome : 'deny-explicit';
  const outcome = recorded === 'deny-implicit' ? 'consensus-needed' : recorded;
  return { activityType: open.type, outcome, result: decideVote(basis, open, vote, voter, prepared) };
}

/** A body may name the organization that it is recorded in, or its parent (client protocol 1.4). */
function checkSignedFor({ organization }: Basis, signedFor: unknown): void {
  const { organizationId, parentOrganizationId } = organization;
  const named = typeof signedFor === 'string' ? signedFor.toLowerCase() : signedFor;
  if (named === organizationId.toLowerCase() || named === parentOrganizationId?.toLowerCase()) return;
  throw new Error(`the signed request is for organization \`${String(signedFor)}\`, not for this one`);
}

/** A signed vote names its activity and agrees with the event; or it is the body that is voted on. */
function checkWord(
  basis: Basis,
  { type, data: { vote } }: Exclude<Deciding, { type: 'ActivitySubmitted' }>,
  open: OpenActivity,
): void {
  const words = [open.fingerprint, ...open.votes.map(({ fingerprint }) => fingerprint)];
  const signed = parseStrictJson(Buffer.from(vote.message), Infinity).value;
  checkSignedFor(basis, signed['organizationId']);
  if (words.includes(vote.fingerprint)) {
    const same = open.votes.find(({ fingerprint }) => fingerprint === vote.fingerprint);
    if (same && same.selection !== vote.selection) throw new Error('the same signed vote counts for and against');
    return;
  }
  const definition = basis.registry.versions.get(String(signed['type']))?.definition;
  if (definition?.kind !== 'vote')
    throw new Error(`the signed request is not a vote, but \`${String(signed['type'])}\``);
  const said = definition.selection === 'VOTE_SELECTION_APPROVED' ? 'ActivityApproved' : 'ActivityRejected';
  if (said !== type) throw new Error(`what was signed is \`${definition.selection}\``);
  const { fingerprint } = signed['parameters'] as { readonly fingerprint?: unknown };
  if (!words.includes(String(fingerprint))) {
    throw new Error(`the signed vote is on \`${String(fingerprint)}\`, not on activity \`${open.activityId}\``);
  }
}

/** The deciding parent, as it was seen. @throws {Error} if its stream does not exist */
export function authorityOf({ authority }: Decision, parentAt: ParentAt): Voter['authority'] {
  if (!authority) return undefined;
  const { organization, revision } = parentAt(authority);
  const seen = { organizationId: organization.organizationId, revision };
  if (seen.organizationId !== authority.organizationId || seen.revision !== authority.revision) {
    throw new Error(`decided by ${JSON.stringify(authority)}, whose stream is missing: ${JSON.stringify(seen)}`);
  }
  return { organization, revision };
}

/**
 * The voter, with the credential as the organization knew it before the vote.
 * @throws {Error} if the user or the credential does not exist
 */
export function voterOf({ organization, now }: Basis, { userId, credentialId, publicKey, attestation }: Vote): Voter {
  const invited = invitedBy(publicKey, organization, now);
  if (invited?.user.userId === userId) return { userId, credential: invited.credential };
  const user = organization.users.get(userId);
  if (!user) throw new Error(`a vote by user \`${userId}\`, who does not exist`);
  const standIn = testKeyCaller(organization, publicKey);
  if (standIn?.user.userId === userId && standIn.credential.id === credentialId) {
    return { userId, credential: standIn.credential };
  }
  const attested = attestation && attestedCredential(user, attestation, publicKey);
  const credential = [...(attested ? [attested] : []), ...credentialsOf(user)].find(({ id }) => id === credentialId);
  if (credential?.publicKey !== publicKey) throw new Error(`user \`${userId}\` has no credential \`${credentialId}\``);
  return { userId, credential };
}

/** The output that `prepare` must have had, or why it failed. */
export function preparation(
  registry: Registry,
  type: string,
  parameters: object,
  effects: readonly OrganizationEvent[],
  organization: OrganizationView,
): Prepared {
  const version = activityVersion(registry, type);
  const { definition } = version;
  const end = effects.at(-1);
  if (!definition.recall || !end) return undefined;
  // One that fails with effects was decided to fail, by what it had prepared.
  if (end.type === 'ActivityFailed' && effects.length === 1) {
    const { code, message } = end.data.failure;
    return { refusal: new CoordinatorError(code, message) };
  }
  const recorded = new RecordedActivity(effects);
  return { value: definition.recall(newestIntent(version, parameters), recorded, organization) };
}

function sameResult(one: DecisionResult, other: DecisionResult): void {
  const text = (result: DecisionResult) => JSON.stringify(result);
  if (text(one) !== text(other))
    throw new Error(`the signed bytes lead to a different decision:\n${text(one)}\n${text(other)}`);
}

function checkSameCause(deciding: RecordedEvent, effect: RecordedEvent): void {
  const of = ({ metadata }: RecordedEvent) => {
    const { at, $correlationId, $causationId } = metadata as EventMetadata;
    return JSON.stringify([at, $correlationId, $causationId]);
  };
  if (of(deciding) === of(effect)) return;
  throw new Error(`revision ${effect.revision} does not follow from revision ${deciding.revision}: ${of(effect)}`);
}

/** A recorded event as readers see it, including what the store keeps only once. */
export function eventOf(recorded: RecordedEvent): OrganizationEvent {
  const { type, data } = upcast(recorded);
  return { type, data } as OrganizationEvent;
}

/** Whether the event starts a decision. */
export function isDeciding(event: OrganizationEvent): event is Deciding {
  return decidingTypes.has(event.type);
}

/** In stored form. */
export const plain = (event: OrganizationEvent) => JSON.parse(JSON.stringify(event)) as OrganizationEvent;
