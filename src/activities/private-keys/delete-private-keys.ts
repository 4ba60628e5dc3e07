import { CoordinatorError } from '../../domain/errors.js';
import { existingPrivateKey } from '../../domain/organization/private-keys.js';
import { Flag, UuidList } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';

class DeletePrivateKeysIntent {
  @UuidList({ min: 1, about: 'The private keys to delete, all or none.' })
  privateKeyIds!: string[];

  @Flag({ optional: true, about: 'True to delete keys that were never exported too; they are lost for good.' })
  deleteWithoutExport?: boolean;
}

class DeletePrivateKeysResult {
  @UuidList()
  privateKeyIds!: string[];
}

/**
 * Deletes private keys permanently: their vaults are shredded. Policies see their ids, and no `private_key`, because there may
 * be several.
 */
export const deletePrivateKeys = defineActivity({
  type: 'ACTIVITY_TYPE_DELETE_PRIVATE_KEYS',
  summary: 'Deletes private keys for good and shreds their secrets.',
  intent: DeletePrivateKeysIntent,
  result: DeletePrivateKeysResult,
  policy: { resource: 'PRIVATE_KEY', action: 'DELETE' },
  params: {
    private_key_ids: { type: { kind: 'list', of: { kind: 'string' } }, from: ({ privateKeyIds }) => privateKeyIds },
  },

  check({ privateKeyIds, deleteWithoutExport }, organization) {
    for (const privateKeyId of privateKeyIds) {
      const { exported } = existingPrivateKey(organization, privateKeyId);
      if (exported || deleteWithoutExport) continue;
      throw new CoordinatorError(
        'INVALID_ARGUMENT',
        `private key has not been exported: \`${privateKeyId}\` would be lost for good: export it with export_private_key first, or send ` +
          `deleteWithoutExport`,
        { category: 'REQUEST_INVALID' },
      );
    }
  },

  decide({ privateKeyIds }, { organization }) {
    return {
      events: privateKeyIds.map((privateKeyId) => {
        const { vaultId } = existingPrivateKey(organization, privateKeyId);
        return { type: 'PrivateKeyDeleted', data: { privateKeyId, vaultId } } as const;
      }),
      result: { privateKeyIds },
    };
  },
});
