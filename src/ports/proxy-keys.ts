import type { SecretPlace } from './keyring.js';

/** The port for API keys of auth proxies (see `keyring/proxy-keys.ts`). */
export interface ProxyKeyPort {
  /** A new key, sealed; its public part is a compressed P-256 point, hex. */
  create(organizationId: string): Promise<{ readonly vaultId: string; readonly publicKey: string }>;
}

export const PROXY_STAMPS = Symbol('ProxyStamps');

/** The port for stamps with those keys. */
export interface ProxyStampPort {
  /** The `X-Stamp` of a request body. @throws {CoordinatorError} NOT_FOUND once the key was destroyed */
  stamp(place: SecretPlace, body: string): Promise<string>;
}
