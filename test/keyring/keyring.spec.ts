import { randomUUID } from 'node:crypto';
import { decryptExportBundle, encryptWalletToBundle, generateP256KeyPair } from '@turnkey/crypto';
import { translateMnemonic, parseMnemonic } from '../../src/keyring/mnemonic.js';
import { preparePorts } from '../engine/prepare-ports.js';

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
