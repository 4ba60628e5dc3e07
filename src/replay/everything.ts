import type { EventReader, RecordedEvent } from '../ledger/event-store.js';

/**
 * Every event that is in the store when this begins, in the order of positions; a page is read ahead, and no more.
 * @throws {StoreUnavailable} when the store cannot be read
 */
export async function* everythingIn(store: EventReader): AsyncGenerator<RecordedEvent> {
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

type Page = readonly RecordedEvent[];

/** Hands one page at a time from the feed to whoever reads: the feed waits until the page before was taken. */
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
