import { presentMembers } from '../../domain/organization/event.js';
import { checkPolicyNameFree, existingPolicy } from '../../domain/organization/policies.js';
import { maxTextLength } from '../../domain/policy/tokens.js';
import type { Policy } from '../../domain/policy/types.js';
import { Label, OneOf, Text, Uuid } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';
import { checkBudget, checkClauses, checkRoom, effects } from './policy-params.js';

class UpdatePolicyIntent {
  @Uuid({ about: 'The policy to change.' })
  policyId!: string;

  @Label({ optional: true, about: 'The new name; must be unique within the organization.' })
  policyName?: string;

  @OneOf(effects, { optional: true, about: 'The new effect.' })
  policyEffect?: Policy['effect'];

  @Text({ optional: true, min: 1, max: maxTextLength, about: 'The new condition.' })
  policyCondition?: string;

  @Text({ optional: true, min: 1, max: maxTextLength, about: 'The new consensus.' })
  policyConsensus?: string;

  @Text({ optional: true, about: 'The new note; empty to remove it.' })
  policyNotes?: string;
}

class UpdatePolicyIntentV2 extends UpdatePolicyIntent {
  @Text({ optional: true, min: 1, max: maxTextLength, about: 'New active time of the policy; `true` for always.' })
  time?: string;
}

class UpdatePolicyResultV2 {
  @Uuid()
  policyId!: string;
}

/** The members that change, by their names in events. */
function changesIn(intent: UpdatePolicyIntentV2) {
  const { policyName, policyEffect, policyCondition, policyConsensus, policyNotes, time } = intent;
  const clauses = presentMembers({ condition: policyCondition, consensus: policyConsensus, time });
  return {
    clauses,
    changes: { ...presentMembers({ policyName, effect: policyEffect, notes: policyNotes }), ...clauses },
  };
}

/** Updates a policy; omitted fields stay unchanged. */
export const updatePolicy = defineActivity({
  type: 'ACTIVITY_TYPE_UPDATE_POLICY_V2',
  summary: 'Updates a policy; omitted fields stay unchanged.',
  intent: UpdatePolicyIntentV2,
  result: UpdatePolicyResultV2,
  olderVersions: [
    {
      type: 'ACTIVITY_TYPE_UPDATE_POLICY',
      intent: UpdatePolicyIntent,
      lift: (intent: UpdatePolicyIntent): UpdatePolicyIntentV2 => intent,
    },
  ],
  policy: { resource: 'POLICY', action: 'UPDATE' },
  foreseen: (intent) => [{ type: 'PolicyUpdated', data: { policyId: intent.policyId, ...changesIn(intent).changes } }],

  decide(intent, context) {
    const { policyId, policyName, policyEffect } = intent;
    const { organization, policyEnvironment } = context;
    const existing = existingPolicy(organization, policyId);
    const { clauses, changes } = changesIn(intent);
    // The specification (4.3.4) makes all of them optional, so a request without any changes nothing.
    if (Object.keys(changes).length === 0) return { events: [], result: { policyId } };
    if (policyName !== undefined) checkPolicyNameFree(organization, policyName, policyId);
    const written = { ...existing, ...clauses };
    checkRoom([written], context, policyId);
    // What a DENY names must be there, also where the text was written for an ALLOW.
    const isNewDenial = policyEffect === 'EFFECT_DENY' && existing.effect !== 'EFFECT_DENY';
    checkClauses(isNewDenial ? written : clauses, policyEnvironment, organization);
    checkBudget([written], context, policyId);
    return { events: [{ type: 'PolicyUpdated', data: { policyId, ...changes } }], result: { policyId } };
  },
});
