import { startCoordinator, type TestCoordinator, type TestUser } from '../../src/testing/index.js';
import { refusal } from './exchange.js';

/* What is the same under another name, or with a number that stands for all: a policy on one of them reaches it. */

let coordinator: TestCoordinator;
let signer: TestUser;
let address: string;
let walletId: string;

const account = (addressFormat: string) => ({
  curve: 'CURVE_SECP256K1' as const,
  pathFormat: 'PATH_FORMAT_BIP32' as const,
  path: "m/44'/60'/0'/0/0",
  addressFormat: `ADDRESS_FORMAT_${addressFormat}` as 'ADDRESS_FORMAT_ETHEREUM' | 'ADDRESS_FORMAT_COMPRESSED',
});

beforeAll(async () => {
  coordinator = await startCoordinator();
  signer = await coordinator.createUser('Signer');
  await coordinator.createPolicy({
    policyName: 'signs, and keeps accounts',
    condition: "activity.action == 'SIGN' || activity.kind in ['CREATE_WALLET_ACCOUNTS', 'DELETE_WALLET_ACCOUNTS']",
    consensus: `approvers.any(user, user.id == '${signer.userId}')`,
  });
  const wallet = await coordinator.createWallet('W', [account('ETHEREUM')]);
  ({ walletId } = wallet);
  address = wallet.addresses[0]!;
});
afterAll(() => coordinator.close());

/** The status of what a policy denies or not. */
async function statusOf(request: Promise<{ readonly status: string }>): Promise<string> {
  try {
    return (await request).status;
  } catch (error) {
    const { status } = error as { readonly status?: number };
    if (status !== 403) throw error;
    return 'DENIED';
  }
}

const signs = (signWith: string, payload: string, encoding: string) =>
  statusOf(
    signer.client.submit('ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2', {
      signWith,
      payload,
      encoding: `PAYLOAD_ENCODING_${encoding}`,
      hashFunction: 'HASH_FUNCTION_NO_OP',
    }),
  );

test.each([
  ['a DENY of mainnet', 'EFFECT_DENY', 'eth.eip_7702_authorization.chain_id == 1'],
  [
    'an ALLOW of all but mainnet',
    'EFFECT_ALLOW',
    "activity.action == 'SIGN' && eth.eip_7702_authorization.chain_id != 1",
  ],
] as const)(
  'an authorization for every chain (EIP-7702, chain 0) does not get past %s',
  async (_what, effect, condition) => {
    const { client, userId } = effect === 'EFFECT_DENY' ? signer : await coordinator.createUser('Delegate');
    const consensus = `approvers.any(user, user.id == '${userId}')`;
    const policyId = await coordinator.createPolicy({
      policyName: `${effect} ${condition}`,
      effect,
      condition,
      ...(effect === 'EFFECT_ALLOW' ? { consensus } : {}),
    });
    const delegates = (chainId: number) =>
      statusOf(
        client.submit('ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2', {
          signWith: address,
          payload: JSON.stringify({ address: `0x${'ba'.repeat(20)}`, chainId, nonce: 0 }),
          encoding: 'PAYLOAD_ENCODING_EIP7702_AUTHORIZATION',
          hashFunction: 'HASH_FUNCTION_NO_OP',
        }),
      );
    expect([await delegates(5), await delegates(1), await delegates(0)]).toEqual([
      'ACTIVITY_STATUS_COMPLETED',
      'DENIED',
      'DENIED',
    ]);
    await coordinator.client.submit('ACTIVITY_TYPE_DELETE_POLICY', { policyId });
  },
);

test('a DENY of an address reaches its key under another address, also when no account has that address any more', async () => {
  await coordinator.createPolicy({
    policyName: 'not this one',
    effect: 'EFFECT_DENY',
    condition: `wallet_account.address == '${address}'`,
  });
  const digest = 'd1'.repeat(32);
  const made = await signer.client.submit('ACTIVITY_TYPE_CREATE_WALLET_ACCOUNTS', {
    walletId,
    accounts: [account('COMPRESSED'), { ...account('COMPRESSED'), path: "m/44'/60'/0'/0/1" }],
  });
  const [same, another] = (made.result['createWalletAccountsResult'] as { addresses: [string, string] }).addresses;
  expect(await signs(same, digest, 'HEXADECIMAL')).toBe('DENIED');
  const { accounts } = await coordinator.client.query<{ accounts: { walletAccountId: string; address: string }[] }>(
    'list_wallet_accounts',
    { walletId },
  );
  const walletAccountIds = accounts.filter((one) => one.address === address).map((one) => one.walletAccountId);
  await signer.client.submit('ACTIVITY_TYPE_DELETE_WALLET_ACCOUNTS', { walletAccountIds, deleteWithoutExport: true });
  expect(await signs(same, digest, 'HEXADECIMAL')).toBe('DENIED');
  expect(await signs(another, digest, 'HEXADECIMAL')).toBe('ACTIVITY_STATUS_COMPLETED');
});

test('private keys to delete can be named by a DENY', async () => {
  const make = async (privateKeyName: string) => {
    const privateKeys = [{ privateKeyName, curve: 'CURVE_P256', addressFormats: [], privateKeyTags: [] }];
    const { result } = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_PRIVATE_KEYS_V2', { privateKeys });
    return (result['createPrivateKeysResultV2'] as { privateKeys: [{ privateKeyId: string }] }).privateKeys[0]
      .privateKeyId;
  };
  const [kept, other] = [await make('kept'), await make('other')];
  const cleaner = await coordinator.createUser('Cleaner');
  await coordinator.createPolicy({
    policyName: 'deletes keys',
    condition: "activity.kind == 'DELETE_PRIVATE_KEYS'",
    consensus: `approvers.any(user, user.id == '${cleaner.userId}')`,
  });
  await coordinator.createPolicy({
    policyName: 'but not this one',
    effect: 'EFFECT_DENY',
    condition: `activity.kind == 'DELETE_PRIVATE_KEYS' && activity.params.private_key_ids.contains('${kept}')`,
  });
  const deletes = (...privateKeyIds: string[]) =>
    statusOf(cleaner.client.submit('ACTIVITY_TYPE_DELETE_PRIVATE_KEYS', { privateKeyIds, deleteWithoutExport: true }));
  expect([await deletes(other, kept), await deletes(other)]).toEqual(['DENIED', 'ACTIVITY_STATUS_COMPLETED']);
});

test('an ALLOW that becomes a DENY must not name a tag that is gone', async () => {
  const tagId = await coordinator.createTag('Gone');
  const policyId = await coordinator.createPolicy({
    policyName: 'T',
    condition: `requester.tags.contains('${tagId}')`,
  });
  await coordinator.client.submit('ACTIVITY_TYPE_DELETE_USER_TAGS', { userTagIds: [tagId] });
  const flip = coordinator.client.submit('ACTIVITY_TYPE_UPDATE_POLICY_V2', { policyId, policyEffect: 'EFFECT_DENY' });
  expect((await refusal(flip)).message).toContain('unknown user tag');
});
