/** Adds the matchers to the `expect` of vitest 3.2 and later, and to its types. */
import { expect } from 'vitest';
import { matchers, type CountersignMatchers } from './matchers.js';

declare module 'vitest' {
  interface Matchers<T = any> extends CountersignMatchers<T> {}
}

expect.extend(matchers);
