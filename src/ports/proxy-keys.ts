/** The port for API keys of auth proxies (see `keyring/proxy-keys.ts`). */
export interface ProxyKeyPort {
  /** A new key, sealed; its public part is a compressed P-256 point, hex. */
  create(organizationId: string): Promise<{ readonly vaultId: string; readonly publicKey: string }>;
}
