import { rm, stat, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import type { ApiError, StampingClient } from '../../src/testing/index.js';
import { SqliteEventStore } from '../../src/ledger/stores/sqlite/sqlite.js';
import { exchange } from '../e2e/exchange.js';
import { countersign, Installation, main, stop } from '../e2e/installation.js';
import { until } from '../e2e/until.js';

// A process starts in half a second, and in ten on a machine with other work to do.
const patience = 300_000;
const tagType = 'ACTIVITY_TYPE_CREATE_USER_TAG';

let installation: Installation;

beforeEach(async () => {
  installation = await Installation.make();
});

afterEach(() => installation.remove());

const file = (name: string): string => join(installation.dataDir, name);

async function tagNames(client: StampingClient): Promise<string[]> {
  const { userTags } = await client.query<{ userTags: readonly { readonly tagName: string }[] }>('list_user_tags');
  return userTags.map(({ tagName }) => tagName).sort();
}

async function boots(): Promise<readonly { readonly type: string; readonly data: unknown }[]> {
  const store = await SqliteEventStore.open(file('events.db'));
  const events = [];
  for await (const { type, data } of store.read('installation-boots')) events.push({ type, data });
  await store.close();
  return events;
}

test(
  'a store that has lost what its read models have seen is refused, found by verify, and read-only until that is accepted',
  async () => {
    const first = await installation.start();
    const before = await installation.client(first.url);
    for (let count = 10; count < 20; count++) await before.submit(tagType, { userTagName: `kept ${count}` });
    await stop(first);
    const second = await installation.start();
    const client = await installation.client(second.url);
    for (let count = 10; count < 30; count++) await client.submit(tagType, { userTagName: `late ${count}` });
    expect(await tagNames(client)).toHaveLength(30);
    second.child.kill('SIGKILL');
    await second.exit;
    await truncate(file('events.db-wal'), Math.floor((await stat(file('events.db-wal'))).size / 2));

    const refused = installation.run(main);
    expect((await refused.exit).code).toBe(1);
    expect(refused.stderr()).toMatch(
      /^countersign cannot start: the event store has lost events: its last one is at position \d+, and `\S+read-models\.db` was built from one at position \d+ \(`organization-\S+`, revision \d+\) that it does not have; restore a newer backup, [^\n]+ RESTORED=true [^\n]+\n$/,
    );
    // Neither start nor verification has hushed it up.
    for (let round = 0; round < 2; round++) {
      const verify = installation.run(countersign, {}, ['verify', '--quiet']);
      expect((await verify.exit).code).toBe(1);
      expect(verify.stdout()).toMatch(
        /^1 finding \([^)]+\):\n {2}read model rows were built from an event at position \d+/,
      );
    }
    expect((await installation.run(main).exit).code).toBe(1);

    const inbox = { SMTP_URL: 'smtp://127.0.0.1:9', ALLOW_PRIVATE_NETWORK: 'true', VOTE_NOTICES: 'true' };
    const readOnly = await installation.start({ RESTORED: 'true', ...inbox });
    expect(readOnly.stdout()).toContain('Countersign is up, read-only (RESTORED).');
    const reader = await installation.client(readOnly.url);
    const names = await tagNames(reader);
    expect(names.filter((name) => name.startsWith('kept'))).toHaveLength(10);
    expect(names.length).toBeLessThan(30);
    expect(await reader.query('whoami')).toMatchObject({ username: 'Root user' });
    for (const [type, parameters] of [
      [tagType, { userTagName: 'refused' }],
      ['ACTIVITY_TYPE_CREATE_WALLET', { walletName: 'refused', accounts: [] }],
      ['ACTIVITY_TYPE_APPROVE_ACTIVITY', { fingerprint: `sha256:${'0'.repeat(64)}` }],
    ] as const) {
      const { status, body } = await reader.submit(type, parameters).then(
        () => ({ status: 200, body: undefined }),
        (error: unknown) => error as ApiError,
      );
      expect([type, status, body]).toEqual([
        type,
        503,
        {
          code: 14,
          message: expect.stringContaining(
            'this server is read-only, because it was started with RESTORED=true',
          ) as string,
          details: [expect.objectContaining({ retryDelay: '60s' })],
          turnkeyErrorCode: '',
        },
      ]);
    }
    const { authProxyConfigId } = await installation.root();
    const signUp = await exchange(`${readOnly.url}/v1/otp_init`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-auth-proxy-config-id': authProxyConfigId! },
      body: JSON.stringify({ otpType: 'OTP_TYPE_EMAIL', contact: 'ann@example.com' }),
    });
    expect([signUp.status, signUp.text]).toEqual([503, expect.stringContaining('read-only')]);
    await until('it is ready', async () => (await exchange(`${readOnly.url}/health/ready`)).status === 200);
    readOnly.child.kill('SIGTERM');
    expect((await readOnly.exit).code).toBe(0);
    const recorded = await boots();
    expect(recorded.filter(({ type }) => type === 'HistoryRestored')).toEqual([
      {
        type: 'HistoryRestored',
        data: {
          seen: {
            stream: expect.stringMatching(/^organization-/) as string,
            revision: expect.any(Number) as number,
            position: expect.stringMatching(/^\d+$/) as string,
          },
          head: expect.stringMatching(/^\d+$/) as string,
        },
      },
    ]);

    const after = await installation.start();
    const normal = await installation.client(after.url);
    await normal.submit(tagType, { userTagName: 'normal' });
    expect(await tagNames(normal)).toEqual([...names, 'normal']);
    await stop(after);
    const verify = installation.run(countersign, {}, ['verify', '--quiet']);
    expect([(await verify.exit).code, verify.stdout()]).toEqual([0, expect.stringContaining('OK: ')]);
  },
  patience,
);

test(
  'a store that is ahead of its read models, or has none, starts',
  async () => {
    await stop(await installation.start());
    for (const suffix of ['', '-wal', '-shm']) await rm(file(`read-models.db${suffix}`), { force: true });
    await stop(await installation.start());
  },
  patience,
);
