import { randomBytes } from 'node:crypto';
import { generateMnemonic } from '@scure/bip39';
import { wordlist } from '@scure/bip39/wordlists/english.js';
import { sealMessage } from '../../keyring/hpke.js';
import { ethereum, type TrialAccount } from './trial-chains.js';
import type { TrialOrganization } from './trial-organization.js';
import type { Makers } from './trial-parameters.js';

type Organization = Pick<TrialOrganization, 'founder'>;

/** A new mnemonic, sealed as a client does, for a user whose import has begun with it. */
export async function walletToImport(
  { founder }: Organization,
  userId: string,
  walletName: string,
  account: TrialAccount,
) {
  const { importBundle } = await founder.perform('ACTIVITY_TYPE_INIT_IMPORT_WALLET', { userId });
  const encryptedBundle = await sealed(importBundle, Buffer.from(generateMnemonic(wordlist)));
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
  const encryptedBundle = await sealed(importBundle, randomBytes(32));
  return { userId, privateKeyName, encryptedBundle, curve, addressFormats: [addressFormat] };
}

async function sealed(importBundle: string, secret: Uint8Array): Promise<string> {
  const { data } = JSON.parse(importBundle) as { readonly data: string };
  const { targetPublic } = JSON.parse(Buffer.from(data, 'hex').toString()) as { readonly targetPublic: string };
  return JSON.stringify(await sealMessage(targetPublic, secret));
}

/** What brings wallets and private keys from outside. */
export const importParameters: Makers = {
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
};
