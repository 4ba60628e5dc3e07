import type { StampingClient } from '../../src/testing/index.js';
import { countersign, Installation, stop, type Run } from '../e2e/installation.js';
import { commits, keyOfFolders, ownFolds, unpack } from '../golden/data-folder.js';

const patience = 120_000;
const settings = { KEK: keyOfFolders };

let installation: Installation;

beforeEach(async () => {
  installation = await Installation.make();
});

afterEach(() => installation.remove());

async function verify(): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const run: Run = installation.run(countersign, {}, ['verify']);
  const { code } = await run.exit;
  return { code, stdout: run.stdout(), stderr: run.stderr() };
}

/** The keys of a map of the state that its own commit has folded. */
const keysOf = (state: Readonly<Record<string, unknown>>, member: string): string[] =>
  (state[member] as readonly (readonly [string, unknown])[]).map(([key]) => key);

/** Ids in a list of an answer. */
async function listed(client: StampingClient, query: string, list: string, id: string): Promise<string[]> {
  const answer = await client.query<Record<string, readonly Record<string, string>[]>>(query);
  return answer[list]!.map((one) => one[id]!);
}

test.each(commits)(
  'today’s start opens the data folder of commit %s, answers from it, and goes on with it',
  async (commit) => {
    await unpack(commit, installation.dataDir);
    const server = await installation.start(settings);
    const client = await installation.client(server.url);
    const { organizationId } = client;
    const { state } = ownFolds(commit).get(`organization-${organizationId}`)!;

    expect(await client.query('whoami')).toMatchObject({ organizationId, username: 'Root user' });
    for (const [query, list, id, member] of [
      ['list_users', 'users', 'userId', 'users'],
      ['list_policies', 'policies', 'policyId', 'policies'],
      ['list_user_tags', 'userTags', 'tagId', 'userTags'],
      ['list_wallets', 'wallets', 'walletId', 'wallets'],
    ] as const) {
      expect([query, (await listed(client, query, list, id)).sort()]).toEqual([query, keysOf(state, member).sort()]);
    }
    const subOrganizations = await client.query<{ organizationIds: readonly string[] }>('list_suborgs');
    expect(subOrganizations.organizationIds).toEqual(
      [...ownFolds(commit).keys()]
        .map((stream) => stream.slice('organization-'.length))
        .filter((id) => id !== organizationId),
    );

    // What waits may be voted on, and the seed of the wallet opens.
    const [waits] = keysOf(state, 'openActivities');
    const { activity } = await client.query<{ activity: { status: string; fingerprint: string } }>('get_activity', {
      activityId: waits!,
    });
    expect(activity.status).toBe('ACTIVITY_STATUS_CONSENSUS_NEEDED');
    expect((await client.approve(activity.fingerprint)).status).toBe('ACTIVITY_STATUS_COMPLETED');
    const address = keysOf(state, 'addresses').find((one) => one.startsWith('0x'));
    const signed = await client.submit('ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2', {
      signWith: address,
      payload: 'ab'.repeat(32),
      encoding: 'PAYLOAD_ENCODING_HEXADECIMAL',
      hashFunction: 'HASH_FUNCTION_NO_OP',
    });
    expect(signed.status).toBe('ACTIVITY_STATUS_COMPLETED');

    await stop(server);
    expect(await verify()).toEqual({
      code: 0,
      stdout: expect.stringMatching(
        commit === '3a7d3c6'
          ? /^Nothing is wrong: \d+ events in \d+ streams; 27 stamps verified; 24 decisions made again; \d+ rows of/
          : /^Nothing is wrong: \d+ events in \d+ streams; 26 stamps verified; 2 decisions made again, 21 of an earlier release folded only; \d+ rows of/,
      ) as string,
      stderr: '',
    });
  },
  patience,
);
