import { createHash, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { isMap } from 'node:util/types';
import { deserialize, serialize } from 'node:v8';
import { errorMessage } from '../domain/errors.js';
import { LatestEntries } from '../fairness/latest-entries.js';
import { emptyOrganization } from '../domain/organization/organization.js';
import { nothing } from '../domain/organization/slices.js';
import type { LoadedOrganization } from './loaded-organization.js';
import { piecesOf, recentSlice, type Piece } from './snapshot-pieces.js';

/**
 * Version of what a folded organization is made of, and of what its events make of it. Raise it whenever the same events
 * fold into something else than before (`test/ledger/snapshot-shape.spec.ts` says so): older files are then ignored.
 */
export const snapshotVersion = 2;

export interface SnapshotOptions {
  /** Made when something is first kept; everything in it may be deleted at any time. */
  readonly folder: string;
  /** Position up to which requests are known by their fingerprints without the folded state; it only grows. */
  readonly checkpoint: () => bigint;
  /** A file that cannot be used; told once for each file. */
  readonly ignored: (file: string, reason: string) => void;
  /** A snapshot could not be written; the next one is tried as if nothing had been. */
  readonly failed: (organizationId: string, error: unknown) => void;
  /** Files that stay of one organization; two unless told: the newest, and the one before it in case that cannot be read. */
  readonly kept?: number;
}

/** First line of a file, after the hex of SHA-256 over everything from it on. Positions are decimal. */
interface Header {
  readonly version: number;
  readonly organizationId: string;
  readonly revision: number;
  readonly hash: string;
  readonly position: string;
  /** Fingerprints of requests up to this position are not in the snapshot. */
  readonly coveredTo: string;
}

const usuallyKept = 2;
/** Organizations that may wait to be written; each is held in memory until then, and another occasion comes. */
const mostWaiting = 8;
/** Files remembered as complained of; a forgotten one may be complained of again. */
const mostComplained = 1_000;
/** Bytes that are hashed in one turn of the event loop: a millisecond or two. */
const bytesAtOnce = 1024 * 1024;
const digestLength = 64;
/** Organization ids are UUIDs; nothing else becomes part of a path. */
const safeName = /^[0-9a-f-]{36}$/;
const fileName = /^(\d+)\.snapshot$/;

export const SNAPSHOTS = Symbol('Snapshots');

/**
 * Folded organizations in files, `<folder>/<organizationId>/<revision>.snapshot`, so that a long stream is not folded
 * from its start again. A cache of this process (docs/adr/0022): damaged, foreign and newer files
 * are ignored. Writing goes on in the background, in pieces.
 */
export class Snapshots {
  private readonly complained = new LatestEntries<true>(mostComplained);
  private readonly waiting = new Set<string>();
  private writing: Promise<void> = Promise.resolve();

  constructor(private readonly options: SnapshotOptions) {}

  /**
   * The snapshots that can be read, the newest first. Their last event is `pending`: the stream has to confirm it before
   * anything else is said of them.
   * @param upTo the last revision that one may have
   */
  async *readable(organizationId: string, upTo = Infinity): AsyncGenerator<LoadedOrganization> {
    if (!safeName.test(organizationId)) return;
    for (const revision of (await this.revisions(organizationId, upTo)).slice(0, this.kept)) {
      const snapshot = await this.read(organizationId, revision);
      if (snapshot) yield snapshot;
    }
  }

  /** Says that a snapshot of this revision is of no use: once, as long as that is remembered. */
  ignore(organizationId: string, revision: number, reason: string): void {
    const file = this.file(organizationId, revision);
    if (this.complained.has(file)) return;
    this.complained.set(file, true);
    this.options.ignored(file, reason);
  }

  /** Whether the fingerprints that a snapshot does not have can be looked up now: not while the read models are rebuilt. */
  isCovered({ coveredTo = -1n }: LoadedOrganization): boolean {
    return coveredTo <= this.options.checkpoint();
  }

  /**
   * Keeps a folded organization as it is now, recorded events only. Returns at once: false when there is too much to be
   * written already, and this is not taken.
   */
  keep({ organization, recent, revision, hash, position }: LoadedOrganization): boolean {
    const { organizationId } = organization;
    if (!safeName.test(organizationId) || this.waiting.has(organizationId) || this.waiting.size >= mostWaiting)
      return false;
    const coveredTo = this.options.checkpoint();
    const header: Header = {
      version: snapshotVersion,
      organizationId,
      revision,
      hash,
      position: String(position),
      coveredTo: String(coveredTo),
    };
    // Maps change from here on, the records in them never do: so this much is copied now, and the rest can wait.
    const slices = Object.entries(organization).map(([slice, value]): [string, unknown] => [slice, copied(value)]);
    slices.push([recentSlice, [...recent].filter(([, known]) => known.position > coveredTo)]);
    this.waiting.add(organizationId);
    this.writing = this.writing
      .then(() => this.write(header, slices))
      .catch((error: unknown) => this.options.failed(organizationId, error))
      .finally(() => this.waiting.delete(organizationId));
    return true;
  }

  private get kept(): number {
    return this.options.kept ?? usuallyKept;
  }

  /** Resolves when everything kept so far is on disk, or has failed. */
  settled(): Promise<void> {
    return this.writing;
  }

  private async write(header: Header, slices: readonly (readonly [string, unknown])[]): Promise<void> {
    const { organizationId, revision } = header;
    const parts: Buffer[] = [Buffer.from(`${JSON.stringify(header)}\n`)];
    const digest = createHash('sha256').update(parts[0]!);
    for (const piece of piecesOf(slices)) {
      const bytes = serialize(piece);
      const length = Buffer.alloc(4);
      length.writeUInt32BE(bytes.length);
      parts.push(length, bytes);
      digest.update(length).update(bytes);
      await nextTurn();
    }
    const folder = join(this.options.folder, organizationId);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const unfinished = join(folder, `${revision}.${randomUUID()}.part`);
    // Not flushed to the disk: after a crash the digest tells, and then it is folded anew.
    await writeFile(unfinished, [digest.digest('hex'), ...parts], { mode: 0o600 });
    await rename(unfinished, this.file(organizationId, revision));
    await this.removeOthers(organizationId, revision);
  }

  /** Whatever stands above the newest was passed over on the way to it, where not all are kept. */
  private async removeOthers(organizationId: string, newest: number): Promise<void> {
    const folder = join(this.options.folder, organizationId);
    const keep = (await this.revisions(organizationId, this.kept === Infinity ? Infinity : newest)).slice(0, this.kept);
    for (const name of await readdir(folder)) {
      if (!keep.includes(Number(fileName.exec(name)?.[1] ?? NaN))) await rm(join(folder, name), { force: true });
    }
  }

  /** Revisions of the files that are there, the highest first. */
  private async revisions(organizationId: string, upTo: number): Promise<number[]> {
    const folder = join(this.options.folder, organizationId);
    // Most organizations are too short for one, and the error of `readdir` costs as much as folding them.
    const names = existsSync(folder) ? await readdir(folder).catch(() => []) : [];
    return names
      .flatMap((name) => fileName.exec(name)?.[1] ?? [])
      .map(Number)
      .filter((revision) => revision <= upTo)
      .sort((one, other) => other - one);
  }

  private async read(organizationId: string, revision: number): Promise<LoadedOrganization | undefined> {
    try {
      const bytes = await readFile(this.file(organizationId, revision)).catch(() => undefined);
      if (!bytes) return undefined;
      const { header, body } = await opened(bytes);
      if (header.version !== snapshotVersion) {
        throw new Error(`it has version ${header.version}, this release reads ${snapshotVersion}`);
      }
      if (header.organizationId !== organizationId || header.revision !== revision) {
        throw new Error(`it is of revision ${header.revision} of organization \`${header.organizationId}\``);
      }
      return await restored(header, body);
    } catch (error) {
      this.ignore(organizationId, revision, errorMessage(error));
      return undefined;
    }
  }

  private file(organizationId: string, revision: number): string {
    return join(this.options.folder, organizationId, `${revision}.snapshot`);
  }
}

/** @throws {Error} when the bytes are not what was written */
async function opened(bytes: Buffer): Promise<{ header: Header; body: Buffer }> {
  const rest = bytes.subarray(digestLength);
  const digest = createHash('sha256');
  for (let at = 0; at < rest.length; at += bytesAtOnce) {
    digest.update(rest.subarray(at, at + bytesAtOnce));
    await nextTurn();
  }
  if (bytes.toString('latin1', 0, digestLength) !== digest.digest('hex'))
    throw new Error('its bytes are not those that were written');
  const end = rest.indexOf('\n');
  return { header: JSON.parse(rest.toString('utf8', 0, end)) as Header, body: rest.subarray(end + 1) };
}

function copied(value: unknown): unknown {
  return isMap(value) ? [...value] : value;
}

async function restored({ revision, hash, position, coveredTo }: Header, body: Buffer): Promise<LoadedOrganization> {
  const organization = emptyOrganization();
  const recent: LoadedOrganization['recent'] = new Map();
  const missing = new Set(Object.keys(organization));
  for (let at = 0; at < body.length;) {
    const length = body.readUInt32BE(at);
    const piece = deserialize(body.subarray(at + 4, at + 4 + length)) as Piece;
    at += 4 + length;
    missing.delete(piece.slice);
    const slice: unknown = piece.slice === recentSlice ? recent : Reflect.get(organization, piece.slice);
    if (isMap(slice) && 'entries' in piece) {
      const own = Object.is(slice, nothing) && piece.entries.length > 0 ? new Map<unknown, unknown>() : slice;
      for (const [key, value] of piece.entries) own.set(key, value);
      if (own !== slice) Reflect.set(organization, piece.slice, own);
    } else if ('value' in piece && Object.hasOwn(organization, piece.slice)) {
      Reflect.set(organization, piece.slice, piece.value);
    } else throw new Error(`its \`${piece.slice}\` is not part of an organization`);
    await nextTurn();
  }
  if (missing.size > 0) throw new Error(`it lacks ${[...missing].join(', ')}`);
  const where = { revision, hash, position: BigInt(position), pending: [hash] };
  return { organization, recent, ...where, snapshotRevision: revision, coveredTo: BigInt(coveredTo) };
}
