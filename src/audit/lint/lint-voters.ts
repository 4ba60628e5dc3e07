import { apiKeyCredentialType, loginCredentialTypes } from '../../domain/organization/credentials.js';
import { analyse } from '../../domain/policy/consensus-analysis.js';
import type { Ballot } from '../../domain/policy/ballot.js';
import { ClausesRead } from '../../domain/policy/language.js';
import { reads } from '../../domain/policy/literals.js';
import { rootsOf } from '../../domain/policy/roots.js';
import { thresholdsOf } from '../../domain/policy/threshold-formula.js';
import type { CheckedExpression } from '../../domain/policy/syntax.js';
import {
  Unreadable,
  type Approval,
  type Policy,
  type PolicyCredential,
  type PolicyUser,
} from '../../domain/policy/types.js';
import { truthForAll } from './lint-reach.js';
import { finding, type Finding, type Linting, type ReadPolicy } from './lint-subject.js';
import { questionOn } from '../approvers/passing-sets.js';

/** Steps after which whether a consensus can be reached is not known. */
const stepsOfReach = 90_000;
const namesShown = 3;
const changeable: ReadonlySet<string> = new Set(['User.alias', 'User.email']);
/** What a credential has that whoever registers it may have chosen. */
const chosen: ReadonlySet<string> = new Set(['Credential.public_key', 'Credential.credential_id']);

const passkeyType = 'CREDENTIAL_TYPE_WEBAUTHN_AUTHENTICATOR';
const keyTypes = Object.values(apiKeyCredentialType);
/** Types of the credentials that users make for themselves, by the verb that makes them (docs/adr/0013). */
const madeBy: ReadonlyMap<string, readonly string[]> = new Map([
  ['STAMP_LOGIN', ['CREDENTIAL_TYPE_LOGIN']],
  ['CREATE_READ_WRITE_SESSION', ['CREDENTIAL_TYPE_READ_WRITE_SESSION_KEY_P256']],
  ['CREATE_API_KEYS', keyTypes],
  ['CREATE_AUTHENTICATORS', [passkeyType]],
]);
const sessionKinds: ReadonlySet<string> = new Set(['STAMP_LOGIN', 'CREATE_READ_WRITE_SESSION']);

/** What consensuses come to with today's users. */
export function* lintVoters(linting: Linting): Generator<Finding> {
  const clauses = new ClausesRead(linting.rules.environment, '');
  const free = typesMadeFreely(linting);
  for (const one of linting.policies) {
    const { policy, consensus, admits } = one;
    if (policy.consensus !== undefined && !consensus) continue;
    yield* textOf(one);
    if (policy.effect !== 'EFFECT_ALLOW' || admits.length === 0) continue;
    const isMet = (key: PolicyCredential): boolean => isMetBy(policy, key, linting, clauses);
    const isMetByMaking = ({ userId }: PolicyUser): boolean =>
      anyCredentialOf(userId).some((key) => free.has(key.type) && isMet(key));
    const voters = linting.subject.users.filter(({ credentials }) => credentials.length > 0);
    const own = new Set(voters.filter(({ credentials }) => credentials.some(isMet)));
    const isTyped = consensus !== undefined && readsCredentials(consensus);
    const made = isTyped ? voters.filter((user) => !own.has(user) && isMetByMaking(user)) : [];
    const lone = [...own, ...made];
    const isEverybody = lone.length === voters.length;
    if (lone.length > 0) yield loneSubmitter(one, lone, { isEverybody, isMade: made.length > 0 });
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

function loneSubmitter(
  { policy }: ReadPolicy,
  lone: readonly PolicyUser[],
  { isEverybody, isMade }: { readonly isEverybody: boolean; readonly isMade: boolean },
): Finding {
  const names = lone.slice(0, namesShown).map(({ userName }) => `\`${userName}\``);
  const more = lone.length > namesShown ? ` and ${lone.length - namesShown} others` : '';
  const who = isEverybody ? 'any user' : `${names.join(', ')}${more}`;
  return finding(policy, policy.consensus === undefined ? undefined : { clause: 'consensus' }, {
    code: 'lone-submitter',
    severity: isEverybody ? 'warning' : 'note',
    text: `${who} can fulfil it alone, by submitting${isMade ? ' with a credential that they make for themselves' : ''}`,
    help: isMade
      ? 'a type of credentials proves nothing while users may make their own: ask for users or tags, unless that is meant'
      : 'the submitter’s vote counts: ask for one more, or for approvers.any(user, user.id != requester.id), unless that is meant',
  });
}

/** One credential of each type, as a user could have them. */
export function anyCredentialOf(userId: string): readonly PolicyCredential[] {
  return [...keyTypes, passkeyType, ...loginCredentialTypes].map((type) => {
    const credentialId = type === passkeyType ? { credentialId: '' } : {};
    return { id: type, userId, type, publicKey: '', ...credentialId };
  });
}

/** Types of which each user who has a credential can make one: those that no DENY, and of the lasting ones no ALLOW, may be about. */
function typesMadeFreely({ policies, rules, steps }: Linting): ReadonlySet<string> {
  const isFree = (kind: string): boolean => {
    const versions = rules.activities.filter((activity) => activity.kind === kind);
    return !policies.some(({ policy, condition }) => {
      // An ALLOW without a condition does not speak of credentials, and none takes a session away.
      const isSilent = policy.effect === 'EFFECT_ALLOW' && (sessionKinds.has(kind) || policy.condition === undefined);
      if (isSilent) return false;
      const isRead = policy.condition === undefined || condition !== undefined;
      return !isRead || versions.some((activity) => truthForAll(condition, activity, steps) !== false);
    });
  };
  return new Set([...madeBy].flatMap(([kind, types]) => (isFree(kind) ? types : [])));
}

const readsCredentials = (consensus: CheckedExpression): boolean => rootsOf(consensus).has('credentials');

/** Whether the approval by this credential alone is enough. */
export function isMetBy(
  { consensus: text }: Policy,
  credential: PolicyCredential,
  linting: Linting,
  clauses: ClausesRead,
): boolean {
  const { userId } = credential;
  const consensus = requested(linting, userId, [{ userId, credential }], clauses).consensus(text);
  return !(consensus instanceof Unreadable) && consensus.isMet;
}

/** Whether the users who are there fulfil a consensus together, for a request of this user. */
export function isReachableBy(
  consensus: CheckedExpression,
  userId: string,
  linting: Linting,
  clauses: ClausesRead,
): boolean {
  return requested(linting, userId, [], clauses).voters.isReachable(consensus);
}

function isReachable({ consensus }: ReadPolicy, linting: Linting, clauses: ClausesRead): boolean {
  // The owner of a key that it names may register that key.
  if (!consensus || reads(consensus, chosen)) return true;
  const users = linting.subject.users.map((user) => withCredentials(user, consensus, linting));
  const among = { ...linting, subject: { ...linting.subject, users } };
  // Who asks matters only if the consensus says so.
  const askers = rootsOf(consensus).has('requester') ? users : users.slice(0, 1);
  return askers.some(({ userId }) => {
    const before = linting.steps.spent;
    const isFound = isReachableBy(consensus, userId, among, clauses);
    return isFound || linting.steps.spent - before > stepsOfReach;
  });
}

/** A user with every credential that they could have by today's policies: many types take no more than to log in. */
function withCredentials(user: PolicyUser, consensus: CheckedExpression, { subject }: Linting): PolicyUser {
  const { userId, credentials } = user;
  const canVote = credentials.length > 0 || subject.logsIn.includes(userId);
  if (!canVote || (credentials.length > 0 && !readsCredentials(consensus))) return user;
  return { ...user, credentials: [...credentials, ...anyCredentialOf(userId)] };
}

function requested(
  { subject, rules, steps }: Linting,
  submitterId: string,
  cast: readonly Approval[],
  clauses: ClausesRead,
) {
  const { users, now, rootQuorum } = subject;
  const ballot: Ballot = { submitterId, now, tenant: '', rootQuorum, isRootPossible: false, parts: [], users, cast };
  return questionOn(ballot, cast, rules.environment, { steps, clauses });
}
