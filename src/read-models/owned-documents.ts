import type { Rows } from './database.js';
import type { ListPage } from './define-query.js';
import { ListCursors } from './list-cursors.js';
import { oldestFirst, type Elements } from './pages.js';

/**
 * A table of things that organizations own: one JSON document for each, by id, listed in the order of creation. Documents are
 * read and written as a whole; look-ups by other members need a separate table.
 */
export class OwnedDocuments<Doc extends object> {
  /** Creates the tables, and the index for the order. */
  readonly schema: string;
  /** Names of its tables. */
  readonly tables: readonly string[];
  private readonly places: ListCursors;
  private readonly puts: string;
  private readonly reads: string;
  private readonly deletes: string;

  /** The names of the table, and of its column of ids, in SQL. */
  constructor(table: string, id: string) {
    this.places = new ListCursors({ table, id, columns: ['created'] });
    this.tables = this.places.tables;
    this.schema = `
    CREATE TABLE ${table} (
      organization_id TEXT NOT NULL, ${id} TEXT NOT NULL, created INTEGER NOT NULL, doc TEXT NOT NULL,
      PRIMARY KEY (organization_id, ${id})
    ) WITHOUT ROWID;
    CREATE INDEX ${table}_in_order ON ${table} (organization_id, created, ${id});
    ${this.places.schema}`;
    this.puts = `INSERT OR REPLACE INTO ${table} VALUES (?, ?, ?, ?)`;
    this.reads = `SELECT created, doc FROM ${table} WHERE organization_id = ? AND ${id} = ?`;
    this.deletes = `DELETE FROM ${table} WHERE organization_id = ? AND ${id} = ?`;
  }

  /** @param created position of the event that created it */
  put(rows: Rows, organizationId: string, id: string, created: bigint, doc: Doc): void {
    rows.run(this.puts, organizationId, id, created, JSON.stringify(doc));
  }

  /** Changes members of a document, if it exists. */
  change(rows: Rows, organizationId: string, id: string, changes: Partial<Doc>): void {
    const row = rows.get(this.reads, organizationId, id);
    if (row) this.put(rows, organizationId, id, BigInt(row['created']!), { ...this.parse(row['doc']), ...changes });
  }

  delete(rows: Rows, organizationId: string, id: string): void {
    rows.run(this.deletes, organizationId, id);
  }

  get(rows: Rows, organizationId: string, id: string): Doc | undefined {
    const row = rows.get(this.reads, organizationId, id);
    return row && this.parse(row['doc']);
  }

  /**
   * The documents of an organization, oldest first: all of them, or a page.
   * @throws {CoordinatorError} INVALID_ARGUMENT if a cursor names nothing in the list
   */
  list<Element extends object>(
    rows: Rows,
    organizationId: string,
    page: ListPage | undefined,
    resource: (doc: Doc) => Element,
  ): Elements<Element, Iterable<Element>> {
    return oldestFirst(rows, this.places, organizationId, page, ({ doc }) => resource(this.parse(doc)));
  }

  /** The document in a row. */
  parse(doc: unknown): Doc {
    return JSON.parse(String(doc)) as Doc;
  }
}
