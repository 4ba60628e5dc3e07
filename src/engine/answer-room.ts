import { limitExceeded } from '../domain/errors.js';
import { FairQueue, type QueuePath } from '../fairness/fair-queue.js';

/** Answers up to this size, in bytes, need no place. */
export const smallAnswer = 256 * 1024;
/** Large answers that are written or on their way at a time. One family may have half of them. */
const usualPlaces = 16;
/** How long an answer waits for a place, in milliseconds. */
const usualWaitMs = 10_000;

/** Places for large answers, which take memory until the caller has read them. Whoever waits for one takes turns. */
class AnswerRoom {
  readonly #waiting = new FairQueue<() => void>();
  readonly #busy = new Map<string, number>();
  #taken = 0;

  constructor(
    private readonly places = usualPlaces,
    private readonly waitMs = usualWaitMs,
  ) {}

  /**
   * Resolves with what gives the place back.
   * @param path see `organizationPath`
   * @throws {CoordinatorError} RESOURCE_EXHAUSTED when there is none for too long
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
        // Whoever has given up takes no place.
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

/** A level above the families has none. */
const familyOf = ([_kind, family = '']: QueuePath): string => family;

/** Of this process: its memory is one, however many coordinators run in it. */
export const answerRoom = new AnswerRoom();
