import type { CoordinatorError } from '../domain/errors.js';
import type { DerivedAddress } from '../domain/activity/app-proof.js';
import type { Attestation, VoteSelection } from '../domain/activity/events.js';
import type { Limits } from '../domain/organization/limits.js';
import type { OrganizationEvent, OrganizationView } from '../domain/organization/organization.js';
import type { Login, UserTouched } from '../domain/organization/quorum-members.js';
import type { PolicyEnvironment } from '../domain/policy/namespaces.js';
import type { PolicyType, PolicyValue, RequestPart } from '../domain/policy/types.js';
import type { Steps } from '../domain/steps.js';
import type { ReadingOutcome, ToRead } from '../transactions/reading.js';
import type { KeyringPort } from '../ports/keyring.js';
import type { PreparePorts } from '../ports/prepare.js';
import type { RecordedActivity } from './recorded-activity.js';

/** What `decide` may look at besides the intent. Everything here is recorded or folded, so that replay decides alike. */
export interface DecideContext {
  readonly organization: OrganizationView;
  readonly activityId: string;
  /** The user who submitted the activity. */
  readonly submitterId: string;
  /** The credential that the submission was stamped with. */
  readonly credentialId: string;
  /** What was proved by the stamp of the submission, if it was an attested one. */
  readonly attestation?: Attestation;
  /** Recorded time of the decision, milliseconds since the epoch. */
  readonly now: number;
  /** A new id, derived from the activity's: deciding again gives the same ids in the same order. */
  readonly newId: () => string;
  /** What policies of this build may talk about. */
  readonly policyEnvironment: PolicyEnvironment;
  /** Number of the rules that decide; today's unless history is decided again. */
  readonly rules?: number;
  /** The limits that hold for the organization. */
  readonly limits: Limits;
  /** Those that hold for sub-organizations of it. */
  readonly subOrganizationLimits: Limits;
}

/** What `prepare` may look at besides the intent. */
export interface PrepareContext {
  /** As it is now; it may have changed by the time of `decide`. */
  readonly organization: OrganizationView;
  /** Its parent, as it is now; undefined where there is none. */
  readonly parent?: OrganizationView | undefined;
  /** The user who submitted the activity; one of the parent's where `submittedBy` lets them in. */
  readonly submitterId: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** The limits that hold for the organization. */
  readonly limits: Limits;
  /** Those that hold for sub-organizations of it. */
  readonly subOrganizationLimits: Limits;
  /** A new id, of this attempt alone: preparing again, at the same moment too, gives others. */
  readonly newId: () => string;
}

/** The limits that hold for an organization, and for its sub-organizations. */
export type LimitsToCheck = Pick<DecideContext, 'limits' | 'subOrganizationLimits'>;

/** Something to be read in a thread of its own, and where to leave what was read or why it cannot be. */
export interface ToReadAhead {
  readonly job: ToRead;
  /** @param family a parent with its sub-organizations, whose share of the memory it takes */
  keep(outcome: ReadingOutcome, family: string): void;
}

type ActivityOutcome<Result> =
  | {
      readonly events: readonly OrganizationEvent[];
      readonly result: Result;
      /** Who has proved to be which user without a credential; its key is that user's own doing. */
      readonly login?: Login;
      /** That nobody could reach the root quorum any more is meant. */
      readonly leavesUnreachable?: boolean;
    }
  /** It fails, and that is a fact which must not be lost, such as a wrong code that counts; the caller gets the failure. */
  | { readonly events: readonly OrganizationEvent[]; readonly failure: CoordinatorError };

/** An older wire version of a verb: its own intent and keys, lifted to the newest intent before anything is decided. */
interface OlderVersion<Intent extends object> {
  readonly type: string;
  readonly intent: new () => object;
  /** Both default to the names that the type implies (specification, section 9). */
  readonly intentKey?: string;
  readonly resultKey?: string;
  /** @throws {CoordinatorError} when this version cannot be expressed in the newest */
  lift(intent: object): Intent;
}

interface Described<Type extends string> {
  /** The newest type; its name gives the path and the intent and result keys unless said otherwise. */
  readonly type: Type;
  readonly intentKey?: string;
  /** Several, in this order, where a published client sends the newest type and reads the result of another. */
  readonly resultKey?: string | readonly string[];
  /** One sentence for the reference. */
  readonly summary: string;
}

/** A verb that asks something of the world before it is decided, and how history gives back what the world gave. */
interface Preparing<Intent extends object, Result extends object, Recalled, Prepared> {
  /**
   * The only step that may touch the world. Runs once the activity is allowed; kept over retries of the append. The
   * organization may have changed by the time of `decide`, which checks again.
   */
  prepare(intent: Intent, ports: PreparePorts, context: PrepareContext): Promise<Prepared & NoInfer<Recalled>>;
  /**
   * What `prepare` gave, from what the decision has left in history: all that `decide` may ask for, so that every decision
   * can be made again. Not asked where `prepare` has refused. Pure.
   * @throws {Error} when no such decision leaves such events
   */
  recall(intent: Intent, recorded: RecordedActivity<Result>, organization: OrganizationView): Recalled;
}

/**
 * A verb that asks the keyring to sign, and nothing else. A signature leaves nothing outside, and is nobody's until the append has
 * proved that it was allowed. Of what prepares it is first made sure that it is allowed at the newest revision.
 */
interface Signing<Intent extends object, Result extends object, Recalled, Prepared> extends Pick<
  Preparing<Intent, Result, Recalled, Prepared>,
  'recall'
> {
  readonly prepare?: undefined;
  /** As `prepare`. */
  sign(
    intent: Intent,
    keyring: Pick<KeyringPort, 'sign'>,
    context: PrepareContext,
  ): Promise<Prepared & NoInfer<Recalled>>;
}

interface NotPreparing {
  readonly prepare?: undefined;
  readonly sign?: undefined;
  readonly recall?: undefined;
}

type Asking<Intent extends object, Result extends object, Recalled, Prepared> =
  | (Preparing<Intent, Result, Recalled, Prepared> & { readonly sign?: undefined })
  | Signing<Intent, Result, Recalled, Prepared>
  | NotPreparing;

/**
 * Who may submit a verb: a user of the organization, if a policy or the root quorum allows it; or whom the rule of that name lets in
 * (`decide/submitters.ts`).
 */
export type SubmittedBy = 'user' | 'user-or-parent' | 'user-who-logs-in' | 'parent' | 'invitee';

/** An API key, a passkey, or a key that a token vouches for (client protocol 1.3). */
export type StampKind = 'api-key' | 'webauthn' | 'attested';

/** One verb of the Activity API, in one value. Listing it in `index.ts` registers it. */
export type ActivityDefinition<
  Type extends string,
  Intent extends object,
  Result extends object,
  Recalled = unknown,
  Prepared = Recalled,
> = Verb<Type, Intent, Result, Recalled, Prepared> &
  Asking<Intent, Result, Recalled, Prepared> & { readonly kind: 'activity' };

interface Verb<
  Type extends string,
  Intent extends object,
  Result extends object,
  Recalled,
  Prepared,
> extends Described<Type> {
  readonly intent: new () => Intent;
  readonly result: new () => Result;
  readonly olderVersions?: readonly OlderVersion<Intent>[];
  /** Who may do it: policies that speak of this pair, or only the root quorum (client protocol 9.4). */
  readonly policy: { readonly resource: string; readonly action: string } | 'root-quorum-only';
  /** What policies may read as `activity.params.<name>`: its type, and how to get it from the intent. */
  readonly params?: Readonly<
    Record<
      string,
      {
        readonly type: PolicyType;
        /** All that it can be, where that is a closed list. */
        readonly literals?: readonly string[];
        from(intent: Intent): PolicyValue | undefined;
      }
    >
  >;
  /**
   * What policies may read as `wallet`, `private_key`, `eth` and their like (client protocol 9.3), by namespace.
   * @throws {CoordinatorError} when the intent names what is not there, or holds a transaction that cannot be read
   */
  resources?(intent: Intent, organization: OrganizationView): Readonly<Record<string, PolicyValue>>;
  /**
   * Stands in for `resources` where a request has several payloads: what policies may read of each, and each is decided
   * alone.
   * @throws {CoordinatorError} as `resources` does
   */
  payloads?(intent: Intent, organization: OrganizationView): readonly RequestPart[];
  /**
   * What takes longer to read in this intent than is left of `steps`, and was not read yet: it is read elsewhere before the
   * decision asks for `resources`, `payloads` or `check`, which read by themselves whatever is left.
   * @throws {CoordinatorError} as they do
   */
  ahead?(intent: Intent, organization: OrganizationView, steps: Steps): ToReadAhead | undefined;
  /** The user whose own credentials this manages; users may manage their own unless a policy speaks to it. */
  ownCredentialsOf?(intent: Intent): string;
  /**
   * What it records of the user that the intent names, as far as that may change what the user logs in with: it is asked before
   * anything is prepared. What it then records is asked alike, so this may be left out where the intent does not say (see
   * `quorum-members.ts`).
   */
  touches?(intent: Intent): UserTouched;
  /** A user of the organization, unless said. */
  readonly submittedBy?: SubmittedBy;
  /** The kinds of stamps it takes: API keys and passkeys, unless said (specification 4.3.3, 4.3.17; client protocol 1.3). */
  readonly stamps?: readonly StampKind[];
  /**
   * What can be refused before there is anything: asked when it is submitted, so that nobody votes on what cannot be
   * done, before `prepare`, so that nothing is made in vain, and again before `decide`. Pure.
   * @throws {CoordinatorError} to refuse
   */
  check?(intent: Intent, organization: OrganizationView, limits: LimitsToCheck): void;
  /**
   * What happens, and what is answered. Pure.
   * @throws {CoordinatorError} to refuse; see `refuse…` of the noun files for the common ones
   */
  decide(intent: Intent, context: DecideContext, prepared: Recalled): ActivityOutcome<Result>;
  /** Addresses that it has derived and that none of its events has, for app proofs. */
  derivedBeside?(intent: Intent, organizationId: string, prepared: Prepared): readonly DerivedAddress[];
  /**
   * What must not happen before the events are recorded, such as to send a code: runs once they are, unless it failed, and
   * before the answer; takes no time. It is lost with a process that dies in between.
   * @throws {CoordinatorError} to tell the caller that it could not be done, though what was decided stands
   */
  afterwards?(prepared: Prepared, ports: PreparePorts): void;
  /**
   * What only the answer to the append tells the submitter, and nothing that is recorded: the result with its secret. Without
   * `appended` the same bytes have come again, from whoever has read them: undefined unless it takes a key to use the secret.
   * As nobody else is told, a request for it never waits for votes.
   */
  reveal?(
    result: Result,
    ports: Pick<PreparePorts, 'tokens'>,
    appended: { readonly prepared: Prepared } | undefined,
  ): Promise<Result | undefined>;
}

/** A verb that is a word on another activity; it has no life of its own. */
export interface VoteDefinition<Type extends string> extends Described<Type> {
  readonly kind: 'vote';
  readonly intent: new () => { fingerprint: string };
  readonly selection: VoteSelection;
}

/** Any definition, as the driver sees it once its own types no longer matter. */
export type AnyActivity = ActivityDefinition<string, object, object, unknown, unknown>;
export type AnyVote = VoteDefinition<string>;
export type AnyDefinition = AnyActivity | AnyVote;

/** Declares a verb; infers what `prepare` gives, and what `recall` gives of it to `decide`. */
export function defineActivity<
  const Type extends string,
  Intent extends object,
  Result extends object,
  Recalled,
  Prepared,
>(
  definition: Verb<Type, Intent, Result, Recalled, Prepared> & Asking<Intent, Result, Recalled, Prepared>,
): ActivityDefinition<Type, Intent, Result, Recalled, Prepared> {
  return { kind: 'activity', ...definition };
}

/** Declares a vote. */
export function defineVote<const Type extends string>(
  definition: Omit<VoteDefinition<Type>, 'kind'>,
): VoteDefinition<Type> {
  return { kind: 'vote', ...definition };
}
