import type { OrganizationEvent, OrganizationView } from './organization.js';

/** The vaults that an event refers to, here or in a sub-organization that begins with it. */
export function vaultsNamedBy(event: OrganizationEvent): readonly string[] {
  switch (event.type) {
    case 'WalletCreated':
    case 'PrivateKeyCreated':
    case 'ImportStarted':
    case 'Oauth2CredentialCreated':
    case 'Oauth2CredentialUpdated':
    case 'FiatOnRampCredentialCreated':
    case 'FiatOnRampCredentialUpdated':
    case 'AuthProxyEnabled':
      return [event.data.vaultId];
    case 'OtpSent':
      return event.data.vaultId === undefined ? [] : [event.data.vaultId];
    case 'SubOrganizationCreated':
      return event.data.founding?.flatMap(vaultsNamedBy) ?? [];
    default:
      return [];
  }
}

/** The vaults to shred once this is recorded: the organization no longer needs them. */
export function vaultsEndedBy(event: OrganizationEvent): readonly string[] {
  switch (event.type) {
    case 'WalletDeleted':
    case 'PrivateKeyDeleted':
    case 'ImportEnded':
    case 'Oauth2CredentialDeleted':
    case 'FiatOnRampCredentialDeleted':
    case 'AuthProxyDisabled':
      return [event.data.vaultId];
    case 'Oauth2CredentialUpdated':
    case 'FiatOnRampCredentialUpdated':
      return [event.data.replacedVaultId];
    case 'OtpEnded':
      return event.data.vaultId === undefined ? [] : [event.data.vaultId];
    case 'OrganizationDeleted':
      return event.data.vaultIds;
    default:
      return [];
  }
}

/** Every vault of the organization: these hold all of its keys and secrets. */
export function vaultsOf(organization: OrganizationView): readonly string[] {
  const { wallets, privateKeys, imports, otps, oauth2Credentials, onRampCredentials, authProxy } = organization;
  const holders: readonly { readonly vaultId?: string }[] = [
    ...wallets.values(),
    ...privateKeys.values(),
    ...imports.values(),
    ...otps.values(),
    ...oauth2Credentials.values(),
    ...onRampCredentials.values(),
    ...(authProxy ? [authProxy] : []),
  ];
  return holders.flatMap(({ vaultId }) => (vaultId === undefined ? [] : [vaultId]));
}
