import type { AddressInfo } from 'node:net';
import { createServer } from 'node:http';
import fastify from 'fastify';
import { writeLargeResponsesApart } from '../../src/http/large-responses.js';
import { securityHeaders } from '../../src/http/security-headers.js';

// Run by `hold-against-document.spec.ts` alone: a server that responds as coordinators do, with and without faults. Only the
// check of responses can fail these tests.

const documented = { code: 5, message: 'not found', details: [], turnkeyErrorCode: 'NOT_FOUND' };
const undocumented = { ...documented, more: 'x' };

async function respond(path: string, status: number, body: object, headers = securityHeaders()): Promise<void> {
  const server = fastify();
  server.addHook('onRequest', (request, reply, done) => {
    request.caller = { network: request.ip, isThroughProxy: false };
    void reply.headers(headers);
    done();
  });
  writeLargeResponsesApart(server);
  server.post('*', (_request, reply) => reply.code(status).send(body));
  const url = await server.listen({ host: '127.0.0.1', port: 0 });
  await (await fetch(`${url}${path}`, { method: 'POST' })).text();
  await server.close();
}

const query = '/public/v1/query/whoami';
const large = 'x'.repeat(4_000_000);

test('a documented response', () => respond(query, 404, documented));
test('a documented large response', () => respond(query, 404, { ...documented, message: large }));
test('an undocumented member', () => respond(query, 404, undocumented));
test('an undocumented member of a large response', () => respond(query, 404, { ...undocumented, message: large }));
test('an undocumented status', () => respond(query, 418, documented));
test('an undocumented path', () => respond('/public/v1/submit/nothing', 200, {}));
test('a response through a path of the auth proxy', () => respond('/v1/otp_init', 200, { otp: 'x' }));
test('a path that is not of the API', () => respond('/metrics', 200, undocumented));

test('a fake server', async () => {
  const server = createServer((_request, response) => response.end(JSON.stringify(undocumented)));
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  await (await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}${query}`, { method: 'POST' })).text();
  await new Promise((closed) => server.close(closed));
});

describe('an undocumented member', () => {
  afterEach(() => respond(query, 404, { ...undocumented, again: 'x' }));
  test('in a hook', () => undefined);
});
