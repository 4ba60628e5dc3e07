import { readFileSync } from 'node:fs';
import { limitTable } from '../../src/domain/organization/limits.js';

/** Rows of the first table of a page, by their cells, without its head. */
function tableIn(page: string): readonly (readonly string[])[] {
  const lines = readFileSync(new URL(`../../docs/${page}`, import.meta.url), 'utf8').split('\n');
  const first = lines.findIndex((line) => line.startsWith('|'));
  const rows = lines.slice(first, lines.indexOf('', first));
  return rows.slice(2).map((row) =>
    row
      .slice(1, -1)
      .split(' | ')
      .map((cell) => cell.trim()),
  );
}

test('every limit of work has its value, its reason and what a request at the limit costs', () => {
  const rows = tableIn('limits.md');
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
  expect(tableIn('reference/limits.md')).toHaveLength(Object.keys(limitTable).length);
});
