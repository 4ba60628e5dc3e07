import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import type { AuthorizationContext } from '../../../src/domain/policy/request-evaluation.js';
import {
  unreadable,
  type AuthorizationRequest,
  type Policy,
  type PolicyUser,
  type PolicyValue,
} from '../../../src/domain/policy/types.js';
import { Steps } from '../../../src/domain/steps.js';
import { environment } from './environment.js';

/** Random policies and requests: of each kind of doubt some, and of each verdict. */

export const { users } = JSON.parse(
  readFileSync(new URL('../../vectors/policy/users.json', import.meta.url), 'utf8'),
) as {
  users: PolicyUser[];
};
export const votes = users.flatMap((user) =>
  user.credentials.map((credential) => ({ userId: user.userId, credential })),
);

export const policy = (fields: Partial<Policy> & Pick<Policy, 'policyId'>): Policy => ({
  policyName: `the policy ${fields.policyId}`,
  effect: 'EFFECT_ALLOW',
  notes: '',
  createdAt: 0,
  updatedAt: 0,
  ...fields,
});

const types = ['ACTIVITY_TYPE_CREATE_WALLET', 'ACTIVITY_TYPE_DELETE_WALLETS', 'ACTIVITY_TYPE_SIGN_TRANSACTION_V2'];
const words = {
  type: types,
  kind: ['CREATE_WALLET', 'SIGN_TRANSACTION'],
  resource: ['WALLET', 'USER', 'PRIVATE_KEY'],
  action: ['CREATE', 'DELETE', 'SIGN'],
} as const;
const names = ['type', 'kind', 'resource', 'action'] as const;

const demand = fc.constantFrom(...names).chain((name) => {
  const word = fc.constantFrom(...words[name]);
  const list = fc.uniqueArray(word, { minLength: 1 }).map((some) => `[${some.map((one) => `'${one}'`).join(', ')}]`);
  return fc.oneof(
    word.map((one) => `activity.${name} == '${one}'`),
    word.map((one) => `'${one}' == activity.${name}`),
    word.map((one) => `activity.${name} != '${one}'`),
    list.map((some) => `activity.${name} in ${some}`),
    list.map((some) => `${some}.contains(activity.${name})`),
  );
});
/** True, false, unreadable or not part of the request, by what the request has. */
const other = fc.constantFrom(
  'true',
  'false',
  "wallet.id == 'x'",
  'wallet.imported',
  "private_key.id == 'x'",
  "eth.tx.to == '0xto'",
  "eth.tx.args['wad'] > 7",
  "eth.tx.anything['any'] == 1",
  "requester.id == 'ops-1'",
  "activity.resource[0..1] == 'W'",
  'activity.params.otp_length == 1',
  "wallets.any(w, w.id == 'x' && activity.action == 'SIGN')",
  "['CREATE', 'x'].any(x, x == activity.action)",
);
const condition = fc.letrec<{ node: string }>((tie) => ({
  node: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.oneof(demand, demand, other),
    fc
      .tuple(fc.constantFrom(' && ', ' && ', ' || '), fc.array(tie('node'), { minLength: 2, maxLength: 3 }))
      .map(([operator, operands]) => operands.map((one) => `(${one})`).join(operator)),
    tie('node').map((one) => `!(${one})`),
  ),
})).node;
const maybe = (texts: fc.Arbitrary<string>) => fc.option(texts, { nil: undefined, freq: 3 });
export const policies = fc
  .array(
    fc.record({
      effect: fc.constantFrom('EFFECT_ALLOW' as const, 'EFFECT_ALLOW' as const, 'EFFECT_DENY' as const),
      condition: fc.oneof({ weight: 12, arbitrary: condition }, fc.constantFrom(undefined, 'not a policy')),
      consensus: maybe(
        fc.constantFrom(
          'approvers.count() >= 2',
          "approvers.any(u, u.tags.contains('ops'))",
          "approvers[2].id == 'x'",
          "approvers.any(u, u.id == 'dev') && requester.id != 'dev'",
          'approvers.count() == 1',
        ),
      ),
      time: maybe(fc.constantFrom('false', "time.now > Timestamp('2000-01-01T00:00:00Z')", 'nope')),
    }),
    { maxLength: 12 },
  )
  .chain((list) =>
    fc.shuffledSubarray(
      list.map(({ effect, condition, consensus, time }, index) =>
        policy({
          policyId: `p${index}`,
          effect,
          ...(condition === undefined ? {} : { condition }),
          ...(consensus === undefined ? {} : { consensus }),
          ...(time === undefined ? {} : { time }),
        }),
      ),
      { minLength: list.length },
    ),
  );
const resources = fc.constantFrom<AuthorizationRequest['resources']>(
  undefined,
  unreadable('for this test'),
  { wallet: { id: 'x', imported: false } },
  { wallet: { id: 'y' }, wallets: [{ id: 'x' }] },
  { eth: { tx: { to: '0xto', args: { wad: 8n }, anything: { any: 'x' } } } },
  { wallet: unreadable('for this test'), private_key: { id: 'x' } },
);
const isReadable = (value: AuthorizationRequest['resources']): value is Readonly<Record<string, PolicyValue>> =>
  value !== undefined && 'wallet' in value;
export const requests = fc
  .record({
    type: fc.constantFrom(...words.type),
    kind: fc.constantFrom(...words.kind),
    resource: fc.option(fc.constantFrom(...words.resource), { nil: undefined, freq: 8 }),
    action: fc.option(fc.constantFrom(...words.action), { nil: undefined, freq: 8 }),
    resources,
    parts: fc.array(resources.filter(isReadable), { maxLength: 2 }),
    submitterId: fc.constantFrom(...users.map(({ userId }) => userId)),
    ownCredentials: fc.constantFrom(false, true, 'session' as const),
    rootQuorumOnly: fc.constantFrom(false, false, false, true),
  })
  .map(({ type, kind, resource, action, resources: given, parts, ...rest }): AuthorizationRequest => ({
    activity: {
      type,
      kind,
      ...(resource === undefined ? {} : { resource }),
      ...(action === undefined ? {} : { action }),
      params: {},
    },
    ...(given === undefined ? {} : { resources: given }),
    parts: parts.map((one, index) => ({ name: String(index), resources: one })),
    ...rest,
  }));
export const approvalLists = fc.shuffledSubarray(votes, { maxLength: 4 });
export const voters = fc.constantFrom(...users.map(({ userId }) => userId));

/** The same policies with conditions that demand nothing, as far as the index knows: all of them are evaluated. */
export const disguised = (list: readonly Policy[]): Policy[] =>
  list.map(({ condition, ...one }) =>
    condition === undefined ? one : { ...one, condition: `[true].any(indexed, ${condition})` },
  );

export const contextOf = (list: readonly Policy[], steps = new Steps()): AuthorizationContext => ({
  policies: list,
  rootQuorum: { threshold: 2, userIds: ['root-1', 'root-2'] },
  users,
  environment,
  now: Date.UTC(2026, 10, 23),
  steps,
});
