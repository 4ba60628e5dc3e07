import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { submitted } from '../../src/cli/activities.js';
import { Terminal } from '../../src/cli/terminal.js';
import { eventsFile } from '../../src/ledger/stores/open-event-store.js';
import { SqliteEventStore } from '../../src/ledger/stores/sqlite/sqlite.js';
import { startCoordinator, type TestCoordinator } from '../../src/testing/index.js';
import { tellFlushed } from '../files/flushed.js';
import { copyToFolder } from './copied-store.js';
import { TypingUser } from './typed.js';

let coordinator: TestCoordinator;
let user: TypingUser;

beforeAll(async () => {
  coordinator = await startCoordinator({ seed: 'verify', at: new Date() });
  const { status } = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_WALLET', {
    walletName: 'treasury',
    accounts: [],
  });
  expect(status).toBe('ACTIVITY_STATUS_COMPLETED');
});

afterAll(() => coordinator.close());

beforeEach(async () => {
  user = await TypingUser.sitDown();
});

afterEach(() => user.leaves());

test('a store without its vaults has lost its keys, however well its decisions verify', async () => {
  await copyToFolder(user.path('data'), coordinator);
  const { code, out, error } = await user.types(['verify', '--data-dir', 'data']);
  expect({ code, error }).toEqual({ code: 1, error: '' });
  expect(out).toMatch(/^3 findings \(/);
  for (const holds of [
    /\n {2}organization-\S+ @ \d+: the stream `vault-[0-9a-f-]+` is missing: this vault of organization `[0-9a-f-]+` holds the seed of wallet `[0-9a-f-]+`; restore a backup of the store that has it\n/,
    /\n {2}organization-\S+ @ \d+: .* holds the key of its auth proxy; restore/,
    /\n {2}installation-boots @ \d+: the stream `vault-installation` is missing: /,
  ]) {
    expect(out).toMatch(holds);
  }
});

describe('heads that were saved', () => {
  const seed = 'saved heads';
  const at = new Date('2026-11-28');
  const named = (one: TestCoordinator, userTagName: string) =>
    one.client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName, userIds: [] });
  const verifies = (data: string) => user.types(['verify', '--data-dir', data, '--heads', 'heads.json']);
  const kept = () => readFile(user.path('heads.json'), 'utf8');

  test('are those that later histories go on from: what was cut off or recorded otherwise since is found', async () => {
    const [one, other] = await Promise.all([startCoordinator({ seed, at }), startCoordinator({ seed, at })]);
    try {
      const copied = (data: string, of: TestCoordinator) => copyToFolder(user.path(data), of, { withVaults: true });
      await copied('first', one);
      expect(await verifies('first')).toMatchObject({ code: 0, out: expect.not.stringContaining('heads') as string });
      await named(one, 'deposits');
      await copied('later', one);
      expect(await verifies('later')).toMatchObject({
        code: 0,
        out: expect.stringMatching(/^OK: .* verified\. \d heads are as saved\./) as string,
      });
      const saved = await kept();

      // The chain of the shorter history is whole.
      expect(await user.types(['verify', '--data-dir', 'first'])).toMatchObject({ code: 0 });
      const cut = await verifies('first');
      expect(cut.code).toBe(1);
      expect(cut.out).toMatch(
        /^1 finding .*\n {2}organization-\S+ @ \d+: the stream had this event when `\S+heads\.json` was saved, and ends at revision \d+ now\n/,
      );

      // Whoever can seal again replaces what nothing later depends on.
      await named(other, 'withdrawals');
      await named(other, 'others');
      await copied('other', other);
      expect(await user.types(['verify', '--data-dir', 'other'])).toMatchObject({ code: 0 });
      const changed = await verifies('other');
      expect(changed.code).toBe(1);
      // Its boots were others, too.
      expect(changed.out).toMatch(/^2 findings .*\n {2}installation-boots @ /);
      expect(changed.out).toMatch(/\n {2}organization-\S+ @ \d+: its link was `[0-9a-f]{64}` when `/);
      expect(await kept()).toBe(saved);

      const { heads, ...rest } = JSON.parse(saved) as { heads: Record<string, object> };
      const more = { ...heads, 'organization-gone': { revision: 3, hash: 'ab' } };
      await writeFile(user.path('heads.json'), JSON.stringify({ ...rest, heads: more }));
      const gone = await verifies('later');
      expect(gone.out).toMatch(
        /\n {2}organization-gone @ 3: the stream had this event when `\S+` was saved, and is gone now\n/,
      );
    } finally {
      await Promise.all([one.close(), other.close()]);
    }
  });

  test('are on the disk before the file has its name, and then the name', async () => {
    await copyToFolder(user.path('data'), coordinator, { withVaults: true });
    await mkdir(user.path('elsewhere'));
    const flushed: string[] = [];
    await tellFlushed(
      user.path('elsewhere'),
      (one) => flushed.push(one),
      () => user.types(['verify', '--data-dir', 'data', '--heads', 'elsewhere/heads.json']),
    );
    expect(flushed).toEqual(['heads.json.new', 'folder with heads.json']);
  });

  test.each([
    '',
    '{}',
    '{"format":"countersign heads 1"}',
    '{"format":"countersign heads 1","heads":{"a":{"hash":"ab"}}}',
  ])('are not read from %j, which is left as it is', async (text) => {
    await copyToFolder(user.path('data'), coordinator, { withVaults: true });
    await writeFile(user.path('heads.json'), text);
    const { code, error } = await verifies('data');
    expect([code, error]).toEqual([2, expect.stringMatching(/heads\.json` does not have heads that were saved by/)]);
    expect(await kept()).toBe(text);
  });

  test.each(['--heads', '--since'])('are of a store, and not of what a coordinator shows: %s', async (option) => {
    const { code, error } = await user.types(['verify', '--profile', 'x', option, 'heads.json']);
    expect([code, error]).toEqual([2, expect.stringContaining(`${option} is of a store`)]);
  });

  test('without a file, nothing can be verified since them', async () => {
    await copyToFolder(user.path('data'), coordinator, { withVaults: true });
    const { code, error } = await user.types(['verify', '--data-dir', 'data', '--since', 'heads.json']);
    expect([code, error]).toEqual([
      2,
      expect.stringMatching(/heads\.json` does not exist: save heads with `countersign verify --heads` first/),
    ]);
    await writeFile(user.path('heads.json'), '{}');
    expect(await user.types(['verify', '--data-dir', 'data', '--since', 'heads.json'])).toMatchObject({ code: 2 });
  });
});

test('no stream and no event can control the terminal of who verifies', async () => {
  await copyToFolder(user.path('data'), coordinator);
  const store = await SqliteEventStore.open(eventsFile(user.path('data')));
  const takeover = '\x1b[2J\x1b[HNothing is wrong.\n\x1b[8m';
  const metadata = { at: 1, $correlationId: takeover, $causationId: takeover };
  await store.append(
    `organization-z${takeover}`,
    [{ id: crypto.randomUUID(), type: 'X', data: {}, metadata }],
    'no-stream',
  );
  await store.close();
  const { code, out } = await user.types(['verify', '--data-dir', 'data']);
  expect(code).toBe(1);
  expect(out).toContain('\n  organization-z\\u{1b}[2J\\u{1b}[HNothing is wrong.\\u{a}\\u{1b}[8m @ 0: ');
  expect(out).not.toMatch(/[^\P{Cc}\n]/u);
});

test.each(['FAILED', 'COMPLETED', 'REJECTED', 'CONSENSUS_NEEDED', 'OTHER'])(
  'an activity that is %s cannot control the terminal of who submitted it',
  (status) => {
    const takeover = '\x1b[1A\u009b2K';
    const terminal = new Terminal({ hasColours: { out: false, error: false } } as Terminal['surroundings']);
    const activity = {
      id: `id${takeover}`,
      type: `ACTIVITY_TYPE_${takeover}`,
      status: `ACTIVITY_STATUS_${status}${status === 'OTHER' ? takeover : ''}`,
      fingerprint: `sha256:${takeover}`,
      result: { it: { is: takeover } },
      failure: { code: 9, message: `no ${takeover}\n${takeover}` },
    } as unknown as Parameters<typeof submitted>[1];
    for (const done of [undefined, `Created ${takeover}.\n  ${takeover}\n`]) {
      const { text } = submitted(terminal, activity, done);
      expect(text).toContain('\\u{1b}[1A\\u{9b}2K');
      expect(text).not.toMatch(/[^\P{Cc}\n]/u);
    }
    if (status === 'FAILED') expect(submitted(terminal, activity).text).toMatch(/^Failed: [^\n]*\n$/);
  },
);
