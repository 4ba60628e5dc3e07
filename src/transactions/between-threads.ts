import { isMap } from 'node:util/types';
import { CoordinatorError } from '../domain/errors.js';
import { decodingSteps, Steps } from '../domain/steps.js';
import { Doubt, notApplicable, Unreadable } from '../domain/policy/types.js';
import { packError, unpackError, type PackedError } from '../threads/thread-error.js';
import { read, type ReadingOutcome, type ToRead } from './reading.js';

/*
 * What was read, as it goes from one thread to another: plain data. A doubt becomes a Map, as nothing else that is read is one.
 */

/** A thread's result, and the steps it has taken. */
export type ThreadAnswer = { readonly spent: number } & (
  { readonly value: unknown } | { readonly refusal: PackedError }
);

/** Reads in the current thread, for a caller that waits. */
export function answerFor(job: ToRead): ThreadAnswer {
  const steps = new Steps(decodingSteps);
  try {
    const value = changed(read(job, steps), new Map(), packed);
    return { spent: steps.spent, value };
  } catch (error) {
    if (!(error instanceof CoordinatorError)) throw error;
    return { spent: steps.spent, refusal: packError(error) };
  }
}

/** What was read, or why it cannot be, from a thread's result. */
export function outcomeIn(answer: ThreadAnswer): ReadingOutcome {
  const { spent } = answer;
  if ('value' in answer) return { spent, value: changed(answer.value, new Map(), unpacked) };
  const refusal = unpackError(answer.refusal);
  if (!(refusal instanceof CoordinatorError)) throw refusal;
  return { spent, refusal };
}

function packed(value: object): unknown {
  return value instanceof Doubt ? new Map([[value.kind, value.reason]]) : undefined;
}

function unpacked(value: object): unknown {
  if (!isMap(value)) return undefined;
  const reason: unknown = value.get('unreadable');
  return typeof reason === 'string' ? new Unreadable(reason) : notApplicable;
}

/** A copy with some objects replaced. Shared objects stay shared in the copy. */
function changed(value: unknown, known: Map<object, unknown>, change: (value: object) => unknown): unknown {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value;
  const before = known.get(value);
  if (before !== undefined) return before;
  const other = change(value);
  if (other !== undefined) {
    known.set(value, other);
    return other;
  }
  if (Array.isArray(value)) {
    const list = value.map((element: unknown) => changed(element, known, change));
    known.set(value, list);
    return list;
  }
  const members = Object.entries(value).map(([name, member]) => [name, changed(member, known, change)] as const);
  const copy: object = Object.fromEntries(members);
  known.set(value, copy);
  return copy;
}
