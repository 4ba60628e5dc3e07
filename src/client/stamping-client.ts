import type { ActivityEnvelope } from '../wire/envelope.js';
import { fingerprintOf } from '../stamps/fingerprint.js';
import { stampBody, type ApiKeyPair } from '../stamps/sign.js';
import { routingHeader } from './organization-header.js';

/** A response of the Activity API as received over HTTP. */
export interface ApiAnswer<Body> {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Body;
}

/** An unsuccessful response; `status` and `body` are as received over HTTP. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly body: {
      readonly code: number;
      readonly message: string;
      readonly details: readonly Record<string, unknown>[];
      readonly turnkeyErrorCode: string;
    },
  ) {
    super(`${status} ${body.message}`);
    this.name = 'ApiError';
  }
}

/** A response to a submit or a vote that is about another activity. */
class UnexpectedActivity extends Error {}

/** Someone who stamps requests with an API key and sends them over real HTTP. */
export class StampingClient {
  private lastTimestamp = 0;

  constructor(
    /** The base URL of the API, or a function that returns it if it may change. */
    private readonly baseUrl: string | (() => string),
    /** The organization of requests that name none. */
    readonly organizationId: string,
    readonly key: ApiKeyPair,
    private readonly clock: { now(): number } = Date,
    /** Longest wait for a response, in milliseconds; by default, as long as `fetch` waits. */
    private readonly timeoutMs?: number,
  ) {}

  /**
   * Submits an activity by its type, which determines the path.
   * @throws {ApiError} for every unsuccessful response
   * @throws {UnexpectedActivity} if the response is about another activity than the request
   */
  async submit(
    type: string,
    parameters: object,
    options: {
      readonly organizationId?: string;
      readonly timestampMs?: string;
      readonly generateAppProofs?: boolean;
    } = {},
  ): Promise<ActivityEnvelope> {
    const body = this.submitBody(type, parameters, options);
    const { body: answer } = await this.post<{ activity: ActivityEnvelope }>(
      submitPath(type),
      body,
      options.organizationId,
    );
    const { fingerprint } = parameters as { readonly fingerprint?: string };
    checkFingerprint(answer.activity, isVote(type) ? fingerprint : fingerprintOf(body));
    return answer.activity;
  }

  /**
   * Submits an activity that must complete at once, and returns its result.
   * @throws {ApiError} for every unsuccessful response
   * @throws {Error} if it is not completed, for example because it waits for votes
   */
  async perform<Result = Readonly<Record<string, unknown>>>(
    type: string,
    parameters: object,
    options?: Parameters<StampingClient['submit']>[2],
  ): Promise<Result> {
    const { id, status, result } = await this.submit(type, parameters, options);
    if (status !== 'ACTIVITY_STATUS_COMPLETED') {
      throw new Error(`${type} was not completed: activity ${id} is ${status}; use submit if you expect that`);
    }
    return Object.values(result)[0] as Result;
  }

  /** The body of a submit, for sending more than once or by several users. */
  submitBody(
    type: string,
    parameters: object,
    {
      organizationId = this.organizationId,
      timestampMs = this.nextTimestamp(),
      generateAppProofs,
    }: { organizationId?: string; timestampMs?: string; generateAppProofs?: boolean } = {},
  ): string {
    return JSON.stringify({ type, timestampMs, organizationId, parameters, generateAppProofs });
  }

  /** Approves an activity by its fingerprint. */
  approve(fingerprint: string): Promise<ActivityEnvelope> {
    return this.submit('ACTIVITY_TYPE_APPROVE_ACTIVITY', { fingerprint });
  }

  /** Rejects an activity by its fingerprint. */
  reject(fingerprint: string): Promise<ActivityEnvelope> {
    return this.submit('ACTIVITY_TYPE_REJECT_ACTIVITY', { fingerprint });
  }

  /** Sends a query. @throws {ApiError} */
  async query<Answer = Record<string, unknown>>(path: string, request: object = {}): Promise<Answer> {
    const whole: { readonly organizationId: unknown } = { organizationId: this.organizationId, ...request };
    const named = typeof whole.organizationId === 'string' ? whole.organizationId : undefined;
    return (await this.post<Answer>(`/public/v1/query/${path}`, JSON.stringify(whole), named)).body;
  }

  /**
   * Stamps exactly these bytes and posts them.
   * @param organizationId what load balancers are told that they are about (`routingHeader`)
   * @throws {ApiError}
   */
  async post<Body>(
    path: string,
    body: string | Uint8Array,
    organizationId = this.organizationId,
  ): Promise<ApiAnswer<Body>> {
    const { headerName, headerValue } = stampBody(body, this.key);
    const baseUrl = typeof this.baseUrl === 'string' ? this.baseUrl : this.baseUrl();
    const headers = { [headerName]: headerValue, ...routingHeader(organizationId) };
    return send<Body>(`${baseUrl}${path}`, body, headers, this.timeoutMs);
  }

  /** While the clock stands still, identical requests would be one activity, so each gets its own time. */
  private nextTimestamp(): string {
    this.lastTimestamp = Math.max(this.clock.now(), this.lastTimestamp + 1);
    return String(this.lastTimestamp);
  }
}

const isVote = (type: string): boolean => /^ACTIVITY_TYPE_(?:APPROVE|REJECT)_ACTIVITY$/.test(type);

/**
 * The fingerprint is what others approve, so it must be that of the request.
 * @throws {UnexpectedActivity}
 */
function checkFingerprint(activity: ActivityEnvelope | undefined, expected: string | undefined): void {
  if (activity?.fingerprint === expected) return;
  throw new UnexpectedActivity(
    `the response is about another activity, with the fingerprint \`${String(activity?.fingerprint)}\` and not \`${expected}\`: ` +
      'do not approve it, and ask whoever runs the coordinator',
  );
}

/** The path that an activity type is submitted to. */
export function submitPath(type: string): string {
  const kind = /^ACTIVITY_TYPE_(.+?)(?:_V\d+)?$/.exec(type)?.[1] ?? type;
  return `/public/v1/submit/${kind.toLowerCase()}`;
}

/** Posts a body with headers of the caller's choice. @throws {ApiError} */
export async function send<Body>(
  url: string,
  body: string | Uint8Array,
  headers: Readonly<Record<string, string>>,
  timeoutMs?: number,
): Promise<ApiAnswer<Body>> {
  const response = await fetch(url, {
    method: 'POST',
    redirect: 'manual',
    body: typeof body === 'string' ? body : new Uint8Array(body),
    headers: { 'content-type': 'application/json', accept: 'application/json', ...headers },
    ...(timeoutMs === undefined ? {} : { signal: AbortSignal.timeout(timeoutMs) }),
  });
  if (response.status >= 300 && response.status < 400) {
    // Whoever gets a stamp can use it.
    throw new Error(
      `${new URL(url).origin} redirects to ${response.headers.get('location')}, and stamps are sent to no other address: use the ` +
        'address of the coordinator itself',
    );
  }
  const answer: unknown = await response.json().catch((cause: unknown) => {
    throw new Error(`${new URL(url).origin} answered HTTP ${response.status} without JSON: is it a coordinator?`, {
      cause,
    });
  });
  if (!response.ok) throw new ApiError(response.status, answer as ApiError['body']);
  return { status: response.status, headers: response.headers, body: answer as Body };
}
