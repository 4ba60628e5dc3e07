import { noAuthProxy, type AuthProxy } from '../domain/organization/auth-proxy.js';
import { timestamp } from '../domain/organization/timestamp.js';
import { Described, Flag, Nested, Text, TextList, Uuid } from '../wire/fields.js';
import type { Rows } from './database.js';
import { defineQuery, OrganizationRequest } from './define-query.js';
import { eachEvent, type ReadModel } from './read-model.js';
import { TimestampShape } from '../wire/shapes.js';

/** Enabled auth proxies, and the origins that each allows. */
export const authProxiesModel: ReadModel = {
  name: 'auth-proxies',
  version: 1,
  tables: ['auth_proxies', 'auth_proxy_origins'],
  schema: `
    CREATE TABLE auth_proxies (
      config_id TEXT PRIMARY KEY, organization_id TEXT NOT NULL, doc TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX auth_proxies_by_organization ON auth_proxies (organization_id);
    CREATE TABLE auth_proxy_origins (
      origin TEXT NOT NULL, config_id TEXT NOT NULL, PRIMARY KEY (origin, config_id)
    ) WITHOUT ROWID;
    CREATE INDEX auth_proxy_origins_by_config ON auth_proxy_origins (config_id);`,

  project: eachEvent((rows, { organizationId, at, event }) => {
    switch (event.type) {
      case 'AuthProxyEnabled':
        return put(rows, organizationId, { ...event.data, createdAt: at, updatedAt: at });
      case 'AuthProxyUpdated': {
        const known = authProxyOf(rows, organizationId);
        return known && put(rows, organizationId, { ...known, settings: event.data.settings, updatedAt: at });
      }
      case 'AuthProxyDisabled':
        rows.run('DELETE FROM auth_proxies WHERE config_id = ?', event.data.configId);
        return rows.run('DELETE FROM auth_proxy_origins WHERE config_id = ?', event.data.configId);
    }
  }),
};

function put(rows: Rows, organizationId: string, proxy: AuthProxy): void {
  const { configId } = proxy;
  rows.run('INSERT OR REPLACE INTO auth_proxies VALUES (?, ?, ?)', configId, organizationId, JSON.stringify(proxy));
  rows.run('DELETE FROM auth_proxy_origins WHERE config_id = ?', configId);
  for (const origin of new Set(proxy.settings.allowedOrigins)) {
    rows.run('INSERT INTO auth_proxy_origins VALUES (?, ?)', origin, configId);
  }
}

/** The enabled auth proxy of an organization. */
export function authProxyOf(rows: Rows, organizationId: string): AuthProxy | undefined {
  const row = rows.get('SELECT doc FROM auth_proxies WHERE organization_id = ?', organizationId);
  return row && (JSON.parse(String(row['doc'])) as AuthProxy);
}

/** The organization of a configuration; undefined if the configuration does not exist. */
export function organizationOfConfig(rows: Rows, configId: string): string | undefined {
  const row = rows.get('SELECT organization_id FROM auth_proxies WHERE config_id = ?', configId);
  return row && String(row['organization_id']);
}

/** Whether any configuration allows the origin. */
export function isOriginAllowedAnywhere(rows: Rows, origin: string): boolean {
  return Boolean(rows.get("SELECT 1 AS found FROM auth_proxy_origins WHERE origin IN (?, '*') LIMIT 1", origin));
}

class AuthProxyConfigShape {
  @Uuid({ about: 'The id that clients of the proxy send as X-Auth-Proxy-Config-Id.' })
  configId!: string;

  @Uuid()
  organizationId!: string;

  @Uuid({ about: 'The user that the proxy signs as.' })
  userId!: string;

  @Uuid({ about: 'The policy that controls what this user may do.' })
  policyId!: string;

  @Text({ about: 'Compressed P-256 key with which the proxy signs, hex.' })
  publicKey!: string;

  @TextList()
  allowedOrigins!: readonly string[];

  @TextList()
  allowedAuthMethods!: readonly string[];

  @Text({ optional: true })
  sendFromEmailAddress?: string;

  @Text({ optional: true })
  replyToEmailAddress?: string;

  @Text({ optional: true })
  sendFromEmailSenderName?: string;

  @Text({ optional: true })
  emailAuthTemplateId?: string;

  @Text({ optional: true })
  otpTemplateId?: string;

  @Described({ type: 'object' }, { optional: true })
  emailCustomizationParams?: object;

  @Described({ type: 'object' }, { optional: true })
  smsCustomizationParams?: object;

  @Described({ type: 'object' }, { optional: true })
  walletKitSettings?: object;

  @Text({ optional: true, about: 'Seconds, decimal.' })
  otpExpirationSeconds?: string;

  @Text({ optional: true, about: 'Seconds, decimal.' })
  verificationTokenExpirationSeconds?: string;

  @Text({ optional: true, about: 'Seconds, decimal.' })
  sessionExpirationSeconds?: string;

  @Flag({ optional: true })
  otpAlphanumeric?: boolean;

  @Text({ optional: true, about: 'Characters, decimal.' })
  otpLength?: string;

  @Flag({ optional: true })
  verificationTokenRequiredForGetAccountPii?: boolean;

  @TextList({ optional: true })
  socialLinkingClientIds?: readonly string[];

  @Flag({ optional: true })
  captchaEnabled?: boolean;

  @Nested(() => TimestampShape)
  createdAt!: TimestampShape;

  @Nested(() => TimestampShape)
  updatedAt!: TimestampShape;
}

class GetAuthProxyConfigResponse {
  @Nested(() => AuthProxyConfigShape)
  config!: AuthProxyConfigShape;
}

export const getAuthProxyConfig = defineQuery({
  path: 'get_auth_proxy_config',
  summary: 'The configuration of the auth proxy.',
  request: OrganizationRequest,
  response: GetAuthProxyConfigResponse,
  answer({ organizationId }, { rows }) {
    const proxy = authProxyOf(rows, organizationId);
    if (!proxy) throw noAuthProxy('NOT_FOUND', organizationId);
    const { settings, createdAt, updatedAt, vaultId: _vaultId, ...facts } = proxy;
    const dates = { createdAt: timestamp(createdAt), updatedAt: timestamp(updatedAt) };
    return { config: { ...facts, organizationId, ...settings, ...dates } };
  },
});
