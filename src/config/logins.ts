import { isPasskeyOrigin } from '../domain/passkey-origins.js';
import { BadSetting } from './bad-setting.js';
import type { SettingValues } from './setting-values.js';
import { oauth2ProvidersOf, type Oauth2ProviderSettings } from './oauth2-providers.js';
import { isIssuer, shownAddress } from './urls.js';

/** Who is trusted about people: passkeys, OIDC issuers, OAuth 2.0 providers, and the sandbox. */
export interface LoginSettings {
  /** Outbound requests to OIDC issuers and webhooks may use http and reach loopback and private addresses. */
  readonly allowPrivateNetwork: boolean;
  /**
   * Origins where passkeys may be used, unless an organization or its parent names some; if empty, the default rule
   * applies.
   */
  readonly passkeyOrigins: readonly string[];
  /** What happens to a passkey stamp whose signature counter has not grown: a log line, or also a refusal. */
  readonly passkeyCounters: 'report' | 'strict';
  /**
   * The only OIDC issuers whose tokens are accepted, compared character by character; if empty, any public https
   * issuer.
   */
  readonly oidcIssuers: readonly string[];
  /** OIDC issuers that are trusted on verified e-mail addresses, for linking identities. */
  readonly socialLinkingIssuers: readonly string[];
  /** Milliseconds since the epoch: until then, contacts of the sandbox have a publicly known code. */
  readonly sandboxUntil: number | undefined;
  /** OAuth 2.0 providers in addition to, or instead of, the built-in ones. */
  readonly oauth2Providers: Readonly<Record<string, Oauth2ProviderSettings>>;
}

/** @throws {BadSetting} */
export function readLogins(input: SettingValues): LoginSettings {
  const allowPrivateNetwork = input.flag('ALLOW_PRIVATE_NETWORK');
  return {
    allowPrivateNetwork,
    passkeyOrigins: passkeyOriginsOf(input.list('WEBAUTHN_ORIGINS')),
    passkeyCounters: input.oneOf('PASSKEY_COUNTERS', ['report', 'strict']),
    oidcIssuers: issuersOf('OIDC_ISSUERS', input.list('OIDC_ISSUERS'), allowPrivateNetwork),
    socialLinkingIssuers: issuersOf(
      'SOCIAL_LINKING_ISSUERS',
      input.list('SOCIAL_LINKING_ISSUERS'),
      allowPrivateNetwork,
    ),
    sandboxUntil: sandboxEnd(input.optional('SANDBOX')),
    oauth2Providers:
      input.read('OAUTH2_PROVIDERS', (value) => oauth2ProvidersOf(value, allowPrivateNetwork)) ?? Object.freeze({}),
  };
}

function passkeyOriginsOf(origins: readonly string[]): readonly string[] {
  const bad = origins.find((origin) => !isPasskeyOrigin(origin));
  if (bad === undefined) return Object.freeze(origins);
  const rule = 'must be origins such as https://app.example.com, each exactly as a browser writes it';
  throw new BadSetting('WEBAUTHN_ORIGINS', shownAddress(bad), rule);
}

function issuersOf(
  name: 'OIDC_ISSUERS' | 'SOCIAL_LINKING_ISSUERS',
  issuers: readonly string[],
  allowPlain: boolean,
): readonly string[] {
  const bad = issuers.find((issuer) => !isIssuer(issuer));
  if (bad !== undefined) {
    const rule = 'must be issuers such as https://accounts.example.com, without user, query or fragment';
    throw new BadSetting(name, shownAddress(bad), rule);
  }
  const plain = allowPlain ? undefined : issuers.find((issuer) => issuer.startsWith('http:'));
  if (plain !== undefined)
    throw new BadSetting(name, shownAddress(plain), 'must be https unless ALLOW_PRIVATE_NETWORK is true');
  return Object.freeze(issuers);
}

/** The end of a day (RFC 3339 full-date, UTC), in milliseconds since the epoch. */
function sandboxEnd(value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  const day = /^\d{4}-\d{2}-\d{2}$/.test(value) ? new Date(`${value}T00:00:00Z`) : new Date(Number.NaN);
  // Some parsers accept the 30th of February as a day in March.
  if (Number.isNaN(day.getTime()) || day.toISOString().slice(0, 10) !== value) {
    throw new BadSetting('SANDBOX', value, 'must be the last day of the sandbox, such as 2026-12-31');
  }
  return day.getTime() + 24 * 60 * 60 * 1000;
}
