import { createHash } from 'node:crypto';
import { chainEvent, GENESIS_HASH, verifyChain } from '../ledger/chain.js';
import type { EventStore } from '../ledger/event-store.js';

/** What is recorded of key-encryption keys; they are named by their ids, which tell nothing of them. */
export type KekFact =
  | { readonly type: 'KeyEncryptionKeyTaken'; readonly data: { readonly kekId: string } }
  | {
      readonly type: 'DataKeysRewrapped';
      readonly data: { readonly kekId: string; readonly vaults: number; readonly dataKeys: number };
    };

/** The last thing that was recorded: which key wraps since then, so that a later start knows it from a wrong one. */
export interface KekRecord {
  readonly kekId: string;
  /** All keys that were ever recorded. */
  readonly kekIds: ReadonlySet<string>;
  readonly revision: number;
  readonly hash: string;
}

const stream = 'installation-kek';

/** Undefined as long as nothing was sealed in this store. @throws {BrokenChain} */
export async function readKekRecord(store: EventStore): Promise<KekRecord | undefined> {
  let known: KekRecord | undefined;
  for await (const event of store.read(stream)) {
    const hash = verifyChain(known?.hash ?? GENESIS_HASH, event);
    const { kekId } = event.data as KekFact['data'];
    known = { kekId, kekIds: new Set([...(known?.kekIds ?? []), kekId]), revision: event.revision, hash };
  }
  return known;
}

/** Records a fact after what is known; its position. @throws {WrongRevision} when another was first */
export async function recordKek(
  { store, clock }: { readonly store: EventStore; readonly clock: { now(): number } },
  known: KekRecord | undefined,
  { type, data }: KekFact,
): Promise<bigint> {
  const revision = (known?.revision ?? -1) + 1;
  const previous = known?.hash ?? GENESIS_HASH;
  const { kekId } = data;
  const metadata = { at: clock.now(), schemaVersion: 1, $correlationId: kekId, $causationId: kekId };
  const event = { id: eventId(previous, type, kekId), type, data, metadata };
  const hash = chainEvent(previous, { stream, revision, ...event });
  const { position } = await store.append(
    stream,
    [{ ...event, metadata: { ...metadata, hash } }],
    known === undefined ? 'no-stream' : known.revision,
  );
  return position;
}

/** A UUID version 8 (RFC 9562, 5.8): repeating an append must not add to it. */
function eventId(...parts: readonly string[]): string {
  const hex = createHash('sha256')
    .update([stream, ...parts].join('\0'))
    .digest('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
