import type { DomainEvent, Evolvers } from './event.js';

/** What an organization has decided about its auth proxy (client protocol, section 5.2). Times are seconds as decimal strings. */
export interface AuthProxySettings {
  readonly allowedOrigins: readonly string[];
  readonly allowedAuthMethods: readonly string[];
  readonly sendFromEmailAddress?: string;
  readonly replyToEmailAddress?: string;
  readonly sendFromEmailSenderName?: string;
  readonly emailAuthTemplateId?: string;
  readonly otpTemplateId?: string;
  readonly emailCustomizationParams?: Readonly<Record<string, string>>;
  readonly smsCustomizationParams?: Readonly<Record<string, string>>;
  readonly walletKitSettings?: Readonly<Record<string, unknown>>;
  readonly otpExpirationSeconds?: string;
  readonly verificationTokenExpirationSeconds?: string;
  readonly sessionExpirationSeconds?: string;
  readonly otpAlphanumeric?: boolean;
  readonly otpLength?: string;
  readonly verificationTokenRequiredForGetAccountPii?: boolean;
  readonly socialLinkingClientIds?: readonly string[];
  readonly captchaEnabled?: boolean;
}

interface AuthProxyFacts {
  /** What `X-Auth-Proxy-Config-Id` names. */
  readonly configId: string;
  /** The user that the proxy signs as, and the built-in policy that says what this user may do. */
  readonly userId: string;
  readonly policyId: string;
  /** The vault that holds the private part of the proxy's API key. */
  readonly vaultId: string;
  /** Compressed P-256 key, hex. */
  readonly publicKey: string;
}

/** The auth proxy of an organization, as long as it is enabled. */
export interface AuthProxy extends AuthProxyFacts {
  readonly settings: AuthProxySettings;
  readonly createdAt: number;
  readonly updatedAt: number;
}

export type AuthProxyEvent =
  | DomainEvent<'AuthProxyEnabled', AuthProxyFacts & { settings: AuthProxySettings }>
  | DomainEvent<'AuthProxyUpdated', { settings: AuthProxySettings }>
  | DomainEvent<'AuthProxyDisabled', { configId: string; vaultId: string }>;

export const evolveAuthProxy: Evolvers<AuthProxyEvent> = {
  AuthProxyEnabled(organization, data, at) {
    organization.authProxy = { ...data, createdAt: at, updatedAt: at };
  },
  AuthProxyUpdated(organization, { settings }, at) {
    if (organization.authProxy) organization.authProxy = { ...organization.authProxy, settings, updatedAt: at };
  },
  AuthProxyDisabled(organization) {
    organization.authProxy = undefined;
  },
};
