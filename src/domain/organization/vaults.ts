import type { OrganizationEvent } from './organization.js';

/** The vault that is to be shredded once this has been recorded: nothing of the organization needs it any more. */
export function vaultEndedBy(event: OrganizationEvent): string | undefined {
  switch (event.type) {
    case 'WalletDeleted':
    case 'PrivateKeyDeleted':
    case 'ImportEnded':
      return event.data.vaultId;
    default:
      return undefined;
  }
}
