import { CoordinatorError } from '../../domain/errors.js';
import type { OrganizationView } from '../../domain/organization/organization.js';
import { vaultsOf } from '../../domain/organization/vaults.js';
import { Flag, Uuid } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';

class DeleteSubOrganizationIntent {
  @Flag({
    optional: true,
    about: 'True to delete wallets and private keys that were never exported too; they are lost for good.',
  })
  deleteWithoutExport?: boolean;
}

class DeleteSubOrganizationResult {
  @Uuid()
  subOrganizationUuid!: string;
}

/**
 * Deletes the sub-organization that it is submitted in, permanently. Policies may require more approvals or forbid it,
 * but cannot waive that one of its own root users submits it (docs/protocol.md, order of evaluation).
 */
export const deleteSubOrganization = defineActivity({
  type: 'ACTIVITY_TYPE_DELETE_SUB_ORGANIZATION',
  summary: 'Deletes the sub-organization in which it is submitted, and shreds all its secrets; its history remains.',
  intent: DeleteSubOrganizationIntent,
  result: DeleteSubOrganizationResult,
  policy: { resource: 'ORGANIZATION', action: 'DELETE' },
  submittedBy: 'root-user',

  check({ deleteWithoutExport = false }, organization) {
    const { organizationId, parentOrganizationId } = organization;
    if (parentOrganizationId === undefined) {
      throw new CoordinatorError(
        'FAILED_PRECONDITION',
        `organization \`${organizationId}\` is not a sub-organization: only an organization with a parent can be deleted`,
      );
    }
    if (!deleteWithoutExport) checkAllExported(organization);
  },

  decide(_intent, { organization, submitterId }) {
    const { organizationId, rootQuorum } = organization;
    if (!rootQuorum.userIds.includes(submitterId)) {
      throw new CoordinatorError(
        'PERMISSION_DENIED',
        `user \`${submitterId}\` is not in the root quorum of organization \`${organizationId}\`: only a root user of a ` +
          'sub-organization may delete it',
        { category: 'REQUEST_NOT_AUTHORIZED' },
      );
    }
    return {
      events: [{ type: 'OrganizationDeleted', data: { organizationId, vaultIds: vaultsOf(organization) } }],
      result: { subOrganizationUuid: organizationId },
    };
  },
});

/** @throws {CoordinatorError} INVALID_ARGUMENT that names the first wallet or private key that would be lost */
function checkAllExported({ wallets, privateKeys }: OrganizationView): void {
  for (const { exported, walletId } of wallets.values()) {
    if (!exported) throw notExported('wallet', walletId, 'export_wallet');
  }
  for (const { exported, privateKeyId } of privateKeys.values()) {
    if (!exported) throw notExported('private key', privateKeyId, 'export_private_key');
  }
}

function notExported(noun: string, id: string, remedy: string): CoordinatorError {
  return new CoordinatorError(
    'INVALID_ARGUMENT',
    `${noun} has not been exported: \`${id}\` would be lost for good: export it with ${remedy} first, or send ` +
      'deleteWithoutExport: true',
    { category: 'REQUEST_INVALID' },
  );
}
