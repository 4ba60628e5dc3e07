import { strangersOf, type QueuePath } from './fair-queue.js';

/** How many places a family of organizations may have at a time: all of it, its strangers together, and one of these. */
interface Most {
  readonly family: number;
  readonly strangers: number;
  readonly one: number;
}

/** The parts of a path that have a limit. */
const levels = ['family', 'strangers', 'one'] as const;
type Level = (typeof levels)[number];

/**
 * Places taken by families of organizations. Anyone can sign up, so strangers (`strangersOf`) have places of their own among
 * those of their parent, and one of them has only some of these.
 */
export class Shares {
  readonly #taken = new Map<string, number>();

  constructor(readonly most: Most) {}

  /** What is used up for a path, or for the beginning of one: the outermost level; undefined if there is room. */
  full(path: QueuePath): Level | undefined {
    return levels.find((level) => {
      const key = keyOf(path, level);
      return key !== undefined && (this.#taken.get(key) ?? 0) >= this.most[level];
    });
  }

  take(path: QueuePath): void {
    this.#count(path, 1);
  }

  free(path: QueuePath): void {
    this.#count(path, -1);
  }

  #count(path: QueuePath, change: 1 | -1): void {
    for (const level of levels) {
      const key = keyOf(path, level);
      if (key === undefined) continue;
      const count = (this.#taken.get(key) ?? 0) + change;
      if (count === 0) this.#taken.delete(key);
      else this.#taken.set(key, count);
    }
  }
}

/** What is counted of a path at a level; undefined if it does not reach there. A level above the families has no limit. */
function keyOf(path: QueuePath, level: Level): string | undefined {
  if (level === 'family') return path.length < 2 ? undefined : path.slice(0, 2).join(' ');
  const parentId = strangersOf(path);
  if (parentId === undefined) return undefined;
  if (level === 'strangers') return `strangers of ${parentId}`;
  return path.length < 4 ? undefined : path.slice(0, 4).join(' ');
}
