import { submitted } from '../../src/cli/activities.js';
import { Terminal } from '../../src/cli/terminal.js';
import { eventsFile } from '../../src/ledger/stores/open-event-store.js';
import { SqliteEventStore } from '../../src/ledger/stores/sqlite/sqlite.js';
import { startCoordinator, type TestCoordinator } from '../../src/testing/index.js';
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
