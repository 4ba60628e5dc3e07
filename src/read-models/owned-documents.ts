import type { Rows } from './database.js';
import type { ListPage } from './define-query.js';
import { oldestFirst, type Elements } from './pages.js';

/**
 * A table of what organizations own: each thing by its id, as the JSON of what is known of it, listed in the order of creation.
 * Read and written by whole documents; what is looked for by other members needs a table of its own.
 */
export class OwnedDocuments<Doc extends object> {
  /** Makes the table and the index of its order. */
  readonly schema: string;
  private readonly puts: string;
  private readonly reads: string;
  private readonly deletes: string;

  /** Both as SQL writes them: the table, and its column of ids. */
  constructor(
    readonly table: string,
    private readonly id: string,
  ) {
    this.schema = `
    CREATE TABLE ${table} (
      organization_id TEXT NOT NULL, ${id} TEXT NOT NULL, created INTEGER NOT NULL, doc TEXT NOT NULL,
      PRIMARY KEY (organization_id, ${id})
    ) WITHOUT ROWID;
    CREATE INDEX ${table}_in_order ON ${table} (organization_id, created, ${id});`;
    this.puts = `INSERT OR REPLACE INTO ${table} VALUES (?, ?, ?, ?)`;
    this.reads = `SELECT created, doc FROM ${table} WHERE organization_id = ? AND ${id} = ?`;
    this.deletes = `DELETE FROM ${table} WHERE organization_id = ? AND ${id} = ?`;
  }

  /** @param created position of the event that it began with */
  put(rows: Rows, organizationId: string, id: string, created: bigint, doc: Doc): void {
    rows.run(this.puts, organizationId, id, created, JSON.stringify(doc));
  }

  /** Changes members of a document. What is not there stays so. */
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
   * Those of an organization, the oldest first: all, or the page that is asked for.
   * @throws {CoordinatorError} INVALID_ARGUMENT when a cursor names nothing in the list
   */
  list<Element extends object>(
    rows: Rows,
    organizationId: string,
    page: ListPage | undefined,
    resource: (doc: Doc) => Element,
  ): Elements<Element, Iterable<Element>> {
    return oldestFirst(rows, { table: this.table, id: this.id }, organizationId, page, ({ doc }) =>
      resource(this.parse(doc)),
    );
  }

  /** The document in a row. */
  parse(doc: unknown): Doc {
    return JSON.parse(String(doc)) as Doc;
  }
}
