import { stampBody, type ApiKeyPair } from '../stamps/sign.js';

/** The client's signature with the key that its verification token is bound to (docs/protocol.md, client signatures). */
export function clientSignature(key: ApiKeyPair, usage: object) {
  const message = JSON.stringify(usage);
  // A stamp is the same signature in an envelope: ECDSA over SHA-256 of the text, DER in hex.
  const stamp = Buffer.from(stampBody(message, key).headerValue, 'base64url').toString();
  const { signature } = JSON.parse(stamp) as { signature: string };
  return { publicKey: key.publicKey, scheme: 'CLIENT_SIGNATURE_SCHEME_API_P256', message, signature };
}
