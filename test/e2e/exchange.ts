import { ApiError } from '../../src/testing/index.js';

/** What came back over HTTP, whatever it was; `body` is the parsed JSON, or undefined when it was none. */
export interface Exchange {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: unknown;
}

/** One request as it is told to be made; nothing about it is checked. */
export async function exchange(url: string, init: RequestInit = {}): Promise<Exchange> {
  const response = await fetch(url, init);
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, body: parsed(text) };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** An error response, with its status. */
export type Refusal = ApiError['body'] & { readonly status: number };

/** How a request was refused; fails when it was not. */
export async function refusal(attempt: Promise<unknown>): Promise<Refusal> {
  let answer: unknown;
  try {
    answer = await attempt;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { status: error.status, ...error.body };
  }
  throw new Error(`was not refused: ${JSON.stringify(answer)}`);
}

/** The violations of named fields in a refusal (google.rpc.BadRequest). */
export function violations({ details }: Pick<Refusal, 'details'>): readonly { field: string; description: string }[] {
  const badRequest = details.find((detail) => detail['@type'] === 'type.googleapis.com/google.rpc.BadRequest');
  return (badRequest?.['fieldViolations'] ?? []) as { field: string; description: string }[];
}

/** Each policy's outcome in a denial, and the sentence that sums them up. */
export function denial({ details }: Pick<Refusal, 'details'>) {
  const detail = details.find((one) => one['@type'] === 'type.googleapis.com/errors.v1.PolicyEnginePermissionError') as
    | {
        message: string;
        policyEvaluations: { policyId: string; policyName: string; outcome: string; error?: string }[];
      }
    | undefined;
  return { message: detail?.message, policyEvaluations: detail?.policyEvaluations };
}

/** Matchers of jest, typed so that they can stand where a value would. */
export const anyText: unknown = expect.any(String);
export const textLike = (pattern: RegExp | string): unknown => expect.stringMatching(pattern);
export const listWith = (...elements: readonly unknown[]): unknown => expect.arrayContaining([...elements]);
export const objectWith = (members: object): unknown => expect.objectContaining(members);
