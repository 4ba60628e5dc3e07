import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { BadLimits, readLimits, type LimitsOfOperator, type LimitsSet } from '../domain/organization/limits.js';
import { isPasskeyOrigin } from '../domain/passkey-origins.js';
import { normalizePublicKey } from '../stamps/keys.js';

/** Where e-mail goes (SMTP_URL). */
export interface SmtpServer {
  readonly host: string;
  readonly port: number;
  /** TLS from the first byte (smtps). */
  readonly secure: boolean;
  /** Without `secure`: whether the connection must become encrypted (RFC 3207) before anything is said. */
  readonly starttls: 'required' | 'optional';
  readonly user: string | undefined;
  readonly password: string | undefined;
}

/** Who e-mail comes from (MAIL_FROM). */
export interface MailFrom {
  readonly name: string | undefined;
  readonly address: string;
  /** Further domains that callers may name senders of; that of `address` always is one. */
  readonly domains: readonly string[];
}

/** Where text messages go (SMS_WEBHOOK_URL). `host` may have a port; `sender` is a number, a name or a service. */
export type SmsGateway =
  | { readonly kind: 'webhook'; readonly url: string }
  | {
      readonly kind: 'twilio';
      readonly host: string;
      readonly accountSid: string;
      readonly authToken: string;
      readonly sender: string;
    };

/** Every setting of the process, checked once. Frozen. */
export interface Config {
  /** Address to listen on. */
  readonly host: string;
  /** Port to listen on; 0 lets the system choose. */
  readonly port: number;
  /** Folder of everything that is kept on disk. */
  readonly dataDir: string;
  /** Where events live: `sqlite:`, `memory:`, or the connection string of an EventStoreDB (may hold a password). */
  readonly eventStore: string;
  /** Key-encryption keys as given: 64 hex characters each, separated by commas; undefined to use `kekFile`. */
  readonly kek: string | undefined;
  /** File of the key-encryption keys, one a line. */
  readonly kekFile: string;
  /** What this process serves: the Activity API, the auth proxy, or both on one port. */
  readonly app: 'all' | 'api' | 'proxy';
  /** Where an auth proxy by itself finds the Activity API; undefined means this same process. */
  readonly apiUrl: string | undefined;
  /** What an auth proxy shows to the API for stamps; undefined for a secret file, or one of this process only. */
  readonly proxySecret: string | undefined;
  /** File of that secret; the API makes it when it is not there. */
  readonly proxySecretFile: string | undefined;
  /** Where the auth proxy is reached from outside, if it is a server of its own. */
  readonly authProxyUrl: string | undefined;
  /** Limits of the auth proxy: requests a minute, and codes of one address to one contact in ten minutes; undefined is no limit. */
  readonly proxyLimits: {
    readonly perAddress: number | undefined;
    readonly perConfiguration: number | undefined;
    readonly perContact: number | undefined;
  };
  /** Keys that each limit remembers at a time. */
  readonly rateLimitKeys: number;
  /** Where this server is reached from outside; undefined means the address that it listens on. */
  readonly publicUrl: string | undefined;
  /** The page that invitations lead to; undefined means the one of this server. */
  readonly invitationUrl: string | undefined;
  /** Hex of the compressed P-256 key of the root user; with it no private key is made or written. */
  readonly rootApiPublicKey: string | undefined;
  readonly logLevel: 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'silent';
  /** Limits of what is stored that are set to other values than usual. */
  readonly limits: LimitsOfOperator;
  /** Requests per second; undefined is no limit. */
  readonly rateLimits: {
    readonly perAddress: number | undefined;
    readonly perOrganization: number | undefined;
    readonly perCredential: number | undefined;
  };
  /** Longest times that a client may take to send a request, and of that its headers, in milliseconds. */
  readonly requestTimeoutMs: number;
  readonly headersTimeoutMs: number;
  /** Take the caller's address from X-Forwarded-For, as set by a proxy in front. */
  readonly trustProxy: boolean;
  /** Outbound requests to OIDC issuers and webhooks may use http and reach loopback and private addresses. */
  readonly allowPrivateNetwork: boolean;
  /** Whoever may approve an activity is told by mail that it waits for votes. */
  readonly voteNotices: boolean;
  /** Where passkeys may be used unless an organization or its parent says so; empty is the usual rule. */
  readonly passkeyOrigins: readonly string[];
  /** It is a copy to look at, which sends nothing. */
  readonly restored: boolean;
  /** A start that finds no installation is refused. */
  readonly requireData: boolean;
  /** The only OIDC issuers that tokens are taken from, compared character by character; empty is any public https issuer. */
  readonly oidcIssuers: readonly string[];
  /** OIDC issuers whose word on verified e-mail addresses is taken to link identities. */
  readonly socialLinkingIssuers: readonly string[];
  /** Milliseconds since the epoch: until then contacts of the sandbox have a code that everybody knows. */
  readonly sandboxUntil: number | undefined;
  /** OAuth 2.0 providers beside, or in place of, those that are known. */
  readonly oauth2Providers: Readonly<Record<string, Oauth2ProviderSettings>>;
  /** Undefined: e-mail goes to the outbox. Holds a password. */
  readonly smtp: SmtpServer | undefined;
  /** Undefined: a sender at the SMTP server, and callers may name any other. */
  readonly mailFrom: MailFrom | undefined;
  /** Undefined: text messages are written to the outbox. Holds a token. */
  readonly sms: SmsGateway | undefined;
}

/** An OAuth 2.0 provider (OAUTH2_PROVIDERS; see `oidc/oauth2-providers.ts`). */
interface Oauth2ProviderSettings {
  readonly tokenUrl: string;
  readonly userUrl: string;
  readonly userId: string;
  readonly scopes: readonly string[];
  readonly clientAuthentication: 'basic' | 'post';
}

/** A setting that cannot be used; the message is the one line that the operator sees. */
export class BadSetting extends Error {
  constructor(name: string, value: string, rule: string) {
    super(`${name}=${value}: ${rule}`);
    this.name = 'BadSetting';
  }
}

/** Every setting: name, default as shown in the reference, and what it does. */
export const settings = [
  ['HOST', '127.0.0.1', 'Address to listen on; `0.0.0.0` or `::` for all.'],
  ['PORT', '8080', 'Port to listen on; `0` lets the system choose a free one.'],
  ['DATA_DIR', './data', 'Folder for everything that the coordinator stores on disk.'],
  [
    'EVENT_STORE',
    'sqlite:',
    'Event store: `sqlite:` (a file in DATA_DIR), `memory:` (lost on exit), or `esdb://…` (an EventStoreDB).',
  ],
  [
    'KEK',
    '',
    'Key-encryption key that seals all secrets, 64 hex characters, followed by older keys, separated by commas. Replaces KEK_FILE.',
  ],
  ['KEK_FILE', '', 'File with the key-encryption key; if unset, `kek` in DATA_DIR, created on the first start.'],
  ['PUBLIC_URL', '', 'Public URL of this server; if unset, the listening address.'],
  ['INVITATION_URL', '', 'Page where people accept invitations; if unset, `/invitations/accept` of this server.'],
  ['APP', 'all', 'What this process serves: `api`, `proxy` (the auth proxy), or `all` (both on one port).'],
  [
    'API_URL',
    '',
    'URL at which the auth proxy reaches the API, such as `http://coordinator:8080`; if unset, this server.',
  ],
  [
    'PROXY_SECRET',
    '',
    'Secret that the auth proxy and the API share, at least 32 characters. Generated at each start if unset.',
  ],
  [
    'PROXY_SECRET_FILE',
    '',
    'File with that secret, used if PROXY_SECRET is unset; the API creates it if it does not exist.',
  ],
  ['AUTH_PROXY_URL', '', 'Public URL of the auth proxy, if it runs separately; written to `root.json`.'],
  ['PROXY_RATE_LIMIT_PER_ADDRESS', '600', 'Requests a minute from one address to the auth proxy; `0` for no limit.'],
  [
    'PROXY_RATE_LIMIT_PER_CONFIGURATION',
    '6000',
    'Requests a minute for one configuration of the auth proxy; `0` for no limit.',
  ],
  [
    'PROXY_RATE_LIMIT_PER_CONTACT',
    '10',
    'Codes in ten minutes from one address to one contact, through the auth proxy; `0` for no limit.',
  ],
  [
    'ROOT_API_PUBLIC_KEY',
    '',
    'First start only: compressed P-256 public key of the root user, in hex. If set, no private key is created or written.',
  ],
  ['LOG_LEVEL', 'info', '`fatal`, `error`, `warn`, `info`, `debug` or `silent`.'],
  ['RATE_LIMIT_PER_ADDRESS', '', 'Requests a second from one address; no limit if unset.'],
  ['RATE_LIMIT_PER_ORGANIZATION', '', 'Requests a second for one organization; no limit if unset.'],
  ['RATE_LIMIT_PER_CREDENTIAL', '', 'Requests a second with one credential; no limit if unset.'],
  [
    'RATE_LIMIT_REMEMBERED_KEYS',
    '65536',
    'Number of callers and contacts that each limit remembers, at about 100 bytes each. Active ones are never forgotten: when the number is reached, new ones are refused.',
  ],
  [
    'ORGANIZATION_LIMITS',
    '',
    'Changes storage limits of organizations without a parent: `users=500, wallets=50` (docs/reference/limits.md).',
  ],
  [
    'SUB_ORGANIZATION_LIMITS',
    '',
    'Changes storage limits of sub-organizations; a parent can set lower ones (FEATURE_NAME_SUB_ORGANIZATION_LIMITS).',
  ],
  [
    'HEADERS_TIMEOUT',
    '15',
    'Seconds in which a client must send the headers of a request; after that, the connection is closed with 408.',
  ],
  ['REQUEST_TIMEOUT', '30', 'Seconds in which a client must send the whole request.'],
  ['TRUST_PROXY', 'false', "`true` takes the caller's address from X-Forwarded-For."],
  [
    'ALLOW_PRIVATE_NETWORK',
    'false',
    '`true` allows http, loopback and private addresses for OIDC issuers and webhooks; for development only.',
  ],
  [
    'OIDC_ISSUERS',
    '',
    'OIDC issuers whose tokens are accepted, separated by commas or spaces; any public https issuer if unset.',
  ],
  [
    'SOCIAL_LINKING_ISSUERS',
    'https://accounts.google.com',
    'OIDC issuers trusted to verify e-mail addresses when identities are linked (`socialLinkingClientIds`).',
  ],
  [
    'OAUTH2_PROVIDERS',
    '',
    'Further OAuth 2.0 providers as JSON: `{"OAUTH2_PROVIDER_…": {"tokenUrl", "userUrl", "userId", "scopes"}}`.',
  ],
  [
    'SMTP_URL',
    '',
    'Mail server: `smtp://user:password@host:587` or `smtps://…:465`. If unset, e-mail is written to `outbox.jsonl` in DATA_DIR.',
  ],
  [
    'MAIL_FROM',
    '',
    'Sender of e-mail, followed by further allowed sender domains: `Example <no-reply@example.com>, @example.org`.',
  ],
  [
    'SMS_WEBHOOK_URL',
    '',
    'SMS gateway: `https://…` (JSON) or `twilio://SID:TOKEN@api.twilio.com?from=+13214567890`. If unset, text messages are written to the outbox.',
  ],
  ['VOTE_NOTICES', 'false', '`true` notifies possible approvers by e-mail when an activity is waiting for votes.'],
  [
    'WEBAUTHN_ORIGINS',
    '',
    'Allowed passkey origins, separated by commas, for organizations that do not set FEATURE_NAME_WEBAUTHN_ORIGINS.',
  ],
  [
    'REQUIRE_DATA',
    'false',
    '`true` refuses to create a new installation if none is found, for example because DATA_DIR is wrong.',
  ],
  [
    'RESTORED',
    'false',
    '`true` for a restored copy that is started only for inspection: it sends no e-mail, text message, webhook or notice.',
  ],
  [
    'SANDBOX',
    '',
    'For development only: until the end of this day (UTC, `2026-12-31`), `user@example.com` and `+19999999999` accept the code 000000.',
  ],
] as const satisfies readonly (readonly [string, string, string])[];

type SettingName = (typeof settings)[number][0];

/**
 * The environment, with `.env` of the working folder under it.
 * @throws {BadSetting} for a name that looks like one of ours and is none
 */
export function environment(
  given: Readonly<Record<string, string | undefined>> = process.env,
): Readonly<Record<string, string | undefined>> {
  const all = existsSync('.env') ? { ...parseEnv(readFileSync('.env', 'utf8')), ...given } : given;
  refuseMisspelled(all);
  return all;
}

/** What the command line reads beside the settings. */
const ofCommandLine = ['COUNTERSIGN_PROFILE'];

/** What only settings of ours begin with. */
const ownPrefixes =
  /^(?:COUNTERSIGN_|RATE_LIMIT_|PROXY_RATE_LIMIT_|PROXY_SECRET_|AUTH_PROXY_|SMTP_|SMS_WEBHOOK_|MAIL_FROM_|OIDC_|OAUTH2_|SOCIAL_LINKING_|WEBAUTHN_|VOTE_NOTICES?_|KEK_|ROOT_API_|EVENT_STORE_|INVITATION_)/;
/** What container engines and Kubernetes put in for a service, whatever its name. */
const ofServices = /_(?:SERVICE_(?:HOST|PORT(?:_\w+)?)|PORT_\d+_(?:TCP|UDP)(?:_\w+)?)$/;

/**
 * Refuses a name that is none of ours and was surely meant to be: with a prefix of ours, or a slip of the pen away from a
 * setting. Others are nobody's business here; short names are, since a slip in one makes another word.
 * @param only every name must be a setting, as in a test that has no other use for one
 * @throws {BadSetting} with the setting that comes nearest
 */
export function refuseMisspelled(
  from: Readonly<Record<string, string | undefined>>,
  { only = false }: { readonly only?: boolean } = {},
): void {
  const known = settings.map(([name]): string => name);
  for (const [name, value] of Object.entries(from)) {
    if (known.includes(name) || ofCommandLine.includes(name) || value === undefined) continue;
    const isOfService = ofServices.test(name) || (name.endsWith('_PORT') && /^(?:tcp|udp):\/\//.test(value));
    if (!only && isOfService) continue;
    const ranked = known
      .map((setting) => ({ setting, slips: slipsBetween(name, setting) }))
      .toSorted((one, other) => one.slips - other.slips);
    const { setting, slips } = ranked[0]!;
    const isSlip = name.length >= 8 && slips <= (name.length >= 12 ? 2 : 1) && /^[A-Z][A-Z0-9_]*$/.test(name);
    if (!only && !isSlip && !ownPrefixes.test(name)) continue;
    // The value may be a password.
    throw new BadSetting(name, '…', `is not a setting; did you mean ${setting}? See docs/reference/settings.md`);
  }
}

/** Letters put in, left out, changed or swapped with the next between two texts (optimal string alignment). */
export function slipsBetween(one: string, other: string): number {
  let [before, last] = [[] as number[], Array.from({ length: other.length + 1 }, (_, at) => at)];
  for (let row = 1; row <= one.length; row++) {
    const next = [row];
    for (let at = 1; at <= other.length; at++) {
      const isSame = one[row - 1] === other[at - 1];
      let slips = Math.min(last[at]! + 1, next[at - 1]! + 1, last[at - 1]! + (isSame ? 0 : 1));
      const isSwapped = one[row - 1] === other[at - 2] && one[row - 2] === other[at - 1];
      if (row > 1 && at > 1 && isSwapped) slips = Math.min(slips, before[at - 2]! + 1);
      next.push(slips);
    }
    [before, last] = [last, next];
  }
  return last.at(-1)!;
}

/**
 * Reads the settings.
 * @throws {BadSetting} that names the setting, its value and the rule
 */
export function readConfig(from: Readonly<Record<string, string | undefined>>): Config {
  const defaults = Object.fromEntries(settings.map(([name, value]) => [name, value])) as Record<SettingName, string>;
  const text = (name: SettingName): string => from[name]?.trim() || defaults[name];
  const optional = (name: SettingName): string | undefined => text(name) || undefined;
  const oneOf = <Value extends string>(name: SettingName, values: readonly Value[]): Value => {
    const value = values.find((one) => one === text(name));
    if (value === undefined) throw new BadSetting(name, text(name), `must be one of ${values.join(', ')}`);
    return value;
  };
  const rate = (name: SettingName): number | undefined => {
    const value = optional(name);
    if (value === undefined) return undefined;
    if (!/^[1-9]\d{0,6}$/.test(value)) throw new BadSetting(name, value, 'must be a whole number of requests a second');
    return Number(value);
  };

  const limits = (name: SettingName): LimitsSet => {
    const value = optional(name);
    try {
      return Object.freeze(value === undefined ? {} : readLimits(value));
    } catch (error) {
      throw error instanceof BadLimits ? new BadSetting(name, value ?? '', error.message) : error;
    }
  };

  const given = <Value>(name: SettingName, read: (value: string) => Value): Readonly<Value> | undefined => {
    const value = optional(name);
    return value === undefined ? undefined : Object.freeze(read(value));
  };

  const port = text('PORT');
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) throw new BadSetting('PORT', port, 'must be from 0 to 65535');
  const publicUrl = optional('PUBLIC_URL');
  if (publicUrl !== undefined && !isWebOrigin(publicUrl)) {
    throw new BadSetting('PUBLIC_URL', publicUrl, 'must be an origin such as https://api.example.com, without a path');
  }
  const invitationUrl = optional('INVITATION_URL');
  // A URL without query and fragment, as the fragment is where each link puts its own.
  if (invitationUrl !== undefined && !isIssuer(invitationUrl)) {
    const rule = 'must be a page such as https://app.example.com/invitation, without query and fragment';
    throw new BadSetting('INVITATION_URL', invitationUrl, rule);
  }
  const app = oneOf('APP', ['all', 'api', 'proxy']);
  const [apiUrl, authProxyUrl] = (['API_URL', 'AUTH_PROXY_URL'] as const).map((name) => {
    const value = optional(name);
    if (value === undefined || isWebOrigin(value)) return value;
    throw new BadSetting(name, value, 'must be an origin such as http://coordinator:8080, without a path');
  });
  const proxySecret = optional('PROXY_SECRET');
  const proxySecretFile = optional('PROXY_SECRET_FILE');
  if (proxySecret !== undefined && !/^[\x21-\x7e]{32,512}$/.test(proxySecret)) {
    const rule = `must be 32 to 512 printable characters without spaces; it has ${proxySecret.length}`;
    throw new BadSetting('PROXY_SECRET', '…', rule);
  }
  if (app === 'proxy' && apiUrl === undefined) {
    throw new BadSetting('API_URL', '', 'is required when APP is proxy: set it to the URL of the Activity API');
  }
  if (app === 'proxy' && proxySecret === undefined && proxySecretFile === undefined) {
    throw new BadSetting('PROXY_SECRET', '', 'is required when APP is proxy, unless PROXY_SECRET_FILE is set');
  }
  const limit = (name: SettingName): number | undefined => {
    const value = text(name);
    if (!/^(?:0|[1-9]\d{0,6})$/.test(value)) throw new BadSetting(name, value, 'must be a whole number; 0 is no limit');
    return Number(value) || undefined;
  };
  const seconds = (name: SettingName): number => {
    const value = text(name);
    if (/^[1-9]\d{0,3}$/.test(value)) return Number(value);
    throw new BadSetting(name, value, 'must be a whole number of seconds, from 1 to 9999');
  };
  const rateLimitKeys = text('RATE_LIMIT_REMEMBERED_KEYS');
  if (!/^[1-9]\d{1,6}$/.test(rateLimitKeys) || Number(rateLimitKeys) < 16) {
    throw new BadSetting('RATE_LIMIT_REMEMBERED_KEYS', rateLimitKeys, 'must be a whole number from 16 to 9999999');
  }
  const [headersTimeout, requestTimeout] = [seconds('HEADERS_TIMEOUT'), seconds('REQUEST_TIMEOUT')];
  if (headersTimeout > requestTimeout) {
    const rule = `must be at most REQUEST_TIMEOUT (${requestTimeout}), which covers the whole request`;
    throw new BadSetting('HEADERS_TIMEOUT', String(headersTimeout), rule);
  }
  const rootApiPublicKey = optional('ROOT_API_PUBLIC_KEY')?.toLowerCase();
  if (rootApiPublicKey !== undefined && !isCompressedKey(rootApiPublicKey)) {
    // It may be the private key that was put here, so it is not shown.
    const rule = `must be a compressed P-256 key, 66 hex characters; it has ${rootApiPublicKey.length}`;
    throw new BadSetting('ROOT_API_PUBLIC_KEY', '…', rule);
  }

  const allowPrivateNetwork = oneOf('ALLOW_PRIVATE_NETWORK', ['true', 'false']) === 'true';
  const issuersOf = (name: 'OIDC_ISSUERS' | 'SOCIAL_LINKING_ISSUERS'): readonly string[] => {
    const issuers = text(name)
      .split(/[\s,]+/)
      .filter(Boolean);
    const bad = issuers.find((issuer) => !isIssuer(issuer));
    if (bad !== undefined) {
      const rule = 'must be issuers such as https://accounts.example.com, without user, query or fragment';
      // What stands before an @ may be a password.
      throw new BadSetting(name, bad.replace(/[^/]*@/, '…@'), rule);
    }
    const plain = allowPrivateNetwork ? undefined : issuers.find((issuer) => issuer.startsWith('http:'));
    if (plain !== undefined) throw new BadSetting(name, plain, 'must be https unless ALLOW_PRIVATE_NETWORK is true');
    return Object.freeze(issuers);
  };

  return Object.freeze({
    host: text('HOST'),
    port: Number(port),
    dataDir: text('DATA_DIR'),
    eventStore: eventStoreOf(text('EVENT_STORE')),
    kek: keksOf(optional('KEK')),
    kekFile: optional('KEK_FILE') ?? join(text('DATA_DIR'), 'kek'),
    app,
    apiUrl,
    proxySecret,
    proxySecretFile,
    authProxyUrl,
    proxyLimits: Object.freeze({
      perAddress: limit('PROXY_RATE_LIMIT_PER_ADDRESS'),
      perConfiguration: limit('PROXY_RATE_LIMIT_PER_CONFIGURATION'),
      perContact: limit('PROXY_RATE_LIMIT_PER_CONTACT'),
    }),
    publicUrl,
    invitationUrl,
    rootApiPublicKey,
    logLevel: oneOf('LOG_LEVEL', ['fatal', 'error', 'warn', 'info', 'debug', 'silent']),
    limits: Object.freeze({
      organizations: limits('ORGANIZATION_LIMITS'),
      subOrganizations: limits('SUB_ORGANIZATION_LIMITS'),
    }),
    rateLimits: Object.freeze({
      perAddress: rate('RATE_LIMIT_PER_ADDRESS'),
      perOrganization: rate('RATE_LIMIT_PER_ORGANIZATION'),
      perCredential: rate('RATE_LIMIT_PER_CREDENTIAL'),
    }),
    rateLimitKeys: Number(rateLimitKeys),
    requestTimeoutMs: requestTimeout * 1_000,
    headersTimeoutMs: headersTimeout * 1_000,
    trustProxy: oneOf('TRUST_PROXY', ['true', 'false']) === 'true',
    allowPrivateNetwork,
    voteNotices: oneOf('VOTE_NOTICES', ['true', 'false']) === 'true',
    passkeyOrigins: passkeyOriginsOf(optional('WEBAUTHN_ORIGINS')),
    restored: oneOf('RESTORED', ['true', 'false']) === 'true',
    requireData: oneOf('REQUIRE_DATA', ['true', 'false']) === 'true',
    oidcIssuers: issuersOf('OIDC_ISSUERS'),
    socialLinkingIssuers: issuersOf('SOCIAL_LINKING_ISSUERS'),
    sandboxUntil: sandboxEnd(optional('SANDBOX')),
    oauth2Providers:
      given('OAUTH2_PROVIDERS', (value) => oauth2ProvidersOf(value, allowPrivateNetwork)) ?? Object.freeze({}),
    smtp: given('SMTP_URL', smtpServerOf),
    mailFrom: given('MAIL_FROM', mailFromOf),
    sms: given('SMS_WEBHOOK_URL', smsGatewayOf),
  });
}

/** An http or https origin, exactly as a browser writes it. */
function isWebOrigin(text: string): boolean {
  return /^https?:/.test(text) && URL.canParse(text) && new URL(text).origin === text;
}

function passkeyOriginsOf(value = ''): readonly string[] {
  const origins = value.split(/[\s,]+/).filter(Boolean);
  const bad = origins.find((origin) => !isPasskeyOrigin(origin));
  if (bad === undefined) return Object.freeze(origins);
  const rule = 'must be origins such as https://app.example.com, each exactly as a browser writes it';
  throw new BadSetting('WEBAUTHN_ORIGINS', bad, rule);
}

/** What an issuer may call itself (OpenID Connect Discovery 1.0, section 3): a URL without query and fragment. */
function isIssuer(text: string): boolean {
  return /^https?:\/\/[^?#@]+$/.test(text) && URL.canParse(text);
}

/** What may be said of an OAuth 2.0 provider; `userId` is a path of member names in the answer of `userUrl`. */
function oauth2ProvidersOf(value: string, allowPlain: boolean): Record<string, Oauth2ProviderSettings> {
  const rule = (text: string): BadSetting => new BadSetting('OAUTH2_PROVIDERS', '…', text);
  const read: Record<string, Oauth2ProviderSettings> = {};
  for (const [name, profile] of Object.entries(jsonObject(value) ?? {})) {
    const must = (what: string): BadSetting => rule(`${name} must have ${what}`);
    if (!/^OAUTH2_PROVIDER_[A-Z0-9_]{1,32}$/.test(name))
      throw rule(`\`${name}\` must be a name such as OAUTH2_PROVIDER_GITHUB`);
    const { tokenUrl, userUrl, userId = 'id', scopes = [], clientAuthentication = 'basic', ...others } = profile ?? {};
    for (const url of [tokenUrl, userUrl]) {
      const isTaken = typeof url === 'string' && URL.canParse(url) && (allowPlain ? /^https?:/ : /^https:/).test(url);
      if (!isTaken) throw must('a tokenUrl and a userUrl, both https unless ALLOW_PRIVATE_NETWORK is true');
    }
    if (typeof userId !== 'string' || !/^\w+(?:\.\w+)*$/.test(userId)) throw must('a userId such as id or data.id');
    if (!Array.isArray(scopes) || !scopes.every((scope) => typeof scope === 'string')) throw must('a list of scopes');
    if (clientAuthentication !== 'basic' && clientAuthentication !== 'post') {
      throw must('a clientAuthentication of basic or post');
    }
    if (Object.keys(others).length > 0) throw must(`no member \`${Object.keys(others)[0]}\``);
    read[name] = { tokenUrl: tokenUrl as string, userUrl: userUrl as string, userId, scopes, clientAuthentication };
  }
  if (Object.keys(read).length === 0) throw rule('must be a JSON object of providers');
  return read;
}

function jsonObject(text: string): Readonly<Record<string, Readonly<Record<string, unknown>> | undefined>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
    return value as Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  } catch {
    return undefined;
  }
}

/** A point of P-256 in its compressed form: with anything else as its key the root user could never sign. */
function isCompressedKey(hex: string): boolean {
  try {
    return normalizePublicKey(hex, 'API_KEY_CURVE_P256') === hex;
  } catch {
    return false;
  }
}

/** @throws {BadSetting} that never shows the value: it may be most of a key */
function keksOf(value: string | undefined): string | undefined {
  const wrong = value?.split(',').find((one) => !/^[0-9a-f]{64}$/i.test(one.trim()));
  if (wrong === undefined) return value;
  throw new BadSetting(
    'KEK',
    '…',
    `must be 64 hex characters, or several such keys separated by commas; one has ${wrong.trim().length}`,
  );
}

/** The end of a day (RFC 3339 full-date, UTC), in milliseconds since the epoch. */
function sandboxEnd(value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  const day = /^\d{4}-\d{2}-\d{2}$/.test(value) ? new Date(`${value}T00:00:00Z`) : new Date(Number.NaN);
  // Some parsers go on to March from the 30th of February.
  if (Number.isNaN(day.getTime()) || day.toISOString().slice(0, 10) !== value) {
    throw new BadSetting('SANDBOX', value, 'must be the last day of the sandbox, such as 2026-12-31');
  }
  return day.getTime() + 24 * 60 * 60 * 1000;
}

const eventStorePattern = /^(?:esdb|kurrentdb)(?:\+discover)?:\/\/\S+$/;

function eventStoreOf(value: string): string {
  if (value === 'sqlite:' || value === 'memory:' || eventStorePattern.test(value)) return value;
  // The value may hold a password, so only what stands before it is shown.
  const shown = value.includes('://') ? `${value.slice(0, value.indexOf('://'))}://…` : value;
  throw new BadSetting(
    'EVENT_STORE',
    shown,
    'must be sqlite:, memory: or a connection string such as esdb://host:2113',
  );
}

/** A host name, an IPv4 address, or an IPv6 address in brackets. */
const hostPattern = /^(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])$/i;
const loopbackPattern = /^(?:localhost|127(?:\.\d{1,3}){3}|::1)$/i;

/** What is left to show of a value that holds a password or a token. */
const schemeOf = (value: string): string =>
  value.includes('://') ? `${value.slice(0, value.indexOf('://'))}://…` : '…';

function smtpServerOf(value: string): SmtpServer {
  const rule = (text: string): BadSetting => new BadSetting('SMTP_URL', schemeOf(value), text);
  const example =
    'must be a URL such as smtp://user:password@smtp.example.com:587, with user and password percent-encoded';
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (!url || !/^smtps?:$/.test(url.protocol) || !hostPattern.test(url.hostname)) throw rule(example);
  if (!/^\/?$/.test(url.pathname) || url.hash !== '') throw rule('must not have a path or a fragment');
  const user = decoded(url.username);
  const password = decoded(url.password);
  if (user === undefined || password === undefined) throw rule(example);
  if ((user === '') !== (password === '')) throw rule('must have both a user and a password, or neither');

  const host = url.hostname.replace(/^\[|\]$/g, '');
  const secure = url.protocol === 'smtps:';
  const { starttls, ...others } = Object.fromEntries(url.searchParams);
  if (Object.keys(others).length > 0 || !/^(?:required|optional)?$/.test(starttls ?? '') || (secure && starttls)) {
    throw rule('must have no options but starttls=required or starttls=optional, for smtp only');
  }
  return {
    host,
    port: Number(url.port) || (secure ? 465 : 587),
    secure,
    starttls: starttls === 'optional' || (!starttls && loopbackPattern.test(host)) ? 'optional' : 'required',
    user: user || undefined,
    password: password || undefined,
  };
}

/** Undefined where the percent-encoding is broken. */
function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

const mailFromPattern =
  /^(?:(?:"(?<quoted>[^"<>\p{Cc}]*)"|(?<name>[^"<>,@\p{Cc}]*))\s*<(?<named>[^<>]+)>|(?<bare>[^<>\s,]+))(?<domains>(?:\s*,\s*@[a-z0-9.-]+)*)$/iu;
const mailboxPattern = /^[^\s@\p{Cc}"(),:;<>[\]\\]{1,64}@[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/iu;

function mailFromOf(value: string): MailFrom {
  const { quoted, name, named, bare, domains } = mailFromPattern.exec(value)?.groups ?? {};
  const address = named ?? bare ?? '';
  if (!mailboxPattern.test(address)) {
    const rule =
      'must be a sender such as Example <no-reply@example.com>, optionally followed by domains such as , @example.org';
    throw new BadSetting('MAIL_FROM', value, rule);
  }
  return {
    name: (quoted ?? name)?.trim() || undefined,
    address,
    domains: Object.freeze((domains ?? '').toLowerCase().match(/[^\s,@]+/g) ?? []),
  };
}

function smsGatewayOf(value: string): SmsGateway {
  const rule = (text: string): BadSetting => new BadSetting('SMS_WEBHOOK_URL', schemeOf(value), text);
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url && /^https?:$/.test(url.protocol)) {
    if (decoded(url.username) === undefined || decoded(url.password) === undefined) {
      throw rule('must have its user and password percent-encoded');
    }
    return { kind: 'webhook', url: value };
  }
  const accountSid = decoded(url?.username ?? '');
  const authToken = decoded(url?.password ?? '');
  // A plus in a query stands for a space, but here it begins a phone number.
  const sender = new URLSearchParams(url?.search.replaceAll('+', '%2B')).get('from') ?? '';
  if (
    url?.protocol !== 'twilio:' ||
    !hostPattern.test(url.hostname) ||
    !/^\w{1,64}$/.test(accountSid ?? '') ||
    !authToken ||
    !/^(?:\+[1-9]\d{6,14}|[a-z0-9 ]{1,11}|MG[0-9a-f]{32})$/i.test(sender)
  ) {
    throw rule('must be https://… or twilio://ACCOUNT_SID:AUTH_TOKEN@api.twilio.com?from=+13214567890');
  }
  return { kind: 'twilio', host: url.host, accountSid: accountSid!, authToken, sender };
}
