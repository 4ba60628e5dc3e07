/** The value of `X-Stamp` for a signature over the body (docs/protocol.md, API key stamps): key and DER signature in hex. */
export function stampHeader({
  publicKey,
  scheme,
  signature,
}: {
  readonly publicKey: string;
  readonly scheme: string;
  readonly signature: string;
}): string {
  return Buffer.from(JSON.stringify({ publicKey, scheme, signature })).toString('base64url');
}
