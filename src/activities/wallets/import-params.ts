import { CoordinatorError } from '../../domain/errors.js';
import type { ImportEvent, PendingImport } from '../../domain/organization/imports.js';
import { checkLimit } from '../../domain/organization/limits.js';
import type { OrganizationView } from '../../domain/organization/organization.js';
import type { LimitsToCheck } from '../define-activity.js';
import type { RecordedActivity } from '../recorded-activity.js';

/** The pending import of a kind for a user; there is at most one. */
function pendingImportOf(
  organization: OrganizationView,
  userId: string,
  kind: PendingImport['kind'],
): PendingImport | undefined {
  for (const pending of organization.imports.values()) {
    if (pending.userId === userId && pending.kind === kind) return pending;
  }
  return undefined;
}

/**
 * Whether a user may start an import, replacing a pending one of that kind. @throws {CoordinatorError}
 * RESOURCE_EXHAUSTED
 */
export function checkRoomForImport(
  organization: OrganizationView,
  userId: string,
  kind: PendingImport['kind'],
  { limits }: Pick<LimitsToCheck, 'limits'>,
): void {
  const ended = endedImports(organization, userId, kind);
  checkLimit(limits, 'imports', organization.imports.size - ended.length, 1);
}

/** What ends as a user starts an import: a pending one of that kind, and pending ones of deleted users. */
export function endedImports(
  organization: OrganizationView,
  userId: string,
  kind: PendingImport['kind'],
): readonly ImportClosed[] {
  const replaced = pendingImportOf(organization, userId, kind);
  const orphans = [...organization.imports.values()].filter((one) => !organization.users.has(one.userId));
  return [...(replaced ? [replaced] : []), ...orphans].map(importEnded);
}

/** What a user leaves pending who is deleted. */
export function importsEndedWith(organization: OrganizationView, userId: string): readonly ImportClosed[] {
  return [...organization.imports.values()].filter((one) => one.userId === userId).map(importEnded);
}

type ImportClosed = Extract<ImportEvent, { type: 'ImportClosed' }>;

function importEnded({ importId, vaultId }: PendingImport): ImportClosed {
  return { type: 'ImportClosed', data: { importId, vaultId } };
}

/** A started import. */
export function recalledImport(recorded: RecordedActivity<{ importBundle: string }>) {
  const { vaultId, targetPublicKey } = recorded.first('ImportStarted');
  return { vaultId, targetPublicKey, importBundle: recorded.result.importBundle };
}

/** Like `pendingImportOf`. @throws {CoordinatorError} FAILED_PRECONDITION if none is pending */
export function existingImport(
  organization: OrganizationView,
  userId: string,
  kind: PendingImport['kind'],
): PendingImport {
  const pending = pendingImportOf(organization, userId, kind);
  if (pending) return pending;
  const init = kind === 'wallet' ? 'init_import_wallet' : 'init_import_private_key';
  throw new CoordinatorError(
    'FAILED_PRECONDITION',
    `no ${kind.replace('-', ' ')} import is pending for user \`${userId}\`: a target key works for one import, so start ` +
      `with ${init} and seal to the key that it returns`,
  );
}
