import { CoordinatorError } from '../domain/errors.js';

/**
 * An error as another thread has passed it on. Node.js copies what is no plain error, such as one of SQLite's, without its message and
 * as a plain object, which would be told as `[object Object]`.
 */
export function threadError(passed: unknown): Error {
  if (passed instanceof Error) return passed;
  const code = typeof passed === 'object' && passed !== null && 'code' in passed ? String(passed.code) : String(passed);
  return Object.assign(new Error(`a thread has ended with \`${code}\``), { code });
}

/** An error in the form in which Node.js copies it to another thread with its message. */
export function plainError(error: unknown): Error {
  if (!(error instanceof Error)) return new Error(String(error));
  const plain = new Error(error.message);
  if (error.stack !== undefined) plain.stack = error.stack;
  return plain;
}

/** An error on its way to another thread: of a refusal Node.js would copy the message only. */
export type PackedError =
  Error | Pick<CoordinatorError, 'code' | 'message' | 'category' | 'details' | 'retryAfterSeconds'>;

export function packError(error: unknown): PackedError {
  if (!(error instanceof CoordinatorError)) return plainError(error);
  const { code, message, category, details, retryAfterSeconds } = error;
  return { code, message, category, details, retryAfterSeconds };
}

export function unpackError(packed: PackedError): Error {
  if (packed instanceof Error) return packed;
  const { code, message, category, details, retryAfterSeconds } = packed;
  return new CoordinatorError(code, message, {
    details,
    ...(category === undefined ? {} : { category }),
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
  });
}
