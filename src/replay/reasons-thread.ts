import { CoordinatorError } from '../domain/errors.js';
import type { Whose } from '../fairness/families.js';
import type { EventReader } from '../ledger/event-store.js';
import type { ReasonsAnswer, ReasonsQuestion } from '../read-models/reasons.js';
import { HistoryThread, type HistoryThreadOptions } from './history-thread.js';

/** Explanations for one family of organizations, running or waiting. */
const mostOfFamily = 8;

/**
 * Explains past decisions. Not in the thread that answers about states: any member may ask here, and must not keep the root
 * quorum waiting there.
 */
export class ReasonsThread {
  private readonly thread: HistoryThread<ReasonsQuestion, ReasonsAnswer>;

  constructor(
    store: Pick<EventReader, 'read'>,
    { longestMs, file = new URL('./reasons-worker.js', import.meta.url) }: HistoryThreadOptions = {},
  ) {
    const noun = { one: 'the explanation', many: 'explanations of past decisions' };
    this.thread = new HistoryThread(store, { name: 'reasons', file, longestMs, mostOfFamily, noun });
  }

  /**
   * Never refuses: where too many of the family wait or the thread was lost, the answer says why it explains nothing.
   * @param whose who asks
   * @param turn is awaited between two runs of events: others may have theirs
   * @throws {Error} if the history is broken
   */
  async answer(whose: Whose, question: ReasonsQuestion, turn: () => Promise<void> | undefined): Promise<ReasonsAnswer> {
    try {
      return await this.thread.answer(whose, question, turn);
    } catch (error) {
      if (!(error instanceof CoordinatorError)) throw error;
      const isBusy = error.code === 'RESOURCE_EXHAUSTED';
      return { told: [], notExplained: isBusy ? 'other explanations are in progress: ask again' : error.message };
    }
  }

  async close(): Promise<void> {
    await this.thread.close();
  }
}
