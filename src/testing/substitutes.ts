import { accountSecret, privateKeySecret } from '../domain/organization/signing-keys.js';
import type { OrganizationView } from '../domain/organization/organization.js';
import { generatePrivateKey } from '../keyring/curves.js';
import { derivePrivateKey } from '../keyring/derivation.js';
import { mnemonicSecret, seedSecret } from '../keyring/keyring.js';
import { generateMnemonic, mnemonicToSeed } from '../keyring/mnemonic.js';
import type { NamedSecret, Vault } from '../vault/vault.js';

/** Each takes half a millisecond; accounts beyond this number cannot sign. */
const mostKeys = 20_000;
const words = 12;

interface Randomness {
  bytes(count: number): Uint8Array;
}

/**
 * Seals substitutes for the seeds and keys of an imported history, so that its wallets and private keys can be used.
 * Their signatures do not belong to the recorded addresses, which stay as they were.
 */
export async function sealSubstitutes(
  vault: Vault,
  { organizationId, wallets, walletAccounts, privateKeys }: OrganizationView,
  randomness: Randomness,
): Promise<void> {
  const random = (count: number) => randomness.bytes(count);
  const accountsOf = new Map([...wallets.keys()].map((walletId) => [walletId, new Map<string, () => Buffer>()]));
  const seeds = new Map<string, { readonly phrase: string; readonly seed: Uint8Array }>();
  for (const { walletId } of wallets.values()) {
    const phrase = generateMnemonic(words, random);
    seeds.set(walletId, { phrase, seed: await mnemonicToSeed(phrase) });
  }
  let left = mostKeys;
  for (const { walletId, curve, path } of walletAccounts.values()) {
    const known = seeds.get(walletId);
    if (!known || left-- <= 0) continue;
    accountsOf.get(walletId)!.set(accountSecret(curve, path), () => derivePrivateKey(curve, known.seed, path));
  }
  for (const { walletId, vaultId } of wallets.values()) {
    const { phrase, seed } = seeds.get(walletId)!;
    const keys = [...accountsOf.get(walletId)!].map(([name, derive]): NamedSecret => ({ name, secret: derive() }));
    const own = [
      { name: mnemonicSecret, secret: Buffer.from(phrase) },
      { name: seedSecret, secret: seed },
    ];
    await vault.seal(vaultId, organizationId, [...own, ...keys], undefined, true);
  }
  for (const { vaultId, curve } of [...privateKeys.values()].slice(0, mostKeys)) {
    const secret = generatePrivateKey(curve, random);
    await vault.seal(vaultId, organizationId, [{ name: privateKeySecret, secret }], undefined, true);
  }
}
