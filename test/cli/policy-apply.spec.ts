import { readFile, writeFile } from 'node:fs/promises';
import type { ActivityEnvelope } from '../../src/wire/envelope.js';
import { lyingServer } from './lying-server.js';
import type { Typed } from './typed.js';
import { Treasury, treasuryFile } from './treasury.js';

/* A folder applied to a real organization: by its root user, by members who vote, and while others change the same. */

const page = new URL('../../docs/how-to/policies-as-code.md', import.meta.url);
const folder = 'examples/policies/treasury';
const apply = ['policies', 'apply', folder];
const same = 'The organization is as the folder says.\n';
const wrote = 'wrote   policies.lock.json: commit it with the folder\n';
const oneLine = (text: string): string => text.replace(/\s+/g, ' ');

let treasury: Treasury;

beforeAll(async () => {
  treasury = await Treasury.open('policies apply');
  await treasury.login('Ann');
  await treasury.login('Ben');
});

afterAll(() => treasury.close());

/** Does something when asked, and says yes. */
function replyWith(act: () => Promise<unknown>): (question: string) => Promise<string> {
  let answer: Promise<string> | undefined;
  return () => (answer ??= act().then(() => 'y'));
}

async function waitingActivities() {
  const { activities } = await treasury.coordinator.client.query('list_activities', {
    filterByStatus: ['ACTIVITY_STATUS_CONSENSUS_NEEDED'],
  });
  return activities;
}

async function submits(): Promise<number> {
  return (await treasury.coordinator.events()).filter(({ type }) => type === 'ActivitySubmitted').length;
}

const policyNames = async () =>
  (await treasury.coordinator.client.query('list_policies')).policies.map(({ policyName }) => policyName).sort();

test('nothing is applied without a yes, nor after somebody else has changed something', async () => {
  const { coordinator, people, user } = treasury;
  const before = await submits();
  expect((await user.types(apply, { input: 'n\n' })).out).toMatch(/\nNothing was changed\.\n$/);
  expect(await submits()).toBe(before);

  const meanwhile = async (act: () => Promise<unknown>): Promise<Typed> => {
    return user.types(apply, { reply: replyWith(act) });
  };
  let policyId = '';
  const raced = await meanwhile(async () => {
    policyId = await coordinator.createPolicy({ policyName: 'everything', effect: 'EFFECT_ALLOW' });
  });
  expect([raced.code, raced.error]).toEqual([1, `Apply this? [y/N] ${wrote}`]);
  expect(raced.out).toMatch(
    /\nNothing was changed: somebody else .*: there is a policy `everything` \(\S+\)\. Apply again/,
  );
  await coordinator.client.submit('ACTIVITY_TYPE_DELETE_POLICIES', { policyIds: [policyId] });

  const tagged = await meanwhile(() => coordinator.createTag('treasurer', [people['Otto']!]));
  expect([tagged.code, tagged.out]).toEqual([1, expect.stringContaining('the tag `treasurer` (')]);
  const [tag] = (await coordinator.client.query('list_user_tags')).userTags;
  await coordinator.client.submit('ACTIVITY_TYPE_DELETE_USER_TAGS', { userTagIds: [tag!.tagId] });

  const swapped = await meanwhile(async () => {
    const rename = (name: string, to: string) =>
      coordinator.client.submit('ACTIVITY_TYPE_UPDATE_USER_NAME', { userId: people[name]!.userId, userName: to });
    await rename('Ann', 'Otto');
    await rename('Otto', 'Ann');
  });
  const refused = `user \`Ann\` was ${people['Ann']!.userId} when this folder was applied, and is now ${people['Otto']!.userId}`;
  expect([swapped.code, swapped.out]).toEqual([1, expect.stringContaining(refused)]);
  for (const [name, to] of [
    ['Otto', 'Otto'],
    ['Ann', 'Ann'],
  ] as const) {
    await coordinator.client.submit('ACTIVITY_TYPE_UPDATE_USER_NAME', { userId: people[name]!.userId, userName: to });
  }
  expect(await policyNames()).toEqual(['Auth proxy']);
});

test('what is applied is what was shown, whatever the file says meanwhile', async () => {
  const { user, coordinator } = treasury;
  const written = await readFile(user.path(treasuryFile), 'utf8');
  const { code, out, error } = await user.types(apply, {
    reply: replyWith(() => writeFile(user.path(treasuryFile), 'policies: [{ name: everything }]')),
  });
  await writeFile(user.path(treasuryFile), written);
  expect([code, out.slice(-same.length)]).toEqual([0, same]);
  const steps = error.replace('Apply this? [y/N] ', '');
  expect(steps).toBe(
    [
      'done    create tag “treasurer”',
      wrote.trim(),
      'done    create “At most one ether, and no calls”, “Roles are given by the quorum”, “Two treasurers sign”',
      'done    change the root quorum',
      '',
    ].join('\n'),
  );
  expect(await readFile(page, 'utf8')).toContain(steps);
  expect(await policyNames()).toEqual([
    'At most one ether, and no calls',
    'Auth proxy',
    'Roles are given by the quorum',
    'Two treasurers sign',
  ]);
  const { configs } = await coordinator.client.query('get_organization_configs');
  expect(configs.quorum.threshold).toBe(2);
  expect(await user.types([...apply, '--profile', 'ann'])).toEqual({ code: 0, out: same, error: '' });
});

test('where votes are needed, it says whose, is not submitted twice, and another member goes on', async () => {
  const { user } = treasury;
  await treasury.edit('eth.tx.value > 1000', 'eth.tx.value > 2000');
  await treasury.edit(
    '  - name: Roles',
    "  - name: Nobody exports\n    effect: deny\n    condition: activity.action == 'EXPORT'\n  - name: Roles",
  );
  await treasury.edit('.count() >= 2', '.count() >= 3');
  const by = (name: string, ...more: string[]) => user.types([...apply, '--yes', '--profile', name, ...more]);
  const before = await submits();
  const first = await by('ann');
  expect([first.code, await submits()]).toEqual([4, before + 1]);
  const [asked] = await waitingActivities();
  expect(oneLine(first.out)).toMatch(
    new RegExp(
      `Waiting for .* Others approve with countersign approve ${asked!.fingerprint} Then apply the folder again`,
    ),
  );
  // What the guide shows of it, but for the fingerprint and the names of copies, which hang on ids.
  const withoutIds = (text: string): string => {
    return text.replace(/sha256:[0-9a-f]{64}/, 'sha256:…').replace(/\(next [0-9a-f]{8}\)/g, '(next …)');
  };
  const shown = `${first.error}${first.out.slice(first.out.indexOf('Waiting for'))}`;
  expect(withoutIds(await readFile(page, 'utf8'))).toContain(`\n\n\`\`\`\n${withoutIds(shown)}\`\`\`\n`);
  const again = await by('ben');
  expect([again.code, await submits()]).toEqual([4, before + 1]);
  expect(again.error).toMatch(/^waits {3}create .* submitted before by Ann\n$/);

  const members = ['ben', 'ann'];
  let rounds = 0;
  let last = again;
  for (; last.code === 4 && rounds < 10; rounds++) {
    for (const { fingerprint, votes } of await waitingActivities()) {
      const other = votes[0]!.userId === treasury.people['Ann']!.userId ? 'ben' : 'ann';
      expect((await user.types(['approve', fingerprint, '--profile', other])).code).toBe(0);
    }
    last = await by(members[(rounds + 1) % 2]!);
  }
  expect([last.code, last.out]).toEqual([0, same]);
  expect(await user.types(['policies', 'plan', folder, '--exit-code', '--profile', 'ann'])).toMatchObject({ code: 0 });
  expect(await waitingActivities()).toEqual([]);
  expect((await policyNames()).filter((name) => name.includes('(next'))).toEqual([]);
});

test('with --wait it goes on as soon as others have voted; a rejection ends it', async () => {
  const { user } = treasury;
  await treasury.edit('eth.tx.value > 2000', 'eth.tx.value > 3000');
  const waits = (seconds: string) => user.types([...apply, '--yes', '--wait', seconds, '--profile', 'ann', '--json']);
  const voted = async (verb: string, seconds = '60'): Promise<Typed> => {
    const applying = waits(seconds);
    let ended: Typed | undefined;
    void applying.then((typed) => (ended = typed));
    while (!ended) {
      for (const { fingerprint } of await waitingActivities())
        await user.types([verb, fingerprint, '--profile', 'ben']);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    return applying;
  };
  const rejected = await voted('reject');
  expect(rejected.code).toBe(3);
  expect(JSON.parse(rejected.out)).toMatchObject({ steps: [{ status: 'ACTIVITY_STATUS_REJECTED' }] });
  const approved = await voted('approve');
  expect([approved.code, JSON.parse(approved.out)]).toMatchObject([0, { message: same.trim() }]);
  expect((await user.types([...apply, '--wait', 'long'])).code).toBe(2);

  await treasury.edit('eth.tx.value > 3000', 'eth.tx.value > 4000');
  const before = Date.now();
  expect((await waits('1')).code).toBe(4);
  expect(Date.now() - before).toBeLessThan(30_000);
});

test('an activity that a server shows as the step is not waited for, nor offered for approval', async () => {
  const { coordinator, user, people } = treasury;
  const [step] = await waitingActivities();
  const parameters = Object.values(step!.intent)[0] as Readonly<Record<string, unknown>>;
  const everything = { policyId: parameters['policyId'], policyCondition: 'false' };
  const evil = await people['Ben']!.client.submit(step!.type, everything);
  const server = await lyingServer(coordinator.url);
  const { publicKey, privateKey } = people['Ann']!.key;
  const root = { apiUrl: server.url, organizationId: coordinator.organizationId };
  const key = { apiPublicKey: publicKey, apiPrivateKey: privateKey };
  await writeFile(user.path('between.json'), JSON.stringify({ ...root, ...key }));
  await user.json(['login', '--profile', 'between', '--key-file', 'between.json', '--keep-key']);
  await user.json(['profiles', 'use', 'default']);
  server.lies((name, answer) => {
    if (name !== 'list_activities') return answer;
    const { activities } = answer as { readonly activities: readonly ActivityEnvelope[] };
    const others = activities.filter(({ id }) => id !== step!.id);
    return {
      activities: others.map((one) => (one.id === evil.id ? { ...one, intent: step!.intent, redacted: [] } : one)),
    };
  });
  const { code, out } = await user.types([...apply, '--yes', '--profile', 'between']);
  expect([code, out]).toEqual([4, expect.stringMatching(/countersign approve sha256:\w{64}\n/)]);
  expect(out).not.toContain(evil.fingerprint);
  const waiting = await waitingActivities();
  expect(waiting.map(({ fingerprint }) => fingerprint)).toContain(/sha256:\w{64}/.exec(out)![0]);
  for (const { fingerprint } of waiting) await user.types(['reject', fingerprint, '--profile', 'ben']);
  await server.close();
});

test('--fail-on stops it, though it was told yes', async () => {
  const { user } = treasury;
  const before = await submits();
  // The root user is no member of the root quorum any more, and not told what would have been.
  const { code, out } = await user.types([...apply, '--yes', '--fail-on', 'new-allow']);
  expect([code, out]).toEqual([
    1,
    expect.stringMatching(/\nNothing was changed: --fail-on new-allow stops this plan\.\n$/),
  ]);
  expect(await submits()).toBe(before);
});
