import { limitExceeded } from '../domain/errors.js';
import { FairQueue, type QueuePath } from '../fairness/fair-queue.js';

/** Responses up to this size, in bytes, need no slot. */
export const smallAnswer = 256 * 1024;
/** Number of large responses being written or sent at a time. One family may have half of them. */
const usualPlaces = 16;
/** How long a response waits for a slot, in milliseconds. */
const usualWaitMs = 10_000;

/** Slots for large responses, which occupy memory until the caller has read them. Callers take turns. */
class AnswerRoom {
  readonly #waiting = new FairQueue<() => void>();
  readonly #busy = new Map<string, number>();
  #taken = 0;

  constructor(
    private readonly places = usualPlaces,
    private readonly waitMs = usualWaitMs,
  ) {}

  /**
   * Resolves with a function that frees the slot.
   * @param path see `organizationPath`
   * @throws {CoordinatorError} RESOURCE_EXHAUSTED after waiting too long
   */
  async enter(path: QueuePath): Promise<() => void> {
    const family = familyOf(path);
    await new Promise<void>((resolve, reject) => {
      const wait: { isOver: boolean; timer?: NodeJS.Timeout } = { isOver: false };
      wait.timer = setTimeout(() => {
        wait.isOver = true;
        reject(limitExceeded(`${this.places / 2} responses of more than ${smallAnswer} bytes at a time`, 1));
      }, this.waitMs);
      this.#waiting.push(path, () => {
        clearTimeout(wait.timer);
        // A caller who has given up takes no slot.
        if (wait.isOver) return;
        this.#taken += 1;
        this.#busy.set(family, (this.#busy.get(family) ?? 0) + 1);
        resolve();
      });
      this.#letIn();
    });
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      this.#taken -= 1;
      const left = this.#busy.get(family)! - 1;
      if (left > 0) this.#busy.set(family, left);
      else this.#busy.delete(family);
      this.#letIn();
    };
  }

  #letIn(): void {
    const isOpen = (path: QueuePath) => (this.#busy.get(familyOf(path)) ?? 0) < this.places / 2;
    while (this.#taken < this.places) {
      const enter = this.#waiting.shift(isOpen);
      if (!enter) return;
      enter();
    }
  }
}

/** A level above the families has no limit. */
const familyOf = ([_kind, family = '']: QueuePath): string => family;

/** One per process: coordinators in one process share its memory. */
export const answerRoom = new AnswerRoom();
