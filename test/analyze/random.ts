import fc from 'fast-check';
import { compileClause } from '../../src/domain/policy/language.js';
import { policyEnvironment } from '../../src/domain/policy/namespaces.js';
import { resourceNamespaces } from '../../src/domain/policy/resource-namespaces.js';
import { PolicyError } from '../../src/domain/policy/syntax.js';
import {
  notApplicable,
  unreadable,
  type Approval,
  type AuthorizationRequest,
  type Clause,
  type Policy,
  type PolicyValue,
} from '../../src/domain/policy/types.js';
import { policy, users } from '../domain/policy/generated.js';

/** Policies that use every part of the language, and requests that they tell apart. */

export const environment = policyEnvironment(
  {
    hash_function: { kind: 'string' },
    user_ids: { kind: 'list', of: { kind: 'string' } },
    otp_length: { kind: 'int' },
  },
  resourceNamespaces,
);

const literals = ['a', 'ab', 'AB', 'b', '0xab', '0xAb', '0xAB', '', '12', '-1', 'é😀', 'ops', 'ops-1', 'x'];
const quoted = fc.constantFrom(...literals).map((one) => `'${one}'`);
const digits = fc.constantFrom('0', '1', '2', '3', '12', '1000');
const small = fc.constantFrom('0', '1', '2');
const order = fc.constantFrom('<', '<=', '>', '>=');
const equality = fc.constantFrom('==', '!=');
const both = fc.oneof(order, equality);
const join = (...parts: readonly (string | fc.Arbitrary<string>)[]): fc.Arbitrary<string> =>
  fc
    .tuple(...parts.map((part) => (typeof part === 'string' ? fc.constant(part) : part)))
    .map((texts) => texts.join(''));

const stringPaths = fc.constantFrom(
  'wallet.id',
  'wallet.label',
  'wallet_account.address',
  'private_key.id',
  'private_key.tags[0]',
  'activity.type',
  'activity.action',
  'activity.resource',
  'activity.params.hash_function',
  'requester.id',
  'requester.email',
  'requester.tags[0]',
  'wallets[1].label',
  'eth.tx.to',
  'eth.tx.data',
  'eth.tx.type',
  'eth.tx.function_name',
  'eth.eip_712.domain.name',
  'solana.tx.account_keys[0]',
  'solana.tx.transfers[0].from',
  "solana.tx.instructions[0].parsed_instruction_data.named_accounts['from']",
);
const integerPaths = fc.constantFrom(
  'eth.tx.value',
  'eth.tx.nonce',
  'activity.params.otp_length',
  'solana.tx.transfers[0].amount',
  'wallets.count()',
  'wallet_account.path_indexes[0]',
  'wallet_account.path_indexes.count()',
  'activity.params.user_ids.count()',
  'private_key.tags.count()',
);
const dynamicPaths = fc.constantFrom(
  "eth.tx.contract_call_args['a']",
  "eth.tx.contract_call_args['list']",
  "eth.tx.contract_call_args['list'][0]",
  "eth.tx.contract_call_args['list'][0..1]",
  "eth.tx.contract_call_args['rec']['x']",
  "eth.tx.contract_call_args['rec'].list",
  "eth.tx.contract_call_args['a'][0..2]",
  "eth.eip_712.message['a']",
);
const stringOf = (path: fc.Arbitrary<string>) =>
  fc.oneof(
    { weight: 4, arbitrary: path },
    { weight: 1, arbitrary: join(path, '[', small, ']') },
    { weight: 1, arbitrary: join(path, '[', small, '..', small, ']') },
    { weight: 1, arbitrary: join(path, '[', integerPaths, ']') },
  );
const strings = stringOf(stringPaths);
const list = fc.array(quoted, { minLength: 1, maxLength: 3 }).map((items) => `[${items.join(', ')}]`);
const stringLists = fc.oneof(
  list,
  fc.constantFrom('private_key.tags', 'activity.params.user_ids', 'solana.tx.account_keys', 'requester.tags'),
  join('[', strings, ', ', quoted, ']'),
  join('solana.tx.account_keys[', small, '..', small, ']'),
);
const compared = (some: fc.Arbitrary<string>) =>
  fc.oneof(
    join(some, ' ', equality, ' ', quoted),
    join(some, ' ', equality, ' ', strings),
    join(some, ' in ', list),
    join(stringLists, '.contains(', some, ')'),
  );
const dynamics = fc.oneof(
  join(dynamicPaths, ' ', equality, ' ', fc.oneof(quoted, digits, strings, fc.constant('true'))),
  join("eth.tx.contract_call_args['a'] ", equality, ' ', fc.constantFrom("'12'", "'-1'", "'0'", "'03'", '12')),
  join(dynamicPaths, ' ', both, ' ', fc.oneof(digits, dynamicPaths, integerPaths)),
  join(dynamicPaths, ' in ', fc.oneof(list, fc.constant('[1, 12]'))),
  join(dynamicPaths, '.contains(', fc.oneof(quoted, digits), ')'),
  join(dynamicPaths, '.any(d, d == ', fc.oneof(quoted, digits), ')'),
  join(dynamicPaths, '.count() ', order, ' ', fc.constantFrom('1', '2')),
  join(dynamicPaths, '[', small, '] == ', digits),
  dynamicPaths,
);
const elements = (quantifier: fc.Arbitrary<string>) =>
  fc.oneof(
    join(
      'wallets.',
      quantifier,
      '(w, ',
      fc.oneof(compared(stringOf(fc.constantFrom('w.id', 'w.label'))), fc.constant('w.imported')),
      ')',
    ),
    join('solana.tx.transfers.', quantifier, '(t, t.amount ', both, ' ', fc.oneof(digits, integerPaths), ')'),
    join('solana.tx.transfers.', quantifier, '(t, ', compared(fc.constantFrom('t.from', 't.to')), ')'),
    join('private_key.tags.', quantifier, '(k, ', compared(stringOf(fc.constant('k'))), ')'),
    join('[', strings, ', ', strings, '].', quantifier, '(s, ', compared(fc.constant('s')), ')'),
  );
const atoms = fc.oneof(
  { weight: 3, arbitrary: compared(strings) },
  { weight: 2, arbitrary: join(integerPaths, ' ', both, ' ', fc.oneof(digits, integerPaths)) },
  { weight: 3, arbitrary: dynamics },
  {
    weight: 1,
    arbitrary: join('eth.tx.', fc.constantFrom('to', 'data'), ' ', equality, ' ', fc.constantFrom("'0xAB'", "'AB'")),
  },
  { weight: 2, arbitrary: elements(fc.constantFrom('any', 'all')) },
  { weight: 1, arbitrary: elements(fc.constant('filter')).map((text) => `${text}.count() >= 1`) },
  { weight: 1, arbitrary: elements(fc.constant('filter')).map((text) => `${text}[0..1].any(e, true)`) },
  { weight: 1, arbitrary: fc.constantFrom('true', 'false', 'wallet.imported', 'private_key.exported') },
);
const joined = (leaf: fc.Arbitrary<string>) =>
  fc.letrec<{ node: string }>((tie) => ({
    node: fc.oneof(
      { maxDepth: 3, withCrossShrink: true },
      { weight: 3, arbitrary: leaf },
      {
        weight: 2,
        arbitrary: fc
          .tuple(fc.constantFrom(' && ', ' || '), fc.array(tie('node'), { minLength: 2, maxLength: 3 }))
          .map(([operator, operands]) => operands.map((one) => `(${one})`).join(operator)),
      },
      { weight: 1, arbitrary: tie('node').map((one) => `!(${one})`) },
    ),
  })).node;

const user = stringOf(fc.constantFrom('u.id', 'u.alias', 'u.email', 'u.tags[0]'));
const consensuses = joined(
  fc.oneof(
    join('approvers.count() ', both, ' ', fc.constantFrom('1', '2', '3')),
    join(
      'approvers.',
      fc.constantFrom('any', 'all'),
      '(u, ',
      compared(user).filter((one) => !/wallet|eth|solana|activity|private/.test(one)),
      ')',
    ),
    join("approvers.any(u, u.tags.contains('", fc.constantFrom('ops', 'x'), "'))"),
    join('approvers.filter(u, u.id ', equality, ' requester.id).count() ', order, ' ', fc.constantFrom('1', '2')),
    join('approvers[', small, '].id ', equality, " '", fc.constantFrom('ops-1', 'root-1', 'dev'), "'"),
    join('credentials[', small, "].type == 'CREDENTIAL_TYPE_WEBAUTHN_AUTHENTICATOR'"),
    join('credentials.', fc.constantFrom('any', 'all'), "(c, c.type == 'CREDENTIAL_TYPE_WEBAUTHN_AUTHENTICATOR')"),
    fc.constantFrom(
      "credentials.any(c, c.credential_id != 'x')",
      'approvers.any(u, approvers.any(v, v.id != u.id && v.tags.any(t, u.tags.contains(t))))',
      "requester.tags.contains('ops')",
      "approvers[0..1].all(u, u.tags.contains('ops'))",
    ),
  ),
);
const times = joined(
  fc.oneof(
    join('time.now ', both, " Timestamp('2026-11-", fc.constantFrom('22', '23', '24'), "T00:00:00Z')"),
    join(
      "CronSpan('0 9 * * ",
      fc.constantFrom('1-5', '0,6'),
      "', '",
      fc.constantFrom('8h', '20h'),
      "', 'Europe/Berlin')",
    ),
  ),
);
/** Without what the checker refuses, such as a count that is compared with 0. */
const valid = (texts: fc.Arbitrary<string>, clause: Clause) =>
  texts.filter((written) => {
    try {
      compileClause(written, clause, environment);
      return true;
    } catch (error) {
      if (error instanceof PolicyError) return false;
      throw error;
    }
  });
const maybe = (texts: fc.Arbitrary<string>) => fc.option(texts, { nil: undefined, freq: 2 });
const policySets: fc.Arbitrary<readonly Policy[]> = fc
  .array(
    fc.record({
      effect: fc.constantFrom('EFFECT_ALLOW' as const, 'EFFECT_ALLOW' as const, 'EFFECT_DENY' as const),
      condition: fc.oneof(
        { weight: 8, arbitrary: valid(joined(atoms), 'condition') },
        { weight: 1, arbitrary: fc.constant(undefined) },
      ),
      consensus: maybe(valid(consensuses, 'consensus')),
      time: fc.option(valid(times, 'time'), { nil: undefined, freq: 3 }),
    }),
    { minLength: 1, maxLength: 4 },
  )
  .map((list) =>
    list.map(({ effect, condition, consensus, time }, index) =>
      policy({
        policyId: `p${index}`,
        effect,
        ...(condition === undefined ? {} : { condition }),
        ...(consensus === undefined ? {} : { consensus }),
        ...(time === undefined ? {} : { time }),
      }),
    ),
  );

const someText = fc.constantFrom(...literals);
const lowerText = fc.constantFrom('0xab', '0x', '', 'ab', 'ab');
const doubtful = <Value extends PolicyValue>(value: fc.Arbitrary<Value>): fc.Arbitrary<PolicyValue | undefined> =>
  fc.oneof(
    { weight: 12, arbitrary: value },
    {
      weight: 1,
      arbitrary: fc.constantFrom<PolicyValue | undefined>(undefined, unreadable('for this test'), 2n ** 300n),
    },
  );
const recordOf = (fields: Readonly<Record<string, fc.Arbitrary<PolicyValue | undefined>>>): fc.Arbitrary<PolicyValue> =>
  fc.record(fields);
const upTo3 = (of: fc.Arbitrary<PolicyValue | undefined>): fc.Arbitrary<PolicyValue> =>
  fc.array(of, { maxLength: 3 }).map((some) => some.filter((one): one is PolicyValue => one !== undefined));
const scalar = fc.oneof(someText, fc.constantFrom(0n, 1n, 12n, -1n, 1000n), fc.boolean());
const dynamic: fc.Arbitrary<PolicyValue> = fc.oneof(
  { weight: 3, arbitrary: scalar },
  { weight: 1, arbitrary: upTo3(scalar) },
  { weight: 1, arbitrary: recordOf({ x: doubtful(scalar), list: upTo3(scalar) }) },
);
const wallet = recordOf({
  id: doubtful(someText),
  label: doubtful(someText),
  imported: doubtful(fc.boolean()),
  exported: doubtful(fc.boolean()),
});
const transfer = recordOf({
  from: doubtful(someText),
  to: doubtful(someText),
  amount: doubtful(fc.constantFrom(0n, 12n, 1000n)),
});
const ethereum = fc.oneof(
  recordOf({
    tx: recordOf({
      to: doubtful(lowerText),
      data: doubtful(lowerText),
      value: doubtful(fc.constantFrom(0n, 1n, 12n, 1000n)),
      nonce: doubtful(fc.constantFrom(0n, 1n)),
      type: doubtful(fc.constantFrom('LEGACY', 'TYPE_2')),
      function_name: fc.oneof(doubtful(someText), fc.constant(notApplicable)),
      contract_call_args: fc.oneof(
        { weight: 6, arbitrary: recordOf({ a: doubtful(dynamic), list: doubtful(dynamic), rec: doubtful(dynamic) }) },
        { weight: 1, arbitrary: fc.constantFrom<PolicyValue>(notApplicable, unreadable('for this test')) },
      ),
    }),
  }),
  recordOf({
    eip_712: recordOf({ message: recordOf({ a: doubtful(dynamic) }), domain: recordOf({ name: doubtful(someText) }) }),
  }),
);
const solana = recordOf({
  tx: recordOf({
    account_keys: upTo3(someText),
    transfers: upTo3(transfer),
    instructions: upTo3(
      recordOf({
        parsed_instruction_data: doubtful(recordOf({ named_accounts: recordOf({ from: doubtful(someText) }) })),
      }),
    ),
  }),
});
const resources = fc.oneof(
  { weight: 1, arbitrary: fc.constantFrom<AuthorizationRequest['resources']>(undefined, unreadable('for this test')) },
  {
    weight: 12,
    arbitrary: fc
      .record({
        wallet: doubtful(wallet),
        wallets: upTo3(wallet),
        wallet_account: recordOf({
          address: doubtful(someText),
          path_indexes: upTo3(fc.constantFrom(0n, 1n, 12n, 1000n)),
          path_hardened: upTo3(fc.boolean()),
        }),
        private_key: recordOf({ id: doubtful(someText), tags: upTo3(someText), exported: doubtful(fc.boolean()) }),
        eth: ethereum,
        solana,
      })
      .chain((all) =>
        fc
          .subarray(Object.entries(all), { minLength: 1 })
          .map(
            (some) =>
              Object.fromEntries(some.filter(([, value]) => value !== undefined)) as Record<string, PolicyValue>,
          ),
      ),
  },
);
const activity = fc.record({
  type: fc.constantFrom('ACTIVITY_TYPE_CREATE_WALLET', 'ACTIVITY_TYPE_SIGN_TRANSACTION_V2'),
  kind: fc.constantFrom('CREATE_WALLET', 'SIGN_TRANSACTION'),
  resource: fc.option(fc.constantFrom('WALLET', 'a'), { nil: undefined, freq: 8 }),
  action: fc.option(fc.constantFrom('CREATE', 'SIGN'), { nil: undefined, freq: 8 }),
  params: fc
    .record({
      hash_function: doubtful(someText),
      user_ids: upTo3(someText),
      otp_length: doubtful(fc.constantFrom(0n, 1n, 12n)),
    })
    .chain((all) => fc.subarray(Object.entries(all)).map((some) => Object.fromEntries(some))),
});

/** A request, its approvals in the order of the votes, and the time of the decision. */
export interface Case {
  readonly policies: readonly Policy[];
  readonly request: AuthorizationRequest;
  readonly approvals: readonly Approval[];
  readonly now: number;
}

const votes = fc
  .shuffledSubarray(
    users.filter(({ credentials }) => credentials.length > 0),
    { minLength: 0, maxLength: 4 },
  )
  .chain((some) =>
    fc.tuple(
      ...some.map(({ userId, credentials }) =>
        fc.constantFrom(...credentials).map((credential) => ({ userId, credential })),
      ),
    ),
  );

export const cases: fc.Arbitrary<Case> = fc.record({
  policies: policySets,
  request: fc.record({
    activity: activity.map(({ resource, action, ...rest }) => ({
      ...rest,
      ...(resource === undefined ? {} : { resource }),
      ...(action === undefined ? {} : { action }),
    })),
    resources,
    submitterId: fc.constantFrom(...users.map(({ userId }) => userId)),
    rootQuorumOnly: fc.constantFrom(false, false, false, true),
    ownCredentials: fc.constantFrom(false, true, 'session' as const),
  }),
  approvals: votes,
  now: fc.constantFrom(Date.UTC(2026, 10, 22, 12), Date.UTC(2026, 10, 23), Date.UTC(2026, 10, 23, 9, 30)),
});
