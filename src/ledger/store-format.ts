import { appendWithRetry } from './append-with-retry.js';
import { StoreUnavailable, type EventReader, type EventStore } from './event-store.js';
import { derivedId } from './ids.js';
import { emptyTail } from './seal.js';

/**
 * Version of everything recorded in a store: its tables, names, events and their metadata. A release reads and writes stores of this
 * format only. SQLite has it in the header of the file, EventStoreDB in the first event of a stream.
 */
export const STORE_FORMAT = 2;
/** That of builds before the first release, which did not record it everywhere. */
const UNRECORDED = 1;

/** Where a store without a header has its format. It is the first stream of a store. */
const stream = 'installation-format';

/** The store was written by a release with another format. */
class WrongStoreFormat extends StoreUnavailable {
  constructor(store: string, format: number) {
    super(
      `the event store ${store} has format ${format}, but this release uses format ${STORE_FORMAT}: start the release that ` +
        'wrote it, or set DATA_DIR or EVENT_STORE to another store',
    );
    this.name = 'WrongStoreFormat';
  }
}

/**
 * Refuses a store of another format.
 * @param store as the operator reads it; never a connection string
 * @throws {WrongStoreFormat}
 */
export function checkStoreFormat(store: string, format: number): void {
  if (format !== STORE_FORMAT) throw new WrongStoreFormat(store, format);
}

/**
 * Refuses a store that has events in another format. Writes nothing.
 * @throws {WrongStoreFormat}
 * @throws {StoreUnavailable}
 */
export async function checkRecordedFormat(store: Pick<EventReader, 'head' | 'read'>): Promise<void> {
  // In this order: the format is the first event of a store, so whoever sees another event also sees the format.
  if ((await store.head()) === undefined) return;
  checkStoreFormat('at EVENT_STORE', await recordedFormat(store));
}

async function recordedFormat(store: Pick<EventReader, 'read'>): Promise<number> {
  for await (const { data } of store.read(stream)) {
    const { format } = data as { readonly format?: unknown };
    return typeof format === 'number' ? format : UNRECORDED;
  }
  return UNRECORDED;
}

/**
 * Records the format in an empty store, before anything else.
 * @throws {WrongStoreFormat} if a coordinator of another release was first
 */
export async function recordFormat({
  store,
  clock,
}: {
  readonly store: EventStore;
  readonly clock: { now(): number };
}): Promise<void> {
  const id = derivedId(stream, String(STORE_FORMAT));
  const metadata = { at: clock.now(), $correlationId: id, $causationId: id };
  const fact = { id, type: 'StoreFormatted', data: { format: STORE_FORMAT }, metadata };
  const decide = async () => ((await store.head()) === undefined ? { tail: emptyTail, facts: [fact] } : undefined);
  await appendWithRetry(store, stream, decide, { attempts: 2 });
  await checkRecordedFormat(store);
}
