import type { DomainEvent } from './organization/event.js';

/** The stream of an installation that records every boot of every coordinator. */
export const bootStream = 'installation-boots';

/** The proof of a boot (specification, section 2, "Boot proof"). Documents are base64, the key is lower-case hex. */
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

/**
 * What an operator accepted with RESTORED=true: the store had lost events that read models had seen. The read models were rebuilt from
 * what was there.
 */
export interface RestoreFacts {
  /** The last event that the read models had seen; its position is a decimal number. */
  readonly seen: { readonly stream: string; readonly revision: number; readonly position: string };
  /** Position of the last event that was there, a decimal number; -1 if there was none. */
  readonly head: string;
}

export type BootEvent =
  /** DER, base64: the root of a software attestor's certificates. */
  | DomainEvent<'AttestationRootIssued', { certificate: string }>
  | DomainEvent<'CoordinatorBooted', BootFacts>
  | DomainEvent<'HistoryRestored', RestoreFacts>;
