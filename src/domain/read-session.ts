/** Who may read until when, as the public half of a read-only session states (docs/protocol.md, read-only sessions). */
export interface ReadSession {
  readonly organizationId: string;
  readonly userId: string;
  /** The credential that created it; the session ends with it. */
  readonly credentialId: string;
  /** Seconds since the epoch. */
  readonly expiresAt: number;
  /** How often the clock of the organization had been mended; the session ends with the next time. */
  readonly clockMends: number;
}

/**
 * The public half of a session: base64url of JSON. It states everything and proves nothing; the keyring adds the proof.
 */
export function readSessionText(session: ReadSession): string {
  const { organizationId, userId, credentialId, expiresAt, clockMends } = session;
  const claims = {
    exp: expiresAt,
    organization_id: organizationId,
    user_id: userId,
    credential_id: credentialId,
    ...(clockMends > 0 ? { clock_mends: clockMends } : {}),
  };
  return Buffer.from(JSON.stringify(claims)).toString('base64url');
}

/** Parses a public half, without checking it: it must have been verified before. */
export function readSessionOf(text: string): ReadSession {
  const claims = JSON.parse(Buffer.from(text, 'base64url').toString('utf8')) as {
    readonly exp: number;
    readonly organization_id: string;
    readonly user_id: string;
    readonly credential_id: string;
    readonly clock_mends?: number;
  };
  return {
    organizationId: claims.organization_id,
    userId: claims.user_id,
    credentialId: claims.credential_id,
    expiresAt: claims.exp,
    clockMends: claims.clock_mends ?? 0,
  };
}
