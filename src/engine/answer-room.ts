import { limitExceeded } from '../domain/errors.js';
import { FairQueue, type QueuePath } from '../fairness/fair-queue.js';
import { Shares } from '../fairness/shares.js';

/** Responses up to this size, in bytes, need no slot. */
export const smallAnswer = 256 * 1024;
/** Number of large responses being written or sent at a time. */
const places = 16;
/** Of these: strangers who never read theirs must leave the parent its own, and each other some. */
const shares = { family: 8, strangers: 4, one: 2 };
/** How long a response waits for a slot, in milliseconds. */
const longestWaitMs = 10_000;

/** Slots for large responses, which occupy memory until the caller has read them. Callers take turns. */
class AnswerRoom {
  readonly #waiting = new FairQueue<() => void>();
  readonly #busy = new Shares(shares);
  #taken = 0;

  /**
   * Resolves with a function that frees the slot.
   * @param path see `organizationPath`
   * @throws {CoordinatorError} RESOURCE_EXHAUSTED after waiting too long
   */
  async enter(path: QueuePath): Promise<() => void> {
    await new Promise<void>((resolve, reject) => {
      const wait: { isOver: boolean; timer?: NodeJS.Timeout } = { isOver: false };
      wait.timer = setTimeout(() => {
        wait.isOver = true;
        const { family, strangers, one } = shares;
        const each = `${one} for one sub-organization, ${strangers} for all of a parent, ${family} with the parent's own`;
        reject(limitExceeded(`responses of more than ${smallAnswer} bytes at a time: ${each}`, 1));
      }, longestWaitMs);
      this.#waiting.push(path, () => {
        clearTimeout(wait.timer);
        // A caller who has given up takes no slot.
        if (wait.isOver) return;
        this.#taken += 1;
        this.#busy.take(path);
        resolve();
      });
      this.#letIn();
    });
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      this.#taken -= 1;
      this.#busy.free(path);
      this.#letIn();
    };
  }

  #letIn(): void {
    while (this.#taken < places) {
      const enter = this.#waiting.shift((path) => this.#busy.full(path) === undefined);
      if (!enter) return;
      enter();
    }
  }
}

/** One per process: coordinators in one process share its memory. */
export const answerRoom = new AnswerRoom();
