import { readdir, rm, stat, utimes } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { bytesOf } from '../../ledger/fold-cache.js';
import type { LoadedOrganization } from '../../ledger/loaded-organization.js';
import { stateFiles } from './state-files.js';

const mib = 1024 * 1024;

/** Bytes of files: of one state, of all of an organization, of a parent with its sub-organizations, and of all. */
export interface StateBounds {
  readonly one: number;
  readonly organization: number;
  readonly family: number;
  readonly all: number;
}

export const usualBounds: StateBounds = { one: 4 * mib, organization: 8 * mib, family: 32 * mib, all: 256 * mib };

interface File {
  readonly path: string;
  readonly family: string;
  readonly organizationId: string;
  readonly revision: number;
  readonly bytes: number;
  readonly usedMs: number;
}

/** Both become part of a path. */
const safeName = /^[0-9a-f-]{36}$/;
const fileName = /^([^/]+)\/([^/]+)\/(\d+)\.snapshot$/;
const stateName = /^(\d+)\.snapshot$/;

/**
 * States that questions have come by, in files `<folder>/<family>/<organizationId>/<revision>.snapshot`, so that later questions go
 * on from them (docs/adr/0022). Bounded in bytes; the least recently used go first. May be deleted at any time; what cannot be
 * read or written is done without. What is there is looked up each time, as each question may have another thread.
 */
export class CachedStates {
  constructor(
    private readonly folder: string,
    private readonly bounds = usualBounds,
  ) {}

  /** Revisions of the states of an organization, the lowest first. */
  async revisions(family: string, organizationId: string): Promise<number[]> {
    if (!safeName.test(family) || !safeName.test(organizationId)) return [];
    const names = await readdir(join(this.folder, family, organizationId)).catch(() => []);
    return names.flatMap((name) => stateName.exec(name)?.slice(1).map(Number) ?? []).sort((one, other) => one - other);
  }

  /** A state, whose last event the stream has to confirm; undefined when it cannot be read. */
  async read(family: string, organizationId: string, revision: number): Promise<LoadedOrganization | undefined> {
    const path = this.path(family, organizationId, revision);
    for await (const state of stateFiles(join(this.folder, family)).readable(organizationId, revision)) {
      if (state.revision !== revision) break;
      const now = new Date();
      await utimes(path, now, now).catch(() => undefined);
      return state;
    }
    await remove(path);
    return undefined;
  }

  /** Removes one that is of no use. */
  async discard(family: string, organizationId: string, revision: number): Promise<void> {
    await remove(this.path(family, organizationId, revision));
  }

  /** Keeps a state as it is now, unless it is too large. It may change as soon as this has returned. */
  async keep(family: string, loaded: LoadedOrganization): Promise<void> {
    const { revision, organization } = loaded;
    const { organizationId } = organization;
    if (!safeName.test(family) || !safeName.test(organizationId) || bytesOf(loaded) > this.bounds.one) return;
    const snapshots = stateFiles(join(this.folder, family));
    snapshots.keep(loaded);
    await snapshots.settled();
    const { bounds } = this;
    const isOfFamily = (file: File) => file.family === family;
    const isOfOrganization = (file: File) => isOfFamily(file) && file.organizationId === organizationId;
    let files = await this.find();
    files = await shrunk(files, bounds.one, (file) => isOfOrganization(file) && file.revision === revision);
    files = await shrunk(files, bounds.organization, isOfOrganization);
    files = await shrunk(files, bounds.family, isOfFamily);
    await shrunk(files, bounds.all, () => true);
  }

  /** All files, the least recently used first. */
  private async find(): Promise<File[]> {
    const found: File[] = [];
    const entries = await readdir(this.folder, { recursive: true, withFileTypes: true }).catch(() => []);
    for (const entry of entries) {
      if (!entry.isFile()) continue;
      const path = join(entry.parentPath, entry.name);
      const named = fileName.exec(relative(this.folder, path).split(sep).join('/'));
      const stats = await stat(path).catch(() => undefined);
      if (!named || !stats) {
        // Half written by a thread that has ended.
        await remove(path);
        continue;
      }
      const [, family, organizationId, revision] = named;
      const { size: bytes, mtimeMs: usedMs } = stats;
      found.push({ path, family: family!, organizationId: organizationId!, revision: Number(revision), bytes, usedMs });
    }
    return found.sort((one, other) => one.usedMs - other.usedMs);
  }

  private path(family: string, organizationId: string, revision: number): string {
    return join(this.folder, family, organizationId, `${revision}.snapshot`);
  }
}

/** The files without the least recently used of some, which are removed until these fit. */
async function shrunk(files: readonly File[], most: number, which: (file: File) => boolean): Promise<File[]> {
  let sum = files.reduce((bytes, file) => bytes + (which(file) ? file.bytes : 0), 0);
  const left: File[] = [];
  for (const file of files) {
    if (sum <= most || !which(file)) {
      left.push(file);
      continue;
    }
    await remove(file.path);
    sum -= file.bytes;
  }
  return left;
}

const remove = (path: string): Promise<void> => rm(path, { force: true }).catch(() => undefined);
