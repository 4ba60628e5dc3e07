import fastify from 'fastify';
import { writeLargeAnswersApart } from '../../src/http/large-answers.js';

test.each([
  ['a large answer is written in a turn after the one that made it', '€'.repeat(100_000), false],
  ['an ordinary one in the same', '€', true],
])('%s', async (_title, text, isWritten) => {
  const server = fastify();
  server.addHook('onRequest', (request, _reply, done) => {
    request.caller = { network: request.ip, isThroughProxy: false };
    done();
  });
  writeLargeAnswersApart(server);
  const wasWritten = new Promise<boolean>((resolve) => {
    server.get('/', (_request, reply) => {
      setImmediate(() => resolve(reply.raw.headersSent));
      return { text };
    });
  });
  const url = await server.listen({ host: '127.0.0.1', port: 0 });
  try {
    const response = await fetch(url);
    expect(await response.json()).toEqual({ text });
    const { length } = Buffer.from(JSON.stringify({ text }));
    expect(response.headers.get('content-length')).toBe(String(length));
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(await wasWritten).toBe(isWritten);
  } finally {
    await server.close();
  }
});
