import { setImmediate } from 'node:timers/promises';
import { unknownWords } from '../domain/policy/known-literals.js';
import type { PolicyEnvironment } from '../domain/policy/namespaces.js';
import type { Policy } from '../domain/policy/types.js';

/** A page of policies after a key, ordered by organization and id. */
type PoliciesAfter = (
  after: { readonly organizationId: string; readonly policyId: string },
  limit: number,
) => readonly { readonly organizationId: string; readonly policy: Policy }[];

const pageSize = 20;
/** Policies examined, and mistakes reported, per start. */
const mostPolicies = 10_000;
const mostMistakes = 100;

/**
 * Finds stored policies with literals that can never match: they were written before literals were checked, or for a
 * build that knew more. Reads the read model a few rows at a time, so that startup neither waits for it nor fails
 * because of it.
 */
export async function findSilentPolicies(
  policiesAfter: PoliciesAfter,
  environment: PolicyEnvironment,
  found: (where: { organizationId: string; policyId: string; policyName: string }, mistake: string) => void,
  signal: AbortSignal,
): Promise<void> {
  let last = { organizationId: '', policyId: '' };
  let mistakes = 0;
  for (let seen = 0; seen < mostPolicies && mistakes < mostMistakes; seen += pageSize) {
    await setImmediate();
    if (signal.aborted) return;
    const page = policiesAfter(last, pageSize);
    for (const { organizationId, policy } of page) {
      const { policyId, policyName } = policy;
      last = { organizationId, policyId };
      for (const mistake of unknownWords(policy, environment)) {
        if (mistakes++ < mostMistakes) found({ organizationId, policyId, policyName }, mistake);
      }
    }
    if (page.length < pageSize) return;
  }
}
