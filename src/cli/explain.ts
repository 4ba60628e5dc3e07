import { isNativeError } from 'node:util/types';
import { ApiError } from '../client/stamping-client.js';
import { BadSetting } from '../config.js';
import { BadUsage } from './bad-usage.js';
import { exitCodes, type ExitCode } from './exit-codes.js';

/** What went wrong, as sentences for people and as members for programs. */
export interface Explanation {
  readonly message: string;
  readonly exitCode: ExitCode;
  /** As the server answered. */
  readonly answer?: ApiError['body'] & { readonly status: number };
}

/** Explains any error that ended a command. */
export function explained(error: unknown): Explanation {
  if (error instanceof ApiError) return explainedAnswer(error);
  const message = isNativeError(error) || error instanceof Error ? error.message : String(error);
  if (error instanceof BadUsage || error instanceof BadSetting) return { message, exitCode: exitCodes.badUsage };
  if (error instanceof Error && error.name === 'TimeoutError') {
    return { message: 'the server did not answer in time: try again', exitCode: exitCodes.unreachable };
  }
  if (isConnectionError(error)) {
    return {
      message: `the server does not answer (${reasonOf(error)}): is it running?`,
      exitCode: exitCodes.unreachable,
    };
  }
  return { message, exitCode: exitCodes.failed };
}

function explainedAnswer({ status, body }: ApiError): Explanation {
  const answer = { status, ...body };
  const lines = [
    body.message,
    ...(body.details ?? []).flatMap(detailLines).filter((line) => !body.message.includes(line.trim())),
  ];
  const exitCode =
    status === 403 ? exitCodes.denied : status === 429 || status >= 500 ? exitCodes.unreachable : exitCodes.refused;
  return { message: lines.join('\n'), exitCode, answer };
}

/** What a detail says beyond the message. */
function detailLines(detail: Readonly<Record<string, unknown>>): readonly string[] {
  const { fieldViolations, policyEvaluations } = detail as {
    readonly fieldViolations?: readonly { readonly field: string; readonly description: string }[];
    readonly policyEvaluations?: readonly {
      readonly policyName?: string;
      readonly policyId: string;
      readonly outcome: string;
    }[];
  };
  return [
    ...(fieldViolations ?? []).map(({ field, description }) => `  ${field}: ${description}`),
    ...(policyEvaluations ?? []).map(
      ({ policyName, policyId, outcome }) =>
        `  policy ${policyName === undefined ? '' : `“${policyName}” `}(${policyId}): ${outcomeWords(outcome)}`,
    ),
  ];
}

function outcomeWords(outcome: string): string {
  return outcome
    .replace(/^OUTCOME_/, '')
    .toLowerCase()
    .replaceAll('_', ' ');
}

/** What `fetch` throws when there is no answer. */
function isConnectionError(error: unknown): error is Error {
  return isNativeError(error) && error.name === 'TypeError' && error.message === 'fetch failed';
}

function reasonOf({ cause }: Error): string {
  if (!isNativeError(cause)) return 'no reason given';
  return 'code' in cause && typeof cause.code === 'string' ? cause.code : cause.message;
}
