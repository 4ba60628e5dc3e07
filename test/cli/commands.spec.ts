import { writeFile } from 'node:fs/promises';
import { keccak256, recoverAddress, Signature, toUtf8Bytes, Transaction, verifyMessage } from 'ethers';
import { startCoordinator, type TestCoordinator } from '../../src/testing/index.js';
import { copyToFolder } from './copied-store.js';
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

  // Both decisions, with the name that the policy had then.
  await coordinator.client.submit('ACTIVITY_TYPE_UPDATE_POLICY_V2', {
    policyId: /\(([0-9a-f-]{36})\)/.exec(made.out)![1]!,
    policyName: 'renamed',
  });
  const decided = await user.types(['activities', 'show', id, '--profile', 'bob']);
  expect(decided.out).toMatch(
    new RegExp(
      [
        '\nDecisions',
        '  approved by alice: consensus needed',
        '    policy “two rename” \\([0-9a-f-]{36}\\): requires consensus, as its consensus `approvers.count\\(\\) >= 2` is false',
        '    1 policy that does not apply',
        '  approved by \\S+: allow by policy',
        '    policy “two rename” \\([0-9a-f-]{36}\\): allow',
        '    1 policy that does not apply\n$',
      ].join('\n'),
    ),
  );

  const again = await user.types(['submit', 'update_user_name', ...rename, '--profile', 'alice', '--json']);
  const { activity } = JSON.parse(again.out) as { activity: { id: string; status: string } };
  expect({ code: again.code, status: activity.status }).toEqual({
    code: 4,
    status: 'ACTIVITY_STATUS_CONSENSUS_NEEDED',
  });
  const rejected = await user.types(['reject', activity.id, '--profile', 'bob', '--yes']);
  expect(rejected).toMatchObject({ code: 0, error: '' });
  expect(await user.types(['activities', 'list', '--status', 'nonsense'])).toMatchObject({ code: 5 });
});

interface Said {
  readonly policyName: string;
  readonly outcome: string;
  readonly doubt?: string;
  readonly clause?: { readonly name: string; readonly outcome: string };
}

test('the four outcomes of a clause read alike in a denial, in what waits, in the query, on the terminal and in a replay', async () => {
  const { addresses, walletId } = await coordinator.createWallet('Four outcomes', [
    {
      curve: 'CURVE_SECP256K1',
      pathFormat: 'PATH_FORMAT_BIP32',
      path: "m/44'/60'/0'/0/0",
      addressFormat: 'ADDRESS_FORMAT_ETHEREUM',
    },
  ]);
  const kind = "activity.kind == 'SIGN_TRANSACTION'";
  const policy = (policyName: string, condition: string, effect: 'ALLOW' | 'DENY' = 'ALLOW', consensus?: string) =>
    coordinator.createPolicy({
      policyName,
      effect: `EFFECT_${effect}`,
      condition: `${kind} && ${condition}`,
      ...(consensus === undefined ? {} : { consensus }),
    });
  const policyIds = [
    await policy('two sign', 'true', 'ALLOW', 'approvers.count() >= 2'),
    await policy('denies', 'eth.tx.value >= 5', 'DENY'),
    await policy('lacks', 'eth.tx.chain_id == 1'),
    await policy('elsewhere', "private_key.label == 'any'"),
  ];
  // From before EIP-155: it is valid on every chain, so its chain cannot be read.
  const legacy = { type: 0, to: `0x${'11'.repeat(20)}`, gasPrice: 1n, gasLimit: 21_000n, nonce: 0 };
  const sign = (value: bigint) => [
    ...['submit', 'sign_transaction_v2', '--profile', 'alice', '--set', `signWith=${addresses[0]!}`],
    ...['--set', 'type=TRANSACTION_TYPE_ETHEREUM', '--set'],
    `unsignedTransaction=${Transaction.from({ ...legacy, value }).unsignedSerialized}`,
  ];
  const told = (said: readonly Said[]) =>
    ['two sign', 'denies', 'lacks', 'elsewhere'].map((name) => {
      const { clause, doubt, outcome } = said.find(({ policyName }) => policyName === name)!;
      return [name, outcome, clause?.name, clause?.outcome, doubt];
    });
  const doubtful = [
    ['lacks', 'OUTCOME_ERROR', 'condition', 'unreadable', 'unreadable'],
    ['elsewhere', 'OUTCOME_ERROR', 'condition', 'not-applicable', 'not-applicable'],
  ];
  const lines = (isDenied: boolean) => [
    `“two sign” .*: requires consensus, as its consensus \`approvers.count\\(\\) >= 2\` is false`,
    ...(isDenied ? ['“denies” .*: deny explicit, as its condition `.* && eth.tx.value >= 5` is true'] : []),
    '“lacks” .*: error, as its condition `eth.tx.chain_id == 1` is unreadable',
    '“elsewhere” .*: error, as its condition `private_key.label == .any.` is not-applicable',
  ];

  const denied = await user.types(sign(5n));
  expect(denied.code).toBe(3);
  for (const line of lines(true)) expect(denied.error).toMatch(new RegExp(line));
  const alice = await user.types([...sign(5n), '--json']);
  const { error } = JSON.parse(alice.error) as { error: { details: [{ policyEvaluations: readonly Said[] }] } };
  expect(told(error.details[0].policyEvaluations)).toEqual([
    ['two sign', 'OUTCOME_REQUIRES_CONSENSUS', 'consensus', 'false', undefined],
    ['denies', 'OUTCOME_DENY_EXPLICIT', 'condition', 'true', undefined],
    ...doubtful,
  ]);
  const { activity } = await user.types([...sign(1n), '--json']).then(({ out }) => {
    return JSON.parse(out) as { activity: { id: string; fingerprint: string; waitsFor: { policies: Said[] } } };
  });
  // What waits for votes says only what votes could still change.
  expect(activity.waitsFor.policies).toMatchObject([
    { policyName: 'two sign', clause: { name: 'consensus', outcome: 'false' } },
  ]);
  const isWaiting = [
    ['two sign', 'OUTCOME_REQUIRES_CONSENSUS', 'consensus', 'false', undefined],
    ['denies', 'OUTCOME_DENY_IMPLICIT', 'condition', 'false', undefined],
    ...doubtful,
  ];
  interface Evaluated {
    readonly policyEvaluations: readonly { readonly policyEvaluations: readonly Said[] }[];
    readonly now: readonly Said[];
  }
  const query = ['query', 'get_policy_evaluations', '--set', `activityId=${activity.id}`, '--profile', 'alice'];
  const { policyEvaluations, now } = await user.json<Evaluated>(query);
  expect([told(policyEvaluations[0]!.policyEvaluations), told(now)]).toEqual([isWaiting, isWaiting]);
  const shown = await user.types(['activities', 'show', activity.id, '--profile', 'alice']);
  for (const line of lines(false)) expect(shown.out).toMatch(new RegExp(line));
  await copyToFolder(user.path('four outcomes'), coordinator);
  const replayed = await user.types(['replay', '--data-dir', 'four outcomes', '--activity', activity.id]);
  for (const line of [
    "'two sign' OUTCOME_REQUIRES_CONSENSUS, as its consensus `approvers.count\\(\\) >= 2` is false",
    "'denies' OUTCOME_DENY_IMPLICIT, as its condition `eth.tx.value >= 5` is false",
    "'lacks' OUTCOME_ERROR, as its condition `eth.tx.chain_id == 1` is unreadable",
    "'elsewhere' OUTCOME_ERROR, as its condition `private_key.label == 'any'` is not-applicable",
  ]) {
    expect(replayed.out).toMatch(new RegExp(line));
  }

  await user.json(['reject', activity.id, '--profile', 'bob', '--yes']);
  await coordinator.client.submit('ACTIVITY_TYPE_DELETE_POLICIES', { policyIds });
  const deletion = { walletIds: [walletId], deleteWithoutExport: true };
  await coordinator.client.submit('ACTIVITY_TYPE_DELETE_WALLETS', deletion);
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
  // First of all the policy that denied, before those that do not apply.
  expect(denied.error).toMatch(/^error: .*\n {2}policy “no tags” .*: deny explicit[^]*\n {2}policy .*: deny implicit/);
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
    [['users', 'delete', 'alice'], 2, /\? \[y\/N\] \nerror: not confirmed: add --yes/],
  ] as const) {
    const { code: ended, out, error } = await user.types(words);
    expect({ words, code: ended, out, error }).toEqual({ words, code, out: '', error: like(line) });
    // Programs get the same as JSON, in the last line.
    const told = await user.types([...words, '--json']);
    expect({ words, ...told }).toMatchObject({ words, code, out: '' });
    const answer = JSON.parse(told.error.trimEnd().split('\n').at(-1)!) as { error: Record<string, unknown> };
    const [, ...said] = /error: ([^]*?)(?:\n\(add --help for usage\))?\n$/.exec(error)!;
    expect({ words, ...answer.error }).toMatchObject({ words, message: said[0], exitCode: code });
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

test('the help of a group says what its name alone does', async () => {
  for (const name of ['activities', 'policies', 'profiles', 'users', 'wallets']) {
    const { code, out } = await user.types([name, '--help']);
    expect({ name, code, out }).toEqual({
      name,
      code: 0,
      out: like(new RegExp(`\n\`countersign ${name}\` alone is \`countersign ${name} list\`, with its options\\.\n`)),
    });
  }
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
  const recovered = async (text: string, ...more: string[]) => {
    const ends = await user.types(['wallets', 'sign', accounts[0]!.address, '--message', text, ...more]);
    const [r, s, v] = ['r', 's', 'v'].map((name) => new RegExp(`^${name} {2}(\\S+)$`, 'm').exec(ends.out)?.[1]);
    return Signature.from({ r: `0x${r}`, s: `0x${s}`, yParity: v === '01' ? 1 : 0 });
  };
  // As other tools verify it: EIP-191. With a named hash, the bare text.
  expect(verifyMessage('grüße', await recovered('grüße'))).toBe(accounts[0]!.address);
  expect(recoverAddress(keccak256(toUtf8Bytes('grüße')), await recovered('grüße', '--hash', 'keccak256'))).toBe(
    accounts[0]!.address,
  );
  const several = await user.types(['wallets', 'sign', '--wallet', 'Treasury', '--message', 'hello']);
  expect(several).toMatchObject({ code: 2, error: like(/wallet `Treasury` has 2 accounts: use an address/) });
  await user.json(['wallets', 'create', 'Petty cash']);
  const cash = await user.types(['wallets', 'sign', '--wallet', 'petty cash', '--message', 'hello']);
  expect(cash).toMatchObject({ code: 0, out: like(/^Completed sign_raw_payload/) });
  for (const both of [[], [accounts[0]!.address, '--wallet', 'Treasury']]) {
    const { code, error } = await user.types(['wallets', 'sign', ...both, '--message', 'hello']);
    expect([code, error]).toEqual([2, 'error: say what to sign with: an address, or --wallet\n']);
  }
  await user.json(['wallets', 'delete', 'Petty cash', '--without-export', '--yes']);
  expect(await user.types(['wallets', 'delete', 'Treasury'], { input: 'no\n' })).toMatchObject({
    code: 0,
    out: 'Nothing was changed.\n',
  });
  const gone = await user.types(['wallets', 'delete', 'Treasury', '--without-export'], { input: 'y\n' });
  expect(gone).toMatchObject({ code: 0, out: 'Deleted Treasury.\n' });
  expect((await user.types(['wallets'])).out).toBe('No wallets.\n');
});

test('others’ names cannot move the cursor, and only terminals get colours', async () => {
  const { userId } = await coordinator.createUser('Eve\u202e');
  const plain = await user.types(['users']);
  expect(plain.out).toContain('Eve\\u{202e}');
  expect(plain.out).not.toContain('\x1b');
  expect((await user.types(['users'], { colours: true })).out).toMatch(/^\x1b\[1mNAME/);
  expect((await user.types(['users', '--help'], { colours: true })).out).toContain('\x1b[1mOptions:\x1b[');
  await user.json(['users', 'delete', userId, '--yes']);
});
