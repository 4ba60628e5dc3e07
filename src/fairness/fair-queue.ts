/** Where something waits: whose turn it is goes round at each level, the first level first. */
export type QueuePath = readonly string[];

interface Level<Item> {
  readonly items: Item[];
  /** In the order of their turns: a map keeps the order of insertion, and whoever was served is inserted anew. */
  readonly below: Map<string, Level<Item>>;
}

/**
 * A queue in which nobody's requests make others wait: at each level of the path the keys that have something waiting take
 * turns, so that a key waits for one turn of each other key that was there before it, however much any of them has put in.
 * What has the same path keeps its order. Keys that have nothing waiting take no memory.
 */
export class FairQueue<Item> {
  readonly #root: Level<Item> = emptyLevel();
  #size = 0;

  /** How much waits. */
  get size(): number {
    return this.#size;
  }

  push(path: QueuePath, item: Item): void {
    this.#levelOf(path).items.push(item);
    this.#size += 1;
  }

  /** As `push`, before whatever has the same path. */
  putBack(path: QueuePath, item: Item): void {
    this.#levelOf(path).items.unshift(item);
    this.#size += 1;
  }

  #levelOf(path: QueuePath): Level<Item> {
    let level = this.#root;
    for (const key of path) {
      let next = level.below.get(key);
      if (!next) level.below.set(key, (next = emptyLevel()));
      level = next;
    }
    return level;
  }

  /**
   * Takes whoever's turn it is; undefined when nothing waits.
   * @param isOpen whether the keys below a path may have their turn; who may not keeps its place
   */
  shift(isOpen: (path: QueuePath) => boolean = () => true): Item | undefined {
    const taken = shiftFrom(this.#root, [], isOpen);
    if (taken) this.#size -= 1;
    return taken?.item;
  }

  /** Everything that waits, in no particular order. */
  *[Symbol.iterator](): Generator<Item, void, undefined> {
    yield* itemsOf(this.#root);
  }
}

function emptyLevel<Item>(): Level<Item> {
  return { items: [], below: new Map() };
}

/** What waits at a level itself comes before what waits below it. */
function shiftFrom<Item>(
  { items, below }: Level<Item>,
  path: QueuePath,
  isOpen: (path: QueuePath) => boolean,
): { readonly item: Item } | undefined {
  if (items.length > 0) return { item: items.shift()! };
  for (const [key, level] of below) {
    const here = [...path, key];
    const taken = isOpen(here) ? shiftFrom(level, here, isOpen) : undefined;
    if (!taken) continue;
    below.delete(key);
    if (level.items.length > 0 || level.below.size > 0) below.set(key, level);
    return taken;
  }
  return undefined;
}

function* itemsOf<Item>({ items, below }: Level<Item>): Generator<Item, void, undefined> {
  yield* items;
  for (const level of below.values()) yield* itemsOf(level);
}

/**
 * The path of an organization: families take turns; in one, its parent and all of its sub-organizations together; among
 * these, each of them.
 */
export function organizationPath(organizationId: string, parentOrganizationId?: string): QueuePath {
  return parentOrganizationId === undefined
    ? ['organizations', organizationId, 'own']
    : ['organizations', parentOrganizationId, 'sub-organizations', organizationId];
}

/**
 * Under which parent this is a stranger's: one of its sub-organizations, or whoever comes through its auth proxy; undefined for
 * a parent's own. Strangers of one parent have half of what is shared, together.
 */
export function strangersOf([kind, parentId, whose]: QueuePath): string | undefined {
  return kind === 'organizations' && whose !== undefined && whose !== 'own' ? parentId : undefined;
}

/** The path of a caller of whom nothing is known yet but an address. */
export function callerPath(address: string): QueuePath {
  return ['callers', address];
}

/** Who sends a request: where it comes from, whether an auth proxy has forwarded it, and with which credential. */
export interface Sender {
  readonly network: string;
  readonly isThroughProxy: boolean;
  readonly credential: string;
}

/** The path of a sender within the organization that its request is for: strangers have half of the turns together. */
export function senderPath({ network, isThroughProxy, credential }: Sender): QueuePath {
  return isThroughProxy ? strangerPath(network) : ['members', network, credential];
}

const strangerPath = (network: string): QueuePath => ['strangers', network];

/** The path of a stranger who calls the auth proxy of an organization; among all that there is. */
export function strangersPath(organizationId: string, network: string): QueuePath {
  return ['organizations', organizationId, ...strangerPath(network)];
}

/** The path of a request for an organization among all that there is, by its path within. */
export function pathAmongAll(
  from: QueuePath,
  organizationId: string,
  parentOrganizationId: string | undefined,
): QueuePath {
  const [kind, network = ''] = from;
  return kind === 'strangers'
    ? strangersPath(organizationId, network)
    : organizationPath(organizationId, parentOrganizationId);
}
