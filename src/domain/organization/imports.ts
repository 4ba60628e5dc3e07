import { CoordinatorError } from '../errors.js';
import type { DomainEvent, Evolvers } from './event.js';
import type { OrganizationView } from './organization.js';

/** A user's one waiting import of a kind: the target key it must be sealed to lies in the vault of that id. */
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
  /** It was used, or another has taken its place; its target key is shredded. */
  | DomainEvent<'ImportEnded', { importId: string; vaultId: string }>;

export const evolveImports: Evolvers<ImportEvent> = {
  ImportStarted(organization, { importId, userId, kind, vaultId }, at) {
    organization.imports.set(importId, { importId, userId, kind, vaultId, createdAt: at });
  },
  ImportEnded(organization, { importId }) {
    organization.imports.delete(importId);
  },
};

/** The import of a kind that waits for a user's bundle, if there is one. */
function waitingImport(
  { imports }: OrganizationView,
  userId: string,
  kind: PendingImport['kind'],
): PendingImport | undefined {
  return [...imports.values()].find((one) => one.userId === userId && one.kind === kind);
}

/** The import of a kind that waits for a user's bundle. @throws {CoordinatorError} FAILED_PRECONDITION */
export function existingImport(
  organization: OrganizationView,
  userId: string,
  kind: PendingImport['kind'],
): PendingImport {
  const pending = waitingImport(organization, userId, kind);
  if (pending) return pending;
  const noun = kind === 'wallet' ? 'wallet' : 'private key';
  throw new CoordinatorError(
    'FAILED_PRECONDITION',
    `no import of a ${noun} waits for user \`${userId}\`: begin one with init_import_${noun.replace(' ', '_')}, ` +
      `each import bundle can be used once`,
    { category: 'REQUEST_INVALID' },
  );
}

/** The events that begin an import. It takes the place of the one that waits for the user, whose target key is shredded. */
export function importStarted(
  organization: OrganizationView,
  started: Extract<ImportEvent, { type: 'ImportStarted' }>['data'],
): ImportEvent[] {
  const replaced = waitingImport(organization, started.userId, started.kind);
  return [...(replaced ? [importEnded(replaced)] : []), { type: 'ImportStarted', data: started }];
}

/** The event that ends an import; its vault is shredded. */
export function importEnded({ importId, vaultId }: PendingImport): ImportEvent {
  return { type: 'ImportEnded', data: { importId, vaultId } };
}
