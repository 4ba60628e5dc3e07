import type { OrganizationEvent } from './organization.js';

/** The vaults that are to be shredded once this has been recorded: nothing of the organization needs them any more. */
export function vaultsEndedBy(event: OrganizationEvent): readonly string[] {
  switch (event.type) {
    case 'WalletDeleted':
    case 'PrivateKeyDeleted':
    case 'ImportEnded':
    case 'Oauth2CredentialDeleted':
    case 'AuthProxyDisabled':
      return [event.data.vaultId];
    case 'Oauth2CredentialUpdated':
      return [event.data.replacedVaultId];
    case 'OtpEnded':
      return event.data.vaultId === undefined ? [] : [event.data.vaultId];
    case 'OrganizationDeleted':
      return event.data.vaultIds;
    default:
      return [];
  }
}
