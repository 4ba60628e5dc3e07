import { KeepAliveConnection } from '../../src/http-client/keep-alive-request.js';
import { certificateFor } from '../oidc/certificate.js';
import { startWebServer } from '../oidc/web-server.js';
import { ok, serverByHand } from './server-by-hand.js';

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  await Promise.all(closing.splice(0).map((close) => close()));
});

const asking = { method: 'POST', headers: {}, body: '{"ä":1}', withinMs: 5_000 } as const;

test('a connection is used again, and what is sent at once is sent on several', async () => {
  const bodies: string[] = [];
  const server = await startWebServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      bodies.push(Buffer.concat(pieces).toString());
      response.setHeader('x-position', '7').end('{"ö":2}');
    });
  });
  closing.push(server.close);
  const connection = new KeepAliveConnection();
  for (let count = 0; count < 3; count++) {
    const response = await connection.send(server.url, asking);
    expect([response.status, response.headers['x-position'], response.text]).toEqual([200, '7', '{"ö":2}']);
  }
  expect(server.connections()).toBe(1);
  await Promise.all([connection.send(server.url, asking), connection.send(server.url, asking)]);
  expect(server.connections()).toBe(2);
  expect(bodies).toEqual(Array(5).fill(asking.body));
});

async function byHand(...args: Parameters<typeof serverByHand>): Promise<string> {
  const server = await serverByHand(...args);
  closing.push(server.close);
  return server.url;
}

/** In one packet. */
const small = { ...asking, method: 'GET', body: undefined } as const;
test.each(['reset', 'ended'] as const)('a request whose connection is %s before it is sent once more', async (how) => {
  const seen: number[] = [];
  const url = await byHand((socket, connection) => {
    seen.push(connection);
    if (seen.length !== 2) socket.write(ok);
    else if (how === 'reset') socket.resetAndDestroy();
    else socket.end();
  });
  const connection = new KeepAliveConnection();
  await connection.send(url, small);
  expect(await connection.send(url, small)).toMatchObject({ status: 200 });
  expect(seen).toEqual([1, 1, 2]);
});

test('a request that fails on a new connection is sent once', async () => {
  const seen: number[] = [];
  const url = await byHand((socket, connection) => {
    seen.push(connection);
    socket.resetAndDestroy();
  });
  await expect(new KeepAliveConnection().send(url, small)).rejects.toMatchObject({ code: 'ECONNRESET' });
  expect(seen).toEqual([1]);
});

const late: readonly (readonly [string, string])[] = [
  ['nothing', ''],
  ['half a head', 'HTTP/1.1 200 OK\r\n'],
  ['half a body', 'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{'],
];

test.each(late)(
  'of a server that sends %s, no more is waited for than asked, and it is asked once',
  async (_what, sent) => {
    const seen: number[] = [];
    const url = await byHand((socket, connection) => {
      seen.push(connection);
      socket.write(seen.length === 1 ? ok : sent);
    });
    const connection = new KeepAliveConnection();
    await connection.send(url, small);
    await expect(connection.send(url, { ...small, withinMs: 50 })).rejects.toThrow(/no response within 50 ms|aborted/);
    expect(seen).toEqual([1, 1]);
  },
  2_000,
);

test('a response that breaks off is none', async () => {
  const url = await byHand((socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{'));
  await expect(new KeepAliveConnection().send(url, small)).rejects.toThrow('aborted');
});

test('an upgrade that nobody asked for is no answer', async () => {
  const url = await byHand((socket) =>
    socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: other\r\n\r\n'),
  );
  await expect(new KeepAliveConnection().send(url, small)).rejects.toThrow('closed before an answer');
});

test('a server that nobody vouches for is sent nothing', async () => {
  const certificate = certificateFor('api.example');
  const asked: string[] = [];
  const server = await startWebServer((request, response) => {
    asked.push(request.url ?? '');
    response.end();
  }, certificate);
  closing.push(server.close);
  const sending = new KeepAliveConnection().send(`https://127.0.0.1:${server.port}/`, asking);
  await expect(sending).rejects.toMatchObject({ code: expect.stringMatching(/CERT|SELF_SIGNED|ALTNAME/) as string });
  expect(asked).toEqual([]);
});
