import { readdir, rm, stat, utimes } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { bytesOf } from '../ledger/fold-cache.js';
import type { LoadedOrganization } from '../ledger/loaded-organization.js';
import type { Snapshots } from '../ledger/snapshots.js';
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
  readonly family: string;
  readonly organizationId: string;
  readonly revision: number;
  readonly bytes: number;
}

/** Both become part of a path. */
const safeName = /^[0-9a-f-]{36}$/;
const fileName = /^([^/]+)\/([^/]+)\/(\d+)\.snapshot$/;

/**
 * States that questions have come by, in files `<folder>/<family>/<organizationId>/<revision>.snapshot`, so that later questions go
 * on from them (docs/adr/0044). Bounded in bytes; the least recently used go first. May be deleted at any time; what cannot be
 * read or written is done without.
 */
export class KeptStates {
  /** By path, the least recently used first. */
  private files: Promise<Map<string, File>> | undefined;

  constructor(
    private readonly folder: string,
    private readonly bounds = usualBounds,
  ) {}

  /** Revisions of the states of an organization, the lowest first. */
  async revisions(family: string, organizationId: string): Promise<number[]> {
    return [...(await this.known()).values()]
      .filter((file) => file.family === family && file.organizationId === organizationId)
      .map(({ revision }) => revision)
      .sort((one, other) => one - other);
  }

  /** A state, whose last event the stream has to confirm; undefined when it cannot be read. */
  async read(family: string, organizationId: string, revision: number): Promise<LoadedOrganization | undefined> {
    const path = this.path({ family, organizationId, revision });
    for await (const state of this.snapshots(family).readable(organizationId, revision)) {
      if (state.revision !== revision) break;
      const files = await this.known();
      const file = files.get(path);
      files.delete(path);
      if (file) files.set(path, file);
      const now = new Date();
      // For the order after a restart.
      await utimes(path, now, now).catch(() => undefined);
      return state;
    }
    await this.remove(path);
    return undefined;
  }

  /** Removes one that is of no use. */
  async discard(family: string, organizationId: string, revision: number): Promise<void> {
    await this.remove(this.path({ family, organizationId, revision }));
  }

  /** Keeps a state as it is now, unless it is too large. It may change as soon as this has returned. */
  async keep(family: string, loaded: LoadedOrganization): Promise<void> {
    const { revision, organization } = loaded;
    const { organizationId } = organization;
    if (!safeName.test(family) || !safeName.test(organizationId) || bytesOf(loaded) > this.bounds.one) return;
    const snapshots = this.snapshots(family);
    snapshots.keep(loaded);
    await snapshots.settled();
    const path = this.path({ family, organizationId, revision });
    const bytes = (await stat(path).catch(() => undefined))?.size;
    if (bytes === undefined) return;
    const files = await this.known();
    files.delete(path);
    files.set(path, { family, organizationId, revision, bytes });
    const { bounds } = this;
    const isOfFamily = (file: File) => file.family === family;
    const isOfOrganization = (file: File) => isOfFamily(file) && file.organizationId === organizationId;
    await this.shrink(bounds.one, (file) => isOfOrganization(file) && file.revision === revision);
    await this.shrink(bounds.organization, isOfOrganization);
    await this.shrink(bounds.family, isOfFamily);
    await this.shrink(bounds.all, () => true);
  }

  /** Removes the least recently used ones of some until they fit. */
  private async shrink(most: number, which: (file: File) => boolean): Promise<void> {
    const some = [...(await this.known())].filter(([, file]) => which(file));
    let sum = some.reduce((bytes, [, file]) => bytes + file.bytes, 0);
    for (const [path, { bytes }] of some) {
      if (sum <= most) return;
      await this.remove(path);
      sum -= bytes;
    }
  }

  private async remove(path: string): Promise<void> {
    (await this.known()).delete(path);
    await rm(path, { force: true }).catch(() => undefined);
  }

  private known(): Promise<Map<string, File>> {
    return (this.files ??= this.find());
  }

  /** What an earlier process has left. */
  private async find(): Promise<Map<string, File>> {
    const found: { readonly path: string; readonly file: File; readonly usedMs: number }[] = [];
    const entries = await readdir(this.folder, { recursive: true, withFileTypes: true }).catch(() => []);
    for (const entry of entries) {
      if (!entry.isFile()) continue;
      const path = join(entry.parentPath, entry.name);
      const named = fileName.exec(relative(this.folder, path).split(sep).join('/'));
      const stats = await stat(path).catch(() => undefined);
      if (!named || !stats) {
        // Half written by a process that has ended.
        await rm(path, { force: true }).catch(() => undefined);
        continue;
      }
      const [, family, organizationId, revision] = named;
      const file = { family: family!, organizationId: organizationId!, revision: Number(revision), bytes: stats.size };
      found.push({ path, file, usedMs: stats.mtimeMs });
    }
    found.sort((one, other) => one.usedMs - other.usedMs);
    return new Map(found.map(({ path, file }) => [path, file]));
  }

  private path({ family, organizationId, revision }: Omit<File, 'bytes'>): string {
    return join(this.folder, family, organizationId, `${revision}.snapshot`);
  }

  private snapshots(family: string): Snapshots {
    return stateFiles(join(this.folder, family));
  }
}
