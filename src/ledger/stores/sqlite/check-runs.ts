import { linkOfStored } from '../../chain.js';
import { FIELDS_PER_ROW, SEPARATOR } from './sqlite-protocol.js';
import type { Fields, Run } from './sqlite-protocol.js';

/**
 * The link of the last event, where each follows from the texts of the one before it; undefined where one does not, and
 * whoever folds them has to look.
 */
export function linkAfter(runs: readonly Run[], after: string): string | undefined {
  let link: string | undefined = after;
  for (const run of runs) {
    const fields: Fields = typeof run === 'string' ? run.split(SEPARATOR) : run;
    for (let at = 0; at < fields.length; at += FIELDS_PER_ROW) {
      link = linkOfStored(link, {
        stream: fields[at + 1] as string,
        revision: Number(fields[at + 2]),
        id: fields[at + 3] as string,
        type: fields[at + 4] as string,
        data: fields[at + 5] as string,
        metadata: fields[at + 6] as string,
      });
      if (link === undefined) return undefined;
    }
  }
  return link;
}
