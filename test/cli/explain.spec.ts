import { readFile, writeFile } from 'node:fs/promises';
import { startCoordinator, type TestCoordinator } from '../../src/testing/index.js';
import { refusal } from '../e2e/exchange.js';
import { until } from '../e2e/until.js';
import { TypingUser } from './typed.js';

const page = new URL('../../docs/how-to/explain-a-decision.md', import.meta.url);

let coordinator: TestCoordinator;
let user: TypingUser;
/** What the page names by words of its own, as the shell would fill it in. */
let variables: Readonly<Record<string, string>>;

beforeAll(async () => {
  coordinator = await startCoordinator({ seed: 'explain a decision', at: new Date() });
  user = await TypingUser.sitDown();
  await writeFile(user.path('root.json'), JSON.stringify({ ...coordinator.root, apiUrl: coordinator.url }));
  await user.json(['login', '--key-file', 'root.json']);
  const treasurer = await coordinator.createTag('treasurer');
  const alice = await coordinator.createUser('Alice', { userTags: [treasurer] });
  const bob = await coordinator.createUser('Bob', { userTags: [treasurer] });
  await coordinator.createUser('Carol');
  await coordinator.createPolicy({
    policyName: 'two treasurers tag',
    condition: "activity.kind == 'CREATE_USER_TAG'",
    consensus: `approvers.filter(u, u.tags.contains('${treasurer}')).count() >= 2`,
  });
  await coordinator.createPolicy({
    policyName: 'not at night',
    effect: 'EFFECT_DENY',
    condition: "activity.resource == 'WALLET'",
  });
  const newTag = (userTagName: string) =>
    alice.client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName, userIds: [] });
  const decided = await newTag('Decided');
  await bob.client.approve(decided.fingerprint);
  const waiting = await newTag('Waiting');
  const wallet = { walletName: 'Night', accounts: [] };
  const { details } = await refusal(alice.client.submit('ACTIVITY_TYPE_CREATE_WALLET', wallet));
  const { denialId } = details[0] as unknown as { readonly denialId: string };
  const ids = async () => (await coordinator.client.query('list_denials')).denials.map((denial) => denial.denialId);
  await until('the denial is listed', async () => (await ids()).includes(denialId));
  variables = { WAITING: waiting.id, DECIDED: decided.id, DENIAL: denialId };
});

afterAll(async () => {
  await user.leaves();
  await coordinator.close();
});

test('the page on explaining decisions shows what the commands write', async () => {
  const text = await readFile(page, 'utf8');
  const blocks = [...text.matchAll(/```console\n\$ countersign ([^\n]*)\n([^]*?)```/g)];
  expect(blocks.length).toBeGreaterThanOrEqual(3);
  let written = text;
  for (const [block, line] of blocks) {
    const words = line!.replace(/\$([A-Z]+)/g, (_, name: string) => variables[name]!).split(' ');
    const { out, error } = await user.types(words);
    expect([line, error]).toEqual([line, '']);
    written = written.replace(block, () => `\`\`\`console\n$ countersign ${line}\n${out.trimEnd()}\n\`\`\``);
  }
  if (process.env['EXPLAIN_PAGE'] === 'write') await writeFile(page, written);
  // Ids follow from what the harness draws before, and times from the clock: this page is about neither.
  const drawn = /[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|\d{4}-\d\d-\d\dT[\d:.]+Z/g;
  expect(text.replace(drawn, '…')).toBe(written.replace(drawn, '…'));
});

test('an activity without a proof says why, and one that is not there is an error', async () => {
  const none = await user.types(['activities', 'explain', coordinator.root.userId]);
  expect(none).toMatchObject({ code: 5, out: '' });
  expect(none.error).toMatch(/no activity/);
  const { proof } = await user.json<{ proof: { outcome: string } }>(['activities', 'explain', variables['WAITING']!]);
  expect(proof.outcome).toBe('consensus-needed');
});
