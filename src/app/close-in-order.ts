import { errorMessage } from '../domain/errors.js';

/**
 * Closes each part and awaits it before the next, in the order given. One that fails does not keep those after it open.
 * @throws {Error} that names every part that failed
 */
export async function closeInOrder(parts: Readonly<Record<string, () => unknown>>): Promise<void> {
  const failures: Error[] = [];
  for (const [name, close] of Object.entries(parts)) {
    try {
      await close();
    } catch (cause) {
      failures.push(new Error(`${name} could not be closed: ${errorMessage(cause)}`, { cause }));
    }
  }
  const [first, ...others] = failures;
  if (first === undefined) return;
  throw others.length === 0 ? first : new AggregateError(failures, failures.map(errorMessage).join('; '));
}
