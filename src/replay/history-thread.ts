import { Families, type Whose } from '../fairness/families.js';
import type { EventReader } from '../ledger/event-store.js';
import type { PackedEvents } from '../read-models/packed-events.js';
import { OwnThread } from '../threads/own-thread.js';
import { handEvents } from './hand-events.js';

/** Milliseconds until an unresponsive thread is ended. */
const usualLongestMs = 30_000;
/** Memory of the thread, in MiB. */
const heapMib = 512;

/** What a question to such a thread says at least. */
export interface HistoryQuestion {
  readonly organizationId: string;
  /** The parent whose events are handed over first, and up to which revision. */
  readonly authority?: { readonly organizationId: string; readonly revision: number };
}

export type ToHistoryWorker<Question> =
  | { readonly kind: 'question'; readonly question: Question }
  | { readonly kind: 'parent' | 'events'; readonly events: PackedEvents }
  | { readonly kind: 'end' };

export type FromHistoryWorker<Answer> =
  | { readonly kind: 'go-on' | 'enough' }
  | { readonly kind: 'answer'; readonly answer: Answer }
  | { readonly kind: 'failed'; readonly reason: string };

/** For tests: another time limit, another worker. */
export interface HistoryThreadOptions {
  readonly longestMs?: number;
  /** The worker's file, by default that of this build. */
  readonly file?: URL;
}

interface Serving {
  readonly name: string;
  readonly file: URL;
  readonly longestMs?: number | undefined;
  /** Questions for one family of organizations, running or waiting. */
  readonly mostOfFamily: number;
  /** What it makes: one, and several that are in progress or waiting. */
  readonly noun: { readonly one: string; readonly many: string };
}

/**
 * Answers questions about an organization in a thread of their own, because its history has to be folded for them. The
 * thread is handed the events, and says when it has enough; `answerFromHistory` is its other side.
 */
export class HistoryThread<Question extends HistoryQuestion, Answer> {
  private readonly families: Families;
  private readonly thread: OwnThread<ToHistoryWorker<Question>, FromHistoryWorker<Answer>>;

  constructor(
    private readonly store: Pick<EventReader, 'read'>,
    { name, file, longestMs = usualLongestMs, mostOfFamily, noun }: Serving,
  ) {
    this.families = new Families(mostOfFamily, `${noun.many} in progress or waiting`);
    this.thread = new OwnThread({
      name,
      file,
      heapMib,
      longestMs,
      late: `${noun.one} was not available within ${longestMs / 1_000} s`,
      ended: `the thread that makes ${noun.many} has ended`,
    });
  }

  /**
   * @param whose who asks
   * @param turn is awaited between two runs of events: others may have theirs
   * @throws {CoordinatorError} RESOURCE_EXHAUSTED if too many of the family wait; UNAVAILABLE if the thread was lost
   * @throws {Error} if the history is broken
   */
  async answer(whose: Whose, question: Question, turn: () => Promise<void> | undefined): Promise<Answer> {
    const { organizationId, authority } = question;
    return this.families.inTurn(whose, () =>
      this.thread.talk(async (talk) => {
        const say = async (message: ToHistoryWorker<Question>) => answerIn(await talk(message));
        await say({ kind: 'question', question });
        if (authority) {
          const parent = { organizationId: authority.organizationId, upTo: authority.revision };
          await handEvents(this.store, parent, turn, (events) => say({ kind: 'parent', events }));
        }
        await handEvents(this.store, { organizationId }, turn, (events) => say({ kind: 'events', events }));
        const said = await say({ kind: 'end' });
        if (said.kind !== 'answer') throw new Error(`the thread said \`${said.kind}\`, and no answer`);
        return said.answer;
      }),
    );
  }

  async close(): Promise<void> {
    await this.thread.close();
  }
}

function answerIn<Answer>(said: FromHistoryWorker<Answer>): FromHistoryWorker<Answer> {
  if (said.kind === 'failed') throw new Error(said.reason);
  return said;
}
