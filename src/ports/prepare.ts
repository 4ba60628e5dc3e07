import type { VaultAttempt } from '../domain/vault-attempt.js';
import type { OrganizationView } from '../domain/organization/organization.js';
import type { QueuePath } from '../fairness/fair-queue.js';
import type { ContactLimitPort, DeliveryPort } from './delivery.js';
import type { InvitationPort } from './invitations.js';
import type { KeyringPort } from './keyring.js';
import type { LoginSecretPort } from './login-secrets.js';
import type { Oauth2Port, OauthSecretPort } from './oauth2.js';
import type { OidcPort } from './oidc.js';
import type { OnRampSecretPort } from './on-ramp.js';
import type { OrganizationPort } from './organizations.js';
import type { Registration, VerifiedRegistration } from './passkeys.js';
import type { ProxyKeyPort } from './proxy-keys.js';
import type { TokenPort } from './tokens.js';
import type { WebhookTargetPort } from './webhook-targets.js';

/** Ports that `prepare` may use. */
export interface PreparePorts {
  readonly keyring: KeyringPort;
  readonly tokens: TokenPort;
  readonly loginSecrets: LoginSecretPort;
  readonly oidc: OidcPort;
  readonly oauth2: Oauth2Port;
  readonly oauthSecrets: OauthSecretPort;
  readonly onRampSecrets: OnRampSecretPort;
  readonly delivery: DeliveryPort;
  readonly contactLimits: ContactLimitPort;
  readonly organizations: OrganizationPort;
  readonly proxyKeys: ProxyKeyPort;
  readonly webhookTargets: WebhookTargetPort;
  readonly invitations: InvitationPort;
  /** The only origins at which passkeys of an organization may be used; empty if nobody has set any. */
  readonly passkeyOrigins: (organization: OrganizationView) => Promise<readonly string[]>;
  /** Verifies a WebAuthn registration; see `stamps/webauthn.ts`. */
  readonly verifyRegistration: (input: Registration) => Promise<VerifiedRegistration>;
}

/** The ports that create key material. */
type SecretPorts = Pick<PreparePorts, 'keyring' | 'loginSecrets' | 'oauthSecrets' | 'onRampSecrets' | 'proxyKeys'>;

/** Gives those ports to one run of `prepare`: vaults that it creates are marked, and destroyed unless a decision names them. */
export type SecretsWithin = (attempt: {
  readonly said: VaultAttempt;
  /** The sender whose turns it takes. */
  readonly path: QueuePath;
  newVaultId(): string;
}) => SecretPorts;

export const SECRETS_WITHIN = Symbol('SecretsWithin');
