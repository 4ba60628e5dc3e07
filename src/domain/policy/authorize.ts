import type { PolicyEnvironment } from './namespaces.js';
import type { Approval, AuthorizationRequest, Policy, PolicyOutcome, PolicyUser } from './types.js';

export type { Approval, AuthorizationRequest, PolicyCredential, PolicyUser } from './types.js';

/** The organization at the revision decided at. `now` is milliseconds since the epoch. */
export interface AuthorizationContext {
  readonly policies: Iterable<Policy>;
  readonly rootQuorum: { readonly threshold: number; readonly userIds: readonly string[] };
  readonly users: Iterable<PolicyUser>;
  readonly environment: PolicyEnvironment;
  readonly now: number;
}

/** The decision, what it rests on, and what each policy said, in the order of `policies`. */
export interface Authorization {
  readonly outcome: 'allow' | 'deny-explicit' | 'deny-implicit' | 'consensus-needed';
  readonly by: 'root-quorum' | 'policy' | 'own-credentials' | 'none';
  readonly evaluations: readonly { policyId: string; outcome: PolicyOutcome; error?: string }[];
}
