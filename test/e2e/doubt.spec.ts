import { serializeTransaction, type Hex } from 'viem';
import type { ActivityEnvelope } from '../../src/wire/envelope.js';
import { startCoordinator, type StampingClient, type TestCoordinator, type TestUser } from '../../src/testing/index.js';
import { denial, objectWith, refusal, textLike } from './exchange.js';

/*
 * Every doubt goes against the request (security rule R1): a DENY applies to what it cannot read, an ALLOW does not, at
 * the submit and again at each vote.
 */

let coordinator: TestCoordinator;
let alice: TestUser;
let bob: TestUser;
let ethereum: string;
let solana: string;
let taproot: string;

beforeAll(async () => {
  coordinator = await startCoordinator();
  alice = await coordinator.createUser('Alice');
  bob = await coordinator.createUser('Bob', { userEmail: 'bob@example.com' });
  [ethereum, solana, taproot] = (await newWallet('Treasury')).addresses;
});

afterAll(() => coordinator.close());

/** Policies of one test; they go with it. */
const policyIds: string[] = [];
let policies = 0;

afterEach(async () => {
  if (policyIds.length > 0)
    await coordinator.client.submit('ACTIVITY_TYPE_DELETE_POLICIES', { policyIds: [...policyIds] });
  policyIds.length = 0;
});

async function policy(
  effect: 'ALLOW' | 'DENY',
  clauses: { readonly condition?: string; readonly consensus?: string; readonly time?: string },
): Promise<string> {
  const { result } = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_POLICY_V3', {
    policyName: `policy ${(policies += 1)}`,
    effect: `EFFECT_${effect}`,
    notes: '',
    ...clauses,
  });
  const { policyId } = result['createPolicyResult'] as { policyId: string };
  policyIds.push(policyId);
  return policyId;
}

async function newWallet(walletName: string) {
  const account = (curve: string, path: string, addressFormat: string) => ({
    curve: `CURVE_${curve}`,
    pathFormat: 'PATH_FORMAT_BIP32',
    path,
    addressFormat: `ADDRESS_FORMAT_${addressFormat}`,
  });
  const { result } = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_WALLET', {
    walletName,
    accounts: [
      account('SECP256K1', "m/44'/60'/0'/0/0", 'ETHEREUM'),
      account('ED25519', "m/44'/501'/0'/0'", 'SOLANA'),
      account('SECP256K1', "m/86'/0'/0'/0/0", 'BITCOIN_MAINNET_P2TR'),
    ],
  });
  return result['createWalletResult'] as { walletId: string; addresses: [string, string, string] };
}

const good = `0x${'11'.repeat(20)}`;
const evil = `0x${'ee'.repeat(20)}`;

interface Domain {
  readonly verifyingContract?: string;
  readonly chainId?: number;
}

/** The JSON of typed data that says as little as it can. */
function typed(domain: Domain, items: readonly number[] = [1]): string {
  return JSON.stringify({
    types: {
      EIP712Domain: [
        ...('chainId' in domain ? [{ name: 'chainId', type: 'uint256' }] : []),
        ...('verifyingContract' in domain ? [{ name: 'verifyingContract', type: 'address' }] : []),
      ],
      Order: [{ name: 'items', type: 'uint256[]' }],
    },
    primaryType: 'Order',
    domain,
    message: { items },
  });
}

const signTyped = (client: StampingClient, ...payloads: readonly string[]) =>
  client.submit('ACTIVITY_TYPE_SIGN_RAW_PAYLOADS', {
    signWith: ethereum,
    payloads: [...payloads],
    encoding: 'PAYLOAD_ENCODING_EIP712',
    hashFunction: 'HASH_FUNCTION_NO_OP',
  });

const signDigest = (client: StampingClient, signWith: string) =>
  client.submit('ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2', {
    signWith,
    payload: 'ab'.repeat(32),
    encoding: 'PAYLOAD_ENCODING_HEXADECIMAL',
    hashFunction: signWith === solana ? 'HASH_FUNCTION_NOT_APPLICABLE' : 'HASH_FUNCTION_NO_OP',
  });

const sendWei = (client: StampingClient, value: bigint) =>
  client.submit('ACTIVITY_TYPE_SIGN_TRANSACTION_V2', {
    signWith: ethereum,
    type: 'TRANSACTION_TYPE_ETHEREUM',
    unsignedTransaction: serializeTransaction({
      type: 'eip1559',
      chainId: 1,
      to: good as Hex,
      value,
      gas: 21_000n,
      maxFeePerGas: 1n,
      maxPriorityFeePerGas: 1n,
    }).slice(2),
  });

const signing = "activity.resource == 'PRIVATE_KEY' && activity.action == 'SIGN'";
const completed = { status: 'ACTIVITY_STATUS_COMPLETED' };
const waits = { status: 'ACTIVITY_STATUS_CONSENSUS_NEEDED' };
const read = async ({ id }: ActivityEnvelope) =>
  (await coordinator.client.query<{ activity: ActivityEnvelope }>('get_activity', { activityId: id })).activity;

/** What a policy said in a refusal, under its name. */
async function saidBy(policyId: string, attempt: Promise<unknown>) {
  const refused = await refusal(attempt);
  expect(refused).toMatchObject({ status: 403, code: 7, turnkeyErrorCode: 'REQUEST_NOT_AUTHORIZED' });
  const said = denial(refused).policyEvaluations!.filter((one) => one.policyId === policyId);
  return said.map(({ policyName, ...rest }) => {
    expect(policyName).toMatch(/^policy \d+$/);
    return rest;
  });
}

describe('a DENY denies what it cannot read:', () => {
  beforeEach(() => policy('ALLOW', { condition: signing }));

  test('a field that the request lacks', async () => {
    const deny = await policy('DENY', { condition: 'eth.eip_712.domain.chain_id != 1' });
    expect(await signTyped(alice.client, typed({ chainId: 1 }))).toMatchObject(completed);
    expect(await saidBy(deny, signTyped(alice.client, typed({ verifyingContract: good })))).toEqual([
      {
        policyId: deny,
        outcome: 'OUTCOME_DENY_EXPLICIT',
        doubt: 'unreadable',
        error: 'missing field: eth.eip_712.domain.chain_id (line 1, column 20)',
        clause: { name: 'condition', outcome: 'unreadable', text: 'eth.eip_712.domain.chain_id != 1' },
      },
    ]);
  });

  test('an amount beyond the range of its type', async () => {
    const deny = await policy('DENY', { condition: 'eth.tx.value > 1000' });
    expect(await sendWei(alice.client, 1_000n)).toMatchObject(completed);
    for (const value of [1_001n, 2n ** 127n - 1n, 2n ** 127n, 2n ** 256n - 1n]) {
      expect(await saidBy(deny, sendWei(alice.client, value))).toEqual([
        objectWith({ outcome: 'OUTCOME_DENY_EXPLICIT' }),
      ]);
    }
  });

  test('a list so long that it takes too many steps', async () => {
    const deny = await policy('DENY', { condition: "eth.eip_712.message['items'].any(item, item == 666)" });
    const padding = Array.from({ length: 40_000 }, () => 1);
    expect(await signTyped(alice.client, typed({}, padding.slice(0, 1_000)))).toMatchObject(completed);
    for (const items of [[...padding, 666], [666, ...padding], padding]) {
      expect(await saidBy(deny, signTyped(alice.client, typed({}, items)))).toEqual([
        objectWith({
          outcome: 'OUTCOME_DENY_EXPLICIT',
          doubt: 'unreadable',
          error: textLike('more than 100000 steps'),
        }),
      ]);
    }
  });

  test('typed data that is sent as a digest, where the key could sign such data', async () => {
    const deny = await policy('DENY', { condition: `eth.eip_712.domain.verifying_contract == '${evil}'` });
    expect(await saidBy(deny, signDigest(alice.client, ethereum))).toEqual([
      objectWith({ doubt: 'unreadable', error: textLike('a digest does not show what it is') }),
    ]);
    expect(await signDigest(alice.client, solana)).toMatchObject(completed);
    expect(await signDigest(alice.client, taproot)).toMatchObject(completed);
  });

  test('not what such a request never has', async () => {
    await policy('DENY', { condition: "private_key.id == 'x' || eth.eip_712.primary_type == 'Order'" });
    await policy('DENY', { condition: "solana.tx.program_keys.contains('x') || activity.params.wallet_id == 'x'" });
    expect(await sendWei(alice.client, 1n)).toMatchObject(completed);
  });

  test('each of several payloads by itself', async () => {
    const text = `eth.eip_712.domain.verifying_contract == '${evil}'`;
    const deny = await policy('DENY', { condition: text });
    const [one, other, bad] = [
      typed({ verifyingContract: good }),
      typed({ verifyingContract: good }, [2]),
      typed({ verifyingContract: evil }),
    ];
    expect(await signTyped(alice.client, one, other)).toMatchObject(completed);
    expect(await saidBy(deny, signTyped(alice.client, one, other, bad))).toEqual([
      {
        policyId: deny,
        outcome: 'OUTCOME_DENY_IMPLICIT',
        payload: 'parameters.payloads[0]',
        clause: { name: 'condition', outcome: 'false', text },
      },
      {
        policyId: deny,
        outcome: 'OUTCOME_DENY_EXPLICIT',
        payload: 'parameters.payloads[2]',
        clause: { name: 'condition', outcome: 'true', text },
      },
    ]);
    // The root quorum stands above denials, for payloads that differ as for any other.
    expect(await signTyped(coordinator.client, one, bad)).toMatchObject(completed);
  });
});

test('each of several payloads needs an ALLOW, and any policy may give it', async () => {
  const [one, other] = [typed({ chainId: 1 }), typed({ chainId: 5 })];
  const first = await policy('ALLOW', { condition: `${signing} && eth.eip_712.domain.chain_id == 1` });
  expect(await saidBy(first, signTyped(alice.client, one, other))).toEqual([
    { policyId: first, outcome: 'OUTCOME_ALLOW', payload: 'parameters.payloads[0]' },
    {
      policyId: first,
      outcome: 'OUTCOME_DENY_IMPLICIT',
      payload: 'parameters.payloads[1]',
      clause: { name: 'condition', outcome: 'false', text: 'eth.eip_712.domain.chain_id == 1' },
    },
  ]);
  await policy('ALLOW', {
    condition: `${signing} && eth.eip_712.domain.chain_id == 5`,
    consensus: 'approvers.count() >= 2',
  });
  const asked = await signTyped(alice.client, one, other);
  expect(asked).toMatchObject(waits);
  await coordinator.client.submit('ACTIVITY_TYPE_DELETE_POLICY', { policyId: first });
  policyIds.splice(policyIds.indexOf(first), 1);
  expect(await refusal(bob.client.approve(asked.fingerprint))).toMatchObject({ status: 403 });
  await policy('ALLOW', { condition: `${signing} && eth.eip_712.domain.chain_id == 1` });
  expect(await bob.client.approve(asked.fingerprint)).toMatchObject(completed);
});

describe('at a vote as at the submit', () => {
  test('a DENY that came meanwhile denies one of several payloads', async () => {
    await policy('ALLOW', { condition: signing, consensus: 'approvers.count() >= 2' });
    const asked = await signTyped(alice.client, typed({ verifyingContract: good }), typed({ verifyingContract: evil }));
    expect(asked).toMatchObject(waits);
    const deny = await policy('DENY', { condition: `eth.eip_712.domain.verifying_contract == '${evil}'` });
    expect(await saidBy(deny, bob.client.approve(asked.fingerprint))).toContainEqual(
      objectWith({ outcome: 'OUTCOME_DENY_EXPLICIT', payload: 'parameters.payloads[1]' }),
    );
    expect(await read(asked)).toMatchObject({ ...waits, votes: [{ userId: alice.userId }] });
    await coordinator.client.submit('ACTIVITY_TYPE_DELETE_POLICY', { policyId: policyIds.pop()! });
    expect(await bob.client.approve(asked.fingerprint)).toMatchObject(completed);
  });

  test('a DENY that came meanwhile denies what is not there any more', async () => {
    const { walletId: spare } = await newWallet('Spare');
    await policy('ALLOW', { condition: "activity.resource == 'WALLET'", consensus: 'approvers.count() >= 2' });
    const asked = await alice.client.submit('ACTIVITY_TYPE_UPDATE_WALLET', { walletId: spare, walletName: 'Mine' });
    expect(asked).toMatchObject(waits);
    await coordinator.client.submit('ACTIVITY_TYPE_DELETE_WALLETS', { walletIds: [spare], deleteWithoutExport: true });
    const deny = await policy('DENY', { condition: "wallet.label == 'Treasury'" });
    expect(await saidBy(deny, bob.client.approve(asked.fingerprint))).toEqual([
      objectWith({
        outcome: 'OUTCOME_DENY_EXPLICIT',
        doubt: 'unreadable',
        error: textLike(/wallet cannot be read.*no wallet/),
      }),
    ]);
    expect(await alice.client.reject(asked.fingerprint)).toMatchObject({ status: 'ACTIVITY_STATUS_REJECTED' });
  });

  test('a vote that completes the consensus of a DENY is refused, and leaves the activity open', async () => {
    const carol = await coordinator.createUser('Carol');
    await policy('ALLOW', { condition: signing, consensus: 'approvers.count() >= 2' });
    const deny = await policy('DENY', {
      condition: signing,
      consensus: `approvers.any(user, user.id == '${bob.userId}')`,
    });
    const asked = await signTyped(alice.client, typed({}));
    expect(asked).toMatchObject(waits);
    expect(await saidBy(deny, bob.client.approve(asked.fingerprint))).toEqual([
      {
        policyId: deny,
        outcome: 'OUTCOME_DENY_EXPLICIT',
        clause: {
          name: 'consensus',
          outcome: 'true',
          text: `approvers.any(user, user.id == '${bob.userId}')`,
        },
      },
    ]);
    expect((await read(asked)).votes).toHaveLength(1);
    expect(await carol.client.approve(asked.fingerprint)).toMatchObject(completed);
  });
});

describe('own credentials', () => {
  const addKey = (user: TestUser) => {
    const { publicKey, curve: curveType } = coordinator.newKey();
    return user.client.submit('ACTIVITY_TYPE_CREATE_API_KEYS_V2', {
      userId: user.userId,
      apiKeys: [{ apiKeyName: `key ${publicKey}`, publicKey, curveType }],
    });
  };

  test('an ALLOW whose condition is in doubt speaks to them, and one that is about something else does not', async () => {
    await policy('ALLOW', { condition: "activity.params.hash_function == 'HASH_FUNCTION_NO_OP'" });
    await policy('ALLOW', { condition: "activity.kind == 'CREATE_USERS' && requester.email == 'x'" });
    expect(await addKey(alice)).toMatchObject(completed);
    const speaking = await policy('ALLOW', {
      condition: "activity.kind == 'CREATE_API_KEYS' && requester.email == 'alice@example.com'",
    });
    expect(await saidBy(speaking, addKey(alice))).toEqual([
      objectWith({ outcome: 'OUTCOME_ERROR', doubt: 'unreadable', error: textLike('missing field: requester.email') }),
    ]);
  });
});

describe('the requester', () => {
  test('is who submitted, at every vote: somebody else must approve', async () => {
    await policy('ALLOW', {
      condition: signing,
      consensus: 'approvers.any(user, user.id != requester.id)',
    });
    const asked = await signTyped(alice.client, typed({}));
    expect(asked).toMatchObject(waits);
    expect(await refusal(alice.client.approve(asked.fingerprint))).toMatchObject({ status: 400 });
    const canApprove = async ({ client }: TestUser) =>
      (await client.query<{ activity: ActivityEnvelope }>('get_activity', { activityId: asked.id })).activity
        .canApprove;
    expect([await canApprove(alice), await canApprove(bob)]).toEqual([false, true]);
    expect(await bob.client.approve(asked.fingerprint)).toMatchObject(completed);
  });

  test('can be spoken of in a condition', async () => {
    await policy('ALLOW', { condition: `${signing} && requester.email == 'bob@example.com'` });
    expect(await signTyped(bob.client, typed({}))).toMatchObject(completed);
    expect(await refusal(signTyped(alice.client, typed({})))).toMatchObject({ status: 403 });
  });

  test('cannot be read any more once deleted', async () => {
    const dave = await coordinator.createUser('Dave');
    await policy('ALLOW', {
      condition: signing,
      consensus: 'approvers.filter(user, user.id != requester.id).count() >= 2',
    });
    const asked = await signTyped(dave.client, typed({}));
    expect(asked).toMatchObject(waits);
    await coordinator.client.submit('ACTIVITY_TYPE_DELETE_USERS', { userIds: [dave.userId] });
    expect(await refusal(bob.client.approve(asked.fingerprint))).toMatchObject({ status: 403 });
  });
});

describe('time', () => {
  test('does not run backwards: what has expired stays so, and nothing is decided by a clock set back', async () => {
    const own = await startCoordinator();
    try {
      const short = own.newKey();
      await own.client.submit('ACTIVITY_TYPE_CREATE_API_KEYS_V2', {
        userId: own.root.userId,
        apiKeys: [
          { apiKeyName: 'short', publicKey: short.publicKey, curveType: short.curve, expirationSeconds: '600' },
        ],
      });
      const client = own.clientFor(short);
      expect(await client.query('whoami')).toMatchObject({ userId: own.root.userId });
      own.clock.advance('2h');
      expect(await refusal(client.query('whoami'))).toMatchObject({ status: 401 });
      await own.client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'later' });
      const before = await own.events();

      own.clock.turnBack('3h');
      const isBehind = { status: 503, code: 14, message: textLike(/is 10800 s behind the last event of organization/) };
      expect(await refusal(client.query('whoami'))).toMatchObject(isBehind);
      expect(
        await refusal(client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'by an expired key' })),
      ).toMatchObject(isBehind);
      expect(await own.events()).toEqual(before);

      // Clocks may differ a little: then the stream's time counts.
      own.clock.advance(3 * 3_600_000 - 5_000);
      expect(await refusal(client.query('whoami'))).toMatchObject({ status: 401 });
      await own.client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: 'a little behind' });
      const times = (await own.events()).map(({ metadata }) => (metadata as { at: number }).at);
      expect(times).toEqual([...times].sort((one, other) => one - other));

      // A stream that is folded anew has the same last event.
      own.clock.turnBack('1h');
      const again = await own.restart();
      expect(await refusal(again.clientFor(short).query('whoami'))).toMatchObject({ status: 503 });
      own.clock.advance('2h');
      expect(await again.client.query('whoami')).toMatchObject({ userId: own.root.userId });
      await again.close();
    } finally {
      await own.close().catch(() => undefined);
    }
  });
});

test('a sub-organization whose last event lies in the future waits for that time; its parent goes on', async () => {
  const own = await startCoordinator();
  try {
    const key = own.newKey();
    const { result } = await own.client.submit('ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V7', {
      subOrganizationName: 'Child',
      rootQuorumThreshold: 1,
      rootUsers: [
        {
          userName: 'Ann',
          apiKeys: [{ apiKeyName: 'key', publicKey: key.publicKey, curveType: key.curve }],
          authenticators: [],
          oauthProviders: [],
        },
      ],
    });
    const { subOrganizationId } = Object.values(result)[0] as { subOrganizationId: string };
    const childClient = () => own.clientFor(key, subOrganizationId);
    const tagged = (client: StampingClient, userTagName: string) =>
      client.submit('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName });
    own.clock.advance('2h');
    await tagged(childClient(), 'ahead');
    own.clock.turnBack('2h');
    const waits = { status: 503, message: textLike(/is 7200 s behind the last event of organization/) };
    expect(await refusal(tagged(childClient(), 'behind'))).toMatchObject(waits);
    expect(await refusal(childClient().query('whoami'))).toMatchObject(waits);
    await tagged(own.client, 'of the parent');
    expect(await own.client.query('whoami')).toMatchObject({ userId: own.root.userId });
    own.clock.advance('2h');
    await tagged(childClient(), 'in time');
  } finally {
    await own.close();
  }
});

test('a parent does nothing in its sub-organization that would have to wait for votes', async () => {
  const { result } = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V7', {
    subOrganizationName: 'Child',
    rootQuorumThreshold: 1,
    rootUsers: [
      {
        userName: 'Owner',
        userEmail: 'owner@example.com',
        apiKeys: [{ apiKeyName: 'key', publicKey: coordinator.newKey().publicKey, curveType: 'API_KEY_CURVE_P256' }],
        authenticators: [],
        oauthProviders: [],
      },
    ],
  });
  const { subOrganizationId } = result['createSubOrganizationResultV7'] as { subOrganizationId: string };
  const mail = () =>
    coordinator.clientFor(alice.key, subOrganizationId).submit('ACTIVITY_TYPE_EMAIL_AUTH_V3', {
      email: 'owner@example.com',
      targetPublicKey: coordinator.newKey().publicKey,
      emailCustomization: { appName: 'Sample' },
    });
  const stream = `organization-${subOrganizationId}`;
  const before = await coordinator.events(stream);
  const allow = await policy('ALLOW', {
    condition: "activity.kind == 'EMAIL_AUTH'",
    consensus: 'approvers.count() >= 2',
  });
  expect(await saidBy(allow, mail())).toEqual([
    {
      policyId: allow,
      outcome: 'OUTCOME_REQUIRES_CONSENSUS',
      clause: { name: 'consensus', outcome: 'false', text: 'approvers.count() >= 2' },
    },
  ]);
  expect(await coordinator.events(stream)).toEqual(before);
});
