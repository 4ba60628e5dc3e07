import { existingUser } from '../../domain/organization/users.js';
import { Text, Uuid } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';
import { checkRoomForImport, endedImports, recalledImport } from '../wallets/import-params.js';

class InitImportPrivateKeyIntent {
  @Uuid({ about: 'The user who will import. An earlier pending bundle for this user becomes invalid.' })
  userId!: string;
}

class InitImportPrivateKeyResult {
  @Text({ about: 'The signed target key to which the private key must be sealed (docs/protocol.md, import bundles).' })
  importBundle!: string;
}

/** Creates a target key for one import of a private key by one user. */
export const initImportPrivateKey = defineActivity({
  type: 'ACTIVITY_TYPE_INIT_IMPORT_PRIVATE_KEY',
  summary: 'Starts the import of a private key: creates the target key to encrypt it to for import_private_key.',
  intent: InitImportPrivateKeyIntent,
  result: InitImportPrivateKeyResult,
  policy: { resource: 'PRIVATE_KEY', action: 'IMPORT' },

  check({ userId }, organization, limits) {
    existingUser(organization, userId);
    checkRoomForImport(organization, userId, 'private-key', limits);
  },

  prepare: ({ userId }, { keyring }, { organization: { organizationId } }) =>
    keyring.startImport({ organizationId, userId }),

  recall: (_intent, recorded) => recalledImport(recorded),

  decide({ userId }, { organization, newId }, { vaultId, targetPublicKey, importBundle }) {
    return {
      events: [
        ...endedImports(organization, userId, 'private-key'),
        {
          type: 'ImportStarted',
          data: { importId: newId(), userId, kind: 'private-key', vaultId, targetPublicKey },
        },
      ],
      result: { importBundle },
    };
  },
});
