import { isDeepStrictEqual } from 'node:util';
import { CoordinatorError, errorMessage } from '../../domain/errors.js';
import type { Redecided } from './decision-again.js';

/** Something in the store that no correct history has. */
export interface Finding {
  readonly stream: string;
  readonly revision: number;
  readonly position: bigint;
  /** What is wrong, as a sentence. */
  readonly problem: string;
}

/** An error as a finding says it. */
export function messageOf(error: unknown): string {
  if (error instanceof CoordinatorError) return `${error.code}: ${error.message}`;
  return errorMessage(error);
}

/**
 * What differs between a decision and the same one made again.
 * @returns the event that differs, counted from the first of the decision; undefined if none does
 */
export function difference({
  activityType,
  outcome,
  outcomeAgain,
  recorded,
  again,
}: Redecided): { readonly at: number; readonly problem: string } | undefined {
  if (outcome !== outcomeAgain) {
    return {
      at: 0,
      problem: `${activityType} was decided \`${outcome}\`, but deciding again yields \`${outcomeAgain}\``,
    };
  }
  const length = Math.max(recorded.length, again.length);
  const at = Array.from({ length }, (_, index) => index).find(
    (index) => !isDeepStrictEqual(recorded[index], again[index]),
  );
  return at === undefined ? undefined : { at, problem: `${activityType} yields a different event than this one` };
}
