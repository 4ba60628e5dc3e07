import type { AddressFormat, Curve, MnemonicLanguage } from '../domain/key-formats.js';
import type { KeyAddress } from '../domain/organization/private-keys.js';

/** A requested account. */
export interface AccountToDerive {
  readonly curve: Curve;
  readonly path: string;
  readonly addressFormat: AddressFormat;
}

/** A derived account; `path` is normalized, `publicKey` lower-case hex. */
export interface DerivedAccount extends AccountToDerive {
  readonly address: string;
  readonly publicKey: string;
}

/** Where a sealed secret is stored. */
export interface SecretPlace {
  readonly organizationId: string;
  readonly vaultId: string;
}

/** A private key that is sealed but not recorded yet. */
export interface NewPrivateKey {
  readonly vaultId: string;
  readonly publicKey: string;
  readonly addresses: readonly KeyAddress[];
}

/** A signature as the API returns it: r and s 64 hex characters, v `00` or `01`. */
export interface RawSignature {
  readonly r: string;
  readonly s: string;
  readonly v: string;
}

/**
 * The port for key material (see `keyring/keyring.ts`). Secrets go in and stay in; what comes out is public, or sealed.
 */
export interface KeyringPort {
  createWallet(input: {
    readonly organizationId: string;
    /** Words: 12, 15, 18, 21 or 24. */
    readonly mnemonicLength: number;
    readonly accounts: readonly AccountToDerive[];
  }): Promise<{ readonly vaultId: string; readonly accounts: readonly DerivedAccount[] }>;
  /** Derives accounts of a wallet; with `keep`, also seals their keys, so that signing needs no derivation. */
  deriveAccounts(
    wallet: SecretPlace,
    accounts: readonly AccountToDerive[],
    keep: boolean,
  ): Promise<readonly DerivedAccount[]>;
  createPrivateKey(input: {
    readonly organizationId: string;
    readonly curve: Curve;
    readonly addressFormats: readonly AddressFormat[];
  }): Promise<NewPrivateKey>;
  /** A mnemonic, sealed and signed to the target key (docs/protocol.md, export bundles). */
  exportWallet(wallet: SecretPlace, targetPublicKey: string, language: MnemonicLanguage | undefined): Promise<string>;
  /** 32 bytes of a key, sealed and signed to the target key. `secret` names it in its vault. */
  exportKey(key: SecretPlace & { readonly secret: string }, targetPublicKey: string): Promise<string>;
  /** A target key for one import, and the signed bundle that gives it to the user's client (docs/protocol.md, import bundles). */
  startImport(input: {
    readonly organizationId: string;
    readonly userId: string;
  }): Promise<{ readonly vaultId: string; readonly targetPublicKey: string; readonly importBundle: string }>;
  importWallet(
    pending: SecretPlace,
    encryptedBundle: string,
    accounts: readonly AccountToDerive[],
  ): Promise<{ readonly vaultId: string; readonly accounts: readonly DerivedAccount[] }>;
  importPrivateKey(
    pending: SecretPlace,
    encryptedBundle: string,
    key: { readonly curve: Curve; readonly addressFormats: readonly AddressFormat[] },
  ): Promise<NewPrivateKey>;
  /** Signs each payload, in order: digests for ECDSA and Schnorr, whole messages for Ed25519. */
  sign(
    key: SecretPlace & {
      readonly secret: string;
      readonly curve: Curve;
      readonly addressFormat: AddressFormat | undefined;
    },
    payloads: readonly Uint8Array[],
  ): Promise<readonly RawSignature[]>;
}
