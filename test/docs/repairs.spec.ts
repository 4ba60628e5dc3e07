import { readdirSync, readFileSync, statSync } from 'node:fs';
import { repairs } from '../../scripts/repairs.mjs';

const root = new URL('../../', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, root), 'utf8');

// Whoever changes such a line says in scripts/repairs.mjs what is to be taken out from now on, and sees the test red by it.
test.each(repairs)('$rule: $repair', ({ file, from, to, test: path, named }) => {
  expect([file, read(file).split(from).length - 1]).toEqual([file, 1]);
  expect(to).not.toBe(from);
  const specs = statSync(new URL(path, root)).isDirectory()
    ? readdirSync(new URL(path, root)).map((name) => `${path}/${name}`)
    : [path];
  const text = specs
    .filter((spec) => spec.endsWith('.spec.ts'))
    .map(read)
    .join('\n');
  for (const title of named?.split('|') ?? []) expect(text).toContain(title);
});

test('a repair is listed once', () => {
  const names = repairs.map(({ rule, repair }) => `${rule} ${repair}`);
  expect(names).toEqual([...new Set(names)]);
});
