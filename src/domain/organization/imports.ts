import type { DomainEvent, Evolvers } from './event.js';
import { put, remove } from './slices.js';

/** A user's only pending import of a kind: the vault with that id holds the target key that it must be sealed to. */
export interface PendingImport {
  readonly importId: string;
  readonly userId: string;
  readonly kind: 'wallet' | 'private-key';
  readonly vaultId: string;
  readonly createdAt: number;
}

export type ImportEvent =
  | DomainEvent<
      'ImportStarted',
      { importId: string; userId: string; kind: PendingImport['kind']; vaultId: string; targetPublicKey: string }
    >
  /** It was used, or replaced by another; its target key is shredded. */
  | DomainEvent<'ImportClosed', { importId: string; vaultId: string }>;

export const evolveImports: Evolvers<ImportEvent> = {
  ImportStarted(organization, { importId, userId, kind, vaultId }, at) {
    put(organization, 'imports', importId, { importId, userId, kind, vaultId, createdAt: at });
  },
  ImportClosed(organization, { importId }) {
    remove(organization, 'imports', importId);
  },
};
