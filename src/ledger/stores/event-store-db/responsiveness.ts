/** How long nothing was answered when the server counts as stalled, in milliseconds. */
const SILENT_MS = 1_500;
/** The same after one call without an answer: longer than from one attempt of it to the end of the next. */
const UNANSWERED_MS = 4_500;

/** Whether a server answers, and since when it has not. */
export class Answers {
  #respondedAt = performance.now();
  #hasResponded = false;
  #isSilent = false;
  #unansweredAt = -Infinity;

  /** When something was last answered, on the clock of `performance.now`. */
  get respondedAt(): number {
    return this.#respondedAt;
  }

  /** Whether anything was answered since a connection was last given up. */
  get hasResponded(): boolean {
    return this.#hasResponded;
  }

  /** How long nothing was answered, in milliseconds; 0 as long as nobody has waited in vain. */
  get silentMs(): number {
    return this.#isSilent ? performance.now() - this.#respondedAt : 0;
  }

  /** Whether calls wait in vain, or one has just done so. */
  get isStalled(): boolean {
    return this.silentMs >= SILENT_MS || performance.now() - this.#unansweredAt < UNANSWERED_MS;
  }

  /** Must be called when a call has had no answer, also if others have. */
  unanswered(): void {
    this.#unansweredAt = performance.now();
  }

  responded(): void {
    this.#respondedAt = performance.now();
    this.#hasResponded = true;
    this.#isSilent = false;
  }

  /** Must be called when somebody has waited in vain. */
  missed(): void {
    this.#isSilent = true;
  }

  /** Must be called when a connection is given up. */
  startAgain(): void {
    this.#hasResponded = false;
  }
}
