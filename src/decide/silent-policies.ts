import { setImmediate } from 'node:timers/promises';
import { unknownWords } from '../domain/policy/known-literals.js';
import type { PolicyEnvironment } from '../domain/policy/namespaces.js';
import type { Policy } from '../domain/policy/types.js';

/** Policies by their organization and id, in that order: some of those behind a key. */
type PoliciesAfter = (
  after: { readonly organizationId: string; readonly policyId: string },
  limit: number,
) => readonly { readonly organizationId: string; readonly policy: Policy }[];

const pageSize = 20;
/** Policies looked at, and mistakes told, at one start. */
const mostPolicies = 10_000;
const mostMistakes = 100;

/**
 * Tells of stored policies that compare with texts which nothing in a request can be: they were written before that was
 * checked, or for a build that had more, and say nothing. Looks at the read model, a few at a time, so that a start
 * neither waits for it nor fails by it.
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
