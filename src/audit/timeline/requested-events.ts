import type { EventReader, RecordedEvent } from '../../ledger/event-store.js';
import type { Steps } from '../../domain/steps.js';
import { CutShort } from '../simulate/branch-report.js';
import type { AskForEvents } from './events-over-port.js';
import { payFolding } from './fold-cost.js';

/** Events asked for: the first time few, as often one is enough. */
const [fewEvents, manyEvents] = [16, 500];

/** A store as a thread without one sees it: it asks for events, one run after the other. */
export class RequestedEvents implements Pick<EventReader, 'read' | 'head'> {
  /** Counts what reading takes. */
  meter: Steps | undefined;

  constructor(
    private readonly end: bigint,
    private readonly ask: AskForEvents,
  ) {}

  head(): Promise<bigint> {
    return Promise.resolve(this.end);
  }

  /** @throws {CutShort} once the meter is spent */
  async *read(stream: string, from = 0): AsyncGenerator<RecordedEvent> {
    for (let [next, most] = [from, fewEvents]; ; most = manyEvents) {
      const { events, isEnd } = await this.ask({ stream, from: next, most });
      for (const event of events) {
        if (this.meter && !payFolding(this.meter, event)) throw new CutShort();
        yield event;
      }
      if (isEnd) return;
      next += events.length;
    }
  }
}
