import { organizationEventTypes, type OrganizationEvent } from '../domain/organization/organization.js';
import { vaultsEndedBy } from '../domain/organization/vaults.js';
import type { Rows } from './database.js';
import { eachEvent, type ProjectedEvent, type ReadModel } from './read-model.js';

/**
 * Vaults that should be gone: one that still exists was left behind by a crash between the record and the shredding.
 */
export const endedVaultsModel: ReadModel = {
  name: 'ended-vaults',
  version: 1,
  tables: ['ended_vaults'],
  schema: `
    CREATE TABLE ended_vaults (
      position INTEGER NOT NULL, vault_id TEXT NOT NULL, organization_id TEXT NOT NULL,
      PRIMARY KEY (position, vault_id)
    ) WITHOUT ROWID;`,

  project: eachEvent((rows, { organizationId, position, event }) => {
    if (!isOrganizationEvent(event)) return;
    for (const vaultId of vaultsEndedBy(event)) {
      rows.run('INSERT OR REPLACE INTO ended_vaults VALUES (?, ?, ?)', position, vaultId, organizationId);
    }
  }),
};

const organizationTypes: ReadonlySet<string> = new Set(organizationEventTypes);

/** Excludes the streams beside an organization's own. */
const isOrganizationEvent = (event: ProjectedEvent['event']): event is OrganizationEvent =>
  organizationTypes.has(event.type);

/** Rows held at a time: a long history has ended very many vaults. */
const atOnce = 1_000;

/** Ids of every vault that an event has ended, latest first: what a crash has left behind is near the beginning. */
export function* endedVaults(rows: Rows): Generator<string, void, undefined> {
  let last: readonly [position: bigint, vaultId: string] = [2n ** 63n - 1n, ''];
  for (;;) {
    const page = rows.all(
      `SELECT position, vault_id FROM ended_vaults WHERE (position, vault_id) < (?, ?)
       ORDER BY position DESC, vault_id DESC LIMIT ${atOnce}`,
      ...last,
    );
    for (const row of page) {
      last = [BigInt(row['position']!), String(row['vault_id'])];
      yield last[1];
    }
    if (page.length < atOnce) return;
  }
}
