import { analyse } from '../domain/policy/consensus-analysis.js';
import type { Ballot } from '../domain/policy/ballot.js';
import { ClausesRead } from '../domain/policy/language.js';
import { reads } from '../domain/policy/literals.js';
import { rootsOf } from '../domain/policy/roots.js';
import { thresholdsOf } from '../domain/policy/threshold-formula.js';
import { Unreadable, type Approval, type PolicyUser } from '../domain/policy/types.js';
import { finding, type Finding, type Linting, type ReadPolicy } from './lint-subject.js';
import { questionOn } from './passing-sets.js';

/** Steps after which whether a consensus can be reached is not known. */
const stepsOfReach = 90_000;
const namesShown = 3;
const changeable: ReadonlySet<string> = new Set(['User.alias', 'User.email']);

/** What consensuses come to with today's users. */
export function* lintVoters(linting: Linting): Generator<Finding> {
  const clauses = new ClausesRead(linting.rules.environment, '');
  for (const one of linting.policies) {
    const { policy, consensus, admits } = one;
    if (policy.consensus !== undefined && !consensus) continue;
    yield* textOf(one);
    if (policy.effect !== 'EFFECT_ALLOW' || admits.length === 0) continue;
    const lone = linting.subject.users.filter((user) => isMetBy(one, user, linting, clauses));
    const others = linting.subject.users.filter(({ credentials }) => credentials.length > 0);
    if (lone.length > 0) yield loneSubmitter(one, lone, lone.length === others.length);
    else if (!isReachable(one, linting, clauses)) {
      yield finding(
        policy,
        { clause: 'consensus' },
        {
          code: 'out-of-reach',
          severity: 'problem',
          text: 'no set of today’s users fulfils its consensus',
          help: 'give users the tags and credentials that it asks for, or ask for fewer',
        },
      );
    }
  }
}

function* textOf({ policy, consensus }: ReadPolicy): Generator<Finding> {
  if (!consensus) return;
  const place = { clause: 'consensus' as const };
  if (analyse(consensus).kind === 'ordered') {
    yield finding(policy, place, {
      code: 'order-of-votes',
      severity: 'warning',
      text: 'it depends on the order of votes, and is unreadable while there are too few of them',
      help: 'use approvers.any(…) or approvers.filter(…).count()',
    });
  } else if (policy.effect === 'EFFECT_ALLOW' && !thresholdsOf(consensus)) {
    yield finding(policy, place, {
      code: 'can-be-undone',
      severity: 'warning',
      text: 'another approval may undo it, as it does more than ask for a least number of approvers',
      help: 'use any(…) and count() >= …, unless that is meant',
    });
  }
  if (reads(consensus, changeable)) {
    yield finding(policy, place, {
      code: 'names-prove-nothing',
      severity: 'warning',
      text: 'anyone can choose an alias, and an email need not be verified: neither proves who approves',
      help: 'compare user.id or user.tags',
    });
  }
}

function loneSubmitter({ policy }: ReadPolicy, lone: readonly PolicyUser[], isEverybody: boolean): Finding {
  const names = lone.slice(0, namesShown).map(({ userName }) => `\`${userName}\``);
  const more = lone.length > namesShown ? ` and ${lone.length - namesShown} others` : '';
  const who = isEverybody ? 'any user' : `${names.join(', ')}${more}`;
  return finding(policy, policy.consensus === undefined ? undefined : { clause: 'consensus' }, {
    code: 'lone-submitter',
    severity: isEverybody ? 'warning' : 'note',
    text: `${who} can fulfil it alone, by submitting`,
    help: 'the submitter’s vote counts: ask for one more, or for approvers.any(user, user.id != requester.id), unless that is meant',
  });
}

function isMetBy(one: ReadPolicy, user: PolicyUser, linting: Linting, clauses: ClausesRead): boolean {
  return user.credentials.some((credential) => {
    const question = asked(linting, user.userId, [{ userId: user.userId, credential }], clauses);
    const consensus = question.consensus(one.policy.consensus);
    return !(consensus instanceof Unreadable) && consensus.isMet;
  });
}

function isReachable({ consensus }: ReadPolicy, linting: Linting, clauses: ClausesRead): boolean {
  if (!consensus) return true;
  const { users } = linting.subject;
  // Who asks matters only if the consensus says so.
  const askers = rootsOf(consensus).has('requester') ? users : users.slice(0, 1);
  return askers.some(({ userId }) => {
    const before = linting.steps.spent;
    const isFound = asked(linting, userId, [], clauses).voters.isReachable(consensus);
    return isFound || linting.steps.spent - before > stepsOfReach;
  });
}

function asked(
  { subject, rules, steps }: Linting,
  submitterId: string,
  cast: readonly Approval[],
  clauses: ClausesRead,
) {
  const { users, now, rootQuorum } = subject;
  const ballot: Ballot = { submitterId, now, tenant: '', rootQuorum, isRootPossible: false, parts: [], users, cast };
  return questionOn(ballot, cast, rules.environment, { steps, clauses });
}
