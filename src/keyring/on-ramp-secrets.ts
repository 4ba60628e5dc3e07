import { invalidField } from '../domain/errors.js';
import type { SecretVault } from '../vault/attempt-vault.js';
import { openCredentialBundle } from './hpke.js';
import type { InstallationKeys } from './installation-keys.js';

interface Ports {
  readonly vault: SecretVault;
  readonly keys: InstallationKeys;
  /** Creates the id of a new vault. */
  readonly newId: () => string;
}

/** The name of each key in its vault. */
const secretNames = { encryptedSecretApiKey: 'secret-api-key', encryptedPrivateApiKey: 'private-api-key' } as const;

type SealedKeys = { readonly encryptedSecretApiKey: string; readonly encryptedPrivateApiKey?: string };

/** Keys of accounts at fiat on-ramps: encrypted by their owner to the installation, and kept sealed in the vault. */
export class OnRampSecrets {
  constructor(private readonly ports: Ports) {}

  /**
   * Opens what was encrypted to the installation's key `on-ramp` (docs/protocol.md, secrets of clients) and seals it in a new
   * vault, whose id it returns. Nothing is kept unless all of it opens.
   * @throws {CoordinatorError} INVALID_ARGUMENT for what does not open, or is not a key
   */
  async keep(organizationId: string, sealed: SealedKeys): Promise<string> {
    const { vault, keys, newId } = this.ports;
    const secrets: { name: string; secret: Buffer }[] = [];
    try {
      for (const field of ['encryptedSecretApiKey', 'encryptedPrivateApiKey'] as const) {
        const bundle = sealed[field];
        if (bundle === undefined) continue;
        const title = `parameters.${field}`;
        const secret = await keys.use('on-ramp', (key) =>
          openCredentialBundle(key, bundle, title, '`onRampEncryption` of /public/v1/discovery/keys'),
        );
        secrets.push({ name: secretNames[field], secret });
        if (!isText(secret)) throw invalidField(title, 'the sealed content is not text, so it is not a provider key');
      }
      const vaultId = newId();
      await vault.seal(vaultId, organizationId, secrets);
      return vaultId;
    } finally {
      for (const { secret } of secrets) secret.fill(0);
    }
  }
}

/** Printable ASCII and line breaks, which PEM keys have (RFC 7468); anything else was cut off, or never was a key. */
function isText(secret: Buffer): boolean {
  return (
    secret.some((byte) => byte > 0x20) &&
    secret.every((byte) => (byte >= 0x20 && byte <= 0x7e) || byte === 0x0a || byte === 0x0d)
  );
}
