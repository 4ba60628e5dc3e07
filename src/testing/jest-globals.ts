/** Adds the matchers to the `expect` of `@jest/globals`, and to its types. */
import { expect } from '@jest/globals';
import { matchers, type CountersignMatchers } from './matchers.js';

declare module 'expect' {
  interface Matchers<R extends void | Promise<void>, T = unknown> extends CountersignMatchers<R> {}
}

expect.extend(matchers);
