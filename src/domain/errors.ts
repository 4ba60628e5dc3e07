/**
 * Every way a request can fail, by its gRPC status name (google.rpc.Code). `http/errors.filter.ts` has the only table
 * of HTTP statuses.
 */
export type ErrorCode =
  | 'INVALID_ARGUMENT'
  | 'NOT_FOUND'
  | 'ALREADY_EXISTS'
  | 'PERMISSION_DENIED'
  | 'RESOURCE_EXHAUSTED'
  | 'FAILED_PRECONDITION'
  | 'ABORTED'
  | 'OUT_OF_RANGE'
  | 'UNIMPLEMENTED'
  | 'INTERNAL'
  | 'UNAVAILABLE'
  | 'UNAUTHENTICATED';

/** The number of each status name (google.rpc.Code). */
export const grpcNumbers: Readonly<Record<ErrorCode, number>> = {
  INVALID_ARGUMENT: 3,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  UNAUTHENTICATED: 16,
};

/** The category that a client can branch on, in addition to the code (docs/protocol.md, error categories). */
export type ErrorCategory =
  | 'INTERNAL'
  | 'ORGANIZATION_NOT_FOUND'
  | 'REQUEST_NOT_AUTHORIZED'
  | 'PUBLIC_KEY_NOT_FOUND'
  | 'RATE_LIMIT_EXCEEDED'
  | 'SIGNATURE_MISSING'
  | 'SIGNATURE_INVALID'
  | 'CREDENTIAL_NOT_FOUND'
  | 'CREDENTIAL_CONFLICT'
  | 'API_KEY_EXPIRED'
  | 'REQUEST_INVALID'
  | 'FORBIDDEN'
  | 'UNAUTHENTICATED'
  | 'INVALID_OIDC_TOKEN'
  | 'INVALID_ORGANIZATION_ID'
  | 'OAUTH2_CREDENTIAL_NOT_FOUND'
  | 'OAUTH2_PROVIDER_NOT_CONFIGURED'
  | 'INVALID_ACTIVITY_CALLER'
  | 'INVALID_TIME'
  | 'INVALID_EMAIL'
  | 'OAUTH_PROVIDER_ALREADY_EXISTS'
  | 'ORGANIZATION_MISMATCH'
  | 'MAX_OTP_INITIATED';

/** One element of `details` on the wire: a typed object as in google.rpc.Status. */
export type ErrorDetail = { readonly '@type': string; readonly [member: string]: unknown };

/**
 * A refusal for the caller: its message says what was wrong, with which value, and what to do. Any other error is a
 * defect of ours and reaches the caller as INTERNAL, without detail.
 */
export class CoordinatorError extends Error {
  readonly code: ErrorCode;
  readonly category: ErrorCategory | undefined;
  readonly details: readonly ErrorDetail[];
  /** Seconds after which the same request may succeed; undefined if time alone changes nothing. */
  readonly retryAfterSeconds: number | undefined;

  constructor(
    code: ErrorCode,
    message: string,
    options: {
      category?: ErrorCategory;
      details?: readonly ErrorDetail[];
      retryAfterSeconds?: number;
      cause?: unknown;
    } = {},
  ) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.name = 'CoordinatorError';
    this.code = code;
    this.category = options.category;
    this.details = options.details ?? [];
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}

/**
 * A refusal by a limit (google.rpc.QuotaFailure). The message is the one that published clients know; the details name
 * the limit.
 * @param limit such as `600 requests a minute from one address`
 */
export function limitExceeded(limit: string, retryAfterSeconds: number): CoordinatorError {
  return new CoordinatorError('RESOURCE_EXHAUSTED', 'Too many requests. Please wait and try again in a few seconds', {
    category: 'RATE_LIMIT_EXCEEDED',
    retryAfterSeconds,
    details: [{ '@type': 'type.googleapis.com/google.rpc.QuotaFailure', violations: [{ description: limit }] }],
  });
}

/** A refusal of one named field of the request, as google.rpc.BadRequest. */
export function invalidField(field: string, description: string): CoordinatorError {
  return invalidFields([{ field, description }]);
}

/** A refusal of several named fields of the request at once. */
export function invalidFields(violations: readonly { field: string; description: string }[]): CoordinatorError {
  const text = violations.map(({ field, description }) => `${field}: ${description}`).join('; ');
  return new CoordinatorError('INVALID_ARGUMENT', `invalid request: ${text}`, {
    category: 'REQUEST_INVALID',
    details: [{ '@type': 'type.googleapis.com/google.rpc.BadRequest', fieldViolations: violations }],
  });
}

/** The message of whatever was thrown. */
export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
