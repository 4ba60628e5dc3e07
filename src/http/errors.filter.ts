import { randomUUID } from 'node:crypto';
import { Catch, HttpException, Inject, Optional, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { CoordinatorError, grpcNumbers, type ErrorCode, type ErrorDetail } from '../domain/errors.js';
import { StoreRefused, UnreadableEvent } from '../ledger/event-store.js';
import { UnreadableOrganizations } from '../ledger/unreadable-organizations.js';
import { notImplementedPage } from './published-paths.js';
import { LOGGER } from '../logging/logger.js';

/** The HTTP status of each error code (docs/protocol.md, status codes), the only such table. */
export const httpStatuses: Readonly<Record<ErrorCode, number>> = {
  INVALID_ARGUMENT: 400,
  NOT_FOUND: 404,
  ALREADY_EXISTS: 409,
  PERMISSION_DENIED: 403,
  RESOURCE_EXHAUSTED: 429,
  FAILED_PRECONDITION: 400,
  ABORTED: 409,
  // Not among the published codes: larger than what can be recorded here, which an operator can change.
  OUT_OF_RANGE: 413,
  UNIMPLEMENTED: 501,
  INTERNAL: 500,
  UNAVAILABLE: 503,
  UNAUTHENTICATED: 401,
};

/** The body of every unsuccessful response (docs/protocol.md, error bodies). */
interface ErrorBody {
  readonly code: number;
  readonly message: string;
  readonly details: readonly ErrorDetail[];
  readonly turnkeyErrorCode: string;
}

/** The body of an error on the wire. The category appears twice because clients look in both places. */
function errorBody({ code, message, details, category, retryAfterSeconds }: CoordinatorError): ErrorBody {
  const retryDetail =
    retryAfterSeconds === undefined
      ? []
      : [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: `${retryAfterSeconds}s` }];
  const categoryDetail = category
    ? [{ '@type': 'type.googleapis.com/errors.v1.TurnkeyErrorDetail', turnkeyErrorCode: category }]
    : [];
  return {
    code: grpcNumbers[code],
    message,
    details: [...details, ...retryDetail, ...categoryDetail],
    turnkeyErrorCode: category ?? '',
  };
}

/** Refuses a path that Fastify cannot decode; Nest, and so the filter below, never sees such a request. */
export function refuseUnreadablePath(_error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const error = new CoordinatorError('NOT_FOUND', 'the path is malformed: see /docs for the available endpoints');
  void reply.header('x-request-id', request.id);
  // No hook runs for such a reply, and Fastify adds a charset to everything but bytes.
  const bytes = Buffer.from(JSON.stringify(errorBody(error)));
  void reply.status(httpStatuses[error.code]).header('content-type', 'application/json').send(bytes);
}

/** Converts any error into the wire format. Errors not meant for the caller are logged under an id, not shown. */
@Catch()
export class ErrorsFilter implements ExceptionFilter {
  constructor(
    @Inject(LOGGER) private readonly logger: Logger,
    /** An auth proxy that runs by itself has none. */
    @Optional() private readonly unreadable?: UnreadableOrganizations,
  ) {}

  catch(thrown: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const request = http.getRequest<FastifyRequest>();
    const reply = http.getResponse<FastifyReply>();
    const error = this.translate(thrown, request.id);
    request.facts.error = error;
    const { cause } = error;
    // Only an operator can fix these, and their messages are for the operator. A request that is too large is its caller's mistake.
    const isRefused = cause instanceof StoreRefused || cause instanceof UnreadableEvent;
    if (cause instanceof StoreRefused && cause.refusal.kind === 'access-denied') {
      this.logger.error({ reason: cause.message, requestId: request.id }, 'the event store refused access');
    }
    const seconds = error.retryAfterSeconds ?? (error.code === 'UNAVAILABLE' && !isRefused ? 1 : undefined);
    if (seconds !== undefined) void reply.header('retry-after', String(seconds));
    void reply.status(httpStatuses[error.code]).send(errorBody(error));
  }

  private translate(error: unknown, requestId: string): CoordinatorError {
    const thrown = this.unreadable?.refusal(error) ?? error;
    if (thrown instanceof CoordinatorError) return thrown;
    const status = statusOf(thrown);
    if (status === 404)
      return new CoordinatorError('NOT_FOUND', 'path not found: see /docs for the available endpoints');
    if (status === 413) return bodyTooLarge();
    if (status !== undefined && status >= 400 && status < 500) {
      const message = thrown instanceof Error ? thrown.message : 'bad request';
      return new CoordinatorError('INVALID_ARGUMENT', message, { category: 'REQUEST_INVALID' });
    }
    const id = randomUUID();
    this.logger.error({ err: thrown, errorId: id, requestId }, 'unexpected error');
    return new CoordinatorError('INTERNAL', `internal server error (${id})`, { category: 'INTERNAL', cause: thrown });
  }
}

/** A published path that this server does not have, unlike one that nobody has. */
export function notImplemented(path: string): CoordinatorError {
  return new CoordinatorError(
    'UNIMPLEMENTED',
    `this server does not implement \`${path}\`: ${notImplementedPage} lists all such paths`,
  );
}

/** The body is larger than any request may be. */
export function bodyTooLarge(): CoordinatorError {
  return new CoordinatorError('INVALID_ARGUMENT', 'request body is larger than 2 MiB', { category: 'REQUEST_INVALID' });
}

/** The body is cut into more parts than any client has a reason for. */
export function bodyInTooManyParts(): CoordinatorError {
  return new CoordinatorError(
    'INVALID_ARGUMENT',
    'request body comes in too many parts: send it with its Content-Length, or in chunks of at least 256 bytes',
    { category: 'REQUEST_INVALID' },
  );
}

/** The client hung up while it sent its body. */
export function bodyBrokeOff(): CoordinatorError {
  return new CoordinatorError('INVALID_ARGUMENT', 'request body ends before its announced length', {
    category: 'REQUEST_INVALID',
  });
}

function statusOf(thrown: unknown): number | undefined {
  if (thrown instanceof HttpException) return thrown.getStatus();
  if (typeof thrown === 'object' && thrown !== null && 'statusCode' in thrown) return Number(thrown.statusCode);
  return undefined;
}
