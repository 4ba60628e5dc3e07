import { existingPrivateKey } from '../../domain/organization/private-keys.js';
import { privateKeySecret } from '../../domain/organization/signing-keys.js';
import { Text, Uuid } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';
import {
  checkTargetPublicKey,
  TargetPublicKey,
  targetPublicKeyType,
  targetPublicKeyValue,
} from '../wallets/export-params.js';
import { privateKeyValue } from './private-key-params.js';

class ExportPrivateKeyIntent {
  @Uuid({ about: 'The private key to export.' })
  privateKeyId!: string;

  @TargetPublicKey()
  targetPublicKey!: string;
}

class ExportPrivateKeyResult {
  @Uuid()
  privateKeyId!: string;

  @Text({ about: 'The 32 bytes of the key, sealed to the target key and signed (docs/protocol.md, export bundles).' })
  exportBundle!: string;
}

/** Exports a private key, sealed to a key of the caller; it counts as exported from then on. */
export const exportPrivateKey = defineActivity({
  type: 'ACTIVITY_TYPE_EXPORT_PRIVATE_KEY',
  summary: "Exports a private key, sealed to the caller's target key.",
  intent: ExportPrivateKeyIntent,
  result: ExportPrivateKeyResult,
  policy: { resource: 'PRIVATE_KEY', action: 'EXPORT' },
  params: {
    target_public_key: {
      type: targetPublicKeyType,
      from: ({ targetPublicKey }) => targetPublicKeyValue(targetPublicKey),
    },
  },

  resources: ({ privateKeyId }, organization) => ({
    private_key: privateKeyValue(existingPrivateKey(organization, privateKeyId)),
  }),

  check({ privateKeyId, targetPublicKey }, organization) {
    existingPrivateKey(organization, privateKeyId);
    checkTargetPublicKey(targetPublicKey);
  },

  prepare({ privateKeyId, targetPublicKey }, { keyring }, { organization }) {
    const { vaultId } = existingPrivateKey(organization, privateKeyId);
    const { organizationId } = organization;
    return keyring.exportKey({ organizationId, vaultId, secret: privateKeySecret }, targetPublicKey);
  },

  recall: (_intent, recorded) => recorded.result.exportBundle,

  decide: ({ privateKeyId }, _context, exportBundle) => ({
    events: [{ type: 'PrivateKeyExported', data: { privateKeyId } }],
    result: { privateKeyId, exportBundle },
  }),
});
