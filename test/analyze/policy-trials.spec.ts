import { TrialCoordinator } from '../../packages/analyze/src/trial/trial-coordinator.js';
import { makers } from '../../packages/analyze/src/trial/trial-parameters.js';
import { Trials } from '../../packages/analyze/src/trial/trials.js';
import type { Claim, FoundCase } from '../../packages/analyze/src/analysis-subject.js';
import { claimOf, executed, fileOf, ofKind, trials, whyNot, type Case } from './trial-claims.js';

afterAll(() => trials.end());

const two = 'consensus: approvers.count() >= 2';
/** What only the root quorum does, what everybody does for themselves, and what takes no votes. */
const atOnce =
  /_(?:ORGANIZATION_NAME|ORGANIZATION_FEATURE|ROOT_QUORUM)$|_DELETE_SUB_ORGANIZATION$|_SESSION(?:_V2)?$|_STAMP_LOGIN$|_RELEASE_CONTACT$|_VERIFY_OTP_V2$|_ACCEPT_INVITATION$|_OAUTH2_AUTHENTICATE$/;

// Here the verb refuses what is wrong; after votes it would be an activity that was allowed and failed.
it.each(Object.keys(makers))('a trial executes the least request of %s by the root quorum', async (type) => {
  // Who is invited is in no root quorum.
  const by = [type.endsWith('_ACCEPT_INVITATION') ? 'Dev' : 'Ann'];
  expect(await executed([], { type, by })).toEqual({ outcome: 'executed', steps: [['allowed']] });
});

it.each(Object.keys(makers).filter((type) => !atOnce.test(type)))('a trial takes votes on %s', async (type) => {
  const policy = `condition: "activity.kind == '${ofKind(type)}'", ${two}`;
  expect(await executed([policy], { type, by: ['Dev', 'Ops'] })).toEqual({
    outcome: 'executed',
    steps: [['waits', 'allowed']],
  });
});

it.each([
  { type: 'LEGACY', chain_id: 137n, gas_price: 7n, max_fee_per_gas: 7n, max_priority_fee_per_gas: 7n },
  { type: 'TYPE_1', chain_id: 5n, gas: 50_000n, gas_price: 7n },
  { type: 'TYPE_2', nonce: 9n, max_fee_per_gas: 70n, gas_price: 70n, max_priority_fee_per_gas: 8n },
  { type: 'TYPE_3', chain_id: 5n, max_fee_per_gas: 70n },
  { type: 'TYPE_4', nonce: 9n, max_priority_fee_per_gas: 8n },
  { to: `0x${'ab'.repeat(20)}`, value: 10n ** 20n, data: '0xa9059cbb00', function_signature: '0xa9059cbb' },
  { to: '', function_signature: '0x60806040' },
  {},
])('a trial makes the transaction %o, which a coordinator reads as it is', async (tx) => {
  const clauses = Object.entries(tx).map(([name, value]) =>
    typeof value === 'bigint' ? `eth.tx.${name} == ${value}` : `eth.tx.${name} == '${value}'`,
  );
  const condition = ["wallet.label == 'Treasury'", ...clauses].join(' && ');
  const resources = { wallet: { label: 'Treasury' }, eth: { tx } };
  expect(await executed([`condition: "${condition}"`], { by: ['Dev'], resources })).toMatchObject({
    outcome: 'executed',
  });
});

it('a trial signs with what the file names, and with passkeys', async () => {
  const condition = `condition: "private_key.id == '<private key Releases>'"`;
  const passkeys = `consensus: "credentials.filter(c, c.type == 'CREDENTIAL_TYPE_WEBAUTHN_AUTHENTICATOR').count() >= 2"`;
  const { file, subject } = fileOf(`${condition}, ${passkeys}`);
  const resources = { private_key: { id: file.names.get('private key')!.get('Releases')! } };
  const by = (...approvals: readonly string[]) =>
    trials.execute([claimOf(subject, { by: approvals, resources })], subject, file.names);
  expect(await by('Dev by passkey', 'Sam by passkey')).toEqual({ outcome: 'executed', steps: [['waits', 'allowed']] });
  expect(await by('Dev by passkey', 'Sam by key')).toMatchObject({ outcome: 'disagreed' });
});

it('a trial signs with a private key where that is all that the example says of it', async () => {
  const policies = ['effect: allow', 'effect: deny, condition: "wallet.label != \'Treasury\'"'];
  const of = (resources: Case['resources']) => executed(policies, { by: ['Dev'], resources });
  expect(await of({ private_key: {} })).toEqual({ outcome: 'executed', steps: [['allowed']] });
  expect(await of({ wallet: { label: 'Treasury' } })).toEqual({ outcome: 'executed', steps: [['allowed']] });
});

it('a mistake in building an example is no reason not to execute it', async () => {
  const { subject, file } = fileOf('effect: allow');
  const claim = claimOf(subject, { by: ['Dev'] });
  const { request } = claim.found;
  const activity = { ...request.activity, type: 'ACTIVITY_TYPE_THAT_NOBODY_MAKES' };
  const broken: Claim = { ...claim, found: { ...claim.found, request: { ...request, activity } } };
  await expect(trials.execute([broken], subject, file.names)).rejects.toThrow(TypeError);
});

it('a trial reports a claim that the coordinator contradicts', async () => {
  const consensus = 'consensus: "approvers.any(u, u.tags.contains(\'<tag ops>\')) && approvers.count() == 2"';
  const { file, subject } = fileOf(`condition: "activity.action == 'SIGN'", ${consensus}`);
  const claim = claimOf(subject, { by: ['Dev', 'Ops'] });
  const outcomeOf = async (changed: Partial<Claim>, found: Partial<FoundCase> = {}) =>
    trials.execute([{ ...claim, ...changed, found: { ...claim.found, ...found } }], subject, file.names);
  expect(await outcomeOf({})).toMatchObject({ outcome: 'executed' });
  expect(await outcomeOf({}, { approvals: claim.found.approvals.slice(0, 1) })).toEqual({
    outcome: 'disagreed',
    why: 'in a coordinator it is waits, and should be allowed',
  });
  const other = fileOf(`condition: "activity.action == 'EXPORT'", ${consensus}`).subject;
  expect(await outcomeOf({ set: other })).toMatchObject({ outcome: 'disagreed' });
  expect(await outcomeOf({ isAllowed: false })).toMatchObject({ outcome: 'disagreed' });
  const untagged = subject.users.map((user) => ({ ...user, tags: [] }));
  expect(await outcomeOf({}, { users: untagged })).toMatchObject({ outcome: 'disagreed' });
});

it('a trial does not take a coordinator that reads otherwise for one that was sent something else', async () => {
  const type = 'ACTIVITY_TYPE_RELEASE_CONTACT';
  const policy = `condition: "activity.params.contact != 'somebody'", ${two}`;
  // The example leaves open what decides, so that what is built comes to something else than it.
  const given = { type, by: ['Dev', 'Ops'] };
  expect(await executed([policy], given)).toEqual({
    outcome: 'disagreed',
    why: 'in a coordinator it is denied, and should be waits, then allowed',
  });
  const alone = { type, by: ['Dev'] };
  const open = `effect: deny, condition: "activity.params.contact != 'somebody'"`;
  expect(await whyNot(alone, ['effect: allow', open])).toContain('comes to something else');
});

it('a trial makes up what only has an id, and e-mail addresses that nobody could have', async () => {
  const keyTags = { private_key: { tags: ['one', 'two'] } };
  const condition = 'condition: "private_key.tags.count() == 2 && requester.email != \'x\'"';
  const { file, subject } = fileOf(condition);
  const claim = claimOf(subject, { by: ['Dev'], resources: keyTags });
  const users = claim.found.users.map((user) => ({ ...user, email: '!0!' }));
  const found = { ...claim.found, users };
  expect(await trials.execute([{ ...claim, found }], subject, file.names)).toMatchObject({ outcome: 'executed' });
  const labels = { wallets: [{ label: 'Old' }, {}, { label: 'Older' }] };
  const given = { type: 'ACTIVITY_TYPE_DELETE_WALLETS', by: ['Dev'], resources: labels };
  const condition3 = 'condition: "wallets.count() == 3 && wallets.any(w, w.label == \'Older\')"';
  expect(await executed([condition3], given)).toMatchObject({ outcome: 'executed' });
});

it('a trial imports and exports what the example has so', async () => {
  const wallet = { label: 'Treasury', imported: true, exported: true };
  const condition = "wallet.imported && wallet.exported && wallet.label == 'Treasury'";
  expect(await executed([`condition: "${condition}"`], { by: ['Dev'], resources: { wallet } })).toMatchObject({
    outcome: 'executed',
  });
  const key = { imported: true, exported: true, tags: ['one'] };
  const ofKey = 'condition: "private_key.imported && private_key.exported && private_key.tags.count() == 1"';
  expect(await executed([ofKey], { by: ['Dev'], resources: { private_key: key } })).toMatchObject({
    outcome: 'executed',
  });
});

it('a trial sends codes of the length that the example has', async () => {
  const type = 'ACTIVITY_TYPE_INIT_OTP_AUTH_V3';
  const condition = ['condition: "activity.params.otp_length == 7"'];
  const of = (length: bigint) => ({ type, by: ['Dev'], params: { otp_length: length } });
  expect(await executed(condition, of(7n))).toMatchObject({ outcome: 'executed' });
  expect(await whyNot(of(10n))).toBe('no code has 10 characters');
});

it('a trial releases the contact that the example has, in a sub-organization', async () => {
  const type = 'ACTIVITY_TYPE_RELEASE_CONTACT';
  const condition = "activity.params.contact == '+13214567890' && activity.params.leave_unreachable";
  const params = { contact: '+13214567890', leave_unreachable: true };
  expect(await executed([`condition: "${condition}"`], { type, by: ['Dev'], params })).toEqual({
    outcome: 'executed',
    steps: [['allowed']],
  });
  expect(await whyNot({ type, params: { contact: '+1' } })).toBe('nobody is reached by `+1`');
  // Its parent's users have no votes there.
  expect(await executed([`condition: "${condition}", ${two}`], { type, by: ['Dev', 'Ops'], params })).toMatchObject({
    outcome: 'disagreed',
  });
});

it('a trial invites whoever the example has accept, whose id nobody knows before', async () => {
  const type = 'ACTIVITY_TYPE_ACCEPT_INVITATION';
  const denied = async (condition: string, by: string, isAllowed = false) => {
    const { file, subject } = fileOf(`effect: deny, condition: "${condition}"`);
    return trials.execute([{ ...claimOf(subject, { type, by: [by] }), isAllowed }], subject, file.names);
  };
  const isOps = "requester.tags.contains('<tag ops>') && requester.alias == 'Ops'";
  expect(await denied(isOps, 'Ops')).toEqual({ outcome: 'executed', steps: [['denied']] });
  expect(await denied(isOps, 'Dev')).toMatchObject({ outcome: 'disagreed' });
  expect(await denied(isOps, 'Dev', true)).toEqual({ outcome: 'executed', steps: [['allowed']] });
  const isDev = "requester.id == '<user Dev>' || requester.email == 'dev@example.com'";
  expect(await denied(isDev, 'Dev')).toMatchObject({
    why: 'with ids, addresses and keys of a coordinator, it comes to something else',
  });
});

it('a trial deletes accounts of the wallets that the example has', async () => {
  const condition = 'condition: "wallets.count() == 2 && wallets.any(w, w.label == \'Old\')"';
  const resources = { wallets: [{ label: 'Old' }, {}] };
  const given = { type: 'ACTIVITY_TYPE_DELETE_WALLET_ACCOUNTS', by: ['Dev'], resources };
  expect(await executed([condition], given)).toEqual({ outcome: 'executed', steps: [['allowed']] });
  expect(await whyNot({ ...given, resources: { wallets: [] } })).toBe('nobody deletes no wallets');
});

it('a trial has sessions denied, and knows who deletes an organization', async () => {
  const { file, subject } = fileOf('effect: deny, condition: "activity.action == \'CREATE\'"');
  const claim = claimOf(subject, { type: 'ACTIVITY_TYPE_CREATE_READ_WRITE_SESSION', by: ['Dev'] });
  expect(await trials.execute([{ ...claim, isAllowed: false }], subject, file.names)).toEqual({
    outcome: 'executed',
    steps: [['denied']],
    as: 'ACTIVITY_TYPE_CREATE_READ_WRITE_SESSION_V2',
  });
  expect(await trials.execute([claim], subject, file.names)).toMatchObject({ outcome: 'disagreed' });
  expect(await whyNot({ type: 'ACTIVITY_TYPE_DELETE_SUB_ORGANIZATION' })).toEqual({
    outcome: 'disagreed',
    why: 'in a coordinator it is denied, and should be allowed',
  });
});

it.each(['DELETE_USERS', 'ENABLE_AUTH_PROXY', 'DELETE_SUB_ORGANIZATION'])(
  'a trial reports that %s is allowed, whatever it changed',
  async (verb) => {
    const { file, subject } = fileOf('effect: allow');
    const claim = claimOf(subject, { type: `ACTIVITY_TYPE_${verb}`, by: ['Ann'] });
    expect(await trials.execute([{ ...claim, isAllowed: false }], subject, file.names)).toEqual({
      outcome: 'disagreed',
      why: 'in a coordinator it is allowed, and should be not allowed',
    });
  },
);

it('a trial needs no root quorum, with a parent or without', async () => {
  const quorum = { threshold: 1, userIds: [] };
  for (const type of ['ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8', 'ACTIVITY_TYPE_CREATE_USER_TAG']) {
    const { file, subject } = fileOf(`condition: "activity.kind == '${ofKind(type)}'"`);
    const claim = claimOf(subject, { type, by: ['Ann'] });
    const under = (policies: typeof subject.policies, isAllowed: boolean) =>
      trials.execute([{ ...claim, isAllowed, set: { policies, quorum } }], subject, file.names);
    expect(await under(subject.policies, true)).toMatchObject({ outcome: 'executed' });
    expect(await under([], false)).toEqual({ outcome: 'executed', steps: [['denied']] });
  }
});

it('a coordinator of examples delivers nothing', async () => {
  const coordinator = await TrialCoordinator.start(Date.UTC(2026, 0, 5));
  const metrics = await (await fetch(`${coordinator.url}/metrics`)).text();
  await coordinator.end();
  expect(metrics).toContain('countersign_');
  // Only who delivers counts what waits for it.
  expect(metrics).not.toContain('countersign_webhook_deliveries_waiting');
});

it('a trial executes a request under each of two sets', async () => {
  const { file, subject } = fileOf('condition: "activity.action == \'SIGN\'"');
  const claim = claimOf(subject, { type: 'ACTIVITY_TYPE_SIGN_RAW_PAYLOAD', by: ['Dev'] });
  const other: Claim = { ...claim, set: { ...subject, policies: [] }, isAllowed: false };
  expect(await trials.execute([claim, other], subject, file.names)).toEqual({
    outcome: 'executed',
    steps: [['allowed'], ['denied']],
    as: 'ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2',
  });
});

it('a trial says why an example is not executed', async () => {
  const allow = ['effect: allow'];
  const resources = (values: Case['resources']) => whyNot({ resources: values });
  expect(await resources({ eth: { tx: { value: -1n } } })).toContain('a negative eth.tx.value');
  expect(await resources({ eth: { tx: { to: '0x' } } })).toContain('no transaction goes to `0x`');
  expect(await resources({ eth: { tx: { data: 'aa' } } })).toContain('has the data `aa`');
  expect(await resources({ eth: { tx: { max_fee_per_blob_gas: 1n } } })).toContain('max_fee_per_blob_gas');
  expect(await resources({ eth: { tx: { max_fee_per_gas: 1n, gas_price: 2n } } })).toContain('different fees 2, 1');
  expect(await resources({ wallet: { label: '' } })).toContain('no wallet is called ``');
  const encoded = { encoding: 'PAYLOAD_ENCODING_MORSE' };
  expect(await whyNot({ type: 'ACTIVITY_TYPE_SIGN_RAW_PAYLOADS', params: encoded })).toContain(
    'in PAYLOAD_ENCODING_MORSE',
  );
  const plain = { encoding: 'PAYLOAD_ENCODING_HEXADECIMAL' };
  const both = {
    type: 'ACTIVITY_TYPE_SIGN_RAW_PAYLOADS',
    params: plain,
    resources: { eth: { eip_712: { primary_type: 'X' } } },
  };
  expect(await whyNot(both)).toContain('as eth.eip_712.primary_type');
  // The key is the coordinator's own choice, and what the policy asks for is another.
  const given = { type: 'ACTIVITY_TYPE_EXPORT_WALLET', params: { target_public_key: 'ab' } };
  const own = `condition: "activity.params.target_public_key == 'ab'"`;
  expect(await whyNot(given, [own])).toContain('comes to something else');
  // A chain that is not read may be any; one that is read, only itself.
  expect(await resources({ bitcoin: {} })).toMatchObject({ outcome: 'executed' });
  const notOfEthereum = ['effect: allow', 'effect: deny, condition: "eth.tx.to != \'0xab\'"'];
  expect(await whyNot({ resources: { bitcoin: {} } }, notOfEthereum)).toContain('comes to something else');
  // Policies allow it, and the verb does not.
  const { file, subject } = fileOf(...allow);
  const about = { user_id: file.names.get('user')!.get('Ann')! };
  const theirs = claimOf(subject, { type: 'ACTIVITY_TYPE_UPDATE_USER', by: ['Dev'], params: about });
  expect(await trials.execute([theirs], subject, file.names)).toMatchObject({
    why: 'a member of the root quorum is theirs alone, whatever policies say',
  });
});

it('a trial stops executing at its limit', async () => {
  const { file, subject } = fileOf('effect: allow');
  const impatient = new Trials(0);
  const claims = [claimOf(subject, { by: ['Dev'] })];
  expect(await impatient.execute(claims, subject, file.names)).toEqual({
    outcome: 'decided',
    why: 'executing examples took more than 0 s',
  });
  await impatient.end();
});
