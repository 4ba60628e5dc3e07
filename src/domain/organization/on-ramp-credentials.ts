import { CoordinatorError } from '../errors.js';
import type { DomainEvent, Evolvers } from './event.js';
import type { OrganizationView } from './organization.js';
import { put, remove } from './slices.js';

/**
 * Providers of fiat on-ramps: the specification's names, with the names in published clients (docs/protocol.md, on-ramp credentials).
 * Both are accepted, and responses show what was sent.
 */
const onRampProviders = {
  FIAT_ON_RAMP_PROVIDER_ALPHA: 'FIAT_ON_RAMP_PROVIDER_COINBASE',
  FIAT_ON_RAMP_PROVIDER_BETA: 'FIAT_ON_RAMP_PROVIDER_MOONPAY',
} as const;

type OnRampProvider = keyof typeof onRampProviders;

/** A provider as requests may spell it. */
export type OnRampProviderName = OnRampProvider | (typeof onRampProviders)[OnRampProvider];

/** The specification's names first. */
export const onRampProviderNames = [
  ...Object.keys(onRampProviders),
  ...Object.values(onRampProviders),
] as readonly OnRampProviderName[];

/** Whether the accounts of a provider have a project and a private key in addition to the two API keys. */
export function hasProjects(provider: OnRampProviderName): boolean {
  return provider === 'FIAT_ON_RAMP_PROVIDER_ALPHA' || provider === onRampProviders.FIAT_ON_RAMP_PROVIDER_ALPHA;
}

interface OnRampCredentialFacts {
  readonly fiatOnRampCredentialId: string;
  readonly onrampProvider: OnRampProviderName;
  readonly projectId?: string;
  readonly publishableApiKey: string;
  /** The vault with the secret API key, and the private key if there is one. */
  readonly vaultId: string;
}

/** An account of the organization at a fiat on-ramp. */
export interface OnRampCredential extends OnRampCredentialFacts {
  /** It is an account in the provider's sandbox; this never changes for a credential. */
  readonly sandboxMode: boolean;
  readonly createdAt: number;
  readonly updatedAt: number;
}

export type OnRampCredentialEvent =
  | DomainEvent<'FiatOnRampCredentialCreated', OnRampCredentialFacts & { readonly sandboxMode: boolean }>
  /** Replaces everything about it; `replacedVaultId` held the replaced secrets. */
  | DomainEvent<'FiatOnRampCredentialUpdated', OnRampCredentialFacts & { readonly replacedVaultId: string }>
  | DomainEvent<'FiatOnRampCredentialDeleted', { fiatOnRampCredentialId: string; vaultId: string }>;

export const evolveOnRampCredentials: Evolvers<OnRampCredentialEvent> = {
  FiatOnRampCredentialCreated(organization, data, at) {
    put(organization, 'onRampCredentials', data.fiatOnRampCredentialId, { ...data, createdAt: at, updatedAt: at });
  },
  FiatOnRampCredentialUpdated(organization, { replacedVaultId: _replaced, ...data }, at) {
    const known = organization.onRampCredentials.get(data.fiatOnRampCredentialId);
    if (!known) return;
    const { sandboxMode, createdAt } = known;
    put(organization, 'onRampCredentials', data.fiatOnRampCredentialId, {
      ...data,
      sandboxMode,
      createdAt,
      updatedAt: at,
    });
  },
  FiatOnRampCredentialDeleted(organization, { fiatOnRampCredentialId }) {
    remove(organization, 'onRampCredentials', fiatOnRampCredentialId);
  },
};

/** The fiat on-ramp credential of that id. @throws {CoordinatorError} NOT_FOUND */
export function existingOnRampCredential(organization: OrganizationView, id: string): OnRampCredential {
  const found = organization.onRampCredentials.get(id);
  if (found) return found;
  throw new CoordinatorError(
    'NOT_FOUND',
    `no fiat on-ramp credential \`${id}\` in organization \`${organization.organizationId}\`: ` +
      'see list_fiat_on_ramp_credentials',
  );
}
