import { checkLimit } from '../../domain/organization/limits.js';
import { existingWallet } from '../../domain/organization/wallets.js';
import { Flag, ListOf, TextList, Uuid } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';
import {
  accountFacts,
  accountsToDerive,
  checkAccountsNew,
  maxAccountsAtOnce,
  recalledAccounts,
  WalletAccountParams,
  walletValue,
} from './wallet-params.js';

class CreateWalletAccountsIntent {
  @Uuid({ about: 'The wallet from which to derive.' })
  walletId!: string;

  @ListOf(() => WalletAccountParams, { min: 1, max: maxAccountsAtOnce, about: 'The accounts to derive.' })
  accounts!: WalletAccountParams[];

  @Flag({
    optional: true,
    about: 'False to return the addresses only: no account is stored, and nothing can sign with them.',
  })
  persist?: boolean;
}

class CreateWalletAccountsResult {
  @TextList({ about: 'Addresses, in the order of the accounts.' })
  addresses!: string[];
}

/** Derives accounts of a wallet. */
export const createWalletAccounts = defineActivity({
  type: 'ACTIVITY_TYPE_CREATE_WALLET_ACCOUNTS',
  summary:
    'Derives wallet accounts. The wallet must not have an account with the same path, curve and address format yet.',
  intent: CreateWalletAccountsIntent,
  result: CreateWalletAccountsResult,
  policy: { resource: 'WALLET', action: 'CREATE' },

  resources: ({ walletId }, organization) => ({ wallet: walletValue(existingWallet(organization, walletId)) }),

  check({ walletId, accounts, persist = true }, organization, { limits }) {
    existingWallet(organization, walletId);
    const requested = accountsToDerive(accounts);
    if (!persist) return;
    checkLimit(limits, 'walletAccounts', organization.walletAccounts.size, accounts.length);
    checkAccountsNew(organization, walletId, requested);
  },

  async prepare({ walletId, accounts, persist = true }, { keyring }, { organization }) {
    const { organizationId } = organization;
    const { vaultId } = existingWallet(organization, walletId);
    const derived = await keyring.deriveAccounts({ organizationId, vaultId }, accountsToDerive(accounts), persist);
    return { addresses: derived.map(({ address }) => address), derived };
  },

  // Accounts that are not persisted leave only their addresses.
  recall({ accounts, persist = true }, recorded) {
    const derived = recalledAccounts(accounts, recorded);
    return { addresses: persist ? derived.map(({ address }) => address) : recorded.result.addresses, derived };
  },

  derivedBeside: ({ walletId, accounts, persist = true }, organizationId, { addresses }) =>
    persist
      ? []
      : accountsToDerive(accounts).map(({ path }, index) => {
          return { organizationId, walletId, derivationPath: path, address: addresses[index]! };
        }),

  decide({ walletId, accounts, persist = true }, { newId }, { addresses, derived }) {
    if (!persist) return { events: [], result: { addresses } };
    const facts = accountFacts(accounts, derived, newId);
    return { events: [{ type: 'WalletAccountsCreated', data: { walletId, accounts: facts } }], result: { addresses } };
  },
});
