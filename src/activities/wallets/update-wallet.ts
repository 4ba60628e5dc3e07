import { checkWalletNameFree, existingWallet } from '../../domain/organization/wallets.js';
import { Label, Uuid } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';
import { walletValue } from './wallet-params.js';

class UpdateWalletIntent {
  @Uuid({ about: 'The wallet to change.' })
  walletId!: string;

  @Label({ optional: true, about: 'The new name; must be unique within the organization.' })
  walletName?: string;
}

class UpdateWalletResult {
  @Uuid()
  walletId!: string;
}

/** Renames a wallet. */
export const updateWallet = defineActivity({
  type: 'ACTIVITY_TYPE_UPDATE_WALLET',
  summary: 'Renames a wallet.',
  intent: UpdateWalletIntent,
  result: UpdateWalletResult,
  policy: { resource: 'WALLET', action: 'UPDATE' },
  params: { wallet_id: { type: { kind: 'string' }, from: ({ walletId }) => walletId } },

  resources: ({ walletId }, organization) => ({ wallet: walletValue(existingWallet(organization, walletId)) }),

  decide({ walletId, walletName }, { organization }) {
    existingWallet(organization, walletId);
    // Optional by the specification (4.3.12), so a request without it changes nothing.
    if (walletName === undefined) return { events: [], result: { walletId } };
    checkWalletNameFree(organization, walletName, walletId);
    return { events: [{ type: 'WalletUpdated', data: { walletId, walletName } }], result: { walletId } };
  },
});
