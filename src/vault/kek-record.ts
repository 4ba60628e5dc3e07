import { derivedId } from '../ledger/ids.js';
import { appendWithRetry } from '../ledger/append-with-retry.js';
import { verifyChain } from '../ledger/chain.js';
import type { EventStore } from '../ledger/event-store.js';
import { emptyTail } from '../ledger/seal.js';

/** What is recorded of key-encryption keys, by ids that reveal nothing about them. */
export type KekFact =
  | { readonly type: 'KeyEncryptionKeyActivated'; readonly data: { readonly kekId: string } }
  | {
      readonly type: 'DataKeysRewrapped';
      readonly data: { readonly kekId: string; readonly vaultCount: number; readonly dataKeyCount: number };
    };

/** The last record: the key that has wrapped since then, so that a later start can tell it from a wrong one. */
export interface KekRecord {
  readonly kekId: string;
  /** All keys that were ever recorded. */
  readonly kekIds: ReadonlySet<string>;
  readonly revision: number;
  readonly hash: string;
}

const stream = 'installation-kek';

/** Undefined while nothing has been sealed in this store. @throws {BrokenChain} */
export async function readKekRecord(store: Pick<EventStore, 'read'>): Promise<KekRecord | undefined> {
  let known: KekRecord | undefined;
  for await (const event of store.read(stream)) {
    const hash = verifyChain((known ?? emptyTail).hash, event);
    const { kekId } = event.data as KekFact['data'];
    known = { kekId, kekIds: new Set([...(known?.kekIds ?? []), kekId]), revision: event.revision, hash };
  }
  return known;
}

/**
 * Records what `decide` returns for the last record, unless that is nothing; returns its position. Decides again if another
 * coordinator was first.
 */
export async function recordKek(
  { store, clock }: { readonly store: EventStore; readonly clock: { now(): number } },
  decide: (known: KekRecord | undefined) => KekFact | undefined,
): Promise<bigint | undefined> {
  const addition = async () => {
    const known = await readKekRecord(store);
    const fact = decide(known);
    if (!fact) return undefined;
    const tail = known ?? emptyTail;
    const { type, data } = fact;
    const { kekId } = data;
    const metadata = { at: clock.now(), $correlationId: kekId, $causationId: kekId };
    // Independent of the clock, because repeating an append must not add another event.
    const id = derivedId(stream, tail.hash, type, kekId);
    return { tail, facts: [{ id, type, data, metadata }] };
  };
  return (await appendWithRetry(store, stream, addition, { attempts: Infinity }))?.position;
}
