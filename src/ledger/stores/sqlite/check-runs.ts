import { linkOfStored } from '../../chain.js';
import { storedIn, type Run } from './sqlite-protocol.js';

/**
 * The link of the last event, if every event follows from the text of the one before it; otherwise undefined, and the reader has
 * to check them.
 */
export function linkAfter(runs: readonly Run[], after: string): string | undefined {
  let link: string | undefined = after;
  for (const run of runs) {
    for (const stored of storedIn(run)) {
      link = linkOfStored(link, stored);
      if (link === undefined) return undefined;
    }
  }
  return link;
}
