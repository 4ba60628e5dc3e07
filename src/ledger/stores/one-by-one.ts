/**
 * The elements of lists that come one after another, as an async generator would give them. Of all that folding an event takes,
 * a generator of single events alone is a tenth.
 */
export class OneByOne<T> implements AsyncIterableIterator<T, undefined> {
  readonly #lists: AsyncIterator<readonly T[], void>;
  #list: readonly T[] = [];
  #at = 0;
  #isWaiting = false;

  constructor(lists: AsyncIterator<readonly T[], void>) {
    this.#lists = lists;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** @throws {Error} if the call before has not been answered yet, which `for await` never does */
  next(): Promise<IteratorResult<T, undefined>> {
    if (this.#at < this.#list.length) return Promise.resolve({ done: false, value: this.#list[this.#at++]! });
    return this.#nextList();
  }

  async #nextList(): Promise<IteratorResult<T, undefined>> {
    if (this.#isWaiting) throw new Error('the element before was asked for, and is not there yet: await it first');
    this.#isWaiting = true;
    try {
      for (;;) {
        const next = await this.#lists.next();
        if (next.done) return { done: true, value: undefined };
        this.#list = next.value;
        this.#at = 0;
        if (this.#list.length > 0) return { done: false, value: this.#list[this.#at++]! };
      }
    } finally {
      this.#isWaiting = false;
    }
  }

  async return(): Promise<IteratorReturnResult<undefined>> {
    this.#list = [];
    await this.#lists.return?.();
    return { done: true, value: undefined };
  }
}
