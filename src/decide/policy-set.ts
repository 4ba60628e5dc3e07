import { hash } from 'node:crypto';
import type { Decision } from '../domain/activity/events.js';
import type { Evaluation } from '../domain/policy/part-evaluation.js';
import type { PolicySet } from '../domain/policy/policy-set.js';
import type { Policy } from '../domain/policy/types.js';
import { canonicalJson } from '../domain/canonical-json.js';

/** Pure functions of what they are kept for, by identity. */
const ofPolicies = new WeakMap<Policy, string>();
const ofSets = new WeakMap<PolicySet, string>();

/**
 * Stands for the policies of a decision that could not apply and have no outcome in it. Undefined if there were none:
 * then the decision has the outcome of every policy.
 */
export function policySetOfDecision(
  among: PolicySet | undefined,
  evaluations: readonly Evaluation[],
): Decision['policySet'] {
  if (!among) return undefined;
  // A request of several parts has an outcome of each policy for each of them.
  const requested = new Set(evaluations.map(({ policyId }) => policyId)).size;
  if (requested === among.policies.length) return undefined;
  return { count: among.policies.length, digest: digestOf(among) };
}

/**
 * SHA-256, hex, over the digests of the policies in the order of their ids, one a line. That of a policy is over the
 * canonical JSON of its id, its effect and its clauses: what its outcome depends on.
 */
function digestOf(set: PolicySet): string {
  let digest = ofSets.get(set);
  if (digest === undefined) {
    digest = hash('sha256', set.inOrder.map(digestOfPolicy).join('\n'));
    ofSets.set(set, digest);
  }
  return digest;
}

function digestOfPolicy(policy: Policy): string {
  let digest = ofPolicies.get(policy);
  if (digest === undefined) {
    const { policyId, effect, condition, consensus, time } = policy;
    const clauses = Object.entries({ condition, consensus, time }).filter(([, text]) => text !== undefined);
    digest = hash('sha256', canonicalJson({ policyId, effect, ...Object.fromEntries(clauses) }));
    ofPolicies.set(policy, digest);
  }
  return digest;
}
