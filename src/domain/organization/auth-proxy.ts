import { CoordinatorError } from '../errors.js';
import { apiKeyCredentialType } from './credentials.js';
import type { DomainEvent, Evolvers } from './event.js';
import type { OrganizationEvent, OrganizationView } from './organization.js';

/** What an organization has decided about its auth proxy (docs/protocol.md, auth proxy). Times are seconds as decimal strings. */
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
  /** The vault with the private part of the proxy's API key. */
  readonly vaultId: string;
  /** Compressed P-256 key, hex. */
  readonly publicKey: string;
}

/** The auth proxy of an organization, while it is enabled. */
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

/** Ways to log in that a configuration may allow. `oauth` is every provider; which ones are shown is `walletKitSettings`. */
export const authMethods = ['email', 'sms', 'passkey', 'wallet', 'oauth'] as const;

/** Providers that a login page may show. */
export const socialProviders = ['facebook', 'google', 'apple', 'x', 'discord'] as const;

/** What a configuration says until it is changed. Contacts are not disclosed to unauthenticated callers (docs/protocol.md, auth proxy). */
const initialSettings: AuthProxySettings = {
  allowedOrigins: ['*'],
  allowedAuthMethods: authMethods,
  verificationTokenRequiredForGetAccountPii: true,
};

/** All that the proxy may ever do, as resource and action (docs/protocol.md, auth proxy). */
const proxyActions = [
  ['AUTH', 'CREATE'],
  ['OTP', 'CREATE'],
  ['OTP', 'VERIFY'],
  ['ORGANIZATION', 'CREATE'],
] as const;

/** All that the proxy may ever ask, by the last segment of the path: what it finds accounts and applications with. */
const proxyQueries: readonly string[] = ['list_oauth2_credentials', 'list_suborgs', 'list_verified_suborgs', 'whoami'];

/**
 * Members may read. The user of the proxy may read only what the proxy needs: its key serves people without one.
 * @throws {CoordinatorError} PERMISSION_DENIED
 */
export function checkAuthProxyQuery(organization: OrganizationView, userId: string, path: string): void {
  if (!isAuthProxyUser(organization, userId) || proxyQueries.includes(path)) return;
  throw new CoordinatorError('PERMISSION_DENIED', `user \`${userId}\` of the auth proxy may not call \`${path}\``, {
    category: 'REQUEST_NOT_AUTHORIZED',
  });
}

/** Kinds of activities that the proxy submits. Its policy covers more, such as every other way to log in. */
const proxyKinds: readonly string[] = [
  'CREATE_SUB_ORGANIZATION',
  'INIT_OTP',
  'OAUTH2_AUTHENTICATE',
  'OAUTH_LOGIN',
  'OTP_LOGIN',
  'VERIFY_OTP',
];

/** Whether the proxy submits activities of that kind (`activity.kind` of policies). */
export function isAuthProxyKind(kind: string): boolean {
  return proxyKinds.includes(kind);
}

/** Whether the auth proxy signs as this user. */
export function isAuthProxyUser({ authProxy }: OrganizationView, userId: string): boolean {
  return authProxy?.userId === userId;
}

/** The built-in policy of the user that the proxy signs as (docs/protocol.md, auth proxy). */
export function authProxyPolicy(userId: string) {
  return {
    policyName: 'Auth proxy',
    effect: 'EFFECT_ALLOW',
    consensus: `approvers.any(user, user.id == '${userId}')`,
    condition: proxyActions
      .map(([resource, action]) => `(activity.resource == '${resource}' && activity.action == '${action}')`)
      .join(' || '),
    notes: 'What the auth proxy may do for people who log in; disable_auth_proxy deletes it.',
  } as const;
}

/** Everything that makes up an auth proxy: its user with its key, its policy, and its configuration. */
export function authProxyEnabled(ids: AuthProxyFacts & { readonly apiKeyId: string }): readonly OrganizationEvent[] {
  const { apiKeyId, configId, userId, policyId, vaultId, publicKey } = ids;
  const curve = 'API_KEY_CURVE_P256';
  return [
    { type: 'UserCreated', data: { userId, userName: 'Auth proxy', userTags: [] } },
    {
      type: 'ApiKeyCreated',
      data: {
        userId,
        apiKeyId,
        apiKeyName: 'Auth proxy key',
        publicKey,
        curve,
        credentialType: apiKeyCredentialType[curve],
      },
    },
    { type: 'PolicyCreated', data: { policyId, ...authProxyPolicy(userId) } },
    {
      type: 'AuthProxyEnabled',
      data: { configId, userId, policyId, vaultId, publicKey, settings: initialSettings },
    },
  ];
}

/** The auth proxy of the organization. @throws {CoordinatorError} FAILED_PRECONDITION if it is not enabled */
export function existingAuthProxy({ authProxy, organizationId }: OrganizationView): AuthProxy {
  if (authProxy) return authProxy;
  throw noAuthProxy('FAILED_PRECONDITION', organizationId);
}

export function noAuthProxy(code: 'FAILED_PRECONDITION' | 'NOT_FOUND', organizationId: string): CoordinatorError {
  return new CoordinatorError(
    code,
    `organization \`${organizationId}\` has no auth proxy: enable it with enable_auth_proxy first`,
  );
}

/** Allowed entries of `allowedOrigins`: `*`, or an origin exactly as a browser sends it (RFC 6454, section 6.2). */
export function isOriginRule(text: string): boolean {
  if (text === '*') return true;
  if (!/^[a-z][a-z0-9+.-]*:\/\/[^\s/?#@*\\]+$/.test(text) || text !== text.toLowerCase()) return false;
  const web = /^https?:\/\/(.+)$/.exec(text);
  // Browsers never send a default port, or a name that is not in its ASCII form.
  return (
    !web ||
    (/^(?:[a-z0-9_.-]+|\[[0-9a-f:.]+\])(?::[1-9]\d{0,4})?$/.test(web[1]!) &&
      !/^(?:http:.*:80|https:.*:443)$/.test(text))
  );
}
