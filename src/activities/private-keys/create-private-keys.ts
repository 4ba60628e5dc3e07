import { CURVES, type AddressFormat, type Curve } from '../../domain/key-formats.js';
import { checkNewPrivateKeys, existingPrivateKeyTag } from '../../domain/organization/private-keys.js';
import { Label, ListOf, ListOfOneOf, OneOf, Uuid, UuidList } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';
import { addressFormats } from '../wallets/wallet-params.js';
import { AddressResult, checkAddressFormats, privateKeyCreated, recalledPrivateKeys } from './private-key-params.js';

class PrivateKeyParams {
  @Label({ about: 'The name of the key; must be unique within the organization.' })
  privateKeyName!: string;

  @OneOf(CURVES, { about: 'Its curve; must suit every address format.' })
  curve!: Curve;

  @UuidList({ about: 'Ids of its private key tags; may be empty.' })
  privateKeyTags!: string[];

  @ListOfOneOf(addressFormats, { about: 'Address formats; may be empty.' })
  addressFormats!: AddressFormat[];
}

class CreatePrivateKeysIntent {
  @ListOf(() => PrivateKeyParams, { min: 1, about: 'The new private keys, all or none.' })
  privateKeys!: PrivateKeyParams[];
}

class PrivateKeyResult {
  @Uuid()
  privateKeyId!: string;

  @ListOf(() => AddressResult)
  addresses!: AddressResult[];
}

class CreatePrivateKeysResult {
  @ListOf(() => PrivateKeyResult, { about: 'In the order of the intent.' })
  privateKeys!: PrivateKeyResult[];

  @UuidList({ about: 'The same ids, where clients of version 1 expect them.' })
  privateKeyIds!: string[];
}

/** Creates independent private keys, not derived from a seed. */
export const createPrivateKeys = defineActivity({
  type: 'ACTIVITY_TYPE_CREATE_PRIVATE_KEYS_V2',
  summary: 'Creates private keys that belong to no wallet.',
  intent: CreatePrivateKeysIntent,
  result: CreatePrivateKeysResult,
  olderVersions: [
    {
      type: 'ACTIVITY_TYPE_CREATE_PRIVATE_KEYS',
      intent: CreatePrivateKeysIntent,
      lift: (intent: CreatePrivateKeysIntent): CreatePrivateKeysIntent => intent,
    },
  ],
  policy: { resource: 'PRIVATE_KEY', action: 'CREATE' },

  check({ privateKeys }, organization, { limits }) {
    checkNewPrivateKeys(
      organization,
      privateKeys.map(({ privateKeyName }) => privateKeyName),
      limits,
    );
    for (const [index, { curve, addressFormats: formats, privateKeyTags }] of privateKeys.entries()) {
      checkAddressFormats(formats, curve, `parameters.privateKeys[${index}].addressFormats`);
      for (const tagId of privateKeyTags) existingPrivateKeyTag(organization, tagId);
    }
  },

  prepare: ({ privateKeys }, { keyring }, { organization: { organizationId } }) =>
    Promise.all(
      privateKeys.map(({ curve, addressFormats: formats }) =>
        keyring.createPrivateKey({ organizationId, curve, addressFormats: formats }),
      ),
    ),

  recall: ({ privateKeys }, recorded) => recalledPrivateKeys(privateKeys, recorded),

  decide({ privateKeys }, { newId }, sealed) {
    const created = privateKeys.map(({ privateKeyName, curve, privateKeyTags }, index) => {
      const facts = { privateKeyId: newId(), privateKeyName, curve, imported: false, privateKeyTags };
      return { facts, key: sealed[index]! };
    });
    const ids = created.map(({ facts }) => facts.privateKeyId);
    return {
      events: created.map(({ facts, key }) => privateKeyCreated(facts, key)),
      result: {
        privateKeys: created.map(({ key }, index) => ({ privateKeyId: ids[index]!, addresses: [...key.addresses] })),
        privateKeyIds: ids,
      },
    };
  },
});
