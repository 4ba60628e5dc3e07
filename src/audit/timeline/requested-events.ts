import type { EventReader, RecordedEvent } from '../../ledger/event-store.js';
import type { Steps } from '../../domain/steps.js';
import { CutShort } from '../simulate/branch-report.js';
import type { AskForEvents } from './events-over-port.js';
import { payFolding } from './fold-cost.js';

/** A store as a thread without one sees it: it asks for events, one run after the other. */
export class RequestedEvents implements Pick<EventReader, 'read' | 'head'> {
  /** Counts what reading takes. */
  meter: Steps | undefined;

  /** @param options position of the last event in the store, if anybody asks; size of the first run of a stream, if not the usual one */
  constructor(
    private readonly ask: AskForEvents,
    private readonly options: { readonly end?: bigint; readonly first?: number } = {},
  ) {}

  head(): Promise<bigint | undefined> {
    return Promise.resolve(this.options.end);
  }

  /** @throws {CutShort} once the meter is spent */
  async *read(stream: string, from = 0): AsyncGenerator<RecordedEvent> {
    const { first } = this.options;
    for (let next = from; ;) {
      const few = next === from && first !== undefined ? { most: first } : {};
      const { events, isEnd } = await this.ask({ stream, from: next, ...few });
      for (const event of events) {
        if (this.meter && !payFolding(this.meter, event)) throw new CutShort();
        yield event;
      }
      if (isEnd) return;
      next += events.length;
    }
  }
}
