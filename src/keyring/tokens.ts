import { createHash, createHmac, createPublicKey, timingSafeEqual, verify } from 'node:crypto';
import { compactVerify, errors, type JWK } from 'jose';
import { invalidField } from '../domain/errors.js';
import type { SessionClaims, VerificationClaims } from '../ports/tokens.js';
import { parsePublicKey, uncompressPublicKey } from './curves.js';
import type { InstallationKeys } from './installation-keys.js';

/** Longest token that is examined, in characters. */
const maxTokenLength = 8_192;
/** Signatures of any other algorithm are rejected unseen, whatever a token says about itself. */
const algorithms = ['ES256'];
const header = Buffer.from('{"alg":"ES256","typ":"JWT"}').toString('base64url');

/**
 * Our own tokens: session tokens, signed by the notarizer key over a double SHA-256, and verification tokens, signed by
 * the verification-token key (docs/protocol.md, sessions and verification tokens).
 */
export class Tokens {
  constructor(private readonly keys: InstallationKeys) {}

  async signSession({ userId, organizationId, publicKey, sessionType, expiresAt }: SessionClaims): Promise<string> {
    const input = `${header}.${payloadOf({
      exp: Math.floor(expiresAt / 1000),
      public_key: publicKey,
      session_type: sessionType,
      user_id: userId,
      organization_id: organizationId,
    })}`;
    const inner = createHash('sha256').update(input).digest();
    return `${input}.${base64Url(await this.keys.sign('notarizer', inner))}`;
  }

  signVerification(claims: VerificationClaims): Promise<string> {
    const { tokenId, verificationType, contact, organizationId, publicKey, logsInToIssuer, clockMends, expiresAt } =
      claims;
    return this.signVerificationPayload({
      id: tokenId,
      verification_type: verificationType,
      contact,
      organization_id: organizationId,
      ...(publicKey === undefined ? {} : { public_key: publicKey }),
      ...(logsInToIssuer ? { issuer_login: 'true' } : {}),
      ...(clockMends === undefined ? {} : { clock_mends: String(clockMends) }),
      // Milliseconds as text, unlike the session's number of seconds: its verifier expects that.
      exp: String(expiresAt),
    });
  }

  /** See `TokenPort`. */
  signVerificationAgain(unsigned: string): Promise<string> {
    return this.signVerificationPayload({ ...decoded(unsigned.split('.')[1] ?? ''), told_again: 'true' });
  }

  /**
   * @throws {CoordinatorError} INVALID_ARGUMENT naming `verificationToken`, unless it is ours, complete, and not
   * expired at `now`
   */
  async verifyVerification(token: string, now: number): Promise<VerificationClaims> {
    const claims = await this.verificationClaims(token);
    const text = (name: string): string => {
      const value = claims[name];
      if (typeof value !== 'string' || value === '') throw refused(`its claim \`${name}\` is missing`);
      return value;
    };
    const expiresAt = Number(text('exp'));
    if (!(expiresAt > now)) throw refused('it has expired: verify the contact again with init_otp and verify_otp');
    const verificationType = text('verification_type');
    if (verificationType !== 'OTP_TYPE_EMAIL' && verificationType !== 'OTP_TYPE_SMS') {
      throw refused(`its verification_type is \`${verificationType}\``);
    }
    return {
      tokenId: text('id'),
      verificationType,
      contact: text('contact'),
      organizationId: text('organization_id'),
      ...(claims['public_key'] === undefined ? {} : { publicKey: text('public_key') }),
      ...(claims['issuer_login'] === 'true' ? { logsInToIssuer: true as const } : {}),
      ...(claims['told_again'] === undefined ? {} : { toldAgain: true as const }),
      expiresAt,
      ...(claims['clock_mends'] === undefined ? {} : { clockMends: Number(text('clock_mends')) }),
    };
  }

  /** See `TokenPort`. An invalid key or signature verifies nothing. */
  verifyClientSignature({
    publicKey,
    message,
    signature,
  }: {
    readonly publicKey: string;
    readonly message: string;
    readonly signature: string;
  }): Promise<boolean> {
    const bytes = Buffer.from(signature, 'hex');
    const dsaEncoding = bytes.length === 64 ? 'ieee-p1363' : 'der';
    try {
      const point = uncompressPublicKey('CURVE_P256', parsePublicKey('CURVE_P256', publicKey));
      const key = createPublicKey({ key: jwkOf(point), format: 'jwk' });
      return Promise.resolve(verify('sha256', Buffer.from(message), { key, dsaEncoding }, bytes));
    } catch {
      return Promise.resolve(false);
    }
  }

  /** A read-only session: its public half, and HMAC-SHA-256 of it under a key of the installation (docs/protocol.md, read-only sessions). */
  async proveReadSession(publicHalf: string): Promise<string> {
    return `${publicHalf}.${base64Url(await this.readSessionProof(publicHalf))}`;
  }

  /** The public half of a session of ours; undefined for anything else, or if it was changed. */
  async readSessionProved(session: string): Promise<string | undefined> {
    const [publicHalf, proof, ...rest] = session.split('.');
    if (session.length > maxTokenLength || !publicHalf || !proof || rest.length > 0) return undefined;
    const expected = await this.readSessionProof(publicHalf);
    // Also compared as text: base64url can encode the same bytes in several ways, and a token should have only one
    // form.
    const sent = Buffer.from(proof, 'base64url');
    const isOurs = sent.length === expected.length && timingSafeEqual(sent, expected) && base64Url(sent) === proof;
    return isOurs ? publicHalf : undefined;
  }

  private readSessionProof(publicHalf: string): Promise<Buffer> {
    return this.keys.use('read-session', (key) => createHmac('sha256', key).update(publicHalf).digest());
  }

  private async signVerificationPayload(claims: Readonly<Record<string, unknown>>): Promise<string> {
    const input = `${header}.${payloadOf(claims)}`;
    return `${input}.${base64Url(await this.keys.sign('verification-token', Buffer.from(input)))}`;
  }

  /** Claims of a token signed by the verification-token key; nothing is read before the signature is verified. */
  private async verificationClaims(token: string): Promise<Readonly<Record<string, unknown>>> {
    if (token.length > maxTokenLength) throw refused(`it has ${token.length} characters, which is too many`);
    const point = Buffer.from(this.keys.publicKey('verification-token', 'uncompressed'), 'hex');
    const verified = await compactVerify(token, { ...jwkOf(point), alg: 'ES256' }, { algorithms }).catch(
      (problem: unknown) => {
        throw refused(unverified(problem));
      },
    );
    if (verified.protectedHeader.typ !== 'JWT') throw refused(wrongHeader);
    return decoded(Buffer.from(verified.payload).toString('base64url'));
  }
}

const wrongHeader = 'its header must say alg ES256 and typ JWT';

/** The library's message may quote the token. */
function unverified(problem: unknown): string {
  if (problem instanceof errors.JOSEAlgNotAllowed) return wrongHeader;
  return problem instanceof errors.JWSSignatureVerificationFailed
    ? 'its signature is not by the verification-token key of this server'
    : 'it is not a compact JWS of three parts';
}

const refused = (why: string): Error => invalidField('verificationToken', `invalid verification token: ${why}`);

function jwkOf(point: Buffer): JWK & { kty: 'EC' } {
  return { kty: 'EC', crv: 'P-256', x: point.toString('base64url', 1, 33), y: point.toString('base64url', 33) };
}

/**
 * The claims as base64url that plain base64 decoders can read too: published clients decode some tokens with one, which
 * drops or rejects `-` and `_`. Spaces in JSON are meaningless, so they are inserted until neither occurs.
 */
function payloadOf(claims: Readonly<Record<string, unknown>>): string {
  const members = Object.entries(claims).map(([name, value]) => `${JSON.stringify(name)}:${asciiJson(value)}`);
  for (let spaces = 0; ; spaces++) {
    for (const [index] of members.entries()) {
      const padded = members.map((member, at) => (at >= index ? `${' '.repeat(spaces)}${member}` : member));
      const payload = Buffer.from(`{${padded.join(',')}}`).toString('base64url');
      if (!/[-_]/.test(payload) || spaces > 64) return payload;
    }
  }
}

function asciiJson(value: unknown): string {
  return JSON.stringify(value).replace(
    /[\u0080-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function decoded(part: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString('utf8'));
    return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
  } catch {
    return {};
  }
}

const base64Url = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64url');
