import type { Reading, Truth } from './doubt.js';
import type { CheckedExpression, Span } from './syntax.js';
import type { Clause } from './types.js';

/** The part of a policy's text that decided its outcome for a request, as written, and that part's value. */
export interface DecidingPart {
  readonly clause: Clause;
  /** On one line, and truncated if long. */
  readonly text: string;
  readonly outcome: Truth;
}

/** Longest text of one part, in characters. */
const maxPartLength = 200;

/**
 * Descends from a whole clause to the operand that gave it its value: of operands joined by `&&`, the false one; of
 * those joined by `||`, the true one; the one in doubt. If all of them did, they stay together.
 * @param read the value of a part for the request
 * @param seeking `doubt` if the clause is in doubt somewhere, though its outcome may not depend on it
 */
export function decidingPart(
  clause: Clause,
  text: string,
  expression: CheckedExpression,
  read: (part: CheckedExpression) => Reading,
  seeking: 'outcome' | 'doubt' = 'outcome',
): DecidingPart {
  let node = expression;
  let span: Span = { from: 0, to: text.length };
  let reading = read(node);
  while (node.kind === 'logical') {
    const { operator, operands, spans } = node;
    if (seeking === 'outcome' && reading.truth === (operator === '&&' ? 'true' : 'false')) break;
    const readings = operands.map(read);
    const sought = reading;
    const index = readings.findIndex(({ truth, doubt }) =>
      seeking === 'doubt' ? doubt !== undefined && doubt.kind === sought.doubt?.kind : truth === sought.truth,
    );
    if (index < 0) break;
    node = operands[index]!;
    span = spans[index]!;
    reading = readings[index]!;
  }
  const outcome = seeking === 'doubt' && reading.doubt ? reading.doubt.kind : reading.truth;
  return { clause, text: onOneLine(text.slice(span.from, span.to)), outcome };
}

/** A policy's text may have line breaks, and be long. */
function onOneLine(text: string): string {
  const line = text.replace(/[\s\p{Cc}\u2028\u2029]+/gu, ' ').trim();
  if (line.length <= maxPartLength) return line;
  // Half a surrogate pair is not valid text.
  return `${line.slice(0, maxPartLength).replace(/[\ud800-\udbff]$/, '')}…`;
}
