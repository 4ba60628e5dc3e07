import { readdirSync, readFileSync } from 'node:fs';
import { brotliDecompressSync } from 'node:zlib';
import type { RecordedEvent } from '../../src/ledger/event-store.js';

const folder = new URL('./', import.meta.url);
const end = '.jsonl.br';

/** Names of the recorded streams, such as `consensus.v1`. */
export const goldenNames: readonly string[] = readdirSync(folder)
  .filter((name) => name.endsWith(end))
  .map((name) => name.slice(0, -end.length))
  .sort();

/** Names of the streams of one version, such as `v1`. */
export const goldenNamesOf = (version: string): readonly string[] =>
  goldenNames.filter((name) => name.endsWith(`.${version}`));

const read = (file: string): string => brotliDecompressSync(readFileSync(new URL(file, folder))).toString();

/** The events of a stream as JSON, one a line. */
export const goldenLines = (name: string): string[] => read(`${name}${end}`).trimEnd().split('\n');

/** The events of a stream, parsed anew for each reader. */
export function goldenStream(name: string): RecordedEvent[] {
  return goldenLines(name).map((line) => {
    const event = JSON.parse(line) as Omit<RecordedEvent, 'position'> & { readonly position: string };
    return { ...event, position: BigInt(event.position) };
  });
}

/** What a stream folds into, as it was recorded: maps as lists of [key, value]. */
export const goldenState = (name: string): unknown => JSON.parse(read(`${name}.state.json.br`));
