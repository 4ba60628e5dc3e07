import { createHash } from 'node:crypto';
import type { GuardedFetch } from '../http-client/guarded-request.js';
import { IssuerKeys, type OwnIssuer } from './issuers.js';
import { checkSignature, claimsOf, readJws } from './jws.js';
import { invalidOidcToken } from './refusals.js';
import { isKeyFor, type SigningKey } from './signing-keys.js';

/** Claims of a verified OIDC token. The first three together identify a person at a provider. */
export interface OidcIdentity {
  readonly issuer: string;
  readonly audience: string;
  readonly subject: string;
  /** The token was issued to another client, or is for several: it counts only for a client id that is listed. */
  readonly namesOtherClients?: true;
  /** SHA-256 of the part signed by the issuer, hex: the signature itself can be encoded in several ways. */
  readonly tokenId: string;
  readonly isIssuedHere: boolean;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
  readonly email?: string;
  /** True only if the issuer says so. */
  readonly emailVerified: boolean;
  /** The address, if the issuer is also trusted to know its owner. */
  readonly verifiedEmail?: string;
}

/**
 * What a token is presented for (docs/protocol.md, OIDC tokens): to register an identity, or to log in with the key that
 * the token was requested for. `publicKey` is the hex text as the client sent it, because those exact characters are
 * hashed.
 */
export type OidcPurpose = 'registration' | { readonly login: { readonly publicKey: string } };

type Claims = Readonly<Record<string, unknown>>;

const maxNameLength = 255;
/** Zitadel lists every application of a project. */
const maxAudiences = 64;
/** Tolerated difference between the issuer's clock and ours, in seconds. */
const leeway = 30;
/** The last second that a Date can represent. */
const lastSecond = 8_640_000_000_000;

/**
 * Verifies ID tokens (OpenID Connect Core 1.0, section 3.1.3.7; RFC 8725), including those of issuers it has not met
 * before.
 */
export class OidcVerifier {
  private readonly clock: { now(): number };
  private readonly keys: IssuerKeys;
  private readonly emailIssuers: readonly string[];
  private readonly own: OwnIssuer | undefined;
  private readonly mendsOf: (organizationId: string) => Promise<number>;

  /**
   * `issuers` are the only ones accepted, any if empty or absent. `own` is an issuer whose keys need no request.
   * `emailIssuers` are trusted on e-mail addresses; none if absent. `mendsOf` says how often the clock of an organization has been
   * mended; never if absent.
   */
  constructor({
    clock,
    fetch,
    issuers = [],
    own,
    emailIssuers = [],
    mendsOf = () => Promise.resolve(0),
  }: {
    readonly clock: { now(): number };
    readonly fetch: GuardedFetch;
    readonly issuers?: readonly string[];
    readonly own?: OwnIssuer;
    readonly emailIssuers?: readonly string[];
    readonly mendsOf?: (organizationId: string) => Promise<number>;
  }) {
    this.mendsOf = mendsOf;
    this.clock = clock;
    this.emailIssuers = emailIssuers;
    this.own = own;
    this.keys = new IssuerKeys({ clock, fetch, issuers, own, trusted: emailIssuers });
  }

  /**
   * The issuer named in a token, unverified and without any request.
   * @throws {CoordinatorError} INVALID_ARGUMENT INVALID_OIDC_TOKEN
   */
  claimedIssuer(token: string): string {
    return readIdentity(claimsOf(readJws(token)), this.clock.now()).issuer;
  }

  /**
   * The claims of a token once it is fully verified. It is a compact JWT; base64 around it is removed.
   * @throws {CoordinatorError} INVALID_ARGUMENT that begins with INVALID_OIDC_TOKEN and says which check failed, or
   * UNAVAILABLE if the issuer cannot be reached
   */
  async verify(token: string, purpose: OidcPurpose): Promise<OidcIdentity> {
    const jws = readJws(token);
    const claims = claimsOf(jws);
    // Everything that needs no key comes first: an unacceptable token must not cause a request.
    const identity = readIdentity(claims, this.clock.now());
    if (purpose !== 'registration') checkBinding(claims, purpose.login.publicKey);
    const isWanted = (key: SigningKey): boolean => isKeyFor(key, jws.algorithm, jws.keyId);
    const keys = await this.keys.find(identity.issuer, isWanted);
    try {
      await checkSignature(jws, keys);
    } catch (error) {
      const now = await this.keys.find(identity.issuer, isWanted, { isReplaced: true });
      if (JSON.stringify(now) === JSON.stringify(keys)) throw error;
      await checkSignature(jws, now);
    }
    const { issuer, email, emailVerified } = identity;
    if (issuer === this.own?.issuer) await this.checkNotMended(claims);
    const isTrusted = emailVerified && this.emailIssuers.includes(issuer);
    const signed = jws.compact.slice(0, jws.compact.lastIndexOf('.'));
    return {
      ...identity,
      tokenId: createHash('sha256').update(signed).digest('hex'),
      isIssuedHere: issuer === this.own?.issuer,
      ...(isTrusted && email !== undefined ? { verifiedEmail: email } : {}),
    };
  }

  /** A token of ours ends when the clock of the organization that requested it is mended. */
  private async checkNotMended({ organization_id: organizationId, clock_mends: mends = 0 }: Claims): Promise<void> {
    if (typeof organizationId !== 'string' || mends === (await this.mendsOf(organizationId))) return;
    throw invalidOidcToken('it ended when the clock of the organization that requested it was mended: log in again');
  }
}

function readIdentity(claims: Claims, now: number): Omit<OidcIdentity, 'tokenId' | 'isIssuedHere'> {
  const { iss, aud, azp, sub, email } = claims;
  if (!isIssuer(iss)) {
    throw invalidOidcToken('its `iss` is missing or not an http(s) URL without user, query and fragment');
  }
  const audience = audienceOf(aud, azp);
  if (!isName(sub)) throw invalidOidcToken(`its \`sub\` must be a string of 1 to ${maxNameLength} characters`);
  const expiresAt = checkTimes(claims, now);
  return {
    issuer: iss,
    audience,
    subject: sub,
    ...((azp ?? audience) !== audience || [aud].flat().length > 1 ? { namesOtherClients: true as const } : {}),
    expiresAt,
    ...(isName(email) ? { email } : {}),
    // Some issuers write it as a string.
    emailVerified: claims['email_verified'] === true || claims['email_verified'] === 'true',
  };
}

/**
 * The client id that a token is for; whoever uses the identity compares it with those registered. That is `aud`, also where
 * `azp` is another client, as of Google's apps for Android; of several, that of `azp` (OpenID Connect Core 1.0, section 2).
 * @throws {CoordinatorError} INVALID_OIDC_TOKEN
 */
function audienceOf(aud: unknown, azp: unknown): string {
  if (azp !== undefined && !isName(azp)) {
    throw invalidOidcToken(`its \`azp\` must be a string of 1 to ${maxNameLength} characters`);
  }
  const audiences: readonly unknown[] = Array.isArray(aud) ? aud : [aud];
  if (audiences.length === 0 || audiences.length > maxAudiences || !audiences.every(isName)) {
    throw invalidOidcToken(
      `its \`aud\` must be a string of 1 to ${maxNameLength} characters, or a list of at most ${maxAudiences}`,
    );
  }
  const [only, ...others] = audiences;
  if (others.length === 0) return only!;
  if (azp === undefined) throw invalidOidcToken('it has several `aud` and no `azp`: it must name the client it is for');
  if (!audiences.includes(azp)) throw invalidOidcToken('its `azp` is not one of its `aud`');
  return azp;
}

/** The expiry of the token in milliseconds, if it is valid now (RFC 7519, section 4.1). */
function checkTimes({ exp, nbf, iat }: Claims, now: number): number {
  const seconds = now / 1_000;
  if (!isTime(exp)) throw invalidOidcToken('its `exp` is missing or not a number of seconds');
  if (exp + leeway <= seconds) throw invalidOidcToken('it has expired: log in at the provider again');
  for (const [name, time] of Object.entries({ nbf, iat })) {
    if (time === undefined) continue;
    if (!isTime(time)) throw invalidOidcToken(`its \`${name}\` is not a number of seconds`);
    if (time - leeway > seconds) throw invalidOidcToken(`its \`${name}\` is in the future: check both clocks`);
  }
  return Math.floor(exp * 1_000);
}

/** A token requested with one key must not log in another. */
function checkBinding({ nonce, tknonce }: Claims, publicKey: string): void {
  const wanted = createHash('sha256').update(publicKey, 'utf8').digest('hex');
  if (nonce === wanted || tknonce === wanted) return;
  throw invalidOidcToken(
    'neither its `nonce` nor its `tknonce` is the SHA-256 (lower-case hex) of the public key as it was sent',
  );
}

/** A text that is safe in an error or a log. */
const isName = (value: unknown): value is string =>
  typeof value === 'string' && value.length > 0 && value.length <= maxNameLength && !/\p{Cc}/u.test(value);

const isTime = (value: unknown): value is number => typeof value === 'number' && value >= 0 && value <= lastSecond;

/** OpenID Connect Core 1.0, section 2: printable ASCII, so that no two different ones look or parse alike. */
const isIssuer = (value: unknown): value is string =>
  isName(value) && /^https?:\/\/[\x21-\x7e]+$/.test(value) && !/[?#@\\`]/.test(value) && URL.canParse(value);
