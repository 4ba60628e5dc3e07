/**
 * The type of an expression of the policy language (docs/reference/policy-language.md). `int` is 128-bit signed, `uint`
 * 256-bit unsigned, `timestamp` milliseconds since the epoch. A `hex` string is compared without regard to letter case;
 * one that is hex when `prefixed`, only if it begins with 0x. The type of a `dynamic` value is known once it is read.
 */
export type PolicyType =
  | { readonly kind: 'bool' }
  | { readonly kind: 'int' }
  | { readonly kind: 'uint' }
  | { readonly kind: 'string'; readonly hex?: 'always' | 'prefixed' }
  | { readonly kind: 'timestamp' }
  | { readonly kind: 'dynamic' }
  | { readonly kind: 'list'; readonly of: PolicyType }
  | { readonly kind: 'map'; readonly of: PolicyType }
  | { readonly kind: 'record'; readonly name: string; readonly fields: Readonly<Record<string, PolicyType>> };

/** Stands for a missing value, and says why. `reason` appears in decisions and refusals, so it contains no secrets. */
export abstract class Doubt {
  abstract readonly kind: 'unreadable' | 'not-applicable';

  constructor(readonly reason: string) {}
}

/** Stands for a value that is present and cannot be read: undecodable, of the wrong type, deleted in the meantime. */
export class Unreadable extends Doubt {
  readonly kind = 'unreadable';
}

/** Stands for what this type of activity, with this kind of key, never has, whatever is sent. */
export class NotApplicable extends Doubt {
  readonly kind = 'not-applicable';
}

/**
 * Text that may stand for more than it says: a key that only the chain knows, an address with other names. Equal to
 * `text`; whether it is equal to another text that it may stand for is unknown.
 */
export class AmbiguousText {
  constructor(
    readonly text: string,
    readonly reason: string,
    readonly mayBe: (other: string) => boolean,
  ) {}
}

/**
 * A value of the policy language: int, uint and timestamp are bigint. An undefined field is missing in the request, and
 * is as unreadable as one that says why. A NotApplicable value must not depend on anything that a requester can choose.
 */
export type PolicyValue =
  | boolean
  | bigint
  | string
  | AmbiguousText
  | Doubt
  | readonly PolicyValue[]
  | { readonly [field: string]: PolicyValue | undefined };

/**
 * The marker for something present that cannot be read: every policy that reads it is in doubt, and a DENY then
 * applies.
 */
export function unreadable(reason: string): Unreadable {
  return new Unreadable(reason);
}

/** The marker for something that is not part of the request. No ALLOW that reads it applies, and no DENY. */
export const notApplicable = new NotApplicable('not part of this request');

/**
 * The clauses of a policy: `condition` = when it applies, `consensus` = who must approve, `time` = when it is active.
 */
export type Clause = 'condition' | 'consensus' | 'time';

/** The outcome of one policy for one request (docs/protocol.md, order of evaluation). */
export type PolicyOutcome =
  | 'OUTCOME_ALLOW'
  | 'OUTCOME_DENY_EXPLICIT'
  | 'OUTCOME_DENY_IMPLICIT'
  | 'OUTCOME_REQUIRES_CONSENSUS'
  | 'OUTCOME_REJECTED'
  | 'OUTCOME_ERROR'
  | 'OUTCOME_REQUIRES_AUTHENTICATORS'
  | 'OUTCOME_TIME_INACTIVE';

/** A policy of an organization. An absent clause restricts nothing. Times are milliseconds since the epoch. */
export interface Policy {
  readonly policyId: string;
  readonly policyName: string;
  readonly effect: 'EFFECT_ALLOW' | 'EFFECT_DENY';
  readonly condition?: string;
  readonly consensus?: string;
  readonly time?: string;
  readonly notes: string;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** A credential as policies see it. `type` is CREDENTIAL_TYPE_…; only passkeys have a `credentialId`. */
export interface PolicyCredential {
  readonly id: string;
  readonly userId: string;
  readonly type: string;
  readonly publicKey: string;
  readonly credentialId?: string;
}

/** A user as policies see it. `tags` are tag ids; `credentials` are those the user could approve with now. */
export interface PolicyUser {
  readonly userId: string;
  readonly userName: string;
  readonly email?: string;
  readonly tags: readonly string[];
  readonly credentials: readonly PolicyCredential[];
}

/** A live approval: who, and with which credential. */
export interface Approval {
  readonly userId: string;
  readonly credential: PolicyCredential;
}

/** An approval whose user is known, as cast or as it could be cast. */
export interface UserApproval {
  readonly user: PolicyUser;
  readonly credential: PolicyCredential;
}

/** By name, the roots of the namespaces on wallets, keys and transactions; or why none can be read. */
type Resources = Readonly<Record<string, PolicyValue>> | Unreadable;

/** One of several payloads, each of which is decided alone; `name` says which. */
export interface RequestPart {
  readonly name: string;
  readonly resources: Readonly<Record<string, PolicyValue>>;
}

/** What is to be decided. `parts` replace `resources` if there are several payloads. */
export interface AuthorizationRequest {
  readonly activity: {
    readonly type: string;
    readonly kind: string;
    readonly resource?: string;
    readonly action?: string;
    readonly params: Readonly<Record<string, PolicyValue | undefined>>;
  };
  readonly resources?: Resources | undefined;
  readonly parts?: readonly RequestPart[] | undefined;
  readonly submitterId: string;
  /** It already waits for votes. */
  readonly isWaiting?: boolean;
  /** Policies cannot grant it (docs/protocol.md, order of evaluation). */
  readonly rootQuorumOnly: boolean;
  /** It manages the submitter's own credentials; `session`: only an expiring key for the user who stamped. */
  readonly ownCredentials: boolean | 'session';
}
