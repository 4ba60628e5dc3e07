import { changesOf } from '../decide/changes.js';
import { toSignOf, waitsFor } from '../decide/explain.js';
import type { DecisionContext } from '../decide/decision-context.js';
import type { WaitsFor } from '../decide/waits-for.js';
import { decodedOf } from '../domain/policy/decoded.js';
import type { Decoded } from '../domain/policy/decoded/account.js';
import type { OpenActivity } from '../domain/organization/open-activities.js';

/** What a user may do about an activity; `notComputed` if finding out would have taken too long. */
export interface Rights {
  readonly canApprove: boolean;
  readonly canReject: boolean;
  readonly notComputed?: true;
  /** What one waiting activity waits for, if there are steps left to find out. */
  readonly waitsFor?: WaitsFor;
  /** What it would sign or change, in words. */
  readonly decoded?: readonly Decoded[];
  /** Neither was computed, because the steps of the page are used up. */
  readonly waitsForNotComputed?: true;
}

export type Words = Pick<Rights, 'waitsFor' | 'decoded' | 'waitsForNotComputed'>;

/** What a waiting activity waits for, and what it would sign or change. */
export function wordsOf(context: DecisionContext, open: OpenActivity, userId: string): Words | undefined {
  const missing = waitsFor(context, open, userId);
  if (!missing) return undefined;
  const decoded = decodedIn(context, open) ?? changesOf(context, open);
  return { waitsFor: missing, ...(decoded ? { decoded } : {}) };
}

/** What it would sign, decoded. */
export function decodedIn(
  context: DecisionContext,
  activity: Pick<OpenActivity, 'type' | 'intent'>,
): readonly Decoded[] | undefined {
  const toSign = toSignOf(context, activity);
  return toSign && decodedOf(toSign);
}
