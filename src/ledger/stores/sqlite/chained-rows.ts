import { hash } from 'node:crypto';
import { HASH_IN_LINK, LINK_LENGTH } from '../../chain.js';
import type { ChainedRun } from './sqlite-protocol.js';

/** Most rows taken from SQLite at once. */
export const CHAINED_AT_ONCE = 100;
/** Larger events are left out, in bytes, so that rows taken at once do not fill the memory. */
const LARGEST = 20_000;

const HEAD = ',{"position":';
/** Of the metadata, with the bracket that the rest of it is closed by. */
const LINK = LINK_LENGTH - '}'.length;
const NAME = ',"record":';
/** Where the link before an event is put, 32 bytes; white space to those who read the list afterwards. */
const ROOM = ' '.repeat(32);
const room = Buffer.from(ROOM);
const END = '}';
const comma = ','.charCodeAt(0);

/** Rows of a stream as one list of JSON: see `selectChained`. */
export interface ChainedRows {
  readonly count: number;
  /** Bytes of each element of the list, with the comma before it; without those that were left out. */
  readonly lengths: string | null;
  readonly list: ArrayBuffer | null;
}

/**
 * The query of some rows as a list of `{ position, hash, record }` (`ChainedElement`), in which the record is the very bytes that
 * the link covers, put together by SQLite, so that JavaScript neither reads nor writes any of them. Metadata is cut as bytes: in
 * a text, SQLite would count all characters for each cut. A row without a link at its end becomes bytes that no link covers.
 * @param which everything behind `FROM`
 */
export function selectChained(which: string): string {
  const metadata = 'CAST(metadata AS BLOB)';
  const element =
    `concat('${HEAD}', position, substr(${metadata}, -${LINK_LENGTH}, ${LINK}), '${NAME}${ROOM}{"data":', data, ` +
    `',"id":', json_quote(id), ',"metadata":', substr(${metadata}, 1, octet_length(metadata) - ${LINK_LENGTH}), ` +
    `'},"revision":', revision, ',"stream":', json_quote(stream), ',"type":', json_quote(type), '}${END}')`;
  return (
    'SELECT count(*) AS count, group_concat(octet_length(element)) AS lengths, ' +
    `CAST(group_concat(element, '') || ']' AS BLOB) AS list FROM (SELECT ` +
    `CASE WHEN octet_length(data) + octet_length(metadata) <= ${LARGEST} THEN ${element} END AS element FROM ${which})`
  );
}

/** The rows for a reader, if all are there, and each event follows from the one before it, and the first from this link. */
export function checkedRun({ count, lengths, list: bytes }: ChainedRows, after: string): ChainedRun | undefined {
  const sizes = lengths?.split(',');
  if (bytes === null || sizes?.length !== count) return undefined;
  const list = Buffer.from(bytes);
  const links: string[] = [];
  let link = after;
  let start = 0;
  for (const size of sizes) {
    const end = start + Number(size);
    const tail = list.indexOf(comma, start + HEAD.length);
    const before = tail + LINK + NAME.length;
    const next = list.toString('latin1', tail + HASH_IN_LINK[0], tail + HASH_IN_LINK[1]);
    if (list.write(link, before, 'hex') !== ROOM.length) return undefined;
    if (hash('sha256', list.subarray(before, end - END.length), 'hex') !== next) return undefined;
    list.set(room, before);
    links.push(next);
    link = next;
    start = end;
  }
  list.write('[', 0, 'latin1');
  return { list, links };
}
