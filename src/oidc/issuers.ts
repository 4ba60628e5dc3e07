import type { GuardedFetch, GuardedResponse } from '../http-client/guarded-request.js';
import { invalidOidcToken, issuerUnavailable, refusalOf } from './refusals.js';
import { signingKeysOf, type SigningKey } from './signing-keys.js';

/** An issuer whose keys this process has itself, so that no request is needed. */
export interface OwnIssuer {
  readonly issuer: string;
  keys(): readonly SigningKey[];
}

const minute = 60_000;
const hour = 60 * minute;

/** All times in milliseconds. */
const limits = {
  /** Bounds on what Cache-Control may say, and the default if it says nothing. */
  freshFor: { least: minute, most: hour, unsaid: 10 * minute },
  /** How long keys stay in use after they should have been refreshed, while refreshing fails. */
  staleFor: 6 * hour,
  /** Minimum interval between attempts at one issuer: tokens with invented key ids must not become requests. */
  retryAfter: 10_000,
  /** Issuers cached, and requested at the same time: the author of a token chooses its issuer. */
  remembered: 256,
  /** Of those, reserved for the issuers that were known first and are still needed; and how many under one name. */
  tenured: { places: 64, underOneName: 16, neededWithin: 24 * hour },
  atOnce: 32,
  /** Additional slots, for issuers that the operator trusts, and those whose cached keys are about to expire. */
  reserved: 8,
  keys: 64,
};

interface Known {
  keys: readonly SigningKey[] | undefined;
  freshUntil: number;
  staleUntil: number;
  triedAt: number | undefined;
  /** In which order its keys were first read; and when someone last needed them. */
  knownAs: number | undefined;
  neededAt: number;
  failure: unknown;
  reading: Promise<void> | undefined;
}

/** The signature keys of OIDC issuers: discovered, cached, and read again if a token names one that is missing. */
export class IssuerKeys {
  private readonly known = new Map<string, Known>();
  private readingNow = 0;
  private everKnown = 0;

  constructor(
    private readonly ports: {
      readonly clock: { now(): number };
      readonly fetch: GuardedFetch;
      /** The only issuers that are asked; any if empty. */
      readonly issuers: readonly string[];
      readonly own: OwnIssuer | undefined;
      /** Issuers that the operator has named: they are asked though strangers' issuers hold all places. */
      readonly trusted: readonly string[];
    },
  ) {}

  /**
   * The requested keys of an issuer. If there are none, or `isReplaced` (a signature fits none of those known, so the issuer may
   * have replaced a key under its id), its keys are read once more, at most every ten seconds.
   * @throws {CoordinatorError} INVALID_ARGUMENT if the issuer is not allowed or its documents are invalid, UNAVAILABLE
   * if it cannot be reached
   */
  async find(
    issuer: string,
    isWanted: (key: SigningKey) => boolean,
    { isReplaced = false } = {},
  ): Promise<readonly SigningKey[]> {
    const { own, issuers, clock } = this.ports;
    if (issuer === own?.issuer) return own.keys().filter(isWanted);
    if (issuers.length > 0 && !issuers.includes(issuer)) {
      throw invalidOidcToken(`issuer \`${issuer}\` is not one that this server accepts tokens from`);
    }
    const known = this.remember(issuer);
    if (known.keys === undefined || clock.now() >= known.freshUntil) await this.read(issuer, known);
    if (isReplaced || known.keys?.some(isWanted) === false) await this.read(issuer, known);
    if (known.keys === undefined || clock.now() >= known.staleUntil) throw known.failure;
    return known.keys.filter(isWanted);
  }

  private remember(issuer: string): Known {
    const known = this.known.get(issuer) ?? {
      keys: undefined,
      freshUntil: 0,
      staleUntil: 0,
      triedAt: undefined,
      knownAs: undefined,
      neededAt: 0,
      failure: undefined,
      reading: undefined,
    };
    known.neededAt = this.ports.clock.now();
    // A Map keeps insertion order: the first is the least recently needed.
    this.known.delete(issuer);
    this.known.set(issuer, known);
    this.forgetOne(issuer);
    return known;
  }

  /**
   * Strangers can name any number of issuers, so these evict each other: first an issuer that has never returned keys,
   * then the least recently needed of those that share the most common name. Those that were known first stay, however
   * many names strangers have.
   */
  private forgetOne(named: string): void {
    if (this.known.size <= limits.remembered) return;
    const tenured = this.tenured();
    const idle = [...this.known]
      .filter(([issuer, { reading }]) => issuer !== named && !reading && !tenured.has(issuer))
      .map(([issuer]) => issuer);
    const withoutKeys = idle.find((issuer) => this.known.get(issuer)!.keys === undefined);
    this.known.delete(withoutKeys ?? oldestOfTheMostCommon(idle) ?? '');
  }

  /** Of the issuers needed recently, those whose keys were known first. */
  private tenured(): ReadonlySet<string> {
    const { places, underOneName, neededWithin } = limits.tenured;
    const after = this.ports.clock.now() - neededWithin;
    const tenured = new Set<string>();
    const names = new Map<string, number>();
    const needed = [...this.known].filter(([, { knownAs, neededAt }]) => knownAs !== undefined && neededAt >= after);
    for (const [issuer] of needed.toSorted(([, one], [, other]) => one.knownAs! - other.knownAs!)) {
      const name = nameOf(issuer);
      const count = (names.get(name) ?? 0) + 1;
      names.set(name, count);
      if (count <= underOneName) tenured.add(issuer);
      if (tenured.size === places) break;
    }
    return tenured;
  }

  /** Reads the keys unless that is in progress or was just tried. A failure is stored, and thrown only by `find`. */
  private async read(issuer: string, known: Known): Promise<void> {
    if (known.reading) return known.reading;
    const since = known.triedAt === undefined ? Infinity : this.ports.clock.now() - known.triedAt;
    // A clock that was set back must not block everything until it has caught up.
    if (since >= 0 && since < limits.retryAfter) return;
    // Half of the time that stale keys stay in use is over: refreshing goes ahead even if others hold all slots.
    const isUrgent = known.keys !== undefined && this.ports.clock.now() >= known.staleUntil - limits.staleFor / 2;
    const hasReserve = isUrgent || this.ports.trusted.includes(issuer);
    if (this.readingNow >= limits.atOnce + (hasReserve ? limits.reserved : 0)) {
      known.failure = issuerUnavailable(issuer, 'too many issuers are being read');
      return;
    }
    this.readingNow++;
    known.reading = this.attempt(issuer, known).finally(() => {
      this.readingNow--;
      known.reading = undefined;
      known.triedAt = this.ports.clock.now();
    });
    return known.reading;
  }

  private async attempt(issuer: string, known: Known): Promise<void> {
    try {
      const { keys, freshFor } = await this.discover(issuer);
      known.keys = keys;
      known.knownAs ??= this.everKnown++;
      known.freshUntil = this.ports.clock.now() + freshFor;
      known.staleUntil = known.freshUntil + limits.staleFor;
    } catch (error) {
      known.failure = refusalOf(issuer, error);
    }
  }

  /** OpenID Connect Discovery 1.0, sections 3 and 4. */
  private async discover(issuer: string): Promise<{ keys: readonly SigningKey[]; freshFor: number }> {
    const { fetch } = this.ports;
    const configuration = documentOf(
      issuer,
      await fetch(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`, { headers: acceptJson }),
    );
    const bad = (problem: string): Error => invalidOidcToken(`issuer \`${issuer}\` ${problem}`);
    // The document must name the issuer under which it was found, or one issuer could speak for another.
    if (configuration['issuer'] !== issuer) throw bad('has a different issuer name in its configuration');
    const location = configuration['jwks_uri'];
    if (typeof location !== 'string') throw bad('has no `jwks_uri` in its configuration');
    const response = await fetch(location, { headers: acceptJson });
    const { keys } = documentOf(issuer, response);
    if (!Array.isArray(keys)) throw bad('has no list `keys` at its `jwks_uri`');
    if (keys.length > limits.keys) throw bad(`has more than ${limits.keys} keys`);
    return { keys: signingKeysOf(keys), freshFor: freshFor(response) };
  }
}

/** The first of those whose hosts share the most common last two labels: names under one domain are free. */
function oldestOfTheMostCommon(issuers: readonly string[]): string | undefined {
  const groups = new Map<string, string[]>();
  for (const issuer of issuers) {
    const name = nameOf(issuer);
    const group = groups.get(name);
    if (group) group.push(issuer);
    else groups.set(name, [issuer]);
  }
  const [largest] = [...groups.values()].toSorted((one, other) => other.length - one.length);
  return largest?.[0];
}

/** The last two labels of its host. */
function nameOf(issuer: string): string {
  const host = URL.canParse(issuer) ? new URL(issuer).hostname : issuer;
  return host.split('.').slice(-2).join('.');
}

const acceptJson = { accept: 'application/json, application/jwk-set+json' };

function documentOf(issuer: string, { status, headers, body }: GuardedResponse): Readonly<Record<string, unknown>> {
  const bad = (problem: string): Error => invalidOidcToken(`issuer \`${issuer}\` ${problem}`);
  if (status >= 500 || status === 429) throw issuerUnavailable(issuer, `it responds with HTTP status ${status}`);
  if (status !== 200) throw bad(`responds with HTTP status ${status} instead of its configuration and keys`);
  if (!/^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i.test(headers['content-type'] ?? '')) {
    throw bad('responds with something other than JSON');
  }
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch {
    // The parser's message quotes the document, which is not for the sender of the token.
  }
  throw bad('responds with something other than a JSON object');
}

/** How long a response may be cached, in milliseconds (RFC 9111, `max-age`), within our bounds. */
function freshFor({ headers }: GuardedResponse): number {
  const { least, most, unsaid } = limits.freshFor;
  const directives = headers['cache-control'] ?? '';
  if (/\bno-(?:store|cache)\b/i.test(directives)) return least;
  const seconds = /\bmax-age=(\d{1,10})\b/i.exec(directives)?.[1];
  return seconds === undefined ? unsaid : Math.min(Math.max(Number(seconds) * 1_000, least), most);
}
