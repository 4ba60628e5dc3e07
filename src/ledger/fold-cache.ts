import { isMap } from 'node:util/types';
import { getHeapStatistics } from 'node:v8';
import { nothing } from '../domain/organization/slices.js';
import { LatestEntries } from '../fairness/latest-entries.js';
import type { LoadedOrganization } from './loaded-organization.js';

/**
 * Estimated memory limit for folded organizations, in bytes: an eighth of a small heap. One with a user and a wallet takes
 * 6 KB (docs/scale.md). Every full garbage collection walks this cache, so it is small.
 */
const defaultBytes = Math.min(24 * 1024 * 1024, getHeapStatistics().heap_size_limit / 8);
/** An estimate is reused for this many events. */
const measureEvery = 256;
/** Size of a map with its table, in V8, beside that of its entries. */
const emptyMapBytes = 300;
/** Size of what is around the slices. */
const frameBytes = 400;
/** Entries of a map that are sampled for an estimate. */
const sampleSize = 64;

interface Kept {
  readonly loaded: LoadedOrganization;
  readonly bytes: number;
  readonly measuredAt: number;
  readonly family: Family;
}

/** A parent with its sub-organizations, in order of use. */
interface Family {
  readonly name: string;
  readonly kept: LatestEntries<Kept>;
  bytes: number;
}

/** The share of a parent with its sub-organizations, beyond which theirs are evicted first. */
const share = 1 / 8;

/**
 * A cache of folded organizations. When it is full, those go first whose parent has more than its share with all of its
 * sub-organizations, then the others; in each group, the least recently used.
 */
export class FoldCache {
  /** Bounded in bytes. */
  private readonly kept = new LatestEntries<Kept>(Infinity);
  private readonly families = new Map<string, Family>();
  /** Families beyond their share: eight at most when the memory is full. */
  private readonly large = new Set<Family>();
  /** How many holders each has. */
  private readonly held = new Map<string, number>();
  private bytes = 0;

  /** @param forgotten called for each evicted organization */
  constructor(
    private readonly forgotten: (organizationId: string) => void,
    private readonly mostBytes = defaultBytes,
  ) {}

  get(organizationId: string): LoadedOrganization | undefined {
    return this.kept.get(organizationId)?.loaded;
  }

  /** Inserts it as the most recently used: it stays, however large it is. */
  keep(organizationId: string, loaded: LoadedOrganization): void {
    const known = this.kept.get(organizationId);
    const isMeasured = known?.loaded === loaded && loaded.revision - known.measuredAt < measureEvery;
    const family = known?.loaded === loaded ? known.family : this.familyOf(loaded);
    if (known?.family === family) this.count(family, -known.bytes);
    else this.delete(organizationId);
    const entry = isMeasured ? known : { loaded, bytes: bytesOf(loaded), measuredAt: loaded.revision, family };
    this.kept.set(organizationId, entry);
    this.families.set(family.name, family);
    family.kept.set(organizationId, entry);
    this.count(family, entry.bytes);
    if (this.bytes <= this.mostBytes) return;
    for (const one of this.large) this.makeRoom(one.kept, loaded, () => this.large.has(one));
    this.makeRoom(this.kept, loaded, () => true);
  }

  private familyOf({ organization: { organizationId, parentOrganizationId } }: LoadedOrganization): Family {
    const name = parentOrganizationId ?? organizationId;
    return this.families.get(name) ?? { name, kept: new LatestEntries(Infinity), bytes: 0 };
  }

  private count(family: Family, bytes: number): void {
    this.bytes += bytes;
    family.bytes += bytes;
    if (family.bytes > this.mostBytes * share) this.large.add(family);
    else this.large.delete(family);
  }

  private makeRoom(from: LatestEntries<Kept>, latest: LoadedOrganization, isToGo: () => boolean): void {
    for (const [oldest, { loaded }] of from) {
      if (this.bytes <= this.mostBytes || !isToGo()) return;
      // One that is being decided on, or whose append is in progress, is still being changed: folded again, it would
      // lack those events.
      if (loaded === latest || loaded.pending.length > 0 || this.held.has(oldest)) continue;
      this.delete(oldest);
      this.forgotten(oldest);
    }
  }

  /** The entry with this id is not evicted until the returned function is called. */
  hold(organizationId: string): () => void {
    this.held.set(organizationId, (this.held.get(organizationId) ?? 0) + 1);
    return () => {
      const holders = this.held.get(organizationId)! - 1;
      if (holders > 0) this.held.set(organizationId, holders);
      else this.held.delete(organizationId);
    };
  }

  isHeld(organizationId: string): boolean {
    return this.held.has(organizationId);
  }

  delete(organizationId: string): void {
    const entry = this.kept.get(organizationId);
    if (!entry) return;
    const { family, bytes } = entry;
    this.kept.delete(organizationId);
    family.kept.delete(organizationId);
    this.count(family, -bytes);
    if (family.kept.size === 0) this.families.delete(family.name);
  }
}

/** Approximate memory of a folded organization in bytes: of a large map, only some entries are sampled. */
export function bytesOf({ organization, recent }: LoadedOrganization): number {
  const slices = Object.values(organization).reduce((sum: number, slice: unknown) => sum + sizeOf(slice), 0);
  return frameBytes + slices + sizeOf(recent);
}

function sizeOf(value: unknown): number {
  switch (typeof value) {
    case 'string':
      return 16 + value.length;
    case 'object':
      if (value === null || value === nothing) return 0;
      if (isMap(value)) return sizeOfMap(value);
      // What V8 uses for an object or array and each of its members, on 64 bits.
      return Object.values(value).reduce((sum: number, member: unknown) => sum + 8 + sizeOf(member), 32);
    default:
      return 8;
  }
}

function sizeOfMap(map: ReadonlyMap<unknown, unknown>): number {
  const step = Math.ceil(map.size / sampleSize);
  let seen = 0;
  let index = 0;
  let bytes = 0;
  for (const [key, value] of map) {
    if (index++ % step !== 0) continue;
    seen++;
    bytes += 40 + sizeOf(key) + sizeOf(value);
  }
  return emptyMapBytes + (seen === 0 ? 0 : (bytes / seen) * map.size);
}
