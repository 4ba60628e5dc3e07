import type { RecordedEvent } from '../../ledger/event-store.js';
import type { StampThread } from './stamp-thread.js';
import type { RecordedStamp } from './verify-vote.js';

/** The verifier of stamps; while it is busy, we wait. */
export type StampVerifier = Pick<StampThread, 'problemWith' | 'isBusy'>;

/** Stamps that are verified while the history is read on. */
export class CheckedStamps {
  private readonly verifying = new Set<Promise<void>>();

  /** @param done called with what is wrong with a stamp, if anything is */
  constructor(
    private readonly verifier: StampVerifier,
    private readonly done: (recorded: RecordedEvent, name: string, problem: string | undefined) => void,
  ) {}

  /** Resolves when the next one may come. @param name whose stamp it is, for people */
  async check(recorded: RecordedEvent, stamp: RecordedStamp, name: string): Promise<void> {
    const checked = this.verifier.problemWith(stamp).then((problem) => {
      this.verifying.delete(checked);
      this.done(recorded, name, problem);
    });
    this.verifying.add(checked);
    // The caller waiting for all of them sees the error.
    checked.catch(() => undefined);
    if (this.verifier.isBusy) await Promise.race(this.verifying);
  }

  /** Resolves once every stamp is verified. */
  async settled(): Promise<void> {
    await Promise.all(this.verifying);
  }
}
