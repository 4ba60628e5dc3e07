import { createPublicKey, verify } from 'node:crypto';
import { ed25519 } from '@noble/curves/ed25519.js';
import { p256 } from '@noble/curves/nist.js';
import { base58 } from '@scure/base';
import { ApiKeyStamper } from '@turnkey/api-key-stamper';
import { decryptExportBundle, encryptPrivateKeyToBundle } from '@turnkey/crypto';
import { TurnkeyClient } from '@turnkey/http';
import type { Turnkey } from '@turnkey/sdk-server';
import { Wallet } from 'ethers';
import { startCoordinator, type ApiKeyPair, type TestCoordinator, type TestUser } from '../../src/testing/index.js';
import type { ActivityEnvelope } from '../../src/wire/envelope.js';
import { textLike } from './exchange.js';

// The package's index also loads its browser actions, which need a peer package (viem) that nothing here uses.
const sdkFile = new URL('../../node_modules/@turnkey/sdk-server/dist/sdk-client.mjs', import.meta.url).pathname;
const { TurnkeyServerSDK } = (await import(sdkFile)) as { TurnkeyServerSDK: typeof Turnkey };

let coordinator: TestCoordinator;
let organizationId: string;
let signerKey: string;

beforeAll(async () => {
  coordinator = await startCoordinator({ seed: 'private keys', at: new Date() });
  organizationId = coordinator.organizationId;
  signerKey = await signerKeyOf(coordinator);
});

afterAll(() => coordinator.close());

async function signerKeyOf({ url }: TestCoordinator): Promise<string> {
  const response = await fetch(`${url}/public/v1/discovery/keys`);
  return ((await response.json()) as { signer: string }).signer;
}

function httpClient({ publicKey: apiPublicKey, privateKey: apiPrivateKey }: ApiKeyPair): TurnkeyClient {
  return new TurnkeyClient({ baseUrl: coordinator.url }, new ApiKeyStamper({ apiPublicKey, apiPrivateKey }));
}

function sdkClient({ publicKey: apiPublicKey, privateKey: apiPrivateKey }: ApiKeyPair) {
  return new TurnkeyServerSDK({
    apiBaseUrl: coordinator.url,
    apiPublicKey,
    apiPrivateKey,
    defaultOrganizationId: organizationId,
    activityPoller: { intervalMs: 10, numRetries: 3 },
  }).apiClient();
}

let last = 0;
const timestampMs = (): string => String((last = Math.max(Date.now(), last + 1)));

let count = 0;
const freshName = (name: string): string => `${name} ${++count}`;

interface KeyOptions {
  readonly privateKeyName?: string;
  readonly curve?: string;
  readonly addressFormats?: readonly string[];
  readonly privateKeyTags?: readonly string[];
}

/** Creates a private key, by default one for Ethereum, as the root user; its id and addresses. */
async function createKey(options: KeyOptions = {}, on = coordinator) {
  const { result } = await on.client.submit('ACTIVITY_TYPE_CREATE_PRIVATE_KEYS_V2', {
    privateKeys: [
      {
        privateKeyName: freshName('key'),
        curve: 'CURVE_SECP256K1',
        addressFormats: ['ADDRESS_FORMAT_ETHEREUM'],
        privateKeyTags: [],
        ...options,
      },
    ],
  });
  const { privateKeys } = result['createPrivateKeysResultV2'] as {
    privateKeys: { privateKeyId: string; addresses: { format: string; address: string }[] }[];
  };
  return privateKeys[0]!;
}

async function tagKeys(privateKeyTagName: string, ...privateKeyIds: string[]): Promise<string> {
  const { result } = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_PRIVATE_KEY_TAG', {
    privateKeyTagName,
    privateKeyIds,
  });
  return (result['createPrivateKeyTagResult'] as { privateKeyTagId: string }).privateKeyTagId;
}

async function keyOf(privateKeyId: string, on = coordinator): Promise<Readonly<Record<string, unknown>>> {
  const { privateKey } = await on.client.query<{ privateKey: Record<string, unknown> }>('get_private_key', {
    privateKeyId,
  });
  return privateKey;
}

/** Exports a key, and opens the bundle as a client does. */
async function exported(
  privateKeyId: string,
  { on = coordinator, keyFormat = 'HEXADECIMAL' }: { on?: TestCoordinator; keyFormat?: 'HEXADECIMAL' | 'SOLANA' } = {},
): Promise<string> {
  const target = on.newKey();
  const { result } = await on.client.submit('ACTIVITY_TYPE_EXPORT_PRIVATE_KEY', {
    privateKeyId,
    targetPublicKey: target.publicKey,
  });
  const { exportBundle } = result['exportPrivateKeyResult'] as { exportBundle: string };
  return decryptExportBundle({
    exportBundle,
    embeddedKey: target.privateKey,
    organizationId: on.organizationId,
    dangerouslyOverrideSignerPublicKey: signerKey,
    keyFormat,
    returnMnemonic: false,
  });
}

async function importBundleFor(userId: string): Promise<string> {
  const { result } = await coordinator.client.submit('ACTIVITY_TYPE_INIT_IMPORT_PRIVATE_KEY', { userId });
  return (result['initImportPrivateKeyResult'] as { importBundle: string }).importBundle;
}

const sealed = (importBundle: string, userId: string, privateKey: string, keyFormat = 'HEXADECIMAL') =>
  encryptPrivateKeyToBundle({
    privateKey,
    keyFormat,
    importBundle,
    userId,
    organizationId,
    dangerouslyOverrideSignerPublicKey: signerKey,
  });

/** Parameters of an import, of an Ethereum key by default. */
const importing = (userId: string, encryptedBundle: string, more: object = {}) => ({
  userId,
  privateKeyName: freshName('imported'),
  encryptedBundle,
  curve: 'CURVE_SECP256K1',
  addressFormats: ['ADDRESS_FORMAT_ETHEREUM'],
  ...more,
});

const importKey = (parameters: object): Promise<ActivityEnvelope> =>
  coordinator.client.submit('ACTIVITY_TYPE_IMPORT_PRIVATE_KEY', parameters);

const refused = (status: number, message: RegExp) => ({ status, body: { message: textLike(message) } });

/** The first account of the mnemonic `test … junk`, known to every Ethereum developer. */
const knownKey = 'ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80';
const knownAddress = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266';

describe('private keys', () => {
  test('@turnkey/http creates them, and finds the addresses that their exported keys have', async () => {
    const client = httpClient(coordinator.client.key);
    const key = (privateKeyName: string, curve: 'CURVE_SECP256K1' | 'CURVE_ED25519' | 'CURVE_P256') => ({
      privateKeyName,
      curve,
      privateKeyTags: [],
    });
    const { activity } = await client.createPrivateKeys({
      type: 'ACTIVITY_TYPE_CREATE_PRIVATE_KEYS_V2',
      timestampMs: timestampMs(),
      organizationId,
      parameters: {
        privateKeys: [
          { ...key('ethereum', 'CURVE_SECP256K1'), addressFormats: ['ADDRESS_FORMAT_ETHEREUM'] },
          { ...key('solana', 'CURVE_ED25519'), addressFormats: ['ADDRESS_FORMAT_SOLANA', 'ADDRESS_FORMAT_COMPRESSED'] },
          { ...key('plain', 'CURVE_P256'), addressFormats: [] },
        ],
      },
    });
    const [ethereum, solana, plain] = activity.result.createPrivateKeysResultV2!.privateKeys;

    const secret = await exported(ethereum!.privateKeyId!);
    expect(ethereum!.addresses).toEqual([
      { format: 'ADDRESS_FORMAT_ETHEREUM', address: new Wallet(`0x${secret}`).address },
    ]);
    const pair = base58.decode(await exported(solana!.privateKeyId!, { keyFormat: 'SOLANA' }));
    const solanaKey = ed25519.getPublicKey(pair.subarray(0, 32));
    expect(pair.subarray(32)).toEqual(solanaKey);
    expect(solana!.addresses).toEqual([
      { format: 'ADDRESS_FORMAT_SOLANA', address: base58.encode(solanaKey) },
      { format: 'ADDRESS_FORMAT_COMPRESSED', address: Buffer.from(solanaKey).toString('hex') },
    ]);
    expect(plain!.addresses).toEqual([]);

    const { privateKeys } = await client.getPrivateKeys({ organizationId });
    expect(privateKeys.map(({ privateKeyName, exported: was }) => [privateKeyName, was])).toEqual([
      ['ethereum', true],
      ['solana', true],
      ['plain', false],
    ]);
    const { privateKey } = await client.getPrivateKey({ organizationId, privateKeyId: ethereum!.privateKeyId! });
    expect(privateKey).toEqual({
      privateKeyId: ethereum!.privateKeyId,
      privateKeyName: 'ethereum',
      publicKey: new Wallet(`0x${secret}`).signingKey.compressedPublicKey.slice(2),
      curve: 'CURVE_SECP256K1',
      addresses: ethereum!.addresses,
      privateKeyTags: [],
      createdAt: { seconds: textLike(/^\d+$/), nanos: textLike(/^\d+$/) },
      updatedAt: { seconds: textLike(/^\d+$/), nanos: textLike(/^\d+$/) },
      exported: true,
      imported: false,
    });
  });

  test('clients of the first version find the ids where they look for them', async () => {
    const { intent, result } = await coordinator.client.submit('ACTIVITY_TYPE_CREATE_PRIVATE_KEYS', {
      privateKeys: [{ privateKeyName: freshName('old'), curve: 'CURVE_P256', privateKeyTags: [], addressFormats: [] }],
    });
    expect(Object.keys(intent)).toEqual(['createPrivateKeysIntent']);
    const { privateKeyIds } = result['createPrivateKeysResult'] as { privateKeyIds: string[] };
    expect(await keyOf(privateKeyIds[0]!)).toMatchObject({ curve: 'CURVE_P256' });
  });

  test('@turnkey/sdk-server creates, tags, exports and deletes them', async () => {
    const client = sdkClient(coordinator.client.key);
    const { privateKeys } = await client.createPrivateKeys({
      privateKeys: [
        {
          privateKeyName: freshName('sdk'),
          curve: 'CURVE_SECP256K1',
          privateKeyTags: [],
          addressFormats: ['ADDRESS_FORMAT_ETHEREUM'],
        },
      ],
    });
    const privateKeyId = privateKeys[0]!.privateKeyId!;
    const { privateKeyTagId } = await client.createPrivateKeyTag({
      privateKeyTagName: 'by the sdk',
      privateKeyIds: [privateKeyId],
    });
    expect((await client.getPrivateKey({ privateKeyId })).privateKey.privateKeyTags).toEqual([privateKeyTagId]);
    expect((await client.listPrivateKeyTags({ organizationId })).privateKeyTags).toEqual([
      expect.objectContaining({
        tagId: privateKeyTagId,
        tagName: 'by the sdk',
        tagType: 'TAG_TYPE_PRIVATE_KEY',
      }),
    ]);
    await client.updatePrivateKeyTag({
      privateKeyTagId,
      newPrivateKeyTagName: 'renamed',
      addPrivateKeyIds: [],
      removePrivateKeyIds: [privateKeyId],
    });
    expect((await client.getPrivateKey({ privateKeyId })).privateKey.privateKeyTags).toEqual([]);
    await client.updatePrivateKeyTag({ privateKeyTagId, addPrivateKeyIds: [privateKeyId], removePrivateKeyIds: [] });
    expect(await client.deletePrivateKeyTags({ privateKeyTagIds: [privateKeyTagId] })).toMatchObject({
      privateKeyTagIds: [privateKeyTagId],
      privateKeyIds: [privateKeyId],
    });
    expect((await client.listPrivateKeyTags({ organizationId })).privateKeyTags).toEqual([]);
    expect((await client.getPrivateKey({ privateKeyId })).privateKey.privateKeyTags).toEqual([]);

    await expect(client.deletePrivateKeys({ privateKeyIds: [privateKeyId] })).rejects.toThrow(
      /private key has not been exported/,
    );
    const { publicKey: targetPublicKey } = coordinator.newKey();
    const { exportBundle } = await client.exportPrivateKey({ privateKeyId, targetPublicKey });
    expect(JSON.parse(exportBundle)).toMatchObject({ version: 'v1.0.0', enclaveQuorumPublic: signerKey });
    expect(await client.deletePrivateKeys({ privateKeyIds: [privateKeyId] })).toMatchObject({
      privateKeyIds: [privateKeyId],
    });
    await expect(client.getPrivateKey({ privateKeyId })).rejects.toThrow(/no private key/);
  });

  test('what was sealed of a deleted key is gone from the store, and nobody can use the key', async () => {
    const { privateKeyId, addresses } = await createKey();
    const recorded = (await coordinator.events()).find(
      ({ type, data }) =>
        type === 'PrivateKeyCreated' && (data as { privateKeyId: string }).privateKeyId === privateKeyId,
    );
    const stream = `vault-${(recorded!.data as { vaultId: string }).vaultId}`;
    expect((await coordinator.events(stream)).map(({ type }) => type)).toEqual(['SecretSealed']);

    await coordinator.client.submit('ACTIVITY_TYPE_DELETE_PRIVATE_KEYS', {
      privateKeyIds: [privateKeyId],
      deleteWithoutExport: true,
    });
    expect(await coordinator.events(stream)).toEqual([]);
    await expect(exported(privateKeyId)).rejects.toMatchObject(refused(404, /^no private key/));
    for (const signWith of [privateKeyId, addresses[0]!.address]) {
      await expect(
        coordinator.client.submit('ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2', {
          signWith,
          payload: '00'.repeat(32),
          encoding: 'PAYLOAD_ENCODING_HEXADECIMAL',
          hashFunction: 'HASH_FUNCTION_NO_OP',
        }),
      ).rejects.toMatchObject(refused(404, /^Could not find any resource to sign with/));
    }
    await expect(
      coordinator.client.submit('ACTIVITY_TYPE_DELETE_PRIVATE_KEYS', { privateKeyIds: [privateKeyId] }),
    ).rejects.toMatchObject(refused(404, /^no private key/));
  });

  test('a key signs by its id, with the key that is exported, also after a restart', async () => {
    const before = await startCoordinator({ seed: 'kept keys', store: 'sqlite' });
    let after = before;
    try {
      const { privateKeyId } = await createKey({ curve: 'CURVE_ED25519', addressFormats: [] }, before);
      after = await before.restart();
      const { result } = await after.client.submit('ACTIVITY_TYPE_SIGN_RAW_PAYLOAD_V2', {
        signWith: privateKeyId,
        payload: 'what is signed',
        encoding: 'PAYLOAD_ENCODING_TEXT_UTF8',
        hashFunction: 'HASH_FUNCTION_NOT_APPLICABLE',
      });
      const { r, s } = result['signRawPayloadResult'] as { r: string; s: string };
      const x = Buffer.from(String((await keyOf(privateKeyId, after))['publicKey']), 'hex').toString('base64url');
      const publicKey = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
      expect(verify(null, Buffer.from('what is signed'), publicKey, Buffer.from(r + s, 'hex'))).toBe(true);
    } finally {
      await after.close();
    }
  });
});

describe('imports', () => {
  let ann: TestUser;
  beforeAll(async () => {
    ann = await coordinator.createUser('Ann');
  });

  test('@turnkey/http brings a known key in, which comes out as it was', async () => {
    const client = httpClient(coordinator.client.key);
    const { userId } = coordinator.root;
    const started = await client.initImportPrivateKey({
      type: 'ACTIVITY_TYPE_INIT_IMPORT_PRIVATE_KEY',
      timestampMs: timestampMs(),
      organizationId,
      parameters: { userId },
    });
    const { importBundle } = started.activity.result.initImportPrivateKeyResult!;
    const { activity } = await client.importPrivateKey({
      type: 'ACTIVITY_TYPE_IMPORT_PRIVATE_KEY',
      timestampMs: timestampMs(),
      organizationId,
      parameters: {
        userId,
        privateKeyName: 'known',
        encryptedBundle: await sealed(importBundle, userId, knownKey),
        curve: 'CURVE_SECP256K1',
        addressFormats: ['ADDRESS_FORMAT_ETHEREUM'],
      },
    });
    const { privateKeyId, addresses } = activity.result.importPrivateKeyResult!;
    expect(addresses).toEqual([{ format: 'ADDRESS_FORMAT_ETHEREUM', address: knownAddress }]);
    expect(await keyOf(privateKeyId)).toMatchObject({ imported: true, exported: false, privateKeyName: 'known' });
    expect(await exported(privateKeyId)).toBe(knownKey);
  });

  test('a Solana key comes in as wallets write it', async () => {
    const { userId } = ann;
    const seed = Buffer.alloc(32, 9);
    const publicKey = ed25519.getPublicKey(seed);
    const pair = base58.encode(Buffer.concat([seed, publicKey]));
    const { result } = await importKey(
      importing(userId, await sealed(await importBundleFor(userId), userId, pair, 'SOLANA'), {
        curve: 'CURVE_ED25519',
        addressFormats: ['ADDRESS_FORMAT_SOLANA'],
      }),
    );
    const { privateKeyId, addresses } = result['importPrivateKeyResult'] as {
      privateKeyId: string;
      addresses: object[];
    };
    expect(addresses).toEqual([{ format: 'ADDRESS_FORMAT_SOLANA', address: base58.encode(publicKey) }]);
    expect(await exported(privateKeyId, { keyFormat: 'SOLANA' })).toBe(pair);
  });

  test('a bundle serves once, and its target key is shredded then', async () => {
    const { userId } = ann;
    const bundle = await sealed(await importBundleFor(userId), userId, '22'.repeat(32));
    const started = (await coordinator.events()).filter(({ type }) => type === 'ImportStarted').at(-1)!;
    const stream = `vault-${(started.data as { vaultId: string }).vaultId}`;
    expect(await coordinator.events(stream)).toHaveLength(1);
    await importKey(importing(userId, bundle));
    expect(await coordinator.events(stream)).toEqual([]);
    await expect(importKey(importing(userId, bundle))).rejects.toMatchObject(
      refused(400, /^no private key import is pending for user/),
    );
  });

  test('of many uses of one bundle at once one succeeds, and the others are told why not', async () => {
    const { userId } = ann;
    const bundle = await sealed(await importBundleFor(userId), userId, '23'.repeat(32));
    const outcomes = await Promise.allSettled(Array.from({ length: 8 }, () => importKey(importing(userId, bundle))));
    const failures = outcomes.flatMap((one) => (one.status === 'rejected' ? [one.reason as { status: number }] : []));
    expect(failures).toHaveLength(7);
    expect(failures.filter(({ status }) => status >= 500)).toEqual([]);
  });

  test('a new import takes the place of the one that waits', async () => {
    const { userId } = ann;
    const earlier = await sealed(await importBundleFor(userId), userId, '33'.repeat(32));
    const later = await importBundleFor(userId);
    await expect(importKey(importing(userId, earlier))).rejects.toMatchObject(
      refused(400, /^invalid request: encryptedBundle: it could not be decrypted: seal it to the target key/),
    );
    // What could not be read has used nothing up.
    await importKey(importing(userId, await sealed(later, userId, '33'.repeat(32))));
  });

  test.each<[string, string | undefined, object, RegExp]>([
    ['no bundle', undefined, {}, /encryptedBundle: it is not JSON with the strings/],
    ['too short for a key', '44'.repeat(31), {}, /encryptedBundle: a private key has 32 bytes, this one has 31/],
    ['zero', '00'.repeat(32), {}, /encryptedBundle: the private key is zero or not below the order of CURVE_SECP256K1/],
    [
      'not below the order of the curve',
      'ff'.repeat(32),
      { curve: 'CURVE_P256', addressFormats: [] },
      /encryptedBundle: the private key is zero or not below the order of CURVE_P256/,
    ],
  ])('what is %s is refused, without a word of the key, and nothing is recorded', async (_what, key, more, message) => {
    const { userId } = ann;
    const importBundle = await importBundleFor(userId);
    const parameters = importing(userId, key === undefined ? '{}' : await sealed(importBundle, userId, key), more);
    const before = (await coordinator.events()).length;
    const refusal = importKey(parameters);
    await expect(refusal).rejects.toMatchObject(refused(400, message));
    await expect(refusal).rejects.not.toMatchObject({ body: { message: textLike(key ?? 'nothing') } });
    expect((await coordinator.events()).length).toBe(before);
  });

  test('an import needs its permission', async () => {
    await expect(
      ann.client.submit('ACTIVITY_TYPE_INIT_IMPORT_PRIVATE_KEY', { userId: ann.userId }),
    ).rejects.toMatchObject(refused(403, /permission/));
    await coordinator.createPolicy({
      policyName: 'Ann imports',
      condition: "activity.resource == 'PRIVATE_KEY' && activity.action == 'IMPORT'",
      consensus: `approvers.any(user, user.id == '${ann.userId}')`,
    });
    const { result } = await ann.client.submit('ACTIVITY_TYPE_INIT_IMPORT_PRIVATE_KEY', { userId: ann.userId });
    const { importBundle } = result['initImportPrivateKeyResult'] as { importBundle: string };
    const bundle = await sealed(importBundle, ann.userId, '55'.repeat(32));
    const { status } = await ann.client.submit('ACTIVITY_TYPE_IMPORT_PRIVATE_KEY', importing(ann.userId, bundle));
    expect(status).toBe('ACTIVITY_STATUS_COMPLETED');
  });
});

describe('policies on exports', () => {
  let eve: TestUser;
  const exporting = (privateKeyId: string, targetPublicKey = coordinator.newKey().publicKey) =>
    eve.client.submit('ACTIVITY_TYPE_EXPORT_PRIVATE_KEY', { privateKeyId, targetPublicKey });

  beforeAll(async () => {
    eve = await coordinator.createUser('Eve');
  });

  test('speak of tags, of the label, and of the target key', async () => {
    const cold = await createKey({ privateKeyName: 'cold storage' });
    const hot = await createKey();
    const tagId = await tagKeys('hot', hot.privateKeyId);
    const backup = coordinator.newKey();
    await coordinator.createPolicy({
      policyName: 'Eve exports hot keys, and cold storage to the backup key',
      condition:
        `activity.kind == 'EXPORT_PRIVATE_KEY' && (private_key.tags.contains('${tagId}') || ` +
        `private_key.label == 'cold storage' && activity.params.target_public_key == '${uncompressedOf(backup)}')`,
      consensus: `approvers.any(user, user.id == '${eve.userId}')`,
    });
    expect((await exporting(hot.privateKeyId)).status).toBe('ACTIVITY_STATUS_COMPLETED');
    await expect(exporting(cold.privateKeyId)).rejects.toMatchObject({ status: 403 });
    expect((await exporting(cold.privateKeyId, backup.publicKey)).status).toBe('ACTIVITY_STATUS_COMPLETED');

    // Without the tag it is as any other key.
    await coordinator.client.submit('ACTIVITY_TYPE_UPDATE_PRIVATE_KEY_TAG', {
      privateKeyTagId: tagId,
      removePrivateKeyIds: [hot.privateKeyId],
    });
    await expect(exporting(hot.privateKeyId)).rejects.toMatchObject({ status: 403 });
  });

  test('a DENY on imported and exported keys holds', async () => {
    const { privateKeyId } = await createKey();
    await coordinator.createPolicy({
      policyName: 'Eve exports keys for the first time',
      condition: "activity.kind == 'EXPORT_PRIVATE_KEY'",
      consensus: `approvers.any(user, user.id == '${eve.userId}')`,
    });
    await coordinator.createPolicy({
      policyName: 'No key is exported twice',
      effect: 'EFFECT_DENY',
      condition: "activity.kind == 'EXPORT_PRIVATE_KEY' && private_key.exported",
    });
    expect((await exporting(privateKeyId)).status).toBe('ACTIVITY_STATUS_COMPLETED');
    await expect(exporting(privateKeyId)).rejects.toMatchObject({ status: 403 });
  });

  test('an export waits for its votes, and fails when the key was deleted meanwhile', async () => {
    const other = await startCoordinator({ seed: 'waiting exports', at: new Date() });
    try {
      const [one, two] = [await createKey({}, other), await createKey({}, other)];
      const bob = await other.createUser('Bob');
      const mia = await other.createUser('Mia');
      await other.createPolicy({
        policyName: 'two export',
        condition: "activity.kind == 'EXPORT_PRIVATE_KEY'",
        consensus: 'approvers.count() >= 2',
      });
      const target = other.newKey();
      const ask = (privateKeyId: string) =>
        bob.client.submit('ACTIVITY_TYPE_EXPORT_PRIVATE_KEY', { privateKeyId, targetPublicKey: target.publicKey });
      const waiting = await ask(one.privateKeyId);
      expect([waiting.status, waiting.result]).toEqual(['ACTIVITY_STATUS_CONSENSUS_NEEDED', {}]);
      expect(await keyOf(one.privateKeyId, other)).toMatchObject({ exported: false });
      await mia.client.approve(waiting.fingerprint);
      const { activity } = await other.client.query<{ activity: ActivityEnvelope }>('get_activity', {
        activityId: waiting.id,
      });
      const { exportBundle } = activity.result['exportPrivateKeyResult'] as { exportBundle: string };
      const secret = await decryptExportBundle({
        exportBundle,
        embeddedKey: target.privateKey,
        organizationId: other.organizationId,
        dangerouslyOverrideSignerPublicKey: await signerKeyOf(other),
        keyFormat: 'HEXADECIMAL',
        returnMnemonic: false,
      });
      expect(new Wallet(`0x${secret}`).address).toBe(one.addresses[0]!.address);
      expect(await keyOf(one.privateKeyId, other)).toMatchObject({ exported: true });

      const late = await ask(two.privateKeyId);
      await other.client.submit('ACTIVITY_TYPE_DELETE_PRIVATE_KEYS', {
        privateKeyIds: [two.privateKeyId],
        deleteWithoutExport: true,
      });
      await mia.client.approve(late.fingerprint);
      const failed = await other.client.query<{ activity: ActivityEnvelope }>('get_activity', { activityId: late.id });
      expect(failed.activity).toMatchObject({
        status: 'ACTIVITY_STATUS_FAILED',
        result: {},
        failure: { code: 5, message: textLike(/^no private key/) },
      });
    } finally {
      await other.close();
    }
  });
});

function uncompressedOf({ privateKey }: ApiKeyPair): string {
  return Buffer.from(p256.getPublicKey(Buffer.from(privateKey, 'hex'), false)).toString('hex');
}

describe('smart contract interfaces', () => {
  const usdc = '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48';
  const abi = JSON.stringify([{ type: 'function', name: 'pause', inputs: [] }]);

  test('@turnkey/http uploads, reads and deletes one', async () => {
    const client = httpClient(coordinator.client.key);
    const { activity } = await client.createSmartContractInterface({
      type: 'ACTIVITY_TYPE_CREATE_SMART_CONTRACT_INTERFACE',
      timestampMs: timestampMs(),
      organizationId,
      parameters: {
        smartContractAddress: usdc,
        smartContractInterface: abi,
        type: 'SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM',
        label: 'USDC',
      },
    });
    const { smartContractInterfaceId } = activity.result.createSmartContractInterfaceResult!;
    const time = { seconds: textLike(/^\d+$/), nanos: textLike(/^\d+$/) };
    const one = {
      organizationId,
      smartContractInterfaceId,
      smartContractAddress: usdc,
      smartContractInterface: abi,
      type: 'SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM',
      label: 'USDC',
      notes: '',
      createdAt: time,
      updatedAt: time,
    };
    expect(await client.getSmartContractInterface({ organizationId, smartContractInterfaceId })).toEqual({
      smartContractInterface: one,
    });
    expect(await client.getSmartContractInterfaces({ organizationId })).toEqual({ smartContractInterfaces: [one] });
    await client.deleteSmartContractInterface({
      type: 'ACTIVITY_TYPE_DELETE_SMART_CONTRACT_INTERFACE',
      timestampMs: timestampMs(),
      organizationId,
      parameters: { smartContractInterfaceId },
    });
    expect(await client.getSmartContractInterfaces({ organizationId })).toEqual({ smartContractInterfaces: [] });
    await expect(client.getSmartContractInterface({ organizationId, smartContractInterfaceId })).rejects.toThrow(
      /no smart contract interface/,
    );
  });

  test('one of 400,000 characters goes through SQLite and back; one more is refused', async () => {
    const own = await startCoordinator({ seed: 'large', store: 'sqlite' });
    let after = own;
    try {
      // Quotes double in length when the body is quoted in the vote.
      const inputs = ['a', 'b', 'c', 'd', 'e'].map((name) => ({ name, type: 'bool' }));
      const functions = Array.from({ length: 2_000 }, (_, index) => ({ name: `f${index}`, inputs }));
      const largest = JSON.stringify(functions).padEnd(400_000, ' ');
      expect(largest).toHaveLength(400_000);
      const upload = (smartContractInterface: string) =>
        own.client.submit('ACTIVITY_TYPE_CREATE_SMART_CONTRACT_INTERFACE', {
          smartContractAddress: usdc,
          smartContractInterface,
          type: 'SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM',
          label: 'large',
        });
      await expect(upload(`${largest} `)).rejects.toMatchObject(
        refused(400, /smartContractInterface: must have 1 to 400000 characters, has 400001/),
      );
      const { result } = await upload(largest);
      const { smartContractInterfaceId } = result['createSmartContractInterfaceResult'] as {
        smartContractInterfaceId: string;
      };
      after = await own.restart();
      const { smartContractInterface } = await after.client.query<{ smartContractInterface: Record<string, string> }>(
        'get_smart_contract_interface',
        { smartContractInterfaceId },
      );
      expect(smartContractInterface['smartContractInterface']).toBe(largest);
    } finally {
      await after.close();
    }
  });
});
