import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { authorize } from '../../../src/domain/policy/authorize.js';
import type { Reading } from '../../../src/domain/policy/doubt.js';
import { evaluate } from '../../../src/domain/policy/evaluate.js';
import { checkPolicyText, compileClause } from '../../../src/domain/policy/language.js';
import { policyEnvironment } from '../../../src/domain/policy/namespaces.js';
import { resourceNamespaces } from '../../../src/domain/policy/resource-namespaces.js';
import {
  notApplicable,
  unreadable,
  type AuthorizationRequest,
  type Policy,
  type PolicyOutcome,
  type PolicyType,
  type PolicyValue,
} from '../../../src/domain/policy/types.js';
import { conforms } from './conforms.js';

interface Vectors {
  readonly requests: Readonly<Record<string, Pick<AuthorizationRequest, 'activity' | 'resources'>>>;
  readonly cases: readonly {
    readonly name: string;
    readonly request: string;
    readonly effect: Policy['effect'];
    readonly condition: string;
    readonly outcome: PolicyOutcome;
    readonly error?: string;
  }[];
  readonly refused: readonly { readonly name: string; readonly condition: string; readonly message: string }[];
}

const text = readFileSync(new URL('../../vectors/policy/namespaces.json', import.meta.url), 'utf8');
const { requests, cases, refused } = JSON.parse(text, (_key, value: unknown) =>
  typeof value === 'string' && /^-?\d+n$/.test(value) ? BigInt(value.slice(0, -1)) : value,
) as Vectors;

const string: PolicyType = { kind: 'string' };
const environment = policyEnvironment({ encoding: string, hash_function: string, type: string }, resourceNamespaces);

const credential = { id: 'c', userId: 'treasurer', type: 'CREDENTIAL_TYPE_API_KEY_P256', publicKey: 'key' };
const users = [{ userId: 'treasurer', userName: 'Treasurer', tags: [], credentials: [credential] }];

function decide(
  request: Pick<AuthorizationRequest, 'activity' | 'resources'>,
  policies: readonly Pick<Policy, 'effect' | 'condition'>[],
) {
  return authorize({ ...request, ...asked }, [{ userId: 'treasurer', credential }], {
    policies: policies.map((policy, index) => ({
      ...policy,
      policyId: `p${index}`,
      policyName: `the policy ${index}`,
      notes: '',
      createdAt: 0,
      updatedAt: 0,
    })),
    rootQuorum: { threshold: 1, userIds: ['root'] },
    users,
    environment,
    now: 0,
  });
}

const asked = { submitterId: 'treasurer', rootQuorumOnly: false, ownCredentials: false };

const decisions: Readonly<Partial<Record<PolicyOutcome, string>>> = {
  OUTCOME_ALLOW: 'allow',
  OUTCOME_DENY_EXPLICIT: 'deny-explicit',
  OUTCOME_DENY_IMPLICIT: 'deny-implicit',
  OUTCOME_ERROR: 'deny-implicit',
};

describe('what policies can say of wallets, keys and transactions', () => {
  it.each(cases.map((vector) => [vector.name, vector] as const))('decides as said: %s', (_name, vector) => {
    const { condition, effect, outcome, error } = vector;
    checkPolicyText(condition, 'condition', environment);
    const { evaluations, ...decision } = decide(requests[vector.request]!, [{ effect, condition }]);
    const { doubt, ...said } = evaluations[0]!;
    expect(said).toEqual({ policyId: 'p0', outcome, ...(error === undefined ? {} : { error }) });
    expect(doubt !== undefined).toBe(error !== undefined);
    expect(decision.outcome).toBe(decisions[outcome]);
  });

  it.each(refused.map(({ name, condition, message }) => [name, condition, message] as const))(
    'refuses when it is written: %s',
    (_name, condition, message) => {
      expect(() => {
        checkPolicyText(condition, 'condition', environment);
      }).toThrow(
        expect.objectContaining({
          code: 'INVALID_ARGUMENT',
          message: `invalid policy condition: Expression cannot be evaluated: ${message}`,
        }) as Error,
      );
    },
  );

  it.each(Object.keys(requests))('the request %s is of the declared types', (name) => {
    const { resources = {} } = requests[name]!;
    const types = new Map(resourceNamespaces.map((namespace) => [namespace.name, namespace.type]));
    const faults = Object.entries(resources).flatMap(([root, value]) =>
      conforms(types.get(root)!, value as PolicyValue, root),
    );
    expect(faults).toEqual(name === 'eth-value-of-129-bits' ? ['eth.tx.value: is no int as bigint'] : []);
  });

  it.each(['wallet.imported', 'eth.tx.gas > 1', "solana.tx.program_keys.contains('x')"])(
    'are for conditions only: %s',
    (condition) => {
      for (const clause of ['consensus', 'time'] as const) {
        expect(() => {
          checkPolicyText(condition, clause, environment);
        }).toThrow(`a ${clause} has none, only a condition has`);
      }
    },
  );

  it('gives every root what the request brings under its name, and says what it does not have', () => {
    const request = { activity: requests['create-wallet']!.activity, ...asked, resources: { eth: { tx: {} } } };
    const context = { now: 0, user: () => undefined };
    const given = resourceNamespaces.map((namespace) => [namespace.name, namespace.value(request, [], context)]);
    expect(given.filter(([, value]) => value !== undefined)).toEqual([
      ['eth', { tx: {}, eip_712: notApplicable, eip_7702_authorization: notApplicable }],
    ]);
    const gone = unreadable('gone');
    for (const { value } of resourceNamespaces) expect(value({ ...request, resources: gone }, [], context)).toBe(gone);
    expect(resourceNamespaces.map(({ name }) => name)).toEqual([
      'wallet',
      'wallets',
      'wallet_account',
      'private_key',
      'eth',
      'solana',
      'bitcoin',
      'tron',
    ]);
  });
});

const { activity } = requests['erc20-transfer']!;

/** A transaction whose call has these arguments. */
const withArguments = (contractCallArgs: PolicyValue) => ({
  activity,
  resources: { eth: { tx: { contract_call_args: contractCallArgs } } },
});

function readingOf(condition: string, contractCallArgs: PolicyValue): Reading {
  const { resources } = withArguments(contractCallArgs);
  const compiled = compileClause(condition, 'condition', environment);
  return evaluate(compiled, { now: 0, value: (name) => (name === 'eth' ? resources.eth : undefined) });
}

/** `error` when anything in it is in doubt. */
function evaluated(condition: string, contractCallArgs: PolicyValue): boolean | 'error' {
  const { truth, doubt } = readingOf(condition, contractCallArgs);
  return doubt ? 'error' : truth === 'true';
}

const integers = fc.oneof(
  fc.constantFrom(0n, 1n, 2n ** 127n - 1n, 2n ** 127n, 2n ** 128n - 1n, 2n ** 128n, 2n ** 255n, 2n ** 256n - 1n),
  fc.bigInt({ min: 0n, max: 2n ** 256n - 1n }),
);
const signedIntegers = fc.oneof(integers, fc.bigInt({ min: -(2n ** 255n), max: -1n }), fc.constant(-(2n ** 255n)));
const words = fc.constantFrom('', '0', '3', '-1', '03', 'transfer', 'Transfer', '0xab', '0xAB', '0xabg', '0xABG', 'é');
const values: fc.Arbitrary<PolicyValue> = fc.letrec<{ value: PolicyValue }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.boolean(),
    signedIntegers,
    words,
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom('a', 'b', 'length', 'x'), tie('value')),
  ),
})).value;

const reference = readFileSync(new URL('../../../docs/reference/policy-language.md', import.meta.url), 'utf8');

function nameOf(type: PolicyType): string {
  switch (type.kind) {
    case 'list':
    case 'map':
      return `${type.kind}\\<${nameOf(type.of)}\\>`;
    case 'record':
      return type.name;
    case 'string':
      return type.hex === undefined ? 'string' : type.hex === 'always' ? 'hex' : 'address';
    default:
      return type.kind;
  }
}

function recordsIn(type: PolicyType): Extract<PolicyType, { kind: 'record' }>[] {
  if (type.kind === 'list' || type.kind === 'map') return recordsIn(type.of);
  return type.kind === 'record' ? [type, ...Object.values(type.fields).flatMap(recordsIn)] : [];
}

describe('the reference', () => {
  it.each(resourceNamespaces.map(({ name, type }) => [name, type] as const))('says what %s is', (name, type) => {
    const isChain = type.kind === 'record' && ['Ethereum', 'Solana', 'Bitcoin', 'Tron'].includes(type.name);
    const roots = isChain
      ? Object.entries(type.fields).map(([field, fieldType]) => [`${name}.${field}`, fieldType] as const)
      : [[name, type] as const];
    for (const [root, rootType] of roots) expect(reference).toContain(`| \`${root}\` | ${nameOf(rootType)} |`);
    for (const record of recordsIn(type).slice(isChain ? 1 : 0)) {
      const fields = Object.entries(record.fields).map(([field, fieldType]) => `\`${field}\` ${nameOf(fieldType)}`);
      expect(reference).toContain(`| ${record.name} | ${fields.join(', ')} |`);
    }
  });

  it('has examples that can be evaluated', () => {
    const examples = reference.split('\n').filter((line) => /^(?:eth|solana|bitcoin|tron)\./.test(line));
    expect(examples.length).toBeGreaterThanOrEqual(5);
    for (const example of examples) checkPolicyText(example, 'condition', environment);
  });
});

describe('values whose type a policy cannot know', () => {
  it('compares integers of any width exactly', () => {
    fc.assert(
      fc.property(signedIntegers, integers, (value, literal) => {
        const x = "eth.tx.contract_call_args['x']";
        const told = ['==', '!=', '<', '<=', '>', '>='].map((operator) => [
          evaluated(`${x} ${operator} ${literal}`, { x: value }),
          evaluated(`${literal} ${operator} ${x}`, { x: value }),
        ]);
        expect(told).toEqual([
          [value === literal, value === literal],
          [value !== literal, value !== literal],
          [value < literal, literal < value],
          [value <= literal, literal <= value],
          [value > literal, literal > value],
          [value >= literal, literal >= value],
        ]);
        expect(evaluated(`${x} in [0, ${literal}]`, { x: value })).toBe(value === 0n || value === literal);
        expect(evaluated(`eth.tx.contract_call_args['list'].contains(${literal})`, { list: [value, 5n] })).toBe(
          value === literal || literal === 5n,
        );
      }),
      { numRuns: 300 },
    );
  });

  it('takes nothing for equal, and nothing for different, that is of another type', () => {
    const literals = fc.oneof(
      fc.boolean().map((value) => ({ text: String(value), value })),
      integers.map((value) => ({ text: String(value), value })),
      words.map((value) => ({ text: `'${value}'`, value })),
    );
    const expected = (value: PolicyValue, literal: boolean | bigint | string): boolean | 'error' => {
      if (typeof value === 'bigint' && typeof literal === 'string') {
        return ['0', '3', '-1'].includes(literal) ? value === BigInt(literal) : 'error';
      }
      if (typeof value !== typeof literal) return 'error';
      const isHex = (word: unknown) => ['0xab', '0xAB'].includes(String(word));
      return value === literal || (isHex(value) && isHex(literal));
    };
    const seen = new Set<boolean | 'error'>();
    fc.assert(
      fc.property(values, literals, (value, { text, value: literal }) => {
        const x = "eth.tx.contract_call_args['x']";
        const isEqual = expected(value, literal);
        const isDifferent = isEqual === 'error' ? 'error' : !isEqual;
        seen.add(isEqual);
        expect(evaluated(`${x} == ${text}`, { x: value })).toBe(isEqual);
        expect(evaluated(`${text} == ${x}`, { x: value })).toBe(isEqual);
        expect(evaluated(`${x} != ${text}`, { x: value })).toBe(isDifferent);
        expect(evaluated(`${x} in [${text}]`, { x: value })).toBe(isEqual);
        expect(evaluated(`[${text}].any(item, item == ${x})`, { x: value })).toBe(isEqual);
        expect(evaluated(`${text} in eth.tx.contract_call_args['list']`, { list: [value] })).toBe(isEqual);
      }),
      { numRuns: 500 },
    );
    expect(seen).toEqual(new Set([true, false, 'error']));
  });

  const x = "eth.tx.contract_call_args['x']";
  const atoms = [
    x,
    `${x} == 3`,
    `${x}['a'] == '0xab'`,
    `${x}.a.b > 2`,
    `${x}[0] != 'transfer'`,
    `${x}[0..1].count() == 1`,
    `${x}.all(i, i == 3)`,
    `${x}.any(i, i.a == 3 || i)`,
    `${x}.filter(i, i != 3).count() > 0`,
    `3 in ${x}`,
    `${x} in [1, 3]`,
    `${x} == eth.tx.contract_call_args['y']`,
    `${x}[eth.tx.contract_call_args['y']]`,
    `[${x}, true].all(i, i)`,
    'true',
    'false',
  ];
  const conditions = fc
    .array(fc.tuple(fc.constantFrom(...atoms), fc.constantFrom(' && ', ' || ', ' && !')), {
      minLength: 1,
      maxLength: 4,
    })
    .map((list) => ({
      parts: list.map(([part]) => part),
      condition: list
        .flatMap(([part, operator]) => [`(${part})`, operator])
        .slice(0, -1)
        .join(''),
    }));

  it('never allows by a doubt, and denies by one, whatever the arguments are', () => {
    const seen = new Set<string>();
    fc.assert(
      fc.property(conditions, fc.record({ x: values, y: values }), ({ parts, condition }, contractCallArgs) => {
        const expected = evaluated(condition, contractCallArgs);
        // No short circuit: an error in any part is an error of the whole, and one in none is one in none.
        const hasError = parts.some((part) => evaluated(part, contractCallArgs) === 'error');
        expect(expected === 'error').toBe(hasError);
        const request = withArguments(contractCallArgs);
        const allowed = decide(request, [{ effect: 'EFFECT_ALLOW', condition }]);
        expect(allowed.outcome).toBe(expected === true ? 'allow' : 'deny-implicit');
        const denied = decide(request, [{ effect: 'EFFECT_DENY', condition }]);
        const { truth } = readingOf(condition, contractCallArgs);
        const isDenied = truth === 'true' || truth === 'unreadable';
        expect(denied.outcome).toBe(isDenied ? 'deny-explicit' : 'deny-implicit');
        expect(allowed.evaluations[0]!.outcome === 'OUTCOME_ERROR').toBe(expected === 'error');
        expect(denied.evaluations[0]!.doubt).toBe(truth === 'unreadable' ? 'unreadable' : undefined);
        for (const { evaluations } of [allowed, denied]) seen.add(evaluations[0]!.outcome);
      }),
      { numRuns: 1_000 },
    );
    expect(seen).toEqual(new Set(['OUTCOME_ALLOW', 'OUTCOME_DENY_EXPLICIT', 'OUTCOME_DENY_IMPLICIT', 'OUTCOME_ERROR']));
  });

  it.each([
    ['beyond 256 bits', 2n ** 256n],
    ['below 256 bits', -(2n ** 255n) - 1n],
    ['a number', 3 as unknown as PolicyValue],
    ['null', null as unknown as PolicyValue],
  ])('takes no value that is none of the language: %s', (_name, value) => {
    expect(decide(withArguments({ x: value }), [{ effect: 'EFFECT_ALLOW', condition: `${x} != 4` }])).toMatchObject({
      evaluations: [
        { error: "the value of eth.tx.contract_call_args['x'] does not fit its type dynamic (line 1, column 26)" },
      ],
    });
  });

  it('bounds the work that letter case makes', () => {
    const data = `0x${'aB'.repeat(250_000)}`;
    const decided = (condition: string) =>
      decide({ activity, resources: { eth: { tx: { data, to: data, contract_call_args: { x: data } } } } }, [
        { effect: 'EFFECT_ALLOW', condition },
      ]).evaluations[0]!;
    const often = (part: string) => Array.from({ length: 200 }, () => part).join(' || ');
    const slices = 'eth.tx.data[2..499999] == eth.tx.data[3..500000]';
    expect(decided(slices).outcome).toBe('OUTCOME_DENY_IMPLICIT');
    expect(decided(often(slices)).error).toMatch('more than 100000 steps are needed');
    expect(decided(often("eth.tx.to in ['0x']")).error).toMatch('more than 100000 steps are needed');
  });
});
