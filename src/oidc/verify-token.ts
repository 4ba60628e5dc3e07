import { createHash } from 'node:crypto';
import type { GuardedFetch } from '../http-client/guarded-fetch.js';
import { IssuerKeys, type OwnIssuer } from './issuers.js';
import { checkSignature, claimsOf, readJws } from './jws.js';
import { invalidOidcToken } from './refusals.js';
import { isKeyFor, type SigningKey } from './signing-keys.js';

/** What a verified OIDC token says. The first three together name a person at a provider. */
export interface OidcIdentity {
  readonly issuer: string;
  readonly audience: string;
  readonly subject: string;
  /** SHA-256 of what the issuer has signed, hex: the signature itself may be spelled in several ways. */
  readonly tokenId: string;
  readonly isIssuedHere: boolean;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
  readonly email?: string;
  /** True only if the issuer says so. */
  readonly emailVerified: boolean;
  /** The address, if the issuer is also one that is trusted to know whose it is. */
  readonly verifiedEmail?: string;
}

/**
 * What a token is shown for (client protocol, section 8.3): to register an identity, or to log in with a key that the
 * token was asked for. `publicKey` is the hex text as the client sent it, for its very characters are what is hashed.
 */
export type OidcPurpose = 'registration' | { readonly login: { readonly publicKey: string } };

type Claims = Readonly<Record<string, unknown>>;

const maxNameLength = 255;
/** How far the issuer's clock may be from ours, in seconds. */
const leeway = 30;
/** The last second that a Date can hold. */
const lastSecond = 8_640_000_000_000;

/** Verifies ID tokens (OpenID Connect Core 1.0, section 3.1.3.7; RFC 8725) of issuers that it has not met before. */
export class OidcVerifier {
  private readonly clock: { now(): number };
  private readonly keys: IssuerKeys;
  private readonly emailIssuers: readonly string[];
  private readonly own: OwnIssuer | undefined;

  /**
   * `issuers` are the only ones taken, any if empty or absent. `own` is an issuer whose keys need no request.
   * `emailIssuers` are those whose word on e-mail addresses is taken; none if absent.
   */
  constructor({
    clock,
    fetch,
    issuers = [],
    own,
    emailIssuers = [],
  }: {
    readonly clock: { now(): number };
    readonly fetch: GuardedFetch;
    readonly issuers?: readonly string[];
    readonly own?: OwnIssuer;
    readonly emailIssuers?: readonly string[];
  }) {
    this.clock = clock;
    this.emailIssuers = emailIssuers;
    this.own = own;
    this.keys = new IssuerKeys({ clock, fetch, issuers, own });
  }

  /**
   * The issuer that a token names; nothing of it was checked, and no request was made.
   * @throws {CoordinatorError} INVALID_ARGUMENT INVALID_OIDC_TOKEN
   */
  claimedIssuer(token: string): string {
    return readIdentity(claimsOf(readJws(token)), this.clock.now()).issuer;
  }

  /**
   * What the token says, once everything about it holds. It is a compact JWT; base64 around one is taken off.
   * @throws {CoordinatorError} INVALID_ARGUMENT that begins with INVALID_OIDC_TOKEN and says which check failed, or
   * UNAVAILABLE if the issuer cannot be reached
   */
  async verify(token: string, purpose: OidcPurpose): Promise<OidcIdentity> {
    const jws = readJws(token);
    const claims = claimsOf(jws);
    // All that needs no key comes first: a token that cannot be taken must not cause a request.
    const identity = readIdentity(claims, this.clock.now());
    if (purpose !== 'registration') checkBinding(claims, purpose.login.publicKey);
    const isWanted = (key: SigningKey): boolean => isKeyFor(key, jws.algorithm, jws.keyId);
    await checkSignature(jws, await this.keys.find(identity.issuer, isWanted));
    const { issuer, email, emailVerified } = identity;
    const isTrusted = emailVerified && this.emailIssuers.includes(issuer);
    const signed = jws.compact.slice(0, jws.compact.lastIndexOf('.'));
    return {
      ...identity,
      tokenId: createHash('sha256').update(signed).digest('hex'),
      isIssuedHere: issuer === this.own?.issuer,
      ...(isTrusted && email !== undefined ? { verifiedEmail: email } : {}),
    };
  }
}

function readIdentity(claims: Claims, now: number): Omit<OidcIdentity, 'tokenId' | 'isIssuedHere'> {
  const { iss, aud, azp, sub, email } = claims;
  if (!isIssuer(iss)) {
    throw invalidOidcToken('its `iss` is missing or not an http(s) URL without user, query and fragment');
  }
  const audiences: readonly unknown[] = Array.isArray(aud) ? aud : [aud];
  const [audience] = audiences;
  if (audiences.length !== 1 || !isName(audience)) {
    throw invalidOidcToken(`its \`aud\` must be exactly one string of 1 to ${maxNameLength} characters`);
  }
  if (azp !== undefined && azp !== audience) {
    throw invalidOidcToken(`its \`azp\` is not its audience \`${audience}\`: it was issued to a different client`);
  }
  if (!isName(sub)) throw invalidOidcToken(`its \`sub\` must be a string of 1 to ${maxNameLength} characters`);
  const expiresAt = checkTimes(claims, now);
  return {
    issuer: iss,
    audience,
    subject: sub,
    expiresAt,
    ...(isName(email) ? { email } : {}),
    // Some issuers write it as a text.
    emailVerified: claims['email_verified'] === true || claims['email_verified'] === 'true',
  };
}

/** The end of the token in milliseconds, when it is neither over nor still to begin (RFC 7519, section 4.1). */
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

/** A token asked for with one key must not log in another. */
function checkBinding({ nonce, tknonce }: Claims, publicKey: string): void {
  const wanted = createHash('sha256').update(publicKey, 'utf8').digest('hex');
  if (nonce === wanted || tknonce === wanted) return;
  throw invalidOidcToken(
    'neither its `nonce` nor its `tknonce` is the SHA-256 (lower-case hex) of the public key as it was sent',
  );
}

/** A text that can stand in an error or a log without breaking it. */
const isName = (value: unknown): value is string =>
  typeof value === 'string' && value.length > 0 && value.length <= maxNameLength && !/\p{Cc}/u.test(value);

const isTime = (value: unknown): value is number => typeof value === 'number' && value >= 0 && value <= lastSecond;

/** OpenID Connect Core 1.0, section 2: printable ASCII, so that no two different ones look or parse alike. */
const isIssuer = (value: unknown): value is string =>
  isName(value) && /^https?:\/\/[\x21-\x7e]+$/.test(value) && !/[?#@\\`]/.test(value) && URL.canParse(value);
