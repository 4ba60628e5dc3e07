import type { CoordinatorError } from '../domain/errors.js';
import type { DerivedAddress } from '../domain/activity/app-proof.js';
import type { Attestation, VoteSelection } from '../domain/activity/events.js';
import type { Limits } from '../domain/organization/limits.js';
import type { OrganizationEvent, OrganizationView } from '../domain/organization/organization.js';
import type { Login, UserTouched } from '../domain/organization/quorum-members.js';
import type { PolicyEnvironment } from '../domain/policy/namespaces.js';
import type { PolicyType, PolicyValue, RequestPart } from '../domain/policy/types.js';
import type { Steps } from '../domain/steps.js';
import type { ReadingOutcome, ToRead, UploadedInterface } from '../transactions/reading.js';
import type { KeyringPort } from '../ports/keyring.js';
import type { PreparePorts } from '../ports/prepare.js';
import type { RecordedActivity } from './recorded-activity.js';

/** What `decide` may read besides the intent. All of it is recorded or folded, so that a replay decides the same. */
export interface DecideContext {
  readonly organization: OrganizationView;
  readonly activityId: string;
  /** The user who submitted the activity. */
  readonly submitterId: string;
  /** The credential that stamped the submission. */
  readonly credentialId: string;
  /** What the submission's stamp proved, if it was an attested stamp. */
  readonly attestation?: Attestation | undefined;
  /** Recorded time of the decision, milliseconds since the epoch. */
  readonly now: number;
  /** A new id, derived from the activity's id: deciding again yields the same ids in the same order. */
  readonly newId: () => string;
  /** What policies of this build can refer to. */
  readonly policyEnvironment: PolicyEnvironment;
  /** The organization's own root quorum approved it; absent while votes are missing, as it still may. */
  readonly isRootQuorums?: boolean;
  /** The limits that hold for the organization. */
  readonly limits: Limits;
  /** Those that hold for sub-organizations of it. */
  readonly subOrganizationLimits: Limits;
}

/** What `prepare` may read besides the intent. */
export interface PrepareContext {
  /** In its current state; it may have changed when `decide` runs. */
  readonly organization: OrganizationView;
  /** Its parent, in its current state; undefined if it has none. */
  readonly parent?: OrganizationView | undefined;
  /** The user who submitted the activity; one of the parent's where `submittedBy` lets them in. */
  readonly submitterId: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /**
   * Called before a token of the parent counts.
   * @throws {CoordinatorError} UNAVAILABLE if the parent's last event is too far ahead of the clock
   */
  readonly checkParentsTime: () => void;
  /** The limits that hold for the organization. */
  readonly limits: Limits;
  /** Those that hold for sub-organizations of it. */
  readonly subOrganizationLimits: Limits;
  /** A new id, for this attempt only: another preparation, even at the same moment, gets others. */
  readonly newId: () => string;
}

/** An event, or what is known of it before it is decided. */
export type Foreseen = OrganizationEvent extends infer Event
  ? Event extends { readonly type: infer Type; readonly data: infer Data }
    ? { readonly type: Type; readonly data: Partial<Data> }
    : never
  : never;

/** The limits that hold for an organization, and for its sub-organizations. */
export type LimitsToCheck = Pick<DecideContext, 'limits' | 'subOrganizationLimits'>;

/** Something to read in a worker thread, and where to put the result or the reason why it cannot be read. */
export interface ToReadAhead {
  readonly job: ToRead;
  /** @param family a parent with its sub-organizations, which pay for the memory */
  keep(outcome: ReadingOutcome, family: string): void;
}

type ActivityOutcome<Result> =
  | {
      readonly events: readonly OrganizationEvent[];
      readonly result: Result;
      /** Who proved, without a credential, which user they are; the key is then that user’s own doing. */
      readonly login?: Login;
      /** The caller accepts that nobody can reach the root quorum any more. */
      readonly leavesUnreachable?: boolean;
    }
  /** It fails, and the failure must be recorded, such as a wrong code that counts; the caller gets the failure. */
  | { readonly events: readonly OrganizationEvent[]; readonly failure: CoordinatorError };

/** An older wire version of a verb: its own intent and keys, converted to the newest intent before anything is decided. */
interface OlderVersion<Intent extends object> {
  readonly type: string;
  readonly intent: new () => object;
  /** Both default to the names that the type implies (specification, section 9). */
  readonly intentKey?: string;
  readonly resultKey?: string;
  /** @throws {CoordinatorError} if this version cannot be expressed in the newest one */
  lift(intent: object): Intent;
}

interface Described<Type extends string> {
  /** The newest type; path, intent key and result key follow from its name unless given. */
  readonly type: Type;
  readonly intentKey?: string;
  /** Several, in this order, if a published client sends the newest type and reads the result of another one. */
  readonly resultKey?: string | readonly string[];
  /** One sentence for the reference. */
  readonly summary: string;
}

/** A verb that needs something from outside before it is decided, and how to get that back from history. */
interface Preparing<Intent extends object, Result extends object, Recalled, Prepared> {
  /**
   * The only step with side effects. Runs once the activity is allowed; retries of the append keep its result. The
   * organization may have changed when `decide` runs, which checks again.
   */
  prepare(intent: Intent, ports: PreparePorts, context: PrepareContext): Promise<Prepared & NoInfer<Recalled>>;
  /**
   * The result of `prepare`, reconstructed from the recorded events: all of it that `decide` reads, so that every decision
   * can be made again. Not called if `prepare` refused. Pure.
   * @throws {Error} if no such decision records such events
   */
  recall(intent: Intent, recorded: RecordedActivity<Result>, organization: OrganizationView): Recalled;
}

/**
 * A verb that only asks the keyring to sign. A signature has no side effects, and nobody gets it until the append has proved that
 * it was allowed. For verbs that prepare, authorization at the newest revision is checked first.
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
 * Who may submit a verb: a user of the organization, if a policy or the root quorum allows it; or others, by the rule with that
 * name (`decide/submitters.ts`).
 */
export type SubmittedBy = 'user' | 'root-user' | 'user-or-parent' | 'user-who-logs-in' | 'parent' | 'invitee';

/** An API key, a passkey, or a key that a token vouches for (docs/protocol.md, attested stamps). */
export type StampKind = 'api-key' | 'webauthn' | 'attested';

/** One verb of the Activity API as one value. Listing it in `index.ts` registers it. */
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
  /** Resource and action, for policies; or that only the root quorum may do it (docs/protocol.md, order of evaluation). */
  readonly policy: { readonly resource: string; readonly action: string } | 'root-quorum-only';
  /** What policies may read as `activity.params.<name>`: its type, and how to get it from the intent. */
  readonly params?: Readonly<
    Record<
      string,
      {
        readonly type: PolicyType;
        /** All possible values, if it is a closed list. */
        readonly literals?: readonly string[];
        from(intent: Intent): PolicyValue | undefined;
      }
    >
  >;
  /**
   * What policies may read as `wallet`, `private_key`, `eth` and their like (docs/protocol.md, policy namespaces), by namespace.
   * @throws {CoordinatorError} if the intent names something that does not exist, or contains an unreadable transaction
   */
  resources?(intent: Intent, organization: OrganizationView): Readonly<Record<string, PolicyValue>>;
  /**
   * Replaces `resources` if a request has several payloads: what policies may read of each. Each is decided on its own.
   * @throws {CoordinatorError} as `resources` does
   */
  payloads?(intent: Intent, organization: OrganizationView): readonly RequestPart[];
  /**
   * What it would sign, read from the intent alone, for those who do not rely on a coordinator's description: as `resources` and
   * `payloads`, without what only the organization knows. `interfaces` are used for the contracts at their addresses.
   * @throws {CoordinatorError} if the intent contains something that cannot be read
   */
  content?(intent: Intent, interfaces: readonly UploadedInterface[]): readonly RequestPart[];
  /**
   * What the remaining `steps` do not suffice to read in this intent, and was not read yet. It is read in a worker before the
   * decision calls `resources`, `payloads` or `check`, which read the rest themselves.
   * @throws {CoordinatorError} like these
   */
  ahead?(intent: Intent, organization: OrganizationView, steps: Steps): ToReadAhead | undefined;
  /** The user whose own credentials this manages; users may manage their own unless a policy refers to it. */
  ownCredentialsOf?(intent: Intent): string;
  /**
   * What it would record about the user named in the intent, as far as it changes how that user logs in: checked before anything is
   * prepared. What it then records is checked in the same way, so leave this out if the intent does not tell (see
   * `quorum-members.ts`).
   */
  touches?(intent: Intent): UserTouched;
  /**
   * What it would record, as far as its parameters say, for its approvers: if `decide` needs what `prepare`
   * returns, or costs more than that. Pure.
   */
  foreseen?(intent: Intent): readonly Foreseen[];
  /** The texts among what it would sign, named as `payloads` does. They are for approvers: policies do not read them. */
  texts?(intent: Intent): readonly { readonly name: string; readonly text: string }[];
  /** By default, a user of the organization. */
  readonly submittedBy?: SubmittedBy;
  /** The stamps it accepts: by default, API keys and passkeys (specification 4.3.3, 4.3.17; docs/protocol.md, attested stamps). */
  readonly stamps?: readonly StampKind[];
  /**
   * Refuses what can be refused early. Called on submission, so that nobody votes on something impossible; before `prepare`, so
   * that nothing is made in vain; and again before `decide`. Pure.
   * @throws {CoordinatorError} to refuse
   */
  check?(intent: Intent, organization: OrganizationView, limits: LimitsToCheck): void;
  /**
   * The events and the result. Pure.
   * @throws {CoordinatorError} to refuse; see `refuse…` of the noun files for the common ones
   */
  decide(intent: Intent, context: DecideContext, prepared: Recalled): ActivityOutcome<Result>;
  /** For app proofs: derived addresses that are in none of its events. */
  derivedBeside?(intent: Intent, organizationId: string, prepared: Recalled): readonly DerivedAddress[];
  /**
   * What must not happen before the events are recorded, such as sending a code. Runs after the append, unless the activity failed,
   * and before the response; must be quick. If the process dies in between, it is lost.
   * @throws {CoordinatorError} to tell the caller that it could not be done; the decision stands
   */
  afterwards?(prepared: Prepared, ports: PreparePorts): void;
  /**
   * The result with its secret, which only the first response tells the submitter and which is never recorded. Without `appended`,
   * the same bytes have come again, perhaps from somebody who read them: undefined unless the secret takes a key to use.
   * Because nobody else gets it, such a request never waits for votes.
   */
  reveal?(
    result: Result,
    ports: Pick<PreparePorts, 'tokens'>,
    appended: { readonly prepared: Prepared } | undefined,
  ): Promise<Result | undefined>;
}

/** A verb that votes on another activity, and is no activity itself. */
export interface VoteDefinition<Type extends string> extends Described<Type> {
  readonly kind: 'vote';
  readonly intent: new () => { fingerprint: string };
  readonly selection: VoteSelection;
}

/** Any definition, with its own types erased, as the driver sees it. */
export type AnyActivity = ActivityDefinition<string, object, object, unknown, unknown>;
export type AnyVote = VoteDefinition<string>;
export type AnyDefinition = AnyActivity | AnyVote;

/** Declares a verb; infers what `prepare` returns, and what of it `recall` gives to `decide`. */
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
