import { CoordinatorError, invalidField } from '../../domain/errors.js';
import type { OrganizationView } from '../../domain/organization/organization.js';
import { existingWallet, type WalletAccount } from '../../domain/organization/wallets.js';
import { Flag, UuidList } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';
import { walletValue } from './wallet-params.js';

class DeleteWalletAccountsIntent {
  @UuidList({ min: 1, about: 'The accounts to delete, from one wallet or several, all or none.' })
  walletAccountIds!: string[];

  @Flag({
    optional: true,
    about:
      'True to also delete accounts that were never exported, neither on their own nor with their wallet. Ignored for ' +
      'those that were.',
  })
  deleteWithoutExport?: boolean;
}

class DeleteWalletAccountsResult {
  @UuidList()
  walletAccountIds!: string[];
}

/** Removes accounts from their wallets; the wallets keep their seeds. */
export const deleteWalletAccounts = defineActivity({
  type: 'ACTIVITY_TYPE_DELETE_WALLET_ACCOUNTS',
  summary:
    'Removes accounts from their wallets, so that they can no longer sign. Their keys can still be derived from the ' +
    'wallet: create_wallet_accounts restores them, and only delete_wallets destroys them.',
  intent: DeleteWalletAccountsIntent,
  result: DeleteWalletAccountsResult,
  policy: { resource: 'WALLET', action: 'DELETE' },

  resources: ({ walletAccountIds }, organization) => ({
    wallets: [...byWallet(organization, walletAccountIds).keys()].map((walletId) =>
      walletValue(existingWallet(organization, walletId)),
    ),
  }),

  decide({ walletAccountIds, deleteWithoutExport = false }, { organization }) {
    const wallets = byWallet(organization, walletAccountIds);
    for (const [walletId, accounts] of wallets) {
      const isWalletExported = existingWallet(organization, walletId).exported;
      const kept = accounts.find(({ exported }) => !exported && !isWalletExported);
      if (kept && !deleteWithoutExport) throw notExported(kept);
    }
    const events = [...wallets].map(([walletId, accounts]) => {
      const ids = accounts.map(({ walletAccountId }) => walletAccountId);
      return { type: 'WalletAccountsDeleted', data: { walletId, walletAccountIds: ids } } as const;
    });
    return { events, result: { walletAccountIds } };
  },
});

/** The accounts by their wallets, in the requested order. @throws {CoordinatorError} naming the first unknown one */
function byWallet(
  organization: OrganizationView,
  walletAccountIds: readonly string[],
): ReadonlyMap<string, readonly WalletAccount[]> {
  const wallets = new Map<string, WalletAccount[]>();
  for (const [index, walletAccountId] of walletAccountIds.entries()) {
    const account = organization.walletAccounts.get(walletAccountId);
    if (!account) {
      throw invalidField(
        `parameters.walletAccountIds[${index}]`,
        `wallet account not part of your organization: \`${walletAccountId}\`: see list_wallet_accounts`,
      );
    }
    const accounts = wallets.get(account.walletId);
    if (accounts) accounts.push(account);
    else wallets.set(account.walletId, [account]);
  }
  return wallets;
}

/** The code that clients know is not one of our categories, so it is in the details (docs/protocol.md, error categories). */
function notExported({ walletAccountId, address }: WalletAccount): CoordinatorError {
  return new CoordinatorError(
    'INVALID_ARGUMENT',
    `wallet account has not been exported: \`${walletAccountId}\` (${address}): export it with export_wallet_account, ` +
      'or its wallet with export_wallet, first, or send deleteWithoutExport: true',
    {
      details: [
        {
          '@type': 'type.googleapis.com/errors.v1.TurnkeyErrorDetail',
          turnkeyErrorCode: 'WALLET_ACCOUNT_NOT_EXPORTED',
        },
      ],
    },
  );
}
