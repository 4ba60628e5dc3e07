import { clauseNames, type PolicyChanges, type PolicySaid, type Quorum } from '../audit/policies/policy-changes.js';
import type { PolicyStep } from '../audit/policies/policy-steps.js';
import { printable } from './layout.js';
import type { OrganizationPolicies } from './organization-policies.js';
import type { Terminal } from './terminal.js';

type Naming = Pick<OrganizationPolicies, 'named' | 'userName'>;

const members = ['effect', ...clauseNames, 'notes'] as const;
const absent: Readonly<Record<string, string>> = {
  condition: 'always',
  consensus: 'the submitter alone',
  time: 'always',
  notes: 'none',
};

/** Changes for a reviewer: what is added, changed and removed, with names in place of ids. */
export function changesShown(terminal: Terminal, changes: PolicyChanges, naming: Naming): string {
  const { tags, added, changed, removed, quorum } = changes;
  const [plus, minus, tilde] = [
    terminal.styled('green', '+'),
    terminal.styled('red', '-'),
    terminal.styled('yellow', '~'),
  ];
  const title = (name: string) => terminal.styled('bold', `policy “${printable(name)}”`);
  const whole = (policy: PolicySaid) =>
    members.flatMap((member) => {
      const text = naming.named(memberOf(policy, member));
      if (text === '') return [];
      const [first, ...rest] = text.split('\n').map(printable);
      return [`    ${member.padEnd(9)}  ${first}`, ...rest.map((line) => `    ${' '.repeat(9)}  ${line}`)];
    });
  const difference = (was: string, is: string) =>
    lineDifference(was, is).map(
      ([sign, line]) => `      ${{ '+': plus, '-': minus, ' ': ' ' }[sign]} ${printable(line)}`,
    );
  const other = (was: PolicySaid, is: PolicySaid) =>
    members.flatMap((member) => {
      const [from, to] = [was, is].map((policy) => naming.named(memberOf(policy, member)) || (absent[member] ?? ''));
      return from === to ? [] : [`    ${member}`, ...difference(from!, to!)];
    });
  return [
    ...tags.map((name) => `${plus} ${terminal.styled('bold', `tag “${printable(name)}”`)}`),
    ...added.flatMap((policy) => [`${plus} ${title(policy.policyName)}`, ...whole(policy)]),
    ...changed.flatMap(({ was, is }) => [`${tilde} ${title(is.policyName)}`, ...other(was, is)]),
    ...removed.flatMap((policy) => [`${minus} ${title(policy.policyName)}`, ...whole(policy)]),
    ...(quorum
      ? [
          `${tilde} ${terminal.styled('bold', 'root quorum')}`,
          ...difference(quorumText(quorum.was, naming), quorumText(quorum.is, naming)),
        ]
      : []),
  ]
    .map((line) => `${line}\n`)
    .join('');
}

const memberOf = (policy: PolicySaid, member: (typeof members)[number]): string =>
  member === 'effect' ? policy.effect.replace(/^EFFECT_/, '').toLowerCase() : (policy[member] ?? '');

/** `2 of Ann, Ben`. */
export function quorumText({ threshold, userIds }: Quorum, { userName }: Naming): string {
  return `${threshold} of ${userIds.map(userName).sort().join(', ')}`;
}

/** The lines of two texts; those that both begin or end with appear once. */
function lineDifference(was: string, is: string): readonly (readonly ['+' | '-' | ' ', string])[] {
  const [old, lines] = [was.split('\n'), is.split('\n')];
  const most = Math.min(old.length, lines.length);
  let before = 0;
  while (before < most && old[before] === lines[before]) before++;
  let after = 0;
  while (after < most - before && old.at(-1 - after) === lines.at(-1 - after)) after++;
  const marked = (sign: '+' | '-' | ' ', some: readonly string[]) => some.map((line) => [sign, line] as const);
  return [
    ...marked(' ', old.slice(0, before)),
    ...marked('-', old.slice(before, old.length - after)),
    ...marked('+', lines.slice(before, lines.length - after)),
    ...marked(' ', old.slice(old.length - after)),
  ];
}

const verbs: Readonly<Record<PolicyStep['type'], string>> = {
  ACTIVITY_TYPE_CREATE_USER_TAG: 'create tag',
  ACTIVITY_TYPE_CREATE_POLICIES: 'create',
  ACTIVITY_TYPE_UPDATE_POLICY_V2: 'update',
  ACTIVITY_TYPE_DELETE_POLICIES: 'delete',
  ACTIVITY_TYPE_UPDATE_ROOT_QUORUM: 'change the root quorum',
};

/** A step in a few words, such as `create “a”, “b”`. */
export function stepText({ type, names }: PolicyStep): string {
  return [verbs[type], names.map((name) => `“${printable(name)}”`).join(', ')].filter((part) => part !== '').join(' ');
}
