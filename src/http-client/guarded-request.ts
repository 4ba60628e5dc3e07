/**
 * What stopped an outbound request; `connection`, `resolution` and `time` may be temporary, the others are up to the
 * target.
 */
export type GuardRule =
  'url' | 'scheme' | 'userinfo' | 'resolution' | 'address' | 'connection' | 'redirect' | 'encoding' | 'size' | 'time';

const passing: readonly GuardRule[] = ['connection', 'resolution', 'time'];

/**
 * An outbound request that was refused or failed. The message names the host and the rule, never path, query or body.
 */
export class GuardedFetchError extends Error {
  readonly rule: GuardRule;

  constructor(rule: GuardRule, message: string, options: { cause?: unknown } = {}) {
    super(message, options);
    this.name = 'GuardedFetchError';
    this.rule = rule;
  }

  /** True when the same request may succeed later. */
  get mayPass(): boolean {
    return passing.includes(this.rule);
  }
}

/** One outbound request. */
export interface GuardedRequest {
  readonly method?: 'GET' | 'POST';
  /** `host`, `content-length` and `accept-encoding` are set by the client, not by the caller. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** Largest body accepted, in bytes; 128 KiB if absent. */
  readonly maxBytes?: number;
  /** For everything, from resolving the host to the last byte, in milliseconds; 5 000 if absent. */
  readonly timeoutMs?: number;
  /**
   * Only the status counts: at most 2 KiB of the body are read and ignored, and the body may break off; a redirect is a
   * response like any other, and is not followed. `on-success`: so it is for a 2xx, of which at most `maxBytes` are read.
   */
  readonly statusOnly?: true | 'on-success';
  /** Ends the request, which then fails like a broken connection. */
  readonly signal?: AbortSignal;
  /**
   * Whose connection it is: kept for a few seconds, for the next request of the same user to the same host, if that has the
   * same addresses then. A request that finds it closed is sent once more: the peer may see it twice. Absent: the
   * connection is closed.
   */
  readonly keepFor?: string;
}

/** A response with any status, but 3xx only on request. The caller checks its content type. */
export interface GuardedResponse {
  readonly status: number;
  /** By name in lower case; the values of a repeated header are joined. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/**
 * Makes one HTTP request to a URL that someone else chose.
 * @throws {GuardedFetchError}
 */
export type GuardedFetch = (url: string, request?: GuardedRequest) => Promise<GuardedResponse>;

/** The system's name of a failure, such as ECONNREFUSED or CERT_HAS_EXPIRED; its text may quote what the peer sent. */
export function codeOf(error: unknown): string {
  const code: unknown = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : 'no answer';
}
