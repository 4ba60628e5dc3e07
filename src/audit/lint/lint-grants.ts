import { analyse } from '../../domain/policy/consensus-analysis.js';
import { ClausesRead } from '../../domain/policy/language.js';
import { reads } from '../../domain/policy/literals.js';
import type { PolicyUser } from '../../domain/policy/types.js';
import { deniesWhoever, truthForAll } from './lint-reach.js';
import { finding, type Finding, type Linting, type ReadPolicy } from './lint-subject.js';
import { anyCredentialOf, isMetBy, isReachableBy } from './lint-voters.js';

/** Kinds of activities that make users. */
const makeUsers = ['CREATE_USERS', 'CREATE_API_ONLY_USERS', 'CREATE_INVITATIONS'];
const giveTags: ReadonlySet<string> = new Set([
  ...makeUsers,
  'UPDATE_USER',
  'CREATE_USER_TAG',
  'UPDATE_USER_TAG',
  'DELETE_USER_TAGS',
]);
const giveVotes: ReadonlySet<string> = new Set(makeUsers);
const giveLabels: ReadonlySet<string> = new Set(['UPDATE_WALLET']);
const tagFields: ReadonlySet<string> = new Set(['User.tags']);
const labelFields: ReadonlySet<string> = new Set(['Wallet.label']);

/** What others may do that makes a policy weaker than it seems. */
export function lintGrants(linting: Linting): readonly Finding[] {
  return [...tagGivers(linting), ...voteGivers(linting), ...labelGivers(linting), ...rawSigners(linting)];
}

/** The ALLOWs that may allow activities of these kinds, as far as no DENY keeps them for the root quorum. */
function granting({ policies, steps }: Linting, kinds: ReadonlySet<string>) {
  const denials = policies.filter(deniesWhoever);
  return policies.flatMap((one) => {
    if (one.policy.effect !== 'EFFECT_ALLOW') return [];
    const input = one.admits.filter(
      (activity) =>
        kinds.has(activity.kind) && !denials.some(({ condition }) => truthForAll(condition, activity, steps) === true),
    );
    return input.length === 0 ? [] : [{ one, kinds: [...new Set(input.map(({ kind }) => kind))] }];
  });
}

const placeOf = ({ policy }: ReadPolicy) =>
  policy.condition === undefined ? undefined : { clause: 'condition' as const };

/** Tags that users can be given without the root quorum are no stronger than the policy that allows it. */
function* tagGivers(linting: Linting): Generator<Finding> {
  const relying = linting.policies.find(({ condition, consensus }) =>
    [condition, consensus].some((clause) => clause && reads(clause, tagFields)),
  );
  if (!relying) return;
  for (const { one, kinds } of granting(linting, giveTags)) {
    yield finding(one.policy, placeOf(one), {
      code: 'tags-are-privileges',
      severity: 'warning',
      text: `it may allow ${kinds[0]!}, so those whom it allows can give tags to anyone, and \`${relying.policy.policyName}\` relies on tags`,
      help: `deny ${kinds.join(', ')} to all but the root quorum (company policies, 10), or say what this policy is about`,
    });
  }
}

/** Whoever makes users has as many votes as they like, where a consensus asks only for a number of them. */
function* voteGivers(linting: Linting): Generator<Finding> {
  const givers = granting(linting, giveVotes);
  if (givers.length === 0) return;
  const clauses = new ClausesRead(linting.rules.environment, '');
  const relying = linting.policies.filter((one) => asksForAnybody(one, linting, clauses));
  for (const { one, kinds } of givers) {
    // Who may do something only together may do it alone from then on: that is not said of the policy itself.
    const other = relying.find(({ policy }) => policy !== one.policy);
    if (!other) continue;
    yield finding(one.policy, placeOf(one), {
      code: 'users-are-votes',
      severity: 'warning',
      text: `it may allow ${kinds[0]!}, so those whom it allows can make users who approve, and any users fulfil \`${other.policy.policyName}\``,
      help: `ask for users or tags there, or deny ${kinds.join(', ')} to all but the root quorum`,
    });
  }
}

/** Whether an ALLOW needs several users, and users that nobody knows yet will do. */
function asksForAnybody({ policy, consensus, admits }: ReadPolicy, linting: Linting, clauses: ClausesRead): boolean {
  if (policy.effect !== 'EFFECT_ALLOW' || !consensus || admits.length === 0) return false;
  const analysis = analyse(consensus);
  const count = Math.min(analysis.kind === 'ordered' ? mostMade : analysis.cap, mostMade);
  const made = Array.from({ length: count }, (_, index) => madeUser(`made-${index}`));
  const [first] = made;
  const among = { ...linting, subject: { ...linting.subject, users: made } };
  if (!first || first.credentials.some((one) => isMetBy(policy, one, among, clauses))) return false;
  return isReachableBy(consensus, first.userId, among, clauses);
}

/** Users made up to see whether they fulfil a consensus. */
const mostMade = 20;

function madeUser(userId: string): PolicyUser {
  return { userId, userName: userId, email: `${userId}@example.com`, tags: [], credentials: anyCredentialOf(userId) };
}

/** A label is that of whichever wallet has been given it. */
function* labelGivers(linting: Linting): Generator<Finding> {
  const givers = granting(linting, giveLabels);
  for (const { policy, condition } of linting.policies) {
    if (!condition || !reads(condition, labelFields)) continue;
    const giver = givers.find(({ one }) => one.policy !== policy);
    if (!giver) continue;
    yield finding(
      policy,
      { clause: 'condition' },
      {
        code: 'names-prove-nothing',
        severity: 'warning',
        text: `\`${giver.one.policy.policyName}\` may allow UPDATE_WALLET, so those whom it allows can give the label of one wallet to another`,
        help: 'compare wallet.id, or deny UPDATE_WALLET to all but the root quorum',
      },
    );
  }
}

const signRaw: ReadonlySet<string> = new Set(['SIGN_RAW_PAYLOAD', 'SIGN_RAW_PAYLOADS']);
const transactionFields: ReadonlySet<string> = new Set(['Ethereum.tx', 'Solana.tx', 'Bitcoin.tx', 'Tron.tx']);
const signedFields: ReadonlySet<string> = new Set([
  ...transactionFields,
  'Ethereum.eip_712',
  'Ethereum.eip_7702_authorization',
]);

/** A raw payload may be any transaction, and another ALLOW does not limit what this one allows. */
function* rawSigners(linting: Linting): Generator<Finding> {
  const readers = linting.policies.filter(({ condition }) => condition && reads(condition, transactionFields));
  for (const { one } of granting(linting, signRaw)) {
    if (one.condition && reads(one.condition, signedFields)) continue;
    const others = readers.filter(({ policy }) => policy !== one.policy);
    const limiting = others.find(({ policy }) => policy.effect === 'EFFECT_ALLOW');
    const reader = limiting ?? others[0];
    if (!reader) continue;
    const name = reader.policy.policyName;
    yield finding(one.policy, placeOf(one), {
      code: 'signs-raw-payloads',
      severity: limiting ? 'warning' : 'note',
      text: limiting
        ? `it may allow raw payloads, such as the digest of any transaction, and \`${name}\` looks at transactions`
        : `it may allow raw payloads; \`${name}\` denies those that are such transactions or hide what they are, such as digests`,
      help: "say which activities it is about, such as activity.kind == 'SIGN_TRANSACTION', or deny raw payloads",
    });
  }
}
