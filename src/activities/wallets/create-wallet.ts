import { checkLimit } from '../../domain/organization/limits.js';
import { checkWalletCount, checkWalletNameFree } from '../../domain/organization/wallets.js';
import { Label, ListOf, TextList, Uuid, Whole } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';
import {
  accountFacts,
  accountsToDerive,
  checkAccountsNew,
  checkMnemonicLength,
  maxAccountsAtOnce,
  recalledWallet,
  WalletAccountParams,
} from './wallet-params.js';

class CreateWalletIntent {
  @Label({ about: 'The name of the wallet; must be unique within the organization.' })
  walletName!: string;

  @ListOf(() => WalletAccountParams, { max: maxAccountsAtOnce, about: 'Its first accounts; may be empty.' })
  accounts!: WalletAccountParams[];

  @Whole({
    min: 12,
    max: 24,
    optional: true,
    about: 'Number of words in its mnemonic: 12 (default), 15, 18, 21 or 24.',
  })
  mnemonicLength?: number;
}

class CreateWalletResult {
  @Uuid()
  walletId!: string;

  @TextList({ about: 'Addresses, in the order of the accounts.' })
  addresses!: string[];
}

/** Creates a wallet from fresh entropy, and its first accounts. */
export const createWallet = defineActivity({
  type: 'ACTIVITY_TYPE_CREATE_WALLET',
  summary: 'Creates a wallet from fresh entropy (BIP-39) and derives its first accounts.',
  intent: CreateWalletIntent,
  result: CreateWalletResult,
  policy: { resource: 'WALLET', action: 'CREATE' },

  check({ walletName, accounts, mnemonicLength }, organization, { limits }) {
    checkWalletCount(organization, limits);
    checkLimit(limits, 'walletAccounts', organization.walletAccounts.size, accounts.length);
    checkWalletNameFree(organization, walletName);
    checkMnemonicLength(mnemonicLength);
    checkAccountsNew(organization, undefined, accountsToDerive(accounts));
  },

  prepare: ({ accounts, mnemonicLength = 12 }, { keyring }, { organization: { organizationId } }) =>
    keyring.createWallet({ organizationId, mnemonicLength, accounts: accountsToDerive(accounts) }),

  recall: ({ accounts }, recorded) => recalledWallet(accounts, recorded),

  decide({ walletName, accounts }, { newId }, { vaultId, accounts: derived }) {
    const walletId = newId();
    const facts = accountFacts(accounts, derived, newId);
    return {
      events: [
        { type: 'WalletCreated', data: { walletId, walletName, vaultId, imported: false } },
        ...(facts.length > 0 ? [{ type: 'WalletAccountsCreated', data: { walletId, accounts: facts } } as const] : []),
      ],
      result: { walletId, addresses: facts.map(({ address }) => address) },
    };
  },
});
