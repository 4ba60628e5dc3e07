import type {
  PolicyEnvironment,
  Approval,
  AuthorizationRequest,
  Policy,
  PolicyUser,
  PolicyValue,
} from 'countersign/internal';
import type { AnalysedActivity } from './analysed-activities.js';

/** A set of policies, and the root quorum that stands above it. */
export interface AnalysedSet {
  readonly policies: readonly Policy[];
  readonly quorum: { readonly threshold: number; readonly userIds: readonly string[] };
}

/** What questions are about. */
export interface AnalysisSubject extends AnalysedSet {
  readonly users: readonly PolicyUser[];
  readonly environment: PolicyEnvironment;
  readonly activities: readonly AnalysedActivity[];
}

/** What is fixed of a request; everything else is open. */
export interface GivenFacts {
  readonly by?: string;
  readonly params: Readonly<Record<string, PolicyValue>>;
  readonly resources: Readonly<Record<string, PolicyValue>>;
  /** Milliseconds since the epoch. */
  readonly now?: number;
}

/** A question about all requests. Users are ids. */
export type AnalysisQuestion =
  | {
      readonly kind: 'can';
      readonly users: readonly string[];
      /** Most approvals, the submitter's included. */
      readonly approvals?: number;
      readonly activities: readonly AnalysedActivity[];
      readonly given: GivenFacts;
    }
  /** Whether both allow the same. */
  | { readonly kind: 'same'; readonly sets: readonly [AnalysedSet, AnalysedSet] }
  /** Whether everything that one set allows is allowed by the other; of two sets of denials, whatever one denies. */
  | { readonly kind: 'implied'; readonly set: AnalysedSet; readonly by: AnalysedSet }
  | {
      readonly kind: 'locked-out';
      readonly without: readonly string[];
      readonly activities: readonly AnalysedActivity[];
    };

/** A request that does what the solver said, when it is decided by the code that decides. */
export interface Example {
  readonly activity: string;
  readonly submitter: string;
  /** The other approvals, in order, by user. */
  readonly approvals: readonly string[];
  /** What the request has, by path; only what policies read. */
  readonly facts: Readonly<Record<string, string>>;
  /** An RFC 3339 time, if policies read it. */
  readonly now?: string;
}

/** A request as the solver has found it, with its approvals, for the code that decides. */
export interface FoundCase {
  readonly request: AuthorizationRequest;
  readonly users: readonly PolicyUser[];
  /** The submitter's first. */
  readonly approvals: readonly Approval[];
  readonly now: number;
}

/** What a coordinator must answer to a case, if the solver and the evaluator are right. */
export interface Claim {
  /** Its approvals are in the order of the votes: before the last one, it waits. */
  readonly found: FoundCase;
  readonly set: AnalysedSet;
  /** With all approvals. */
  readonly isAllowed: boolean;
}

/** What came out. `yes` to `can` is shown by an example, `no` is a proof within the bounds; to the others it is the reverse. */
export interface AnalysisAnswer {
  readonly answer: 'yes' | 'no' | 'unknown' | 'disagree';
  readonly example?: Example;
  /** What the example comes to, for a coordinator to show. */
  readonly claims?: readonly Claim[];
  /** Why it claims nothing of a coordinator. */
  readonly unclaimed?: string;
  /** Why it is unknown, or what the example did. */
  readonly note?: string;
  /** Kinds of activity that nobody could do any more. */
  readonly lost?: readonly string[];
  /** What was taken to be wider than it is. */
  readonly widened: readonly string[];
}

/** Runs a script for the solver; undefined if that takes too long. */
export type Solve = (script: string) => Promise<string | undefined>;
