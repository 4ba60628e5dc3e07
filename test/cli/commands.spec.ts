import { writeFile } from 'node:fs/promises';
import { startCoordinator, type TestCoordinator } from '../../src/testing/index.js';
import { TypingUser } from './typed.js';

let coordinator: TestCoordinator;
let user: TypingUser;

/** Three people on one machine: the root user is the current profile. */
beforeAll(async () => {
  coordinator = await startCoordinator({ seed: 'command line', at: new Date() });
  user = await TypingUser.sitDown();
  await writeFile(user.path('root.json'), JSON.stringify({ ...coordinator.root, apiUrl: coordinator.url }));
  await user.json(['login', '--key-file', 'root.json']);
  const place = ['--address', coordinator.url, '--organization', coordinator.organizationId];
  for (const name of ['alice', 'bob']) {
    const { publicKey } = await user.json<{ publicKey: string }>(['login', '--profile', name, '--new-key', ...place]);
    await user.json(['users', 'create', name, '--public-key', publicKey, '--profile', 'default']);
  }
  await user.json(['profiles', 'use', 'default']);
});

afterAll(async () => {
  await user.leaves();
  await coordinator.close();
});

const anyText = expect.any(String) as string;
const like = (pattern: RegExp) => expect.stringMatching(pattern) as string;

test('what policies allow with two votes waits for the second, and says what to type for it', async () => {
  const words = ['policies', 'create', 'two rename', '--condition', "activity.kind == 'UPDATE_USER_NAME'"];
  const made = await user.types([...words, '--consensus', 'approvers.count() >= 2']);
  expect(made).toEqual({ code: 0, out: like(/^Created policy two rename \([0-9a-f-]{36}\)\.\n$/), error: '' });
  expect((await user.types(['policies', 'show', 'TWO RENAME'])).out).toMatch(
    /\nConsensus {2}approvers\.count\(\) >= 2\n/,
  );

  const { users } = await user.json<{ users: { userId: string; userName: string }[] }>(['users']);
  const { userId } = users.find(({ userName }) => userName === 'bob')!;
  const rename = ['--set', `userId=${userId}`, '--set', 'userName=Robert'];
  const asked = await user.types(['submit', 'update-user-name', ...rename, '--profile', 'alice']);
  expect(asked).toMatchObject({ code: 4, error: '' });
  expect(asked.out).toMatch(
    /^Waiting for approvals: update_user_name, activity [0-9a-f-]{36}\. [^\n]*two rename[^\n]* Do not submit it again/,
  );
  const [, fingerprint] = /countersign approve (sha256:[0-9a-f]{64})\n/.exec(asked.out)!;

  const waiting = await user.types(['activities', '--waiting-for-me', '--profile', 'bob']);
  expect(waiting.out).toMatch(/^ACTIVITY .*\n[0-9a-f-]{36} {2}update_user_name {2}waiting {2}alice {2}/);
  const { activities } = await user.json<{ activities: { id: string }[] }>([
    ...['activities', '--waiting-for-me', '--profile', 'bob'],
  ]);
  const [{ id }] = activities as [{ id: string }];
  const shown = await user.types(['activities', 'show', id, '--profile', 'bob']);
  expect(shown.out).toMatch(/\nSubmitted {4}\S+ by alice\n/);
  expect(shown.out).toMatch(/\nWaits for {4}[^\n]*two rename/);
  expect(shown.out).toMatch(/\nParameters\n {2}userId {4}[0-9a-f-]{36}\n {2}userName {2}Robert\n/);

  const approved = await user.types(['approve', fingerprint!, '--profile', 'bob']);
  expect(approved).toEqual({ code: 0, out: like(/^Completed update_user_name, activity /), error: '' });
  expect(await user.types(['activities', '--waiting-for-me', '--profile', 'bob'])).toMatchObject({
    code: 0,
    out: 'Nothing is waiting for you.\n',
  });

  const again = await user.types(['submit', 'update_user_name', ...rename, '--profile', 'alice', '--json']);
  const { activity } = JSON.parse(again.out) as { activity: { id: string; status: string } };
  expect({ code: again.code, status: activity.status }).toEqual({
    code: 4,
    status: 'ACTIVITY_STATUS_CONSENSUS_NEEDED',
  });
  const rejected = await user.types(['reject', activity.id, '--profile', 'bob']);
  expect(rejected).toMatchObject({ code: 0, error: '' });
  expect(await user.types(['activities', 'list', '--status', 'nonsense'])).toMatchObject({ code: 5 });
});

test('a denial names the policies, and has another exit code than an invalid request', async () => {
  await user.json([
    'policies',
    'create',
    'no tags',
    '--effect',
    'deny',
    '--condition',
    "activity.kind == 'CREATE_USER_TAG'",
  ]);
  const denied = await user.types(['submit', 'create_user_tag', '--set', 'userTagName=x', '--profile', 'alice']);
  expect(denied).toMatchObject({ code: 3, out: '' });
  expect(denied.error).toMatch(/^error: .*[^]*no tags/);
  expect(denied.error).toContain("as its condition `activity.kind == 'CREATE_USER_TAG'` is true");
  const asJson = await user.types([
    'submit',
    'create_user_tag',
    '--set',
    'userTagName=x',
    '--profile',
    'alice',
    '--json',
  ]);
  expect(JSON.parse(asJson.error)).toMatchObject({ error: { exitCode: 3, status: 403, turnkeyErrorCode: anyText } });

  for (const [words, code, line] of [
    [
      ['submit', 'create_user_tga'],
      2,
      /^error: no activity is named `create_user_tga`: did you mean create_user_tag\?\n$/,
    ],
    [['query', 'list-user'], 2, /^error: no query is named `list-user`: did you mean list_users/],
    [['submit', 'create_user_tag', '--set', 'userTagNme=x'], 2, /no parameter is named `userTagNme`: .*userTagName/],
    [['submit', 'create_user_tag'], 2, /userTagName/],
    [
      ['submit', 'create_user_tag', '--set', 'userTagName=x', '--set', 'userIds=x'],
      2,
      /userIds: write a list or an object as JSON/,
    ],
    [['submit', 'create_user_tag', '--set', 'userTagName=x', '--set', 'userIds[]=x'], 2, /userIds/],
    [['submit', 'create_user_tag', '--set', 'userTagName.x=x'], 2, /userTagName has no members/],
    [['submit', 'create_user_tag', '--set', 'userTagName'], 2, /must be name=value/],
    [['submit', 'create_user_tag', '--set', '__proto__.x=x'], 2, /no parameter is named `__proto__`/],
    [['submit', 'create_user_tag', '--file', 'none.json'], 2, /none\.json cannot be read/],
    [['submit', 'create_policy', '--set', 'policyName=x', '--set', 'effect=EFFECT_MAYBE'], 2, /effect/],
    [['policies', 'create', 'x', '--effect', 'perhaps'], 2, /must be allow or deny/],
    [['policies', 'create', 'x', '--condition', 'activity.'], 5, /condition/],
    [['approve', 'nothing'], 2, /does not identify an activity/],
    [['approve', `sha256:${'0'.repeat(64)}`], 5, /^error: /],
    [['users', 'delete', 'nobody', '--yes'], 2, /no user is named `nobody`: see countersign users/],
    [['users', 'lst'], 2, /unknown command 'lst'\n\(Did you mean list\?\)/],
    [['users', 'crate', 'x'], 2, /unknown command 'crate'\n\(Did you mean create\?\)/],
    [['users', 'list', 'x'], 2, /too many arguments/],
    [
      ['wallets', 'create', 'x', '--account', 'etherium'],
      2,
      /no address format is named `etherium`: did you mean ethereum/,
    ],
    [['wallets', 'sign', '0x0'], 2, /say what to sign/],
    [['activities', '--limit', '0'], 2, /whole number from 1/],
    [['users', 'delete', 'alice'], 2, /not confirmed: add --yes/],
  ] as const) {
    const { code: ended, out, error } = await user.types(words);
    expect({ words, code: ended, out, error }).toEqual({ words, code, out: '', error: like(line) });
  }
});

test('parameters come from a file, from standard input and from --set, each value with the type of its field', async () => {
  await writeFile(user.path('wallet.json'), JSON.stringify({ walletName: 'from a file', accounts: [] }));
  const printed = await user.json([
    ...[
      'submit',
      'create_wallet',
      '--file',
      'wallet.json',
      '--set',
      'mnemonicLength=24',
      '--set',
      'accounts[0].curve=CURVE_ED25519',
    ],
    ...['--set', "accounts[0].path=m/44'/501'/0'/0'", '--set', 'accounts[0].addressFormat=ADDRESS_FORMAT_SOLANA'],
    ...['--set', 'accounts[0].pathFormat=PATH_FORMAT_BIP32', '--print'],
  ]);
  expect(printed).toMatchObject({
    type: 'ACTIVITY_TYPE_CREATE_WALLET',
    organizationId: coordinator.organizationId,
    parameters: {
      walletName: 'from a file',
      mnemonicLength: 24,
      accounts: [{ curve: 'CURVE_ED25519', path: "m/44'/501'/0'/0'" }],
    },
  });
  const answer = await user.json<{ activities: object[] }>(['query', 'list_activities', '--file', '-'], {
    input: '{"paginationOptions": {"limit": "1"}}',
  });
  expect(answer.activities).toHaveLength(1);
});

test('wallets are created, used and deleted by name', async () => {
  const made = await user.types(['wallets', 'create', 'Treasury', '--account', 'ethereum', 'solana']);
  expect(made).toEqual({
    code: 0,
    out: like(/^Created wallet Treasury \(\S+\)\.\n {2}0x\w{40} {2}ethereum\n {2}\w+ {2}solana\n$/),
    error: '',
  });
  const { accounts } = await user.json<{ accounts: { address: string }[] }>(['wallets', 'accounts', 'treasury']);
  expect(accounts).toHaveLength(2);
  const signed = await user.types(['wallets', 'sign', accounts[0]!.address, '--message', 'hello']);
  expect(signed).toEqual({ code: 0, out: like(/^Completed sign_raw_payload.*\nr {2}[0-9a-f]{64}\ns {2}/), error: '' });
  expect(await user.types(['wallets', 'delete', 'Treasury'], { input: 'no\n' })).toMatchObject({
    code: 0,
    out: 'Nothing was changed.\n',
  });
  const gone = await user.types(['wallets', 'delete', 'Treasury', '--without-export'], { input: 'y\n' });
  expect(gone).toMatchObject({ code: 0, out: 'Deleted Treasury.\n' });
  expect((await user.types(['wallets'])).out).toBe('There are none.\n');
});

test('others’ names cannot move the cursor, and only terminals get colours', async () => {
  const { userId } = await coordinator.createUser('Eve\u202e');
  const plain = await user.types(['users']);
  expect(plain.out).toContain('Eve�');
  expect(plain.out).not.toContain('\x1b');
  expect((await user.types(['users'], { colours: true })).out).toMatch(/^\x1b\[1mNAME/);
  expect((await user.types(['users', '--help'], { colours: true })).out).toContain('\x1b[1mOptions:\x1b[');
  await user.json(['users', 'delete', userId, '--yes']);
});
