import { PAGE_SIZE } from '../feed.js';
import type { Answer } from './sqlite-protocol.js';

/** A page ends early once it holds this much text (UTF-16 units), so that large events cannot fill the memory. */
const PAGE_TEXT = 1 << 20;
/** Rows taken from SQLite at once while a page is filled: the most by which a page can exceed `PAGE_TEXT`. */
export const ROWS_AT_ONCE = 50;

/** An event as it is stored. */
export interface Row {
  readonly position: number;
  readonly stream: string;
  readonly revision: number;
  readonly id: string;
  readonly type: string;
  readonly data: string;
  readonly metadata: string;
}

/** Rows from the statement that gives those after the last one, until the page is full. */
export function page(next: (last: Row | undefined) => Row[]): Answer {
  const rows: (string | number)[] = [];
  let text = 0;
  let count = 0;
  let previous: Row | undefined;
  for (;;) {
    const some = next(previous);
    for (const row of some) {
      pushFields(rows, row);
      text += row.data.length + row.metadata.length;
    }
    count += some.length;
    previous = some.at(-1);
    if (some.length < ROWS_AT_ONCE) return { kind: 'page', rows, last: true };
    if (count >= PAGE_SIZE || text >= PAGE_TEXT) return { kind: 'page', rows, last: false };
  }
}

/** Adds a row as the main thread reads it. */
export function pushFields(fields: (string | number)[], row: Row): void {
  fields.push(row.position, row.stream, row.revision, row.id, row.type, row.data, row.metadata);
}
