import type { HealthReports } from '../../../ports/health.js';
import { StoreLocked } from '../../event-store.js';
import type { StoreThread } from './store-thread.js';

/** Milliseconds between two attempts to get the lock. */
const retryMs = 100;
/** Milliseconds of a lock after which requests are refused; they retry later. */
const requestMs = 4_500;
/** Milliseconds of a lock after which the store gives up. */
const mostMs = 30_000;

const condition = 'event-store-locked';

interface Waiting {
  readonly resolve: () => void;
  readonly reject: (error: StoreLocked) => void;
}

/**
 * The lock for writing while another program has it. SQLite has then written nothing for certain, so writes wait here, and the thread
 * reads meanwhile.
 */
export class WriteLock {
  readonly #file: string;
  readonly #thread: StoreThread;
  readonly #health: HealthReports | undefined;
  #since: number | undefined;
  #waiting: Waiting[] = [];
  #retry: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(file: string, thread: StoreThread, health: HealthReports | undefined) {
    this.#file = file;
    this.#thread = thread;
    this.#health = health;
  }

  /** Whether writes wait. */
  get isTaken(): boolean {
    return this.#since !== undefined;
  }

  /** @throws {StoreLocked} if another program has had it for too long to wait for */
  check(): void {
    if (this.#heldMs() >= requestMs) throw this.refusal();
  }

  /**
   * Another program has it. Resolves when a write may be tried again.
   * @throws {StoreLocked} if that takes too long: nothing is written after that
   */
  wait(): Promise<void> {
    if (this.#since === undefined) {
      this.#since = performance.now();
      this.#health?.raise(
        condition,
        'degraded',
        `another program has the write lock of \`${this.#file}\`; end its transaction, and never write to this file`,
      );
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      this.#retry ??= setTimeout(() => this.#tryAgain(), retryMs);
    });
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#retry);
    this.#refuseAll();
  }

  #tryAgain(): void {
    this.#thread.send({ kind: 'probe' }, (answer) => {
      this.#retry = undefined;
      if (answer.kind !== 'locked') return this.#free();
      if (this.#heldMs() >= mostMs) {
        this.#thread.fail(
          `another program has had the write lock of \`${this.#file}\` for ${mostMs / 1000} s; end its transaction, then ` +
            'restart the coordinator',
        );
        return this.close();
      }
      if (this.#heldMs() >= requestMs) this.#refuseAll();
      if (!this.#isClosed) this.#retry = setTimeout(() => this.#tryAgain(), retryMs);
    });
  }

  #free(): void {
    this.#since = undefined;
    this.#health?.clear(condition);
    for (const { resolve } of this.#waiting.splice(0)) resolve();
  }

  #refuseAll(): void {
    for (const { reject } of this.#waiting.splice(0)) reject(this.refusal());
  }

  #heldMs(): number {
    return this.#since === undefined ? 0 : performance.now() - this.#since;
  }

  refusal(): StoreLocked {
    return new StoreLocked(`another program has the write lock of \`${this.#file}\`: nothing was written`);
  }
}
