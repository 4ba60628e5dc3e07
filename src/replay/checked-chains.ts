import { GENESIS_HASH, verifyCanonicalChain } from '../ledger/chain.js';
import type { RecordedEvent } from '../ledger/event-store.js';
import { messageOf } from './finding.js';

/** Our own streams that are read from their first event; the others lose events over time, and decide nothing. */
const chained = /^(organization|denials|claims|webhook-deliveries|vault|installation)-/;

export function isChained(stream: string): boolean {
  return chained.test(stream);
}

/** The hash chain of each stream, followed event by event. */
export class CheckedChains {
  /** Where each stream has come to; its hash is empty once it was broken. */
  ends = new Map<string, { hash: string; revision: number }>();

  /** The event's link, if it is the next one in its stream's chain. */
  follow(recorded: RecordedEvent, found: (problem: string) => void): string | undefined {
    const { stream, revision } = recorded;
    const before = this.ends.get(stream) ?? { hash: GENESIS_HASH, revision: -1 };
    if (before.hash === '') return undefined;
    try {
      if (revision !== before.revision + 1) throw new Error(`revision ${before.revision} comes before it in the store`);
      const hash = verifyCanonicalChain(before.hash, recorded);
      this.ends.set(stream, { hash, revision });
      return hash;
    } catch (error) {
      this.ends.set(stream, { hash: '', revision });
      found(`${messageOf(error)}; the rest of this stream was not checked`);
      return undefined;
    }
  }
}
