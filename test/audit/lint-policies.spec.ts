import { activities } from '../../src/activities/index.js';
import { buildRegistry } from '../../src/decide/registry.js';
import { Steps } from '../../src/domain/steps.js';
import type { Policy, PolicyUser } from '../../src/domain/policy/types.js';
import { decidedActivities } from '../../src/audit/lint/decided-activities.js';
import { lintPolicies } from '../../src/audit/lint/lint-policies.js';
import type { LintSubject } from '../../src/audit/lint/lint-subject.js';

const registry = buildRegistry(activities);
const rules = { environment: registry.policyEnvironment, activities: decidedActivities(registry) };

const [ann, tom, tina] = [
  '0a000000-0000-4000-8000-000000000001',
  '0a000000-0000-4000-8000-000000000002',
  '0a000000-0000-4000-8000-000000000003',
];
const treasurer = '0b000000-0000-4000-8000-000000000001';
const wallet = '0c000000-0000-4000-8000-000000000001';
const gone = '0d000000-0000-4000-8000-00000000dead';

function person(userId: string, userName: string, tags: readonly string[] = []): PolicyUser {
  const credential = { id: `key of ${userName}`, userId, type: 'CREDENTIAL_TYPE_API_KEY_P256', publicKey: '02' };
  return { userId, userName, tags, credentials: [credential] };
}

const users = [person(ann, 'Ann'), person(tom, 'Tom', [treasurer]), person(tina, 'Tina', [treasurer])];

function subjectOf(policies: readonly Partial<Policy>[]): LintSubject {
  return {
    policies: policies.map((one, index) => ({
      policyId: `p${index}`,
      policyName: `policy ${index}`,
      effect: 'EFFECT_ALLOW',
      notes: '',
      createdAt: 0,
      updatedAt: 0,
      ...one,
    })),
    users,
    logsIn: [],
    rootQuorum: { threshold: 1, userIds: [ann] },
    names: {
      'User.id': { [ann]: 'Ann', [tom]: 'Tom', [tina]: 'Tina' },
      'User.tags': { [treasurer]: 'treasurer' },
      'Wallet.id': { [wallet]: 'Treasury' },
      'PrivateKey.id': {},
    },
    now: 0,
  };
}

const linted = (...policies: readonly Partial<Policy>[]) => lintPolicies(subjectOf(policies), rules);

const codes = (...policies: readonly Partial<Policy>[]) =>
  linted(...policies).findings.map(({ policyName, code }) => `${policyName.slice(-1)} ${code}`);

const sign = "activity.action == 'SIGN'";
const two = `approvers.filter(u, u.tags.contains('${treasurer}')).count() >= 2`;
const deny = 'EFFECT_DENY' as const;

describe('lint', () => {
  it('has nothing to say of a policy that is as it should be', () => {
    expect(linted({ condition: `${sign} && wallet.id == '${wallet}'`, consensus: two })).toEqual({ findings: [] });
  });

  it('says where an id is that nobody has, and which was meant', () => {
    const condition = `${sign} &&\n  wallet.id in ['${wallet}', 'Treasury', '${gone}']`;
    const found = linted({ condition, consensus: two }).findings;
    expect(found.map(({ code, text, clause, line }) => [code, text, clause, line])).toEqual([
      ['unknown-id', 'there is no wallet `Treasury`', 'condition', 2],
      ['unknown-id', `there is no wallet \`${gone}\``, 'condition', 2],
    ]);
    expect(found[0]!.help).toContain(wallet);
    expect(codes({ condition: sign, consensus: `approvers.any(u, u.id == '${gone}')` })).toEqual([
      '0 unknown-id',
      '0 out-of-reach',
    ]);
  });

  it.each<[string, readonly Partial<Policy>[], readonly string[]]>([
    ['a text that is not valid any more', [{ condition: 'nonsense ==', consensus: two }], ['0 not-valid']],
    [
      'a word that no request has',
      [{ effect: deny, condition: "activity.resource == 'WALET'" }],
      ['0 unknown-word', '0 never-applies'],
    ],
    [
      'parts that exclude each other',
      [{ condition: "activity.kind == 'CREATE_WALLET' && activity.resource == 'USER'", consensus: two }],
      ['0 never-applies'],
    ],
    [
      'nothing in a DENY of what no request has, which only some doubt hides',
      [
        {
          effect: deny,
          condition: `activity.kind == 'UPDATE_USER' && !(requester.tags.contains('${treasurer}') && wallet.id == '${wallet}')`,
        },
      ],
      [],
    ],
    [
      'an ALLOW in the shadow of a DENY',
      [
        { condition: `${sign} && wallet.id == '${wallet}'`, consensus: two },
        { effect: deny, condition: sign },
      ],
      ['0 always-denied'],
    ],
    [
      'an ALLOW in the shadow of a DENY that says less',
      [
        { condition: `wallet.id == '${wallet}' && ${sign}`, consensus: two },
        { effect: deny, condition: `wallet.id == '${wallet}'` },
      ],
      ['0 always-denied'],
    ],
    [
      'no shadow, as the DENY needs more',
      [
        { condition: `wallet.id == '${wallet}' && ${sign}`, consensus: two },
        { effect: deny, condition: `wallet.id == '${wallet}' && wallet.exported` },
        { effect: deny, condition: sign, consensus: two },
      ],
      [],
    ],
    [
      'the same twice',
      [
        { condition: sign, consensus: two },
        { condition: sign, consensus: two },
      ],
      ['1 duplicate'],
    ],
    ['a lone submitter: anybody', [{ condition: sign }], ['0 lone-submitter']],
    [
      'a lone submitter: one',
      [{ condition: sign, consensus: `approvers.any(u, u.id == '${ann}')` }],
      ['0 lone-submitter'],
    ],
    ['nobody alone: another is needed', [{ condition: sign, consensus: 'approvers.any(u, u.id != requester.id)' }], []],
    ['a consensus of too many', [{ condition: sign, consensus: 'approvers.count() >= 4' }], ['0 out-of-reach']],
    [
      'a lone submitter: anybody, by a session',
      [{ condition: sign, consensus: "credentials.any(k, k.type == 'CREDENTIAL_TYPE_LOGIN')" }],
      ['0 lone-submitter'],
    ],
    [
      'a lone submitter by a session where an ALLOW speaks of logins: it takes none away',
      [
        { condition: sign, consensus: "credentials.any(k, k.type == 'CREDENTIAL_TYPE_LOGIN')" },
        { condition: "activity.resource == 'AUTH' && activity.action == 'CREATE'", consensus: two },
      ],
      ['0 lone-submitter'],
    ],
    [
      'nobody alone where a DENY may be about making sessions, and yet somebody in reach',
      [
        { condition: sign, consensus: "credentials.any(k, k.type == 'CREDENTIAL_TYPE_LOGIN')" },
        { effect: deny, condition: "activity.kind == 'STAMP_LOGIN'", consensus: 'approvers.count() >= 1' },
      ],
      [],
    ],
    [
      'nobody alone where an ALLOW asks for more to add passkeys, and yet somebody in reach',
      [
        { condition: sign, consensus: "credentials.any(k, k.type == 'CREDENTIAL_TYPE_WEBAUTHN_AUTHENTICATOR')" },
        { condition: "activity.kind == 'CREATE_AUTHENTICATORS'", consensus: two },
      ],
      [],
    ],
    [
      'nobody alone, and yet in reach, who may register the key that is named',
      [{ condition: sign, consensus: "credentials.any(k, k.public_key == '03')" }],
      [],
    ],
    [
      'too few, whatever credentials they make',
      [
        {
          condition: sign,
          consensus: "credentials.filter(k, k.type == 'CREDENTIAL_TYPE_LOGIN').count() >= 4",
        },
      ],
      ['0 out-of-reach'],
    ],
    [
      'users that others make, where any will do',
      [
        { condition: sign, consensus: 'approvers.count() >= 2 && approvers.any(u, u.id != requester.id)' },
        { condition: "activity.kind == 'CREATE_API_ONLY_USERS'", consensus: `approvers.any(u, u.id == '${ann}')` },
      ],
      ['1 users-are-votes', '1 lone-submitter'],
    ],
    [
      'nothing that users add where each is enough alone',
      [
        { condition: sign, consensus: 'approvers.count() >= 1' },
        { condition: "activity.kind == 'CREATE_API_ONLY_USERS'", consensus: `approvers.any(u, u.id == '${ann}')` },
      ],
      ['0 lone-submitter', '1 lone-submitter'],
    ],
    [
      'no harm in users that others make, where ids or tags are asked for, or the quorum makes them',
      [
        { condition: sign, consensus: `approvers.count() >= 2 && approvers.any(u, u.id == '${tom}')` },
        { condition: "activity.kind == 'CREATE_USERS'", consensus: 'approvers.count() >= 2' },
        { condition: "activity.resource == 'WALLET'", consensus: 'approvers.count() >= 2' },
        { effect: deny, condition: "activity.kind in ['CREATE_USERS']" },
      ],
      ['1 always-denied'],
    ],
    [
      'labels that others give',
      [
        { condition: `${sign} && wallet.label == 'hot'`, consensus: two },
        { effect: deny, condition: `${sign} && wallet.label == 'cold'` },
        { condition: "activity.kind == 'UPDATE_WALLET'", consensus: `approvers.any(u, u.id == '${ann}')` },
      ],
      ['0 names-prove-nothing', '1 names-prove-nothing', '2 lone-submitter'],
    ],
    [
      'no harm in a label that only who has it changes',
      [{ condition: "activity.kind == 'UPDATE_WALLET' && wallet.label == 'hot'", consensus: two }],
      [],
    ],
    [
      'no harm in labels that only the quorum gives, and in those of private keys',
      [
        { condition: `${sign} && wallet.label == 'hot'`, consensus: two },
        { condition: `${sign} && private_key.label == 'hot'`, consensus: two },
        { condition: "activity.resource == 'WALLET'", consensus: two },
        { effect: deny, condition: "activity.kind == 'UPDATE_WALLET'" },
      ],
      [],
    ],
    ['votes that undo others', [{ condition: sign, consensus: 'approvers.count() == 2' }], ['0 can-be-undone']],
    [
      'the order of votes',
      [{ condition: sign, consensus: `approvers[1].tags.contains('${treasurer}')` }],
      ['0 order-of-votes'],
    ],
    [
      'an alias that anyone can choose',
      [{ condition: sign, consensus: "approvers.filter(u, u.alias != 'Bob').count() >= 2" }],
      ['0 names-prove-nothing'],
    ],
    [
      'two things that no request has both of',
      [{ condition: `${sign} && (wallet.id == '${wallet}' || private_key.label == 'x')`, consensus: two }],
      ['0 reads-what-no-request-has'],
    ],
    [
      'a DENY on an argument that other functions lack',
      [{ effect: deny, condition: "eth.tx.contract_call_args['to'] == '0x00000000000000000000000000000000000000aa'" }],
      ['0 denies-what-it-cannot-read'],
    ],
    [
      'and one that says which function',
      [
        {
          effect: deny,
          condition:
            "eth.tx.function_name == 'transfer' && eth.tx.contract_call_args['to'] == '0x00000000000000000000000000000000000000aa'",
        },
      ],
      [],
    ],
    [
      'a DENY on typed data',
      [{ effect: deny, condition: "eth.eip_712.primary_type == 'Permit'" }],
      ['0 denies-digests'],
    ],
    [
      'raw payloads beside an ALLOW on transactions',
      [
        { condition: `${sign} && eth.tx.to == '0x00000000000000000000000000000000000000aa'`, consensus: two },
        { condition: sign, consensus: two },
      ],
      ['1 signs-raw-payloads'],
    ],
    [
      'raw payloads beside a DENY on transactions',
      [
        { condition: "activity.kind == 'SIGN_RAW_PAYLOADS'", consensus: two },
        { effect: deny, condition: 'solana.tx.transfers.any(t, t.amount > 5)' },
      ],
      ['0 signs-raw-payloads'],
    ],
    [
      'nothing of raw payloads that are denied, or of which a policy says what they are',
      [
        { condition: `${sign} && tron.tx.fee_limit < 5`, consensus: two },
        { condition: "activity.kind == 'SIGN_TRANSACTION'", consensus: two },
        { condition: `${sign} && eth.eip_712.primary_type == 'Order'`, consensus: two },
        { condition: `${sign} && wallet.id == '${wallet}'`, consensus: two },
        { effect: deny, condition: "activity.kind in ['SIGN_RAW_PAYLOAD', 'SIGN_RAW_PAYLOADS']" },
      ],
      [],
    ],
    [
      '`all` of what may be nothing',
      [{ condition: "solana.tx.transfers.all(t, t.to == 'x')", consensus: two }],
      ['0 true-of-nothing'],
    ],
    [
      'tags that others give',
      [
        { condition: sign, consensus: two },
        { condition: "activity.resource == 'USER'", consensus: 'approvers.count() >= 2' },
      ],
      ['1 tags-are-privileges'],
    ],
    [
      'tags that only the quorum gives',
      [
        { condition: sign, consensus: two },
        { condition: "activity.resource == 'USER'", consensus: 'approvers.count() >= 2' },
        {
          effect: deny,
          condition:
            "activity.kind in ['CREATE_USERS', 'CREATE_API_ONLY_USERS', 'UPDATE_USER', 'CREATE_INVITATIONS', 'CREATE_USER_TAG', 'UPDATE_USER_TAG', 'DELETE_USER_TAGS']",
        },
      ],
      [],
    ],
    [
      'tags that others give but for a minute a week',
      [
        { condition: sign, consensus: two },
        { condition: "activity.kind == 'UPDATE_USER'", consensus: `approvers.any(u, u.id == '${ann}')` },
        { effect: deny, condition: "activity.kind == 'UPDATE_USER'", time: "CronSpan('0 3 * * 0', '1m', 'UTC')" },
      ],
      ['1 tags-are-privileges', '1 lone-submitter'],
    ],
  ])('finds %s', (_what, policies, expected) => {
    expect(codes(...policies)).toEqual(expected);
  });

  it('tells a session that anybody makes from a credential that they have', () => {
    const { findings } = linted({
      condition: sign,
      consensus: "credentials.any(k, k.type == 'CREDENTIAL_TYPE_LOGIN')",
    });
    expect(findings[0]).toMatchObject({
      severity: 'warning',
      text: 'any user can fulfil it alone, by submitting with a credential that they make for themselves',
    });
  });

  it('counts who may log in among those who can approve', () => {
    const subject = subjectOf([{ condition: sign, consensus: 'approvers.count() >= 4' }]);
    const guest = { ...person('0a000000-0000-4000-8000-000000000004', 'Gus'), credentials: [] };
    const found = (logsIn: readonly string[]) =>
      lintPolicies({ ...subject, users: [...users, guest], logsIn }, rules).findings.map(({ code }) => code);
    expect([found([]), found([guest.userId])]).toEqual([['out-of-reach'], []]);
  });

  it('is bounded in steps, and says so', () => {
    const policies = Array.from({ length: 50 }, () => ({ condition: sign, consensus: two }));
    const { findings, notComplete } = linted(...policies);
    expect([findings.length, notComplete]).toEqual([49, undefined]);
    const subject: LintSubject = {
      policies: [],
      users,
      logsIn: [],
      rootQuorum: { threshold: 1, userIds: [] },
      names: {},
      now: 0,
    };
    expect(lintPolicies(subject, rules, new Steps(0))).toEqual({
      findings: [],
      notComplete: 'looking at all policies would take too long',
    });
  });

  it('has ten million steps', () => {
    const { findings, notComplete } = linted(
      ...Array.from({ length: 1_200 }, () => ({ condition: `wallet.id == '${'x'.repeat(65_000)}'` })),
    );
    expect([findings, notComplete]).toEqual([[], 'looking at all policies would take too long']);
  });

  it('lists 1,000 findings, and says that there are more', () => {
    const { findings, notComplete } = linted(
      ...Array.from({ length: 1_001 }, (_, index) => ({ condition: `wallet.id == '${index}'`, consensus: two })),
    );
    expect([findings.length, notComplete]).toEqual([1_000, 'only the first 1000 findings are listed']);
  });

  it('says of no consensus that it is out of reach where finding its voters takes too long', () => {
    const many = Array.from({ length: 24 }, (_, index) => person(`u${index}`, `User ${index}`));
    const last = ['u23', 'u22', 'u21', 'u20'].map((userId, place) => `approvers[${place}].id == '${userId}'`);
    const names = { 'User.id': Object.fromEntries(many.map(({ userId, userName }) => [userId, userName])) };
    const subject = { ...subjectOf([{ consensus: last.join(' && ') }]), users: many, names };
    const { findings } = lintPolicies(subject, rules);
    expect(findings.map(({ code }) => code)).toEqual(['order-of-votes']);
  });
});
