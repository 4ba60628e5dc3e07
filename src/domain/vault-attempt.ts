/**
 * Which run of `prepare` a vault belongs to, as its first event says. An event in that organization's stream after that
 * revision keeps the vault, or nothing does (docs/adr/0006).
 */
export interface VaultAttempt {
  readonly attemptId: string;
  /** Where a decision would name the vault. */
  readonly organizationId: string;
  /** Of the request or vote that it was prepared for. */
  readonly fingerprint: string;
  /** Last revision of the organization's stream before it. */
  readonly revision: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** The start of such a vault, as read models see it. */
export interface AttemptedVaultEvent {
  readonly type: 'SecretSealed';
  readonly data: {
    readonly vaultId: string;
    readonly attempt: Pick<VaultAttempt, 'organizationId' | 'revision' | 'at'>;
  };
}
