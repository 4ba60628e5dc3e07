import { activities } from '../../src/activities/index.js';
import { SolverProcess } from '../../packages/analyze/src/solver.js';
import { buildRegistry } from '../../src/decide/registry.js';
import { Unreadable, type Policy } from '../../src/domain/policy/types.js';
import { analysedActivities } from '../../packages/analyze/src/analysed-activities.js';
import { analyse } from '../../packages/analyze/src/analysis.js';
import type { AnalysisQuestion, AnalysisSubject, Solve } from '../../packages/analyze/src/analysis-subject.js';
import { decodedNames } from '../../packages/analyze/src/smt-shape.js';
import { outputAddress } from '../../src/transactions/bitcoin-addresses.js';
import { tronPermissionTypes, tronResources } from '../../src/transactions/tron.js';
import { tronContracts } from '../../packages/analyze/src/trial/unsigned-tron.js';
import { policy, users } from '../domain/policy/generated.js';
import { hashTypedData } from '../transactions/decoders.js';

const registry = buildRegistry(activities);
const every = analysedActivities(registry);
const solver = new SolverProcess(60_000);
const solve: Solve = (script) => solver.run(script);

afterAll(() => solver.end());

const subjectOf = (...policies: readonly Partial<Policy>[]): AnalysisSubject => ({
  policies: policies.map((fields, index) => policy({ policyId: `p${index}`, ...fields })),
  quorum: { threshold: 2, userIds: ['root-1', 'root-2'] },
  users: users.filter(({ credentials }) => credentials.length > 0),
  environment: registry.policyEnvironment,
  activities: every,
});
const of = (kind: string) => every.filter((one) => one.kind === kind || one.action === kind);
const can = (
  subject: AnalysisSubject,
  kind: string,
  fields: Partial<Extract<AnalysisQuestion, { kind: 'can' }>> = {},
) =>
  analyse(
    {
      kind: 'can',
      users: subject.users.map(({ userId }) => userId).filter((id) => !subject.quorum.userIds.includes(id)),
      activities: of(kind),
      given: { params: {}, resources: {} },
      ...fields,
    },
    subject,
    solve,
  );
const sign = "activity.action == 'SIGN'";

it('does not count votes that a coordinator would not collect', async () => {
  // Whoever asks is denied before the second vote.
  const subject = subjectOf(
    { condition: sign, consensus: 'approvers.count() == 2' },
    { effect: 'EFFECT_DENY', condition: sign, consensus: 'approvers.count() < 2' },
  );
  expect(await can(subject, 'SIGN')).toMatchObject({ answer: 'no' });
});

it('goes on to a request that gets there', async () => {
  const subject = subjectOf(
    { condition: `${sign} && wallet.label == 'slow'`, consensus: 'approvers.count() == 2' },
    { effect: 'EFFECT_DENY', condition: "wallet.label == 'slow'", consensus: 'approvers.count() < 2' },
    { condition: `${sign} && wallet.label == 'fast'`, consensus: "approvers.any(u, u.tags.contains('ops'))" },
  );
  const { answer, example } = await can(subject, 'SIGN');
  expect([answer, example?.facts['wallet.label']]).toEqual(['yes', "'fast'"]);
});

it('takes what is unreadable for a denial, and what is not there for none', async () => {
  const subject = subjectOf({ condition: sign }, { effect: 'EFFECT_DENY', condition: "eth.tx.data != '0x'" });
  const withData = (data: string) => ({ given: { params: {}, resources: { eth: { tx: { data } } } } });
  expect(await can(subject, 'SIGN_TRANSACTION', withData('0xab'))).toMatchObject({ answer: 'no' });
  expect(await can(subject, 'SIGN_TRANSACTION', withData('0x'))).toMatchObject({ answer: 'yes' });
  expect(await can(subject, 'SIGN_RAW_PAYLOAD')).toMatchObject({ answer: 'yes' });
});

it('knows that one key signs, and one chain', async () => {
  const subject = subjectOf({ condition: `${sign} && (wallet.id == 'x' || private_key.id == 'x')` });
  expect(await can(subject, 'SIGN')).toMatchObject({ answer: 'no' });
  // The first version names a private key by its id.
  const byWallet = subjectOf({
    condition: `${sign} && activity.type == 'ACTIVITY_TYPE_SIGN_RAW_PAYLOAD' && wallet.id == 'x'`,
  });
  expect(await can(byWallet, 'SIGN')).toMatchObject({ answer: 'no' });
  const chains = subjectOf({ condition: `${sign} && eth.tx.value == 1 && tron.tx.fee_limit == 1` });
  expect(await can(chains, 'SIGN_TRANSACTION')).toMatchObject({ answer: 'no' });
});

it('knows which types of transactions create contracts', async () => {
  const made = (type: string) =>
    can(subjectOf({ condition: `eth.tx.to == '' && eth.tx.type == '${type}'` }), 'SIGN_TRANSACTION');
  expect(await made('TYPE_2')).toMatchObject({ answer: 'yes' });
  expect(await made('TYPE_3')).toMatchObject({ answer: 'no' });
  expect(await made('TYPE_4')).toMatchObject({ answer: 'no' });
});

it('knows which names decoders give', async () => {
  const named = (condition: string) => can(subjectOf({ condition }), 'SIGN_TRANSACTION');
  const types = (name: string) => named(`bitcoin.tx.outputs.any(o, o.address_type == '${name}')`);
  expect([(await types('UNKNOWN')).answer, (await types('P2MS')).answer]).toEqual(['yes', 'no']);
  const contracts = (clause: string) => named(`tron.tx.contract.any(c, ${clause})`);
  expect(await contracts("c.type == 'VoteWitnessContract'")).toMatchObject({ answer: 'no' });
  expect(await contracts("c.resource != 'BANDWIDTH' && c.resource[0] == 'T'")).toMatchObject({ answer: 'yes' });
  expect(await contracts("c.resource[0] == 'X'")).toMatchObject({ answer: 'no' });
  expect(decodedNames['TronContract.type']).toEqual(new Set(Object.keys(tronContracts)));
  expect(decodedNames['TronContract.resource']).toEqual(new Set(tronResources));
  expect(decodedNames['TronPermission.type']).toEqual(new Set(tronPermissionTypes));
  const [twenty, thirtyTwo] = ['ab'.repeat(20), 'ab'.repeat(32)] as const;
  const scripts = [`76a914${twenty}88ac`, `a914${twenty}87`, `0014${twenty}`, `0020${thirtyTwo}`, `5120${thirtyTwo}`]
    .concat([
      '51024e73',
      `5220${thirtyTwo}`,
      `5114${twenty}`,
      `0010${'ab'.repeat(16)}`,
      '6a',
      '',
      '51',
      '00',
      thirtyTwo,
    ])
    .map((script) => outputAddress(Buffer.from(script, 'hex'), 'MAINNET').address_type);
  expect(new Set(scripts)).toEqual(decodedNames['BitcoinOutput.address_type']);
});

it('knows that the contract of typed data is an address, or cannot be read', async () => {
  const contractAs = (type: string, verifyingContract: string) => {
    const types = { EIP712Domain: [{ name: 'verifyingContract', type }], Vote: [{ name: 'yes', type: 'bool' }] };
    const typedData = { types, domain: { verifyingContract }, primaryType: 'Vote', message: { yes: true } };
    return (hashTypedData(JSON.stringify(typedData)).policy['domain'] as { verifying_contract: unknown })
      .verifying_contract;
  };
  const address = `0x${'ab'.repeat(20)}`;
  expect(contractAs('address', address)).toBe(address);
  for (const type of ['string', 'bytes', 'bytes20']) {
    expect(contractAs(type, type === 'string' ? 'Vault' : address)).toBeInstanceOf(Unreadable);
  }
  const named = (clause: string) =>
    can(subjectOf({ condition: `eth.eip_712.domain.verifying_contract${clause}` }), 'SIGN_RAW_PAYLOAD');
  expect(await named(` == '${address}'`)).toMatchObject({ answer: 'yes' });
  expect(await named(` == '${address.toUpperCase().replace('X', 'x')}'`)).toMatchObject({ answer: 'yes' });
  expect(await named(" == 'vault'")).toMatchObject({ answer: 'no' });
  expect(await named("[0] == 'v'")).toMatchObject({ answer: 'no' });
});

it('knows what takes no votes, and who deletes a sub-organization', async () => {
  const two = subjectOf({ condition: 'true', consensus: 'approvers.count() == 2' });
  const one = subjectOf({ condition: 'true' });
  for (const kind of ['RELEASE_CONTACT', 'VERIFY_OTP']) {
    expect(await can(two, kind)).toMatchObject({ answer: 'no' });
    expect(await can(one, kind)).toMatchObject({ answer: 'yes', example: { approvals: [] } });
  }
  expect(await can(one, 'DELETE_SUB_ORGANIZATION')).toMatchObject({ answer: 'no' });
  const all = { users: one.users.map(({ userId }) => userId), approvals: 1 };
  const deleted = await can(one, 'DELETE_SUB_ORGANIZATION', all);
  expect([deleted.answer, deleted.example?.submitter]).toEqual(['yes', expect.stringContaining('Root')]);
  expect(await can(subjectOf(), 'ACCEPT_INVITATION')).toMatchObject({ answer: 'yes' });
  const members = { users: ['root-1', 'root-2'] };
  expect(await can(one, 'ACCEPT_INVITATION', members)).toMatchObject({ answer: 'no' });
  const without = (kind: string) =>
    analyse({ kind: 'locked-out', without: ['root-1'], activities: of(kind) }, subjectOf(), solve);
  expect(await without('RELEASE_CONTACT')).toMatchObject({ answer: 'no', lost: [] });
  expect(await without('DELETE_SUB_ORGANIZATION')).toMatchObject({ answer: 'yes', lost: ['DELETE_SUB_ORGANIZATION'] });
});

it('knows what is not submitted with a passkey', async () => {
  const isPasskey = "c.type == 'CREDENTIAL_TYPE_WEBAUTHN_AUTHENTICATOR'";
  const alone = subjectOf({ condition: 'true', consensus: `credentials.all(c, ${isPasskey})` });
  expect(await can(alone, 'INIT_OTP')).toMatchObject({ answer: 'yes' });
  expect(await can(alone, 'INIT_OTP_AUTH')).toMatchObject({ answer: 'no' });
  // Votes are by any credential.
  const consensus = `approvers.count() == 2 && credentials.any(c, ${isPasskey})`;
  const { answer, example } = await can(subjectOf({ condition: 'true', consensus }), 'INIT_OTP_AUTH');
  expect([answer, example?.submitter === 'Ops One', example?.approvals]).toEqual(['yes', false, ['Ops One']]);
});

it('finds a moment for a schedule, and the order of votes', async () => {
  const ordered = (consensus: string) =>
    subjectOf({
      condition: "activity.kind == 'CREATE_WALLET'",
      consensus,
      time: "CronSpan('0 9 * * 1', '8h', 'Europe/Berlin') && time.now >= Timestamp('2026-03-03T00:00:00Z')",
    });
  // A second approver cannot be read while there is none, so nothing waits for one.
  const never = ordered("approvers[0].id == 'dev' && approvers[1].tags.contains('ops')");
  expect(await can(never, 'CREATE_WALLET')).toMatchObject({ answer: 'no' });
  const subject = ordered("approvers[0].id == 'dev' && approvers.any(u, u.tags.contains('ops'))");
  const { answer, example } = await can(subject, 'CREATE_WALLET');
  expect([answer, example?.submitter, new Date(example?.now ?? 0).getUTCDay()]).toEqual(['yes', 'Dev', 1]);
});

it('reads passkeys, and e-mail addresses that anybody may have', async () => {
  const passkey = subjectOf({
    condition: sign,
    consensus: "credentials.any(c, c.type == 'CREDENTIAL_TYPE_WEBAUTHN_AUTHENTICATOR')",
  });
  expect(await can(passkey, 'SIGN', { approvals: 1, users: ['ops-1'] })).toMatchObject({ answer: 'yes' });
  expect(await can(passkey, 'SIGN', { approvals: 1, users: ['dev'] })).toMatchObject({ answer: 'no' });
  const mail = subjectOf({ condition: `${sign} && requester.email == 'a@b.example'` });
  expect(await can(mail, 'SIGN')).toMatchObject({ answer: 'yes' });
});

function setsOf(...policies: readonly Partial<Policy>[]) {
  const subject = subjectOf(...policies);
  const set = (...names: readonly string[]) => ({
    ...subject,
    policies: subject.policies.filter(({ policyId }) => names.includes(policyId)),
  });
  return { subject, set };
}

it('compares sets: what is allowed, and of denials what is denied', async () => {
  const narrow = { policyId: 'a', condition: `${sign} && eth.tx.value <= 5` };
  const wide = { policyId: 'b', condition: `${sign} && eth.tx.value < 7` };
  const { subject, set } = setsOf(narrow, wide);
  const implied = (a: string, b: string) => analyse({ kind: 'implied', set: set(a), by: set(b) }, subject, solve);
  expect(await implied('a', 'b')).toMatchObject({ answer: 'yes' });
  expect(await implied('b', 'a')).toMatchObject({ answer: 'no', example: { facts: { 'eth.tx.value': '6' } } });
  expect(await analyse({ kind: 'same', sets: [set('a', 'b'), set('b')] }, subject, solve)).toMatchObject({
    answer: 'yes',
  });
  const denials = subjectOf(
    { ...narrow, effect: 'EFFECT_DENY', condition: "eth.tx.to == '0xAB'" },
    { ...wide, effect: 'EFFECT_DENY', condition: "eth.tx.to in ['0xab', '0xcd']" },
  );
  const denied = (index: number) => ({ ...denials, policies: [denials.policies[index]!] });
  const impliedDenial = (a: number, b: number) =>
    analyse({ kind: 'implied', set: denied(a), by: denied(b) }, denials, solve);
  expect(await impliedDenial(0, 1)).toMatchObject({ answer: 'yes' });
  expect(await impliedDenial(1, 0)).toMatchObject({ answer: 'no' });
});

it('claims of a coordinator what it can be asked for', async () => {
  const { subject, set } = setsOf(
    { policyId: 'early', condition: sign, consensus: 'approvers.count() >= 2' },
    { policyId: 'late', condition: sign, consensus: 'approvers.count() >= 3' },
    { policyId: 'denied', effect: 'EFFECT_DENY', condition: sign, consensus: 'approvers.count() < 2' },
    {
      policyId: 'roots',
      effect: 'EFFECT_DENY',
      condition: sign,
      consensus: "approvers.all(u, u.id in ['root-1', 'root-2']) && approvers.count() == 2",
    },
  );
  const claimed = async (a: readonly string[], b: readonly string[]) => {
    const { answer, claims, unclaimed } = await analyse(
      { kind: 'implied', set: set(...a), by: set(...b) },
      subject,
      solve,
    );
    return [answer, claims?.map(({ found, isAllowed }) => [found.approvals.length, isAllowed]) ?? unclaimed];
  };
  expect(await claimed(['early'], ['late'])).toEqual([
    'no',
    [
      [2, true],
      [2, false],
    ],
  ]);
  expect(await claimed(['late'], ['early'])).toEqual(['yes', undefined]);
  // Votes that come together in the question come one after another, and the first is denied.
  expect(await claimed(['late', 'denied'], [])).toEqual(['no', 'a coordinator does not collect these votes']);
  // Beside a policy that allows everything.
  expect(await claimed(['denied'], [])).toEqual([
    'no',
    [
      [1, false],
      [1, true],
    ],
  ]);
  // The root quorum would be allowed it all the same, if there were one.
  expect(await claimed(['roots'], [])).toEqual([
    'no',
    [
      [2, false],
      [2, true],
    ],
  ]);
});

it('shows of a lock-out what only they make possible, and otherwise what is possible without their votes', async () => {
  const subject = subjectOf({ condition: sign, consensus: 'approvers.count() >= 1' });
  const lockedOut = async (without: readonly string[], ...kinds: readonly string[]) => {
    const question = { kind: 'locked-out', without, activities: kinds.flatMap(of) } as const;
    const { answer, example, claims } = await analyse(question, subject, solve);
    return { answer, activity: example?.activity, voters: claims![0]!.found.approvals.map(({ userId }) => userId) };
  };
  const { answer, activity, voters } = await lockedOut(['root-1'], 'SIGN', 'EXPORT');
  expect({ answer, activity }).toEqual({ answer: 'yes', activity: expect.stringContaining('_EXPORT_') as string });
  expect([...voters].sort()).toEqual(['root-1', 'root-2']);
  const others = subject.users.map(({ userId }) => userId).filter((userId) => !userId.startsWith('root-'));
  for (const without of [others, others.slice(1)]) {
    const left = await lockedOut(without, 'SIGN');
    expect(left.answer).toBe('no');
    expect(left.voters.filter((userId) => without.includes(userId))).toEqual([]);
  }
});

it('gives examples as people write them, where there are any', async () => {
  const subject = subjectOf({ condition: "wallet.label != 'x' && eth.tx.to != '0x' && eth.tx.data != '0x'" });
  const { example } = await can(subject, 'SIGN_TRANSACTION');
  expect(Object.values(example?.facts ?? {}).join(' ')).toMatch(/^'[a-z]+' '0x[0-9a-f]{40}' '0x(?:[0-9a-f]{2})+'$/);
});

it('gives up of what people write only what cannot be had', async () => {
  const subject = subjectOf({
    condition: "wallet.label == 'Treasury 1' && eth.tx.function_name == 'a b' && eth.tx.to != '0x'",
  });
  const { example } = await can(subject, 'SIGN_TRANSACTION');
  expect(example?.facts['eth.tx.to']).toMatch(/^'0x[0-9a-f]{40}'$/);
  // Without the time to find out what that is, there is an example all the same.
  const impatient: Solve = async (script) => (script.includes('unsat-core') ? undefined : solve(script));
  const question = { kind: 'can', users: ['dev'], activities: of('SIGN_TRANSACTION') } as const;
  const plain = await analyse({ ...question, given: { params: {}, resources: {} } }, subject, impatient);
  expect(plain).toMatchObject({ answer: 'yes', example: { facts: { 'eth.tx.function_name': "'a b'" } } });
});

it('says unknown at the limit, and never takes the word of a solver', async () => {
  const subject = subjectOf({ condition: `${sign} && wallet.imported` });
  const question: AnalysisQuestion = {
    kind: 'can',
    users: ['dev'],
    activities: of('SIGN'),
    given: { params: {}, resources: {} },
  };
  expect(await analyse(question, subject, async () => undefined)).toMatchObject({ answer: 'unknown' });
  expect(await analyse(question, subject, async () => 'unknown')).toMatchObject({ answer: 'unknown' });
  // A solver that says yes with anything: nobody has voted in this model, or a wallet is not imported.
  const liar: Solve = async () => 'sat\n((v0 true))';
  expect(await analyse(question, subject, liar)).toMatchObject({ answer: 'disagree' });
});

it('ends a solver that takes too long', async () => {
  const impatient = new SolverProcess(1);
  expect(await impatient.run('(check-sat)')).toBeUndefined();
  await impatient.end();
});
