import { randomBytes } from 'node:crypto';
import { generateMnemonic } from '@scure/bip39';
import { wordlist } from '@scure/bip39/wordlists/english.js';
import { ethereum, type TrialAccount } from './trial-chains.js';
import type { TrialOrganization } from './trial-organization.js';
import type { Makers } from './trial-parameters.js';
import { sealedToBundle } from './trial-secrets.js';

type Organization = Pick<TrialOrganization, 'founder'>;

/** A new mnemonic, sealed as a client does, for a user whose import has begun with it. */
export async function walletToImport(
  { founder }: Organization,
  userId: string,
  walletName: string,
  account: TrialAccount,
) {
  const { importBundle } = await founder.perform('ACTIVITY_TYPE_INIT_IMPORT_WALLET', { userId });
  const encryptedBundle = await sealedToBundle(importBundle, Buffer.from(generateMnemonic(wordlist)));
  return { userId, walletName, encryptedBundle, accounts: [account] };
}

/** A new private key, as `walletToImport`. */
export async function keyToImport(
  { founder }: Organization,
  userId: string,
  privateKeyName: string,
  { curve, addressFormat }: TrialAccount,
) {
  const { importBundle } = await founder.perform('ACTIVITY_TYPE_INIT_IMPORT_PRIVATE_KEY', { userId });
  const encryptedBundle = await sealedToBundle(importBundle, randomBytes(32));
  return { userId, privateKeyName, encryptedBundle, curve, addressFormats: [addressFormat] };
}

/** What brings wallets and private keys from outside. */
export const importParameters = {
  async ACTIVITY_TYPE_INIT_IMPORT_WALLET({ user }) {
    return { parameters: { userId: user() } };
  },
  async ACTIVITY_TYPE_IMPORT_WALLET({ user, organization }) {
    return { parameters: await walletToImport(organization, user(), 'Imported by an example', ethereum) };
  },
  async ACTIVITY_TYPE_INIT_IMPORT_PRIVATE_KEY({ user }) {
    return { parameters: { userId: user() } };
  },
  async ACTIVITY_TYPE_IMPORT_PRIVATE_KEY({ user, organization }) {
    return { parameters: await keyToImport(organization, user(), 'Imported by an example', ethereum) };
  },
} satisfies Makers;
