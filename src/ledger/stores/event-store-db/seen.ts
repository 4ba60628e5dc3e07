/** What this process has seen of a store: enough to notice that it has lost something. */
export class Seen {
  #last: { readonly position: bigint; readonly id: string } | undefined;
  #searched: bigint | undefined;

  /** The last event in a permanent stream. */
  get last(): { readonly position: bigint; readonly id: string } | undefined {
    return this.#last;
  }

  note(position: bigint, id: string): void {
    if (this.#last === undefined || position > this.#last.position) this.#last = { position, id };
  }

  /** Everything up to this position was searched for events in permanent streams. */
  searched(position: bigint): void {
    if (this.#searched === undefined || position > this.#searched) this.#searched = position;
  }

  /** Whether there can be nothing new at a position, nor below it. */
  isKnown(position: bigint): boolean {
    return [this.#last?.position, this.#searched].some((known) => known !== undefined && position <= known);
  }
}
