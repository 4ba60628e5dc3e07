import { CoordinatorError } from '../../domain/errors.js';
import { existingUser } from '../../domain/organization/users.js';
import { checkLimit } from '../../domain/organization/limits.js';
import { checkWalletCount, checkWalletNameFree } from '../../domain/organization/wallets.js';
import { Label, ListOf, Text, TextList, Uuid } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';
import { existingImport } from './import-params.js';
import {
  accountFacts,
  accountsToDerive,
  checkAccountsNew,
  maxAccountsAtOnce,
  recalledWallet,
  WalletAccountParams,
} from './wallet-params.js';

class ImportWalletIntent {
  @Uuid({ about: 'The user for whom init_import_wallet created the bundle.' })
  userId!: string;

  @Label({ about: 'The name of the wallet; must be unique within the organization.' })
  walletName!: string;

  @Text({
    min: 1,
    max: 16_384,
    about: 'The mnemonic, sealed to the target key of the import (docs/protocol.md, import bundles).',
  })
  encryptedBundle!: string;

  @ListOf(() => WalletAccountParams, { max: maxAccountsAtOnce, about: 'Its first accounts; may be empty.' })
  accounts!: WalletAccountParams[];
}

class ImportWalletResult {
  @Uuid()
  walletId!: string;

  @TextList({ about: 'Addresses, in the order of the accounts.' })
  addresses!: string[];
}

/** Imports a wallet from its mnemonic, and ends the import that it was sealed for. */
export const importWallet = defineActivity({
  type: 'ACTIVITY_TYPE_IMPORT_WALLET',
  summary:
    'Imports a wallet from its mnemonic, sealed to the key from init_import_wallet, and derives its first accounts.',
  intent: ImportWalletIntent,
  result: ImportWalletResult,
  policy: { resource: 'WALLET', action: 'IMPORT' },

  check({ userId, walletName, accounts }, organization, { limits }) {
    existingUser(organization, userId);
    existingImport(organization, userId, 'wallet');
    checkWalletCount(organization, limits);
    checkLimit(limits, 'walletAccounts', organization.walletAccounts.size, accounts.length);
    checkWalletNameFree(organization, walletName);
    checkAccountsNew(organization, undefined, accountsToDerive(accounts));
  },

  async prepare({ userId, encryptedBundle, accounts }, { keyring }, { organization }) {
    const { organizationId } = organization;
    const { importId, vaultId } = existingImport(organization, userId, 'wallet');
    const pending = { organizationId, vaultId };
    return { importId, ...(await keyring.importWallet(pending, encryptedBundle, accountsToDerive(accounts))) };
  },

  recall: ({ accounts }, recorded) => ({
    importId: recorded.first('ImportClosed').importId,
    ...recalledWallet(accounts, recorded),
  }),

  decide({ userId, walletName, accounts }, { organization, newId }, { importId, vaultId, accounts: derived }) {
    const pending = existingImport(organization, userId, 'wallet');
    if (pending.importId !== importId) {
      throw new CoordinatorError(
        'ABORTED',
        `a newer import has been started for user \`${userId}\`: seal the mnemonic to its target key`,
      );
    }
    const walletId = newId();
    const facts = accountFacts(accounts, derived, newId);
    return {
      events: [
        { type: 'ImportClosed', data: { importId, vaultId: pending.vaultId } },
        { type: 'WalletCreated', data: { walletId, walletName, vaultId, imported: true } },
        ...(facts.length > 0 ? [{ type: 'WalletAccountsCreated', data: { walletId, accounts: facts } } as const] : []),
      ],
      result: { walletId, addresses: facts.map(({ address }) => address) },
    };
  },
});
