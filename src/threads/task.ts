import { packError, type PackedError } from './thread-error.js';

/** What a thread returns: errors cross threads as data. */
export type Outcome<Output> = { readonly value: Output } | { readonly error: PackedError };

/** What a thread of a `TaskPool` does, exported under its name. */
export type Task<Input, Output> = (input: Input) => Promise<Outcome<Output>>;

export function task<Input, Output>(work: (input: Input) => Output | Promise<Output>): Task<Input, Output> {
  return async (input) => {
    try {
      return { value: await work(input) };
    } catch (error) {
      return { error: packError(error) };
    }
  };
}
