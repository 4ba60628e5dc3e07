import type { Randomness } from '../ports/randomness.js';
import type { SecretVault } from '../vault/attempt-vault.js';
import { stampHeader } from '../wire/stamp-header.js';
import { generatePrivateKey, publicKeyOf } from './curves.js';
import { derOfP256, signBytesP256 } from './p256.js';

interface Ports {
  readonly vault: SecretVault;
  readonly randomness: Randomness;
  /** Creates the id of a new vault. */
  readonly newId: () => string;
}

interface Place {
  readonly organizationId: string;
  readonly vaultId: string;
}

const secretName = 'api-key';

/** API keys that auth proxies sign with: created here, sealed in the vault, and opened for one stamp at a time. */
export class ProxyKeys {
  constructor(private readonly ports: Ports) {}

  /** A new key in a new vault; its public part is a compressed P-256 point, hex. */
  async create(organizationId: string): Promise<{ vaultId: string; publicKey: string }> {
    const vaultId = this.ports.newId();
    return { vaultId, publicKey: await this.provide({ organizationId, vaultId }) };
  }

  /** The public part of a vault's key, which is created if missing: whoever comes second gets the existing one. */
  async provide(place: Place): Promise<string> {
    const { vault, randomness } = this.ports;
    const key = generatePrivateKey('CURVE_P256', (count) => randomness.bytes(count));
    try {
      await vault.seal(place.vaultId, place.organizationId, [{ name: secretName, secret: key }]);
    } finally {
      key.fill(0);
    }
    return vault.open({ ...place, name: secretName }, (sealed) => publicKeyOf('CURVE_P256', sealed).toString('hex'));
  }

  /** The `X-Stamp` of a request body (docs/protocol.md, API key stamps). @throws {CoordinatorError} NOT_FOUND once it was shredded */
  stamp(place: Place, body: string): Promise<string> {
    const { vault, randomness } = this.ports;
    return vault.open({ ...place, name: secretName }, (key) => {
      const publicKey = publicKeyOf('CURVE_P256', key).toString('hex');
      const signature = derOfP256(signBytesP256(Buffer.from(body), key, randomness)).toString('hex');
      return stampHeader({ publicKey, scheme: 'SIGNATURE_SCHEME_TK_API_P256', signature });
    });
  }
}
