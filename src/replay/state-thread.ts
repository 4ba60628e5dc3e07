import { CoordinatorError, type ErrorCode } from '../domain/errors.js';
import type { EventReader } from '../ledger/event-store.js';
import { Families, type Whose } from '../fairness/families.js';
import { handEvents } from './hand-events.js';
import type { StateBounds } from './kept-states.js';
import { OwnThread } from '../threads/own-thread.js';
import type { PackedEvents } from '../read-models/packed-events.js';
import type { StateAnswer, StateQuestion } from '../read-models/states.js';

/** Queries of one family of organizations, running or waiting. */
const mostOfFamily = 8;
/** Milliseconds until an unresponsive thread is ended. */
const usualLongestMs = 30_000;
/** Memory of the thread, in MiB. */
const heapMib = 512;
/** Events between two states that are kept: so many are folded in a fraction of a second. */
const usualEvery = 10_000;

export type ToStateWorker =
  | {
      readonly kind: 'question';
      readonly organizationId: string;
      readonly question: StateQuestion;
      readonly now: number;
      readonly steps?: number;
      readonly kept?: {
        readonly folder: string;
        readonly bounds?: StateBounds;
        readonly family: string;
        readonly every: number;
      };
    }
  | { readonly kind: 'events'; readonly events: PackedEvents }
  | { readonly kind: 'end' };

export type FromStateWorker =
  | { readonly kind: 'go-on' }
  /** Events from a revision on, so many at most. */
  | { readonly kind: 'read'; readonly from: number; readonly most: number }
  | { readonly kind: 'answer'; readonly answer: StateAnswer }
  | { readonly kind: 'refused'; readonly code: ErrorCode; readonly message: string }
  | { readonly kind: 'failed'; readonly reason: string };

interface Asked {
  readonly organizationId: string;
  readonly question: StateQuestion;
  readonly now: number;
}

interface StateThreadOptions {
  /** Where states are kept between questions; nowhere unless told. */
  readonly stateFolder?: string;
  readonly bounds?: StateBounds;
  /** Events between two states that are kept; usual unless told. */
  readonly every?: number;
  readonly longestMs?: number;
  /** Steps that one question may take; usual unless told. */
  readonly steps?: number;
  /** The worker's file, by default that of this build. */
  readonly file?: URL;
}

/**
 * Answers queries about the states of organizations in a separate thread, because folding a history takes long. Each
 * family, a parent with its sub-organizations, has one query at a time. A thread that dies or stops responding is
 * replaced.
 */
export class StateThread {
  private readonly families = new Families(mostOfFamily, 'questions about states in progress or waiting');
  private readonly thread: OwnThread<ToStateWorker, FromStateWorker>;

  constructor(
    private readonly store: Pick<EventReader, 'read'>,
    private readonly options: StateThreadOptions = {},
  ) {
    const { longestMs = usualLongestMs, file = new URL('./state-worker.js', import.meta.url) } = options;
    this.thread = new OwnThread({
      name: 'states',
      file,
      heapMib,
      longestMs,
      late: `the state was not available within ${longestMs / 1_000} s`,
      ended: 'the thread that answers about states has ended',
    });
  }

  /**
   * @param whose who asks
   * @param turn is awaited between two runs of events: others may have theirs
   * @throws {CoordinatorError} NOT_FOUND for a point that does not exist; RESOURCE_EXHAUSTED if too many of the family
   * wait, or the history is too long; UNAVAILABLE if the thread was lost
   */
  async answer(whose: Whose, asked: Asked, turn: () => Promise<void> | undefined): Promise<StateAnswer> {
    return this.families.inTurn(whose, () =>
      this.thread.talk((say) => this.ask(whose.family, asked, turn, async (message) => answerIn(await say(message)))),
    );
  }

  private async ask(
    family: string,
    asked: Asked,
    turn: () => Promise<void> | undefined,
    say: (message: ToStateWorker) => Promise<FromStateWorker>,
  ): Promise<StateAnswer> {
    const { stateFolder: folder, bounds, every = usualEvery, steps } = this.options;
    const kept = folder === undefined ? {} : { kept: { folder, family, every, ...(bounds ? { bounds } : {}) } };
    let said = await say({ kind: 'question', ...asked, ...kept, ...(steps === undefined ? {} : { steps }) });
    while (said.kind === 'read') said = await this.hand(asked.organizationId, said, turn, say);
    if (said.kind !== 'answer') throw new Error(`the thread that answers about states said \`${said.kind}\``);
    return said.answer;
  }

  /** Hands over the events that the thread has asked for, until it says anything else than to go on. */
  private async hand(
    organizationId: string,
    { from, most }: { readonly from: number; readonly most: number },
    turn: () => Promise<void> | undefined,
    say: (message: ToStateWorker) => Promise<FromStateWorker>,
  ): Promise<FromStateWorker> {
    const said = await handEvents(this.store, { organizationId, from, most }, turn, (events) => {
      return say({ kind: 'events', events });
    });
    return said ?? say({ kind: 'end' });
  }

  async close(): Promise<void> {
    await this.thread.close();
  }
}

/** @throws {CoordinatorError} as the thread refuses */
function answerIn(said: FromStateWorker): FromStateWorker {
  if (said.kind === 'refused') throw new CoordinatorError(said.code, said.message);
  if (said.kind === 'failed') throw new Error(said.reason);
  return said;
}
