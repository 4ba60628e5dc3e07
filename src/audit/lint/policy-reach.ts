import { PolicyError } from '../../domain/policy/syntax.js';
import { Steps } from '../../domain/steps.js';
import { compiled, type LintRules } from './lint-subject.js';
import { truthForAll } from './lint-reach.js';
import type { PolicySaid } from '../policies/policy-changes.js';

/** Activities on these change nobody's credentials, contacts or identities; nor do those on tags. */
const harmless = new Set(['POLICY', 'PRIVATE_KEY', 'SMART_CONTRACT_INTERFACE', 'WALLET', 'WEBHOOK_ENDPOINT']);
const onTags = /_USER_TAGS?$/;

/** Whether an ALLOW may allow somebody to change another user: unless its condition keeps to activities of other kinds. */
export function reachesUsers({ effect, condition }: PolicySaid, { environment, activities }: LintRules): boolean {
  if (effect !== 'EFFECT_ALLOW') return false;
  const read = condition === undefined ? undefined : compiled(condition, 'condition', environment);
  if (read === undefined || read instanceof PolicyError) return true;
  return activities.some(
    (activity) =>
      !harmless.has(activity.resource ?? '') &&
      !onTags.test(activity.kind) &&
      truthForAll(read, activity, new Steps(Infinity)) !== false,
  );
}
