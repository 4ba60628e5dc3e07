import type { ResponseOf } from '../client/activity-client.js';
import { lines, printable } from './layout.js';
import type { Terminal } from './terminal.js';

type Proof = NonNullable<ResponseOf<'explain_activity'>['proof']>;
type PartProof = Proof['parts'][number];
type PolicyProof = PartProof['policies'][number];
type ClauseProof = PolicyProof['clauses'][number];
type ClausePart = ClauseProof['parts'][number];
type SetBy = NonNullable<PolicyProof['setBy']>;

/** Widest text of a part of a clause; what is longer pushes its value to the right. */
const widest = 60;

/** A proof for people: the rules in their order, and what each rests on. */
export function proofText(terminal: Terminal, proof: Proof): string {
  const { text, revision, rules, decidedAt, parts, flips, isCut, flipsAreCut } = proof;
  return [
    `${terminal.styled('bold', printable(text))}\n`,
    `At revision ${revision}, ${decidedAt}, by rules ${rules}${proof.authorityId ? `, with the policies of ${proof.authorityId}` : ''}.\n\n`,
    lines(terminal, [['Root quorum', quorumWords(proof)]]),
    ...parts.map((part) => partText(terminal, part)),
    ...(flips.length > 0 ? [`\n${terminal.styled('bold', 'What would change it')}\n`] : []),
    ...flips.map(({ outcome, changes }) => {
      return `  ${printable(changes.map((change) => change.text).join(', and '))}: ${outcome.replaceAll('-', ' ')}\n`;
    }),
    ...(isCut ? ['\nNot every policy, or not every part of one, is listed.\n'] : []),
    ...(flipsAreCut ? ['\nThere may be other changes: not all could be tried.\n'] : []),
  ].join('');
}

function quorumWords({ rootQuorum, isRootQuorumOnly }: Proof): string {
  const { threshold, members, approvedBy, isMet, mayBeAsked, setBy } = rootQuorum;
  const requested = isMet
    ? 'has approved'
    : mayBeAsked
      ? 'may still approve'
      : 'has no say: the submitter is not a member';
  const only = isRootQuorumOnly ? '; only it may do this' : '';
  return `${approvedBy.length} of ${threshold} approvals, ${members} ${members === 1 ? 'member' : 'members'}; ${requested}${only}${setByWords(setBy)}`;
}

function partText(terminal: Terminal, part: PartProof): string {
  const { payload, policies } = part;
  const title = payload === undefined ? '' : `\n${terminal.styled('bold', `Payload ${printable(payload)}`)}\n`;
  const requested = policies.filter(({ isAsked }) => isAsked);
  const others = policies.length - requested.length;
  return [
    title,
    lines(terminal, [
      ['Denials', ruleWords(requested, 'EFFECT_DENY', 'OUTCOME_DENY_EXPLICIT')],
      ['Allows', ruleWords(requested, 'EFFECT_ALLOW', 'OUTCOME_ALLOW')],
      ['Own', ownWords[part.ownCredentials] ?? part.ownCredentials],
      ['Decided', `${part.outcome.replaceAll('-', ' ')}: ${ruleThat[part.decidedBy] ?? part.decidedBy}`],
    ]),
    ...requested.map((policy) => policyText(terminal, policy)),
    ...(others > 0 ? [`\n${others === 1 ? '1 policy demands' : `${others} policies demand`} another activity.\n`] : []),
  ].join('');
}

const ruleThat: Readonly<Record<string, string>> = {
  denials: 'a DENY applies',
  allows: 'an ALLOW applies, and no DENY',
  'own-credentials': 'users may manage their own credentials',
  'implicit-denial': 'no ALLOW applies',
};

const ownWords: Readonly<Record<string, string>> = {
  applies: 'it is about the submitter’s own credentials, and no policy speaks to it',
  'not-own': 'it is not about the submitter’s own credentials',
  'not-approved': 'the submitter’s approval does not count any more',
  'spoken-to': 'it is about the submitter’s own credentials, but a policy speaks to it',
};

function ruleWords(policies: readonly PolicyProof[], effect: string, outcome: string): string {
  const speaking = policies.filter((policy) => policy.effect === effect);
  const applying = speaking.filter((policy) => policy.outcome === outcome).map(({ policyName }) => `“${policyName}”`);
  if (applying.length > 0) return `${applying.join(', ')} ${applying.length === 1 ? 'applies' : 'apply'}`;
  return speaking.length === 0 ? 'none speaks of this' : `none of ${speaking.length} applies`;
}

function policyText(terminal: Terminal, policy: PolicyProof): string {
  const { policyName, effect, outcome, error, setBy, isDeciding, clauses } = policy;
  const style = isDeciding ? 'bold' : 'dim';
  const kind = effect === 'EFFECT_DENY' ? 'deny' : 'allow';
  const head = `${kind} “${policyName}”: ${outcome
    .replace(/^OUTCOME_/, '')
    .replaceAll('_', ' ')
    .toLowerCase()}`;
  return [
    `\n${terminal.styled(style, printable(head))}${setByWords(setBy)}\n`,
    ...(error === undefined ? [] : [`  ${printable(error)}\n`]),
    ...clauses.map((clause) => clauseText(clause)),
  ].join('');
}

function clauseText({ clause, text, value, isMet, doubt, setBy, parts }: ClauseProof): string {
  const met = isMet === false && value === 'true' ? ', not met' : '';
  const head = `  ${clause}: ${value}${met}${doubt === undefined ? '' : `, ${doubt}`}`;
  const tree = parts.length > 0 ? parts.map(partLine) : [`    ${text}\n`];
  return [`${printable(head)}${setByWords(setBy)}\n`, ...tree.map((line) => `${printable(line.trimEnd())}\n`)].join('');
}

function partLine({ depth, text, value, doubt, element, more, from = [] }: ClausePart): string {
  const which = element === undefined ? '' : `[${element}] `;
  const named = `${'  '.repeat(depth + 2)}${which}${text}`;
  const said = `${named.padEnd(widest)}  ${value}`;
  const why = doubt === undefined ? '' : `  (${doubt})`;
  const rest = more === undefined ? '' : `  and ${more} more`;
  return `${said}${why}${rest}${fromWords(from)}`;
}

function fromWords(from: NonNullable<ClausePart['from']>): string {
  if (from.length === 0) return '';
  const words = from.map(({ of, id, name, setBy }) => {
    const what = of === 'request' || of === 'time' ? `the ${of}` : `${of.replaceAll('-', ' ')} ${name ?? id ?? ''}`;
    return setBy ? `${what}, ${eventWords(setBy)}` : what;
  });
  return `  ← ${words.join('; ')}`;
}

const setByWords = (setBy: SetBy | undefined): string => (setBy ? `  ← ${eventWords(setBy)}` : '');

const eventWords = ({ type, revision }: SetBy): string => `${type} at ${revision}`;
