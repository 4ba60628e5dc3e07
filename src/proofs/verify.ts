import { createPublicKey, hash, verify, X509Certificate, type KeyObject } from 'node:crypto';
import { appProofScheme, type AppProof } from '../domain/activity/app-proof.js';
import { decodeAttestationDocument, type AttestationDocument } from './attestation-document.js';
import { manifestVersion, registers } from './attestor.js';
import { checkChain } from './certificates.js';
import { readCoseSign1 } from './cose-sign1.js';

/** A boot proof as `get_boot_proof` returns it. The document has two names: the specification's, and the clients'. */
export interface BootProof {
  readonly ephemeralPublicKeyHex: string;
  readonly cloudAttestationDocB64?: string;
  readonly awsAttestationDocB64?: string;
  readonly qosManifestB64: string;
  readonly qosManifestEnvelopeB64: string;
  readonly qosManifestVersion?: string;
}

/** What the verifier trusts and expects. */
export interface Expected {
  /** The root certificate, PEM or DER. */
  readonly root: string | Uint8Array;
  /** Hex of the expected registers of the document, by number; others are not compared. */
  readonly pcrs?: Readonly<Record<number, string>>;
  /** Hex of SHA-256 of the manifest. */
  readonly manifestSha256?: string;
}

/** The contents of a verified boot proof. */
export interface VerifiedBoot {
  readonly moduleId: string;
  /** When the document was signed, milliseconds since the epoch. */
  readonly timestamp: number;
  /** Hex, by register. */
  readonly pcrs: Readonly<Record<number, string>>;
  readonly manifestSha256: string;
  /** The manifest, if it is one of ours; its claims are the attestor's. */
  readonly manifest: Readonly<Record<string, unknown>> | undefined;
}

/** The payload of a verified app proof. */
export interface VerifiedApp {
  readonly type: string;
  readonly timestampMs: string;
  readonly [member: string]: unknown;
}

/** A proof does not show what it claims. The message names the failed step. */
export class ProofRefused extends Error {
  constructor(step: string, reason: string, options?: ErrorOptions) {
    super(`${step}: ${reason}`, options);
    this.name = 'ProofRefused';
  }
}

/** 65 bytes of an encryption key, 65 of a signing key. */
const ephemeralKeyPattern = /^[0-9a-f]{260}$/;

/** An app proof older than the boot by more than the tolerated clock difference was not made by that boot. */
const clockSkewMs = 5 * 60 * 1000;

/**
 * Verifies a boot proof offline: the document is signed by the key of its certificate (ES384), which chains to the
 * root, as of the signing time; it is about this manifest and this ephemeral key; and if the manifest is one of ours,
 * its own measurements and signature agree.
 * @throws {ProofRefused}
 */
export async function verifyBootProof(proof: BootProof, expected: Expected): Promise<VerifiedBoot> {
  const message = step('attestation document', () => readCoseSign1(base64(documentOf(proof))));
  const document = step('attestation document', () => decodeAttestationDocument(message.payload));
  await checkCertificates(document, expected.root);
  step('attestation document', () => {
    const key = certificateKey(document.certificate);
    if (message.algorithm !== 'ES384') throw new Error(`it is signed with ${message.algorithm}, not ES384`);
    if (!verify('sha384', message.toBeSigned, { key, dsaEncoding: 'ieee-p1363' }, message.signature)) {
      throw new Error('its signature was not made with the key of its certificate');
    }
  });
  const manifestBytes = step('manifest', () => base64(proof.qosManifestB64));
  const manifestSha256 = hash('sha256', manifestBytes, 'hex');
  step('manifest', () => {
    const attested = hex(document.userData);
    if (attested !== manifestSha256)
      throw new Error(`its SHA-256 is ${manifestSha256}, but the document says ${attested}`);
    same('its SHA-256', manifestSha256, expected.manifestSha256);
  });
  step('ephemeral key', () => {
    if (!ephemeralKeyPattern.test(proof.ephemeralPublicKeyHex)) throw new Error('it must be 260 hex characters');
    if (hex(document.publicKey) !== proof.ephemeralPublicKeyHex) {
      throw new Error(
        `the boot proof has ${proof.ephemeralPublicKeyHex}, but the document has ${hex(document.publicKey)}`,
      );
    }
    signingKeyOf(proof.ephemeralPublicKeyHex);
  });
  const pcrs = Object.fromEntries([...document.pcrs].map(([index, value]) => [index, hex(value)]));
  step('measurements', () => {
    for (const [index, value] of Object.entries(expected.pcrs ?? {})) same(`PCR${index}`, pcrs[Number(index)], value);
  });
  const isOurs = proof.qosManifestVersion === manifestVersion;
  const manifest = isOurs ? step('manifest', () => checkManifest(proof, manifestBytes, pcrs)) : undefined;
  const { moduleId, timestamp } = document;
  return { moduleId, timestamp, pcrs, manifestSha256, manifest };
}

/**
 * Verifies an app proof against a boot proof: the boot's key signed the payload, and not before the boot.
 * @throws {ProofRefused}
 */
export async function verifyAppProof(
  proof: AppProof,
  bootProof: BootProof,
  expected: Expected,
): Promise<{ readonly app: VerifiedApp; readonly boot: VerifiedBoot }> {
  const boot = await verifyBootProof(bootProof, expected);
  return step('app proof', () => {
    if (proof.scheme !== appProofScheme) throw new Error(`its scheme is \`${String(proof.scheme)}\``);
    if (proof.publicKey !== bootProof.ephemeralPublicKeyHex) {
      throw new Error('it was signed by the key of another boot: get the boot proof for its publicKey');
    }
    if (!/^[0-9a-f]{128}$/i.test(proof.signature)) throw new Error('its signature must be 128 hex characters');
    if (!isSignedByBoot(proof.publicKey, proof.proofPayload, proof.signature)) {
      throw new Error('its signature does not match its payload');
    }
    const app = JSON.parse(proof.proofPayload) as VerifiedApp;
    if (typeof app !== 'object' || app === null || typeof app.type !== 'string' || !/^\d+$/.test(app.timestampMs)) {
      throw new Error('its payload must be an object with type and timestampMs');
    }
    if (Number(app.timestampMs) < boot.timestamp - clockSkewMs) {
      throw new Error(`it is dated ${app.timestampMs}, before the boot at ${boot.timestamp}`);
    }
    return { app, boot };
  });
}

/** Whether the key of a boot signed a text. @throws {Error} if it is not a key */
export function isSignedByBoot(ephemeralPublicKey: string, text: string, signature: string): boolean {
  const key = signingKeyOf(ephemeralPublicKey);
  return verify('sha256', Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' }, Buffer.from(signature, 'hex'));
}

function documentOf({ awsAttestationDocB64, cloudAttestationDocB64 }: BootProof): string {
  if (awsAttestationDocB64 && cloudAttestationDocB64 && awsAttestationDocB64 !== cloudAttestationDocB64) {
    throw new Error('awsAttestationDocB64 and cloudAttestationDocB64 differ, but must be the same document');
  }
  return awsAttestationDocB64 ?? cloudAttestationDocB64 ?? '';
}

async function checkCertificates(document: AttestationDocument, root: Expected['root']): Promise<void> {
  try {
    const pinned = new Uint8Array(new X509Certificate(root).raw);
    const [top, ...between] = document.cabundle;
    if (!top || !Buffer.from(top).equals(pinned)) {
      throw new Error(`the document chains to a different root than the pinned one (SHA-256 ${fingerprint(pinned)})`);
    }
    await checkChain([document.certificate, ...between.toReversed(), pinned], document.timestamp);
  } catch (cause) {
    throw refusal('certificates', cause);
  }
}

/** Our own manifest must agree with the document. */
function checkManifest(
  proof: BootProof,
  manifestBytes: Uint8Array,
  pcrs: Readonly<Record<number, string>>,
): Readonly<Record<string, unknown>> {
  const envelope = readCoseSign1(base64(proof.qosManifestEnvelopeB64));
  const key = signingKeyOf(proof.ephemeralPublicKeyHex);
  if (!Buffer.from(envelope.payload).equals(manifestBytes))
    throw new Error('its envelope contains a different manifest');
  const isSigned =
    envelope.algorithm === 'ES256' &&
    verify('sha256', envelope.toBeSigned, { key, dsaEncoding: 'ieee-p1363' }, envelope.signature);
  if (!isSigned) throw new Error('its envelope is not signed by the ephemeral key');
  const manifest = JSON.parse(Buffer.from(manifestBytes).toString('utf8')) as {
    readonly measurements?: Readonly<Record<string, { readonly sha384?: string }>>;
  } & Readonly<Record<string, unknown>>;
  for (const [name, register] of Object.entries(registers)) {
    same(`the measurement of ${name}`, manifest.measurements?.[register]?.sha384, pcrs[register]);
  }
  return manifest;
}

function certificateKey(der: Uint8Array): KeyObject {
  const key = new X509Certificate(der).publicKey;
  if (key.asymmetricKeyDetails?.namedCurve !== 'secp384r1') throw new Error('its certificate is not for a P-384 key');
  return key;
}

/** The second half of an ephemeral key. Node refuses points off the curve. */
function signingKeyOf(ephemeralPublicKey: string): KeyObject {
  const point = Buffer.from(ephemeralPublicKey.slice(130), 'hex');
  if (point[0] !== 4) throw new Error('its signing key is not an uncompressed point');
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((part) => part.toString('base64url'));
  return createPublicKey({ key: { kty: 'EC', crv: 'P-256', x: x!, y: y! }, format: 'jwk' });
}

function same(what: string, actual: string | undefined, expected: string | undefined): void {
  if (expected === undefined || actual === expected.toLowerCase()) return;
  throw new Error(`${what} is ${actual ?? 'missing'}, expected ${expected}`);
}

/** Node's decoder skips unknown characters, so that different texts would count as the same bytes. */
function base64(text: string): Buffer {
  if (typeof text !== 'string' || !/^(?:[A-Za-z0-9+/]{4})+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text)) {
    throw new Error('it is not base64');
  }
  return Buffer.from(text, 'base64');
}

const hex = (data: Uint8Array): string => Buffer.from(data).toString('hex');

/** In the format of `openssl x509 -fingerprint -sha256`, without colons. */
const fingerprint = (der: Uint8Array): string => hash('sha256', der, 'hex');

function step<Result>(name: string, run: () => Result): Result {
  try {
    return run();
  } catch (cause) {
    throw refusal(name, cause);
  }
}

function refusal(name: string, cause: unknown): ProofRefused {
  return new ProofRefused(name, cause instanceof Error ? cause.message : String(cause), { cause });
}
