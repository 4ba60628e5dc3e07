import type { DomainEvent } from './organization/event.js';

/** The stream of an installation in which every boot of every coordinator is recorded. */
export const bootStream = 'installation-boots';

/** What proves a boot (specification, section 2, "Boot proof"). Documents are base64, the key is lower-case hex. */
export interface BootFacts {
  /** 130 bytes: the encryption key and the signing key of this boot, both uncompressed P-256 points. */
  readonly ephemeralPublicKey: string;
  /** COSE_Sign1 (RFC 9052) of the attestation document. */
  readonly attestationDocument: string;
  readonly manifest: string;
  /** COSE_Sign1 of the manifest, by the signing key of this boot. */
  readonly manifestEnvelope: string;
  readonly manifestVersion: string;
  readonly deploymentLabel: string;
  readonly app: string;
  readonly owner: string;
}

export type BootEvent =
  /** DER, base64: what the documents of a software attestor chain to. */
  DomainEvent<'AttestationRootIssued', { certificate: string }> | DomainEvent<'CoordinatorBooted', BootFacts>;
