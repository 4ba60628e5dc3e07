import { CoordinatorError } from '../domain/errors.js';
import type { Steps } from '../domain/steps.js';
import { read, readIfShort, type ReadingOutcome, type ToRead, type WhatWasRead } from '../transactions/reading.js';
import { SharedMemory } from '../fairness/shared-memory.js';
import type { ToReadAhead } from './define-activity.js';

type Outcome<Value> = { readonly value: Value } | { readonly refusal: CoordinatorError };

interface Reading {
  readonly name: string;
  /** Undefined once evicted. */
  outcome?: Outcome<unknown>;
}

/** Bytes for costly readings of all intents being decided or waiting. */
const mostBytes = 64 * 1024 * 1024;
/** As objects are in V8. */
const bytesOfStep = 16;
const bytesOfDigest = 256;

/** A memory for costly readings; evicted ones are read again on demand. */
export const memoryForReadings = (): SharedMemory<Reading> =>
  new SharedMemory<Reading>(mostBytes, (reading) => delete reading.outcome);

/** That of the process. */
const shared = memoryForReadings();
let readings = 0;

/**
 * What was read from each intent, or why it cannot be read. Policies, `check` and `prepare` look at a request, some of
 * them twice, and reading may take a while; `name` says what else besides the intent it depends on.
 */
export class Readings<Intent extends object, Job extends ToRead> {
  readonly #known = new WeakMap<Intent, Reading>();

  constructor(private readonly memory = shared) {}

  /** @throws {CoordinatorError} as `read` does */
  of(intent: Intent, name: string, job: Job): WhatWasRead<Job> {
    const outcome =
      this.#outcome(intent, name) ??
      this.#keep(
        intent,
        name,
        outcomeOf(() => read(job)),
      );
    if ('refusal' in outcome) throw outcome.refusal;
    return outcome.value;
  }

  /** What has to be read elsewhere and is not known yet; what fits into `steps` is read at once. */
  ahead(intent: Intent, name: string, job: Job, steps: Steps): ToReadAhead | undefined {
    if (this.#outcome(intent, name)) return undefined;
    const short = outcomeOf(() => readIfShort(job, steps));
    if ('refusal' in short) this.#keep(intent, name, short);
    else if (short.value) this.#keep(intent, name, short.value);
    else {
      return {
        job,
        keep: (outcome, family) => {
          this.#keep(intent, name, outcome as Outcome<WhatWasRead<Job>>);
          this.memory.keep(String((readings += 1)), this.#known.get(intent)!, bytesOf(job, outcome), family);
        },
      };
    }
    return undefined;
  }

  #outcome(intent: Intent, name: string): Outcome<WhatWasRead<Job>> | undefined {
    const known = this.#known.get(intent);
    return known?.name === name ? (known.outcome as Outcome<WhatWasRead<Job>> | undefined) : undefined;
  }

  #keep(intent: Intent, name: string, outcome: Outcome<WhatWasRead<Job>>): Outcome<WhatWasRead<Job>> {
    this.#known.set(intent, { name, outcome });
    return outcome;
  }
}

/** Memory that a reading takes: each step may have left an object, but for those that hashed. */
function bytesOf(job: ToRead, outcome: ReadingOutcome): number {
  if (job.kind === 'payloads' && 'value' in outcome) {
    const { signed, distinct } = outcome.value as WhatWasRead<typeof job>;
    if (distinct.every(({ content }) => content === undefined)) {
      return signed.reduce((sum, { length }) => sum + bytesOfDigest + length, 0);
    }
  }
  return bytesOfStep * outcome.spent;
}

function outcomeOf<Value>(make: () => Value): Outcome<Value> {
  try {
    return { value: make() };
  } catch (error) {
    if (error instanceof CoordinatorError) return { refusal: error };
    throw error;
  }
}
