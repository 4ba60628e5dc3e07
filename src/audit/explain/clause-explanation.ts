import type { Truth } from '../../domain/policy/doubt.js';
import { checkExpression } from '../../domain/policy/check.js';
import { parseWithSpans } from '../../domain/policy/parse.js';
import type { ClauseRead, PartQuestion } from '../../domain/policy/part-evaluation.js';
import type { Question } from '../../domain/policy/request-evaluation.js';
import { PolicyError } from '../../domain/policy/syntax.js';
import type { Clause, Policy } from '../../domain/policy/types.js';
import { Steps } from '../../domain/steps.js';
import { mostBytes, mostVotes, type Room } from './proof-size-limit.js';
import { onOneLine } from './shown-value.js';
import { explainParts, type PartExplanation } from './part-explanation.js';
import { Trace } from './trace.js';

/** One clause of a policy in a decision. */
export interface ClauseExplanation {
  readonly clause: Clause;
  /** As its author wrote it, on one line; cut after 200 characters. */
  readonly text: string;
  readonly value: Truth;
  /** Of a consensus: whether the approvals satisfy it. */
  readonly isMet?: boolean;
  /** Why it is in doubt, though its value may not depend on that. */
  readonly doubt?: string;
  /** Its evaluation; left out if it has no parts, or if there was no room. */
  readonly tree?: PartExplanation;
}

/** Which clause of which policy, in which decision. */
interface ClauseOf {
  readonly question: Question;
  readonly ofPart: PartQuestion;
  readonly policy: Policy;
  readonly clause: Clause;
  /** Whether the decision has asked the policy. */
  readonly isAsked: boolean;
}

/** A clause with the value that it has in the decision, and how it came to it; undefined if the policy has none. */
export function explainClause(of: ClauseOf, room: Room): ClauseExplanation | undefined {
  const { ofPart, policy, clause, isAsked } = of;
  const text = policy[clause];
  const read = ofPart.clauseRead(policy, clause);
  if (text === undefined || !read) return undefined;
  const traced = traceOf(text, of, read, room);
  // What the decision did not evaluate, its meter may not have had the steps for.
  const reading = isAsked || !traced ? read.reading : traced.reading;
  const isSame = traced?.reading.truth === reading.truth;
  return {
    clause,
    text: onOneLine(text),
    value: reading.truth,
    ...(read.isMet === undefined ? {} : { isMet: read.isMet }),
    ...(reading.doubt ? { doubt: onOneLine(reading.doubt.reason) } : {}),
    ...(isSame && traced.tree ? { tree: traced.tree } : {}),
  };
}

/** The evaluation again, on steps of its own; nothing if the text is not valid any more, or if there is no room. */
function traceOf(text: string, { question, clause }: ClauseOf, { scope }: ClauseRead, room: Room) {
  const parts = room.partsOfClause();
  if (parts <= 0) {
    room.cut();
    return undefined;
  }
  const { environment } = question.context;
  try {
    const { expression, spans } = parseWithSpans(text, environment.functions);
    const steps = new Steps();
    steps.take('clauseCharacter', text.length);
    steps.take('clausePart', spans.size);
    const trace = new Trace(scope, steps, parts);
    const reading = trace.run(checkExpression(expression, environment, clause));
    room.steps.note(Math.min(steps.spent, room.steps.left));
    if (trace.isCut) room.cut();
    if (!trace.whole) return { reading };
    const tree = explainParts(trace.whole, { text, spans, submitterId: question.request.submitterId });
    room.take(bytesOf(tree));
    return { reading, tree };
  } catch (error) {
    if (error instanceof PolicyError) return undefined;
    throw error;
  }
}

function bytesOf({ text, value, doubt = '', source, parts = [] }: PartExplanation): number {
  const sources = source?.of === 'approvals' ? mostVotes : Number(source !== undefined);
  return parts.reduce((bytes, part) => bytes + bytesOf(part), mostBytes([text, value, doubt], sources));
}
