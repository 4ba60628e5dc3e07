import { waiting } from '../../decide/approvals.js';
import { policyContext } from '../../decide/authorization-request.js';
import { metered } from '../../decide/decision-context.js';
import type { Registry } from '../../decide/registry.js';
import type { OpenActivity } from '../../domain/organization/open-activities.js';
import type { OrganizationView } from '../../domain/organization/organization.js';
import type { Steps } from '../../domain/steps.js';
import { authorize } from '../../domain/policy/authorize.js';

/** What can become of a waiting activity by votes: `passes` with the next approval, whoever gives it. */
type Prospect = 'passes' | 'needs-votes' | 'denied' | 'not-there';

/** A waiting activity whose prospect differs. */
export interface WaitingOtherwise {
  readonly activityId: string;
  readonly activityType: string;
  readonly was: Prospect;
  readonly is: Prospect;
}

interface Known {
  readonly registry: Registry;
  /** Milliseconds since the epoch: older votes count no more. */
  readonly now: number;
  readonly revision: number;
  /** Counts what it takes. */
  readonly meter?: Steps | undefined;
  /** How many are told. */
  readonly most?: number | undefined;
}

/** The activities that wait in one of two states and have another prospect in the other. */
export function waitingOtherwise(
  original: OrganizationView,
  branch: OrganizationView,
  { most = Infinity, ...known }: Known,
): { readonly told: readonly WaitingOtherwise[]; readonly isCut: boolean } {
  const open = new Map([...branch.openActivities, ...original.openActivities]);
  const told: WaitingOtherwise[] = [];
  for (const { activityId, type: activityType } of open.values()) {
    if (known.meter?.isSpent || told.length >= most) return { told, isCut: true };
    const [was, is] = [original, branch].map((state) => prospectOf(state, activityId, known)) as [Prospect, Prospect];
    if (was !== is) told.push({ activityId, activityType, was, is });
  }
  return { told, isCut: false };
}

function prospectOf(organization: OrganizationView, activityId: string, known: Known): Prospect {
  const open = organization.openActivities.get(activityId);
  return open ? prospect(organization, open, known) : 'not-there';
}

function prospect(organization: OrganizationView, open: OpenActivity, { meter, ...known }: Known): Prospect {
  const { steps, ...context } = metered({ ...known, organization });
  const { question, approvals } = waiting({ ...context, steps }, open);
  const { outcome } = authorize(question, approvals, policyContext({ ...context, steps }));
  meter?.note(steps.spent);
  if (outcome === 'allow') return 'passes';
  return outcome === 'consensus-needed' ? 'needs-votes' : 'denied';
}
