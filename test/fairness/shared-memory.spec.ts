import { SharedMemory } from '../../src/fairness/shared-memory.js';

const all = (memory: SharedMemory<string>, keys: readonly string[]) =>
  keys.filter((key) => memory.get(key) !== undefined);

describe('SharedMemory', () => {
  it('keeps so many bytes, and of one family as much as there is', () => {
    const forgotten: string[] = [];
    const memory = new SharedMemory<string>(100, (value) => forgotten.push(value));
    for (const key of ['a', 'b', 'c', 'd']) memory.keep(key, key.toUpperCase(), 30, 'one');
    expect(all(memory, ['a', 'b', 'c', 'd'])).toEqual(['b', 'c', 'd']);
    // Used again, it is the last to go.
    memory.keep('b', 'B', 30, 'one');
    memory.keep('e', 'E', 30, 'one');
    expect(all(memory, ['b', 'c', 'd', 'e'])).toEqual(['b', 'd', 'e']);
    memory.keep('huge', 'HUGE', 1_000, 'one');
    expect(all(memory, ['b', 'd', 'e', 'huge'])).toEqual(['huge']);
    expect(forgotten).toEqual(['A', 'C', 'D', 'B', 'E']);
  });

  it('takes from whoever has more than an eighth, however new that is', () => {
    const memory = new SharedMemory<string>(160);
    for (let family = 0; family < 6; family += 1) memory.keep(`small ${family}`, '', 15, `family ${family}`);
    const strangers = Array.from({ length: 100 }, (_, index) => `stranger ${index}`);
    for (const key of strangers) memory.keep(key, '', 10, 'parent of strangers');
    for (let family = 0; family < 6; family += 1) expect(memory.get(`small ${family}`)).toBeDefined();
    expect(all(memory, strangers)).toEqual(strangers.slice(-7));
  });

  it('of many that have less, takes from whoever was there first', () => {
    const memory = new SharedMemory<string>(100);
    const families = Array.from({ length: 20 }, (_, at) => `family ${at}`);
    for (const family of families) memory.keep(family, '', 10, family);
    expect(all(memory, families)).toEqual(families.slice(-10));
  });
});
