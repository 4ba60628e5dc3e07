import { createHmac } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { HDKey } from '@scure/bip32';
import { mnemonicToEntropy } from '@scure/bip39';
import { wordlist } from '@scure/bip39/wordlists/english.js';
import {
  decryptExportBundle,
  encryptOnRampSecret,
  encryptPrivateKeyToBundle,
  encryptWalletToBundle,
  generateP256KeyPair,
} from '@turnkey/crypto';
import { Mnemonic, Wallet } from 'ethers';
import { vaultIdOf } from '../../src/domain/vault-streams.js';
import { SqliteEventStore } from '../../src/ledger/stores/sqlite/sqlite.js';
import type { StampingClient } from '../../src/testing/index.js';
import { LocalKeyEncryption } from '../../src/vault/key-encryption.js';
import { Vault } from '../../src/vault/vault.js';
import { exchange, refusal } from '../e2e/exchange.js';
import { countersign, Installation, main, type Run } from '../e2e/installation.js';
import { filesUnder, findIn, type Written } from '../e2e/secrets.js';
import { until } from '../e2e/until.js';

// A real process with its most talkative log, secrets that the test knows, and a look at everything that it has written.

const patience = 300_000;

/** BIP-39 test vectors (trezor/python-mnemonic): known to everybody, and to no program by chance. */
const importedMnemonic =
  'hamster diagram private dutch cause delay private meat slide toddler razor book happy fancy gospel tennis maple dilemma loan word shrug inflict delay length';
/** Words of the list whose checksum is wrong: refused, and still somebody's. */
const mistypedMnemonic = 'ripple scissors kick mammal hire column oak again sun offer wealth timber';
const importedKey = 'e9873d79c6d87dc0fb6a5778633389f4453213303da61f20bd67fc233aa33262';
const importedSolanaKey = '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60';
/** Keys of an account at a fiat on-ramp: the second, sealed to another key, is refused. */
const onRampKeys = { secret: 'sk_live_Qm7vT2xLw9ZpR4nK', private: 'onramp-private-Yb3Hd8FsJ6cWuE1a' };
/** Given to a start that is refused. */
const wrongKek = '0f1e2d3c4b5a69788796a5b4c3d2e1f00112233445566778899aabbccddeeff0';
/** Above the order of secp256k1: refused. */
const impossibleKey = `${'f'.repeat(60)}a1b2`;

const ethereumAt = (index: number) => ({
  curve: 'CURVE_SECP256K1',
  pathFormat: 'PATH_FORMAT_BIP32',
  path: `m/44'/60'/0'/0/${index}`,
  addressFormat: 'ADDRESS_FORMAT_ETHEREUM',
});
const solana = {
  curve: 'CURVE_ED25519',
  pathFormat: 'PATH_FORMAT_BIP32',
  path: "m/44'/501'/0'/0'",
  addressFormat: 'ADDRESS_FORMAT_SOLANA',
};

let installation: Installation;
let settings: Readonly<Record<string, string>>;
const secrets = new Map<string, Uint8Array>();
const mnemonics: string[] = [mistypedMnemonic];
/** Everything that was seen, at whatever time: files may come and go. */
const seen: Written[] = [];
const runs: Run[] = [];

const fetched = globalThis.fetch;

beforeAll(async () => {
  installation = await Installation.make();
  const temporary = join(installation.dataDir, 'tmp');
  await mkdir(temporary);
  settings = { LOG_LEVEL: 'debug', TMPDIR: temporary };
  globalThis.fetch = async (...args) => {
    const response = await fetched(...args);
    const copy = response.clone();
    const parts: Uint8Array[] = [];
    copy.headers.forEach((value, name) => parts.push(Buffer.from(`${name}: ${value}\n`)));
    parts.push(new Uint8Array(await copy.arrayBuffer()));
    const content = Buffer.concat(parts);
    seen.push({ place: `the answer of ${copy.url}`, content });
    return response;
  };
});

afterAll(async () => {
  globalThis.fetch = fetched;
  await installation.remove();
});

async function look(when: string): Promise<void> {
  for (const { place, content } of await filesUnder(installation.dataDir)) {
    seen.push({ place: `${place} ${when}`, content });
  }
}

async function start(): Promise<Run & { readonly url: string }> {
  const server = await installation.start(settings);
  runs.push(server);
  return server;
}

function knowKey(name: string, key: Uint8Array): void {
  secrets.set(name, key);
}

const hexOf = (name: string): string => Buffer.from(secrets.get(name)!).toString('hex');

/** Everything that follows from a mnemonic on the way to its accounts. */
function knowMnemonic(name: string, phrase: string): void {
  mnemonics.push(phrase);
  secrets.set(`phrase of ${name}`, Buffer.from(phrase));
  knowKey(`entropy of ${name}`, mnemonicToEntropy(phrase, wordlist));
  const seed = Buffer.from(Mnemonic.fromPhrase(phrase).computeSeed().slice(2), 'hex');
  knowKey(`seed of ${name}`, seed);
  knowKey(`half of the seed of ${name}`, seed.subarray(0, 32));
  const master = HDKey.fromMasterSeed(seed);
  for (const path of ['m', "m/44'", "m/44'/60'", "m/44'/60'/0'", "m/44'/60'/0'/0"]) {
    const node = master.derive(path);
    knowKey(`key ${path} of ${name}`, node.privateKey!);
    knowKey(`chain code ${path} of ${name}`, node.chainCode!);
    secrets.set(`extended key ${path} of ${name}`, Buffer.from(node.privateExtendedKey));
  }
  for (const index of [0, 1, 2])
    knowKey(`account ${index} of ${name}`, master.derive(ethereumAt(index).path).privateKey!);
  const hmac = (key: string | Uint8Array, data: Uint8Array) => createHmac('sha512', key).update(data).digest();
  let node = hmac('ed25519 seed', seed);
  for (const segment of solana.path.split('/').slice(1)) {
    const data = Buffer.concat([Buffer.of(0), node.subarray(0, 32), Buffer.alloc(4)]);
    data.writeUInt32BE(Number.parseInt(segment, 10) + 0x8000_0000, 33);
    node = hmac(node.subarray(32), data);
    knowKey(`Solana key of ${name} at ${segment}`, node.subarray(0, 32));
  }
}

/** The keys of the file, and everything that the store holds under them: what the test did not plant as well. */
async function knowWhatIsSealed(): Promise<number> {
  const lines = (await readFile(join(installation.dataDir, 'kek'), 'utf8')).trim().split('\n');
  const keks = lines.map((line) => Buffer.from(line, 'hex'));
  for (const kek of keks) secrets.set(`key-encryption key ${kek.toString('hex').slice(0, 4)}`, kek);
  const randomness = { bytes: (count: number) => crypto.getRandomValues(new Uint8Array(count)) };
  const keyEncryption = new LocalKeyEncryption(keks, randomness);
  const store = await SqliteEventStore.open(join(installation.dataDir, 'events.db'));
  const vault = new Vault({ store, keyEncryption, randomness, clock: { now: () => Date.now() } });
  const head = (await store.head())!;
  let count = 0;
  await new Promise<void>((resolve, reject) => {
    const subscription = store.subscribe({
      after: 'start',
      onError: reject,
      async onEvents(events) {
        for (const { stream, revision, type, data, metadata } of events) {
          // Once more as text: in the file it may be cut into pages.
          const content = Buffer.from(JSON.stringify([type, data, metadata]));
          seen.push({ place: `event ${revision} of ${stream}`, content });
          const vaultId = vaultIdOf(stream);
          if (vaultId === undefined || type !== 'SecretSealed') continue;
          const { organizationId, name } = data as { organizationId: string; name: string };
          const copy = await vault.open({ organizationId, vaultId, name }, (secret) => Buffer.from(secret));
          knowKey(`\`${name}\` of vault ${vaultId}`, copy);
          count += 1;
        }
        if (events.some(({ position }) => position >= head)) subscription.close().then(resolve, reject);
      },
    });
  });
  await store.close();
  return count;
}

async function submit(client: StampingClient, type: string, parameters: object): Promise<Record<string, unknown>> {
  const { status, result } = await client.submit(`ACTIVITY_TYPE_${type}`, parameters);
  expect([type, status]).toEqual([type, 'ACTIVITY_STATUS_COMPLETED']);
  return Object.values(result)[0] as Record<string, unknown>;
}

test(
  'nothing that the process has ever written holds a secret',
  async () => {
    const first = await start();
    const { organizationId, userId } = (await installation.root()) as { organizationId: string; userId: string };
    const client = await installation.client(first.url);
    const { body } = await exchange(`${first.url}/public/v1/discovery/keys`);
    const trusted = { organizationId, dangerouslyOverrideSignerPublicKey: (body as { signer: string }).signer };

    const initWallet = async () => String((await submit(client, 'INIT_IMPORT_WALLET', { userId }))['importBundle']);
    const initKey = async () => String((await submit(client, 'INIT_IMPORT_PRIVATE_KEY', { userId }))['importBundle']);
    const sealedWallet = async (mnemonic: string, importBundle: string) =>
      encryptWalletToBundle({ mnemonic, importBundle, userId, ...trusted });
    const sealedKey = async (privateKey: string, keyFormat: 'HEXADECIMAL' | 'SOLANA' = 'HEXADECIMAL') =>
      encryptPrivateKeyToBundle({ privateKey, keyFormat, importBundle: await initKey(), userId, ...trusted });
    const target = () => {
      const { privateKey: embeddedKey, publicKeyUncompressed: targetPublicKey } = generateP256KeyPair();
      const open = (bundle: unknown, returnMnemonic: boolean) =>
        decryptExportBundle({ exportBundle: String(bundle), embeddedKey, returnMnemonic, ...trusted });
      return { targetPublicKey, open };
    };

    // What is brought in.
    knowMnemonic('the imported wallet', importedMnemonic);
    knowKey('the imported key', Buffer.from(importedKey, 'hex'));
    knowKey('the imported Solana key', Buffer.from(importedSolanaKey, 'hex'));
    knowKey('the impossible key', Buffer.from(impossibleKey, 'hex'));
    secrets.set('the mistyped phrase', Buffer.from(mistypedMnemonic));
    const imported = await submit(client, 'IMPORT_WALLET', {
      userId,
      walletName: 'Imported',
      encryptedBundle: await sealedWallet(importedMnemonic, await initWallet()),
      accounts: [ethereumAt(0), solana],
    });
    const [address, solanaAddress] = imported['addresses'] as [string, string];
    expect(address).toBe(new Wallet(`0x${hexOf('account 0 of the imported wallet')}`).address);
    const importKey = (privateKeyName: string, encryptedBundle: string, curve: string, format: string) => ({
      userId,
      privateKeyName,
      encryptedBundle,
      curve,
      addressFormats: [format],
    });
    const importedKeyResult = await submit(
      client,
      'IMPORT_PRIVATE_KEY',
      importKey('Imported', await sealedKey(importedKey), 'CURVE_SECP256K1', 'ADDRESS_FORMAT_ETHEREUM'),
    );
    await submit(
      client,
      'IMPORT_PRIVATE_KEY',
      importKey('Imported Solana', await sealedKey(importedSolanaKey), 'CURVE_ED25519', 'ADDRESS_FORMAT_SOLANA'),
    );

    // What is made here, and told to the test alone.
    const created = await submit(client, 'CREATE_WALLET', { walletName: 'Created', accounts: [ethereumAt(0)] });
    const { walletId } = created as { walletId: string };
    const forWallet = target();
    const { exportBundle } = await submit(client, 'EXPORT_WALLET', {
      walletId,
      targetPublicKey: forWallet.targetPublicKey,
    });
    knowMnemonic('the created wallet', await forWallet.open(exportBundle, true));
    await submit(client, 'CREATE_WALLET_ACCOUNTS', { walletId, accounts: [ethereumAt(1), solana] });
    await submit(client, 'CREATE_WALLET_ACCOUNTS', { walletId, accounts: [ethereumAt(2)], persist: false });
    const [createdAddress] = created['addresses'] as [string];
    const forAccount = target();
    const exportedAccount = await submit(client, 'EXPORT_WALLET_ACCOUNT', {
      address: createdAddress,
      targetPublicKey: forAccount.targetPublicKey,
    });
    const accountKey = await forAccount.open(exportedAccount['exportBundle'], false);
    expect(accountKey).toBe(hexOf('account 0 of the created wallet'));
    const { privateKeys } = await submit(client, 'CREATE_PRIVATE_KEYS_V2', {
      privateKeys: [
        {
          privateKeyName: 'Created',
          curve: 'CURVE_P256',
          addressFormats: ['ADDRESS_FORMAT_COMPRESSED'],
          privateKeyTags: [],
        },
      ],
    });
    const [{ privateKeyId }] = privateKeys as [{ privateKeyId: string }];
    const forKey = target();
    const exportedKey = await submit(client, 'EXPORT_PRIVATE_KEY', {
      privateKeyId,
      targetPublicKey: forKey.targetPublicKey,
    });
    knowKey('the created key', Buffer.from(await forKey.open(exportedKey['exportBundle'], false), 'hex'));

    // What others have given us.
    const { onRampEncryption } = body as { onRampEncryption: string };
    for (const [name, key] of Object.entries(onRampKeys)) secrets.set(`the ${name} on-ramp key`, Buffer.from(key));
    const onRamp = (more: object = {}) => ({
      onrampProvider: 'FIAT_ON_RAMP_PROVIDER_ALPHA',
      projectId: 'project',
      publishableApiKey: 'pk_live',
      encryptedSecretApiKey: encryptOnRampSecret(onRampKeys.secret, onRampEncryption),
      encryptedPrivateApiKey: encryptOnRampSecret(onRampKeys.private, onRampEncryption),
      ...more,
    });
    await submit(client, 'CREATE_FIAT_ON_RAMP_CREDENTIAL', onRamp());

    // What signs.
    const digest = 'ab'.repeat(32);
    const payload = (signWith: string, hashFunction: string, encoding = 'PAYLOAD_ENCODING_HEXADECIMAL') => ({
      signWith,
      payload: digest,
      encoding,
      hashFunction,
    });
    const signers: readonly (readonly [string, string])[] = [
      [address, 'HASH_FUNCTION_NO_OP'],
      [createdAddress, 'HASH_FUNCTION_KECCAK256'],
      [solanaAddress, 'HASH_FUNCTION_NOT_APPLICABLE'],
      [String(importedKeyResult['privateKeyId']), 'HASH_FUNCTION_SHA256'],
      [privateKeyId, 'HASH_FUNCTION_NO_OP'],
    ];
    for (const signer of signers) await submit(client, 'SIGN_RAW_PAYLOAD_V2', payload(...signer));

    // What fails, in as many ways as there are.
    const attempt = async (type: string, parameters: object, status = 400) => {
      const answer = await refusal(client.submit(`ACTIVITY_TYPE_${type}`, parameters));
      expect([type, answer.message, answer.status]).toEqual([type, answer.message, status]);
    };
    const wallet = (encryptedBundle: string, accounts: readonly object[] = []) => ({
      userId,
      walletName: 'Never',
      encryptedBundle,
      accounts,
    });
    const stale = await initWallet();
    const forStale = await sealedWallet(importedMnemonic, stale);
    const fresh = await initWallet();
    const forFresh = await sealedWallet(importedMnemonic, fresh);
    await attempt('IMPORT_WALLET', wallet(forStale));
    await attempt('IMPORT_WALLET', wallet('{"not":"a bundle"}'));
    await attempt('IMPORT_WALLET', wallet(forFresh.replace(/"ciphertext":"../, '"ciphertext":"00')));
    await attempt('IMPORT_WALLET', wallet(await sealedWallet(mistypedMnemonic, fresh)));
    await attempt('IMPORT_WALLET', wallet(await sealedWallet(`${importedMnemonic} ${mistypedMnemonic}`, fresh)));
    await attempt('IMPORT_WALLET', wallet(forFresh, [{ ...ethereumAt(0), path: "m/44'/sixty'/0" }]));
    await attempt('IMPORT_WALLET', wallet(forFresh, [{ ...solana, addressFormat: 'ADDRESS_FORMAT_ETHEREUM' }]));
    const secp256k1 = ['CURVE_SECP256K1', 'ADDRESS_FORMAT_ETHEREUM'] as const;
    await attempt('IMPORT_PRIVATE_KEY', importKey('Never', await sealedKey(impossibleKey), ...secp256k1));
    await attempt('IMPORT_PRIVATE_KEY', importKey('Never', await sealedKey(importedKey.slice(2)), ...secp256k1));
    await attempt('CREATE_WALLET_ACCOUNTS', { walletId, accounts: [{ ...ethereumAt(3), path: 'm/2147483648' }] });
    await attempt('EXPORT_WALLET', { walletId, targetPublicKey: `04${'ab'.repeat(64)}` });
    await attempt('EXPORT_PRIVATE_KEY', { privateKeyId, targetPublicKey: 'no key' });
    await attempt('SIGN_RAW_PAYLOAD_V2', { ...payload(address, 'HASH_FUNCTION_NO_OP'), payload: 'abcd' });
    await attempt('SIGN_RAW_PAYLOAD_V2', payload(solanaAddress, 'HASH_FUNCTION_SHA256'));
    await attempt('SIGN_RAW_PAYLOAD_V2', payload('nobody', 'HASH_FUNCTION_NO_OP'), 404);
    await attempt(
      'CREATE_FIAT_ON_RAMP_CREDENTIAL',
      onRamp({ encryptedPrivateApiKey: encryptOnRampSecret(onRampKeys.private) }),
    );
    for (const path of ['metrics', 'health/ready', 'openapi.json', 'docs', 'public/v1/submit/import_wallet', 'x'])
      await exchange(`${first.url}/${path}`);
    for (const query of [
      'list_wallets',
      'list_wallet_accounts',
      'list_private_keys',
      'list_fiat_on_ramp_credentials',
      'list_activities',
    ]) {
      await client.query(query, {});
    }
    await look('while it runs');

    // A key that goes, an end without warning, and what is read again afterwards.
    const { walletId: deleted } = (await submit(client, 'CREATE_WALLET', {
      walletName: 'Deleted',
      accounts: [ethereumAt(0)],
    })) as { walletId: string };
    await submit(client, 'DELETE_WALLETS', { walletIds: [deleted], deleteWithoutExport: true });
    first.child.kill('SIGKILL');
    await first.exit;
    await look('after a kill');
    const second = await start();
    const again = await installation.client(second.url);
    for (const signer of signers) await submit(again, 'SIGN_RAW_PAYLOAD_V2', payload(...signer));
    await look('after a restart');
    await stopTalking(second);
    expect(await knowWhatIsSealed()).toBeGreaterThan(20);

    // A rotation that is killed, its repair, and a start under the wrong key.
    const broken = installation.run(countersign, settings, ['kek', 'rotate', '--yes']);
    runs.push(broken);
    const linesOfKeys = async () => (await readFile(join(installation.dataDir, 'kek'), 'utf8')).trim().split('\n');
    await until('the new key is in the file', async () => (await linesOfKeys()).length === 2);
    broken.child.kill('SIGKILL');
    await broken.exit;
    await look('after a rotation that broke off');
    await knowWhatIsSealed();
    const rotation = installation.run(countersign, settings, ['kek', 'rotate', '--yes']);
    runs.push(rotation);
    expect((await rotation.exit).code).toBe(0);
    await look('after a rotation');
    const refused = installation.run(main, { ...settings, KEK: wrongKek });
    runs.push(refused);
    expect((await refused.exit).code).toBe(1);
    const third = await start();
    await submit(await installation.client(third.url), 'SIGN_RAW_PAYLOAD_V2', payload(...signers[0]!));
    await stopTalking(third);
    await look('at the end');
    await knowWhatIsSealed();
    secrets.set('a wrong key-encryption key', Buffer.from(wrongKek, 'hex'));

    for (const [index, { stdout, stderr }] of runs.entries()) {
      seen.push({ place: `what run ${index} said`, content: Buffer.from(stdout() + stderr()) });
    }
    const total = seen.reduce((sum, { content }) => sum + content.length, 0);
    expect([secrets.size > 80, mnemonics.length, total > 1_000_000]).toEqual([true, 3, true]);
    // Without these the test would look at nothing of the kind.
    const places = seen.map(({ place }) => place).join('\n');
    for (const place of ['events.db-wal after a kill', 'read-models.db ', 'metrics', 'import_wallet', 'list_wallets']) {
      expect(places).toContain(place);
    }
    const everything = findIn(seen, secrets, mnemonics);
    // The key-encryption keys are in their files, the old one's too, which shows that what is there is found. A rotation that is
    // killed while it replaces its file leaves the new one beside it.
    const inTheirFiles = /^key-encryption key \w{4} as hex in (?:kek|kek\.new|old-kek\.[0-9a-f]{16}) /;
    expect(everything.filter((one) => !inTheirFiles.test(one))).toEqual([]);
    expect(everything.length).toBeGreaterThan(0);
  },
  patience,
);

/** As `stop`, for a server that was told to say everything. */
async function stopTalking({ child, exit }: Run): Promise<void> {
  child.kill('SIGTERM');
  expect(await exit).toEqual({ code: 0, signal: null });
}

test('each form of a secret is found, wherever it stands', async () => {
  const key = Buffer.from(importedKey, 'hex');
  const phrase = importedMnemonic;
  const wrapped = (before: number, encoding: 'base64' | 'base64url') =>
    Buffer.concat([Buffer.alloc(before, 7), key, Buffer.alloc(5, 9)]).toString(encoding);
  const plants: Readonly<Record<string, string | Buffer>> = {
    raw: Buffer.concat([Buffer.from('before'), key, Buffer.from('behind')]),
    hex: `x${key.toString('hex')}x`,
    HEX: key.toString('hex').toUpperCase(),
    json: JSON.stringify(key),
    list: JSON.stringify([...key]),
    printed: `Buffer ${(key.toString('hex').match(/../g) ?? []).join(' ')}`,
    ...Object.fromEntries([0, 1, 2, 3, 16].map((before) => [`base64 ${before}`, wrapped(before, 'base64')])),
    ...Object.fromEntries([0, 1, 2, 3, 16].map((before) => [`base64url ${before}`, wrapped(before, 'base64url')])),
    words: JSON.stringify(phrase.split(' ').slice(5, 8)),
    sentence: `the phrase ${phrase.split(' ').slice(20).join(' ')} is wrong`,
    lines: phrase.split(' ').join('\n'),
  };
  const folder = await mkdtemp(join(tmpdir(), 'countersign-plants-'));
  for (const [name, content] of Object.entries(plants)) await writeFile(join(folder, name), content);
  await writeFile(join(folder, 'innocent'), `${key.toString('hex').slice(0, 20)} hamster diagram; ${phrase.length}`);
  const found = findIn(await filesUnder(folder), new Map([['key', key]]), [phrase]);
  await rm(folder, { recursive: true });
  const places = found.map((one) => one.slice(one.lastIndexOf(' in ') + 4));
  expect([...new Set(places)].sort()).toEqual(Object.keys(plants).sort());
});
