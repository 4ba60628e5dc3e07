import { invalidField } from '../../domain/errors.js';
import type { OrganizationEvent } from '../../domain/organization/organization.js';
import {
  checkPrivateKeyTagNameFree,
  existingPrivateKey,
  existingPrivateKeyTag,
  privateKeyTagMoves,
} from '../../domain/organization/private-keys.js';
import { Label, Uuid, UuidList } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';

class UpdatePrivateKeyTagIntent {
  @Uuid({ about: 'The tag to change.' })
  privateKeyTagId!: string;

  @Label({ optional: true, about: 'The new name; must be unique among private key tags of the organization.' })
  newPrivateKeyTagName?: string;

  @UuidList({ max: 1_000, optional: true, about: 'Private keys to add the tag to.' })
  addPrivateKeyIds?: string[];

  @UuidList({ max: 1_000, optional: true, about: 'Private keys to remove the tag from.' })
  removePrivateKeyIds?: string[];
}

class UpdatePrivateKeyTagResult {
  @Uuid()
  privateKeyTagId!: string;
}

/** Renames a private key tag, and adds it to and removes it from keys. */
export const updatePrivateKeyTag = defineActivity({
  type: 'ACTIVITY_TYPE_UPDATE_PRIVATE_KEY_TAG',
  summary: 'Renames a private key tag, and adds it to or removes it from private keys.',
  intent: UpdatePrivateKeyTagIntent,
  result: UpdatePrivateKeyTagResult,
  policy: { resource: 'PRIVATE_KEY', action: 'UPDATE' },

  check({ privateKeyTagId, newPrivateKeyTagName, addPrivateKeyIds = [], removePrivateKeyIds = [] }, organization) {
    existingPrivateKeyTag(organization, privateKeyTagId);
    const removed = new Set(removePrivateKeyIds);
    const both = addPrivateKeyIds.find((privateKeyId) => removed.has(privateKeyId));
    if (both !== undefined) {
      throw invalidField(
        'parameters.removePrivateKeyIds',
        `lists private key \`${both}\`, which is also in addPrivateKeyIds`,
      );
    }
    for (const privateKeyId of [...addPrivateKeyIds, ...removePrivateKeyIds]) {
      existingPrivateKey(organization, privateKeyId);
    }
    if (newPrivateKeyTagName !== undefined) {
      checkPrivateKeyTagNameFree(organization, newPrivateKeyTagName, privateKeyTagId);
    }
  },

  decide({ privateKeyTagId, newPrivateKeyTagName, addPrivateKeyIds, removePrivateKeyIds }, { organization }) {
    const events: OrganizationEvent[] = privateKeyTagMoves(organization, privateKeyTagId, {
      add: addPrivateKeyIds ?? [],
      remove: removePrivateKeyIds ?? [],
    });
    if (newPrivateKeyTagName !== undefined) {
      const data = { tagId: privateKeyTagId, tagName: newPrivateKeyTagName };
      events.unshift({ type: 'PrivateKeyTagUpdated', data });
    }
    return { events, result: { privateKeyTagId } };
  },
});
