import { createHash } from 'node:crypto';
import type { WebAuthnStamp } from './stamp.js';
import { CoordinatorError, invalidField } from '../domain/errors.js';
import { decodeBase64 } from './header.js';
import { coseKey } from './keys.js';
import { ecdsaSignatureProblem, ed25519SignatureProblem, verifySignature } from './signatures.js';
import { maxCredentialIdBytes } from '../ports/passkeys.js';
import type { Registration, VerifiedRegistration } from '../ports/passkeys.js';

/** What was stored of a passkey when it was registered. */
export interface RegisteredAuthenticator {
  /** Base64url. */
  readonly credentialId: string;
  /** COSE_Key, base64url. */
  readonly publicKey: string;
  /** SHA-256 of the RP id, hex. */
  readonly rpIdHash: string;
}

/** Accepted origins, exactly as a browser serializes them; without a list, see `originProblem`. */
export interface OriginOptions {
  readonly allowedOrigins?: readonly string[];
}

interface ClientData {
  readonly type: string;
  readonly challenge: string;
  readonly origin: string;
  readonly crossOrigin: unknown;
  readonly topOrigin: unknown;
}

/** Builds a refusal that names the caller's field or signature. */
type Refuse = (reason: string, cause?: unknown) => CoordinatorError;

const FLAG = {
  userPresent: 0x01,
  userVerified: 0x04,
  backupEligible: 0x08,
  backupState: 0x10,
  attested: 0x40,
  extensions: 0x80,
};

/**
 * The formats whose statement is verified; android-safetynet is not among them, because its service no longer exists.
 * Typed as strings because the value that is looked up comes from the client.
 */
const ATTESTATION_FORMATS: readonly string[] = ['none', 'packed', 'tpm', 'android-key', 'apple', 'fido-u2f'];
/** The object identifier 2.5.29.31 in DER. */
const CRL_DISTRIBUTION_POINTS = Buffer.from('0603551d1f', 'hex');
const MAX_ATTESTATION_LENGTH = 65_536;
/** Android's chains have up to five, others one to three; those of security chips have up to 2 kB each. */
const MAX_CERTIFICATES = 6;
const MAX_CERTIFICATE_BYTES = 2_560;
/** Of all certificates in the registrations of one request. */
const MAX_REQUEST_CERTIFICATE_BYTES = 16_384;

/**
 * How many bytes of certificates the registrations of one request may have together: reading one of many short names
 * takes several microseconds for each of its bytes.
 */
export class CertificateRoom {
  private left = MAX_REQUEST_CERTIFICATE_BYTES;

  /** @throws {CoordinatorError} what `refuse` makes, if there is no room for so many bytes more */
  take(bytes: number, refuse: Refuse): void {
    if (bytes > this.left) {
      throw refuse(
        `has ${bytes} bytes of certificates, and only ${this.left} are left of ${MAX_REQUEST_CERTIFICATE_BYTES} for a request: ` +
          'register fewer at once, or without attestation (`none`)',
      );
    }
    this.left -= bytes;
  }
}

/**
 * The cheap part of the verification, before the body is parsed or a user looked up: an assertion (`webauthn.get`)
 * whose challenge is SHA-256 of the body in hex. Throws UNAUTHENTICATED SIGNATURE_INVALID.
 */
export function checkWebAuthnChallenge(stamp: WebAuthnStamp, body: Uint8Array): void {
  checkAssertionClientData(readClientData(stamp.clientDataJson, refuseSignature), challengeOfBody(body));
}

/**
 * Verifies a passkey stamp over these body bytes by this passkey (WebAuthn level 3, section 7.2; docs/protocol.md, passkey stamps). The user must be present; user verification is reported, not required. Throws UNAUTHENTICATED
 * SIGNATURE_INVALID naming the check that failed; returns the counter to store, which is not judged here (`isStaleCounter`).
 */
export function verifyWebAuthnStamp(
  stamp: WebAuthnStamp,
  body: Uint8Array,
  authenticator: RegisteredAuthenticator,
  options: OriginOptions,
): Promise<{ signCount: number; userVerified: boolean }> {
  return verifyAssertion(stamp, challengeOfBody(body), authenticator, options);
}

/** Whether that key (COSE, base64url) signed a passkey stamp. Whoever accepts the stamp checks everything else. */
export async function isSignedByPasskey(stamp: WebAuthnStamp, publicKey: string): Promise<boolean> {
  const clientDataHash = sha256(Buffer.from(stamp.clientDataJson, 'base64url'));
  const signed = Buffer.concat([decodeBase64(stamp.authenticatorData) ?? Buffer.alloc(0), clientDataHash]);
  try {
    await verifyCoseSignature(publicKey, signed, decodeBase64(stamp.signature) ?? Buffer.alloc(0));
    return true;
  } catch (error) {
    if (error instanceof CoordinatorError) return false;
    throw error;
  }
}

/** `verifyWebAuthnStamp` for any challenge: `challenge` says which strings (base64url, as in the client data) fit. */
export async function verifyAssertion(
  stamp: WebAuthnStamp,
  challenge: ExpectedChallenge,
  authenticator: RegisteredAuthenticator,
  { allowedOrigins }: OriginOptions,
): Promise<{ signCount: number; userVerified: boolean }> {
  const refuse = refuseSignature;
  if (stamp.credentialId !== authenticator.credentialId) {
    throw refuse(`credential id is \`${stamp.credentialId}\`, but the passkey is \`${authenticator.credentialId}\``);
  }
  const clientData = readClientData(stamp.clientDataJson, refuse);
  checkAssertionClientData(clientData, challenge);

  const authenticatorData = decodeBase64(stamp.authenticatorData);
  if (authenticatorData === undefined || authenticatorData.length < 37) {
    throw refuse(`authenticatorData is ${authenticatorData?.length ?? 0} bytes long, but must have at least 37`);
  }
  const rpIdHash = authenticatorData.toString('hex', 0, 32);
  const problem = originProblem(clientData, rpIdHash, allowedOrigins);
  if (problem !== undefined) throw refuse(problem);
  if (rpIdHash !== authenticator.rpIdHash.toLowerCase()) {
    throw refuse(`rpIdHash is \`${rpIdHash}\`, but the passkey was registered for \`${authenticator.rpIdHash}\``);
  }
  const flags = authenticatorData.readUInt8(32);
  if ((flags & FLAG.userPresent) === 0)
    throw refuse('the user present flag is not set: the user must touch the passkey');
  if ((flags & FLAG.backupState) !== 0 && (flags & FLAG.backupEligible) === 0) {
    throw refuse('the flags say that the passkey is backed up but not eligible for backup');
  }
  if (authenticatorData.length > 37 && (flags & (FLAG.attested | FLAG.extensions)) === 0) {
    throw refuse(`authenticatorData has ${authenticatorData.length - 37} more bytes than its flags announce`);
  }

  const clientDataHash = sha256(Buffer.from(stamp.clientDataJson, 'base64url'));
  const signed = Buffer.concat([authenticatorData, clientDataHash]);
  await verifyCoseSignature(authenticator.publicKey, signed, decodeBase64(stamp.signature) ?? Buffer.alloc(0));

  return { signCount: authenticatorData.readUInt32BE(33), userVerified: (flags & FLAG.userVerified) !== 0 };
}

/**
 * Whether a signature counter has not grown, a sign that the passkey may have been copied (WebAuthn level 3, section
 * 6.1.1). Passkeys without a counter always send 0.
 */
export function isStaleCounter(signCount: number, highestSeen: number): boolean {
  return (signCount !== 0 || highestSeen !== 0) && signCount <= highestSeen;
}

/** Whether a passkey may be on several devices, each with a counter of its own, so that counters say nothing about copies. */
export function isBackupEligible({ authenticatorData }: Pick<WebAuthnStamp, 'authenticatorData'>): boolean {
  return ((decodeBase64(authenticatorData)?.[32] ?? 0) & FLAG.backupEligible) !== 0;
}

/**
 * Verifies a registration (WebAuthn level 3, section 7.1) against itself, because the client's RP id is unknown here:
 * the origin must be allowed or its host match the RP id hash, the challenge must be the one sent along, and the
 * attestation statement must be signed as its format requires. Whether its certificates come from a trusted maker is
 * not judged, and nothing is fetched. Throws INVALID_ARGUMENT naming the field.
 */
export async function verifyRegistration(
  input: Registration,
  room = new CertificateRoom(),
): Promise<VerifiedRegistration & { readonly origin: string }> {
  const { challenge, attestation, allowedOrigins } = input;
  if (challenge.length === 0 || challenge.length > 256) {
    throw invalidField('challenge', `has ${challenge.length} characters, but must have 1 to 256`);
  }
  const clientDataBytes = sentBytes('attestation.clientDataJson', attestation.clientDataJson);
  const attestationBytes = sentBytes('attestation.attestationObject', attestation.attestationObject);
  const idBytes = sentBytes('attestation.credentialId', attestation.credentialId);
  if (idBytes.length > maxCredentialIdBytes) {
    throw invalidField('attestation.credentialId', `has ${idBytes.length} bytes, but may have at most 1023`);
  }
  const credentialId = idBytes.toString('base64url');

  const refuseClientData: Refuse = (reason) => invalidField('attestation.clientDataJson', reason);
  const clientData = readClientData(clientDataBytes.toString('base64url'), refuseClientData);
  if (clientData.type !== 'webauthn.create') {
    throw refuseClientData(`type is ${quoted(clientData.type)}, but must be \`webauthn.create\` in a registration`);
  }
  if (!isSameChallenge(clientData.challenge, challenge)) {
    throw refuseClientData(`challenge is ${quoted(clientData.challenge)}, but the request has ${quoted(challenge)}`);
  }

  // Loading the library takes a quarter of a second, which only processes that register passkeys should spend.
  const { SettingsService, verifyRegistrationResponse } = await import('@simplewebauthn/server');
  const helpers = await import('@simplewebauthn/server/helpers');
  const refuseAttestation: Refuse = (reason) => invalidField('attestation.attestationObject', reason);
  const parsed = attempt(refuseAttestation, 'cannot be read', () => {
    const object = helpers.decodeAttestationObject(new Uint8Array(attestationBytes));
    const authenticatorData = helpers.parseAuthenticatorData(object.get('authData'));
    return { format: object.get('fmt'), statement: object.get('attStmt'), authenticatorData };
  });
  const { format, statement, authenticatorData } = parsed;
  if (!ATTESTATION_FORMATS.includes(format)) {
    throw refuseAttestation(
      `format \`${String(format)}\` is not supported: use one of ${ATTESTATION_FORMATS.join(', ')}`,
    );
  }
  const { credentialID, credentialPublicKey } = authenticatorData;
  if (credentialID === undefined || credentialPublicKey === undefined)
    throw refuseAttestation('contains no credential');
  const attestedId = Buffer.from(credentialID).toString('base64url');
  if (attestedId !== credentialId) {
    throw invalidField(
      'attestation.credentialId',
      `is \`${credentialId}\`, but the attestation is for \`${attestedId}\``,
    );
  }
  const rpIdHash = Buffer.from(authenticatorData.rpIdHash).toString('hex');
  const problem = originProblem(clientData, rpIdHash, allowedOrigins);
  if (problem !== undefined) throw refuseClientData(problem);
  const publicKey = Buffer.from(credentialPublicKey).toString('base64url');
  attempt(refuseAttestation, 'has a key that cannot be used', () => coseKey(publicKey));

  const certificates = attempt(refuseAttestation, 'has certificates that cannot be read', () =>
    Array.from(statement.get('x5c') ?? [], (certificate: unknown) => {
      if (!(certificate instanceof Uint8Array)) throw new TypeError('one of `x5c` is no byte string');
      return Buffer.from(certificate);
    }),
  );
  const largest = certificates.reduce((most, { length }) => Math.max(most, length), 0);
  if (certificates.length > MAX_CERTIFICATES || largest > MAX_CERTIFICATE_BYTES) {
    throw refuseAttestation(
      `has ${certificates.length} certificates of up to ${largest} bytes, but may have ${MAX_CERTIFICATES} of up to ` +
        `${MAX_CERTIFICATE_BYTES}: register without attestation (\`none\`)`,
    );
  }
  const bytes = certificates.reduce((sum, { length }) => sum + length, 0);
  room.take(bytes, refuseAttestation);
  // The library would fetch the revocation lists named by these certificates before it knows whose they are.
  if (format === 'android-key' && certificates.some((certificate) => certificate.includes(CRL_DISTRIBUTION_POINTS))) {
    throw refuseAttestation(
      'refers to revocation lists, which this server does not fetch: register without attestation (`none`)',
    );
  }
  // With roots set, the library fetches revocation lists from addresses in certificates that an owner of a genuine
  // device can issue below its attested key: a request forger's tool, for a judgement of trust that nobody asks for.
  for (const identifier of ['apple', 'android-key'] as const) {
    SettingsService.setRootCertificates({ identifier, certificates: [] });
  }

  const verified = await verifyRegistrationResponse({
    response: {
      id: credentialId,
      rawId: credentialId,
      type: 'public-key',
      clientExtensionResults: {},
      response: {
        clientDataJSON: clientDataBytes.toString('base64url'),
        attestationObject: attestationBytes.toString('base64url'),
      },
    },
    expectedChallenge: (sent) => isSameChallenge(sent, challenge),
    expectedOrigin: clientData.origin,
    requireUserVerification: false,
    supportedAlgorithmIDs: [-7, -8, -257],
  }).catch((cause: unknown) => {
    throw refuseAttestation(`was refused: ${messageOf(cause)}`, cause);
  });
  if (!verified.verified) throw refuseAttestation(`has an invalid statement of format \`${format}\``);
  const { aaguid, credential } = verified.registrationInfo;
  return {
    credentialId,
    publicKey,
    aaguid,
    attestationType: format,
    rpIdHash,
    signCount: credential.counter,
    origin: clientData.origin,
    transports: attestation.transports,
  };
}

/** What a registration says that was verified before it was recorded. */
export async function claimedRegistration({
  attestationObject,
  transports,
}: Registration['attestation']): Promise<VerifiedRegistration> {
  const { convertAAGUIDToString, decodeAttestationObject, parseAuthenticatorData } =
    await import('@simplewebauthn/server/helpers');
  const object = decodeAttestationObject(new Uint8Array(sentBytes('attestation.attestationObject', attestationObject)));
  const { aaguid, credentialID, credentialPublicKey, rpIdHash, counter } = parseAuthenticatorData(
    object.get('authData'),
  );
  const base64url = (bytes = new Uint8Array()) => Buffer.from(bytes).toString('base64url');
  return {
    credentialId: base64url(credentialID),
    publicKey: base64url(credentialPublicKey),
    aaguid: convertAAGUIDToString(aaguid ?? new Uint8Array(16)),
    attestationType: object.get('fmt'),
    rpIdHash: Buffer.from(rpIdHash).toString('hex'),
    signCount: counter,
    transports,
  };
}

/** Whether a challenge in the client data is the expected one, and how to describe what was expected. */
export interface ExpectedChallenge {
  readonly matches: (challenge: string) => boolean;
  readonly description: string;
}

/** The challenge is text, the hex of the hash; some clients' platforms encode that text in base64 once more. */
function challengeOfBody(body: Uint8Array): ExpectedChallenge {
  const expected = sha256(body).toString('hex');
  return {
    matches: (challenge) => {
      const once = decodeBase64(challenge)?.toString('latin1');
      return once === expected || (once !== undefined && decodeBase64(once)?.toString('latin1') === expected);
    },
    description: `the SHA-256 of the ${body.length} body bytes in hex, \`${expected}\``,
  };
}

function checkAssertionClientData({ type, challenge }: ClientData, expected: ExpectedChallenge): void {
  if (type !== 'webauthn.get')
    throw refuseSignature(`type is ${quoted(type)}, but must be \`webauthn.get\` in an assertion`);
  if (!expected.matches(challenge)) {
    throw refuseSignature(`challenge is ${quoted(challenge)}, but must be base64url of ${expected.description}`);
  }
}

/** Unknown members are tolerated: browsers add some, to keep readers from comparing templates (WebAuthn, section 5.8.1). */
function readClientData(base64url: string, refuse: Refuse): ClientData {
  const bytes = decodeBase64(base64url);
  if (bytes === undefined) throw refuse('clientDataJson is not base64url');
  const parsed = attempt(refuse, 'clientDataJson is not JSON in UTF-8', (): unknown =>
    JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)),
  );
  if (typeof parsed !== 'object' || parsed === null) throw refuse('clientDataJson is not a JSON object');
  const members = new Map<string, unknown>(Object.entries(parsed));
  const text = (name: string): string => {
    const value = members.get(name);
    if (typeof value !== 'string') throw refuse(`clientDataJson has no string member ${name}`);
    return value;
  };
  return {
    type: text('type'),
    challenge: text('challenge'),
    origin: text('origin'),
    crossOrigin: members.get('crossOrigin'),
    topOrigin: members.get('topOrigin'),
  };
}

/**
 * Why an origin is refused, or undefined. With a list, it must be in it, exactly. Without one: https, or http on a
 * loopback host, where the host or a parent domain of it hashes to the RP id hash; or a native app's, which the
 * platform binds to the RP id by other means. Iframes of other sites are always refused.
 */
function originProblem(
  { origin, crossOrigin, topOrigin }: ClientData,
  rpIdHash: string,
  allowedOrigins: readonly string[] | undefined,
): string | undefined {
  if (crossOrigin !== undefined && crossOrigin !== false) {
    return `crossOrigin is ${quoted(crossOrigin)}: passkeys are not accepted from within another site's page`;
  }
  if (topOrigin !== undefined) {
    return `topOrigin is ${quoted(topOrigin)}: passkeys are not accepted from within another site's page`;
  }
  if (allowedOrigins !== undefined) {
    if (allowedOrigins.includes(origin)) return undefined;
    return `origin ${quoted(origin)} is not one of the allowed origins \`${allowedOrigins.join('`, `')}\``;
  }
  if (/^android:apk-key-hash:[A-Za-z0-9_-]{27,43}={0,2}$|^ios:bundle-id:[A-Za-z0-9.-]{1,155}$/.test(origin))
    return undefined;

  const url = URL.canParse(origin) ? new URL(origin) : undefined;
  if (url === undefined || url.origin !== origin)
    return `origin ${quoted(origin)} is not a web origin such as https://example.com`;
  const { protocol, hostname } = url;
  const isLoopback = /^(?:127\.0\.0\.1|\[::1\]|(?:[^.]+\.)*localhost)$/.test(hostname);
  if (protocol !== 'https:' && !(protocol === 'http:' && isLoopback)) {
    return `origin ${quoted(origin)} is not https (http is accepted on localhost only)`;
  }
  if (rpIdsOf(hostname).some((rpId) => sha256(Buffer.from(rpId)).toString('hex') === rpIdHash)) return undefined;
  return `rpIdHash \`${rpIdHash}\` is the hash of neither the host of origin ${quoted(origin)} nor a parent domain of it`;
}

/**
 * The host and its parent domains down to two labels; browsers allow one label, or an address, only as the whole host.
 */
function rpIdsOf(hostname: string): string[] {
  const labels = hostname.split('.');
  if (hostname.startsWith('[') || /^[\d.]+$/.test(hostname)) return [hostname];
  const parents = labels.map((_, index) => labels.slice(index)).filter((rest) => rest.length >= 2);
  const rpIds = [hostname, ...parents.map((rest) => rest.join('.'))];
  return labels.at(-1) === 'localhost' ? [...rpIds, 'localhost'] : rpIds;
}

async function verifyCoseSignature(publicKey: string, signed: Uint8Array, signature: Uint8Array): Promise<void> {
  const { algorithm, keyObject } = attempt(refuseSignature, 'the stored key cannot be used', () => coseKey(publicKey));
  const problem =
    algorithm === -7
      ? ecdsaSignatureProblem(signature, 'p256')
      : algorithm === -8
        ? ed25519SignatureProblem(signature)
        : undefined;
  if (problem !== undefined) throw refuseSignature(problem);
  if (!(await verifySignature(algorithm === -8 ? null : 'sha256', signed, keyObject, signature))) {
    throw refuseSignature(
      'the signature was not made by this passkey over authenticatorData and the hash of clientDataJson',
    );
  }
}

/** Compared as bytes, so that padding and alphabet do not matter; plain text counts as its UTF-8 bytes. */
function isSameChallenge(inClientData: string, sent: string): boolean {
  const bytes = decodeBase64(inClientData);
  if (bytes === undefined) return false;
  return decodeBase64(sent)?.equals(bytes) === true || Buffer.from(sent).equals(bytes);
}

function sentBytes(field: string, text: string): Buffer {
  if (text.length > MAX_ATTESTATION_LENGTH)
    throw invalidField(field, `has ${text.length} characters, which is too many`);
  const bytes = decodeBase64(text);
  if (bytes === undefined || bytes.length === 0) throw invalidField(field, 'is not base64url');
  return bytes;
}

function refuseSignature(reason: string, cause?: unknown): CoordinatorError {
  return new CoordinatorError('UNAUTHENTICATED', `could not verify WebAuthN signature: ${reason}`, {
    category: 'SIGNATURE_INVALID',
    cause,
  });
}

function attempt<Value>(refuse: Refuse, what: string, read: () => Value): Value {
  try {
    return read();
  } catch (cause) {
    throw refuse(`${what}: ${messageOf(cause)}`, cause);
  }
}

/** A value from the client in backticks, truncated if long; for an object, only that it is one. */
function quoted(value: unknown): string {
  if (typeof value === 'string') return `\`${value.slice(0, 200)}\``;
  return typeof value === 'boolean' || typeof value === 'number' ? `\`${value}\`` : `of type ${typeof value}`;
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message.replace(/\s+/g, ' ').slice(0, 300) : 'unknown reason';
}

function sha256(bytes: Uint8Array): Buffer {
  return createHash('sha256').update(bytes).digest();
}
