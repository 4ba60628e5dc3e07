import { invalidField } from '../domain/errors.js';
import type { SecretVault } from '../vault/attempt-vault.js';
import type { InstallationKeys } from './installation-keys.js';
import { openEnvelope } from './secret-envelope.js';

interface Ports {
  readonly vault: SecretVault;
  readonly keys: InstallationKeys;
  /** Creates the id of a new vault. */
  readonly newId: () => string;
}

interface Place {
  readonly organizationId: string;
  readonly vaultId: string;
}

const secretName = 'client-secret';
const title = 'parameters.encryptedClientSecret';

/**
 * Client secrets of OAuth 2.0 applications: encrypted by their owner to the installation, and kept sealed in the vault.
 */
export class OauthSecrets {
  constructor(private readonly ports: Ports) {}

  /**
   * Opens what was encrypted to the installation's key `oauth-secret` and seals it in a new vault, whose id it returns.
   * @throws {CoordinatorError} INVALID_ARGUMENT for an envelope that does not open, or an invalid secret
   */
  async keep(organizationId: string, encryptedClientSecret: string): Promise<string> {
    const { vault, keys, newId } = this.ports;
    const secret = await keys.use('oauth-secret', (key) => openEnvelope(key, encryptedClientSecret, title));
    try {
      // RFC 6749, appendix A.2; other characters mean that it was cut off or encoded once too often.
      if (secret.length === 0 || secret.some((byte) => byte < 0x20 || byte > 0x7e)) {
        throw invalidField(title, 'the sealed content is not printable ASCII, so it is not a client secret');
      }
      const vaultId = newId();
      await vault.seal(vaultId, organizationId, [{ name: secretName, secret }]);
      return vaultId;
    } finally {
      secret.fill(0);
    }
  }

  /** Opens a client secret while `use` runs. */
  use<Result>(place: Place, use: (clientSecret: string) => Promise<Result>): Promise<Result> {
    return this.ports.vault.open({ ...place, name: secretName }, (secret) => use(secret.toString('latin1')));
  }
}
