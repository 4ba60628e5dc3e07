/** Where something waits: at each level, keys take turns, the first level first. */
export type QueuePath = readonly string[];

interface Level<Item> {
  readonly items: Item[];
  /** In order of turns: a map keeps insertion order, and a key that was served is inserted again. */
  readonly below: Map<string, Level<Item>>;
}

/**
 * A fair queue: at each level of the path, the keys that have something waiting take turns. So a key waits for one turn
 * of each key that was there before it, however much any of them has queued. Items with the same path stay in order.
 * Keys with nothing waiting take no memory.
 */
export class FairQueue<Item> {
  readonly #root: Level<Item> = emptyLevel();
  #size = 0;

  /** Number of waiting items. */
  get size(): number {
    return this.#size;
  }

  push(path: QueuePath, item: Item): void {
    this.#levelOf(path).items.push(item);
    this.#size += 1;
  }

  /** Like `push`, but before other items with the same path. */
  putBack(path: QueuePath, item: Item): void {
    this.#levelOf(path).items.unshift(item);
    this.#size += 1;
  }

  /** Takes an item that waits out of the queue; nothing if it does not wait. */
  remove(path: QueuePath, item: Item): void {
    if (removeFrom(this.#root, path, item)) this.#size -= 1;
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
   * Takes the next item; undefined if nothing waits.
   * @param isOpen whether the keys below a path may have their turn; those that may not keep their place
   */
  shift(isOpen: (path: QueuePath) => boolean = () => true): Item | undefined {
    const taken = shiftFrom(this.#root, [], isOpen);
    if (taken) this.#size -= 1;
    return taken?.item;
  }

  /** Every waiting item, in no particular order. */
  *[Symbol.iterator](): Generator<Item, void, undefined> {
    yield* itemsOf(this.#root);
  }
}

function emptyLevel<Item>(): Level<Item> {
  return { items: [], below: new Map() };
}

/** Items at a level itself come before those below it. */
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

function removeFrom<Item>({ items, below }: Level<Item>, [key, ...rest]: QueuePath, item: Item): boolean {
  if (key === undefined) {
    const place = items.indexOf(item);
    if (place >= 0) items.splice(place, 1);
    return place >= 0;
  }
  const level = below.get(key);
  const isRemoved = level !== undefined && removeFrom(level, rest, item);
  if (isRemoved && level.items.length === 0 && level.below.size === 0) below.delete(key);
  return isRemoved;
}

function* itemsOf<Item>({ items, below }: Level<Item>): Generator<Item, void, undefined> {
  yield* items;
  for (const level of below.values()) yield* itemsOf(level);
}

/**
 * The path of an organization: families take turns; within one, the parent alternates with all of its sub-organizations
 * together; and these take turns among themselves.
 */
export function organizationPath(organizationId: string, parentOrganizationId?: string): QueuePath {
  return parentOrganizationId === undefined
    ? ['organizations', organizationId, 'own']
    : ['organizations', parentOrganizationId, 'sub-organizations', organizationId];
}

/**
 * The parent for which this is a stranger: one of its sub-organizations, or a client of its auth proxy; undefined for a
 * parent's own. Strangers of one parent share half of a common resource.
 */
export function strangersOf([kind, parentId, whose]: QueuePath): string | undefined {
  return kind === 'organizations' && whose !== undefined && whose !== 'own' ? parentId : undefined;
}

/** The path of a caller who is known only by address. */
export function callerPath(address: string): QueuePath {
  return ['callers', address];
}

/** The sender of a request: its address, whether an auth proxy forwarded it, and its credential. */
export interface Sender {
  readonly network: string;
  readonly isThroughProxy: boolean;
  readonly credential: string;
}

/** The path of a sender within the organization of the request: strangers have half of the turns together. */
export function senderPath({ network, isThroughProxy, credential }: Sender): QueuePath {
  return isThroughProxy ? strangerPath(network) : ['members', network, credential];
}

const strangerPath = (network: string): QueuePath => ['strangers', network];

/** The path of a stranger who calls the auth proxy of an organization, among all requests. */
export function strangersPath(organizationId: string, network: string): QueuePath {
  return ['organizations', organizationId, ...strangerPath(network)];
}

/** The path of a request for an organization among all requests, by its path within. */
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
