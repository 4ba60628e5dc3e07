import { MNEMONIC_LANGUAGES, type MnemonicLanguage } from '../../domain/key-formats.js';
import { existingWallet } from '../../domain/organization/wallets.js';
import { OneOf, Text, Uuid } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';
import { checkTargetPublicKey, TargetPublicKey, targetPublicKeyType, targetPublicKeyValue } from './export-params.js';
import { walletValue } from './wallet-params.js';

class ExportWalletIntent {
  @Uuid({ about: 'The wallet to export.' })
  walletId!: string;

  @TargetPublicKey()
  targetPublicKey!: string;

  @OneOf(MNEMONIC_LANGUAGES, {
    optional: true,
    about:
      "Language of the words; default: the wallet's own, which is English unless it was imported. BIP-39 derives the " +
      'seed from the words, so in another language other software derives different keys.',
  })
  language?: MnemonicLanguage;
}

class ExportWalletResult {
  @Uuid()
  walletId!: string;

  @Text({ about: 'The mnemonic, sealed to the target key and signed (docs/protocol.md, export bundles).' })
  exportBundle!: string;
}

/** Exports the mnemonic of a wallet to the holder of a target key. */
export const exportWallet = defineActivity({
  type: 'ACTIVITY_TYPE_EXPORT_WALLET',
  summary: 'Exports the mnemonic of a wallet, sealed to a target key of the caller.',
  intent: ExportWalletIntent,
  result: ExportWalletResult,
  policy: { resource: 'WALLET', action: 'EXPORT' },
  params: {
    target_public_key: {
      type: targetPublicKeyType,
      from: ({ targetPublicKey }) => targetPublicKeyValue(targetPublicKey),
    },
  },

  resources: ({ walletId }, organization) => ({ wallet: walletValue(existingWallet(organization, walletId)) }),

  check({ walletId, targetPublicKey }, organization) {
    existingWallet(organization, walletId);
    checkTargetPublicKey(targetPublicKey);
  },

  prepare({ walletId, targetPublicKey, language }, { keyring }, { organization }) {
    const { organizationId } = organization;
    const { vaultId } = existingWallet(organization, walletId);
    return keyring.exportWallet({ organizationId, vaultId }, targetPublicKey, language);
  },

  recall: (_intent, recorded) => recorded.result.exportBundle,

  decide: ({ walletId }, _context, exportBundle) => ({
    events: [{ type: 'WalletExported', data: { walletId } }],
    result: { walletId, exportBundle },
  }),
});
