import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { base58 } from '@scure/base';
import { HDKey } from '@scure/bip32';
import { p2tr, p2wpkh } from '@scure/btc-signer';
import { ed25519 } from '@noble/curves/ed25519.js';
import { ApiKeyStamper } from '@turnkey/api-key-stamper';
import { decryptExportBundle, encryptWalletToBundle, generateP256KeyPair } from '@turnkey/crypto';
import { TurnkeyClient } from '@turnkey/http';
import type { Turnkey } from '@turnkey/sdk-server';
import { HDNodeWallet, Mnemonic } from 'ethers';
import { TronWeb } from 'tronweb';
import { startCoordinator, type TestCoordinator, type TestUser } from '../../src/testing/index.js';
import { denial, exchange, listWith, objectWith, refusal, textLike } from './exchange.js';

// Real HTTP, the published clients, and addresses derived by other people's libraries.

// The package's index also loads its browser actions, which need a peer package (viem) that nothing here uses.
const sdkFile = new URL('../../node_modules/@turnkey/sdk-server/dist/sdk-client.mjs', import.meta.url).pathname;
const { TurnkeyServerSDK } = (await import(sdkFile)) as { TurnkeyServerSDK: typeof Turnkey };

let coordinator: TestCoordinator;
let organizationId: string;
/** Our signer, which the clients are told to trust instead of the one they have built in. */
let signer: string;
let alice: TestUser;

beforeAll(async () => {
  coordinator = await startCoordinator({ at: new Date() });
  organizationId = coordinator.organizationId;
  alice = await coordinator.createUser('Alice');
  const { body } = await exchange(`${coordinator.url}/public/v1/discovery/keys`);
  signer = (body as { signer: string }).signer;
});

afterAll(() => coordinator.close());

function sdk({ publicKey: apiPublicKey, privateKey: apiPrivateKey } = coordinator.client.key) {
  return new TurnkeyServerSDK({
    apiBaseUrl: coordinator.url,
    apiPublicKey,
    apiPrivateKey,
    defaultOrganizationId: organizationId,
    activityPoller: { intervalMs: 10, numRetries: 3 },
  }).apiClient();
}

const on = <Curve extends string, Format extends string>(curve: Curve, path: string, addressFormat: Format) =>
  ({ curve, pathFormat: 'PATH_FORMAT_BIP32', path, addressFormat }) as const;
const ethereumAt = (path: string) => on('CURVE_SECP256K1', path, 'ADDRESS_FORMAT_ETHEREUM');
const ethereum = ethereumAt("m/44'/60'/0'/0/0");
const solana = on('CURVE_ED25519', "m/44'/501'/0'/0'", 'ADDRESS_FORMAT_SOLANA');

let wallets = 0;
/** A wallet with an Ethereum account, unless told otherwise. */
const newWallet = async (accounts: (typeof ethereum | typeof solana)[] = [ethereum]) => {
  const walletName = `Wallet ${++wallets}`;
  const { walletId, addresses } = await sdk().createWallet({ walletName, accounts });
  return { walletName, walletId, addresses, address: addresses[0]! };
};

/** The mnemonic of a wallet, opened with the published package. */
async function exported(walletId: string, language?: 'MNEMONIC_LANGUAGE_SPANISH'): Promise<string> {
  const { privateKey: embeddedKey, publicKeyUncompressed: targetPublicKey } = generateP256KeyPair();
  const { exportBundle } = await sdk().exportWallet({ walletId, targetPublicKey, ...(language ? { language } : {}) });
  return decryptExportBundle({
    exportBundle,
    embeddedKey,
    organizationId,
    returnMnemonic: true,
    dangerouslyOverrideSignerPublicKey: signer,
  });
}

/** The key of an account, opened with the published package. */
async function exportedKey(address: string, keyFormat: 'HEXADECIMAL' | 'SOLANA' = 'HEXADECIMAL'): Promise<string> {
  const { privateKey: embeddedKey, publicKeyUncompressed: targetPublicKey } = generateP256KeyPair();
  const { exportBundle } = await sdk().exportWalletAccount({ address, targetPublicKey });
  return decryptExportBundle({
    exportBundle,
    embeddedKey,
    organizationId,
    keyFormat,
    returnMnemonic: false,
    dangerouslyOverrideSignerPublicKey: signer,
  });
}

const anExport = (walletId: string) => ({ walletId, targetPublicKey: generateP256KeyPair().publicKeyUncompressed });

/** The vault that history names for a wallet, and whether anything is in it. */
async function vaultOf(walletId: string) {
  const created = (await coordinator.events()).find(
    ({ type, data }) => type === 'WalletCreated' && (data as { walletId: string }).walletId === walletId,
  );
  const { vaultId } = created!.data as { vaultId: string };
  return { vaultId, sealed: async () => (await coordinator.events(`vault-${vaultId}`)).length };
}

const accountsOf = async (walletId: string) => (await sdk().getWalletAccounts({ walletId })).accounts;

/** SLIP-0010 on Ed25519, as the document has it. */
function slip10(seed: Uint8Array, path: string): Uint8Array {
  const hmac = (key: string | Uint8Array, data: Uint8Array) => createHmac('sha512', key).update(data).digest();
  let node = hmac('ed25519 seed', seed);
  for (const segment of path.split('/').slice(1)) {
    const data = Buffer.concat([Buffer.of(0), node.subarray(0, 32), Buffer.alloc(4)]);
    data.writeUInt32BE(Number.parseInt(segment, 10) + 0x8000_0000, 33);
    node = hmac(node.subarray(32), data);
  }
  return node.subarray(0, 32);
}

describe('creating', () => {
  test('accounts of several chains have the addresses that other libraries derive from the exported mnemonic', async () => {
    const { walletId, addresses } = await sdk().createWallet({
      walletName: 'Chains',
      mnemonicLength: 24,
      accounts: [
        ethereum,
        on('CURVE_SECP256K1', "m/84'/0'/0'/0/0", 'ADDRESS_FORMAT_BITCOIN_MAINNET_P2WPKH'),
        on('CURVE_SECP256K1', "m/86'/0'/0'/0/0", 'ADDRESS_FORMAT_BITCOIN_MAINNET_P2TR'),
        on('CURVE_SECP256K1', "m/44'/195'/0'/0/0", 'ADDRESS_FORMAT_TRON'),
        solana,
      ],
    });
    const phrase = await exported(walletId);
    expect(phrase.split(' ')).toHaveLength(24);
    const seed = Buffer.from(Mnemonic.fromPhrase(phrase).computeSeed().slice(2), 'hex');
    const bitcoinKey = (path: string) => HDKey.fromMasterSeed(seed).derive(path).publicKey!;
    expect(addresses).toEqual([
      HDNodeWallet.fromPhrase(phrase, undefined, ethereum.path).address,
      p2wpkh(bitcoinKey("m/84'/0'/0'/0/0")).address,
      p2tr(bitcoinKey("m/86'/0'/0'/0/0").subarray(1)).address,
      TronWeb.fromMnemonic(phrase, "m/44'/195'/0'/0/0").address,
      base58.encode(ed25519.getPublicKey(slip10(seed, solana.path))),
    ]);
    expect((await accountsOf(walletId)).map(({ address }) => address)).toEqual(addresses);
  });

  test('accounts are added to the same seed; the same one twice is refused with 409', async () => {
    const { walletId } = await newWallet();
    const second = ethereumAt("m/44'/60'/0'/0/1");
    const { addresses } = await sdk().createWalletAccounts({ walletId, accounts: [{ ...second, name: 'second' }] });
    const phrase = await exported(walletId);
    expect(addresses).toEqual([HDNodeWallet.fromPhrase(phrase, undefined, second.path).address]);
    expect((await accountsOf(walletId))[1]).toMatchObject({ name: 'second', path: second.path });
    const again = coordinator.client.submit('ACTIVITY_TYPE_CREATE_WALLET_ACCOUNTS', { walletId, accounts: [second] });
    expect(await refusal(again)).toMatchObject({ status: 409, code: 6 });
  });

  test('with persist false an address is derived, and nothing recorded or sealed', async () => {
    const { walletId } = await newWallet();
    const vault = await vaultOf(walletId);
    const before = await vault.sealed();
    const third = ethereumAt("m/44'/60'/0'/0/2");
    const { result, id } = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_WALLET_ACCOUNTS', {
      walletId,
      accounts: [third],
      persist: false,
    });
    const { addresses } = result['createWalletAccountsResult'] as { addresses: string[] };
    expect(addresses).toEqual([HDNodeWallet.fromPhrase(await exported(walletId), undefined, third.path).address]);
    expect(await accountsOf(walletId)).toHaveLength(1);
    expect(await vault.sealed()).toBe(before);
    const { events } = await coordinator.client.query<{ events: { type: string }[] }>('list_activity_events', {
      activityId: id,
    });
    expect(events.map(({ type }) => type)).toEqual(['ActivitySubmitted', 'ActivityCompleted']);
  });

  test('names are unique, also when a wallet is renamed', async () => {
    const one = await newWallet();
    const two = await newWallet();
    const taken = coordinator.client.submit('ACTIVITY_TYPE_UPDATE_WALLET', {
      walletId: one.walletId,
      walletName: two.walletName,
    });
    expect(await refusal(taken)).toMatchObject({ code: 3, message: textLike('wallet label must be unique') });
    await sdk().updateWallet({ walletId: one.walletId, walletName: 'Renamed' });
    expect((await sdk().getWallet({ walletId: one.walletId })).wallet.walletName).toBe('Renamed');
    expect((await sdk().createWallet({ walletName: one.walletName, accounts: [] })).addresses).toEqual([]);
  });
});

describe('exporting', () => {
  test('a wallet gives a bundle that opens; the wallet is marked, and its accounts still answer', async () => {
    const { walletId } = await newWallet();
    expect((await sdk().getWallet({ walletId })).wallet).toMatchObject({ exported: false, imported: false });
    expect(Mnemonic.isValidMnemonic(await exported(walletId))).toBe(true);
    expect((await sdk().getWallet({ walletId })).wallet).toMatchObject({ exported: true, imported: false });
  });

  test('an account gives 32 bytes that sign for its address; one of Solana, the format of its wallets', async () => {
    const { walletId, addresses } = await newWallet([ethereum, solana]);
    const [address, base58Address] = addresses as [string, string];
    const phrase = await exported(walletId);
    const { privateKey } = HDNodeWallet.fromPhrase(phrase, undefined, ethereum.path);
    expect(`0x${await exportedKey(address)}`).toBe(privateKey);
    expect(`0x${await exportedKey(address.toLowerCase())}`).toBe(privateKey);
    const secret = base58.decode(await exportedKey(base58Address, 'SOLANA'));
    expect(base58.encode(secret.subarray(32))).toBe(base58Address);
  });

  test('in another language the words are others, of the same entropy', async () => {
    const { walletId } = await newWallet();
    const spanish = await exported(walletId, 'MNEMONIC_LANGUAGE_SPANISH');
    expect(spanish.split(' ')).toHaveLength(12);
    expect(spanish).not.toBe(await exported(walletId));
  });

  test.each([
    ['EXPORT_WALLET', { walletId: '00000000-0000-4000-8000-000000000000' }, 5, 'no wallet'],
    ['EXPORT_WALLET_ACCOUNT', { address: '0x0' }, 5, 'Could not find wallet account with address:'],
  ])('%s of what is not there', async (kind, named, code, message) => {
    const targetPublicKey = generateP256KeyPair().publicKeyUncompressed;
    const attempt = coordinator.client.submit(`ACTIVITY_TYPE_${kind}`, { ...named, targetPublicKey });
    expect(await refusal(attempt)).toMatchObject({ code, message: textLike(message) });
  });

  test('a target key that is not a point is refused, and nothing is marked as exported', async () => {
    const { walletId } = await newWallet();
    const targetPublicKey = `04${'12'.repeat(64)}`;
    const attempt = coordinator.client.submit('ACTIVITY_TYPE_EXPORT_WALLET', { walletId, targetPublicKey });
    expect(await refusal(attempt)).toMatchObject({ status: 400, message: textLike('parameters.targetPublicKey') });
    expect((await sdk().getWallet({ walletId })).wallet.exported).toBe(false);
  });
});

/** One address of each of these BIPs, which publish it with its mnemonic. */
const published = JSON.parse(
  readFileSync(new URL('../vectors/hd/bip49_84_86_addresses.json', import.meta.url), 'utf8'),
) as Record<'bip84' | 'bip86', { mnemonic: string; addresses: { path: string; address: string }[] }>;

describe('importing', () => {
  const begin = async (user = alice) => (await sdk().initImportWallet({ userId: user.userId })).importBundle;
  const seal = (importBundle: string, mnemonic: string, { userId } = alice) =>
    encryptWalletToBundle({
      mnemonic,
      importBundle,
      userId,
      organizationId,
      dangerouslyOverrideSignerPublicKey: signer,
    });
  const take = (encryptedBundle: string, walletName: string, accounts: object[] = [ethereum], { userId } = alice) =>
    coordinator.client.submit('ACTIVITY_TYPE_IMPORT_WALLET', { userId, walletName, encryptedBundle, accounts });

  test('a published mnemonic gives the published addresses, is marked, and comes out as it went in', async () => {
    const { mnemonic, addresses: segwit } = published.bip84;
    expect(published.bip86.mnemonic).toBe(mnemonic);
    const { addresses: taproot } = published.bip86;
    const { walletId, addresses } = await sdk().importWallet({
      userId: alice.userId,
      walletName: 'Published',
      encryptedBundle: await seal(await begin(), mnemonic),
      accounts: [
        on('CURVE_SECP256K1', segwit[0]!.path, 'ADDRESS_FORMAT_BITCOIN_MAINNET_P2WPKH'),
        on('CURVE_SECP256K1', taproot[0]!.path, 'ADDRESS_FORMAT_BITCOIN_MAINNET_P2TR'),
        ethereum,
      ],
    });
    expect(addresses).toEqual([
      segwit[0]!.address,
      taproot[0]!.address,
      HDNodeWallet.fromPhrase(mnemonic, undefined, ethereum.path).address,
    ]);
    expect((await sdk().getWallet({ walletId })).wallet).toMatchObject({ imported: true, exported: false });
    expect(await exported(walletId)).toBe(mnemonic);
  });

  test('a bundle is good once: its target key is shredded with the import', async () => {
    const importBundle = await begin();
    const { type, data } = (await coordinator.events()).findLast((event) => event.type === 'ImportStarted')!;
    const { vaultId } = data as { vaultId: string };
    expect([type, await coordinator.events(`vault-${vaultId}`)]).toEqual(['ImportStarted', listWith(objectWith({}))]);
    const bundle = await seal(importBundle, published.bip84.mnemonic);
    expect((await take(bundle, 'Once')).status).toBe('ACTIVITY_STATUS_COMPLETED');
    expect(await coordinator.events(`vault-${vaultId}`)).toEqual([]);
    expect(await refusal(take(bundle, 'Twice'))).toMatchObject({
      status: 400,
      code: 9,
      message: textLike('no wallet import is pending for user'),
    });
  });

  test('of imports at once one is kept: nothing sealed is left of the others, nor of the wallet once it is deleted', async () => {
    const bundle = await seal(await begin(), published.bip84.mnemonic);
    const vaults = async () =>
      new Set((await coordinator.recorded()).flatMap(({ stream }) => (stream.startsWith('vault-') ? [stream] : [])));
    const before = await vaults();
    const done = await Promise.allSettled(['One', 'Two', 'Three'].map((name) => take(bundle, name)));
    expect(done.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected', 'rejected']);
    // The target key went, the wallet came.
    const after = await vaults();
    const made = [...after].filter((stream) => !before.has(stream));
    expect([made.length, after.size]).toEqual([1, before.size]);
    const { wallets: listed } = await sdk().getWallets();
    const { walletId } = listed.find(({ walletName }) => ['One', 'Two', 'Three'].includes(walletName))!;
    await sdk().deleteWallets({ walletIds: [walletId], deleteWithoutExport: true });
    expect((await vaults()).size).toBe(before.size - 1);
  });

  test('a new import ends the one that waits; a bundle for the old key is refused, and the new one goes on', async () => {
    const old = await begin();
    const { data } = (await coordinator.events()).findLast((event) => event.type === 'ImportStarted')!;
    const next = await begin();
    expect(await coordinator.events(`vault-${(data as { vaultId: string }).vaultId}`)).toEqual([]);
    const { mnemonic } = published.bip84;
    expect(await refusal(take(await seal(old, mnemonic), 'Late'))).toMatchObject({
      status: 400,
      code: 3,
      message: textLike('encryptedBundle: it could not be decrypted'),
    });
    expect((await take(await seal(next, mnemonic), 'In time')).status).toBe('ACTIVITY_STATUS_COMPLETED');
  });

  test('an invalid mnemonic is refused without being quoted, and can be sealed again', async () => {
    const importBundle = await begin();
    const secret = 'correct horse battery staple '.repeat(3).trim();
    const refused = await refusal(take(await seal(importBundle, secret), 'Staple'));
    expect(refused).toMatchObject({ code: 3, message: textLike('invalid mnemonic') });
    expect(JSON.stringify(refused)).not.toMatch(/horse|battery|staple/);
    const { mnemonic } = published.bip84;
    expect((await take(await seal(importBundle, mnemonic), 'Mended')).status).toBe('ACTIVITY_STATUS_COMPLETED');
  });

  test('imports of two users do not disturb each other', async () => {
    const bob = await coordinator.createUser('Bob');
    const [forAlice, forBob] = [await begin(alice), await begin(bob)];
    const { mnemonic } = published.bip84;
    expect(await refusal(take(await seal(forAlice, mnemonic), 'Swapped', [], bob))).toMatchObject({ code: 3 });
    await take(await seal(forBob, mnemonic, bob), "Bob's", [], bob);
    await take(await seal(forAlice, mnemonic), "Alice's", []);
  });

  test('of two that use one bundle at once, one wins', async () => {
    const bundle = await seal(await begin(), published.bip84.mnemonic);
    const outcomes = await Promise.allSettled([take(bundle, 'Race one'), take(bundle, 'Race two')]);
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    const { wallets: listed } = await sdk().getWallets();
    expect(listed.filter(({ walletName }) => walletName.startsWith('Race'))).toHaveLength(1);
  });
});

describe('deleting', () => {
  const sign = (signWith: string) =>
    coordinator.client.submit('ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2', {
      signWith,
      payload: 'hello',
      encoding: 'PAYLOAD_ENCODING_TEXT_UTF8',
      hashFunction: 'HASH_FUNCTION_KECCAK256',
    });

  test('shreds the vault: nothing is left of it, and the wallet neither signs nor is exported', async () => {
    const { walletId, address } = await newWallet();
    const vault = await vaultOf(walletId);
    expect(await vault.sealed()).toBeGreaterThan(0);
    expect((await sign(address)).status).toBe('ACTIVITY_STATUS_COMPLETED');
    const attempt = coordinator.client.submit('ACTIVITY_TYPE_DELETE_WALLETS', { walletIds: [walletId] });
    expect(await refusal(attempt)).toMatchObject({ code: 3, message: textLike('wallet has not been exported') });
    expect(await vault.sealed()).toBeGreaterThan(0);

    expect(await sdk().deleteWallets({ walletIds: [walletId], deleteWithoutExport: true })).toMatchObject({
      walletIds: [walletId],
    });
    expect(await vault.sealed()).toBe(0);
    expect(await refusal(sign(address))).toMatchObject({
      status: 404,
      message: textLike('Could not find any resource to sign with'),
    });
    const again = coordinator.client.submit('ACTIVITY_TYPE_EXPORT_WALLET', anExport(walletId));
    expect(await refusal(again)).toMatchObject({ status: 404, message: textLike('no wallet') });
    expect(await refusal(coordinator.client.query('get_wallet', { walletId }))).toMatchObject({ status: 404 });
    const { accounts } = await sdk().getWalletAccounts({ paginationOptions: { limit: '100' } });
    expect(accounts.filter((account) => account.walletId === walletId)).toEqual([]);
  });

  test('an exported wallet goes without being told twice', async () => {
    const { walletId } = await newWallet();
    await exported(walletId);
    await sdk().deleteWallets({ walletIds: [walletId] });
    expect(await (await vaultOf(walletId)).sealed()).toBe(0);
  });

  test('accounts goes for exported ones only, all or none; the key still follows from the wallet', async () => {
    const { walletId, addresses } = await newWallet([ethereum, solana]);
    const [address, other] = addresses as [string, string];
    const walletAccountIds = (await accountsOf(walletId)).map(({ walletAccountId }) => walletAccountId);
    await exportedKey(address);
    const both = coordinator.client.submit('ACTIVITY_TYPE_DELETE_WALLET_ACCOUNTS', { walletAccountIds });
    expect(await refusal(both)).toMatchObject({
      code: 3,
      message: textLike('wallet account has not been exported'),
      details: [objectWith({ turnkeyErrorCode: 'WALLET_ACCOUNT_NOT_EXPORTED' })],
    });
    expect(await accountsOf(walletId)).toHaveLength(2);

    await sdk().deleteWalletAccounts({ walletAccountIds: [walletAccountIds[0]!] });
    expect((await accountsOf(walletId)).map((account) => account.address)).toEqual([other]);
    expect(await refusal(sign(address))).toMatchObject({ status: 404 });
    expect(await sdk().createWalletAccounts({ walletId, accounts: [ethereum] })).toMatchObject({
      addresses: [address],
    });
    expect((await sign(address)).status).toBe('ACTIVITY_STATUS_COMPLETED');
  });

  test('an account of another organization is not part of this one', async () => {
    const walletAccountIds = ['00000000-0000-4000-8000-000000000000'];
    const attempt = coordinator.client.submit('ACTIVITY_TYPE_DELETE_WALLET_ACCOUNTS', { walletAccountIds });
    expect(await refusal(attempt)).toMatchObject({
      code: 3,
      message: textLike('wallet account not part of your organization'),
    });
  });

  test('anything done with a wallet during its deletion either succeeds or finds it deleted', async () => {
    for (let round = 0; round < 5; round++) {
      const { walletId, address } = await newWallet();
      const accounts = [ethereumAt("m/44'/60'/0'/0/1"), ethereumAt("m/44'/60'/0'/0/2")];
      const targetPublicKey = generateP256KeyPair().publicKeyUncompressed;
      const outcomes = await Promise.allSettled([
        coordinator.client.submit('ACTIVITY_TYPE_EXPORT_WALLET', anExport(walletId)),
        coordinator.client.submit('ACTIVITY_TYPE_CREATE_WALLET_ACCOUNTS', { walletId, accounts }),
        coordinator.client.submit('ACTIVITY_TYPE_DELETE_WALLETS', { walletIds: [walletId], deleteWithoutExport: true }),
        coordinator.client.submit('ACTIVITY_TYPE_EXPORT_WALLET_ACCOUNT', { address, targetPublicKey }),
        coordinator.client.submit('ACTIVITY_TYPE_UPDATE_WALLET', { walletId, walletName: `Gone ${round}` }),
      ]);
      expect(outcomes[2].status).toBe('fulfilled');
      for (const outcome of outcomes) {
        if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ status: 404 });
      }
      expect(await (await vaultOf(walletId)).sealed()).toBe(0);
      expect(await refusal(coordinator.client.query('get_wallet', { walletId }))).toMatchObject({ status: 404 });
    }
  });
});

describe('policies', () => {
  let carol: TestUser;
  let dave: TestUser;
  beforeAll(async () => {
    carol = await coordinator.createUser('Carol');
    dave = await coordinator.createUser('Dave');
  });

  let policies = 0;
  const allow = (condition: string, consensus = `approvers.any(user, user.id == '${carol.userId}')`) =>
    coordinator.createPolicy({ policyName: `policy ${policies++}`, condition, consensus });
  const outcomesOf = async (attempt: Promise<unknown>) =>
    denial(await refusal(attempt)).policyEvaluations?.map(({ outcome }) => outcome);
  const rename = (walletId: string, walletName: string) =>
    carol.client.submit('ACTIVITY_TYPE_UPDATE_WALLET', { walletId, walletName });

  test('wallet.id, and activity.params.wallet_id, say which wallet', async () => {
    const [one, two, three] = [await newWallet(), await newWallet(), await newWallet()];
    await allow(`activity.kind == 'UPDATE_WALLET' && wallet.id == '${one.walletId}'`);
    await allow(`activity.params.wallet_id == '${two.walletId}'`);
    await rename(one.walletId, 'First');
    await rename(two.walletId, 'Second');
    expect(await refusal(rename(three.walletId, 'Third'))).toMatchObject({ status: 403 });
  });

  test('wallet.label and wallet.imported say what it is, as of the request', async () => {
    const { walletId, walletName } = await newWallet();
    await allow(`activity.kind == 'CREATE_WALLET_ACCOUNTS' && wallet.label == 'Open' && !wallet.imported`);
    const add = (index: number) =>
      carol.client.submit('ACTIVITY_TYPE_CREATE_WALLET_ACCOUNTS', {
        walletId,
        accounts: [ethereumAt(`m/44'/60'/0'/0/${index}`)],
      });
    expect(await refusal(add(1))).toMatchObject({ status: 403 });
    await sdk().updateWallet({ walletId, walletName: 'Open' });
    expect((await add(1)).status).toBe('ACTIVITY_STATUS_COMPLETED');
    await sdk().updateWallet({ walletId, walletName });
    expect(await refusal(add(2))).toMatchObject({ status: 403 });
  });

  test('wallet_account.address and the target key bound an export', async () => {
    const { addresses } = await newWallet([ethereum, solana]);
    const [address, other] = addresses as [string, string];
    const { publicKey: compressed, publicKeyUncompressed } = generateP256KeyPair();
    const elsewhere = generateP256KeyPair().publicKeyUncompressed;
    await allow(
      `activity.action == 'EXPORT' && wallet_account.address == '${address.toLowerCase()}' && ` +
        `activity.params.target_public_key == '${publicKeyUncompressed}'`,
    );
    const ask = (named: string, targetPublicKey: string) =>
      carol.client.submit('ACTIVITY_TYPE_EXPORT_WALLET_ACCOUNT', { address: named, targetPublicKey });
    expect((await ask(address, publicKeyUncompressed)).status).toBe('ACTIVITY_STATUS_COMPLETED');
    expect((await ask(address, compressed)).status).toBe('ACTIVITY_STATUS_COMPLETED');
    expect(await refusal(ask(address, elsewhere))).toMatchObject({ status: 403 });
    expect(await refusal(ask(other, publicKeyUncompressed))).toMatchObject({ status: 403 });
  });

  test('wallet_account.path_indexes and path_hardened bound an export to a part of the wallet', async () => {
    const paths = ["m/8797555'/0'/0'", "m/8797555'/0'/3'/0'", "m/8797555'/0'/3'/0", "m/44'/60'/0'/0/0", 'm'];
    const { walletId, addresses } = await newWallet(paths.map(ethereumAt));
    await allow(
      `activity.kind == 'EXPORT_WALLET_ACCOUNT' && wallet.id == '${walletId}' && ` +
        'wallet_account.path_indexes.count() == 4 && wallet_account.path_indexes[0] == 8797555 && ' +
        'wallet_account.path_indexes[2] == 3 && wallet_account.path_hardened.all(one, one == true)',
    );
    const { publicKeyUncompressed: targetPublicKey } = generateP256KeyPair();
    const attempts = addresses.map((address) =>
      carol.client.submit('ACTIVITY_TYPE_EXPORT_WALLET_ACCOUNT', { address, targetPublicKey }),
    );
    const outcomes = (await Promise.allSettled(attempts)).map(({ status }) => status);
    expect(outcomes).toEqual(['rejected', 'fulfilled', 'rejected', 'rejected', 'rejected']);
  });

  test('wallets says which are deleted, with their accounts too', async () => {
    const [one, two] = [await newWallet(), await newWallet()];
    await allow(`activity.resource == 'WALLET' && wallets.all(w, w.exported)`);
    await exported(one.walletId);
    const remove = (...walletIds: string[]) =>
      carol.client.submit('ACTIVITY_TYPE_DELETE_WALLETS', { walletIds, deleteWithoutExport: true });
    const removeAccounts = (accounts: { walletAccountId: string }[]) =>
      carol.client.submit('ACTIVITY_TYPE_DELETE_WALLET_ACCOUNTS', {
        walletAccountIds: accounts.map(({ walletAccountId }) => walletAccountId),
        deleteWithoutExport: true,
      });
    expect(await refusal(remove(one.walletId, two.walletId))).toMatchObject({ status: 403 });
    expect(await refusal(removeAccounts(await accountsOf(two.walletId)))).toMatchObject({ status: 403 });
    await removeAccounts(await accountsOf(one.walletId));
    await remove(one.walletId);
  });

  test('a DENY on one wallet stops its export, whoever else is allowed', async () => {
    const { walletId } = await newWallet();
    await allow("activity.kind == 'EXPORT_WALLET'");
    const policyId = await coordinator.createPolicy({
      policyName: 'never this one',
      effect: 'EFFECT_DENY',
      condition: `activity.kind == 'EXPORT_WALLET' && wallet.id == '${walletId}'`,
    });
    const attempt = carol.client.submit('ACTIVITY_TYPE_EXPORT_WALLET', anExport(walletId));
    expect(await outcomesOf(attempt)).toContain('OUTCOME_DENY_EXPLICIT');
    await coordinator.client.submit('ACTIVITY_TYPE_DELETE_POLICY', { policyId });
  });

  describe('an export that takes two', () => {
    beforeAll(() =>
      allow(
        "activity.kind == 'EXPORT_WALLET' && activity.params.target_public_key != ''",
        `approvers.any(user, user.id == '${alice.userId}') && approvers.any(user, user.id == '${dave.userId}')`,
      ),
    );

    test('gives its bundle to the last voter, and to whoever reads the activity; none before', async () => {
      const { walletId } = await newWallet();
      const { privateKey: embeddedKey, publicKeyUncompressed: targetPublicKey } = generateP256KeyPair();
      const asked = await alice.client.submit('ACTIVITY_TYPE_EXPORT_WALLET', { walletId, targetPublicKey });
      expect(asked).toMatchObject({ status: 'ACTIVITY_STATUS_CONSENSUS_NEEDED', result: {} });
      expect((await sdk().getWallet({ walletId })).wallet.exported).toBe(false);
      const done = await dave.client.approve(asked.fingerprint);
      expect(done.status).toBe('ACTIVITY_STATUS_COMPLETED');
      const { exportBundle } = done.result['exportWalletResult'] as { exportBundle: string };
      const opened = decryptExportBundle({
        exportBundle,
        embeddedKey,
        organizationId,
        returnMnemonic: true,
        dangerouslyOverrideSignerPublicKey: signer,
      });
      expect(Mnemonic.isValidMnemonic(await opened)).toBe(true);
      expect((await sdk().getActivity({ activityId: asked.id })).activity.result).toEqual(done.result);
      expect((await sdk().getWallet({ walletId })).wallet.exported).toBe(true);
    });

    test('fails when the wallet has gone by the time of the last vote', async () => {
      const { walletId } = await newWallet();
      const asked = await alice.client.submit('ACTIVITY_TYPE_EXPORT_WALLET', anExport(walletId));
      await sdk().deleteWallets({ walletIds: [walletId], deleteWithoutExport: true });
      expect(await dave.client.approve(asked.fingerprint)).toMatchObject({
        id: asked.id,
        status: 'ACTIVITY_STATUS_FAILED',
        result: {},
        failure: { code: 5, message: textLike(`no wallet \`${walletId}\``) },
      });
    });
  });
});

describe('reading', () => {
  test('@turnkey/http pages through the accounts, with their wallets when asked', async () => {
    const own = await startCoordinator({ seed: 'reading', at: new Date() });
    try {
      const { publicKey: apiPublicKey, privateKey: apiPrivateKey } = own.client.key;
      const client = new TurnkeyClient({ baseUrl: own.url }, new ApiKeyStamper({ apiPublicKey, apiPrivateKey }));
      const { organizationId } = own;
      expect(await client.getWalletAccounts({ organizationId })).toEqual({ accounts: [] });
      const paths = Array.from({ length: 13 }, (_, index) => ethereumAt(`m/44'/60'/0'/0/${index}`));
      const { result } = await own.client.submit('ACTIVITY_TYPE_CREATE_WALLET', { walletName: 'A', accounts: paths });
      const { walletId, addresses } = result['createWalletResult'] as { walletId: string; addresses: string[] };
      await own.client.submit('ACTIVITY_TYPE_CREATE_WALLET', { walletName: 'B', accounts: [solana] });

      const { accounts } = await client.getWalletAccounts({ organizationId });
      expect(accounts.map(({ address }) => address)).toEqual(addresses.slice(0, 10));
      const seconds = String(Math.floor(own.clock.now() / 1000));
      const date = { seconds, nanos: textLike(/^\d+$/) };
      expect(accounts[0]).toEqual({
        walletAccountId: textLike(/^[0-9a-f-]{36}$/),
        organizationId,
        walletId,
        ...ethereum,
        address: addresses[0],
        publicKey: textLike(/^0[23][0-9a-f]{64}$/),
        createdAt: date,
        updatedAt: date,
      });
      const after = accounts.at(-1)!.walletAccountId;
      const { accounts: rest } = await client.getWalletAccounts({
        organizationId,
        includeWalletDetails: true,
        paginationOptions: { after },
      });
      expect(rest.map(({ walletDetails }) => walletDetails!.walletName)).toEqual(['A', 'A', 'A', 'B']);
      const details = { walletId, walletName: 'A', createdAt: date, updatedAt: date, exported: false, imported: false };
      expect(rest[0]!.walletDetails).toEqual(details);
      expect((await client.getWallets({ organizationId })).wallets).toEqual([
        details,
        objectWith({ walletName: 'B', exported: false }),
      ]);
      const named = { organizationId, walletId, address: addresses[4]!.toLowerCase() };
      expect((await client.getWalletAccount(named)).account).toEqual(accounts[4]);
      const at = { organizationId, walletId, path: 'm/44h/60h/0h/0/4' };
      expect((await client.getWalletAccount(at)).account).toEqual(accounts[4]);
    } finally {
      await own.close();
    }
  });

  test('a credential of the parent reads the wallets of a sub-organization, and of no other', async () => {
    const { result } = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_SUB_ORGANIZATION_V8', {
      subOrganizationName: 'Customer',
      rootUsers: [
        {
          userName: 'Customer',
          apiKeys: [
            {
              apiKeyName: 'key',
              publicKey: coordinator.newKey().publicKey,
              curveType: 'API_KEY_CURVE_P256',
            },
          ],
          authenticators: [],
          oauthProviders: [],
        },
      ],
      rootQuorumThreshold: 1,
      wallet: { walletName: 'First', accounts: [ethereum] },
    });
    const { subOrganizationId, wallet } = result['createSubOrganizationResultV8'] as {
      subOrganizationId: string;
      wallet: { walletId: string; addresses: string[] };
    };
    const { accounts } = await coordinator.client.query<{ accounts: object[] }>('list_wallet_accounts', {
      organizationId: subOrganizationId,
      includeWalletDetails: true,
    });
    expect(accounts).toEqual([
      objectWith({
        organizationId: subOrganizationId,
        walletId: wallet.walletId,
        address: wallet.addresses[0],
        walletDetails: objectWith({ walletName: 'First' }),
      }),
    ]);
    // The wallet is not the parent's own.
    const attempt = coordinator.client.query('get_wallet', { walletId: wallet.walletId });
    expect(await refusal(attempt)).toMatchObject({ status: 404 });
  });
});

test('wallets, exports and waiting imports outlive a restart', async () => {
  let own = await startCoordinator({ seed: 'restart' });
  try {
    const { result } = await own.client.submit('ACTIVITY_TYPE_CREATE_WALLET', {
      walletName: 'Kept',
      accounts: [ethereum],
    });
    const { walletId } = result['createWalletResult'] as { walletId: string };
    const { userId } = own.root;
    const begun = await own.client.submit('ACTIVITY_TYPE_INIT_IMPORT_WALLET', { userId });
    const { importBundle } = begun.result['initImportWalletResult'] as { importBundle: string };
    own = await own.restart();
    const { body } = await exchange(`${own.url}/public/v1/discovery/keys`);
    const encryptedBundle = await encryptWalletToBundle({
      mnemonic: published.bip84.mnemonic,
      importBundle,
      userId,
      organizationId: own.organizationId,
      dangerouslyOverrideSignerPublicKey: (body as { signer: string }).signer,
    });
    const taken = { userId, walletName: 'Imported', encryptedBundle, accounts: [ethereum] };
    await own.client.submit('ACTIVITY_TYPE_IMPORT_WALLET', taken);
    await own.client.submit('ACTIVITY_TYPE_EXPORT_WALLET', anExport(walletId));
    const { wallets: listed } = await own.client.query<{ wallets: object[] }>('list_wallets');
    expect(listed).toEqual([
      objectWith({ walletName: 'Kept', exported: true, imported: false }),
      objectWith({ walletName: 'Imported', exported: false, imported: true }),
    ]);
  } finally {
    await own.close();
  }
});
