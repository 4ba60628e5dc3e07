import type { Row, Rows } from './database.js';

interface Places {
  readonly table: string;
  /** Column of the organization whose list it is. */
  readonly owner?: string;
  /** Column of the ids that cursors name. */
  readonly id: string;
  /** What the list is ordered by, and what else says whether an element is in it. */
  readonly columns: readonly string[];
}

/**
 * The places of the elements of a list. Those of deleted elements are kept, so a page continues from an element that somebody has
 * deleted since it was shown.
 */
export class ListCursors {
  /** Creates the table of deleted places; after the schema of the list itself. */
  readonly schema: string;
  /** The list's own table, and that of the deleted places. */
  readonly tables: readonly string[];
  readonly table: string;
  readonly id: string;
  private readonly reads: readonly string[];

  constructor({ table, owner = 'organization_id', id, columns }: Places) {
    this.table = table;
    this.id = id;
    const deleted = `${table}_deleted`;
    this.tables = [table, deleted];
    const all = [owner, id, ...columns];
    this.schema = `
    CREATE TABLE ${deleted} (${all.join(', ')}, PRIMARY KEY (${owner}, ${id})) WITHOUT ROWID;
    CREATE TRIGGER ${table}_keep_place AFTER DELETE ON ${table}
      BEGIN INSERT OR REPLACE INTO ${deleted} VALUES (${all.map((column) => `old.${column}`).join(', ')}); END;`;
    this.reads = this.tables.map(
      (from) => `SELECT ${columns.join(', ')} FROM ${from} WHERE ${owner} = ? AND ${id} = ?`,
    );
  }

  /** The columns of an element, deleted or not; undefined if it never was in a list of the organization. */
  of(rows: Rows, organizationId: string, id: string): Row | undefined {
    const [current, deleted] = this.reads;
    return rows.get(current!, organizationId, id) ?? rows.get(deleted!, organizationId, id);
  }
}
