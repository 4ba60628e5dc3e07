import { createHash } from 'node:crypto';
import { deserialize, serialize } from 'node:v8';
import Database from 'libsql';
import { LatestEntries } from '../../fairness/latest-entries.js';

/** Memory that SQLite uses for pages of the temporary file, in KiB. */
const cacheKiB = 8 * 1024;

/**
 * A temporary file for data that would fill the memory of a long history. SQLite creates it once `cacheKiB` are full, in the folder that
 * `SQLITE_TMPDIR` or `TMPDIR` names, and the file ends with the process.
 */
export class Spill {
  private opened: Database.Database | undefined;

  /** @param sql with one table, `CREATE TEMP TABLE …` */
  define(sql: string): Database.Database {
    this.opened ??= openTemporary();
    this.opened.exec(sql);
    return this.opened;
  }

  close(): void {
    this.opened?.close();
    this.opened = undefined;
  }
}

function openTemporary(): Database.Database {
  const database = new Database(':memory:');
  // Ours is built to keep temporary tables in memory.
  database.exec(
    `PRAGMA temp_store = FILE; CREATE TEMP TABLE used (used); PRAGMA temp.journal_mode = OFF; PRAGMA temp.cache_size = -${cacheKiB}; BEGIN`,
  );
  return database;
}

/** How values of a map are stored, and when they are moved out of the memory. */
export interface SpilledValues<Value> {
  /** Of the table. */
  readonly name: string;
  /**
   * Maximum size of the values in memory, in the unit of `sizeOf`. A value larger than half of it stays in memory and does not count:
   * moving it in and out would take longer than verifying its events.
   */
  readonly most: number;
  readonly sizeOf: (value: Value) => number;
  readonly write: (value: Value) => Buffer;
  readonly read: (bytes: Buffer) => Value;
}

/** A map that keeps the values used last in memory, and the others in a temporary file. */
export class SpilledMap<Value extends object> {
  private readonly recent = new LatestEntries<{
    readonly value: Value;
    /** 0 of a large one. */ readonly size: number;
  }>(Infinity);
  private used = 0;
  private count = 0;
  private table: Record<'put' | 'find' | 'all', Database.Statement> | undefined;

  constructor(
    private readonly spill: Spill,
    private readonly values: SpilledValues<Value>,
  ) {}

  get size(): number {
    return this.count;
  }

  /** The value may be changed until the next `shrink`. */
  get(key: string): Value | undefined {
    const known = this.recent.get(key);
    if (known) {
      this.recent.set(key, known);
      return known.value;
    }
    const value = this.stored(key);
    if (value) this.keep(key, value);
    return value;
  }

  has(key: string): boolean {
    return this.recent.has(key) || this.stored(key) !== undefined;
  }

  /** Inserts or replaces a value, or notes that it was used and has another size. */
  set(key: string, value: Value): void {
    if (!this.has(key)) this.count++;
    this.keep(key, value);
  }

  /** Moves the values used longest ago out of the memory. */
  shrink(): void {
    for (const [key, { value, size }] of this.recent) {
      if (this.used <= this.values.most) return;
      if (size === 0) continue;
      this.tableOf().put.run([key, this.values.write(value)]);
      this.recent.delete(key);
      this.used -= size;
    }
  }

  /** All of them: those in the file by name, then those in memory by name. */
  *entries(): Generator<readonly [key: string, value: Value]> {
    const inMemory = [...this.recent].sort(([one], [other]) => (one < other ? -1 : 1));
    for (const row of this.table?.all.iterate([]) ?? []) {
      const { key, value } = row as { readonly key: string; readonly value: ArrayBuffer };
      // What the file has of it may be older.
      if (!this.recent.has(key)) yield [key, this.values.read(Buffer.from(value))];
    }
    for (const [key, { value }] of inMemory) yield [key, value];
  }

  private keep(key: string, value: Value): void {
    const whole = this.values.sizeOf(value);
    const size = whole > this.values.most / 2 ? 0 : whole;
    const known = this.recent.get(key);
    this.used += size - (known?.size ?? 0);
    this.recent.set(known ? key : ownText(key), { value, size });
  }

  private stored(key: string): Value | undefined {
    const row = this.table?.find.get([key]) as { readonly value: ArrayBuffer } | undefined;
    return row && this.values.read(Buffer.from(row.value));
  }

  private tableOf(): NonNullable<typeof this.table> {
    if (this.table) return this.table;
    const { name } = this.values;
    const database = this.spill.define(
      `CREATE TEMP TABLE ${name} (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID`,
    );
    return (this.table = {
      put: database.prepare(`INSERT OR REPLACE INTO ${name} VALUES (?, ?)`),
      find: database.prepare(`SELECT value FROM ${name} WHERE key = ?`),
      all: database.prepare(`SELECT key, value FROM ${name} ORDER BY key`),
    });
  }
}

/**
 * The same text in memory of its own. A name that was cut out of a page of the store keeps the whole page in memory
 */
export function ownText(text: string): string {
  return deserialize(serialize(text)) as string;
}

/** Texts up to this number are kept in memory. */
const mostTexts = 20_000;

/** A set of texts by their hashes, in a temporary file once there are many. */
export class SpilledSet {
  private readonly first = new Set<string>();
  private insert: Database.Statement | undefined;

  constructor(
    private readonly spill: Spill,
    private readonly name: string,
  ) {}

  /** Adds a text; false if the set has it already. */
  add(text: string): boolean {
    const hash = createHash('sha256').update(text).digest().subarray(0, 16);
    const short = hash.toString('base64');
    if (this.first.has(short)) return false;
    if (this.first.size < mostTexts) {
      this.first.add(short);
      return true;
    }
    this.insert ??= this.spill
      .define(`CREATE TEMP TABLE ${this.name} (hash BLOB PRIMARY KEY) WITHOUT ROWID`)
      .prepare(`INSERT OR IGNORE INTO ${this.name} VALUES (?)`);
    return this.insert.run([hash]).changes > 0;
  }
}
