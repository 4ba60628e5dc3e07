/** Claims of a verification token (docs/protocol.md, verification tokens). `expiresAt` is milliseconds since the epoch. */
export interface VerificationClaims {
  readonly tokenId: string;
  readonly verificationType: 'OTP_TYPE_EMAIL' | 'OTP_TYPE_SMS';
  readonly contact: string;
  /** The organization that issued it. */
  readonly organizationId: string;
  /** Compressed P-256 key in hex; older flows have none. */
  readonly publicKey?: string;
  /**
   * A member of the organization requested the code, and not an anonymous client of the auth proxy: it is also valid
   * for logins to the organization itself.
   */
  readonly logsInToIssuer?: true;
  /** It was returned to a repeat, which anyone who has read the request may send: only its key proves anything. */
  readonly toldAgain?: true;
  readonly expiresAt: number;
  /** How often the clock of the issuing organization had been mended, if it ever was; the token ends with the next time. */
  readonly clockMends?: number;
}

/** Claims of a session token (docs/protocol.md, sessions). `expiresAt` is milliseconds since the epoch. */
export interface SessionClaims {
  readonly userId: string;
  readonly organizationId: string;
  readonly publicKey: string;
  readonly sessionType: 'SESSION_TYPE_READ_WRITE' | 'SESSION_TYPE_READ_ONLY';
  readonly expiresAt: number;
}

export const TOKENS = Symbol('Tokens');

/** The port for our own tokens (see `keyring/tokens.ts`). */
export interface TokenPort {
  signSession(claims: SessionClaims): Promise<string>;
  signVerification(claims: VerificationClaims): Promise<string>;
  /** @throws {CoordinatorError} INVALID_ARGUMENT unless we signed it and it has not expired at `now` */
  verifyVerification(token: string, now: number): Promise<VerificationClaims>;
  /** A verification token of ours whose signature was omitted when it was recorded; it says `told_again`. */
  signVerificationAgain(unsigned: string): Promise<string>;
  /** A read-only session, built from the recorded public half; always the same. */
  proveReadSession(publicHalf: string): Promise<string>;
  /** The public half of a read-only session that we issued; undefined for any other text. */
  readSessionProved(session: string): Promise<string | undefined>;
  /** Whether a P-256 key (compressed, hex) signed SHA-256 of the message; the signature is r ‖ s or DER, hex. */
  verifyClientSignature(input: {
    readonly publicKey: string;
    readonly message: string;
    readonly signature: string;
  }): Promise<boolean>;
}
