import type { EventReader, RecordedEvent } from '../ledger/event-store.js';
import type { Steps } from '../domain/steps.js';
import { CutShort } from '../replay/branch-report.js';
import { payFolding } from '../replay/fold-cost.js';

/** Events asked for: the first time few, as often one is enough. */
const [fewEvents, manyEvents] = [16, 500];

interface Request {
  readonly stream: string;
  readonly from: number;
  readonly most: number;
}

interface Page {
  readonly events: readonly RecordedEvent[];
  readonly isEnd: boolean;
}

/** A store as a thread without one sees it: it asks for events, one page after the other. */
export class AskedEvents implements Pick<EventReader, 'read' | 'head'> {
  /** Counts what reading takes. */
  meter: Steps | undefined;
  private last: Promise<unknown> = Promise.resolve();
  private taken: ((page: Page) => void) | undefined;

  constructor(
    private readonly end: bigint,
    private readonly ask: (request: Request) => void,
  ) {}

  head(): Promise<bigint> {
    return Promise.resolve(this.end);
  }

  /** What was asked for last. */
  take(events: readonly RecordedEvent[], isEnd: boolean): void {
    this.taken?.({ events, isEnd });
  }

  /** @throws {CutShort} once the meter is spent */
  async *read(stream: string, from = 0): AsyncGenerator<RecordedEvent> {
    for (let [next, most] = [from, fewEvents]; ; most = Math.min(4 * most, manyEvents)) {
      const { events, isEnd } = await this.page({ stream, from: next, most });
      for (const event of events) {
        if (this.meter && !payFolding(this.meter, event)) throw new CutShort();
        yield event;
      }
      if (isEnd) return;
      next += events.length;
    }
  }

  /** Two streams may be read at the same time, and one request waits for the other's answer. */
  private page(request: Request): Promise<Page> {
    const page = this.last.then(
      () =>
        new Promise<Page>((resolve) => {
          this.taken = resolve;
          this.ask(request);
        }),
    );
    this.last = page;
    return page;
  }
}
