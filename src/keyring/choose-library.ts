import { isNativeError } from 'node:util/types';

/** The library in use, and why faster ones are not. */
export interface Chosen<Library> {
  readonly library: Library;
  readonly passedOver: readonly string[];
}

/** Makes a library ready, given the one for what it lacks. Throws where there is no build for the platform. */
export type Maker<Library> = (fallback: Library) => Library;

/** The last of the candidates, from the slowest to the fastest, that loads and passes the check; else the one that always runs. */
export function chooseFastest<Library>(
  alwaysRuns: Library,
  candidates: readonly Maker<Library>[],
  check: (library: Library) => void,
): Chosen<Library> {
  let library = alwaysRuns;
  const passedOver: string[] = [];
  for (const make of candidates) {
    try {
      const next = make(library);
      check(next);
      library = next;
    } catch (error) {
      // The first line: the rest says where it was looked for.
      passedOver.push((isNativeError(error) ? error.message : String(error)).split('\n', 1)[0]!);
    }
  }
  return { library, passedOver };
}
