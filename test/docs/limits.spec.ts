import { readFileSync } from 'node:fs';
import { limitTable } from '../../src/domain/organization/limits.js';

/** Rows of the tables of limits on a page, by their cells, without their heads. */
function limitsIn(page: string): readonly (readonly string[])[] {
  const text = readFileSync(new URL(`../../docs/${page}`, import.meta.url), 'utf8');
  const tables = [...text.matchAll(/^\| (?:limit|name) .*\n(?:\|.*\n)+/gm)].map(([table]) =>
    table.trim().split('\n').slice(2),
  );
  return tables.flat().map((row) =>
    row
      .slice(1, -1)
      .split(' | ')
      .map((cell) => cell.trim()),
  );
}

test('every limit of work has its value, its reason and what a request at the limit costs', () => {
  const rows = limitsIn('limits.md');
  expect(rows.length).toBeGreaterThan(40);
  const cell = /^(?!–$).*[\w…]/;
  for (const row of rows)
    expect([row[0], ...row.map((text) => cell.test(text))]).toEqual([row[0], true, true, true, true]);
});

test('every limit of what is stored has its reason and what so many cost', () => {
  for (const { reason, cost } of Object.values(limitTable)) {
    expect(reason).toMatch(/\w{3}/);
    expect(cost).toMatch(/\w{3}/);
  }
  expect(limitsIn('reference/limits.md')).toHaveLength(Object.keys(limitTable).length);
});
