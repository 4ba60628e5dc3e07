import { CoordinatorError } from '../../domain/errors.js';
import type { Policy } from '../../domain/policy/types.js';
import { Label, ListOf, OneOf, Text, TextList, Uuid } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';
import { CreatePolicyIntentV3, effects, policiesCreated } from './policy-params.js';

const operators = [
  'OPERATOR_EQUAL',
  'OPERATOR_MORE_THAN',
  'OPERATOR_MORE_THAN_OR_EQUAL',
  'OPERATOR_LESS_THAN',
  'OPERATOR_LESS_THAN_OR_EQUAL',
  'OPERATOR_CONTAINS',
  'OPERATOR_NOT_EQUAL',
  'OPERATOR_IN',
  'OPERATOR_NOT_IN',
  'OPERATOR_CONTAINS_ONE',
  'OPERATOR_CONTAINS_ALL',
];

class Selector {
  @Text({ optional: true, about: 'The value to test.' })
  subject?: string;

  @OneOf(operators, { optional: true, about: 'The comparison operator.' })
  operator?: string;

  @Text({ optional: true, about: 'The value to compare with.' })
  target?: string;
}

class SelectorV2 {
  @Text({ optional: true, about: 'The value to test.' })
  subject?: string;

  @OneOf(operators, { optional: true, about: 'The comparison operator.' })
  operator?: string;

  @TextList({ optional: true, about: 'The value to compare with.' })
  targets?: string[];
}

class CreatePolicyIntent {
  @Label({ about: 'The name of the policy.' })
  policyName!: string;

  @ListOf(() => Selector, { about: 'Selectors; superseded by the policy language.' })
  selectors!: Selector[];

  @OneOf(effects, { about: 'Effect of the policy when it applies.' })
  effect!: Policy['effect'];

  @Text({ optional: true, about: 'A free-form note.' })
  notes?: string;
}

class CreatePolicyIntentV2 {
  @Label({ about: 'The name of the policy.' })
  policyName!: string;

  @ListOf(() => SelectorV2, { about: 'Selectors; superseded by the policy language.' })
  selectors!: SelectorV2[];

  @OneOf(effects, { about: 'Effect of the policy when it applies.' })
  effect!: Policy['effect'];

  @Text({ optional: true, about: 'A free-form note.' })
  notes?: string;
}

class CreatePolicyResult {
  @Uuid()
  policyId!: string;
}

const type = 'ACTIVITY_TYPE_CREATE_POLICY_V3';

/** Selectors have no equivalent in the policy language: a guess could allow what nobody meant to allow. */
function refuseSelectors(): never {
  throw new CoordinatorError(
    'UNIMPLEMENTED',
    `policies with selectors are not supported: send ${type} with \`condition\` and \`consensus\` expressions of the policy language instead of \`selectors\``,
  );
}

/** Creates a policy. */
export const createPolicy = defineActivity({
  type,
  resultKey: 'createPolicyResult',
  summary: 'Creates a policy.',
  intent: CreatePolicyIntentV3,
  result: CreatePolicyResult,
  olderVersions: [
    {
      type: 'ACTIVITY_TYPE_CREATE_POLICY_V2',
      resultKey: 'createPolicyResult',
      intent: CreatePolicyIntentV2,
      lift: refuseSelectors,
    },
    { type: 'ACTIVITY_TYPE_CREATE_POLICY', intent: CreatePolicyIntent, lift: refuseSelectors },
  ],
  policy: { resource: 'POLICY', action: 'CREATE' },
  foreseen: (data) => [{ type: 'PolicyCreated', data }],

  decide(intent, context) {
    const { policyIds, events } = policiesCreated([intent], context);
    return { events, result: { policyId: policyIds[0]! } };
  },
});
