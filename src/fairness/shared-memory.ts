import { LatestEntries } from './latest-entries.js';

/** The share of a family, beyond which its own entries are evicted first. */
const share = 1 / 8;

interface Family {
  readonly keys: LatestEntries<true>;
  bytes: number;
}

interface Entry<Value> {
  readonly value: Value;
  readonly bytes: number;
  readonly familyName: string;
}

/**
 * A cache with a limit in bytes, of which each family (a parent with its sub-organizations) has an eighth. When it is
 * full, entries of families with more go first, then those unused for the longest time. A single family may use all of
 * it, and the newest entry stays, however large.
 */
export class SharedMemory<Value> {
  readonly #entries = new LatestEntries<Entry<Value>>(Infinity);
  readonly #families = new Map<string, Family>();
  /** Families beyond their share: eight at most when the memory is full. */
  readonly #large = new Set<Family>();
  readonly #mostBytes: number;
  readonly #forgotten: (value: Value) => void;
  #bytes = 0;

  /** @param forgotten called for evicted entries */
  constructor(mostBytes: number, forgotten: (value: Value) => void = () => undefined) {
    this.#mostBytes = mostBytes;
    this.#forgotten = forgotten;
  }

  get(key: string): Value | undefined {
    return this.#entries.get(key)?.value;
  }

  /** Inserts it as the most recently used. */
  keep(key: string, value: Value, bytes: number, familyName: string): void {
    const known = this.#entries.get(key);
    if (known && known.familyName !== familyName) this.delete(key);
    const family = this.#families.get(familyName) ?? { keys: new LatestEntries<true>(Infinity), bytes: 0 };
    this.#families.set(familyName, family);
    family.keys.set(key, true);
    this.#entries.set(key, { value, bytes, familyName });
    this.#count(family, known?.familyName === familyName ? bytes - known.bytes : bytes);
    for (const large of this.#large) this.#makeRoom(large.keys, key, () => this.#large.has(large));
    this.#makeRoom(this.#entries, key, () => true);
  }

  delete(key: string): void {
    const entry = this.#entries.get(key);
    if (!entry) return;
    const family = this.#families.get(entry.familyName)!;
    this.#entries.delete(key);
    family.keys.delete(key);
    this.#count(family, -entry.bytes);
    if (family.keys.size === 0) this.#families.delete(entry.familyName);
  }

  #count(family: Family, bytes: number): void {
    this.#bytes += bytes;
    family.bytes += bytes;
    if (family.bytes > this.#mostBytes * share) this.#large.add(family);
    else this.#large.delete(family);
  }

  #makeRoom(oldest: LatestEntries<unknown>, latest: string, isToGo: () => boolean): void {
    for (const [key] of oldest) {
      if (this.#bytes <= this.#mostBytes || !isToGo()) return;
      if (key === latest) continue;
      const { value } = this.#entries.get(key)!;
      this.delete(key);
      this.#forgotten(value);
    }
  }
}
