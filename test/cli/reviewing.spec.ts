import { writeFile } from 'node:fs/promises';
import type { AddressFormat } from '../../src/domain/key-formats.js';
import { fingerprintOf } from '../../src/stamps/fingerprint.js';
import { stampBody } from '../../src/stamps/sign.js';
import { ethTransaction, solanaTransfer, startCoordinator, type TestCoordinator } from '../../src/testing/index.js';
import { scriptOf } from '../../src/transactions/bitcoin-addresses.js';
import { unsignedBitcoin } from '../../packages/analyze/src/trial/unsigned-bitcoin.js';
import { unsignedTron } from '../../packages/analyze/src/trial/unsigned-tron.js';
import type { ActivityEnvelope } from '../../src/wire/envelope.js';
import { until } from '../e2e/until.js';
import { lyingServer } from './lying-server.js';
import { TypingUser } from './typed.js';

let coordinator: TestCoordinator;
let user: TypingUser;
let server: Awaited<ReturnType<typeof lyingServer>>;

interface Asked {
  readonly activity: ActivityEnvelope;
}

const honest = (_name: string, answer: never): unknown => answer;
const like = (pattern: RegExp) => expect.stringMatching(pattern) as string;

/** Alice talks to the coordinator, and Bob, who reviews, to a server in between. */
beforeAll(async () => {
  coordinator = await startCoordinator({ seed: 'reviewing', at: new Date() });
  server = await lyingServer(coordinator.url);
  user = await TypingUser.sitDown();
  await writeFile(user.path('root.json'), JSON.stringify({ ...coordinator.root, apiUrl: coordinator.url }));
  await user.json(['login', '--key-file', 'root.json']);
  for (const [name, address] of [
    ['alice', coordinator.url],
    ['bob', server.url],
  ] as const) {
    const place = ['--address', address, '--organization', coordinator.organizationId];
    const { publicKey } = await user.json<{ publicKey: string }>(['login', '--profile', name, '--new-key', ...place]);
    await user.json(['users', 'create', name, '--public-key', publicKey, '--profile', 'default']);
  }
  await user.json(['profiles', 'use', 'default']);
  await user.json([
    'policies',
    'create',
    'two tag',
    '--condition',
    "activity.kind == 'CREATE_USER_TAG'",
    '--consensus',
    'approvers.count() >= 2',
  ]);
});

afterEach(() => server.lies(honest));

afterAll(async () => {
  await server.close();
  await user.leaves();
  await coordinator.close();
});

/** Asks for a tag, which waits for a second vote. */
async function tagNamed(userTagName: string): Promise<ActivityEnvelope> {
  const words = ['submit', 'create_user_tag', '--set', `userTagName=${userTagName}`, '--profile', 'alice', '--json'];
  const { code, out } = await user.types(words);
  expect(code).toBe(4);
  return (JSON.parse(out) as Asked).activity;
}

const statusOf = async ({ id }: ActivityEnvelope): Promise<string> =>
  (await coordinator.client.query('get_activity', { activityId: id })).activity.status;

describe('an activity that a server in between shows as another', () => {
  let coffee: ActivityEnvelope;
  let treasury: ActivityEnvelope;

  beforeEach(async () => {
    coffee = await tagNamed(`coffee ${Math.random()}`);
    treasury = await tagNamed(`treasury ${Math.random()}`);
  });

  test.each<[string, (one: ActivityEnvelope, other: ActivityEnvelope) => object, RegExp]>([
    [
      'its fingerprint',
      (_one, { fingerprint }) => ({ fingerprint }),
      /its fingerprint is `sha256:\w+`, but the signed body has/,
    ],
    ['its parameters', (_one, { intent }) => ({ intent }), /its parameters are not those of the signed body/],
    ['its type', () => ({ type: 'ACTIVITY_TYPE_DELETE_USER_TAGS' }), /its type is `ACTIVITY_TYPE_DELETE_USER_TAGS`/],
    ['its organization', ({ id }) => ({ organizationId: id }), /its organization is/],
    ['its time', () => ({ timestampMs: '1' }), /its time is `1`/],
    ['the id of another', (one, other) => ({ ...other, id: other.id, type: one.type }), /it has the id/],
    ['no votes', () => ({ votes: [] }), /it does not have what the submitter signed/],
    [
      'a fingerprint and body of its own making',
      ({ votes: [vote] }, { votes: [other], ...rest }) => ({
        fingerprint: rest.fingerprint,
        intent: rest.intent,
        timestampMs: rest.timestampMs,
        votes: [{ ...vote, message: other!.message }],
      }),
      /the stamp of its submitter is not valid/,
    ],
  ])('%s is refused, and nothing is signed', async (_what, changed, error) => {
    server.lies((name, answer) => {
      if (name !== 'get_activity') return answer;
      return { activity: { ...(answer as Asked).activity, ...changed(coffee, treasury) } };
    });
    const before = server.requests.length;
    for (const words of [
      ['activities', 'show'],
      ['approve', '--yes'],
      ['reject', '--yes'],
    ]) {
      const shown = await user.types([...words, coffee.id, '--profile', 'bob']);
      expect({ words, ...shown }).toEqual({ words, code: 1, out: '', error: like(error) });
    }
    expect(server.requests.slice(before).map(({ name }) => name)).toEqual(Array(3).fill('get_activity'));
  });

  test('gets no vote by its id before what has that id was shown', async () => {
    server.lies((name, answer) => (name === 'get_activity' ? { activity: { ...treasury, id: coffee.id } } : answer));
    const refused = await user.types(['approve', coffee.id, '--profile', 'bob'], { input: 'no\n' });
    expect(refused).toMatchObject({ code: 0, out: 'Nothing was changed.\n' });
    expect(refused.error).toContain(`userTagName  treasury`);
    expect(refused.error).toMatch(/Approve this\? \[y\/N\] $/);
    expect(await Promise.all([coffee, treasury].map(statusOf))).toEqual(
      Array(2).fill('ACTIVITY_STATUS_CONSENSUS_NEEDED'),
    );
  });

  test('and an honest one is shown as verified, and approved', async () => {
    const shown = await user.types(['activities', 'show', coffee.id, '--profile', 'bob']);
    expect(shown).toMatchObject({ code: 0, error: '' });
    expect(shown.out).toMatch(/\nSigned +yes: fingerprint, parameters and stamp were verified\n/);
    expect(await user.json(['activities', 'show', coffee.id, '--profile', 'bob'])).toMatchObject({ verified: true });
    const approved = await user.types(['approve', coffee.id, '--profile', 'bob'], { input: 'y\n' });
    expect(approved).toMatchObject({ code: 0, out: like(/^Completed create_user_tag/) });
    expect(await statusOf(coffee)).toBe('ACTIVITY_STATUS_COMPLETED');
  });

  test('with secrets left out is shown as not verified, and approved only by fingerprint or when told so', async () => {
    server.lies((name, answer) => {
      if (name !== 'get_activity') return answer;
      const { activity } = answer as Asked;
      const [vote] = activity.votes;
      return { activity: { ...activity, redacted: true, votes: [{ ...vote, message: '{}', redacted: true }] } };
    });
    const shown = await user.types(['activities', 'show', coffee.id, '--profile', 'bob']);
    expect(shown.out).toMatch(/\nNot verified: secrets are left out of the signed request/);
    expect(shown.out).not.toMatch(/Signed +yes/);
    const refused = await user.types(['approve', coffee.id, '--profile', 'bob', '--yes']);
    expect(refused).toMatchObject({ code: 2, error: like(/or add --unverified\n$/) });
    await user.json(['approve', coffee.id, '--profile', 'bob', '--yes', '--unverified']);
    await user.json(['approve', treasury.fingerprint, '--profile', 'bob']);
  });
});

describe('what an activity would sign', () => {
  const account = (curve: 'SECP256K1' | 'ED25519', path: string, format: string) => ({
    curve: `CURVE_${curve}` as const,
    pathFormat: 'PATH_FORMAT_BIP32' as const,
    path,
    addressFormat: `ADDRESS_FORMAT_${format}` as AddressFormat,
  });
  const [shop, token] = [`0x${'11'.repeat(20)}`, `0x${'22'.repeat(20)}`];
  const bitcoinScript = `5120${'79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798'}`;
  const transfer = `0xa9059cbb${shop.slice(2).padStart(64, '0')}${'7'.padStart(64, '0')}`;
  const [call, payment] = [ethTransaction({ to: token, data: transfer }), ethTransaction({ to: shop, value: 7n })];
  let addresses: Readonly<Record<'ethereum' | 'solana' | 'tron' | 'bitcoin' | 'testnet', string>>;

  beforeAll(async () => {
    const made = await coordinator.createWallet('Treasury', [
      account('SECP256K1', "m/44'/60'/0'/0/0", 'ETHEREUM'),
      account('ED25519', "m/44'/501'/0'/0'", 'SOLANA'),
      account('SECP256K1', "m/44'/195'/0'/0/0", 'TRON'),
      account('SECP256K1', "m/86'/0'/0'/0/0", 'BITCOIN_MAINNET_P2TR'),
      account('SECP256K1', "m/86'/1'/0'/0/0", 'BITCOIN_TESTNET_P2TR'),
    ]);
    const [ethereum, solana, tron, bitcoin, testnet] = made.addresses as readonly string[] & { length: 5 };
    addresses = { ethereum, solana, tron, bitcoin, testnet } as typeof addresses;
    await coordinator.createPolicy({
      policyName: 'two sign',
      condition: "activity.action == 'SIGN'",
      consensus: 'approvers.count() >= 2',
    });
  });

  const psbt = (own: string): string =>
    unsignedBitcoin({
      version: 2,
      lockTime: 0,
      inputs: [{ txId: '33'.repeat(32), vout: 0, sequence: 1, spent: { amount: 9_000n, script: scriptOf(own)! } }],
      outputs: [
        { amount: 5_000n, script: bitcoinScript },
        { amount: 3_000n, script: `0014${'44'.repeat(20)}` },
      ],
    });
  const tron = (): string =>
    unsignedTron({
      refBlockBytes: 'abcd',
      refBlockHash: '55'.repeat(8),
      expiration: 1_700_000_060_000n,
      timestamp: 1_700_000_000_000n,
      data: '',
      feeLimit: 0n,
      permissionId: 0n,
      type: 'TransferContract',
      fields: { owner_address: addresses.tron, to_address: addresses.tron, amount: 7n },
    });
  const solana = (): string =>
    solanaTransfer({ from: addresses.solana, to: 'Vote111111111111111111111111111111111111111', lamports: 7n });
  const typedData = JSON.stringify({
    types: { EIP712Domain: [{ name: 'name', type: 'string' }], Permit: [{ name: 'value', type: 'uint256' }] },
    primaryType: 'Permit',
    domain: { name: 'Dai' },
    message: { value: '7' },
  });

  const transaction = (chain: string, signWith: string, unsignedTransaction: string) =>
    ['sign_transaction', { type: `TRANSACTION_TYPE_${chain}`, signWith, unsignedTransaction }] as const;
  const payload = (signWith: string, of: string | readonly string[], hash: string, encoding = 'HEXADECIMAL') => {
    const how = { signWith, encoding: `PAYLOAD_ENCODING_${encoding}`, hashFunction: `HASH_FUNCTION_${hash}` };
    return typeof of === 'string'
      ? (['sign_raw_payload', { ...how, payload: of }] as const)
      : (['sign_raw_payloads', { ...how, payloads: of }] as const);
  };
  const legacyPreimage = `01000000${'01'}${'33'.repeat(32)}0000000000ffffffff${'01'}8813000000000000${'22'}${bitcoinScript}${'00'.repeat(4)}01000000`;

  /** Alice asks for a signature, which waits for a second vote. */
  async function asked([name, parameters]: readonly [string, object]): Promise<ActivityEnvelope> {
    await writeFile(user.path('parameters.json'), JSON.stringify(parameters));
    const words = ['submit', name, '--file', 'parameters.json', '--profile', 'alice', '--json'];
    const { code, out, error } = await user.types(words);
    expect({ code, error }).toEqual({ code: 4, error: '' });
    return (JSON.parse(out) as Asked).activity;
  }

  const shown = ({ id }: ActivityEnvelope) => user.types(['activities', 'show', id, '--profile', 'bob']);

  /** From now on, everything is described as a payment to the shop. */
  const describesAllAsHarmless = () => {
    const harmless = [{ text: 'One coffee from the shop.', facts: [{ name: 'To', value: 'the shop' }] }];
    server.lies((name, answer) =>
      name === 'get_activity' ? { activity: { ...(answer as Asked).activity, decoded: harmless } } : answer,
    );
  };

  test.each<readonly [string, () => readonly [string, object], RegExp]>([
    ['an Ethereum payment', () => transaction('ETHEREUM', addresses.ethereum, payment), /0\.0{17}7 ETH to 0x1111/],
    ['an Ethereum call', () => transaction('ETHEREUM', addresses.ethereum, call), /A call to 0x2222/],
    ['a Solana transfer', () => transaction('SOLANA', addresses.solana, solana()), /0\.000000007 SOL to Vote1/],
    ['a Tron transfer', () => transaction('TRON', addresses.tron, tron()), /0\.000007 TRX by TransferContract to T/],
    ['a PSBT', () => transaction('BITCOIN', addresses.bitcoin, psbt(addresses.bitcoin)), /0\.00005 BTC to bc1p/],
    [
      'a PSBT of a test network',
      () => transaction('BITCOIN', addresses.testnet, psbt(addresses.testnet)),
      /0\.00005 BTC to tb1p[^]*of a test network, and the signature is valid on every network/,
    ],
    ['an Ethereum payload', () => payload(addresses.ethereum, payment, 'KECCAK256'), /7 ETH to 0x1111/],
    [
      'several payloads',
      () => payload(addresses.ethereum, [payment, call, '00'], 'KECCAK256'),
      /It would sign \(parameters\.payloads\[1\]\)\n {2}A call to 0x2222/,
    ],
    ['a Tron payload', () => payload(addresses.tron, tron(), 'SHA256'), /0\.000007 TRX by TransferContract/],
    ['a Bitcoin payload', () => payload(addresses.ethereum, legacyPreimage, 'SHA256'), /0\.00005 BTC to bc1p/],
    ['a Solana message', () => payload(addresses.solana, solana().slice(130), 'NOT_APPLICABLE'), /SOL to Vote1/],
    ['typed data', () => payload(addresses.ethereum, typedData, 'NO_OP', 'EIP712'), /message\.value +7/],
    [
      'an authorization',
      () =>
        payload(
          addresses.ethereum,
          JSON.stringify({ address: token, chainId: 1, nonce: 0 }),
          'NO_OP',
          'EIP7702_AUTHORIZATION',
        ),
      /lets the contract 0x2222\w+ act as this account on chain 1/,
    ],
    ['a digest', () => payload(addresses.ethereum, 'ab'.repeat(32), 'NO_OP'), /a digest does not show/],
    ['a text', () => payload(addresses.solana, 'a text', 'NOT_APPLICABLE', 'TEXT_UTF8'), /A text of 6 characters/],
  ])('%s is decoded here, as the coordinator would, whatever the server says', async (_what, make, expected) => {
    const activity = await asked(make());
    const found = await user.json<{ activity: ActivityEnvelope; decoded: readonly object[] }>([
      'activities',
      'show',
      activity.id,
      '--profile',
      'bob',
    ]);
    expect(found.decoded).toEqual(found.activity.decoded!.map((one) => ({ ...one, byInterfaces: [] })));
    const honest = await shown(activity);
    expect(honest.out).toMatch(/\nIt would sign/);
    expect(honest.out).toMatch(expected);
    describesAllAsHarmless();
    expect(await shown(activity)).toEqual(honest);
    const asks = await user.types(['approve', activity.id, '--profile', 'bob'], { input: 'no\n' });
    expect(asks.error).toMatch(expected);
    expect(asks.error).not.toMatch(/coffee/);
  });

  test('what only an uploaded interface says is marked as not verified', async () => {
    const abi = (argument: string) => {
      const inputs = [
        { name: argument, type: 'address' },
        { name: 'amount', type: 'uint256' },
      ];
      return JSON.stringify([{ type: 'function', name: 'transfer', inputs, outputs: [], stateMutability: 'payable' }]);
    };
    await coordinator.client.submit('ACTIVITY_TYPE_CREATE_SMART_CONTRACT_INTERFACE', {
      smartContractAddress: token.toUpperCase().replace('0X', '0x'),
      smartContractInterface: abi('receiver'),
      type: 'SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM',
      label: 'token',
    });
    const activity = await asked(transaction('ETHEREUM', addresses.ethereum, call));
    const title = '  By an interface that the coordinator returned, not verified\n';
    const [verified, byInterface] = (await shown(activity)).out.split(title);
    expect(verified).toMatch(/\n {2}Function +0xa9059cbb, not decoded\n/);
    expect(byInterface).toMatch(
      /^ {4}Function +transfer\n {4}argument.receiver {2}0x1111\w+\n {4}argument.amount +7\n/,
    );
    server.lies((name, answer) => {
      if (name !== 'list_smart_contract_interfaces') return answer;
      const { smartContractInterfaces: all } = answer as { smartContractInterfaces: readonly object[] };
      return { smartContractInterfaces: all.map((one) => ({ ...one, smartContractInterface: abi('mint') })) };
    });
    const lied = (await shown(activity)).out.split(title);
    expect(lied[0]).toBe(verified);
    expect(lied[1]).toMatch(/^ {4}Function +transfer\n {4}argument.mint/);
  });

  test('of a request that is not verified is what the coordinator says, and is called that', async () => {
    const activity = await asked(transaction('ETHEREUM', addresses.ethereum, payment));
    server.lies((name, answer) => {
      if (name !== 'get_activity') return answer;
      const [vote] = activity.votes;
      return { activity: { ...activity, redacted: true, votes: [{ ...vote, message: '{}', redacted: true }] } };
    });
    const { out } = await shown(activity);
    expect(out).toMatch(/\nAccording to the coordinator, not verified\n {2}0\.0{17}7 ETH to 0x1111/);
    expect(out).not.toContain('It would sign');
  });

  test.each<readonly [string, unknown]>([
    ['nothing', {}],
    ['a list', []],
    ['other types of values', { type: 'TRANSACTION_TYPE_ETHEREUM', signWith: 7, unsignedTransaction: { length: 1e9 } }],
    ['an unknown chain', { type: 'TRANSACTION_TYPE_TEMPO', signWith: 'x', unsignedTransaction: '00' }],
    ['lists in lists', { type: 'TRANSACTION_TYPE_ETHEREUM', signWith: 'x', unsignedTransaction: 'c1'.repeat(900_000) }],
    [
      'much of a PSBT',
      { type: 'TRANSACTION_TYPE_BITCOIN', signWith: 'x', unsignedTransaction: `70736274ff${'01'.repeat(900_000)}` },
    ],
    ['more than fits', { type: 'TRANSACTION_TYPE_SOLANA', signWith: 'x', unsignedTransaction: '0'.repeat(5_000_000) }],
  ])('a signed body with %s is shown as one that cannot be decoded', async (_what, parameters) => {
    const { id } = await tagNamed(`forged ${Math.random()}`);
    const type = 'ACTIVITY_TYPE_SIGN_TRANSACTION_V2';
    const { organizationId } = coordinator;
    const message = JSON.stringify({ type, organizationId, timestampMs: '1', parameters });
    const { headerValue } = stampBody(message, coordinator.newKey());
    const stamp = JSON.parse(Buffer.from(headerValue, 'base64url').toString()) as object;
    server.lies((name, answer) => {
      if (name !== 'get_activity') return answer;
      const { activity } = answer as Asked;
      return {
        activity: {
          ...activity,
          type,
          timestampMs: '1',
          fingerprint: fingerprintOf(message),
          intent: { signTransactionIntentV2: parameters },
          votes: [{ ...activity.votes[0], ...stamp, message }],
        },
      };
    });
    const before = Date.now();
    const { code, out, error } = await user.types(['activities', 'show', id, '--profile', 'bob']);
    if (Array.isArray(parameters)) expect([code, error]).toEqual([1, like(/the signed body has no parameters/)]);
    else expect([code, out]).toEqual([0, like(/\nIt would sign\n {2}Something that could not be decoded\.\n {2}\S/)]);
    expect(Date.now() - before).toBeLessThan(10_000);
  });
});

test('a change is shown as it is now and as it would be, with the names of what it changes', async () => {
  const users = (await coordinator.client.query('list_users')).users;
  const [alice] = users.filter(({ userName }) => userName === 'alice');
  const { policies } = await coordinator.client.query('list_policies');
  const { policyId } = policies.find(({ policyName }) => policyName === 'two tag')!;
  const two = ['--condition', "activity.resource == 'POLICY' || activity.kind == 'UPDATE_USER_TAG'"];
  await user.json(['policies', 'create', 'two change', ...two, '--consensus', 'approvers.count() >= 2']);
  const shown = async (words: readonly string[]) => {
    const { out } = await user.types(['submit', ...words, '--profile', 'alice', '--json']);
    const { id } = (JSON.parse(out) as Asked).activity;
    return (await user.types(['activities', 'show', id, '--profile', 'bob'])).out;
  };
  const policy = ['update_policy', '--set', `policyId=${policyId}`, '--set', 'policyConsensus=approvers.count() >= 1'];
  expect(await shown([...policy, '--set', 'policyNotes=one is enough'])).toContain(
    [
      'According to the coordinator, not verified, it would change',
      `  Change policy "two tag" (${policyId}).`,
      '  consensus  - "approvers.count() >= 2"',
      '             + "approvers.count() >= 1"',
      '  notes      + "one is enough"',
      '',
    ].join('\n'),
  );
  const tag = await coordinator.createTag('payer');
  expect(
    await shown(['update_user_tag', '--set', `userTagId=${tag}`, '--set', `addUserIds=["${alice!.userId}"]`]),
  ).toContain(`\n  Change user "alice" (${alice!.userId}).\n  tag  + "payer" (${tag})\n`);
});

test('a denial says how to explain it, by an id and by nothing else', async () => {
  const denied = ['wallets', 'create', 'Savings', '--profile', 'bob'];
  const { code, error } = await user.types(denied);
  const [, command] = /\n {2}to see why: countersign (activities explain [-0-9a-f]{36})\n$/.exec(error)!;
  const explained = async () => user.types([...command!.split(' '), '--profile', 'bob']);
  await until('the denial is listed', async () => (await explained()).code === 0);
  expect([code, (await explained()).out]).toEqual([3, like(/^Denied: no policy allows it\.\nAt revision \d+, /)]);
  const details = [{ '@type': 'x', policyEvaluations: [], denialId: 'x; touch pwned' }];
  server.responds((_request, response) => {
    response
      .writeHead(403, { 'content-type': 'application/json' })
      .end(JSON.stringify({ code: 7, message: 'no', details }));
  });
  expect((await user.types(denied)).error).toBe('error: no\n');
});

test('a server that responds to a submit or a vote with another activity is not believed, and nothing is printed to be copied', async () => {
  const [one, other] = [await tagNamed('one'), await tagNamed('other')];
  for (const fingerprint of [other.fingerprint, 'x; touch pwned', undefined]) {
    server.lies((name, answer) =>
      /^(?:create_user_tag|approve_activity)$/.test(name)
        ? { activity: { ...(answer as Asked).activity, fingerprint } }
        : answer,
    );
    const submitted = await user.types([
      'submit',
      'create_user_tag',
      '--set',
      `userTagName=third ${fingerprint}`,
      '--profile',
      'bob',
    ]);
    expect(submitted).toEqual({ code: 1, out: '', error: like(/^error: the response is about another activity/) });
  }
  server.lies((name, answer) => (name === 'approve_activity' ? { activity: other } : answer));
  const voted = await user.types(['approve', one.fingerprint, '--profile', 'bob']);
  expect(voted).toEqual({ code: 1, out: '', error: like(/the response is about another activity/) });
});

test('a stamp is sent to no other address', async () => {
  const thief = await lyingServer(coordinator.url);
  for (const status of [301, 302, 303, 307, 308]) {
    server.responds((request, response) => {
      response.writeHead(status, { location: `${thief.url}${request.url}` }).end();
    });
    const { code, out, error } = await user.types(['whoami', '--profile', 'bob']);
    expect([code, out, error]).toEqual([
      1,
      '',
      like(/redirects to http:\/\/127\.0\.0\.1:\d+\/\S+, and stamps are sent to no other/),
    ]);
  }
  expect(thief.requests).toEqual([]);
  await thief.close();
});

describe('what a server sends cannot control the terminal', () => {
  const evil = 'a\x1b]0;title\x07\x1b[8mb\u009b2J\u202ec\u2066d\u00ade\u{e0041}\r\x7f';
  // eslint would not see these in a class of characters.
  const control = /[^\n\P{Cc}]|[\p{Cf}\p{Zl}\p{Zp}]/u;

  /** Every text of a value becomes another, and so does every name. */
  function everywhere(value: unknown): unknown {
    if (typeof value === 'string') return `${value}${evil}`;
    if (Array.isArray(value)) return value.map(everywhere);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).flatMap(([name, member]) => [
        [name, everywhere(member)],
        [`${name}${evil}`, 'x'],
      ]),
    );
  }

  test.each([
    ['whoami'],
    ['users'],
    ['policies'],
    ['policies', 'lint'],
    ['activities'],
    ['query', 'list_users'],
    ['query', 'list_activities'],
    ['policies', 'create', 'x', '--condition', "activity.kind == 'X'"],
    ['submit', 'create_user_tag', '--set', 'userTagName=evil'],
  ])('%s %s %s', async (...words) => {
    server.lies((_name, answer) => everywhere(answer));
    for (const more of [[], ['--json']]) {
      for (const colours of [false, true]) {
        const { out, error } = await user.types([...words, ...more, '--profile', 'bob'], { colours });
        const styles = colours ? /\p{Cc}\[(?:1|2|22|3\d)m/gu : /(?!)/g;
        expect({ words, more, found: control.exec(`${out}${error}`.replace(styles, '')) }).toEqual({
          words,
          more,
          found: null,
        });
        if (more.length > 0) JSON.parse(out || error);
      }
    }
  });

  test('names of members in parameters and the reason without a proof', async () => {
    const { id } = await tagNamed(`evil ${Math.random()}`);
    server.lies((name, answer) => (name === 'get_policy_evaluations' ? everywhere(answer) : answer));
    const shown = await user.types(['activities', 'show', id, '--profile', 'bob']);
    expect([control.exec(shown.out), shown.error]).toEqual([null, '']);
    server.responds((_request, response) => response.end(JSON.stringify({ notExplained: evil })));
    const explained = await user.types(['activities', 'explain', id, '--profile', 'bob']);
    expect([control.exec(explained.out), explained.error]).toEqual([null, '']);
  });

  test('keeps JSON as it was', async () => {
    server.lies((_name, answer) => everywhere(answer));
    const { username } = await user.json<{ username: string }>(['query', 'whoami', '--profile', 'bob']);
    expect(username).toBe(`bob${evil}`);
  });
});

test('pages of a list end, though the server always has one more', async () => {
  let pages = 0;
  server.lies((_name, answer) => answer);
  server.responds((_request, response) => {
    const id = `page ${(pages += 1)}`;
    response.end(JSON.stringify({ activities: [{ id }], users: [{ userId: 'same' }], userTags: [], hasMore: true }));
  });
  const waiting = await user.types(['activities', '--waiting-for-me', '--profile', 'bob']);
  expect([waiting.code, waiting.error, pages]).toEqual([
    1,
    like(/pages of list_activities do not end: more than 1000/),
    1_000,
  ]);
  const users = await user.types(['users', '--profile', 'bob']);
  expect([users.code, users.error]).toEqual([1, like(/pages of list_users do not end: element same comes twice/)]);
});
