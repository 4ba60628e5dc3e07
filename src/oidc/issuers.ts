import type { GuardedFetch, GuardedResponse } from '../http-client/guarded-fetch.js';
import { invalidOidcToken, issuerUnavailable, refusalOf } from './refusals.js';
import { signingKeysOf, type SigningKey } from './signing-keys.js';

/** An issuer whose keys this process knows itself, so that no request is made for them. */
export interface OwnIssuer {
  readonly issuer: string;
  keys(): readonly SigningKey[];
}

const minute = 60_000;
const hour = 60 * minute;

/** All times in milliseconds. */
const limits = {
  /** Bounds of what Cache-Control may say, and what holds when it says nothing. */
  freshFor: { least: minute, most: hour, unsaid: 10 * minute },
  /** How long keys serve after they should have been read again, as long as that fails. */
  staleFor: 6 * hour,
  /** Between two attempts at one issuer: tokens with made-up key ids must not become requests. */
  retryAfter: 10_000,
  /** Issuers remembered, and asked at the same time: whoever writes a token chooses one. */
  remembered: 256,
  /** Of those, for the issuers that were known first and are still needed; so many under one name. */
  tenured: { places: 64, underOneName: 16, neededWithin: 24 * hour },
  atOnce: 32,
  /** Beyond those, for issuers whose keys are at hand and about to be over. */
  reserved: 8,
  keys: 64,
};

interface Known {
  keys: readonly SigningKey[] | undefined;
  freshUntil: number;
  staleUntil: number;
  triedAt: number | undefined;
  /** The how manieth it was whose keys were read; and when somebody last asked for them. */
  knownAs: number | undefined;
  neededAt: number;
  failure: unknown;
  reading: Promise<void> | undefined;
}

/** The signature keys of OIDC issuers: discovered, cached, read again when a token names one that is not there. */
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
    },
  ) {}

  /**
   * The keys of an issuer that are wanted. If there are none, its keys are read once more, at most every ten seconds.
   * @throws {CoordinatorError} INVALID_ARGUMENT if the issuer is not allowed or its documents are not as they must be,
   * UNAVAILABLE if it cannot be reached
   */
  async find(issuer: string, isWanted: (key: SigningKey) => boolean): Promise<readonly SigningKey[]> {
    const { own, issuers, clock } = this.ports;
    if (issuer === own?.issuer) return own.keys().filter(isWanted);
    if (issuers.length > 0 && !issuers.includes(issuer)) {
      throw invalidOidcToken(`issuer \`${issuer}\` is not one that this server accepts tokens from`);
    }
    const known = this.remember(issuer);
    if (known.keys === undefined || clock.now() >= known.freshUntil) await this.read(issuer, known);
    if (known.keys?.some(isWanted) === false) await this.read(issuer, known);
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
    // A Map keeps the order of insertion: the first is the one that was needed least recently.
    this.known.delete(issuer);
    this.known.set(issuer, known);
    this.forgetOne(issuer);
    return known;
  }

  /**
   * Strangers may name issuers without end, so what they name makes room for itself: first an issuer that has never given
   * keys, then the one that was needed least recently of those that share the most common name. Those that were known first
   * stay, however many names of their own strangers have.
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

  /** The issuers with keys that were known first, of those that somebody has needed of late. */
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

  /** Reads the keys unless that is under way or was tried just now. A failure is kept, and thrown only by `find`. */
  private async read(issuer: string, known: Known): Promise<void> {
    if (known.reading) return known.reading;
    const since = known.triedAt === undefined ? Infinity : this.ports.clock.now() - known.triedAt;
    // A clock that was set back must not stop everything until it has caught up.
    if (since >= 0 && since < limits.retryAfter) return;
    // Half of the time that they serve beyond their own is gone: whoever holds all places must not outlast the rest.
    const isUrgent = known.keys !== undefined && this.ports.clock.now() >= known.staleUntil - limits.staleFor / 2;
    if (this.readingNow >= limits.atOnce + (isUrgent ? limits.reserved : 0)) {
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
    // Whoever is found under this name must answer to it, or one issuer could speak for another.
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

/** The first of those whose hosts share the most common last two labels: names under one may be had without number. */
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
    // The parser's message quotes the document, which is not for whoever sent the token.
  }
  throw bad('responds with something other than a JSON object');
}

/** How long an answer may be used, in milliseconds (RFC 9111, `max-age`), within our bounds. */
function freshFor({ headers }: GuardedResponse): number {
  const { least, most, unsaid } = limits.freshFor;
  const directives = headers['cache-control'] ?? '';
  if (/\bno-(?:store|cache)\b/i.test(directives)) return least;
  const seconds = /\bmax-age=(\d{1,10})\b/i.exec(directives)?.[1];
  return seconds === undefined ? unsaid : Math.min(Math.max(Number(seconds) * 1_000, least), most);
}
