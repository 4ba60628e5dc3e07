import { linkOfStored } from '../../chain.js';
import { eventAt, fieldsIn, FIELDS_PER_ROW, type Run } from './sqlite-protocol.js';

/**
 * The link of the last event, if every event follows from the text of the one before it; otherwise undefined, and the reader has
 * to check them.
 */
export function linkAfter(runs: readonly Run[], after: string): string | undefined {
  let link: string | undefined = after;
  for (const run of runs) {
    const fields = fieldsIn(run);
    for (let at = 0; at < fields.length; at += FIELDS_PER_ROW) {
      link = linkOfStored(link, eventAt(fields, at));
      if (link === undefined) return undefined;
    }
  }
  return link;
}
