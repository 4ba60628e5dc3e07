import {
  checkPrivateKeyTagCount,
  checkPrivateKeyTagNameFree,
  existingPrivateKey,
  privateKeyTagMoves,
} from '../../domain/organization/private-keys.js';
import { Label, Uuid, UuidList } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';

class CreatePrivateKeyTagIntent {
  @Label({ about: 'The name of the tag; must be unique among private key tags of the organization.' })
  privateKeyTagName!: string;

  @UuidList({ max: 1_000, about: 'Private keys to tag at once; may be empty.' })
  privateKeyIds!: string[];
}

class CreatePrivateKeyTagResult {
  @Uuid()
  privateKeyTagId!: string;

  @UuidList({ max: 1_000 })
  privateKeyIds!: string[];
}

/** Creates a tag for private keys. */
export const createPrivateKeyTag = defineActivity({
  type: 'ACTIVITY_TYPE_CREATE_PRIVATE_KEY_TAG',
  summary: 'Creates a tag for private keys.',
  intent: CreatePrivateKeyTagIntent,
  result: CreatePrivateKeyTagResult,
  policy: { resource: 'PRIVATE_KEY', action: 'CREATE' },

  check({ privateKeyTagName, privateKeyIds }, organization, { limits }) {
    checkPrivateKeyTagCount(organization, limits);
    checkPrivateKeyTagNameFree(organization, privateKeyTagName);
    for (const privateKeyId of privateKeyIds) existingPrivateKey(organization, privateKeyId);
  },

  decide({ privateKeyTagName, privateKeyIds }, { organization, newId }) {
    const privateKeyTagId = newId();
    const moves = privateKeyTagMoves(organization, privateKeyTagId, { add: privateKeyIds, remove: [] });
    return {
      events: [
        { type: 'PrivateKeyTagCreated', data: { tagId: privateKeyTagId, tagName: privateKeyTagName } },
        ...moves,
      ],
      result: { privateKeyTagId, privateKeyIds },
    };
  },
});
