import {
  StoreLocked,
  StoreRefused,
  StoreUnavailable,
  WrongRevision,
  type Appended,
  type EventStore,
  type NewEvent,
} from './event-store.js';
import { expectedAfter, seal, type Fact, type Tail } from './seal.js';

/** What to record, and the end of the stream that it was decided on. */
export interface Addition {
  readonly tail: Tail;
  readonly facts: readonly Fact[];
}

interface Added extends Appended {
  /** The end of the stream now. */
  readonly tail: Tail;
  readonly ids: readonly string[];
}

/**
 * Records what `decide` returns, after the end of the stream that it has read; decides again if another writer was first.
 * An append of unknown outcome is repeated once with the same ids, so that it is recorded once however often it arrived.
 * @param decide reads the stream, or what is new in it; called for each attempt. Undefined: there is nothing to record
 * @param attempts after so many, what other writers do is an error
 * @throws {WrongRevision} after the last attempt
 * @throws {StoreUnavailable} and whatever else the store or `decide` throws
 */
export async function appendWithRetry(
  store: Pick<EventStore, 'append'>,
  stream: string,
  decide: () => Promise<Addition | undefined>,
  { attempts }: { readonly attempts: number },
): Promise<Added | undefined> {
  for (let attempt = 1; ; attempt++) {
    const addition = await decide();
    if (!addition) return undefined;
    const { events, tail } = seal(stream, addition.tail, addition.facts);
    try {
      return { ...(await appendOnce(store, stream, events, addition.tail)), tail, ids: events.map(({ id }) => id) };
    } catch (error) {
      if (!(error instanceof WrongRevision) || attempt === attempts) throw error;
    }
  }
}

/** Stores take a repeated append as done. */
async function appendOnce(
  store: Pick<EventStore, 'append'>,
  stream: string,
  events: readonly NewEvent[],
  tail: Tail,
): Promise<Appended> {
  const append = () => store.append(stream, events, expectedAfter(tail));
  try {
    return await append();
  } catch (error) {
    const isUnknown =
      error instanceof StoreUnavailable && !(error instanceof StoreLocked) && !(error instanceof StoreRefused);
    if (!isUnknown) throw error;
    return append();
  }
}
