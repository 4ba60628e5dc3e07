/**
 * A token without the base64 that clients may put around it: that contains no dots, and a compact JWS has two (RFC 7515,
 * section 7.1).
 */
export function compactJws(token: string): string {
  return /^[\w+/-]+={0,2}$/.test(token) ? Buffer.from(token, 'base64').toString('latin1') : token;
}
