import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { Treasury } from './treasury.js';

/* What `docs/how-to/policies-as-code.md` shows of `policies plan` is what it writes, about a real organization. */

const page = new URL('../../docs/how-to/policies-as-code.md', import.meta.url);
const plan = ['policies', 'plan', 'examples/policies/treasury'];

let treasury: Treasury;
let setUp: number;

beforeAll(async () => {
  treasury = await Treasury.open('policies plan');
  const { coordinator, people } = treasury;
  const { client: otto } = people['Otto']!;
  await coordinator.createPolicy({
    policyName: 'At most one ether, and no calls',
    effect: 'EFFECT_DENY',
    condition: 'eth.tx.value > 5000000000000000000',
  });
  await coordinator.createPolicy({
    policyName: 'Two people make wallets',
    condition: "activity.kind == 'CREATE_WALLET'",
    consensus: 'approvers.count() >= 2',
  });
  setUp = (await coordinator.events()).length;
  await otto.submit('ACTIVITY_TYPE_CREATE_WALLET', { walletName: 'Petty cash', accounts: [] });
  const config = { signWith: treasury.address, payload: '00', encoding: 'PAYLOAD_ENCODING_HEXADECIMAL' } as const;
  await expect(
    otto.submit('ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2', { ...config, hashFunction: 'HASH_FUNCTION_SHA256' }),
  ).rejects.toThrow('403');
});

afterAll(() => treasury.close());

/** Output with ids and times as the guide has them. */
const asInGuide = (out: string): string =>
  out
    .replaceAll(treasury.coordinator.organizationId, '3d2a5c0e-8a2c-4c8e-9d0e-5f6c7a1b2c3d')
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '2026-01-05T12:00:00.000Z')
    .replaceAll(/ [0-9a-f]{8}-[0-9a-f]{4}-[78][0-9a-f-]{21}/g, ' 019b8e0a-5c4b-7d3e-8f21-6a7b8c9d0e1f')
    .replaceAll(/`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f-]{21}`/g, '`019b8e0a-5c4b-7d3e-8f21-6a7b8c9d0e1f`');

const ottoSigns = `  - name: Otto signs
    condition: activity.kind == 'SIGN_RAW_PAYLOAD' && requester.id == '<user Otto>'
`;

test('plan shows what differs, in which order it is done, and what it would have changed, as the guide has it', async () => {
  const { coordinator, user } = treasury;
  await treasury.edit('  - name: Roles are', `${ottoSigns}  - name: Roles are`);
  const before = (await coordinator.recorded()).length;
  const words = [...plan, '--from', String(setUp)];
  const { code, out, error } = await user.types([...words, '--exit-code']);
  expect([code, error]).toEqual([7, '']);
  const text = await readFile(page, 'utf8');
  expect(text).toContain(ottoSigns.replace(/^ {2}/gm, ''));
  expect(text).toContain(`$ countersign ${words.join(' ')}\n${asInGuide(out)}`);
  expect(await user.types(words)).toMatchObject({ code: 0, out });
  expect(await user.types([...words, '--exit-code', '--fail-on', 'new-allow'])).toMatchObject({ code: 1, out });
  expect(await coordinator.recorded()).toHaveLength(before);
});

test('programs get ids, names and the whole report', async () => {
  const { coordinator, people, user } = treasury;
  const said = await user.json<{ steps: { type: string }[]; names: object[] }>(plan);
  const otto = { kind: 'user', name: 'Otto', id: people['Otto']!.userId };
  expect(said).toMatchObject({
    organizationId: coordinator.organizationId,
    tags: ['treasurer'],
    policies: [
      { change: 'create', policyName: 'Two treasurers sign' },
      { change: 'create', policyName: 'Otto signs', is: { condition: expect.stringContaining(otto.id) as string } },
      { change: 'create', policyName: 'Roles are given by the quorum' },
      { change: 'update', was: { condition: 'eth.tx.value > 5000000000000000000' } },
      { change: 'delete', policyName: 'Two people make wallets' },
    ],
    rootQuorum: { text: '1 of Root user → 2 of Ann, Ben' },
  });
  expect(said.steps.map(({ type }) => type.replace('ACTIVITY_TYPE_', ''))).toEqual([
    ...['CREATE_USER_TAG', 'CREATE_POLICIES', 'DELETE_POLICIES', 'UPDATE_POLICY_V2', 'DELETE_POLICIES'],
    'UPDATE_ROOT_QUORUM',
  ]);
  expect(said.names).toContainEqual(otto);
  const { organizationId } = coordinator;
  // What waits goes on to wait: members of the root quorum may still approve it.
  expect(said).toMatchObject({ whatIf: { organizationId }, afterwards: [] });
});

test('somebody outside the root quorum gets no answer about the history, which `--fail-on` takes for a failure', async () => {
  const { user } = treasury;
  const profile = ['--profile', await treasury.login('Otto')];
  const { code, out } = await user.types([...plan, ...profile]);
  expect(code).toBe(0);
  expect(out).toMatch(/\nWhat it would have changed was not asked: .*root quorum/);
  expect((await user.types([...plan, ...profile, '--fail-on', 'any'])).code).toBe(1);
});

test('names that the organization does not have, or has twice, are mistakes with their place', async () => {
  const { coordinator, user } = treasury;
  await treasury.edit('users: [Ann, Ben, Tom', 'users: [Ann, Ben, Zoe, Tom');
  expect(await user.types(plan)).toMatchObject({
    code: 1,
    out: 'policies.yaml:5:19: the organization has no user `Zoe`\n',
  });
  await treasury.edit('Zoe, ', '');
  const second = await coordinator.createUser('Tom');
  const { code, out } = await user.types(plan);
  expect([code, out]).toEqual([
    1,
    expect.stringMatching(/^policies\.yaml:5:19: 2 have the name user `Tom`: .*: \S+, \S+\n$/),
  ]);
  // An id is somebody, whatever the name.
  await treasury.edit('Tom, Tina', `${second.userId}, Tina`);
  expect(await user.types(plan)).toMatchObject({ code: 0 });
  await treasury.edit(second.userId, 'Tom');
  await coordinator.client.submit('ACTIVITY_TYPE_DELETE_USERS', { userIds: [second.userId] });
  await treasury.edit('threshold: 2', 'threshold: 3');
  expect((await user.types(plan)).out).toBe('policies.yaml:3:14: 3 of 2 members can never approve\n');
  await treasury.edit('threshold: 3', 'threshold: 2');
  await treasury.edit('- name: Otto signs', '- name: Two treasurers sign');
  expect((await user.types(plan)).out).toMatch(/^policies\.yaml:\d+:11: `Two treasurers sign` appears twice/);
  await treasury.edit(`${ottoSigns.replace('Otto signs', 'Two treasurers sign')}`, ottoSigns);
});

test('names cannot move the cursor, nor pass for another one', async () => {
  const { coordinator, people, user } = treasury;
  const evil = '\u202egood';
  const posing = "Tom> || true || '<user Tom";
  const { userId } = await coordinator.createUser(posing);
  const condition = `requester.id == '${userId}' || requester.id == '${people['Tom']!.userId}'`;
  const policyId = await coordinator.createPolicy({
    policyName: evil,
    condition,
    notes: `${evil}\n\u001b[2Jsecond line`,
  });
  const { out } = await user.types(plan);
  expect(out).toContain('- policy “\\u{202e}good”\n');
  expect(out).toContain(`requester.id == '${userId}' || requester.id == '<user Tom>'`);
  expect(out).toContain('    notes      \\u{202e}good\n               \\u{1b}[2Jsecond line\n');
  expect(out).not.toMatch(/[\u001b\u202e]/);
  await coordinator.client.submit('ACTIVITY_TYPE_DELETE_POLICIES', { policyIds: [policyId] });
});

test('the policy of the auth proxy is left alone, and an organization that is as the folder says has no plan', async () => {
  const { coordinator, user } = treasury;
  const { policies } = await coordinator.client.query('list_policies');
  expect(policies.map(({ policyName }) => policyName)).toContain('Auth proxy');
  expect((await user.types(plan)).out).not.toContain('Auth proxy');
  await mkdir(user.path('same'));
  const same = policies.filter(({ policyName }) => policyName !== 'Auth proxy');
  const written = same.map(({ policyName: name, effect, condition, consensus }) => ({
    name,
    effect: effect === 'EFFECT_DENY' ? 'deny' : 'allow',
    condition: ` ${condition}\n`,
    ...(consensus === '' ? {} : { consensus }),
  }));
  await writeFile(user.path('same/policies.yaml'), JSON.stringify({ policies: written }));
  expect(await user.types(['policies', 'plan', 'same', '--exit-code'])).toEqual({
    code: 0,
    out: 'The organization is as the folder says.\n',
    error: '',
  });
});
