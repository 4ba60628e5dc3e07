import { BadRequestException, NotFoundException, PayloadTooLargeException } from '@nestjs/common';
import type { ArgumentsHost } from '@nestjs/common';
import { pino } from 'pino';
import { CoordinatorError, grpcNumbers, invalidField, type ErrorCode } from '../../src/domain/errors.js';
import { ErrorsFilter, httpStatuses } from '../../src/http/errors.filter.js';

interface ErrorBody {
  readonly code: number;
  readonly message: string;
  readonly details: readonly object[];
  readonly turnkeyErrorCode: string;
}

/** What the filter answers to something that was thrown, and what it logs. */
function answered(thrown: unknown) {
  const logged: Record<string, unknown>[] = [];
  const logger = pino({ level: 'debug' }, { write: (line: string) => logged.push(JSON.parse(line) as never) });
  const headers: Record<string, unknown> = {};
  let status = 0;
  let body: ErrorBody | undefined;
  const request = { id: 'request-1', facts: {} };
  const reply = {
    header(name: string, value: unknown) {
      headers[name] = value;
      return reply;
    },
    getHeader: (name: string) => headers[name],
    hasHeader: (name: string) => name in headers,
    status(code: number) {
      status = code;
      return reply;
    },
    send(sent: ErrorBody) {
      body = sent;
      return reply;
    },
  };
  const host = {
    switchToHttp: () => ({ getRequest: () => request, getResponse: () => reply }),
  } as unknown as ArgumentsHost;
  new ErrorsFilter(logger).catch(thrown, host);
  return { status, headers, body: body!, logged };
}

test('every code has the status of the docs/protocol.md, status codes', () => {
  expect(httpStatuses).toEqual({
    INVALID_ARGUMENT: 400,
    NOT_FOUND: 404,
    ALREADY_EXISTS: 409,
    PERMISSION_DENIED: 403,
    RESOURCE_EXHAUSTED: 429,
    FAILED_PRECONDITION: 400,
    ABORTED: 409,
    OUT_OF_RANGE: 413,
    UNIMPLEMENTED: 501,
    INTERNAL: 500,
    UNAVAILABLE: 503,
    UNAUTHENTICATED: 401,
  });
  for (const code of Object.keys(httpStatuses) as ErrorCode[]) {
    const { status, body } = answered(new CoordinatorError(code, 'why'));
    expect({ status, code: body.code }).toEqual({ status: httpStatuses[code], code: grpcNumbers[code] });
  }
});

test('the body always has the four members, and the category twice', () => {
  expect(answered(new CoordinatorError('NOT_FOUND', 'no such thing')).body).toEqual({
    code: 5,
    message: 'no such thing',
    details: [],
    turnkeyErrorCode: '',
  });
  expect(answered(invalidField('parameters.name', 'is required')).body).toEqual({
    code: 3,
    message: 'invalid request: parameters.name: is required',
    details: [
      {
        '@type': 'type.googleapis.com/google.rpc.BadRequest',
        fieldViolations: [{ field: 'parameters.name', description: 'is required' }],
      },
      { '@type': 'type.googleapis.com/errors.v1.TurnkeyErrorDetail', turnkeyErrorCode: 'REQUEST_INVALID' },
    ],
    turnkeyErrorCode: 'REQUEST_INVALID',
  });
});

test('an unavailable error says when to try again', () => {
  expect(answered(new CoordinatorError('UNAVAILABLE', 'later')).headers).toEqual({ 'retry-after': '1' });
  expect(answered(new CoordinatorError('INTERNAL', 'never')).headers).toEqual({});
});

test.each<[string, unknown]>([
  ['an error', new TypeError("Cannot read properties of undefined (reading 'users')")],
  ['an error with a cause', new Error('outer', { cause: new Error('inner secret') })],
  ['text', 'a secret'],
  ['nothing', undefined],
  ['an object', { statusCode: 'x', secret: 'a secret' }],
  ['a server error of another library', Object.assign(new Error('a secret'), { statusCode: 502 })],
])('%s that nobody meant gives a 500 with an id from the log, and nothing else', (_name, thrown) => {
  const { status, body, logged } = answered(thrown);
  expect(status).toBe(500);
  expect(body).toEqual({
    code: 13,
    message: expect.stringMatching(/^internal server error \([0-9a-f-]{36}\)$/) as unknown,
    details: [{ '@type': 'type.googleapis.com/errors.v1.TurnkeyErrorDetail', turnkeyErrorCode: 'INTERNAL' }],
    turnkeyErrorCode: 'INTERNAL',
  });
  expect(logged).toHaveLength(1);
  expect(logged[0]).toMatchObject({ level: 50, errorId: /\((.*)\)/.exec(body.message)![1] });
});

test.each([
  [new NotFoundException('Cannot GET /x'), 404, 5, 'path not found: see /docs for the available endpoints'],
  [new PayloadTooLargeException(), 400, 3, 'request body is larger than 2 MiB'],
  [Object.assign(new Error('too large'), { statusCode: 413 }), 400, 3, 'request body is larger than 2 MiB'],
  [new BadRequestException('bad header'), 400, 3, 'bad header'],
])('the framework’s refusals use our format, and are not logged: %s', (thrown, status, code, message) => {
  const answer = answered(thrown);
  expect({ status: answer.status, code: answer.body.code, message: answer.body.message }).toEqual({
    status,
    code,
    message,
  });
  expect(answer.logged).toEqual([]);
});
