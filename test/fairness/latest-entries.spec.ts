import fc from 'fast-check';
import { LatestEntries } from '../../src/fairness/latest-entries.js';

describe('LatestEntries', () => {
  it('keeps so many, and evicts the one that was not set for longest', () => {
    const entries = new LatestEntries<number>(3);
    for (const [at, key] of ['a', 'b', 'c', 'a', 'd'].entries()) entries.set(key, at);
    expect([...entries]).toEqual([
      ['c', 2],
      ['a', 3],
      ['d', 4],
    ]);
    // Being asked for does not count.
    expect([entries.get('c'), entries.has('b'), entries.size]).toEqual([2, false, 3]);
    entries.set('e', 5);
    expect([...entries].map(([key]) => key)).toEqual(['a', 'd', 'e']);
  });

  it('is in the order of a map whose entries are deleted and set again, whatever is done', () => {
    const step = fc.tuple(fc.constantFrom('set', 'delete'), fc.nat(12).map(String), fc.nat());
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), fc.integer({ min: 1, max: 8 }), (steps, most) => {
        const entries = new LatestEntries<number>(most);
        const model = new Map<string, number>();
        for (const [verb, key, value] of steps) {
          model.delete(key);
          if (verb === 'delete') entries.delete(key);
          else {
            entries.set(key, value);
            model.set(key, value);
            if (model.size > most) model.delete([...model.keys()][0]!);
          }
          expect([entries.size, [...entries]]).toEqual([model.size, [...model]]);
          expect([entries.get(key), entries.has(key)]).toEqual([model.get(key), model.has(key)]);
        }
      }),
    );
  });

  it('may lose the entry that an iteration is at', () => {
    const entries = new LatestEntries<number>(Infinity);
    for (const key of ['a', 'b', 'c', 'd']) entries.set(key, 0);
    const seen: string[] = [];
    for (const [key] of entries) {
      seen.push(key);
      if (key !== 'c') entries.delete(key);
    }
    expect([seen, [...entries]]).toEqual([['a', 'b', 'c', 'd'], [['c', 0]]]);
  });
});
