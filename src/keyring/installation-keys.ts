import { bootStream } from '../domain/boots.js';
import { installationVault, vaultStream } from '../domain/vault-streams.js';
import { isBegun, type EventStore } from '../ledger/event-store.js';
import type { Vault } from '../vault/vault.js';
import type { Randomness } from '../ports/randomness.js';
import { generatePrivateKey, publicKeyOf, uncompressPublicKey } from './curves.js';
import { signBytesP256 } from './p256.js';

/**
 * Keys of the installation itself (docs/protocol.md, keys of the installation). `signer` signs export and import bundles, `notarizer`
 * session tokens, `verification-token` verification tokens and OTP target bundles, `oidc-issuer` the OIDC tokens that
 * we issue; clients encrypt to `oauth-secret` and `on-ramp`; `webhook` (Ed25519) signs deliveries; `otp-code` keys the
 * hashes of one-time codes, `read-session` those of read-only sessions, and `sends` those of message recipients; these
 * three have no public part. `attestation-root` issues the certificates of boot proofs.
 */
const INSTALLATION_KEYS = [
  'signer',
  'notarizer',
  'verification-token',
  'oidc-issuer',
  'oauth-secret',
  'on-ramp',
  'webhook',
  'otp-code',
  'read-session',
  'message-counts',
  'attestation-root',
] as const;

/** Keys that only this installation uses. */
const symmetricKeys = ['otp-code', 'read-session', 'message-counts'] as const;
type SymmetricKey = (typeof symmetricKeys)[number];

export type InstallationKey = (typeof INSTALLATION_KEYS)[number];
type SigningKey = 'signer' | 'notarizer' | 'verification-token' | 'oidc-issuer';

/** The vault of these keys, and what takes the place of an organization in its seals. */
const place = { vaultId: installationVault, organizationId: 'installation' };

/** The store has lost the keys that this installation has published: new ones in their place would be another one's. */
class LostInstallationKeys extends Error {
  constructor() {
    super(
      `this installation has booted before, but its keys are missing (stream \`${vaultStream(installationVault)}\`), which sign bundles, ` +
        'tokens, webhooks and boot proofs: restore a backup of the store that has them; nothing was created in their place',
    );
    this.name = 'LostInstallationKeys';
  }
}

/** The installation's keys, sealed in the vault and opened for each use. */
export class InstallationKeys {
  private constructor(
    private readonly vault: Vault,
    private readonly randomness: Randomness,
    /** Compressed SEC1 points, or the 32 bytes of the Ed25519 key, lower-case hex. */
    private readonly publicKeys: ReadonlyMap<InstallationKey, string>,
  ) {}

  /**
   * Creates the missing keys; several coordinators that start at once all end up with the same keys.
   * @throws {LostInstallationKeys} if there are none, although there were when the installation booted
   */
  static async open(
    vault: Vault,
    { store, randomness }: { readonly store: Pick<EventStore, 'read'>; readonly randomness: Randomness },
  ): Promise<InstallationKeys> {
    // INVARIANT: asked first. Keys are sealed before a boot is recorded, so another coordinator's first start in between
    // cannot look like a loss.
    const hasBooted = await isBegun(store, bootStream);
    const known = new Set(await vault.names(place.vaultId));
    if (hasBooted && known.size === 0) throw new LostInstallationKeys();
    const missing = INSTALLATION_KEYS.filter((name) => !known.has(name));
    if (missing.length > 0) {
      const secrets = missing.map((name) => ({
        name,
        secret: generatePrivateKey(curveOf(name), (count) => randomness.bytes(count)),
      }));
      try {
        await vault.seal(place.vaultId, place.organizationId, secrets);
      } finally {
        for (const { secret } of secrets) secret.fill(0);
      }
    }
    const publicKeys = new Map<InstallationKey, string>();
    for (const name of INSTALLATION_KEYS) {
      if (isSymmetric(name)) continue;
      const publicKey = await vault.open({ ...place, name }, (key) => publicKeyOf(curveOf(name), key).toString('hex'));
      publicKeys.set(name, publicKey);
    }
    return new InstallationKeys(vault, randomness, publicKeys);
  }

  /** Opens a key while `use` runs, and wipes it afterwards. */
  use<Result>(name: InstallationKey, use: (key: Buffer) => Result | Promise<Result>): Promise<Result> {
    return this.vault.open({ ...place, name }, use);
  }

  /** Signs with a key on P-256: r ‖ s over SHA-256 of the bytes; see `signBytesP256`. */
  sign(name: SigningKey, bytes: Uint8Array): Promise<Uint8Array> {
    return this.use(name, (key) => signBytesP256(bytes, key, this.randomness));
  }

  /** The public part as hex: compressed, or for bundle signers uncompressed, as clients compare it. */
  publicKey(name: Exclude<InstallationKey, SymmetricKey>, form: 'compressed' | 'uncompressed'): string {
    const compressed = this.publicKeys.get(name)!;
    if (form === 'compressed' || name === 'webhook') return compressed;
    return uncompressPublicKey('CURVE_P256', Buffer.from(compressed, 'hex')).toString('hex');
  }
}

function isSymmetric(name: InstallationKey): name is SymmetricKey {
  return symmetricKeys.some((one) => one === name);
}

function curveOf(name: InstallationKey) {
  return name === 'webhook' ? 'CURVE_ED25519' : 'CURVE_P256';
}
