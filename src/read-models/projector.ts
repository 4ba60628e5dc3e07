import { bootStream } from '../domain/boots.js';
import type { AttemptedVaultEvent, VaultAttempt } from '../domain/vault-attempt.js';
import { GENESIS_HASH, verifyChain, type EventMetadata } from '../ledger/chain.js';
import { isKept, type RecordedEvent } from '../ledger/event-store.js';
import { readEvent, unreadableEvent } from '../ledger/read-event.js';
import type { UnreadablePlace } from '../ledger/unreadable-organizations.js';
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

/** Events that were left out of the rows in a database, because they could not be read. */
export function unreadableIn(rows: Rows): readonly (UnreadablePlace & { readonly position: bigint })[] {
  if (!rows.get("SELECT 1 FROM sqlite_schema WHERE name = 'unreadable_events'")) return [];
  return rows.all('SELECT * FROM unreadable_events').map((row) => ({
    organizationId: String(row['organization_id']),
    stream: String(row['stream']),
    revision: Number(row['revision']),
    position: BigInt(String(row['position'])),
    reason: String(row['reason']),
  }));
}

/** Whether the rows in a database are of an installation, with every model in the version of this release. */
export function isBuiltBy(rows: Rows, models: readonly ReadModel[], installation: string): boolean {
  if (!rows.get("SELECT 1 FROM sqlite_schema WHERE name = 'source'")) return false;
  if (rows.get('SELECT identity FROM source')?.['identity'] !== identityOf(installation)) return false;
  return models.every(({ name, version }) => {
    const row = rows.get('SELECT version FROM checkpoints WHERE model = ?', name);
    return row !== undefined && Number(row['version']) === version;
  });
}

/**
 * Streams that read models are built from: an organization's own, its denials, its deliveries and the claims under it;
 * all boots; and what each vault was created for.
 */
const streamPattern = /^(?:organization|denials|webhook-deliveries|claims)-(.+)$/;

/**
 * Raised if earlier checkpoints cannot be trusted. 2: they were of events that may be scavenged (docs/adr/0021). 3: on a full disk
 * they were written without their rows.
 */
const generation = 3;

function identityOf(installation: string): string {
  return `${generation} ${installation}`;
}

interface State {
  readonly model: ReadModel;
  checkpoint: bigint;
  resumeAfter: bigint;
  failure: string | undefined;
}

/**
 * Applies events to the rows of every read model. Each model has its own checkpoint, written in the same transaction as
 * its rows, so that a crash skips nothing. The checkpoint is the last event of a permanent stream; what follows it
 * (from vaults, whose rows tolerate that) is delivered again. A model that fails stops alone; the others continue. An event
 * that cannot be read is left out, and noted once for each stream. What follows in its organization is projected as far as it can be:
 * a used token or a proved key must be known to other organizations too. Without room or memory, on a broken disk and in a damaged file, nothing of a batch is written: it can be taken again.
 */
export class Projector {
  private readonly state: readonly State[];
  /** The first event of each stream that cannot be read. */
  private readonly unreadable: Map<string, UnreadablePlace>;

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
       );
       CREATE TABLE IF NOT EXISTS unreadable_events (
         stream TEXT PRIMARY KEY, organization_id TEXT NOT NULL, revision INTEGER NOT NULL, position TEXT NOT NULL, reason TEXT NOT NULL
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
    this.unreadable = new Map(unreadableIn(database).map((place) => [place.stream, place]));
  }

  /** Events that were left out: the first of each stream. */
  leftOut(): readonly UnreadablePlace[] {
    return [...this.unreadable.values()];
  }

  progress(): readonly Progress[] {
    return this.state.map(({ model: { name }, checkpoint, resumeAfter, failure }) => ({
      model: name,
      checkpoint,
      resumeAfter,
      failure,
    }));
  }

  /** Takes the next events, in position order, for these models only, by default for all. */
  project(input: readonly RecordedEvent[], models?: readonly string[]): readonly Progress[] {
    const state = models ? this.state.filter(({ model }) => models.includes(model.name)) : this.state;
    const running = state.filter(({ failure }) => failure === undefined);
    this.take(running, input);
    const failed = running.filter(({ failure }) => failure !== undefined);
    // What was altered can often be read, and makes no sense.
    if (failed.length > 0 && this.leaveOutBroken(input)) {
      for (const one of failed) one.failure = undefined;
      this.take(failed, input);
    }
    return this.progress();
  }

  private take(state: readonly State[], input: readonly RecordedEvent[]): void {
    const last = input.at(-1);
    if (!last) return;
    const { events, recorded } = this.readable(input);
    const kept = recorded.findLast(({ stream }) => isKept(stream));
    const lastKept = kept?.position;
    const moved = state.filter(({ failure, checkpoint }) => failure === undefined && checkpoint < last.position);
    if (moved.length === 0) return;
    this.database.transaction(() => {
      for (const one of moved) one.failure = this.projectInto(one.model, one.checkpoint, events);
      if (kept) this.note(kept, moved);
      for (const { stream, organizationId, revision, position, reason } of this.unreadable.values()) {
        const values = [stream, organizationId, revision, String(position), reason];
        this.database.run('INSERT OR IGNORE INTO unreadable_events VALUES (?, ?, ?, ?, ?)', ...values);
      }
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
        // Models are only at different positions after a start.
        const news =
          (events[0]?.position ?? 0n) > checkpoint ? events : events.filter(({ position }) => position > checkpoint);
        if (this.unreadable.size === 0) model.project(this.database, news);
        else this.projectApart(model, news);
      });
      return undefined;
    } catch (error) {
      // The rows of the models before it are undone too: their checkpoints must not be written.
      if (!this.database.isInTransaction || isForAll(error)) throw error;
      return error instanceof Error ? (error.stack ?? error.message) : String(error);
    }
  }

  /** Events behind an unreadable one of their organization may make no sense: each is projected alone, or not at all. */
  private projectApart(model: ReadModel, events: readonly ProjectedEvent[]): void {
    const from = new Map<string, bigint>();
    for (const { organizationId, position } of this.unreadable.values()) {
      const known = from.get(organizationId);
      if (position !== undefined && (known === undefined || position < known)) from.set(organizationId, position);
    }
    const isDoubtful = ({ organizationId, position }: ProjectedEvent) =>
      position > (from.get(organizationId) ?? position);
    let begin = 0;
    for (const [index, event] of events.entries()) {
      if (!isDoubtful(event)) continue;
      if (index > begin) model.project(this.database, events.slice(begin, index));
      begin = index + 1;
      try {
        this.database.transaction(() => model.project(this.database, [event]));
      } catch (error) {
        if (!this.database.isInTransaction || isForAll(error)) throw error;
      }
    }
    if (begin < events.length) model.project(this.database, events.slice(begin));
  }

  /** What can be read of the next events; what cannot is noted. */
  private readable(input: readonly RecordedEvent[]) {
    const events: ProjectedEvent[] = [];
    const recorded: RecordedEvent[] = [];
    for (const one of input) {
      if (this.unreadable.get(one.stream)?.position === one.position) continue;
      try {
        events.push(...projected(one));
        recorded.push(one);
      } catch (error) {
        this.leaveOut(one, error);
      }
    }
    return { events, recorded };
  }

  private leaveOut(event: RecordedEvent, cause: unknown): void {
    const { stream, revision, position } = event;
    if (this.unreadable.has(stream)) return;
    const { message: reason } = unreadableEvent(event, cause);
    this.unreadable.set(stream, { organizationId: ownerOf(stream) ?? '', stream, revision, position, reason });
  }

  /** Leaves out events whose hash does not follow from the event before, if that is among the given ones; returns whether there are any. */
  private leaveOutBroken(input: readonly RecordedEvent[]): boolean {
    const before = this.unreadable.size;
    const links = new Map<string, string>();
    for (const event of input) {
      const { stream, revision } = event;
      if (ownerOf(stream) === undefined || this.unreadable.has(stream)) continue;
      const link = revision === 0 ? GENESIS_HASH : links.get(stream);
      try {
        links.set(stream, link === undefined ? (event.metadata as EventMetadata).hash : verifyChain(link, event));
      } catch (error) {
        this.leaveOut(event, error);
      }
    }
    return this.unreadable.size > before;
  }

  /** Writes the checkpoint of all that have not failed, and its event. */
  private note({ stream, revision, position, metadata }: RecordedEvent, moved: readonly State[]): void {
    const { hash } = metadata as Partial<EventMetadata>;
    this.database.run(
      'UPDATE checkpoints SET position = ? WHERE model IN (SELECT value FROM json_each(?))',
      String(position),
      JSON.stringify(moved.filter(({ failure }) => failure === undefined).map(({ model }) => model.name)),
    );
    // Models that are rebuilt apart are behind what the others have seen.
    if (position <= (lastProjected(this.database)?.position ?? -1n)) return;
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
    const identity = identityOf(installation);
    const known = this.database.get('SELECT identity FROM source')?.['identity'];
    const isAhead = this.database
      .all('SELECT position FROM checkpoints')
      .some(({ position }) => BigInt(String(position)) > head);
    if (known === identity && !isAhead && !isAnother) return;
    this.database.run('DELETE FROM checkpoints');
    this.database.run('DELETE FROM last_projected');
    this.database.run('DELETE FROM source');
    this.database.run('DELETE FROM unreadable_events');
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
function attempted({ stream, type, data }: RecordedEvent): AttemptedVaultEvent | undefined {
  if (type !== 'SecretSealed' || !stream.startsWith(vaultPrefix)) return undefined;
  // Only the installation's own vault is for no decision.
  const { attempt } = data as { readonly attempt?: VaultAttempt };
  return attempt && { type, data: { vaultId: stream.slice(vaultPrefix.length), attempt } };
}

/** Whose events a stream has; empty for the installation, undefined if no read model is built from it. */
function ownerOf(stream: string): string | undefined {
  return stream === bootStream ? '' : streamPattern.exec(stream)?.[1];
}

/** Whether rows can be built from an event. */
export function canBeRead(event: RecordedEvent): boolean {
  try {
    projected(event);
    return true;
  } catch {
    return false;
  }
}

function projected(recorded: RecordedEvent): ProjectedEvent[] {
  const vault = attempted(recorded);
  if (vault) {
    const { id, position, revision } = recorded;
    const { at, organizationId } = vault.data.attempt;
    return [{ organizationId, id, position, revision, at, event: vault }];
  }
  const organizationId = ownerOf(recorded.stream);
  if (organizationId === undefined) return [];
  const { type, data } = readEvent(recorded);
  const { id, position, revision } = recorded;
  const { at } = recorded.metadata as EventMetadata;
  return [{ organizationId, id, position, revision, at, event: { type, data } as ProjectedEvent['event'] }];
}
