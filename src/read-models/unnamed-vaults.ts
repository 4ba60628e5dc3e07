import { organizationEventTypes, type OrganizationEvent } from '../domain/organization/organization.js';
import { vaultsNamedBy } from '../domain/organization/vaults.js';
import type { Rows } from './database.js';
import { eachEvent, type ProjectedEvent, type ReadModel } from './read-model.js';

/** A vault that no known event names. */
export interface UnnamedVault {
  readonly vaultId: string;
  readonly organizationId: string;
  readonly revision: number;
  readonly at: number;
}

/** Vaults created for a decision that has not been recorded: those that never will be have lost. */
export const unnamedVaultsModel: ReadModel = {
  name: 'unnamed-vaults',
  version: 1,
  tables: ['unnamed_vaults'],
  schema: `
    CREATE TABLE unnamed_vaults (
      vault_id TEXT PRIMARY KEY, organization_id TEXT NOT NULL, revision INTEGER NOT NULL, at INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX unnamed_vaults_by_time ON unnamed_vaults (at, vault_id);`,

  project: eachEvent((rows, { organizationId, event }) => {
    if (event.type === 'SecretSealed') {
      const { vaultId, attempt } = event.data;
      const { revision, at } = attempt;
      return rows.run(
        'INSERT OR IGNORE INTO unnamed_vaults VALUES (?, ?, ?, ?)',
        vaultId,
        organizationId,
        revision,
        at,
      );
    }
    if (!isOrganizationEvent(event)) return;
    for (const vaultId of vaultsNamedBy(event)) rows.run('DELETE FROM unnamed_vaults WHERE vault_id = ?', vaultId);
  }),
};

const organizationTypes: ReadonlySet<string> = new Set(organizationEventTypes);

/** Excludes the streams beside an organization's own. */
const isOrganizationEvent = (event: ProjectedEvent['event']): event is OrganizationEvent =>
  organizationTypes.has(event.type);

/** Rows that are held at a time. */
const atOnce = 1_000;

/** Vaults from attempts between two times that no event names, as far as is known; latest first. */
export function* unnamedVaults(
  rows: Rows,
  after: number,
  until: number,
): Generator<{ vaultId: string; organizationId: string; revision: number; at: number }, void, undefined> {
  let last: readonly [at: number, vaultId: string] = [until, '\uffff'];
  for (;;) {
    const page = rows.all(
      `SELECT vault_id, organization_id, revision, at FROM unnamed_vaults WHERE (at, vault_id) < (?, ?) AND at > ?
       ORDER BY at DESC, vault_id DESC LIMIT ${atOnce}`,
      ...last,
      Number.isFinite(after) ? after : -1,
    );
    for (const row of page) {
      const found = {
        vaultId: String(row['vault_id']),
        organizationId: String(row['organization_id']),
        revision: Number(row['revision']),
        at: Number(row['at']),
      };
      last = [found.at, found.vaultId];
      yield found;
    }
    if (page.length < atOnce) return;
  }
}
