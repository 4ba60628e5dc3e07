import { GENESIS_HASH, verifyCanonicalChain } from '../../ledger/chain.js';
import type { RecordedEvent } from '../../ledger/event-store.js';
import { messageOf } from './finding.js';
import { SpilledMap, type Spill } from './spill.js';

/** Our own streams that are read from their first event; the others lose events over time, and decide nothing. */
const chained = /^(organization|denials|claims|webhook-deliveries|vault|installation)-/;

export function isChained(stream: string): boolean {
  return chained.test(stream);
}

/** Where a stream has come to. */
export interface End {
  /** Its last link; empty once the chain was broken. */
  readonly hash: string;
  readonly revision: number;
}

/** Streams whose ends are in memory. */
const mostEnds = 20_000;

/** The hash chain of each stream, followed event by event. */
export class CheckedChains {
  private readonly ends: SpilledMap<End>;

  constructor(spill: Spill) {
    this.ends = new SpilledMap(spill, {
      name: 'ends',
      most: mostEnds,
      sizeOf: () => 1,
      write: ({ hash, revision }) => Buffer.from(`${revision} ${hash}`, 'latin1'),
      read: (bytes) => {
        const [revision, hash] = bytes.toString('latin1').split(' ');
        return { hash: hash!, revision: Number(revision) };
      },
    });
  }

  /** Streams that have events. */
  get count(): number {
    return this.ends.size;
  }

  /** The event's link, if it is the next one in its stream's chain. */
  follow(recorded: RecordedEvent, found: (problem: string) => void): string | undefined {
    const { stream, revision } = recorded;
    const before = this.ends.get(stream) ?? { hash: GENESIS_HASH, revision: -1 };
    const hash = before.hash === '' ? '' : this.linkOf(recorded, before, found);
    this.ends.set(stream, { hash, revision });
    this.ends.shrink();
    return hash === '' ? undefined : hash;
  }

  private linkOf(recorded: RecordedEvent, before: End, found: (problem: string) => void): string {
    try {
      if (recorded.revision !== before.revision + 1)
        throw new Error(`revision ${before.revision} comes before it in the store`);
      return verifyCanonicalChain(before.hash, recorded);
    } catch (error) {
      found(`${messageOf(error)}; the rest of this stream was not checked`);
      return '';
    }
  }

  /** Where a stream ends; undefined if it has no event. */
  endOf(stream: string): End | undefined {
    return this.ends.get(stream);
  }

  has(stream: string): boolean {
    return this.ends.has(stream);
  }

  /** By name. */
  all(): Iterable<readonly [stream: string, end: End]> {
    return this.ends.entries();
  }
}
