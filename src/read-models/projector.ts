import { bootStream } from '../domain/boots.js';
import type { AttemptedVaultEvent, VaultAttempt } from '../domain/vault-attempt.js';
import { isRecordedId } from '../domain/uuid.js';
import type { EventMetadata } from '../ledger/chain.js';
import { isKept, type RecordedEvent } from '../ledger/event-store.js';
import { readEvent } from '../ledger/upcast.js';
import { isForAll, type ReadModelDatabase, type Rows } from './database.js';
import type { ProjectedEvent, ReadModel } from './read-model.js';

/** How far a read model is, and why it has stopped, if it has. */
export interface Progress {
  readonly model: string;
  /** Every event up to here is in the rows; -1 before the first. */
  readonly checkpoint: bigint;
  /**
   * Where the next feed starts: after the last event of a permanent stream, because an event that may be deleted is no
   * place to resume.
   */
  readonly resumeAfter: bigint;
  readonly failure: string | undefined;
}

/** The events that the rows were built from. */
export interface EventSource {
  /** Distinguishes one installation's events from another's. */
  readonly identity: string;
  /** Position of the last event; -1 if there is none. */
  readonly head: bigint;
  /** The rows turned out to include events that it does not have. */
  readonly isAnother?: boolean;
}

/** The last event of a permanent stream in the rows: a store that has it also has everything before it. */
export interface LastProjected {
  readonly stream: string;
  readonly revision: number;
  readonly position: bigint;
  /** Its link in the chain of its stream. */
  readonly hash: string;
}

/** For the rows in a database; undefined if there are none, or their release did not record it. */
export function lastProjected(rows: Rows): LastProjected | undefined {
  if (!rows.get("SELECT 1 FROM sqlite_schema WHERE name = 'last_projected'")) return undefined;
  const row = rows.get('SELECT stream, revision, position, hash FROM last_projected');
  return (
    row && {
      stream: String(row['stream']),
      revision: Number(row['revision']),
      position: BigInt(String(row['position'])),
      hash: String(row['hash']),
    }
  );
}

/**
 * Streams that read models are built from: an organization's own, its denials, its deliveries and the claims under it;
 * all boots; and what each vault was created for.
 */
const streamPattern = /^(?:organization|denials|webhook-deliveries|claims)-(.+)$/;

/**
 * Raised if earlier checkpoints cannot be trusted. 2: they were of events that may be scavenged (docs/adr/0033). 3: on a full disk
 * they were written without their rows.
 */
const generation = 3;

interface State {
  readonly model: ReadModel;
  checkpoint: bigint;
  resumeAfter: bigint;
  failure: string | undefined;
}

/**
 * Applies events to the rows of every read model. Each model has its own checkpoint, written in the same transaction as
 * its rows, so that a crash skips nothing. The checkpoint is the last event of a permanent stream; what follows it
 * (from vaults, whose rows tolerate that) is delivered again. A model that fails stops alone; the others continue. At an
 * event that this release cannot read, all stop: reading it again is of no use, and whom it is for cannot be told.
 * Without room or memory, on a broken disk and in a damaged file, nothing of a batch is written: it can be taken again.
 */
export class Projector {
  private readonly state: readonly State[];

  constructor(
    private readonly database: ReadModelDatabase,
    models: readonly ReadModel[],
    source: EventSource,
  ) {
    database.define(
      `CREATE TABLE IF NOT EXISTS checkpoints (model TEXT PRIMARY KEY, version INTEGER NOT NULL, position TEXT NOT NULL);
       CREATE TABLE IF NOT EXISTS source (identity TEXT PRIMARY KEY);
       CREATE TABLE IF NOT EXISTS last_projected (
         only INTEGER PRIMARY KEY, stream TEXT NOT NULL, revision INTEGER NOT NULL, position TEXT NOT NULL, hash TEXT NOT NULL
       );`,
    );
    let state: readonly State[] = [];
    // One commit, not one for each table and index.
    database.transaction(() => {
      this.forgetOtherSource(source);
      state = models.map((model) => {
        const checkpoint = this.prepare(model);
        return { model, checkpoint, resumeAfter: checkpoint, failure: undefined };
      });
    });
    this.state = state;
  }

  progress(): readonly Progress[] {
    return this.state.map(({ model: { name }, checkpoint, resumeAfter, failure }) => ({
      model: name,
      checkpoint,
      resumeAfter,
      failure,
    }));
  }

  /** Takes the next events, in position order. */
  project(given: readonly RecordedEvent[]): readonly Progress[] {
    const { events, recorded, unreadable } = readUpTo(given);
    if (recorded.length > 0) this.take(recorded, events);
    if (unreadable) {
      const { position, reason } = unreadable;
      for (const one of this.state) if (one.checkpoint < position) one.failure ??= reason;
    }
    return this.progress();
  }

  private take(recorded: readonly RecordedEvent[], events: readonly ProjectedEvent[]): void {
    const last = recorded.at(-1)!;
    const kept = recorded.findLast(({ stream }) => isKept(stream));
    const lastKept = kept?.position;
    const moved = this.state.filter(({ failure, checkpoint }) => failure === undefined && checkpoint < last.position);
    if (moved.length === 0) return;
    this.database.transaction(() => {
      for (const one of moved) one.failure = this.projectInto(one.model, one.checkpoint, events);
      if (kept) this.note(kept, moved);
    });
    for (const one of moved) {
      if (one.failure !== undefined) continue;
      one.checkpoint = last.position;
      one.resumeAfter = lastKept ?? one.resumeAfter;
    }
  }

  /**
   * Why the model has failed, if it has.
   * @throws what ends the batch for all models
   */
  private projectInto(model: ReadModel, checkpoint: bigint, events: readonly ProjectedEvent[]): string | undefined {
    try {
      this.database.transaction(() => {
        model.project(
          this.database,
          // Models are only at different positions after a start.
          (events[0]?.position ?? 0n) > checkpoint ? events : events.filter(({ position }) => position > checkpoint),
        );
      });
      return undefined;
    } catch (error) {
      // The rows of the models before it are undone too: their checkpoints must not be written.
      if (!this.database.isInTransaction || isForAll(error)) throw error;
      return error instanceof Error ? (error.stack ?? error.message) : String(error);
    }
  }

  /** Writes the checkpoint of all that have not failed, and its event. */
  private note({ stream, revision, position, metadata }: RecordedEvent, moved: readonly State[]): void {
    const { hash } = metadata as Partial<EventMetadata>;
    this.database.run(
      'UPDATE checkpoints SET position = ? WHERE model IN (SELECT value FROM json_each(?))',
      String(position),
      JSON.stringify(moved.filter(({ failure }) => failure === undefined).map(({ model }) => model.name)),
    );
    this.database.run(
      'INSERT OR REPLACE INTO last_projected VALUES (1, ?, ?, ?, ?)',
      stream,
      revision,
      String(position),
      hash ?? '',
    );
  }

  /** Rows of another store, or of events that a restored backup no longer has, are not ours: everything is rebuilt. */
  private forgetOtherSource({ identity: installation, head, isAnother }: EventSource): void {
    const identity = `${generation} ${installation}`;
    const known = this.database.get('SELECT identity FROM source')?.['identity'];
    const isAhead = this.database
      .all('SELECT position FROM checkpoints')
      .some(({ position }) => BigInt(String(position)) > head);
    if (known === identity && !isAhead && !isAnother) return;
    this.database.run('DELETE FROM checkpoints');
    this.database.run('DELETE FROM last_projected');
    this.database.run('DELETE FROM source');
    this.database.run('INSERT INTO source VALUES (?)', identity);
  }

  private prepare(model: ReadModel): bigint {
    const row = this.database.get('SELECT version, position FROM checkpoints WHERE model = ?', model.name);
    if (row && Number(row['version']) === model.version) return BigInt(String(row['position']));
    this.database.define(model.tables.map((table) => `DROP TABLE IF EXISTS ${table};`).join('\n'));
    this.database.define(model.schema);
    this.database.run('INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?)', model.name, model.version, '-1');
    return -1n;
  }
}

const vaultPrefix = 'vault-';

/** The start of a vault created for a decision: the only part of its stream that read models see. */
function attempted({ stream, revision, type, data, metadata }: RecordedEvent): AttemptedVaultEvent | undefined {
  if (type !== 'SecretSealed' || !stream.startsWith(vaultPrefix)) return undefined;
  const { attempt, organizationId } = data as { readonly attempt?: VaultAttempt; readonly organizationId: string };
  const vaultId = stream.slice(vaultPrefix.length);
  if (attempt) return { type, data: { vaultId, attempt } };
  // Earlier releases did not record what a vault was created for. Only the installation's own vault is for no decision.
  if (revision !== 0 || !isRecordedId(vaultId)) return undefined;
  const { at } = metadata as EventMetadata;
  return { type, data: { vaultId, attempt: { organizationId, revision: -1, at } } };
}

/** What can be read of the next events: all up to the first that cannot, and why not. */
function readUpTo(given: readonly RecordedEvent[]) {
  const events: ProjectedEvent[] = [];
  for (const [index, recorded] of given.entries()) {
    try {
      events.push(...projected(recorded));
    } catch (error) {
      const { position, type, revision, stream } = recorded;
      const why = error instanceof Error ? error.message : String(error);
      const reason = `\`${type}\` at revision ${revision} of \`${stream}\` cannot be read (${why}): read models stop before it`;
      return { events, recorded: given.slice(0, index), unreadable: { position, reason } };
    }
  }
  return { events, recorded: given };
}

function projected(recorded: RecordedEvent): ProjectedEvent[] {
  const vault = attempted(recorded);
  if (vault) {
    const { id, position, revision } = recorded;
    const { at, organizationId } = vault.data.attempt;
    return [{ organizationId, id, position, revision, at, event: vault }];
  }
  const organizationId = recorded.stream === bootStream ? '' : streamPattern.exec(recorded.stream)?.[1];
  if (organizationId === undefined) return [];
  const { type, data } = readEvent(recorded);
  const { id, position, revision } = recorded;
  const { at } = recorded.metadata as EventMetadata;
  return [{ organizationId, id, position, revision, at, event: { type, data } as ProjectedEvent['event'] }];
}
