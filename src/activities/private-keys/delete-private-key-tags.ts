import type { OrganizationEvent } from '../../domain/organization/organization.js';
import { existingPrivateKeyTag } from '../../domain/organization/private-keys.js';
import { checkNoDenialNames } from '../../domain/policy/known-literals.js';
import { UuidList } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';

class DeletePrivateKeyTagsIntent {
  @UuidList({ min: 1, about: 'The private key tags to delete, all or none.' })
  privateKeyTagIds!: string[];
}

class DeletePrivateKeyTagsResult {
  @UuidList()
  privateKeyTagIds!: string[];

  @UuidList({ max: 1_000, about: 'The private keys that had any of the tags.' })
  privateKeyIds!: string[];
}

/** Deletes private key tags, and removes them from all keys. */
export const deletePrivateKeyTags = defineActivity({
  type: 'ACTIVITY_TYPE_DELETE_PRIVATE_KEY_TAGS',
  summary: 'Deletes private key tags and removes them from all private keys.',
  intent: DeletePrivateKeyTagsIntent,
  result: DeletePrivateKeyTagsResult,
  policy: { resource: 'PRIVATE_KEY', action: 'DELETE' },

  check({ privateKeyTagIds }, organization) {
    for (const tagId of privateKeyTagIds) existingPrivateKeyTag(organization, tagId);
  },

  decide({ privateKeyTagIds }, { organization, policyEnvironment }) {
    checkNoDenialNames('PrivateKey.tags', privateKeyTagIds, policyEnvironment, organization);
    const events: OrganizationEvent[] = [];
    const privateKeyIds: string[] = [];
    for (const { privateKeyId, privateKeyTags } of organization.privateKeys.values()) {
      const left = privateKeyTags.filter((tagId) => !privateKeyTagIds.includes(tagId));
      if (left.length === privateKeyTags.length) continue;
      privateKeyIds.push(privateKeyId);
      events.push({ type: 'PrivateKeyUpdated', data: { privateKeyId, privateKeyTags: left } });
    }
    for (const tagId of privateKeyTagIds) events.push({ type: 'PrivateKeyTagDeleted', data: { tagId } });
    return { events, result: { privateKeyTagIds, privateKeyIds } };
  },
});
