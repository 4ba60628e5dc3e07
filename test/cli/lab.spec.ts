import { readFile, writeFile } from 'node:fs/promises';
import { startCoordinator, type TestCoordinator, type TestUser } from '../../src/testing/index.js';
import { refusal } from '../e2e/exchange.js';
import { TypingUser } from './typed.js';

/** What `docs/how-to/who-could-approve.md` shows is what these commands write. */

const page = new URL('../../docs/how-to/who-could-approve.md', import.meta.url);

let coordinator: TestCoordinator;
let user: TypingUser;
let [tina, alice]: readonly TestUser[] = [];
let asked: { readonly id: string; readonly fingerprint: string };

beforeAll(async () => {
  coordinator = await startCoordinator({ seed: 'policy lab', at: new Date() });
  user = await TypingUser.sitDown();
  await writeFile(user.path('root.json'), JSON.stringify({ ...coordinator.root, apiUrl: coordinator.url }));
  await user.json(['login', '--key-file', 'root.json']);
  const treasurer = await coordinator.createTag('treasurer');
  const person = (name: string, tags: string[] = []) => coordinator.createUser(name, { userTags: tags });
  tina = await person('Tina', [treasurer]);
  for (const name of ['Tom', 'Toni', 'Theo']) await person(name, [treasurer]);
  alice = await person('Alice');
  const bob = await person('Bob');
  const approvedBy = (one: TestUser) => `approvers.any(user, user.id == '${one.userId}')`;
  await coordinator.createPolicy({
    policyName: 'treasury wallets',
    condition: "activity.kind == 'CREATE_WALLET'",
    consensus: `approvers.filter(user, user.tags.contains('${treasurer}')).count() >= 3 && (${approvedBy(alice)} || ${approvedBy(bob)})`,
  });
  asked = await tina.client.submit('ACTIVITY_TYPE_CREATE_WALLET', { walletName: 'Treasury', accounts: [] });
});

afterAll(async () => {
  await user.leaves();
  await coordinator.close();
});

test('lint says what is wrong and where, as the guide shows', async () => {
  const { code, out, error } = await user.types(['policies', 'lint']);
  expect([code, out, error]).toEqual([0, 'Nothing found.\n', '']);
  const old = await coordinator.createTag('auditor');
  await coordinator.createPolicy({
    policyName: 'audited exports',
    condition: "activity.action == 'EXPORT'",
    consensus: `approvers.any(user, user.tags.contains('${old}')) &&\n  approvers.count() >= 2`,
  });
  await coordinator.createPolicy({ policyName: 'tags for all', condition: "activity.resource == 'USER'" });
  await coordinator.client.submit('ACTIVITY_TYPE_DELETE_USER_TAGS', { userTagIds: [old] });
  const found = await user.types(['policies', 'lint']);
  expect([found.code, found.error]).toEqual([1, '']);
  const text = await readFile(new URL('../../docs/how-to/lint-your-policies.md', import.meta.url), 'utf8');
  expect(text).toContain(
    `$ countersign policies lint\n${found.out.replaceAll(old, 'b1c7b2a1-5d0f-4d1c-8c38-7f4c6ff51d6a')}`,
  );
  const report = await coordinator.client.query('lint_policies');
  expect(JSON.parse((await user.types(['policies', 'lint', '--json'])).out)).toEqual(report);
  const written = await user.types([
    'policies',
    'create',
    'all rename',
    '--condition',
    "activity.kind == 'UPDATE_USER_NAME'",
  ]);
  expect(written.code).toBe(0);
  expect(written.error).toMatch(/^warning lone-submitter: policy “all rename”\n/);
  for (const { code: named } of report.findings) expect(text).toContain(`| \`${named}\``);
  expect(await refusal(tina!.client.query('lint_policies'))).toMatchObject({ status: 403 });
});

test('approvers says who could make it pass and who could stop it, as the guide shows', async () => {
  const { code, out, error } = await user.types(['activities', 'approvers', asked.id]);
  expect([code, error]).toEqual([0, '']);
  const text = await readFile(page, 'utf8');
  expect(text).toContain(`$ countersign activities approvers "$ACTIVITY"\n${out}`);
});

test('programs get the classes, and votes have the effect that the sets say', async () => {
  const answer = await coordinator.client.query('list_minimal_approvers', { activityId: asked.id });
  expect(await user.json(['activities', 'approvers', asked.id])).toEqual(answer);
  const { classes, minimalSets, setCount } = answer as unknown as {
    classes: { number: string; userIds: string[] }[];
    minimalSets: { of: { class: string; count: string }[] }[];
    setCount: string;
  };
  expect(setCount).toBe('7');
  const of = (number: string) => classes.find((one) => one.number === number)!.userIds;
  expect(minimalSets.map((set) => set.of.map((one) => [of(one.class).length, one.count]))).toEqual([
    [[1, '1']],
    [
      [3, '2'],
      [2, '1'],
    ],
  ]);
});

test('only who may vote may ask, and only about what waits', async () => {
  const unknown = await refusal(
    coordinator.client.query('list_minimal_approvers', { activityId: '00000000-0000-4000-8000-000000000000' }),
  );
  expect(unknown).toMatchObject({ status: 404 });
  const olga = await coordinator.createUser('Olga');
  const outsider = await refusal(olga.client.query('list_minimal_approvers', { activityId: asked.id }));
  expect(outsider).toMatchObject({ status: 403 });
  await alice!.client.approve(asked.fingerprint);
  const answer = await coordinator.client.query('list_minimal_approvers', { activityId: asked.id });
  expect(answer).toMatchObject({ setCount: '4' });
});
