import { OneByOne } from '../../../src/ledger/stores/one-by-one.js';

async function* lists(...given: readonly (readonly number[] | Error)[]): AsyncGenerator<readonly number[], void> {
  for (const list of given) {
    await new Promise(setImmediate);
    if (list instanceof Error) throw list;
    yield list;
  }
}

/** What comes of it, and the error that ends it. */
async function walk(elements: OneByOne<number>): Promise<readonly unknown[]> {
  const seen: unknown[] = [];
  try {
    for await (const element of elements) seen.push(element);
  } catch (error) {
    seen.push(error);
  }
  return seen;
}

describe('elements of lists, one by one', () => {
  it('come in order, whatever list they are in', async () => {
    expect(await walk(new OneByOne(lists([], [1, 2], [], [3], [])))).toEqual([1, 2, 3]);
    expect(await walk(new OneByOne(lists()))).toEqual([]);
  });

  it('come until a list fails, and no further', async () => {
    const elements = new OneByOne(lists([1, 2], new RangeError('gone'), [3]));
    expect(await walk(elements)).toEqual([1, 2, new RangeError('gone')]);
    expect(await walk(elements)).toEqual([]);
  });

  it('end with who breaks off, and so do the lists', async () => {
    let isEnded = false;
    async function* endless() {
      try {
        for (;;) {
          await new Promise(setImmediate);
          yield [1, 2, 3];
        }
      } finally {
        isEnded = true;
      }
    }
    const elements = new OneByOne(endless());
    for await (const element of elements) if (element === 2) break;
    expect(isEnded).toBe(true);
    expect(await elements.next()).toEqual({ done: true, value: undefined });
  });

  it('are asked for one after another: none is lost to two who ask at once', async () => {
    const elements = new OneByOne(lists([1], [2]));
    const [first, second] = await Promise.allSettled([elements.next(), elements.next()] as const);
    expect(first).toEqual({ status: 'fulfilled', value: { done: false, value: 1 } });
    expect(String(second.status === 'rejected' && second.reason)).toMatch(/await it first/);
    expect(await walk(elements)).toEqual([2]);
  });
});
