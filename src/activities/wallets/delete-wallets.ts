import { CoordinatorError } from '../../domain/errors.js';
import { existingWallet } from '../../domain/organization/wallets.js';
import { Flag, UuidList } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';
import { walletValue } from './wallet-params.js';

class DeleteWalletsIntent {
  @UuidList({ min: 1, about: 'The wallets to delete, all or none.' })
  walletIds!: string[];

  @Flag({ optional: true, about: 'True to also delete wallets that were never exported. Ignored for those that were.' })
  deleteWithoutExport?: boolean;
}

class DeleteWalletsResult {
  @UuidList()
  walletIds!: string[];
}

/** Deletes wallets permanently: their vaults are shredded. */
export const deleteWallets = defineActivity({
  type: 'ACTIVITY_TYPE_DELETE_WALLETS',
  summary:
    'Deletes wallets with all their accounts, and shreds their seeds and keys. After that, only an export or a backup of the ' +
    'store holds them.',
  intent: DeleteWalletsIntent,
  result: DeleteWalletsResult,
  policy: { resource: 'WALLET', action: 'DELETE' },

  resources: ({ walletIds }, organization) => ({
    wallets: walletIds.map((walletId) => walletValue(existingWallet(organization, walletId))),
  }),

  decide({ walletIds, deleteWithoutExport = false }, { organization }) {
    const events = walletIds.map((walletId) => {
      const { exported, vaultId } = existingWallet(organization, walletId);
      if (!exported && !deleteWithoutExport) {
        throw new CoordinatorError(
          'INVALID_ARGUMENT',
          `wallet has not been exported: \`${walletId}\` would be lost for good: export it with export_wallet first, or send ` +
            'deleteWithoutExport: true',
          { category: 'REQUEST_INVALID' },
        );
      }
      return { type: 'WalletDeleted', data: { walletId, vaultId } } as const;
    });
    return { events, result: { walletIds } };
  },
});
