import { CoordinatorError } from '../../domain/errors.js';
import type { OrganizationView } from '../../domain/organization/organization.js';
import { accountSecret } from '../../domain/organization/signing-keys.js';
import { existingWallet, type WalletAccount } from '../../domain/organization/wallets.js';
import { Text } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';
import { checkTargetPublicKey, TargetPublicKey, targetPublicKeyType, targetPublicKeyValue } from './export-params.js';
import { walletAccountValue, walletValue } from './wallet-params.js';

class ExportWalletAccountIntent {
  @Text({ min: 1, max: 200, about: 'Address of the account; hexadecimal addresses in any letter case.' })
  address!: string;

  @TargetPublicKey()
  targetPublicKey!: string;
}

class ExportWalletAccountResult {
  @Text({ about: 'Address of the account, in canonical form.' })
  address!: string;

  @Text({
    about: 'The 32 bytes of the private key, sealed to the target key and signed (docs/protocol.md, export bundles).',
  })
  exportBundle!: string;
}

/** Exports the private key of a wallet account to the holder of a target key. */
export const exportWalletAccount = defineActivity({
  type: 'ACTIVITY_TYPE_EXPORT_WALLET_ACCOUNT',
  summary: 'Exports the private key of a wallet account, sealed to a target key of the caller.',
  intent: ExportWalletAccountIntent,
  result: ExportWalletAccountResult,
  policy: { resource: 'WALLET', action: 'EXPORT' },
  params: {
    target_public_key: {
      type: targetPublicKeyType,
      from: ({ targetPublicKey }) => targetPublicKeyValue(targetPublicKey),
    },
  },

  resources({ address }, organization) {
    const account = accountAt(organization, address);
    return {
      wallet: walletValue(existingWallet(organization, account.walletId)),
      wallet_account: walletAccountValue(account),
    };
  },

  check({ address, targetPublicKey }, organization) {
    accountAt(organization, address);
    checkTargetPublicKey(targetPublicKey);
  },

  async prepare({ address, targetPublicKey }, { keyring }, { organization }) {
    const { organizationId } = organization;
    const { walletAccountId, walletId, curve, path } = accountAt(organization, address);
    const { vaultId } = existingWallet(organization, walletId);
    const key = { organizationId, vaultId, secret: accountSecret(curve, path) };
    return { walletAccountId, exportBundle: await keyring.exportKey(key, targetPublicKey) };
  },

  recall: (_intent, recorded) => ({
    walletAccountId: recorded.first('WalletAccountExported').walletAccountId,
    exportBundle: recorded.result.exportBundle,
  }),

  decide({ address: requested }, { organization }, { walletAccountId, exportBundle }) {
    const { walletId, address, ...account } = accountAt(organization, requested);
    if (account.walletAccountId !== walletAccountId) {
      throw new CoordinatorError(
        'ABORTED',
        `\`${requested}\` now refers to a different account: send the request again`,
      );
    }
    return {
      events: [{ type: 'WalletAccountExported', data: { walletId, walletAccountId } }],
      result: { address, exportBundle },
    };
  },
});

/**
 * The oldest account with that address. @throws {CoordinatorError} NOT_FOUND in the words that clients know (docs/protocol.md, messages that clients match)
 */
function accountAt({ organizationId, addresses, walletAccounts }: OrganizationView, address: string): WalletAccount {
  const owners = addresses.get(address) ?? addresses.get(address.toLowerCase()) ?? [];
  for (const owner of owners) {
    const account = 'walletAccountId' in owner ? walletAccounts.get(owner.walletAccountId) : undefined;
    if (account) return account;
  }
  throw new CoordinatorError(
    'NOT_FOUND',
    `Could not find wallet account with address: \`${address}\` in organization \`${organizationId}\`: see ` +
      'list_wallet_accounts',
  );
}
