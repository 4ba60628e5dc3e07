import type { Vote } from '../../src/domain/activity/events.js';
import { verifyApiKeyStamp, type ApiKeyScheme } from '../../src/stamps/verify.js';
import { verifyWebAuthnStamp } from '../../src/stamps/webauthn.js';

/**
 * Verifies a vote again from the event alone: what was signed, with which key, and the signature.
 * @throws {CoordinatorError} UNAUTHENTICATED when it is not genuine
 */
export async function verifyVote(vote: Vote): Promise<void> {
  const { message, publicKey, signature, scheme, webauthn } = vote;
  const body = Buffer.from(message);
  if (!webauthn) {
    const made = scheme === 'SIGNATURE_SCHEME_TK_ATTESTED_P256' ? 'SIGNATURE_SCHEME_TK_API_P256' : scheme;
    return verifyApiKeyStamp({ kind: 'api-key', scheme: made as ApiKeyScheme, publicKey, signature }, body);
  }
  const { credentialId, authenticatorData, clientDataJson, signCount } = webauthn;
  const stamp = {
    kind: 'webauthn',
    scheme: 'SIGNATURE_SCHEME_TK_WEBAUTHN',
    credentialId,
    authenticatorData,
    clientDataJson,
    signature,
  } as const;
  const rpIdHash = Buffer.from(authenticatorData, 'base64url').toString('hex', 0, 32);
  const verified = await verifyWebAuthnStamp(stamp, body, { credentialId, publicKey, rpIdHash, signCount: 0 }, {});
  expect(verified.signCount).toBe(signCount);
}
