import { defineActivity } from '../../src/activities/define-activity.js';
import { activities } from '../../src/activities/index.js';
import { buildRegistry } from '../../src/coordinator/registry.js';
import { Text } from '../../src/schema/fields.js';

class PayIntent {
  @Text({ about: 'Any whole number, also one that no integer of the policy language can hold.' })
  amount!: string;

  @Text({ optional: true })
  memo?: string;
}

class PayResult {
  @Text()
  amount!: string;
}

/** A verb whose parameters can be missing or too large for the policies that read them. Its effect is a new tag. */
const pay = defineActivity({
  type: 'ACTIVITY_TYPE_PAY',
  summary: 'Pays.',
  intent: PayIntent,
  result: PayResult,
  policy: { resource: 'PAYMENT', action: 'CREATE' },
  params: {
    amount: { type: { kind: 'int' }, from: ({ amount }) => BigInt(amount) },
    memo: { type: { kind: 'string' }, from: ({ memo }) => memo },
  },
  decide: ({ amount }, { newId }) => ({
    events: [{ type: 'UserTagCreated', data: { tagId: newId(), tagName: `paid ${amount}` } }],
    result: { amount },
  }),
});

/** A verb with a defect. */
const stumble = defineActivity({
  type: 'ACTIVITY_TYPE_STUMBLE',
  summary: 'Fails in a way that nobody foresaw.',
  intent: PayIntent,
  result: PayResult,
  policy: { resource: 'PAYMENT', action: 'CREATE' },
  decide: () => {
    throw new Error('a defect');
  },
});

/** The product's verbs and two that only tests have. */
export const testRegistry = buildRegistry([...activities, pay, stumble]);
