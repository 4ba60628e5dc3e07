import { unknownWords } from '../../domain/policy/known-literals.js';
import { literalsOf, reads } from '../../domain/policy/literals.js';
import { approvalNamespaces } from '../../domain/policy/namespaces.js';
import { partsOf, rootsOf } from '../../domain/policy/roots.js';
import { PolicyError, type CheckedExpression } from '../../domain/policy/syntax.js';
import type { Clause } from '../../domain/policy/types.js';
import { isUuid } from '../../domain/uuid.js';
import { compiled, finding, type Finding, type Linting, type ReadPolicy } from './lint-subject.js';

const clauses = ['condition', 'consensus', 'time'] as const;
const nouns: Readonly<Record<string, string>> = {
  'User.id': 'user',
  'Credential.user_id': 'user',
  'User.tags': 'user tag',
  'Wallet.id': 'wallet',
  'PrivateKey.id': 'private key',
  'PrivateKey.tags': 'private key tag',
};

/** What the text of each clause says, apart from users and other policies. */
export function* lintText(linting: Linting): Generator<Finding> {
  const { environment } = linting.rules;
  for (const one of linting.policies) {
    const { policy } = one;
    for (const clause of clauses) {
      const expression = compiled(policy[clause], clause, environment);
      if (!expression) continue;
      if (expression instanceof PolicyError) {
        yield finding(
          policy,
          { clause, at: expression.at },
          {
            code: 'not-valid',
            severity: 'problem',
            text: `this build cannot read it: ${expression.message}`,
            help: 'write it again: until then an ALLOW does not apply, and a DENY denies',
          },
        );
        continue;
      }
      yield* unknownIds(one, clause, expression, linting);
    }
    for (const mistake of unknownWords(policy, environment)) {
      yield finding(policy, undefined, {
        code: 'unknown-word',
        severity: 'problem',
        text: `${mistake}, which no request has`,
        help: 'correct the text: compared with it, nothing is ever equal',
      });
    }
    yield* traps(one);
  }
}

function* unknownIds(
  { policy }: ReadPolicy,
  clause: Clause,
  expression: CheckedExpression,
  { subject: { names } }: Linting,
): Generator<Finding> {
  for (const { origin, value, at } of literalsOf(expression)) {
    const known = Object.hasOwn(names, origin) ? names[origin] : undefined;
    if (!known || Object.hasOwn(known, value)) continue;
    const noun = nouns[origin] ?? origin;
    const meant = Object.keys(known).find((id) => known[id] === value || id === value.toLowerCase());
    yield finding(
      policy,
      { clause, at },
      {
        code: 'unknown-id',
        severity: 'problem',
        text: `there is no ${noun} \`${value}\`${meant === undefined && !isUuid(value) ? ', which is no id' : ''}`,
        help:
          meant === undefined
            ? 'it may have been deleted: name another, or delete this part'
            : `write the id, \`${meant}\``,
      },
    );
  }
}

/** Roots of which a request has at most one. */
const exclusive = [
  ['eth', 'solana', 'bitcoin', 'tron'],
  ['wallet', 'private_key'],
  ['wallet_account', 'private_key'],
] as const;
const functionFields: ReadonlySet<string> = new Set([
  'EthereumTransaction.function_name',
  'EthereumTransaction.function_signature',
]);
const encodingField: ReadonlySet<string> = new Set(['ActivityParams.encoding']);
const typedDataField: ReadonlySet<string> = new Set(['Ethereum.eip_712']);

function* traps({ policy, condition }: ReadPolicy): Generator<Finding> {
  if (!condition) return;
  const isAllow = policy.effect === 'EFFECT_ALLOW';
  const roots = rootsOf(condition);
  const both = exclusive.map((group) => group.filter((name) => roots.has(name))).find((group) => group.length > 1);
  const place = (at: CheckedExpression['at']) => ({ clause: 'condition' as const, at });
  if (isAllow && both) {
    yield finding(policy, place(condition.at), {
      code: 'reads-what-no-request-has',
      severity: 'problem',
      text: `it reads \`${both[0]}\` and \`${both[1]}\`, and no request has both, so it never allows: there is no short circuit`,
      help: 'write two policies',
    });
  }
  const named = isAllow ? undefined : firstOf(condition, (node) => node.kind === 'index' && isText(node.index));
  if (named && !reads(condition, functionFields) && roots.has('eth')) {
    yield finding(policy, place(named.at), {
      code: 'denies-what-it-cannot-read',
      severity: 'warning',
      text: 'it also denies calls of functions without such an argument, because a DENY denies what it cannot read',
      help: "state the function first: eth.tx.function_name == '…' && …",
    });
  }
  if (!isAllow && reads(condition, typedDataField) && !reads(condition, encodingField)) {
    yield finding(policy, place(condition.at), {
      code: 'denies-digests',
      severity: 'warning',
      text: 'it also denies digests, which may be those of typed data',
      help: "to let them pass, begin with activity.params.encoding == 'PAYLOAD_ENCODING_EIP712' &&",
    });
  }
  const all = isAllow ? firstOf(condition, isAllOverResources) : undefined;
  if (all && !firstOf(condition, (node) => node.kind === 'call' && node.isCount)) {
    yield finding(policy, place(all.at), {
      code: 'true-of-nothing',
      severity: 'warning',
      text: 'an empty list makes `all` true',
      help: 'add .count() > 0, or say which programs are allowed',
    });
  }
}

function firstOf(node: CheckedExpression, is: (node: CheckedExpression) => boolean): CheckedExpression | undefined {
  if (is(node)) return node;
  for (const part of partsOf(node)) {
    const found = firstOf(part, is);
    if (found) return found;
  }
  return undefined;
}

function isText(node: CheckedExpression): boolean {
  return node.kind === 'constant' && typeof node.value === 'string';
}

/** `all`, which unlike `any` and `filter` is true of an empty list. */
function isAllOverResources(node: CheckedExpression): boolean {
  return (
    node.kind === 'call' && node.isTrueOfNothing && ![...rootsOf(node)].some((name) => approvalNamespaces.has(name))
  );
}
