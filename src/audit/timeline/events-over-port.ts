import { once } from 'node:events';
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { eventRuns, type EventRun } from '../../ledger/event-runs.js';
import type { EventReader } from '../../ledger/event-store.js';
import { packEvents, unpackEvents, type PackedEvents } from '../../read-models/packed-events.js';

/** Events that a thread needs next. */
export interface WantedEvents {
  readonly stream: string;
  readonly from: number;
  /** Events at a time, at most the usual number. */
  readonly most?: number;
}

type Reply = { readonly events: PackedEvents; readonly isEnd: boolean } | 'failed';

/** Serves events of some streams to one task, a run at a time. */
export class EventsForTask {
  /** The task's end of the channel, to be transferred to it. */
  readonly port: MessagePort;
  /** Why events could not be read; the task only learns that they could not. */
  failure: unknown;
  readonly #own: MessagePort;
  /** The stream that is being read: what follows needs no new look-up. */
  #reading: (WantedEvents & { readonly runs: AsyncGenerator<EventRun> }) | undefined;

  /**
   * @param streams whatever the task asks for, it sees no others
   * @param turn is awaited between two runs of events: others may have theirs
   */
  constructor(
    private readonly store: Pick<EventReader, 'read'>,
    private readonly streams: readonly string[],
    private readonly turn: () => Promise<void> | undefined,
  ) {
    const { port1, port2 } = new MessageChannel();
    [this.#own, this.port] = [port1, port2];
    port1.on('message', (wanted: WantedEvents) => void this.#answer(wanted));
  }

  close(): void {
    this.#own.close();
    this.#stopReading();
  }

  async #answer(wanted: WantedEvents): Promise<void> {
    let reply: Reply;
    try {
      reply = await this.#next(wanted);
    } catch (error) {
      this.failure ??= error;
      reply = 'failed';
    }
    this.#own.postMessage(reply);
  }

  async #next({ stream, from, most }: WantedEvents): Promise<Reply> {
    if (!this.streams.includes(stream)) throw new Error(`a thread asked for stream \`${stream}\``);
    let reading = this.#reading;
    if (reading?.stream !== stream || reading.from !== from || reading.most !== most) {
      this.#stopReading();
      const part = { from, ...(most === undefined ? {} : { most }) };
      // Known before it is read: it may have to be stopped meanwhile.
      this.#reading = reading = { stream, ...part, runs: eventRuns(this.store, stream, part) };
    }
    const run = await reading.runs.next();
    if (run.done === true) throw new Error(`stream \`${stream}\` was read to no end`);
    const { events, isEnd } = run.value;
    if (this.#reading === reading) this.#reading = isEnd ? undefined : { ...reading, from: from + events.length };
    const packed = packEvents(events);
    await this.turn();
    return { events: packed, isEnd };
  }

  #stopReading(): void {
    void this.#reading?.runs.return(undefined);
    this.#reading = undefined;
  }
}

export type AskForEvents = (wanted: WantedEvents) => Promise<EventRun>;

/** The task's side: asks for events, one run after the other. */
export function eventsOverPort(port: MessagePort): AskForEvents {
  let last: Promise<unknown> = Promise.resolve();
  return (wanted) => {
    const run = last.then(async () => {
      port.postMessage(wanted);
      const [reply] = (await once(port, 'message')) as [Reply];
      if (reply === 'failed') throw new Error(`events of \`${wanted.stream}\` could not be read`);
      return { events: unpackEvents(reply.events), isEnd: reply.isEnd };
    });
    last = run.catch(() => undefined);
    return run;
  };
}
