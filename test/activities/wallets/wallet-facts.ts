import type { ActivityDefinition } from '../../../src/activities/define-activity.js';
import { validate } from '../../../src/wire/validate.js';
import { emptyOrganization, evolve, type OrganizationEvent } from '../../../src/domain/organization/organization.js';
import type { AccountFacts } from '../../../src/domain/organization/wallets.js';
import { sealMessage } from '../../../src/keyring/hpke.js';
import { preparePorts } from '../../coordinator/prepare-ports.js';
import { anOrganization, aUser } from '../facts.js';
import { id, usualLimits } from '../given.js';

/** History of wallets, and the real keyring behind `prepare`. */

export const organizationId = id(700);
export const ann = id(101);
export const bob = id(102);
export const history: readonly OrganizationEvent[] = [anOrganization(), aUser(ann), aUser(bob, { userName: 'Bob' })];
export const ports = await preparePorts();

/** The mnemonic of many development networks; its accounts are known to every wallet. */
export const knownMnemonic = 'test test test test test test test test test test test junk';
export const knownAddress = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266';

export const ethereum = {
  curve: 'CURVE_SECP256K1',
  pathFormat: 'PATH_FORMAT_BIP32',
  path: "m/44'/60'/0'/0/0",
  addressFormat: 'ADDRESS_FORMAT_ETHEREUM',
} as const;

export const solana = {
  curve: 'CURVE_ED25519',
  pathFormat: 'PATH_FORMAT_BIP32',
  path: "m/44'/501'/0'/0'",
  addressFormat: 'ADDRESS_FORMAT_SOLANA',
} as const;

/** What each asked account lacks to be one that cannot be. */
export const wrongAccounts: readonly (readonly [what: string, account: object, message: RegExp])[] = [
  ['a format of another curve', { ...solana, curve: 'CURVE_SECP256K1' }, /accounts\[1\]\.curve: .*CURVE_ED25519/],
  ['a path that is none', { ...ethereum, path: "m/44'/60'/x" }, /accounts\[1\]\.path: segment 3 .*`x`/],
  ['an unknown format', { ...ethereum, addressFormat: 'ADDRESS_FORMAT_MARS' }, /accounts\[1\]\.addressFormat: must be/],
  ['an unknown path format', { ...ethereum, pathFormat: 'PATH_FORMAT_X' }, /accounts\[1\]\.pathFormat: must be/],
];

/** A wallet; its number names its id and its vault. */
export function aWallet(number: number, more: { walletName?: string; vaultId?: string; imported?: boolean } = {}) {
  const data = { walletId: id(number), walletName: `wallet ${number}`, vaultId: id(1_000 + number), imported: false };
  return { type: 'WalletCreated', data: { ...data, ...more } } as const;
}

/** An account at a path of its own; its number names its id. */
export function anAccount(number: number, more: Partial<AccountFacts> = {}): AccountFacts {
  return {
    walletAccountId: id(number),
    ...ethereum,
    path: `m/${number}`,
    address: `0xAa${String(number).padStart(38, '0')}`,
    publicKey: `02${String(number).padStart(64, '0')}`,
    ...more,
  };
}

export function theAccounts(wallet: number, ...accounts: readonly AccountFacts[]) {
  return { type: 'WalletAccountsCreated', data: { walletId: id(wallet), accounts } } as const;
}

/** A wallet that is in the vault, with an Ethereum account; its number names its id, the next one that of the account. */
export async function sealedWallet(number: number) {
  const { vaultId, accounts } = await ports.keyring.createWallet({
    organizationId,
    mnemonicLength: 12,
    accounts: [ethereum],
  });
  const facts = { walletAccountId: id(number + 1), pathFormat: 'PATH_FORMAT_BIP32', ...accounts[0]! } as const;
  return { vaultId, account: facts, events: [aWallet(number, { vaultId }), theAccounts(number, facts)] };
}

/** What `prepare` gives when these things have happened. */
export async function prepared<Intent extends object, Prepared>(
  definition: ActivityDefinition<string, Intent, object, Prepared>,
  intent: object,
  events: readonly OrganizationEvent[],
): Promise<Prepared> {
  const organization = emptyOrganization();
  for (const event of events) evolve(organization, event, 0);
  const valid = validate(definition.intent, intent, 'parameters');
  const context = { organization, submitterId: id(900), now: 0, newId: () => id(1), ...usualLimits };
  return definition.prepare!(valid, ports, context);
}

/** A secret of a vault, as text. */
export const secretOf = (vaultId: string, name: string): Promise<string> =>
  ports.vault.open({ organizationId, vaultId, name }, (secret) => secret.toString('utf8'));

/** Seals a mnemonic to the target key of an import. */
export const sealedTo = async (targetPublicKey: string, mnemonic: string): Promise<string> =>
  JSON.stringify(await sealMessage(targetPublicKey, Buffer.from(mnemonic)));
