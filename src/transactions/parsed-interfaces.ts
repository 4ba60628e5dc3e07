/** A parsed interface, and the steps it took. */
interface Kept<Parsed> {
  readonly parsed: Parsed;
  readonly spent: number;
}

/** Total characters of the texts whose parsed form is cached, which takes up to ten times their memory. */
const mostLength = 4_000_000;
/** One owner's share of that. */
const shareLength = 500_000;

/** A cache of parsed interfaces by their text: least recently used first, and no owner has more than a share. */
export class ParsedInterfaces<Parsed> {
  readonly #entries = new Map<string, Kept<Parsed> & { readonly owner: string }>();
  readonly #lengths = new Map<string, number>();
  #length = 0;

  get(type: string, json: string): Kept<Parsed> | undefined {
    const key = keyOf(type, json);
    const entry = this.#entries.get(key);
    if (!entry) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry;
  }

  keep(type: string, json: string, owner: string, { parsed, spent }: Kept<Parsed>): void {
    const key = keyOf(type, json);
    this.#delete(key);
    this.#entries.set(key, { parsed, spent, owner });
    this.#grow(owner, key.length);
    for (const [oldest, { owner: other }] of this.#entries) {
      const isOverShare = (this.#lengths.get(owner) ?? 0) > shareLength && other === owner;
      if (this.#length <= mostLength && (this.#lengths.get(owner) ?? 0) <= shareLength) return;
      if (isOverShare || this.#length > mostLength) this.#delete(oldest);
    }
  }

  #delete(key: string): void {
    const entry = this.#entries.get(key);
    if (!entry) return;
    this.#entries.delete(key);
    this.#grow(entry.owner, -key.length);
  }

  #grow(owner: string, by: number): void {
    this.#length += by;
    const length = (this.#lengths.get(owner) ?? 0) + by;
    if (length === 0) this.#lengths.delete(owner);
    else this.#lengths.set(owner, length);
  }
}

function keyOf(type: string, json: string): string {
  return `${type} ${json}`;
}
