import type { ErrorCategory, ErrorCode } from '../../src/domain/errors.js';

/** For `toThrow`: a CoordinatorError of this code (and category) whose message contains or matches this. */
export function refusedWith(code: ErrorCode, message: string | RegExp, category?: ErrorCategory): Error {
  const text: unknown = typeof message === 'string' ? expect.stringContaining(message) : expect.stringMatching(message);
  const expected: unknown = expect.objectContaining({
    name: 'CoordinatorError',
    code,
    message: text,
    ...(category === undefined ? {} : { category }),
  });
  return expected as Error;
}
