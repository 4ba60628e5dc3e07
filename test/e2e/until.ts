import { CoordinatorError } from '../../src/domain/errors.js';

/** Generous bound, in milliseconds, for whatever must come about: the machines of tests are busy. */
export const patienceMs = 60_000;

/**
 * What became of a question that is answered at once or held back: `done`, the code of its refusal, or `waits`. Where it is to
 * be refused and is not, this says so after `withinMs`.
 */
export function stateOf(asked: Promise<unknown>, withinMs = 1_000): Promise<string> {
  const waits = new Promise<string>((resolve) => void setTimeout(() => resolve('waits'), withinMs).unref());
  const refusal = (error: unknown) => (error instanceof CoordinatorError ? error.code : String(error));
  return Promise.race([asked.then(() => 'done', refusal), waits]);
}

/** Waits until something is so; fails, naming what it was, when it does not come about. */
export async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  const begun = performance.now();
  while (!(await isSo())) {
    if (performance.now() - begun > patienceMs) throw new Error(`waited for ${patienceMs} ms in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
