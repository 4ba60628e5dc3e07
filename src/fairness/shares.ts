import type { QueuePath } from './fair-queue.js';

interface SharesOptions {
  /** Which of its shares a holder gives up first; the oldest unless given. */
  readonly gives?: 'oldest' | 'latest';
  /** Holders that have nothing get something even when all is taken, until so much is taken; by default they do not. */
  readonly mostEver?: number;
}

/** A holder's part of what is shared. */
export interface Share {
  /** It may make room for holders of less; `giveUp` is called when it does, and it is free then. */
  offer(giveUp: () => void): void;
  /** It is not given up any more. */
  keep(): void;
  /** It is free again; nothing if it was given up. */
  free(): void;
}

/**
 * What callers share: slots, places in a queue, bytes of bodies. When all is taken, the holder of most makes room for whoever
 * would hold less than it does, so that nobody is refused because others have used it up. Holders are
 * compared level by level of their paths: families first, then a parent with its sub-organizations together, then these.
 */
export class Shares {
  readonly #root: Holder = new Holder();
  readonly #gives: 'oldest' | 'latest';
  readonly #mostEver: number;

  constructor(
    readonly most: number,
    { gives = 'oldest', mostEver = most }: SharesOptions = {},
  ) {
    this.#gives = gives;
    this.#mostEver = mostEver;
  }

  /** What is held at a path and below. */
  held(path: QueuePath): number {
    return this.#at(path)?.amount ?? 0;
  }

  /** Takes a share, for which others make room if they must; undefined if nobody can. */
  take(path: QueuePath, amount = 1): Share | undefined {
    while (this.#root.amount + amount > this.most) {
      const victim = this.#victimFor(path, amount);
      if (victim) this.#giveUp(victim);
      else if (this.held(path) === 0 && this.#root.amount + amount <= this.#mostEver) break;
      else return undefined;
    }
    return new Part(this.#root, path, amount);
  }

  /** Whether `take` would succeed. */
  hasRoom(path: QueuePath, amount = 1): boolean {
    return this.#root.amount + amount <= this.most || this.#victimFor(path, amount) !== undefined;
  }

  #at(path: QueuePath): Holder | undefined {
    return path.reduce<Holder | undefined>((holder, key) => holder?.below?.get(key), this.#root);
  }

  /** The largest holder of more than this one would have, at the first level that has one. */
  #victimFor(path: QueuePath, amount: number): Holder | undefined {
    let holder: Holder | undefined = this.#root;
    for (const key of path) {
      const own: Holder | undefined = holder.below?.get(key);
      const largest = largestOf(holder);
      if (largest && largest !== own && largest.amount > (own?.amount ?? 0) + amount) return largest;
      if (!own) return undefined;
      holder = own;
    }
    return undefined;
  }

  #giveUp(holder: Holder): void {
    let leaf = holder;
    for (let next = largestOf(leaf); next; next = largestOf(leaf)) leaf = next;
    const [...offered] = leaf.offered;
    (this.#gives === 'oldest' ? offered[0] : offered.at(-1))?.giveUp();
  }
}

/** A caller, or the callers below a part of a path. */
class Holder {
  amount = 0;
  /** Number of shares here and below that may be given up. */
  offers = 0;
  /** Those of this very holder, in order. */
  readonly offered = new Set<Part>();
  below: Map<string, Holder> | undefined;
}

/** The largest of those below a holder that have something to give up. */
function largestOf({ below }: Holder): Holder | undefined {
  let largest: Holder | undefined;
  for (const one of below?.values() ?? []) {
    if (one.offers > 0 && one.amount > (largest?.amount ?? 0)) largest = one;
  }
  return largest;
}

class Part implements Share {
  readonly #line: readonly Holder[];
  #isFree = false;
  #giveUp: (() => void) | undefined;

  constructor(
    root: Holder,
    readonly path: QueuePath,
    readonly amount: number,
  ) {
    const line = [root];
    for (const key of path) {
      const below = (line.at(-1)!.below ??= new Map<string, Holder>());
      const next = below.get(key) ?? new Holder();
      below.set(key, next);
      line.push(next);
    }
    for (const holder of line) holder.amount += amount;
    this.#line = line;
  }

  offer(giveUp: () => void): void {
    if (this.#isFree) return;
    if (!this.#giveUp) for (const holder of this.#line) holder.offers += 1;
    this.#giveUp = giveUp;
    this.#line.at(-1)!.offered.add(this);
  }

  keep(): void {
    if (!this.#giveUp) return;
    this.#giveUp = undefined;
    for (const holder of this.#line) holder.offers -= 1;
    this.#line.at(-1)!.offered.delete(this);
  }

  free(): void {
    if (this.#isFree) return;
    this.#isFree = true;
    this.keep();
    for (const [depth, holder] of this.#line.entries()) {
      holder.amount -= this.amount;
      if (holder.amount === 0 && depth > 0) this.#line[depth - 1]!.below!.delete(this.path[depth - 1]!);
    }
  }

  giveUp(): void {
    const giveUp = this.#giveUp;
    this.free();
    giveUp?.();
  }
}
