import type { OrganizationEvent, OrganizationView } from './organization.js';

/** The vaults that an event gives a meaning, here or in a sub-organization that begins with it. */
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

/** The vaults that are to be shredded once this has been recorded: nothing of the organization needs them any more. */
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

/** Every vault that the organization has now: what it knows of keys and secrets lies in these. */
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
