import { defineActivity } from '../../src/activities/define-activity.js';
import { activities } from '../../src/activities/index.js';
import { buildRegistry } from '../../src/decide/registry.js';
import { CoordinatorError } from '../../src/domain/errors.js';
import { Text } from '../../src/wire/fields.js';

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

/** A verb that tells somebody, once it is done; `memo` says what becomes of it. */
const tell = defineActivity({
  type: 'ACTIVITY_TYPE_TELL',
  summary: 'Tells.',
  intent: PayIntent,
  result: PayResult,
  policy: { resource: 'PAYMENT', action: 'CREATE' },
  prepare: ({ amount, memo }) => Promise.resolve({ amount, to: memo === 'nobody' ? 'nobody' : 'ann@example.com' }),
  recall: () => ({}),
  decide({ amount, memo }, { newId }) {
    const events = [{ type: 'UserTagCreated', data: { tagId: newId(), tagName: `told ${amount}` } }] as const;
    return memo === 'fail'
      ? { events, failure: new CoordinatorError('INVALID_ARGUMENT', 'told to fail') }
      : { events, result: { amount } };
  },
  afterwards: ({ amount, to }, { delivery }) => void delivery.enqueue({ channel: 'email', to, text: amount }),
});

/** Amounts in the order in which they were pondered. */
export const pondered: string[] = [];

/** A verb whose decision takes seven milliseconds of the thread: three fill a turn of 20, on any machine. */
const ponder = defineActivity({
  type: 'ACTIVITY_TYPE_PONDER',
  summary: 'Ponders.',
  intent: PayIntent,
  result: PayResult,
  policy: { resource: 'PAYMENT', action: 'CREATE' },
  decide({ amount }) {
    const until = performance.now() + 7;
    while (performance.now() < until);
    pondered.push(amount);
    return { events: [], result: { amount } };
  },
});

/** The product's verbs and those that only tests have. */
export const testRegistry = buildRegistry([...activities, pay, stumble, tell, ponder]);
