import type { Registry } from '../../decide/registry.js';
import { readsResources } from '../../decide/authorization-request.js';
import type { LintActivity } from './lint-subject.js';

/** Every activity that policies decide on, as conditions see it. */
export function decidedActivities({ versions }: Registry): readonly LintActivity[] {
  return Array.from(versions.values()).flatMap(({ type, kind, definition }) =>
    definition.kind === 'activity' && definition.policy !== 'root-quorum-only'
      ? [
          {
            type,
            kind,
            resource: definition.policy.resource,
            action: definition.policy.action,
            hasResources: readsResources(definition),
          },
        ]
      : [],
  );
}
