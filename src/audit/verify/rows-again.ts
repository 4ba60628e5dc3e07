import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { linkOf } from '../../ledger/chain.js';
import type { EventReader, RecordedEvent } from '../../ledger/event-store.js';
import { ReadModelDatabase, type Row } from '../../read-models/database.js';
import { readModels } from '../../read-models/index.js';
import { projectIntoFile, type Projecting } from '../../read-models/projecting.js';
import { lastProjected, type LastProjected } from '../../read-models/projector.js';

/** The result of comparing the existing rows with those that the events give. */
export interface RowsCompared {
  readonly tables: number;
  readonly rows: number;
  /** A sentence for each row that differs, at most `mostOfATable` per table; or that the store has lost events. */
  readonly differences: readonly string[];
  /** Why something was not compared. */
  readonly notCompared: readonly string[];
}

const mostOfATable = 10;
/** Events sent to the thread at a time. */
const together = 500;
/** Its rows include vaults, and shredded ones have left no event. */
const ofShredded = 'unnamed_vaults';

/**
 * Rebuilds every read model next to those of a running or stopped coordinator, and compares them. The existing rows are
 * copied first, as of one moment; events up to that moment are projected in a separate thread.
 */
export class RowsAgain {
  private waiting: RecordedEvent[] = [];
  private projected: Promise<void> = Promise.resolve();
  private isSeen = false;

  private constructor(
    private readonly folder: string,
    private readonly last: LastProjected,
    private readonly projecting: Projecting,
  ) {}

  /** @returns why there is nothing to compare with, if so */
  static async beside(file: string, store: EventReader): Promise<RowsAgain | string> {
    if (!existsSync(file)) return `${file} does not exist`;
    const folder = await mkdtemp(join(file, '..', 'verify-'));
    try {
      const there = new ReadModelDatabase(file);
      there.run('VACUUM INTO ?', copyIn(folder));
      there.close();
      const copy = new ReadModelDatabase(copyIn(folder));
      const last = lastProjected(copy);
      copy.close();
      if (last) {
        const source = { identity: 'verification', head: last.position };
        return new RowsAgain(folder, last, await projectIntoFile(rebuiltIn(folder), source, store));
      }
      await rm(folder, { recursive: true });
      return `${file} has no rows yet`;
    } catch (error) {
      await rm(folder, { recursive: true });
      throw error;
    }
  }

  /** Takes the next event of the store. */
  take(recorded: RecordedEvent): Promise<void> | undefined {
    const { position, stream } = recorded;
    if (position > this.last.position) return undefined;
    if (position === this.last.position) {
      const hash = linkOf(recorded);
      // What was damaged since is found by its chain.
      this.isSeen = stream === this.last.stream && (hash === undefined || hash === this.last.hash);
    }
    this.waiting.push(recorded);
    return this.waiting.length < together && position < this.last.position ? undefined : this.flush();
  }

  private async flush(): Promise<void> {
    const events = this.waiting;
    this.waiting = [];
    // One batch is in progress while the next is collected.
    await this.projected;
    this.projected = this.projecting.project(events);
    this.projected.catch(() => undefined);
  }

  async compared(): Promise<RowsCompared> {
    await this.flush();
    await this.projected;
    const found = { tables: 0, rows: 0, differences: [] as string[], notCompared: [] as string[] };
    if (!this.isSeen) {
      const { position, stream, revision } = this.last;
      found.differences.push(
        `rows were built from an event at position ${position} (revision ${revision} of \`${stream}\`) that the store does not ` +
          'have: it has lost events; restore a newer backup, or accept the loss by starting once with RESTORED=true',
      );
      return found;
    }
    const [leftOut] = this.projecting.leftOut();
    if (leftOut) {
      found.notCompared.push(`the event at revision ${leftOut.revision} of \`${leftOut.stream}\` cannot be read`);
      return found;
    }
    const failures = new Map(this.projecting.progress().map(({ model, failure }) => [model, failure]));
    const rows = new ReadModelDatabase(rebuiltIn(this.folder));
    try {
      // As SQLite was built, it compares two tables in memory.
      rows.define('PRAGMA temp_store = FILE');
      rows.run('ATTACH ? AS there', copyIn(this.folder));
      for (const { name, version, tables } of readModels) {
        const made = rows.get('SELECT version, position FROM there.checkpoints WHERE model = ?', name);
        const isSame = made?.['version'] === version && made['position'] === String(this.last.position);
        const failure = failures.get(name);
        if (failure !== undefined) found.notCompared.push(`${name} cannot be built: ${failure.split('\n')[0]}`);
        else if (!isSame) found.notCompared.push(`${name} did not exist in this version, up to the same event`);
        else {
          for (const table of tables) {
            found.tables++;
            found.rows += Number(rows.get(`SELECT count(*) AS rows FROM main.${table}`)?.['rows']);
            found.differences.push(...differences(rows, table));
          }
        }
      }
    } finally {
      rows.close();
    }
    return found;
  }

  async close(): Promise<void> {
    await this.projected.catch(() => undefined);
    await this.projecting.close();
    await rm(this.folder, { recursive: true, force: true });
  }
}

const copyIn = (folder: string) => join(folder, 'as-they-are.db');
const rebuiltIn = (folder: string) => join(folder, 'built-again.db');

function differences(rows: ReadModelDatabase, table: string): string[] {
  const missing = rows.all(`SELECT * FROM main.${table} EXCEPT SELECT * FROM there.${table} LIMIT ${mostOfATable}`);
  const added =
    table === ofShredded
      ? []
      : rows.all(`SELECT * FROM there.${table} EXCEPT SELECT * FROM main.${table} LIMIT ${mostOfATable}`);
  const key = keyOf(rows, table);
  const other = new Map(added.map((row) => [naming(row, key), row]));
  const changed = missing.map((row) => {
    const name = naming(row, key);
    const there = other.get(name);
    other.delete(name);
    if (!there) return `${table}: the row of ${name} is missing or different`;
    const columns = Object.keys(row).filter((column) => String(row[column]) !== String(there[column]));
    return `${table}: the row of ${name} has a different ${columns.join(', ')} than the events yield`;
  });
  const tooMany = [...other.keys()].map((name) => `${table}: no event yields the row of ${name}`);
  return [...changed, ...tooMany].slice(0, mostOfATable);
}

/** The name of a row: never its other columns, which may be personal data. */
function naming(row: Row, key: readonly string[]): string {
  return key.map((column) => `${column} \`${String(row[column])}\``).join(', ');
}

function keyOf(rows: ReadModelDatabase, table: string): string[] {
  const columns = rows.all(`SELECT name, pk FROM pragma_table_info('${table}') ORDER BY pk`);
  const key = columns.filter(({ pk }) => Number(pk) > 0);
  return (key.length > 0 ? key : columns.slice(0, 2)).map(({ name }) => String(name));
}
