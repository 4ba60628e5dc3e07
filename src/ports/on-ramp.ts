/** The port for keys of accounts at fiat on-ramps (see `keyring/on-ramp-secrets.ts`). */
export interface OnRampSecretPort {
  /**
   * Seals in a new vault, whose id it returns, what the owner has encrypted to this installation (docs/protocol.md, secrets of clients).
   * @throws {CoordinatorError} INVALID_ARGUMENT
   */
  keep(
    organizationId: string,
    sealed: { readonly encryptedSecretApiKey: string; readonly encryptedPrivateApiKey?: string },
  ): Promise<string>;
}
