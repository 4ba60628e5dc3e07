import { canonicalJson } from '../domain/canonical-json.js';
import type { Config } from './config.js';

/** Never part of a measurement: the hash of something guessable reveals it. */
const secret = Symbol('secret');
/** Where a process runs and keeps its files says nothing about what it does. */
const place = Symbol('place');

type Measure = { readonly [Name in keyof Config]: typeof secret | typeof place | ((value: Config[Name]) => unknown) };

const itself = (value: unknown): unknown => value ?? null;

/** The part of each setting that is measured. Every new setting has to be decided on here. */
const measures: Measure = {
  host: place,
  port: place,
  dataDir: place,
  minFreeDisk: place,
  shutdownDelayMs: place,
  // What was measured is the program itself.
  buildCommit: place,
  kek: secret,
  kekFile: place,
  proxySecret: secret,
  proxySecretFile: place,
  // A connection string may contain a password.
  eventStore: (value) => value.replace(/:.*/s, ''),
  app: itself,
  apiUrl: itself,
  authProxyUrl: itself,
  proxyLimits: itself,
  proxyCaptcha: (value) => value && { host: new URL(value.verifyUrl).host },
  publicUrl: itself,
  rootApiPublicKey: itself,
  activityTimestamps: itself,
  logLevel: itself,
  limits: itself,
  rateLimits: itself,
  rateLimitKeys: itself,
  headersTimeoutMs: itself,
  requestTimeoutMs: itself,
  trustProxy: itself,
  allowPrivateNetwork: itself,
  oidcIssuers: itself,
  sandboxUntil: itself,
  oauth2Providers: itself,
  smtp: (value) => value && { host: value.host, port: value.port, secure: value.secure, starttls: value.starttls },
  mailFrom: itself,
  voteNotices: itself,
  passkeyOrigins: itself,
  passkeyCounters: itself,
  restored: itself,
  socialLinkingIssuers: itself,
  invitationUrl: itself,
  sms: (value) => value && { kind: value.kind, host: value.kind === 'twilio' ? value.host : new URL(value.url).host },
};

/** The settings as they are measured: canonical JSON (RFC 8785), without secrets. */
export function measuredSettings(config: Config): { readonly names: readonly string[]; readonly text: string } {
  const entries = Object.keys(measures)
    .sort()
    .flatMap((name) => {
      const measure = measures[name as keyof Config];
      if (typeof measure === 'symbol') return [];
      // The table pairs each name with its type; the compiler cannot follow an index by a runtime string.
      return [[name, (measure as (value: unknown) => unknown)(config[name as keyof Config]) ?? null] as const];
    });
  return { names: entries.map(([name]) => name), text: canonicalJson(Object.fromEntries(entries)) };
}
