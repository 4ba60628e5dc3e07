import { invalidField } from '../domain/errors.js';
import type { Row, Rows } from './database.js';
import type { PaginationOptions } from './define-query.js';

/** Values of columns: the rows that have them stand in the order of a list in one index. */
export type Run = Readonly<Record<string, string>>;

/** A list of rows, the newest first. */
interface NewestFirst {
  readonly table: string;
  /** What is told of each row. */
  readonly column: string;
  /** Column that grows with time; of two rows that have the same there, what is told is the same. */
  readonly order: string;
  /** There may be such rows. */
  readonly isRepeated?: boolean;
  /** The parts that it is made of, with the same columns; no row is in two of them. */
  readonly runs: readonly Run[];
  /** Where an element stands in that order; undefined when it is not in the list. */
  readonly orderOf: (id: string) => bigint | undefined;
}

/**
 * The number behind `paginationOptions.limit`.
 * @throws {CoordinatorError} INVALID_ARGUMENT when it is not a decimal string from "1" to "100"
 */
function pageLimit(options: PaginationOptions | undefined): number {
  const { limit } = options ?? {};
  if (limit === undefined) return 10;
  if (!/^[1-9]\d{0,2}$/.test(limit) || Number(limit) > 100) {
    throw invalidField('paginationOptions.limit', `must be a decimal string from "1" to "100", got \`${limit}\``);
  }
  return Number(limit);
}

/**
 * One page of a list, the newest first. The newest stands first, so what comes after an element is older than it. A page
 * that is asked for only by what it stands before touches that element, so it is read from there. However long the list is
 * and however little of it is wanted, only what is on the page is read, and one row more of each run.
 * @throws {CoordinatorError} INVALID_ARGUMENT when a cursor names nothing in the list
 */
export function newestFirst(rows: Rows, list: NewestFirst, options: PaginationOptions | undefined): readonly string[] {
  const cursor = (name: 'before' | 'after'): bigint | undefined => {
    const id = options?.[name];
    const at = id === undefined ? undefined : list.orderOf(id);
    if (id !== undefined && at === undefined) {
      throw invalidField(`paginationOptions.${name}`, `names no element of this list: \`${id}\``);
    }
    return at;
  };
  const limit = pageLimit(options);
  const [after, before] = [cursor('after'), cursor('before')];
  const isBackward = before !== undefined && after === undefined;
  const bounds = { above: before ?? -1n, below: after ?? 2n ** 63n - 1n };
  const page = merged(list, isBackward ? 1 : -1, limit, (run, from, count) => {
    const within = isBackward ? { ...bounds, above: from ?? bounds.above } : { ...bounds, below: from ?? bounds.below };
    return read(rows, list, run, within, isBackward ? 'ASC' : 'DESC', count);
  });
  return isBackward ? page.reverse() : page;
}

function read(
  rows: Rows,
  { table, column, order, isRepeated, runs }: NewestFirst,
  run: Run,
  { above, below }: { readonly above: bigint; readonly below: bigint },
  direction: 'ASC' | 'DESC',
  count: number,
): readonly Row[] {
  const columns = Object.keys(runs[0]!);
  const where = columns.map((name) => `${name} = ?`).join(' AND ');
  return rows.all(
    `SELECT ${isRepeated ? 'DISTINCT ' : ''}${order}, ${column} FROM ${table}
     WHERE ${where} AND ${order} > ? AND ${order} < ? ORDER BY ${order} ${direction} LIMIT ?`,
    ...columns.map((name) => run[name]!),
    above,
    below,
    count,
  );
}

/** The first elements of several ordered runs taken together; `sign` is -1 for falling order. */
function merged(
  { column, order, runs }: NewestFirst,
  sign: 1 | -1,
  limit: number,
  next: (run: Run, from: bigint | undefined, count: number) => readonly Row[],
): string[] {
  const told = (row: Row) => String(row[column]);
  if (runs.length === 1) return next(runs[0]!, undefined, limit).map(told);
  const headOf = (run: Run, from?: bigint) =>
    next(run, from, 1).map((row) => ({ run, id: told(row), at: BigInt(row[order]!) }));
  const heads = runs.flatMap((run) => headOf(run));
  const page: string[] = [];
  while (page.length < limit && heads.length > 0) {
    const isBefore = (one: bigint, other: bigint) => (sign === 1 ? one < other : one > other);
    const first = heads.reduce((least, { at }, index) => (isBefore(at, heads[least]!.at) ? index : least), 0);
    const { run, id, at } = heads[first]!;
    page.push(id);
    heads.splice(first, 1, ...headOf(run, at));
  }
  return page;
}
