/** SHA-384 measurements of what booted, 48 bytes each. */
export interface Measurements {
  /** The program's files. */
  readonly code: Uint8Array;
  /** The packages installed with it. */
  readonly dependencies: Uint8Array;
  /** The settings it runs with, except secrets. */
  readonly configuration: Uint8Array;
}

/** The register of the attestation document for each measurement. */
export const registers = { code: 0, dependencies: 1, configuration: 2 } as const satisfies Record<
  keyof Measurements,
  number
>;

export const ATTESTOR = Symbol('Attestor');

/**
 * Vouches for a boot. `software-attestor.ts` is the only adapter: it signs what the process says about itself. One for
 * an enclave would ask the hardware, which measures by itself and ignores `measurements`.
 */
export interface Attestor {
  /** Its name in the manifest: readers of a proof must not have to guess. */
  readonly kind: string;
  readonly statement: string;
  /** DER of the root certificate of its documents; verifiers pin it. */
  readonly root: Uint8Array;
  /** A COSE_Sign1 of an attestation document that binds the key and the data. */
  attest(claim: {
    readonly publicKey: Uint8Array;
    readonly userData: Uint8Array;
    readonly measurements: Measurements;
  }): Promise<Uint8Array>;
}

/** Format of our manifests. */
export const manifestVersion = 'countersign-1';
