import fastify from 'fastify';
import { inParts, writeLargeResponsesApart } from '../../src/http/large-responses.js';

async function answered(text: string) {
  const server = fastify();
  server.addHook('onRequest', (request, _reply, done) => {
    request.caller = { network: request.ip, isThroughProxy: false };
    done();
  });
  writeLargeResponsesApart(server);
  const wasSent = new Promise<boolean>((resolve) => {
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
    return await wasSent;
  } finally {
    await server.close();
  }
}

test('a large answer is written in several turns', async () => {
  expect(await answered('€'.repeat(2_000_000))).toBe(false);
});

test('an ordinary one in the turn that made it', async () => {
  expect(await answered('€')).toBe(true);
});

test('of a large answer half a MiB is handed over at once', async () => {
  const server = fastify();
  const part = Buffer.alloc(256 * 1024, 'x');
  server.get('/', async (_request, reply) => {
    let [turns, isOver] = [0, false];
    const others = () => {
      turns += 1;
      if (!isOver) setImmediate(others);
    };
    setImmediate(others);
    let length = 0;
    for await (const chunk of inParts(
      reply,
      Array.from({ length: 16 }, () => part),
    ))
      length += (chunk as Buffer).length;
    isOver = true;
    const announced = reply.getHeader('content-length');
    void reply.removeHeader('content-length');
    return { length, announced, turns };
  });
  const { length, announced, turns } = (await server.inject('/')).json<Record<string, number>>();
  expect([length, announced]).toEqual([16 * part.length, 16 * part.length]);
  expect(turns).toBeGreaterThanOrEqual(7);
});
