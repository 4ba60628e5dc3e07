import { isNativeError } from 'node:util/types';
import { ApiError } from '../client/stamping-client.js';
import { BadSetting } from '../config/bad-setting.js';
import { CoordinatorError } from '../domain/errors.js';
import { isUuid } from '../domain/uuid.js';
import { BadUsage } from './bad-usage.js';
import { becauseOf } from './layout.js';
import { exitCodes, type ExitCode } from './exit-codes.js';

/** An error as sentences for people and as members for programs. */
export interface Explanation {
  readonly message: string;
  readonly exitCode: ExitCode;
  /** As the server returned it. */
  readonly answer?: ApiError['body'] & { readonly status: number };
}

/** Explains any error that ended a command. */
export function explained(error: unknown): Explanation {
  if (error instanceof ApiError) return explainedAnswer(error);
  const message = isNativeError(error) || error instanceof Error ? error.message : String(error);
  // Rules of the wire that were checked here, before anything was sent.
  if (error instanceof CoordinatorError) {
    return { message: sentences(message, error.details), exitCode: exitCodes.badUsage };
  }
  if (error instanceof BadUsage || error instanceof BadSetting) return { message, exitCode: exitCodes.badUsage };
  if (error instanceof Error && error.name === 'TimeoutError') {
    return { message: 'the server did not respond in time: try again', exitCode: exitCodes.unreachable };
  }
  if (isConnectionError(error)) {
    return {
      message: `the server does not respond (${reasonOf(error)}): is it running?`,
      exitCode: exitCodes.unreachable,
    };
  }
  return { message, exitCode: exitCodes.failed };
}

function explainedAnswer({ status, body }: ApiError): Explanation {
  const answer = { status, ...body };

  const exitCode =
    status === 403 ? exitCodes.denied : status === 429 || status >= 500 ? exitCodes.unreachable : exitCodes.refused;
  return { message: sentences(body.message, body.details ?? []), exitCode, answer };
}

/** A message, and what its details add. */
function sentences(message: string, details: readonly Readonly<Record<string, unknown>>[]): string {
  return [message, ...details.flatMap(detailLines).filter((line) => !message.includes(line.trim()))].join('\n');
}

/** What a policy said, as responses explain it. */
export interface PolicySaid {
  readonly policyName?: string;
  readonly policyId: string;
  readonly outcome: string;
  readonly clause?: { readonly name: string; readonly text: string; readonly outcome: string };
}

/** The text of a detail. */
function detailLines(detail: Readonly<Record<string, unknown>>): readonly string[] {
  const { fieldViolations, policyEvaluations, denialId } = detail as {
    readonly fieldViolations?: readonly { readonly field: string; readonly description: string }[];
    readonly policyEvaluations?: readonly PolicySaid[];
    readonly denialId?: string;
  };
  return [
    ...(fieldViolations ?? []).map(({ field, description }) => `  ${field}: ${description}`),
    ...(policyEvaluations ?? []).toSorted(byWeight).map((policy) => `  ${policyLine(policy)}`),
    ...(denialId !== undefined && isUuid(denialId) ? [`  to see why: countersign activities explain ${denialId}`] : []),
  ];
}

/** What denied comes before what did not apply: an organization may have many policies about other things. */
const byWeight = (one: PolicySaid, other: PolicySaid): number => weightOf(one) - weightOf(other);

const weightOf = ({ outcome }: PolicySaid): number =>
  outcome === 'OUTCOME_DENY_EXPLICIT' ? 0 : outcome === 'OUTCOME_DENY_IMPLICIT' ? 2 : 1;

/** A policy's outcome in a line, with the part of its text that decided. */
export function policyLine({ policyName, policyId, outcome, clause }: PolicySaid): string {
  return (
    `policy ${policyName === undefined ? '' : `“${policyName}” `}(${policyId}): ${outcomeWords(outcome)}` +
    becauseOf(clause)
  );
}

function outcomeWords(outcome: string): string {
  return outcome
    .replace(/^OUTCOME_/, '')
    .toLowerCase()
    .replaceAll('_', ' ');
}

/** What `fetch` throws if there is no response. */
function isConnectionError(error: unknown): error is Error {
  return isNativeError(error) && error.name === 'TypeError' && error.message === 'fetch failed';
}

/** In the words of the system, which name the address. */
function reasonOf({ cause }: Error): string {
  if (!isNativeError(cause)) return 'no reason given';
  // A name with several addresses: each was tried, and the whole has no words of its own.
  const [first] = cause instanceof AggregateError ? (cause.errors as readonly unknown[]) : [];
  return isNativeError(first) ? first.message : cause.message;
}
