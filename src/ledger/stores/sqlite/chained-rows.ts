import { hash } from 'node:crypto';
import { LINK_LENGTH, linkIn } from '../../chain.js';
import type { ChainedRun } from './sqlite-protocol.js';

/** Where the link before an event is put, 32 bytes; to those who read the list afterwards, the comma before it. */
const ROOM = `,${' '.repeat(31)}`;
const roomBytes = Buffer.from(ROOM, 'latin1');

/** Rows of a stream as one list of JSON: see `selectChained`. */
export interface ChainedRows {
  readonly revision: number | null;
  /** Bytes of each record, with the room before it. */
  readonly lengths: string;
  readonly positions: string;
  /** As bytes: at the end of a row without a link, a cut may leave half a character. */
  readonly links: Buffer;
  readonly records: Buffer<ArrayBuffer>;
}

/**
 * The query of some rows as the very bytes that their links cover, put together by SQLite, so that JavaScript neither reads
 * nor writes any of them. A row without a link at its end becomes bytes that no link covers. Metadata is cut as bytes: in a
 * text, SQLite would count all characters for each cut.
 * @param which everything behind `FROM`
 */
export function selectChained(which: string): string {
  const record =
    `concat('${ROOM}{"data":', data, ',"id":', json_quote(id), ` +
    `',"metadata":', substr(CAST(metadata AS BLOB), 1, octet_length(metadata) - ${LINK_LENGTH}), '},"revision":', revision, ` +
    `',"stream":', json_quote(stream), ',"type":', json_quote(type), '}')`;
  return (
    'SELECT max(revision) AS revision, group_concat(octet_length(record)) AS lengths, ' +
    `group_concat(position) AS positions, CAST(group_concat(substr(CAST(metadata AS BLOB), -${LINK_LENGTH}), '') AS BLOB) AS links, ` +
    `CAST(group_concat(record, '') || ']' AS BLOB) AS records ` +
    `FROM (SELECT position, revision, metadata, ${record} AS record FROM ${which})`
  );
}

/** The link that is stored with the row in that place. */
export function linkAt(links: string, index: number): string | undefined {
  return linkIn({ metadata: links.slice(index * LINK_LENGTH, (index + 1) * LINK_LENGTH) });
}

/** The rows for a reader, if each event follows from the one before it, and the first from this link. */
export function checkedRun(
  { lengths, positions, links: stored, records }: ChainedRows,
  after: string,
): ChainedRun | undefined {
  const links = stored.toString('latin1');
  let link = after;
  let start = 0;
  const sizes = lengths.split(',');
  for (let index = 0; index < sizes.length; index++) {
    const end = start + Number(sizes[index]);
    const next = linkAt(links, index);
    if (next === undefined || records.write(link, start, 'hex') !== ROOM.length) return undefined;
    if (hash('sha256', records.subarray(start, end), 'hex') !== next) return undefined;
    records.set(roomBytes, start);
    link = next;
    start = end;
  }
  records.write('[', 0, 'latin1');
  return { records, positions, links, link };
}
