import { limitExceeded, type CoordinatorError } from '../domain/errors.js';
import { FairQueue, type QueuePath } from './fair-queue.js';
import { Shares } from './shares.js';

interface FairSlotsOptions {
  readonly slots: number;
  /** Slots that one family may have at a time; all of them unless given. */
  readonly ofFamily?: number;
  /** Requests that may have or await a slot. */
  readonly most: number;
  /** As many when there are holders that have none. */
  readonly mostEver?: number;
  /** How long one may wait, in milliseconds; without end unless given. */
  readonly longestWaitMs?: number;
  /** What they are, for refusals. */
  readonly what: string;
}

/** A slot that somebody has. */
export interface Slot {
  /** It may be taken for somebody who has fewer; `giveUp` is called when it is. */
  offer(giveUp: () => void): void;
  leave(): void;
}

interface Waiting {
  readonly path: QueuePath;
  readonly begin: () => void;
  readonly refuse: (error: CoordinatorError) => void;
}

/**
 * Slots for which organizations take turns. When too many wait, the latest of whoever has most makes room. Paths are those of
 * organizations, or of strangers among them.
 */
export class FairSlots {
  readonly #waiting = new FairQueue<Waiting>();
  /** Those in a slot, and those waiting. */
  readonly #all: Shares;
  readonly #taken: Shares;
  readonly #options: FairSlotsOptions;

  constructor(options: FairSlotsOptions) {
    const { slots, most, mostEver = most } = options;
    this.#options = options;
    this.#all = new Shares(most, { gives: 'latest', mostEver });
    this.#taken = new Shares(slots);
  }

  /** Whether nobody has a slot or waits for one. */
  get isUnused(): boolean {
    return this.#all.held([]) === 0;
  }

  /**
   * Resolves once it is the caller's turn.
   * @throws {CoordinatorError} RESOURCE_EXHAUSTED if its place was needed for others, or after waiting too long
   */
  enter(path: QueuePath): Promise<Slot> {
    return new Promise((resolve, reject) => {
      const share = this.#all.take(path);
      if (!share) return reject(this.#refusal());
      const end = () => {
        clearTimeout(late);
        share.free();
      };
      const refuse = (error: CoordinatorError) => {
        end();
        this.#waiting.remove(path, waiting);
        reject(error);
      };
      const begin = () => {
        clearTimeout(late);
        share.keep();
        resolve(this.#occupy(path, end));
      };
      const waiting: Waiting = { path, begin, refuse };
      const { longestWaitMs } = this.#options;
      const late = longestWaitMs === undefined ? undefined : setTimeout(() => refuse(this.#refusal()), longestWaitMs);
      share.offer(() => refuse(this.#refusal()));
      this.#waiting.push(path, waiting);
      this.#letIn();
    });
  }

  /** Refuses all that wait. */
  close(error: CoordinatorError): void {
    for (const { refuse } of [...this.#waiting]) refuse(error);
  }

  #occupy(path: QueuePath, end: () => void): Slot {
    const slot = this.#taken.take(path)!;
    const leave = () => {
      slot.free();
      end();
      this.#letIn();
    };
    return {
      leave,
      offer: (giveUp) => {
        slot.offer(() => {
          end();
          giveUp();
        });
        this.#letIn();
      },
    };
  }

  #letIn(): void {
    for (let next = this.#next(); next; next = this.#next()) next.begin();
  }

  #next(): Waiting | undefined {
    return this.#waiting.shift((path) => !isWhole(path) || this.#isOpenTo(path));
  }

  #isOpenTo(path: QueuePath): boolean {
    const { ofFamily = Infinity } = this.#options;
    return this.#taken.held(path.slice(0, 2)) < ofFamily && this.#taken.hasRoom(path);
  }

  #refusal(): CoordinatorError {
    const { what, most } = this.#options;
    return limitExceeded(`${what}: ${most}, of which whoever has most gives up theirs first`, 1);
  }
}

/** Whether it is the path of somebody, and not only the beginning of one. */
function isWhole(path: QueuePath): boolean {
  return path.length > 3 || path[2] === 'own';
}
