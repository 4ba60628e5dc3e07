import { within } from './failures.js';

/** Lets this many through at once, the others in order of arrival. */
export class Gate {
  readonly #waiting = new Set<() => void>();
  #free: number;

  constructor(width: number) {
    this.#free = width;
  }

  /** @throws {NoAnswer} if it is not let through in time, behind calls that nobody answers */
  async pass<T>(work: () => Promise<T>, patienceMs: number): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await this.#wait(patienceMs);
    try {
      return await work();
    } finally {
      const [next] = this.#waiting;
      if (next === undefined) this.#free++;
      else next();
    }
  }

  async #wait(patienceMs: number): Promise<void> {
    let enter = (): void => undefined;
    const entered = new Promise<void>((resolve) => {
      enter = () => {
        this.#waiting.delete(enter);
        resolve();
      };
    });
    this.#waiting.add(enter);
    try {
      await within(entered, patienceMs);
    } catch (error) {
      this.#waiting.delete(enter);
      throw error;
    }
  }
}
