import { randomBytes, randomUUID } from 'node:crypto';
import {
  decryptExportBundle,
  encryptPrivateKeyToBundle,
  encryptWalletToBundle,
  generateP256KeyPair,
} from '@turnkey/crypto';
import type { Curve } from '../../src/domain/key-formats.js';
import { privateKeySecret } from '../../src/domain/organization/signing-keys.js';
import { translateMnemonic, parseMnemonic } from '../../src/keyring/mnemonic.js';
import { preparePorts } from '../coordinator/prepare-ports.js';
import { unwipedCopies } from './copies.js';

const { keyring, keys } = await preparePorts();
const organizationId = randomUUID();
const userId = randomUUID();
const signer = keys.publicKey('signer', 'uncompressed');
const english = `${'abandon '.repeat(11)}about`;
const spanish = translateMnemonic(parseMnemonic(english), 'MNEMONIC_LANGUAGE_SPANISH').normalize('NFKD');

/** A wallet from words that the published client has sealed. */
async function imported(mnemonic: string): Promise<{ readonly organizationId: string; readonly vaultId: string }> {
  const { vaultId, importBundle } = await keyring.startImport({ organizationId, userId });
  const encryptedBundle = await encryptWalletToBundle({
    mnemonic,
    importBundle,
    userId,
    organizationId,
    dangerouslyOverrideSignerPublicKey: signer,
  });
  const wallet = await keyring.importWallet({ organizationId, vaultId }, encryptedBundle, []);
  return { organizationId, vaultId: wallet.vaultId };
}

async function exported(
  wallet: { readonly organizationId: string; readonly vaultId: string },
  language?: 'MNEMONIC_LANGUAGE_ENGLISH' | 'MNEMONIC_LANGUAGE_SPANISH',
): Promise<string> {
  const target = generateP256KeyPair();
  const exportBundle = await keyring.exportWallet(wallet, target.publicKeyUncompressed, language);
  const text = await decryptExportBundle({
    exportBundle,
    embeddedKey: target.privateKey,
    organizationId,
    returnMnemonic: true,
    dangerouslyOverrideSignerPublicKey: signer,
  });
  // The client reads the bytes one by one as characters; they are UTF-8.
  return Buffer.from(text, 'latin1').toString('utf8').normalize('NFKD');
}

describe('a wallet that came in Spanish', () => {
  test('is exported in its own words unless others are asked for, as only they derive its keys elsewhere', async () => {
    const wallet = await imported(spanish);
    expect(await exported(wallet)).toBe(spanish);
    expect(await exported(wallet, 'MNEMONIC_LANGUAGE_SPANISH')).toBe(spanish);
    expect(await exported(wallet, 'MNEMONIC_LANGUAGE_ENGLISH')).toBe(english);
  });

  test('derives what its own words derive', async () => {
    const account = {
      curve: 'CURVE_SECP256K1',
      path: "m/44'/60'/0'/0/0",
      addressFormat: 'ADDRESS_FORMAT_ETHEREUM',
    } as const;
    const [ours] = await keyring.deriveAccounts(await imported(spanish), [account], false);
    const [others] = await keyring.deriveAccounts(await imported(english), [account], false);
    expect(others!.address).toBe('0x9858EfFD232B4033E47d90003D41EC34EcaEda94');
    expect(ours!.address).not.toBe(others!.address);
  });
});

describe('an imported private key leaves no copy', () => {
  test.each([
    ['that is taken in', 'CURVE_SECP256K1', `01${randomBytes(31).toString('hex')}`, undefined],
    ['that is taken in on Ed25519', 'CURVE_ED25519', randomBytes(32).toString('hex'), undefined],
    ['that is too long', 'CURVE_SECP256K1', randomBytes(33).toString('hex'), /has 32 bytes, this one has 33/],
    ['above the order', 'CURVE_SECP256K1', 'f'.repeat(64), /not below the order/],
    ['beside a public key of another', 'CURVE_ED25519', randomBytes(64).toString('hex'), /does not match/],
    [
      'with a public key that no curve has',
      'CURVE_P256',
      randomBytes(64).toString('hex'),
      /encryptedBundle: a private key has 32 bytes/,
    ],
  ] as const)('%s', async (_which, curve, privateKey, refusal) => {
    const { vaultId, importBundle } = await keyring.startImport({ organizationId, userId });
    const encryptedBundle = await encryptPrivateKeyToBundle({
      privateKey,
      keyFormat: 'HEXADECIMAL',
      importBundle,
      userId,
      organizationId,
      dangerouslyOverrideSignerPublicKey: signer,
    });
    const key = Buffer.from(privateKey, 'hex');
    const seed = curve === 'CURVE_ED25519' ? key.subarray(0, 32) : key;
    const left = await unwipedCopies(seed, async () => {
      const taken = keyring.importPrivateKey({ organizationId, vaultId }, encryptedBundle, {
        curve,
        addressFormats: [],
      });
      await (refusal ? expect(taken).rejects.toThrow(refusal) : taken);
    });
    expect(left).toEqual([]);
  });
});

test('many accounts are derived in turns with others', async () => {
  const wallet = await imported(english);
  const accounts = Array.from({ length: 4_000 }, (_, at) => ({
    curve: 'CURVE_SECP256K1' as const,
    path: `m/44'/60'/0'/0/${at}`,
    addressFormat: 'ADDRESS_FORMAT_ETHEREUM' as const,
  }));
  let [isOver, turns] = [false, 0];
  const others = (async () => {
    while (!isOver) {
      await new Promise((resolve) => setImmediate(resolve));
      turns += 1;
    }
  })();
  const before = turns;
  await keyring.deriveAccounts(wallet, accounts, false);
  isOver = true;
  await others;
  // Each takes 0.1 ms of the thread here or more, and a turn is 20 ms.
  expect(turns - before).toBeGreaterThan(5);
});

test('P-256 signs in a thread, which ends with the keyring, and Ed25519 here', async () => {
  const { keyring, close } = await preparePorts();
  const newKey = async (curve: Curve) => {
    const { vaultId } = await keyring.createPrivateKey({ organizationId, curve, addressFormats: [] });
    return { organizationId, vaultId, secret: privateKeySecret, curve, addressFormat: undefined };
  };
  const [inThread, here] = [await newKey('CURVE_P256'), await newKey('CURVE_ED25519')];
  const payloads = Array.from({ length: 20 }, (_, at) => Buffer.alloc(32, at));
  const signed = [await keyring.sign(inThread, payloads), await keyring.sign(here, payloads)];
  expect(signed.map(({ length }) => length)).toEqual([20, 20]);
  await close();
  await expect(keyring.sign(inThread, payloads.slice(0, 1))).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  expect(await keyring.sign(here, payloads)).toEqual(signed[1]);
});
