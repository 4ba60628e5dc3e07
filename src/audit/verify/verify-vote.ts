import type { Vote } from '../../domain/activity/events.js';
import { CoordinatorError, errorMessage } from '../../domain/errors.js';
import type { ApiKeyScheme } from '../../stamps/stamp.js';
import { verifyApiKeyStamp } from '../../stamps/verify.js';
import { verifyWebAuthnStamp } from '../../stamps/webauthn.js';

/** What a stamp consists of, and what it signs. */
type Stamped = Pick<Vote, 'message' | 'publicKey' | 'signature' | 'scheme'> & {
  readonly webauthn?: Pick<NonNullable<Vote['webauthn']>, 'authenticatorData' | 'clientDataJson'> | undefined;
};

/**
 * Verifies that the key signed the message.
 * @returns the signature counter of a passkey
 * @throws {CoordinatorError} UNAUTHENTICATED if it did not
 */
export async function verifyStamped({ message, publicKey, signature, scheme, webauthn }: Stamped) {
  const body = Buffer.from(message);
  if (!webauthn) {
    await verifyApiKeyStamp({ kind: 'api-key', scheme: apiKeyScheme(scheme), publicKey, signature }, body);
    return undefined;
  }
  const { authenticatorData, clientDataJson } = webauthn;
  // Its id is not signed, so any one will do.
  const credentialId = '';
  const stamp = {
    kind: 'webauthn',
    scheme: 'SIGNATURE_SCHEME_TK_WEBAUTHN',
    credentialId,
    authenticatorData,
    clientDataJson,
    signature,
  } as const;
  const rpIdHash = Buffer.from(authenticatorData, 'base64url').toString('hex', 0, 32);
  return (await verifyWebAuthnStamp(stamp, body, { credentialId, publicKey, rpIdHash }, {})).signCount;
}

/**
 * Verifies a vote from the event alone: what was signed, with which key, and the signature.
 * @throws {CoordinatorError} UNAUTHENTICATED if it is not genuine
 */
export async function verifyVote(vote: Vote): Promise<void> {
  const signCount = await verifyStamped(vote);
  if (vote.webauthn && vote.webauthn.signCount !== signCount) {
    throw new CoordinatorError(
      'UNAUTHENTICATED',
      `the authenticator data has signature counter ${signCount}, but the vote has ${vote.webauthn.signCount}`,
    );
  }
}

/** What was kept of the stamp of a denied request by API key. */
type DeniedStamp = Readonly<Record<'message' | 'publicKey' | 'signature' | 'scheme', string>>;

/**
 * Verifies the stamp of a denied request, made with an API key, over the stored body.
 * @throws {CoordinatorError} UNAUTHENTICATED if it is not genuine
 */
async function verifyDenial({ message, publicKey, signature, scheme }: DeniedStamp): Promise<void> {
  const made = apiKeyScheme(scheme);
  await verifyApiKeyStamp({ kind: 'api-key', scheme: made, publicKey, signature }, Buffer.from(message));
}

/** An attested stamp is by a P-256 key that a token vouches for (docs/protocol.md, attested stamps). */
function apiKeyScheme(scheme: string): ApiKeyScheme {
  return (scheme === 'SIGNATURE_SCHEME_TK_ATTESTED_P256' ? 'SIGNATURE_SCHEME_TK_API_P256' : scheme) as ApiKeyScheme;
}

/** A recorded stamp. */
export type RecordedStamp = { readonly vote: Vote } | { readonly denial: DeniedStamp };

/** What is wrong with a recorded stamp; undefined if it is genuine. */
export async function problemWith(stamp: RecordedStamp): Promise<string | undefined> {
  try {
    await ('vote' in stamp ? verifyVote(stamp.vote) : verifyDenial(stamp.denial));
    return undefined;
  } catch (error) {
    if (error instanceof CoordinatorError) return `${error.code}: ${error.message}`;
    return errorMessage(error);
  }
}

/** What is wrong with each of some stamps, in order; a task of `StampThread`. */
export function problemsWith(stamps: readonly RecordedStamp[]): Promise<(string | undefined)[]> {
  return Promise.all(stamps.map(problemWith));
}
