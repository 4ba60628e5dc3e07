import { bytesOf, isLong, joined, jsonPieces, type WrittenJson } from '../wire/json-pieces.js';
import type { TurnFor } from '../fairness/turns.js';
import { invalidField, type CoordinatorError } from '../domain/errors.js';
import type { Row, Rows } from './database.js';
import type { ListPage, PaginationOptions } from './define-query.js';
import type { ListCursors } from './list-cursors.js';

/** Values of columns; an index has the rows with these values in the order of the list. */
export type Run = Readonly<Record<string, string>>;

/** A list of rows, newest first. */
interface NewestFirst {
  readonly table: string;
  /** The element for a row. */
  readonly column: string;
  /** Column that grows with time; rows with the same value have the same element. */
  readonly order: string;
  /** Whether there may be such rows. */
  readonly isRepeated?: boolean;
  /** Its disjoint parts, with the same columns. */
  readonly runs: readonly Run[];
  /** The place of an element in that order, deleted or not; undefined if it never was in the list. */
  readonly orderOf: (id: string) => bigint | undefined;
}

/**
 * The number behind `paginationOptions.limit`.
 * @throws {CoordinatorError} INVALID_ARGUMENT if it is not a decimal string from "1" to "100"
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
 * One page of a list, newest first: what comes after an element is older. A page requested only by `before` ends right before
 * that element, so it is read backwards from there. However long the list is, only the rows of the page are read, and one more of
 * each run.
 * @throws {CoordinatorError} INVALID_ARGUMENT when a cursor names nothing in the list
 */
export function newestFirst(rows: Rows, list: NewestFirst, options: PaginationOptions | undefined): Keys {
  const cursor = (name: 'before' | 'after'): bigint | undefined => {
    const id = options?.[name];
    const at = id === undefined ? undefined : list.orderOf(id);
    if (id !== undefined && at === undefined) {
      throw noElement(name, id);
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
  return { keys: page, isBackward };
}

/** The elements for rows, in the order in which a page takes them; backwards for a page that is read backwards. */
interface Keys {
  readonly keys: readonly string[];
  readonly isBackward: boolean;
}

/** The elements with these keys, each read when it is needed. */
export function elementsOf<Element extends object>(
  { keys, isBackward }: Keys,
  read: (key: string) => Element | Promise<Element>,
): Elements<Element> {
  async function* inTurn() {
    for (const key of keys) yield read(key);
  }
  return { inTurn: inTurn(), isBackward };
}

/** A cursor names nothing that is, or was, in its list. */
export function noElement(name: 'before' | 'after', id: string): CoordinatorError {
  return invalidField(`paginationOptions.${name}`, `is not an element of this list: \`${id}\``);
}

/**
 * A page of a list that is in memory, in its order.
 * @throws {CoordinatorError} INVALID_ARGUMENT when a cursor names nothing in the list
 */
export function partOf<Element extends object>(
  elements: readonly Element[],
  idOf: (element: Element) => string,
  { limit, before, after }: ListPage = {},
): Elements<Element, Iterable<Element>> {
  const placeOf = (name: 'before' | 'after', id: string): number => {
    const place = elements.findIndex((one) => idOf(one) === id);
    if (place < 0) throw noElement(name, id);
    return place;
  };
  const from = after === undefined ? 0 : placeOf('after', after) + 1;
  const to = before === undefined ? elements.length : placeOf('before', before);
  const isBackward = before !== undefined && after === undefined;
  const part = elements.slice(from, Math.max(from, to));
  const inTurn = isBackward ? part.reverse() : part;
  return { inTurn: limit === undefined ? inTurn : inTurn.slice(0, Number(limit)), isBackward };
}

/** How many keys of an unlimited list are read at a time. */
const keysAtOnce = 256;

/**
 * The rows of an organization, oldest first, each read when it is needed: all of them, or a page.
 * @throws {CoordinatorError} INVALID_ARGUMENT when a cursor names nothing in the list
 */
export function oldestFirst<Element extends object>(
  rows: Rows,
  places: ListCursors,
  organizationId: string,
  options: ListPage = {},
  resource: (row: Row) => Element,
): Elements<Element, Iterable<Element>> {
  const { table, id } = places;
  const place = (name: 'before' | 'after') => {
    const wanted = options[name];
    if (wanted === undefined) return undefined;
    const row = places.of(rows, organizationId, wanted);
    if (!row) throw noElement(name, wanted);
    return [BigInt(row['created']!), wanted] as const;
  };
  const after = place('after') ?? [-1n, ''];
  const before = place('before') ?? [2n ** 63n - 1n, '\uffff'];
  const isBackward = options.before !== undefined && options.after === undefined;
  const direction = isBackward ? 'DESC' : 'ASC';
  const sql = `SELECT created, ${id} AS id FROM ${table} WHERE organization_id = ? AND (created, ${id}) > (?, ?)
     AND (created, ${id}) < (?, ?) ORDER BY created ${direction}, ${id} ${direction} LIMIT ?`;
  function* inTurn() {
    let left = options.limit === undefined ? Infinity : Number(options.limit);
    let [low, high]: (readonly [bigint, string])[] = [after, before];
    while (left > 0) {
      const keys = rows.all(sql, organizationId, ...low!, ...high!, Math.min(left, keysAtOnce));
      for (const key of keys) {
        const one = `SELECT * FROM ${table} WHERE organization_id = ? AND ${id} = ?`;
        const row = rows.get(one, organizationId, key['id']!);
        // Others may have run in between.
        if (row) yield resource(row);
      }
      const last = keys.at(-1);
      if (!last || keys.length < keysAtOnce) return;
      const reached = [BigInt(last['created']!), String(last['id'])] as const;
      if (isBackward) high = reached;
      else low = reached;
      left -= keys.length;
    }
  }
  return { inTurn: inTurn(), isBackward };
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

/** The first elements of several ordered runs, merged; `sign` is -1 for descending order. */
function merged(
  { column, order, runs }: NewestFirst,
  sign: 1 | -1,
  limit: number,
  next: (run: Run, from: bigint | undefined, count: number) => readonly Row[],
): string[] {
  const told = (row: Row) => String(row[column]);
  if (runs.length === 1) return next(runs[0]!, undefined, limit).map(told);
  const placeOf = (row: Row) => BigInt(row[order]!);
  const started = runs.map((run) => ({ run, ahead: [...next(run, undefined, 1)] }));
  let left = started.filter(({ ahead }) => ahead.length > 0);
  const page: string[] = [];
  while (page.length < limit && left.length > 0) {
    const first = left.reduce((least, one) => {
      const [at, leastAt] = [placeOf(one.ahead[0]!), placeOf(least.ahead[0]!)];
      return (sign === 1 ? at < leastAt : at > leastAt) ? one : least;
    });
    const row = first.ahead.shift()!;
    page.push(told(row));
    // Often most of a page comes from one run.
    if (first.ahead.length === 0) first.ahead.push(...next(first.run, placeOf(row), Math.min(limit - page.length, 16)));
    if (first.ahead.length === 0) left = left.filter((one) => one !== first);
  }
  return page;
}

/** Maximum bytes of all lists in one response; each list still has at least one element. */
export const mostBytesOfPages = 4 * 1024 * 1024;

/** A list in a response, each element as JSON. */
export interface Page<Element extends object = object> {
  readonly texts: readonly WrittenJson[];
  /** Cut because of its size. */
  readonly hasMore: boolean;
  /** Never set: tells the compiler what the texts are the JSON of. */
  readonly of?: Element;
}

/** Such a list from another thread. */
export interface TextPage<Element extends object = object> extends Page<Element> {
  readonly texts: readonly string[];
}

/** Whether a value in a response is such a list. */
export function isPage(value: unknown): value is Page {
  return typeof value === 'object' && value !== null && 'texts' in value && 'hasMore' in value;
}

/** Elements in the order in which a page takes them; the last one first for a page that is read backwards. */
export interface Elements<Element extends object = object, Turn = Iterable<Element> | AsyncIterable<Element>> {
  readonly inTurn: Turn;
  readonly isBackward: boolean;
}

/** An element that took so many milliseconds to read is written in another turn. */
const longElementMs = 10;

interface WriterPorts {
  /** Waits until there is room for a response of so many bytes. */
  readonly room: (bytes: number) => Promise<void> | undefined;
  /** Waits for the turn to read the next element; takes the size of the previous one in bytes. */
  readonly turn: TurnFor;
}

/** Writes the lists of one response, which share their maximum size; the first element is read in the caller's turn. */
export function pageWriter({
  room,
  turn,
}: WriterPorts): <Element extends object>(elements: Elements<Element>) => Promise<Page<Element>> {
  let bytes = 0;
  let latest: number | undefined;
  let isFull = false;
  return async ({ inTurn, isBackward }) => {
    const texts: WrittenJson[] = [];
    const elements = Symbol.asyncIterator in inTurn ? inTurn[Symbol.asyncIterator]() : inTurn[Symbol.iterator]();
    while (!isFull) {
      const wait = latest === undefined ? undefined : turn(latest);
      if (wait) await wait;
      const started = performance.now();
      const next = elements.next();
      // Awaited only where it is to come: whatever else has its turn would be let in before the element is written.
      const step: IteratorResult<object> = next instanceof Promise ? await next : next;
      if (step.done) break;
      // An element that took long to read also takes long to write.
      const again = performance.now() - started < longElementMs ? undefined : turn(0);
      if (again) await again;
      const text = isLong(step.value)
        ? await joined(jsonPieces(step.value), () => turn(0))
        : JSON.stringify(step.value);
      latest = bytesOf(text) + 1;
      isFull = bytes > 0 && bytes + latest > mostBytesOfPages;
      if (isFull) break;
      bytes += latest;
      texts.push(text);
      const enter = room(bytes);
      if (enter) await enter;
    }
    await elements.return?.();
    return { texts: isBackward ? texts.reverse() : texts, hasMore: isFull };
  };
}

/** The JSON of a response in pieces, with its lists as they were written. */
export function* answerPieces(answer: object): Generator<WrittenJson> {
  let before = '{';
  let hasMore = false;
  for (const [name, value] of Object.entries(answer) as readonly (readonly [string, unknown])[]) {
    if (value === undefined) continue;
    yield `${before}${JSON.stringify(name)}:`;
    yield* valuePieces(value);
    hasMore ||= isPage(value) && value.hasMore;
    before = ',';
  }
  if (hasMore) yield `${before}"hasMore":true`;
  yield before === '{' ? '{}' : '}';
}

function* valuePieces(value: unknown): Generator<WrittenJson> {
  if (isPage(value)) {
    let before = '[';
    for (const text of value.texts) {
      yield before;
      yield text;
      before = ',';
    }
    yield before === '[' ? '[]' : ']';
    return;
  }
  const isNesting = typeof value === 'object' && value !== null && Object.values(value).some(isPage);
  if (isNesting) yield* answerPieces(value);
  else yield* jsonPieces(value);
}
