/**
 * Of which run of `prepare` a vault is, as its first event says. What keeps it is recorded in the stream of that
 * organization after that revision, or nowhere (docs/adr/0030-what-is-refused-did-not-happen.md).
 */
export interface VaultAttempt {
  readonly attemptId: string;
  /** Where a decision would name the vault. */
  readonly organizationId: string;
  /** Of the request, or the vote, that it was prepared for. */
  readonly fingerprint: string;
  /** Last revision of the organization's stream before. */
  readonly revision: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** The beginning of such a vault, as read models see it. One of an earlier release may be named anywhere in the stream. */
export interface AttemptedVaultEvent {
  readonly type: 'SecretSealed';
  readonly data: {
    readonly vaultId: string;
    readonly attempt: Pick<VaultAttempt, 'organizationId' | 'revision' | 'at'>;
  };
}
