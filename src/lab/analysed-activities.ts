import type { Registry } from '../decide/registry.js';
import { readsResources } from '../decide/question.js';
import { submittersOf } from '../decide/submitters.js';

/** An activity, as far as who may do it depends on it. */
export interface AnalysedActivity {
  readonly type: string;
  readonly kind: string;
  /** None of an activity that only the root quorum decides on. */
  readonly resource?: string;
  readonly action?: string;
  readonly isRootOnly: boolean;
  /** Conditions can read wallets, keys or transactions of it. */
  readonly hasResources: boolean;
  /** The names of `activity.params` that it exposes. */
  readonly params: readonly string[];
  /** Whether it may manage the submitter's own credentials; `session`: everybody may do it for themselves. */
  readonly own: 'never' | 'maybe' | 'session';
}

/** Every activity of a build. */
export function analysedActivities({ versions }: Registry): readonly AnalysedActivity[] {
  return Array.from(versions.values()).flatMap(({ type, kind, definition }): AnalysedActivity[] => {
    if (definition.kind !== 'activity') return [];
    const { policy, params = {} } = definition;
    const isSession = submittersOf(definition).needs === 'no-denial';
    return [
      {
        type,
        kind,
        ...(policy === 'root-quorum-only' ? {} : { resource: policy.resource, action: policy.action }),
        isRootOnly: policy === 'root-quorum-only',
        hasResources: readsResources(definition),
        params: Object.keys(params),
        own: isSession ? 'session' : definition.ownCredentialsOf ? 'maybe' : 'never',
      },
    ];
  });
}
