import { readFileSync } from 'node:fs';
import { activities } from '../../../src/activities/index.js';
import { buildRegistry } from '../../../src/decide/registry.js';
import { findSilentPolicies } from '../../../src/decide/silent-policies.js';
import { emptyOrganization, evolve, type OrganizationEvent } from '../../../src/domain/organization/organization.js';
import { checkKnownLiterals, checkNoDenialNames } from '../../../src/domain/policy/known-literals.js';
import { policiesAfter, policiesModel } from '../../../src/read-models/policies.js';
import { anOrganization, aUser, aUserTag } from '../../activities/facts.js';
import { id } from '../../activities/given.js';
import { refusedWith } from '../../stamps/refused-with.js';
import { recorded, rowsOf } from '../../read-models/projected.js';

const { policyEnvironment, versions } = buildRegistry(activities);
const facts: readonly OrganizationEvent[] = [
  anOrganization(),
  aUser(id(1)),
  aUserTag(id(2), 'treasurer'),
  { type: 'WalletCreated', data: { walletId: id(3), walletName: 'hot', vaultId: id(4), imported: false } },
];

function aPolicy(number: number, more: object): Extract<OrganizationEvent, { type: 'PolicyCreated' }> {
  const data = { policyId: id(number), policyName: `policy ${number}`, effect: 'EFFECT_ALLOW' as const, notes: '' };
  return { type: 'PolicyCreated', data: { ...data, ...more } };
}

function check(
  clauses: { condition?: string; consensus?: string },
  events: readonly OrganizationEvent[] = facts,
): void {
  const organization = emptyOrganization();
  for (const event of events) evolve(organization, event, 0);
  checkKnownLiterals(clauses, policyEnvironment, organization);
}

describe('words', () => {
  test.each([
    ["activity.resource == 'WALLETS'", 'unknown activity resource `WALLETS`: did you mean `WALLET`?'],
    ["activity.resource in ['USER', 'POLICIES']", 'unknown activity resource `POLICIES`: did you mean `POLICY`?'],
    ["'wallet' == activity.resource", 'unknown activity resource `wallet`: did you mean `WALLET`?'],
    ["activity.action != 'SGIN'", 'unknown activity action `SGIN`: did you mean `SIGN`?'],
    ["['CREAT'].contains(activity.action)", 'unknown activity action `CREAT`: did you mean `CREATE`?'],
    ["activity.kind == 'DELETE_USER'", 'unknown activity kind `DELETE_USER`: did you mean `DELETE_USERS`?'],
    [
      "activity.type == 'ACTIVITY_TYPE_CREATE_USERS_V9'",
      'unknown activity type `ACTIVITY_TYPE_CREATE_USERS_V9`: did you mean `ACTIVITY_TYPE_CREATE_USERS_V4`?',
    ],
    [
      "activity.params.encoding == 'HEXADECIMAL'",
      'unknown encoding `HEXADECIMAL`: known are `PAYLOAD_ENCODING_HEXADECIMAL`, `PAYLOAD_ENCODING_TEXT_UTF8`, ' +
        '`PAYLOAD_ENCODING_EIP712`, `PAYLOAD_ENCODING_EIP7702_AUTHORIZATION`',
    ],
    ["eth.tx.type == 'EIP1559'", 'unknown type of Ethereum transaction `EIP1559`: known are `LEGACY`, `TYPE_1`'],
    // Nothing is near: what is known is listed, or what shares a part with it where there is too much to list.
    [
      "activity.resource == 'ACCOUNTING'",
      'unknown activity resource `ACCOUNTING`: known are `INVITATION`, `CREDENTIAL`, `USER`, ',
    ],
    [
      "activity.kind == 'SIGN_TX'",
      'unknown activity kind `SIGN_TX`: similar are `SIGN_RAW_PAYLOAD`, `SIGN_RAW_PAYLOADS`, `SIGN_TRANSACTION`',
    ],
    ["bitcoin.tx.locktime.type == 'Block'", 'unknown type of lock time `Block`: did you mean `Blocks`?'],
  ])('that nothing can be are refused: %s', (condition, message) => {
    expect(() => check({ condition })).toThrow(`invalid policy condition: ${message}`);
    expect(() => check({ condition: `!(${condition})` })).toThrow(/\(line 1, column \d+\)$/);
  });

  test('of credentials', () => {
    const consensus = "credentials.all(c, c.type == 'CREDENTIAL_TYPE_WEBAUTHN')";
    expect(() => check({ consensus })).toThrow('unknown credential type `CREDENTIAL_TYPE_WEBAUTHN`');
    check({ consensus: "credentials.any(c, c.type == 'CREDENTIAL_TYPE_WEBAUTHN_AUTHENTICATOR')" });
  });

  test('of every version here, and of the published API, are known', () => {
    const file = new URL(
      '../../../node_modules/@turnkey/http/dist/__generated__/services/coordinator/public/v1/public_api.types.d.ts',
      import.meta.url,
    );
    const published = new Set(readFileSync(file, 'utf8').match(/ACTIVITY_TYPE_[A-Z0-9_]+/g));
    expect(published.size).toBeGreaterThan(120);
    for (const type of [...published, ...versions.keys()]) check({ condition: `activity.type == '${type}'` });
    for (const kind of ['ETH_SEND_TRANSACTION', 'SIGN_RAW_PAYLOAD']) check({ condition: `activity.kind == '${kind}'` });
    for (const resource of ['RECOVERY', 'PAYMENT_METHOD']) check({ condition: `activity.resource == '${resource}'` });
  });

  test('are not looked for in part of a text, in free text, or where somebody else gives the names', () => {
    check({
      condition:
        "activity.type[0..20] == 'ACTIVITY_TYPE_CREATE' && wallet.label == 'WALLETS' && " +
        "eth.tx.function_name == 'transfers' && tron.tx.contract[0].type == 'AnyContract'",
    });
  });
});

describe('ids', () => {
  const [user, tag, wallet, nobody] = [id(1), id(2), id(3), id(99)];

  test('of the organization are known, wherever they are compared', () =>
    check({
      condition: `wallet.id == '${wallet}' || wallets.any(w, w.id in ['${wallet}'])`,
      consensus:
        `approvers.any(u, u.id == '${user}') && approvers.filter(u, u.tags.contains('${tag}')).count() >= 2 && ` +
        `approvers.all(u, u.tags.any(t, t == '${tag}')) && credentials.any(c, c.user_id == '${user}') && ` +
        `approvers.filter(u, '${tag}' in u.tags)[0].tags[0] == '${tag}'`,
    }));

  test.each([
    [`approvers.any(u, u.id == '${nobody}')`, `unknown user \`${nobody}\``],
    [`approvers.filter(u, u.tags.contains('${nobody}')).count() >= 2`, `unknown user tag \`${nobody}\``],
    [`approvers.any(u, u.tags.any(t, t == '${nobody}'))`, `unknown user tag \`${nobody}\``],
    [`approvers[0].tags[0] == '${nobody}'`, `unknown user tag \`${nobody}\``],
    [`credentials.any(c, c.user_id in ['${user}', '${nobody}'])`, `unknown user \`${nobody}\``],
    [`approvers.any(u, u.tags.contains('treasurer'))`, `unknown user tag \`treasurer\`: did you mean \`${tag}\`?`],
  ])('that nobody has are refused, and names that are taken for ids: %s', (consensus, message) => {
    expect(() => check({ consensus })).toThrow(`invalid policy consensus: ${message}`);
  });

  test('of wallets and keys', () => {
    expect(() => check({ condition: `wallet.id == '${nobody}'` })).toThrow(`unknown wallet \`${nobody}\``);
    expect(() => check({ condition: `private_key.id == '${nobody}'` })).toThrow(`unknown private key \`${nobody}\``);
    expect(() => check({ condition: `private_key.tags.contains('${tag}')` })).toThrow(
      `unknown private key tag \`${tag}\``,
    );
  });
});

test('a clause of an older build that no longer compiles names nothing', () => {
  const organization = emptyOrganization();
  const denial = aPolicy(5, { effect: 'EFFECT_DENY', condition: 'activity.gone == 1', consensus: '((' });
  for (const event of [...facts, denial]) evolve(organization, event, 0);
  expect(() => checkNoDenialNames('User.tags', [id(2)], policyEnvironment, organization)).not.toThrow();
});

describe('what a DENY names', () => {
  const tagged = (number: number, tagId: string, effect = 'EFFECT_DENY') =>
    aPolicy(number, { effect, consensus: `approvers.any(user, user.tags.contains('${tagId}'))` });
  const deleted = (origin: string, ids: readonly string[], ...policies: readonly OrganizationEvent[]) => {
    const organization = emptyOrganization();
    for (const event of [...facts, ...policies]) evolve(organization, event, 0);
    checkNoDenialNames(origin, ids, policyEnvironment, organization);
  };

  test('cannot be deleted, and the refusal names both', () => {
    const policies = [tagged(5, id(2), 'EFFECT_ALLOW'), tagged(6, id(9)), tagged(7, id(2))];
    expect(() => deleted('User.tags', [id(8), id(2)], ...policies)).toThrow(
      refusedWith(
        'FAILED_PRECONDITION',
        `policy \`${id(7)}\` (\`policy 7\`) denies by the user tag \`${id(2)}\`, and could not any more`,
      ),
    );
  });

  test.each([
    ['an ALLOW names it', 'User.tags', [id(2)], tagged(5, id(2), 'EFFECT_ALLOW')],
    ['a DENY names another', 'User.tags', [id(2)], tagged(5, id(9))],
    ['a DENY names something else of that id', 'PrivateKey.tags', [id(2)], tagged(5, id(2))],
  ])('may go if %s', (_why, origin, ids, policy) => {
    expect(() => deleted(origin, ids, policy)).not.toThrow();
  });
});

test('stored policies with impossible literals are reported at start, by name, and no more than a hundred', async () => {
  const silent = (number: number) => aPolicy(number, { condition: "activity.resource == 'WALLETS'" });
  const told = async (...events: OrganizationEvent[]) => {
    const rows = rowsOf(policiesModel, recorded(id(700), events));
    const found: unknown[] = [];
    await findSilentPolicies(
      (after, limit) => policiesAfter(rows, after, limit),
      policyEnvironment,
      (where, mistake) => found.push({ ...where, mistake }),
      new AbortController().signal,
    );
    return found;
  };
  const broken = aPolicy(6, { condition: 'activity.gone == 1' });
  expect(await told(aPolicy(4, { condition: "activity.resource == 'WALLET'" }), silent(5), broken)).toEqual([
    {
      organizationId: id(700),
      policyId: id(5),
      policyName: 'policy 5',
      mistake: 'unknown activity resource `WALLETS`: did you mean `WALLET`?',
    },
  ]);
  expect(await told(...Array.from({ length: 150 }, (_, at) => silent(at)))).toHaveLength(100);
});

test('no more than ten thousand policies are looked at in one start', async () => {
  const { data } = aPolicy(1, { condition: "activity.resource == 'WALLET'" });
  const policy = { ...data, createdAt: 0, updatedAt: 0 };
  let looked = 0;
  const endless = new AbortController();
  const pages = (_after: object, limit: number) => {
    looked += limit;
    if (looked > 20_000) endless.abort();
    return Array.from({ length: limit }, () => ({ organizationId: id(700), policy }));
  };
  await findSilentPolicies(pages, policyEnvironment, () => undefined, endless.signal);
  expect(looked).toBe(10_000);
});
