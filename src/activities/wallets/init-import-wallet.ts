import { existingUser } from '../../domain/organization/users.js';
import { Text, Uuid } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';
import { checkRoomForImport, endedImports, recalledImport } from './import-params.js';

class InitImportWalletIntent {
  @Uuid({
    about:
      'The user who will import, whom the bundle names to their client; policies decide who may start it. A ' +
      'wallet import that is still pending for this user is cancelled.',
  })
  userId!: string;
}

class InitImportWalletResult {
  @Text({ about: 'The signed target key to which the mnemonic must be sealed (docs/protocol.md, import bundles).' })
  importBundle!: string;
}

/** Creates a target key for one import of a wallet. */
export const initImportWallet = defineActivity({
  type: 'ACTIVITY_TYPE_INIT_IMPORT_WALLET',
  summary: 'Starts the import of a wallet: creates the target key to encrypt the mnemonic to, for one import.',
  intent: InitImportWalletIntent,
  result: InitImportWalletResult,
  policy: { resource: 'WALLET', action: 'IMPORT' },

  check({ userId }, organization, limits) {
    existingUser(organization, userId);
    checkRoomForImport(organization, userId, 'wallet', limits);
  },

  prepare: ({ userId }, { keyring }, { organization: { organizationId } }) =>
    keyring.startImport({ organizationId, userId }),

  recall: (_intent, recorded) => recalledImport(recorded),

  decide({ userId }, { organization, newId }, { vaultId, targetPublicKey, importBundle }) {
    return {
      events: [
        ...endedImports(organization, userId, 'wallet'),
        {
          type: 'ImportStarted',
          data: { importId: newId(), userId, kind: 'wallet', vaultId, targetPublicKey },
        },
      ],
      result: { importBundle },
    };
  },
});
