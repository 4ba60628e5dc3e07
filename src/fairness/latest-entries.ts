interface Entry<Value> {
  readonly key: string;
  value: Value;
  before: Entry<Value> | undefined;
  after: Entry<Value> | undefined;
}

/**
 * A map in the order in which entries were last set, the oldest first. Beyond so many, the oldest is evicted: only for
 * entries whose absence permits nothing (security rule R5). Each operation costs the same however many entries there
 * are. A `Map` whose entries are deleted and set again does not: V8 walks past what was deleted until it makes the table
 * anew, which takes 115 µs for one key among 40,000.
 */
export class LatestEntries<Value> {
  readonly #entries = new Map<string, Entry<Value>>();
  readonly #most: number;
  #oldest: Entry<Value> | undefined;
  #latest: Entry<Value> | undefined;

  /** @param most number of entries; `Infinity` if the caller evicts them */
  constructor(most: number) {
    this.#most = most;
  }

  get size(): number {
    return this.#entries.size;
  }

  has(key: string): boolean {
    return this.#entries.has(key);
  }

  /** Does not count as use. */
  get(key: string): Value | undefined {
    return this.#entries.get(key)?.value;
  }

  /** Inserts or moves it as the latest. */
  set(key: string, value: Value): void {
    const known = this.#entries.get(key);
    const entry = known ?? { key, value, before: undefined, after: undefined };
    if (known) {
      known.value = value;
      this.#unlink(known);
    } else this.#entries.set(key, entry);
    entry.before = this.#latest;
    if (this.#latest) this.#latest.after = entry;
    else this.#oldest = entry;
    this.#latest = entry;
    if (this.#oldest && this.#entries.size > this.#most) this.delete(this.#oldest.key);
  }

  delete(key: string): void {
    const entry = this.#entries.get(key);
    if (!entry) return;
    this.#entries.delete(key);
    this.#unlink(entry);
  }

  /** The oldest first; the entry that it is at may be deleted meanwhile. */
  *[Symbol.iterator](): Generator<readonly [key: string, value: Value], void, undefined> {
    for (let entry = this.#oldest; entry;) {
      const { key, value, after } = entry;
      yield [key, value];
      entry = after;
    }
  }

  #unlink(entry: Entry<Value>): void {
    const { before, after } = entry;
    if (before) before.after = after;
    else this.#oldest = after;
    if (after) after.before = before;
    else this.#latest = before;
    entry.after = undefined;
  }
}
