import type { Reading } from './doubt.js';
import { evaluate } from './evaluate.js';
import { readClause } from './language.js';
import { policyEnvironment } from './namespaces.js';
import { PolicyError } from './syntax.js';
import { unreadable } from './types.js';

/** A time clause sees no request, so the parameters of activities do not matter. */
const environment = policyEnvironment({});

/**
 * What the time clause of a policy says at a time, in milliseconds since the epoch.
 * @param tenant who pays for the memory of the compiled clause
 */
export function timeAt(clause: string, now: number, tenant: string): Reading {
  const { compiled } = readClause(clause, 'time', environment, tenant);
  if (compiled instanceof PolicyError) return { truth: 'unreadable', doubt: unreadable(compiled.message) };
  const value = { now: BigInt(Math.floor(now)) };
  return evaluate(compiled, { now, value: () => value });
}
