import { ParsedInterfaces } from '../../src/transactions/parsed-interfaces.js';

/** Interfaces of 100 000 characters, each another one. */
const json = (name: string): string => name.padEnd(100_000);

function kept(memory: ParsedInterfaces<string>, names: readonly string[]): readonly string[] {
  return names.filter((name) => memory.get('ETHEREUM', json(name)) !== undefined);
}

test('of one owner half a million characters are kept, those that were asked for last', () => {
  const memory = new ParsedInterfaces<string>();
  memory.keep('ETHEREUM', json('other'), 'other', { parsed: 'other', spent: 1 });
  const names = Array.from({ length: 8 }, (_, at) => `own ${at}`);
  for (const name of names) {
    memory.keep('ETHEREUM', json(name), 'owner', { parsed: name, spent: 1 });
    expect(memory.get('ETHEREUM', json('own 0'))?.parsed ?? 'gone').toBe('own 0');
  }
  // Each has its type in front.
  expect(kept(memory, names)).toEqual(['own 0', 'own 5', 'own 6', 'own 7']);
  expect(kept(memory, ['other'])).toEqual(['other']);
});

test('keeps four million characters of all owners together', () => {
  const memory = new ParsedInterfaces<string>();
  const names = Array.from({ length: 60 }, (_, at) => `of owner ${at}`);
  for (const name of names) memory.keep('ETHEREUM', json(name), name, { parsed: name, spent: 1 });
  expect(kept(memory, names)).toEqual(names.slice(-39));
});
