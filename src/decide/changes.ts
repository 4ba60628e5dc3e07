import type { AnyActivity } from '../activities/define-activity.js';
import { CoordinatorError } from '../domain/errors.js';
import type { OpenActivity } from '../domain/organization/open-activities.js';
import { oneLine, type Decoded } from '../domain/policy/decoded/account.js';
import { weights } from '../domain/steps.js';
import type { DecisionContext } from './decision-context.js';
import { describedChanges } from './described-changes.js';
import { decideContext } from './effects.js';
import { activityVersion, newestIntent } from './registry.js';

/** Resources whose changes are described. Their verbs decide at once and cheaply, or say what they foresee. */
const describedResources: ReadonlySet<string> = new Set(['POLICY', 'USER', 'CREDENTIAL']);

/**
 * What a waiting activity would change, for its approvers. Undefined for activities that change something
 * else than policies, users, their credentials and tags, and the root quorum.
 */
export function changesOf(context: DecisionContext, open: OpenActivity): readonly Decoded[] | undefined {
  const { registry, organization } = context;
  const { definition, ...version } = activityVersion(registry, open.type);
  if (!isDescribed(definition)) return undefined;
  const intent = newestIntent({ ...version, definition }, open.intent);
  const decided = () => definition.decide(intent, decideContext(context, open.activityId, open.votes[0]!), undefined);
  try {
    const events = definition.foreseen?.(intent) ?? decided().events;
    context.steps?.note(events.length * weights.nameBuilt);
    return describedChanges(events, organization);
  } catch (error) {
    if (!(error instanceof CoordinatorError)) throw error;
    const text = 'It would fail as things stand, and change nothing.';
    return [{ text, facts: [], changes: [], notDecoded: oneLine(error.message) }];
  }
}

function isDescribed({ policy, foreseen, recall, ahead }: AnyActivity): boolean {
  if (foreseen) return true;
  return !recall && !ahead && (policy === 'root-quorum-only' || describedResources.has(policy.resource));
}
