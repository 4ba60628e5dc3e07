/// <reference types="jest" preserve="true" />
/** Adds the matchers to the global `expect` of jest, and to its types in `@types/jest`. */
import { matchers, type CountersignMatchers } from './matchers.js';

declare global {
  namespace jest {
    // Parameters have to be those of the interface that this adds to.
    interface Matchers<R, T = {}> extends CountersignMatchers<R> {}
  }
}

expect.extend(matchers);
