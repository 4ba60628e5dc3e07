import { CoordinatorError } from '../domain/errors.js';
import { denialStream } from '../domain/activity/denial.js';
import { organizationStream } from '../domain/organization/organization.js';
import { Families, type Whose } from '../fairness/families.js';
import { eventRuns } from '../ledger/event-runs.js';
import type { EventReader } from '../ledger/event-store.js';
import { packEvents, type PackedEvents } from '../read-models/packed-events.js';
import type { WhatIfQuestion, WhatIfResponse } from '../read-models/what-if.js';
import { OwnThread } from '../threads/own-thread.js';

/** Questions of one family of organizations, running or waiting. */
const mostOfFamily = 2;
/** Milliseconds until an unresponsive thread is ended; the steps of a question take a third of that. */
const usualLongestMs = 45_000;
/** Memory of the thread, in MiB. */
const heapMib = 512;

export type ToWhatIfWorker =
  | {
      readonly kind: 'question';
      readonly question: WhatIfQuestion;
      /** Position of the last event in the store. */
      readonly head: bigint;
    }
  | {
      readonly kind: 'events';
      readonly events: PackedEvents;
      /** The stream has no more. */
      readonly isEnd: boolean;
    };

export type FromWhatIfWorker =
  | { readonly kind: 'read'; readonly stream: string; readonly from: number; readonly most: number }
  | { readonly kind: 'answer'; readonly answer: WhatIfResponse }
  | { readonly kind: 'refused'; readonly error: Pick<CoordinatorError, 'code' | 'message' | 'details'> }
  | { readonly kind: 'failed'; readonly reason: string };

interface WhatIfThreadOptions {
  readonly longestMs?: number;
  /** The worker's file, by default that of this build. */
  readonly file?: URL;
}

type Say = (message: ToWhatIfWorker) => Promise<FromWhatIfWorker>;

/** Decides histories again under drafts, in a thread of its own, which says which events it needs next. */
export class WhatIfThread {
  private readonly families = new Families(mostOfFamily, 'what-ifs in progress or waiting');
  private readonly thread: OwnThread<ToWhatIfWorker, FromWhatIfWorker>;

  constructor(
    private readonly store: Pick<EventReader, 'read' | 'head'>,
    { longestMs = usualLongestMs, file = new URL('./what-if-worker.js', import.meta.url) }: WhatIfThreadOptions = {},
  ) {
    this.thread = new OwnThread({
      name: 'what-if',
      file,
      heapMib,
      longestMs,
      late: `the what-if was not available within ${longestMs / 1_000} s`,
      ended: 'the thread that decides histories again has ended',
    });
  }

  /**
   * @param whose who asks
   * @param turn is awaited between two runs of events: others may have theirs
   * @throws {CoordinatorError} INVALID_ARGUMENT for a draft that cannot hold; NOT_FOUND for a revision that there is not;
   * RESOURCE_EXHAUSTED if too many of the family wait; UNAVAILABLE if the thread was lost
   * @throws {Error} if the history is broken
   */
  async answer(whose: Whose, question: WhatIfQuestion, turn: () => Promise<void> | undefined): Promise<WhatIfResponse> {
    return this.families.inTurn(whose, () => this.thread.talk((say) => this.talk(question, turn, say)));
  }

  private async talk(question: WhatIfQuestion, turn: () => Promise<void> | undefined, say: Say) {
    const { organizationId, readsParent } = question;
    // Whatever the thread asks for, it sees no one else's events.
    const readable = new Set([organizationStream(organizationId), denialStream(organizationId)]);
    if (readsParent !== undefined) readable.add(organizationStream(readsParent));
    let said = await say({ kind: 'question', question, head: (await this.store.head()) ?? -1n });
    while (said.kind === 'read') {
      if (!readable.has(said.stream)) throw new Error(`the thread asked for stream \`${said.stream}\``);
      const page = await this.page(said);
      await turn();
      said = await say({ kind: 'events', ...page });
    }
    if (said.kind === 'answer') return said.answer;
    if (said.kind === 'failed') throw new Error(said.reason);
    const { code, message, details } = said.error;
    throw new CoordinatorError(code, message, { details });
  }

  private async page({ stream, from, most }: Extract<FromWhatIfWorker, { kind: 'read' }>) {
    for await (const { events, isEnd } of eventRuns(this.store, stream, { from, most })) {
      return { events: packEvents(events), isEnd };
    }
    throw new Error(`stream \`${stream}\` was read to no end`);
  }

  async close(): Promise<void> {
    await this.thread.close();
  }
}
