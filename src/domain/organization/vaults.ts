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
      return event.data.initialEvents.flatMap(vaultsNamedBy);
    default:
      return [];
  }
}

/** The vaults to shred once this is recorded: the organization no longer needs them. */
export function vaultsEndedBy(event: OrganizationEvent): readonly string[] {
  switch (event.type) {
    case 'WalletDeleted':
    case 'PrivateKeyDeleted':
    case 'ImportClosed':
    case 'Oauth2CredentialDeleted':
    case 'FiatOnRampCredentialDeleted':
    case 'AuthProxyDisabled':
      return [event.data.vaultId];
    case 'Oauth2CredentialUpdated':
    case 'FiatOnRampCredentialUpdated':
      return [event.data.replacedVaultId];
    case 'OtpInvalidated':
      return event.data.vaultId === undefined ? [] : [event.data.vaultId];
    case 'OrganizationDeleted':
      return event.data.vaultIds;
    default:
      return [];
  }
}

/** A vault, and what it holds, as messages say it. */
export interface HeldVault {
  readonly vaultId: string;
  readonly holds: string;
}

/** Every vault of the organization: these hold all of its keys and secrets. */
export function heldVaults(organization: OrganizationView): readonly HeldVault[] {
  const { wallets, privateKeys, imports, otps, oauth2Credentials, onRampCredentials, authProxy } = organization;
  const groups: readonly (readonly [string, ReadonlyMap<string, { readonly vaultId?: string }>])[] = [
    ['the seed of wallet', wallets],
    ['private key', privateKeys],
    ['the key for the bundle of import', imports],
    ['the key for one-time code', otps],
    ['the client secret of OAuth 2.0 credential', oauth2Credentials],
    ['the secrets of fiat on-ramp credential', onRampCredentials],
  ];
  const held = groups.flatMap(([what, holders]) =>
    [...holders].flatMap(([id, { vaultId }]) =>
      vaultId === undefined ? [] : [{ vaultId, holds: `${what} \`${id}\`` }],
    ),
  );
  return authProxy ? [...held, { vaultId: authProxy.vaultId, holds: 'the key of its auth proxy' }] : held;
}

/** Their ids. */
export function vaultsOf(organization: OrganizationView): readonly string[] {
  return heldVaults(organization).map(({ vaultId }) => vaultId);
}
