import { appendWithRetry } from '../../src/ledger/append-with-retry.js';
import { StoreLocked, StoreRefused, StoreUnavailable, WrongRevision } from '../../src/ledger/event-store.js';
import { emptyTail, type Fact, type Tail } from '../../src/ledger/seal.js';
import type { EventMetadata } from '../../src/ledger/chain.js';
import { SteeredStore, type Fault } from './steered-store.js';

const stream = 'claims-of-somebody';
const fact = (type: string): Fact => ({ type, data: {}, metadata: { at: 0, $correlationId: 'c', $causationId: 'c' } });

/** A stream, whose end each decision reads. */
function world() {
  const store = new SteeredStore();
  const decided: number[] = [];
  const end = async (): Promise<Tail> => {
    let tail: Tail = emptyTail;
    for await (const { revision, metadata } of store.read(stream)) {
      tail = { revision, hash: (metadata as EventMetadata).hash };
    }
    return tail;
  };
  const add = (type: string, { attempts = 5 } = {}) =>
    appendWithRetry(
      store,
      stream,
      async () => {
        const tail = await end();
        decided.push(tail.revision);
        return { tail, facts: [fact(type)] };
      },
      { attempts },
    );
  const recorded = async () => {
    const types: string[] = [];
    for await (const { type } of store.read(stream)) types.push(type);
    return types;
  };
  return { store, decided, end, add, recorded };
}

test('records after the end of the stream, and returns the new one', async () => {
  const { add, end, recorded } = world();
  expect(await add('First')).toMatchObject({ revision: 0 });
  const added = await add('Second');
  expect(added?.tail).toEqual(await end());
  expect(await recorded()).toEqual(['First', 'Second']);
});

test('decides again on what another writer has recorded first', async () => {
  const { store, add, decided, recorded } = world();
  store.overtake = async () => {
    store.overtake = () => Promise.resolve();
    await add('Faster');
  };
  expect(await add('Slower')).toMatchObject({ revision: 1 });
  expect(await recorded()).toEqual(['Faster', 'Slower']);
  expect(decided).toEqual([-1, -1, 0]);
});

test('gives up after so many attempts', async () => {
  const { store, add, decided, recorded } = world();
  for (const attempt of [0, 1, 2]) store.faults.set(attempt, 'wrong-revision');
  await expect(add('Never', { attempts: 3 })).rejects.toBeInstanceOf(WrongRevision);
  expect(decided).toHaveLength(3);
  expect(await recorded()).toEqual([]);
});

test('records nothing if there is nothing to record', async () => {
  const { store } = world();
  expect(await appendWithRetry(store, stream, () => Promise.resolve(undefined), { attempts: 1 })).toBeUndefined();
  expect(store.asked).toEqual([]);
});

test.each<Fault>(['unavailable-before', 'unavailable-after'])(
  'repeats an append of unknown outcome with the same ids, and decides no second time: %s',
  async (fault) => {
    const { store, add, decided, recorded } = world();
    store.faults.set(0, fault);
    expect(await add('Once')).toMatchObject({ revision: 0 });
    expect(await recorded()).toEqual(['Once']);
    expect(decided).toEqual([-1]);
    const [first, second] = store.asked.map(({ events, expected }) => [events.map(({ id }) => id), expected]);
    expect(second).toEqual(first);
  },
);

test('throws after a second unknown outcome', async () => {
  const { store, add } = world();
  for (const attempt of [0, 1]) store.faults.set(attempt, 'unavailable-after');
  await expect(add('Perhaps')).rejects.toBeInstanceOf(StoreUnavailable);
  expect(store.asked).toHaveLength(2);
});

test.each([
  ['is locked by another program', new StoreLocked('locked')],
  ['refuses', new StoreRefused('no', { kind: 'access-denied' })],
])('does not repeat an append to a store that %s', async (_how, error) => {
  const { store, add } = world();
  store.overtake = () => Promise.reject(error);
  await expect(add('Never')).rejects.toBe(error);
  expect(store.asked).toHaveLength(1);
});
