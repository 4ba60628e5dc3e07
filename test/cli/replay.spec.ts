import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { EventStoreDbEventStore } from '../../src/ledger/stores/event-store-db/event-store-db.js';
import { recordFormat } from '../../src/ledger/store-format.js';
import { eventsFile } from '../../src/ledger/stores/open-event-store.js';
import { SqliteEventStore } from '../../src/ledger/stores/sqlite/sqlite.js';
import { OrganizationReplay } from '../../src/audit/timeline/organization-replay.js';
import { startCoordinator, type TestCoordinator } from '../../src/testing/index.js';
import { countersign } from '../e2e/installation.js';
import { EventStoreDouble } from '../ledger/stores/double/double.js';
import { copyTo, copyToFolder } from './copied-store.js';
import { TypingUser } from './typed.js';

const page = new URL('../../docs/how-to/debug-by-the-events.md', import.meta.url);

let coordinator: TestCoordinator;
let user: TypingUser;
/** What the page names by words of its own, as the shell would fill it in. */
let variables: Readonly<Record<string, string>>;

beforeAll(async () => {
  coordinator = await startCoordinator({ seed: 'debug by the events' });
  user = await TypingUser.sitDown();
  const alice = await coordinator.createUser('Alice');
  const bob = await coordinator.createUser('Bob');
  await coordinator.createPolicy({
    policyName: 'two people tag',
    condition: "activity.kind == 'CREATE_USER_TAG'",
    consensus: 'approvers.count() >= 2',
  });
  const asked = await alice.client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', {
    userTagName: 'Treasury',
    userIds: [alice.userId],
  });
  coordinator.clock.advance('3m');
  await bob.client.approve(asked.fingerprint);
  // A name that writes from right to left, and would be read otherwise than it is.
  await coordinator.createUser('Mallory\u202ecilA');
  variables = { ACTIVITY: asked.id, ORGANIZATION: coordinator.organizationId };
  await copyToFolder(user.path('data'), coordinator);
});

afterAll(async () => {
  await user.leaves();
  await coordinator.close();
});

const replay = (...words: readonly string[]) => user.types(['replay', '--data-dir', 'data', ...words]);
const json = <Answer>(...words: readonly string[]) => user.json<Answer>(['replay', '--data-dir', 'data', ...words]);

test('the page on debugging shows what the commands write', async () => {
  const text = await readFile(page, 'utf8');
  const draft = /```yaml\n# draft.yaml\n([^]*?)```/.exec(text)![1]!;
  await writeFile(user.path('draft.yaml'), draft);
  const blocks = [...text.matchAll(/```console\n\$ countersign ([^\n]*)\n([^]*?)```/g)];
  expect(blocks.length).toBeGreaterThanOrEqual(4);
  let written = text;
  for (const [block, line] of blocks) {
    const words = line!.replace(/\$([A-Z]+)/g, (_, name: string) => variables[name]!).split(' ');
    const { out, error, code } = await user.types(words.map((word) => (word === './data' ? 'data' : word)));
    expect([line, error, code]).toEqual([line, '', 0]);
    written = written.replace(block, () => `\`\`\`console\n$ countersign ${line}\n${out.trimEnd()}\n\`\`\``);
  }
  if (process.env['REPLAY_PAGE'] === 'write') await writeFile(page, written);
  // Ids and keys follow from what the harness draws before, which this page is not about.
  const drawn = /[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|\b[0-9a-f]{64,66}\b/g;
  expect(text.replace(drawn, '…')).toBe(written.replace(drawn, '…'));
});

test('each event is shown with the request that caused it, its stamps verified and its decision made again', async () => {
  const { events } = await json<{ events: Record<string, unknown>[] }>('--step', '--from', '1');
  const recorded = await coordinator.events();
  expect(events.map(({ eventId }) => eventId)).toEqual(recorded.slice(1).map(({ id }) => id));
  const decisions = events.flatMap(({ decision }) => (decision ? [decision as Record<string, unknown>] : []));
  expect(decisions.length).toBeGreaterThan(10);
  for (const { again, votes } of decisions) {
    expect(again).toBe('same');
    for (const vote of votes as object[]) expect(vote).not.toHaveProperty('problem');
  }
  const only = await json<{ events: Record<string, unknown>[] }>('--decisions');
  expect(only.events.every(({ revision, decision }) => (decision as { revision: number }).revision === revision)).toBe(
    true,
  );
  const tagged = events.find(({ type }) => type === 'UserTagCreated')!;
  expect(tagged['decision']).toMatchObject({
    outcome: 'allow',
    votes: [{ userName: 'Alice' }, { userName: 'Bob' }],
    policies: expect.arrayContaining([expect.objectContaining({ policyName: 'two people tag' })]) as unknown,
  });
  expect(tagged['changes']).toMatchObject([{ text: "user tag 'Treasury' was created" }]);
});

test('a point is a revision, a position, a time, an event or the end, and the state is the one after it', async () => {
  const recorded = await coordinator.events();
  const { id, metadata } = recorded[9]!;
  const { events } = await json<{ events: { position: string }[] }>('--step', '--from', '9', '--at', '9');
  const behind = await json<{ at: number; eventId: string }>('--at', '9');
  expect(behind).toMatchObject({ at: 9, eventId: id });
  expect(await json('--at', id)).toEqual(behind);
  expect(await json('--at', `position:${events[0]!.position}`)).toMatchObject({ at: 9 });
  const time = new Date((metadata as { at: number }).at).toISOString();
  expect((await json<{ at: number }>('--at', time)).at).toBeGreaterThanOrEqual(9);
  expect(await json('--at', 'end')).toMatchObject({ at: recorded.length - 1 });
  expect(await json(coordinator.organizationId.toUpperCase(), '--at', '9')).toEqual(behind);
  for (const [words, says] of [
    [['--at', 'soon'], '`soon` is not a point in history: use a revision such as 41'],
    [['--at', '9999'], 'has no event at revision `9999`'],
    [['--diff', '9', '--at', '3'], '--diff 9 is later than --at 3'],
    [['--diff', '1', '--step'], 'use only one of --diff, --step and --activity'],
    [['--from', '1'], '--from only works with --step'],
    [['--activity', id], `no events of activity`],
    [['00000000-0000-4000-8000-000000000000'], 'has no events'],
  ] as const) {
    const { code, error } = await replay(...words);
    expect([words, code, error]).toEqual([words, expect.any(Number), expect.stringContaining(says)]);
    expect(code).not.toBe(0);
  }
});

test('a fork takes one change, at a revision, and a file with what should be there', async () => {
  const fork = (...words: readonly string[]) =>
    user.types(['history', 'fork', '--data-dir', 'data', '--organization', coordinator.organizationId, ...words]);
  await writeFile(user.path('wrong.json'), '{"data":{},"parameters":{}}');
  for (const [words, says] of [
    [[], 'say one of --skip N, --edit N and --insert N'],
    [['--skip', '1', '--edit', '2'], 'say one of --skip N'],
    [['--skip', 'last'], '--skip takes a revision such as 41, not `last`'],
    [['--skip', '9', '--file', 'wrong.json'], '--skip takes no --file'],
    [['--edit', '9'], '--edit needs --file'],
    [['--edit', '9', '--file', 'nowhere.json'], 'nowhere.json cannot be read'],
    [['--edit', '9', '--file', 'wrong.json'], 'the file has a member `parameters`: an event is'],
    [['--skip', '0'], 'revision 0 is the organization itself'],
  ] as const) {
    expect([words, await fork(...words)]).toEqual([
      words,
      { code: 2, out: '', error: expect.stringContaining(says) as string },
    ]);
  }
  const { code, out } = await fork('--skip', '17', '--json');
  expect([code, JSON.parse(out)]).toMatchObject([0, { divergences: [{ userName: 'Alice' }, { userName: 'Bob' }] }]);
});

test('what if takes a draft, says what is wrong with one, and ends with 1 for what it is told to fail on', async () => {
  const asks = (...words: readonly string[]) => user.types(['policies', 'what-if', '--data-dir', 'data', ...words]);
  const drafts: Readonly<Record<string, string>> = {
    'broken.yaml': 'policies: [',
    'list.yaml': '- policies',
    'unknown.yaml': 'policy: []',
    'clause.json': '{"policies":[{"policyName":"x","effect":"EFFECT_ALLOW","condition":"1 =="}]}',
    'laugh.yaml': `a: &a [${'x,'.repeat(9)}x]\nb: &b [${'*a,'.repeat(9)}*a]\npolicies: [${'*b,'.repeat(99)}*b]`,
    'tags.json':
      '{"policies":[{"policyName":"tags","effect":"EFFECT_ALLOW","condition":"activity.kind == \'CREATE_USER_TAG\'"}]}',
    'never.json': '{"withoutUsers":["Nobody"]}',
  };
  for (const [name, text] of Object.entries(drafts)) await writeFile(user.path(name), text);
  for (const [words, says] of [
    [[], "required option '--file <file>' not specified"],
    [['--file', 'nowhere.yaml'], 'nowhere.yaml cannot be read'],
    [['--file', 'broken.yaml'], 'broken.yaml: Flow sequence'],
    [['--file', 'list.yaml'], 'list.yaml is no draft'],
    [['--file', 'unknown.yaml'], 'policy: '],
    [['--file', 'clause.json'], 'policies[0].condition: invalid policy condition'],
    [['--file', 'laugh.yaml'], 'laugh.yaml'],
    [['--file', 'tags.json', '--from', 'now'], '--from takes a revision such as 41, not `now`'],
    [['--file', 'tags.json', '--fail-on', 'nothing'], 'Allowed choices are new-allow, new-denial, any'],
  ] as const) {
    const { code, out, error } = await asks(...words);
    expect([words, code, out, error]).toEqual([words, 2, '', expect.stringContaining(says)]);
  }
  const codes = await Promise.all(
    [[], ['--fail-on', 'new-denial'], ['--fail-on', 'new-allow'], ['--fail-on', 'new-allow', '--from', '21']].map(
      async (words) => (await asks('--file', 'tags.json', ...words)).code,
    ),
  );
  expect(codes).toEqual([0, 0, 1, 0]);
  const { out } = await asks('--file', 'never.json');
  expect(out).toContain('never in effect: no user `Nobody`, because what it names never existed');
  expect(out).toContain('Every request comes out as it did.');
});

test('history cannot control the terminal', async () => {
  const { out } = await replay('--no-tty');
  expect(out).toContain('Mallory\\u{202e}cilA');
  const steps = await replay('--step');
  expect(out + steps.out).not.toMatch(/[^\P{C}\n]/u);
});

test('replay reads the same from an EventStoreDB', async () => {
  const double = await EventStoreDouble.start();
  try {
    const store = await EventStoreDbEventStore.open(double.connectionString);
    await recordFormat({ store, clock: coordinator.clock });
    await copyTo(store, coordinator);
    await store.close();
    const around = { env: { EVENT_STORE: double.connectionString } };
    const words = ['replay', '--data-dir', 'data', '--activity', variables['ACTIVITY']!];
    const [there, here] = [await user.types([...words, '--json'], around), await user.types([...words, '--json'])];
    const placed = /"position":"\d+"/g;
    expect(there.out.replace(placed, '')).toBe(here.out.replace(placed, ''));
    expect([there.code, here.out.match(placed)?.length]).toEqual([0, 5]);
  } finally {
    await double.stop();
  }
});

test('a long history is folded from the nearest saved state, with the same result as from the start', async () => {
  const store = await SqliteEventStore.openForReading(eventsFile(user.path('data')));
  try {
    const [near, far] = await Promise.all(
      [3, 1_000_000].map((every) => OrganizationReplay.open(store, coordinator.organizationId, { every })),
    );
    for (const revision of [near!.last, 2, 17, 5, 16, 4, 3]) {
      const [one, other] = [await near!.loadedAt(revision), await far!.loadedAt(revision)];
      expect([one.revision, one.hash, one.organization]).toEqual([revision, other.hash, other.organization]);
    }
  } finally {
    await store.close();
  }
});

/** Types keys at a real pseudo-terminal, each once the screen shows what the one before was to bring. */
async function atTerminal(
  steps: readonly (readonly [shows: RegExp, keys: string])[],
): Promise<{ code: number; screen: string }> {
  const command = `stty rows 40 cols 200; exec ${process.execPath} ${countersign} replay --data-dir ${user.path('data')}`;
  const child = spawn('script', ['-qec', command, '/dev/null'], {
    env: { PATH: process.env['PATH'], TERM: 'xterm', SHELL: '/bin/sh' },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let screen = '';
  let arrived = (): void => undefined;
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    screen += text;
    arrived();
  });
  const ended = once(child, 'close').then(([code]) => Number(code));
  let isOver = false;
  void ended.then(() => {
    isOver = true;
    arrived();
  });
  try {
    let from = 0;
    for (const [shows, keys] of steps) {
      while (!shows.test(screen.slice(from))) {
        if (isOver) throw new Error(`the terminal did not show ${String(shows)}: ${screen.slice(from)}`);
        await new Promise<void>((resolve) => (arrived = resolve));
      }
      from = screen.length;
      child.stdin.write(keys);
    }
    return { code: await ended, screen };
  } finally {
    child.kill('SIGKILL');
  }
}

test('in a terminal the arrow keys move from event to event and from decision to decision', async () => {
  const last = (await coordinator.events()).length - 1;
  const { code, screen } = await atTerminal([
    [new RegExp(`${last} of ${last} `), '\x1b[D'],
    [new RegExp(`${last - 1} of ${last} `), '\x1b[A'],
    [/ActivitySubmitted[^]*stamp verified/, 'g'],
    [/go to: /, 'nowhere\r'],
    [/is not a point in history/, 'g'],
    [/go to: /, '0\r'],
    [new RegExp(`\\b0 of ${last}  OrganizationCreated`), 'm'],
    [/0 is marked/, '\x1b[F'],
    [new RegExp(`${last} of ${last} `), 'c'],
    [/user 'Alice' was created/, 's'],
    [/state after/, '?'],
    [/next decision, previous decision/, '\x1b[H'],
    [new RegExp(`\\b0 of ${last}  OrganizationCreated`), '\x1b[B'],
    [/ActivitySubmitted/, 'q'],
  ]);
  expect(code).toBe(0);
  // It leaves the terminal as it was.
  expect(screen).toContain('\x1b[?1049h');
  expect(screen.trimEnd().endsWith('\x1b[?25h\x1b[?1049l')).toBe(true);
}, 60_000);
