import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import {
  BasicConstraintsExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';

type KeyPair = { readonly publicKey: webcrypto.CryptoKey; readonly privateKey: webcrypto.CryptoKey };

/**
 * The root is trusted because it is pinned, so its dates do not depend on the clock of the first start, which may have
 * been wrong. It has no well-defined end (RFC 5280, section 4.1.2.5).
 */
const rootNotBefore = new Date('2000-01-01T00:00:00Z');
const rootNotAfter = new Date('9999-12-31T23:59:59Z');
/** Clocks of coordinators differ: a leaf is valid from a little before its creation. */
const leafLeadMs = 5 * 60 * 1000;
/** The lifetime of the leaves of AWS Nitro Enclaves. */
const leafLifeMs = 3 * 60 * 60 * 1000;

const rootName = 'CN=Software attestation root (no hardware), O=Countersign';
const leafName = 'CN=Software attestor (no hardware), O=Countersign';

/**
 * A root certificate for its own P-256 key; DER.
 * @param serial 16 random bytes
 */
export async function issueRoot(keys: KeyPair, serial: Uint8Array): Promise<Uint8Array> {
  const certificate = await X509CertificateGenerator.create(
    {
      serialNumber: serialNumber(serial),
      subject: rootName,
      issuer: rootName,
      notBefore: rootNotBefore,
      notAfter: rootNotAfter,
      signingAlgorithm: { name: 'ECDSA', hash: 'SHA-256' },
      publicKey: keys.publicKey,
      signingKey: keys.privateKey,
      extensions: [
        new BasicConstraintsExtension(true, 0, true),
        new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      ],
    },
    webcrypto as Crypto,
  );
  return new Uint8Array(certificate.rawData);
}

/**
 * A certificate for the P-384 key that signs the document of one boot; DER.
 * @param now milliseconds since the epoch
 * @param serial 16 random bytes
 */
export async function issueLeaf(
  root: { readonly certificate: Uint8Array; readonly privateKey: webcrypto.CryptoKey },
  publicKey: webcrypto.CryptoKey,
  { now, serial }: { readonly now: number; readonly serial: Uint8Array },
): Promise<Uint8Array> {
  const certificate = await X509CertificateGenerator.create(
    {
      serialNumber: serialNumber(serial),
      subject: leafName,
      issuer: parseCertificate(root.certificate).subject,
      notBefore: new Date(now - leafLeadMs),
      notAfter: new Date(now + leafLifeMs),
      signingAlgorithm: { name: 'ECDSA', hash: 'SHA-256' },
      publicKey,
      signingKey: root.privateKey,
      extensions: [
        new BasicConstraintsExtension(false, undefined, true),
        new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      ],
    },
    webcrypto as Crypto,
  );
  return new Uint8Array(certificate.rawData);
}

/** @throws {Error} if it is not a certificate */
function parseCertificate(der: Uint8Array): X509Certificate {
  try {
    return new X509Certificate(new Uint8Array(der));
  } catch (cause) {
    throw new Error(`a certificate cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`, {
      cause,
    });
  }
}

/**
 * Verifies a chain as of a time (RFC 5280, section 6.1, without names, policies and revocation): each certificate is
 * signed by the one above it, whose name it has as issuer; all are valid then; those above the leaf may issue
 * certificates, and enough of them below.
 * @param chain DER, the leaf first, the pinned root last
 * @throws {Error} that names the invalid certificate
 */
export async function checkChain(chain: readonly Uint8Array[], at: number): Promise<void> {
  const certificates = chain.map(parseCertificate);
  const date = new Date(at);
  for (const [below, certificate] of certificates.entries()) {
    const issuer = certificates[below + 1] ?? certificate;
    const { subject } = certificate;
    if (certificate.issuer !== issuer.subject) {
      throw new Error(`\`${subject}\` names \`${certificate.issuer}\` as its issuer, not \`${issuer.subject}\``);
    }
    const isSigned = await certificate.verify(
      { publicKey: issuer.publicKey, signatureOnly: true },
      webcrypto as Crypto,
    );
    if (!isSigned) throw new Error(`\`${subject}\` is not signed by \`${issuer.subject}\``);
    if (date < certificate.notBefore || date > certificate.notAfter) {
      throw new Error(
        `\`${subject}\` is valid from ${certificate.notBefore.toISOString()} to ${certificate.notAfter.toISOString()}, ` +
          `and the document was signed at ${date.toISOString()}`,
      );
    }
    if (below === 0) checkLeaf(certificate);
    else checkIssuer(certificate, below - 1);
  }
}

function checkLeaf(leaf: X509Certificate): void {
  if (leaf.getExtension(BasicConstraintsExtension)?.ca) {
    throw new Error(`\`${leaf.subject}\` is an issuer certificate and may not sign documents`);
  }
  const usages = leaf.getExtension(KeyUsagesExtension)?.usages ?? 0;
  if ((usages & KeyUsageFlags.digitalSignature) === 0) {
    throw new Error(`the key of \`${leaf.subject}\` is not allowed to make digital signatures`);
  }
}

function checkIssuer(issuer: X509Certificate, issuersBelow: number): void {
  const { ca = false, pathLength } = issuer.getExtension(BasicConstraintsExtension) ?? {};
  const usages = issuer.getExtension(KeyUsagesExtension)?.usages ?? 0;
  if (!ca || (usages & KeyUsageFlags.keyCertSign) === 0) {
    throw new Error(`\`${issuer.subject}\` may not issue certificates`);
  }
  if (pathLength !== undefined && issuersBelow > pathLength) {
    throw new Error(`\`${issuer.subject}\` allows ${pathLength} issuers below it, but there are ${issuersBelow}`);
  }
}

/** At most 20 bytes and positive (RFC 5280, section 4.1.2.2). */
function serialNumber(serial: Uint8Array): string {
  const positive = Buffer.from(serial);
  positive[0] = (positive[0]! & 0x3f) | 0x40;
  return positive.toString('hex');
}
