import type { EventReader, RecordedEvent } from '../../ledger/event-store.js';

/**
 * Every event in the store at the start, in order of position; reads at most one page ahead.
 * @throws {StoreUnavailable} if the store cannot be read
 */
export async function* allEvents(store: EventReader): AsyncGenerator<RecordedEvent> {
  const head = await store.head();
  if (head === undefined) return;
  const pages = new Pages();
  const subscription = store.subscribe({
    after: 'start',
    onEvents: (events) => pages.put(events),
    onError: (error) => pages.fail(error),
  });
  try {
    for (;;) {
      const page = await pages.take();
      for (const event of page) {
        if (event.position > head) return;
        yield event;
      }
      if ((page.at(-1)?.position ?? -1n) >= head) return;
    }
  } finally {
    pages.end();
    await subscription.close();
  }
}

/** Events of several streams in the order of the store, up to a position. */
export async function* streamsIn(
  store: Pick<EventReader, 'read'>,
  streams: readonly string[],
  head: bigint,
): AsyncGenerator<RecordedEvent> {
  const readers = streams.map((stream) => store.read(stream)[Symbol.asyncIterator]());
  const take = async (reader: AsyncIterator<RecordedEvent>) => {
    const next = await reader.next();
    return next.done || next.value.position > head ? undefined : next.value;
  };
  try {
    const heads = await Promise.all(readers.map(take));
    for (;;) {
      let first: number | undefined;
      for (const [index, event] of heads.entries()) {
        if (event && (first === undefined || event.position < heads[first]!.position)) first = index;
      }
      if (first === undefined) return;
      yield heads[first]!;
      heads[first] = await take(readers[first]!);
    }
  } finally {
    for (const reader of readers) await reader.return?.();
  }
}

type Page = readonly RecordedEvent[];

/** Passes one page at a time from the feed to the reader: the feed waits until the previous page was taken. */
class Pages {
  private waiting: Page | undefined;
  private error: { readonly cause: unknown } | undefined;
  private taken: (() => void) | undefined;
  private arrived: (() => void) | undefined;
  private isOver = false;

  put(page: Page): Promise<void> {
    if (this.isOver) return Promise.resolve();
    this.waiting = page;
    this.arrived?.();
    return new Promise((resolve) => (this.taken = resolve));
  }

  fail(cause: unknown): void {
    this.error = { cause };
    this.arrived?.();
  }

  async take(): Promise<Page> {
    while (!this.waiting) {
      if (this.error) throw this.error.cause;
      await new Promise<void>((resolve) => (this.arrived = resolve));
    }
    const page = this.waiting;
    this.waiting = undefined;
    this.taken?.();
    return page;
  }

  end(): void {
    this.isOver = true;
    this.taken?.();
  }
}
