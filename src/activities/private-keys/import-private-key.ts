import { CoordinatorError } from '../../domain/errors.js';
import { CURVES, type AddressFormat, type Curve } from '../../domain/key-formats.js';
import { checkNewPrivateKeys } from '../../domain/organization/private-keys.js';
import { existingUser } from '../../domain/organization/users.js';
import { Label, ListOf, ListOfOneOf, OneOf, Text, Uuid } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';
import { existingImport } from '../wallets/import-params.js';
import { addressFormats } from '../wallets/wallet-params.js';
import { AddressResult, checkAddressFormats, privateKeyCreated, recalledPrivateKeys } from './private-key-params.js';

class ImportPrivateKeyIntent {
  @Uuid({ about: 'The user for whom init_import_private_key created the bundle.' })
  userId!: string;

  @Label({ about: 'The name of the key; must be unique within the organization.' })
  privateKeyName!: string;

  @Text({ min: 1, about: 'The key, sealed to the target key of the import bundle (docs/protocol.md, import bundles).' })
  encryptedBundle!: string;

  @OneOf(CURVES, { about: 'Its curve; must suit every address format.' })
  curve!: Curve;

  @ListOfOneOf(addressFormats, { about: 'Address formats; may be empty.' })
  addressFormats!: AddressFormat[];
}

class ImportPrivateKeyResult {
  @Uuid()
  privateKeyId!: string;

  @ListOf(() => AddressResult)
  addresses!: AddressResult[];
}

/** Imports a private key that a user has sealed to the target key of a pending import, which then ends. */
export const importPrivateKey = defineActivity({
  type: 'ACTIVITY_TYPE_IMPORT_PRIVATE_KEY',
  summary: 'Imports a private key, encrypted to the target key from init_import_private_key.',
  intent: ImportPrivateKeyIntent,
  result: ImportPrivateKeyResult,
  policy: { resource: 'PRIVATE_KEY', action: 'IMPORT' },

  check({ userId, privateKeyName, curve, addressFormats: formats }, organization, { limits }) {
    existingUser(organization, userId);
    existingImport(organization, userId, 'private-key');
    checkNewPrivateKeys(organization, [privateKeyName], limits);
    checkAddressFormats(formats, curve, 'parameters.addressFormats');
  },

  async prepare({ userId, encryptedBundle, curve, addressFormats: formats }, { keyring }, { organization }) {
    const { importId, vaultId } = existingImport(organization, userId, 'private-key');
    const { organizationId } = organization;
    const key = { curve, addressFormats: formats };
    return { importId, sealed: await keyring.importPrivateKey({ organizationId, vaultId }, encryptedBundle, key) };
  },

  recall: (key, recorded) => ({
    importId: recorded.first('ImportClosed').importId,
    sealed: recalledPrivateKeys([key], recorded)[0]!,
  }),

  decide({ userId, privateKeyName, curve }, { organization, newId }, { importId, sealed }) {
    const pending = existingImport(organization, userId, 'private-key');
    if (pending.importId !== importId) {
      throw new CoordinatorError(
        'ABORTED',
        `a newer import has been started for user \`${userId}\`: seal the private key to its target key`,
      );
    }
    const privateKeyId = newId();
    const facts = { privateKeyId, privateKeyName, curve, imported: true, privateKeyTags: [] };
    return {
      events: [
        { type: 'ImportClosed', data: { importId, vaultId: pending.vaultId } },
        privateKeyCreated(facts, sealed),
      ],
      result: { privateKeyId, addresses: [...sealed.addresses] },
    };
  },
});
