import { randomBytes, randomUUID } from 'node:crypto';
import { p256 } from '@noble/curves/nist.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { base58, createBase58check } from '@scure/base';
import {
  decryptCredentialBundle,
  decryptExportBundle,
  encryptOnRampSecret,
  encryptPrivateKeyToBundle,
  encryptWalletToBundle,
} from '@turnkey/crypto';
import { generatePrivateKey, publicKeyOf, uncompressPublicKey } from '../../src/keyring/curves.js';
import {
  bundleSigner,
  hpkeSuite,
  makeImportBundle,
  openCredentialBundle,
  openImportedBundle,
  openMessage,
  type SealedMessage,
  sealCredentialBundle,
  sealExportBundle,
  sealMessage,
  signBundle,
} from '../../src/keyring/hpke.js';
import { translateMnemonic, parseMnemonic } from '../../src/keyring/mnemonic.js';
import { unwipedCopies } from './copies.js';
import { referenceOpen, referenceSeal } from './hpke-reference.js';
import { fromHex, readVectors } from './read-vectors.js';

const INFO = Buffer.from('turnkey_hpke');
const ABANDON = `${'abandon '.repeat(11)}about`;
const base58check = createBase58check(sha256);

interface KeyPair {
  readonly privateKey: Buffer;
  /** Uncompressed. */
  readonly publicKey: Buffer;
}

function keyPair(privateKey = generatePrivateKey('CURVE_P256', randomBytes)): KeyPair {
  return { privateKey, publicKey: uncompressPublicKey('CURVE_P256', publicKeyOf('CURVE_P256', privateKey)) };
}

const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

interface Vector {
  readonly info: string;
  readonly skRm: string;
  readonly pkRm: string;
  readonly skEm: string;
  readonly pkEm: string;
  readonly enc: string;
  readonly encryptions: readonly { readonly aad: string; readonly ct: string; readonly pt: string }[];
  readonly exports: readonly {
    readonly exporter_context: string;
    readonly L: number;
    readonly exported_value: string;
  }[];
}

const [vector] = readVectors<[Vector]>('hpke/hpke_base_p256_hkdfsha256_aes256gcm.json');
const bytesOf = (hex: string): Uint8Array<ArrayBuffer> => Uint8Array.from(fromHex(hex));

describe('RFC 9180, Appendix A: base mode, DHKEM(P-256), HKDF-SHA256, AES-256-GCM', () => {
  const keys = async (secret: string, point: string): Promise<CryptoKeyPair> => ({
    privateKey: await hpkeSuite.kem.deserializePrivateKey(bytesOf(secret)),
    publicKey: await hpkeSuite.kem.deserializePublicKey(bytesOf(point)),
  });

  test('the suite seals every message as published', async () => {
    const sender = await hpkeSuite.createSenderContext({
      recipientPublicKey: await hpkeSuite.kem.deserializePublicKey(bytesOf(vector.pkRm)),
      info: bytesOf(vector.info),
      ekm: await keys(vector.skEm, vector.pkEm),
    });
    expect(hexOf(new Uint8Array(sender.enc))).toBe(vector.enc);
    expect(vector.encryptions).toHaveLength(10);
    for (const { aad, ct, pt } of vector.encryptions) {
      expect(hexOf(new Uint8Array(await sender.seal(bytesOf(pt), bytesOf(aad))))).toBe(ct);
    }
  });

  test('the suite opens every message, and exports the secrets, as published', async () => {
    const recipient = await hpkeSuite.createRecipientContext({
      recipientKey: await keys(vector.skRm, vector.pkRm),
      enc: bytesOf(vector.enc),
      info: bytesOf(vector.info),
    });
    for (const { aad, ct, pt } of vector.encryptions) {
      expect(hexOf(new Uint8Array(await recipient.open(bytesOf(ct), bytesOf(aad))))).toBe(pt);
    }
    expect(vector.exports).toHaveLength(3);
    for (const { exporter_context: context, L, exported_value: value } of vector.exports) {
      expect(hexOf(new Uint8Array(await recipient.export(bytesOf(context), L)))).toBe(value);
    }
  });

  test('so does the reference of these tests, for the first message', () => {
    const [{ aad, ct, pt }] = vector.encryptions as [Vector['encryptions'][0]];
    const message = { info: fromHex(vector.info), aad: fromHex(aad) };
    const sealed = referenceSeal(fromHex(vector.skEm), fromHex(vector.pkRm), { ...message, plaintext: fromHex(pt) });
    expect(hexOf(sealed.encapsulated)).toBe(vector.enc);
    expect(hexOf(sealed.ciphertext)).toBe(ct);
    const opened = referenceOpen(fromHex(vector.skRm), fromHex(vector.enc), { ...message, ciphertext: fromHex(ct) });
    expect(hexOf(opened)).toBe(pt);
  });
});

describe('messages', () => {
  test('are those of published clients: info, and AAD of both uncompressed keys', async () => {
    for (const length of [0, 1, 32, 1000]) {
      const recipient = keyPair();
      const plaintext = randomBytes(length);
      const { encappedPublic, ciphertext } = await sealMessage(hexOf(recipient.publicKey), plaintext);
      expect(encappedPublic).toMatch(/^04[0-9a-f]{128}$/);
      expect(ciphertext).toMatch(new RegExp(`^[0-9a-f]{${2 * (length + 16)}}$`));
      const encapsulated = fromHex(encappedPublic);
      const aad = Buffer.concat([encapsulated, recipient.publicKey]);
      const message = { info: INFO, aad, ciphertext: fromHex(ciphertext) };
      expect(referenceOpen(recipient.privateKey, encapsulated, message)).toEqual(plaintext);
      expect(await openMessage(recipient.privateKey, { encappedPublic, ciphertext })).toEqual(plaintext);
    }
  });

  test('sealed by the reference are opened, the encapsulated key compressed or not', async () => {
    const recipient = keyPair();
    const ephemeral = keyPair();
    const aad = Buffer.concat([ephemeral.publicKey, recipient.publicKey]);
    const plaintext = Buffer.from('of another hand');
    const sealed = referenceSeal(ephemeral.privateKey, recipient.publicKey, { info: INFO, aad, plaintext });
    for (const encapsulated of [sealed.encapsulated, publicKeyOf('CURVE_P256', ephemeral.privateKey)]) {
      const message = { encappedPublic: hexOf(encapsulated), ciphertext: hexOf(sealed.ciphertext).toUpperCase() };
      expect(await openMessage(recipient.privateKey, message)).toEqual(plaintext);
    }
  });

  test('have an encapsulated key of their own, and take the target key compressed too', async () => {
    const { privateKey, publicKey } = keyPair();
    const compressed = hexOf(publicKeyOf('CURVE_P256', privateKey));
    const messages = await Promise.all(
      [compressed, hexOf(publicKey), compressed.toUpperCase()].map((key) => sealMessage(key, INFO)),
    );
    expect(new Set(messages.map(({ encappedPublic }) => encappedPublic)).size).toBe(3);
    for (const message of messages) expect(await openMessage(privateKey, message)).toEqual(INFO);
  });

  test('are refused when anything differs: each bit of the tag, the ciphertext, the key, the info, the AAD', async () => {
    const recipient = keyPair();
    const ephemeral = keyPair();
    const plaintext = Buffer.from('secret words');
    const right = { info: INFO, aad: Buffer.concat([ephemeral.publicKey, recipient.publicKey]), plaintext };
    const open = (sealed: { encapsulated: Buffer; ciphertext: Buffer }, key = recipient.privateKey): Promise<Buffer> =>
      openMessage(key, { encappedPublic: hexOf(sealed.encapsulated), ciphertext: hexOf(sealed.ciphertext) });
    const sealed = referenceSeal(ephemeral.privateKey, recipient.publicKey, right);
    expect(await open(sealed)).toEqual(plaintext);

    for (let position = 0; position < sealed.ciphertext.length; position++) {
      const ciphertext = Buffer.from(sealed.ciphertext);
      ciphertext[position]! ^= 1 << (position % 8);
      await expect(open({ ...sealed, ciphertext })).rejects.toThrow('could not be decrypted');
    }
    for (const length of [1, 15, 16, 27]) {
      const ciphertext = sealed.ciphertext.subarray(0, length);
      await expect(open({ ...sealed, ciphertext })).rejects.toThrow('could not be decrypted');
    }
    await expect(open({ ...sealed, encapsulated: keyPair().publicKey })).rejects.toThrow('could not be decrypted');
    await expect(open(sealed, keyPair().privateKey)).rejects.toThrow('could not be decrypted');
    for (const wrong of [
      { ...right, info: Buffer.from('turnkey_hpkf') },
      { ...right, info: Buffer.alloc(0) },
      { ...right, aad: Buffer.alloc(0) },
      { ...right, aad: Buffer.concat([recipient.publicKey, ephemeral.publicKey]) },
    ]) {
      const other = referenceSeal(ephemeral.privateKey, recipient.publicKey, wrong);
      await expect(open(other)).rejects.toThrow('could not be decrypted');
    }
  });

  test('are not sealed or opened with what is not a point', async () => {
    const offCurve = `04${'11'.repeat(64)}`;
    await expect(sealMessage(offCurve, INFO)).rejects.toThrow('targetPublicKey: `0411');
    const { privateKey } = keyPair();
    for (const encappedPublic of [offCurve, '00', '', 'zz', `06${'11'.repeat(64)}`]) {
      await expect(openMessage(privateKey, { encappedPublic, ciphertext: '00'.repeat(20) }, 'bundle')).rejects.toThrow(
        'invalid request: bundle.encappedPublic: ',
      );
    }
    const encappedPublic = hexOf(keyPair().publicKey);
    for (const ciphertext of ['', '0', 'zz', '0x00']) {
      await expect(openMessage(privateKey, { encappedPublic, ciphertext })).rejects.toThrow(
        'encryptedBundle.ciphertext: it is not hex',
      );
    }
  });

  test('leave key and plaintext as they were', async () => {
    const { privateKey, publicKey } = keyPair(Buffer.alloc(32, 4));
    const plaintext = Buffer.from('kept');
    await openMessage(privateKey, await sealMessage(hexOf(publicKey), plaintext));
    expect([hexOf(privateKey), plaintext.toString()]).toEqual(['04'.repeat(32), 'kept']);
  });

  test('leave no copy of plaintext, seed or key, of ours or of the library, nor does their signature', async () => {
    const { privateKey, publicKey } = keyPair();
    const [plaintext, seed] = [randomBytes(32), randomBytes(32)];
    const seal = (): Promise<SealedMessage> => sealMessage(hexOf(publicKey), plaintext, undefined, seed);
    const sealed = await seal();
    expect(await unwipedCopies(plaintext, seal)).toEqual([]);
    // The library keeps seed and key among other bytes, where nobody can reach them.
    expect(await unwipedCopies(seed, seal, 'alone')).toEqual([]);
    const open = async (): Promise<unknown> => (await openMessage(privateKey, sealed)).fill(0);
    expect(await unwipedCopies(plaintext, open)).toEqual([]);
    expect(await unwipedCopies(privateKey, open, 'alone')).toEqual([]);
    const sign = (): Buffer => bundleSigner(privateKey, {}).sign(plaintext);
    expect(await unwipedCopies(privateKey, sign)).toEqual([]);
    expect(p256.verify(sign(), plaintext, publicKey, { format: 'der', lowS: true })).toBe(true);
  });
});

describe('credential bundles', () => {
  test('are opened by the published client', async () => {
    const target = keyPair();
    const credential = generatePrivateKey('CURVE_P256', randomBytes);
    const bundle = await sealCredentialBundle(hexOf(target.publicKey), credential);
    expect(base58check.decode(bundle)).toHaveLength(33 + 32 + 16);
    expect(decryptCredentialBundle(bundle, hexOf(target.privateKey))).toBe(hexOf(credential));
    expect(await openCredentialBundle(target.privateKey, bundle)).toEqual(credential);
  });

  test('hold a key of the curve', async () => {
    const target = hexOf(keyPair().publicKey);
    await expect(sealCredentialBundle(target, Buffer.alloc(32))).rejects.toThrow('zero or not below the order');
    await expect(sealCredentialBundle(target, Buffer.alloc(31, 1))).rejects.toThrow('a private key has 32 bytes');
  });

  test('of the client, as it seals on-ramp secrets, are opened', async () => {
    const target = keyPair();
    const sealed = encryptOnRampSecret('sk_live_1234', hexOf(publicKeyOf('CURVE_P256', target.privateKey)));
    expect((await openCredentialBundle(target.privateKey, sealed)).toString()).toBe('sk_live_1234');
  });

  test('that were changed are refused', async () => {
    const target = keyPair();
    const bundle = await sealCredentialBundle(hexOf(target.publicKey), Buffer.alloc(32, 1));
    const refuse = (text: string): Promise<void> =>
      expect(openCredentialBundle(target.privateKey, text, 'secret')).rejects.toThrow('invalid request: secret');
    await refuse('');
    await refuse(bundle.slice(0, -1));
    await refuse(`${bundle}0`);
    await refuse(bundle.replace(/.$/, (last) => (last === '1' ? '2' : '1')));
    await refuse(base58check.encode(Buffer.alloc(20, 2)));
    await refuse(base58.encode(Buffer.alloc(81, 2)));
  });
});

describe('signed bundles, with the published client', () => {
  const signerKeys = keyPair();
  const signer = bundleSigner(signerKeys.privateKey, { isSeeded: true });
  const organizationId = randomUUID();
  const userId = randomUUID();
  const override = { dangerouslyOverrideSignerPublicKey: signer.publicKey };

  test('the signer is named by its uncompressed key in lower case', () => {
    expect(signer.publicKey).toBe(hexOf(signerKeys.publicKey));
    expect(Object.keys(JSON.parse(signBundle({ a: 'b' }, signer)) as object)).toEqual([
      'version',
      'data',
      'dataSignature',
      'enclaveQuorumPublic',
    ]);
    expect(JSON.parse(signBundle({ a: 'b' }, signer))).toMatchObject({
      version: 'v1.0.0',
      data: hexOf(Buffer.from('{"a":"b"}')),
    });
  });

  test('the same content and seed make the same bundle', async () => {
    const target = keyPair();
    const plaintext = Buffer.from(ABANDON);
    const content = { targetPublicKey: hexOf(target.publicKey), organizationId, plaintext };
    const ephemeralSeed = randomBytes(32);
    const [first, again, other] = await Promise.all([
      sealExportBundle({ ...content, ephemeralSeed }, signer),
      sealExportBundle({ ...content, ephemeralSeed }, signer),
      sealExportBundle({ ...content, ephemeralSeed: randomBytes(32) }, signer),
    ]);
    expect(again).toBe(first);
    expect(other).not.toBe(first);
    const opened = decryptExportBundle({
      exportBundle: first,
      embeddedKey: hexOf(target.privateKey),
      organizationId,
      returnMnemonic: true,
      ...override,
    });
    await expect(opened).resolves.toBe(ABANDON);
  });

  test('a mnemonic is exported', async () => {
    const target = keyPair();
    const content = { targetPublicKey: hexOf(target.publicKey), organizationId, plaintext: Buffer.from(ABANDON) };
    const exportBundle = await sealExportBundle(content, signer);
    const question = { exportBundle, embeddedKey: hexOf(target.privateKey), organizationId, returnMnemonic: true };
    await expect(decryptExportBundle({ ...question, ...override })).resolves.toBe(ABANDON);
    await expect(decryptExportBundle(question)).rejects.toThrow('does not match signer key');
    await expect(decryptExportBundle({ ...question, ...override, organizationId: userId })).rejects.toThrow(
      'organization id does not match',
    );
    const forged = { ...(JSON.parse(exportBundle) as { data: string }) };
    forged.data = forged.data.replace(hexOf(Buffer.from(organizationId)), hexOf(Buffer.from(userId)));
    await expect(
      decryptExportBundle({ ...question, ...override, organizationId: userId, exportBundle: JSON.stringify(forged) }),
    ).rejects.toThrow('failed to verify enclave signature');
  });

  test('private keys are exported, as hex and as a Solana key', async () => {
    const target = keyPair();
    const privateKey = randomBytes(32);
    const content = { targetPublicKey: hexOf(target.publicKey), organizationId, plaintext: privateKey };
    const exportBundle = await sealExportBundle(content, signer);
    const question = {
      exportBundle,
      embeddedKey: hexOf(target.privateKey),
      organizationId,
      returnMnemonic: false,
      ...override,
    };
    await expect(decryptExportBundle(question)).resolves.toBe(hexOf(privateKey));
    await expect(decryptExportBundle({ ...question, keyFormat: 'SOLANA' })).resolves.toBe(
      base58.encode(Buffer.concat([privateKey, publicKeyOf('CURVE_ED25519', privateKey)])),
    );
  });

  test('a mnemonic is imported', async () => {
    const target = keyPair();
    const importBundle = makeImportBundle({ targetPublicKey: hexOf(target.publicKey), organizationId, userId }, signer);
    const secret = { mnemonic: ABANDON, importBundle, organizationId, userId };
    const encryptedBundle = await encryptWalletToBundle({ ...secret, ...override });
    expect((await openImportedBundle(target.privateKey, encryptedBundle)).toString()).toBe(ABANDON);
    await expect(encryptWalletToBundle({ ...secret, ...override, userId: organizationId })).rejects.toThrow(
      'user id does not match',
    );
    await expect(encryptWalletToBundle(secret)).rejects.toThrow('does not match signer key');
  });

  test('a mnemonic that is not ASCII is imported', async () => {
    const target = keyPair();
    const importBundle = makeImportBundle({ targetPublicKey: hexOf(target.publicKey), organizationId, userId }, signer);
    const japanese = translateMnemonic(parseMnemonic(ABANDON), 'MNEMONIC_LANGUAGE_JAPANESE');
    const secret = { mnemonic: japanese, importBundle, organizationId, userId, ...override };
    const opened = await openImportedBundle(target.privateKey, await encryptWalletToBundle(secret));
    expect(parseMnemonic(opened.toString()).language).toBe('MNEMONIC_LANGUAGE_JAPANESE');
  });

  test('private keys are imported, from hex and from a Solana key', async () => {
    const privateKey = randomBytes(32);
    const solana = base58.encode(Buffer.concat([privateKey, publicKeyOf('CURVE_ED25519', privateKey)]));
    for (const [keyFormat, text] of [
      ['HEXADECIMAL', hexOf(privateKey)],
      ['HEXADECIMAL', `0x${hexOf(privateKey)}`],
      ['SOLANA', solana],
    ] as const) {
      const target = keyPair();
      // The target may be named by its compressed key; the bundle has the uncompressed one, as the client wants.
      const targetPublicKey = hexOf(publicKeyOf('CURVE_P256', target.privateKey));
      const importBundle = makeImportBundle({ targetPublicKey, organizationId, userId }, signer);
      const secret = { privateKey: text, keyFormat, importBundle, organizationId, userId, ...override };
      const encryptedBundle = await encryptPrivateKeyToBundle(secret);
      expect(await openImportedBundle(target.privateKey, encryptedBundle)).toEqual(privateKey);
    }
  });

  test.each([
    '',
    'null',
    '[]',
    '"text"',
    '{',
    '{}',
    '{"encappedPublic":"04"}',
    '{"encappedPublic":1,"ciphertext":"00"}',
  ])('an encrypted bundle of %j is refused', async (text) => {
    await expect(openImportedBundle(keyPair().privateKey, text)).rejects.toThrow(
      'encryptedBundle: it is not JSON with the strings `encappedPublic` and `ciphertext`',
    );
  });
});
