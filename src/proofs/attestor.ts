/** SHA-384 measurements of what booted, 48 bytes each. */
export interface Measurements {
  /** The files of the program. */
  readonly code: Uint8Array;
  /** The packages that it was installed with. */
  readonly dependencies: Uint8Array;
  /** The settings that it runs with, secrets apart. */
  readonly configuration: Uint8Array;
}

/** In which register of the attestation document each measurement stands. */
export const registers = { code: 0, dependencies: 1, configuration: 2 } as const satisfies Record<
  keyof Measurements,
  number
>;

export const ATTESTOR = Symbol('Attestor');

/**
 * Vouches for a boot. `software-attestor.ts` is the only adapter: it signs what the process says of itself. One for an
 * enclave would ask the hardware, which measures by itself and takes no notice of `measurements`.
 */
export interface Attestor {
  /** What it is, for the manifest: whoever reads a proof must not have to guess. */
  readonly kind: string;
  readonly statement: string;
  /** DER of the certificate that its documents chain to; verifiers pin it. */
  readonly root: Uint8Array;
  /** A COSE_Sign1 of an attestation document that binds the key and the data. */
  attest(claim: {
    readonly publicKey: Uint8Array;
    readonly userData: Uint8Array;
    readonly measurements: Measurements;
  }): Promise<Uint8Array>;
}

/** Shape of our manifests. */
export const manifestVersion = 'countersign-1';
