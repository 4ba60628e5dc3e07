import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { whenRead } from '../../src/http/slow-readers.js';

let server: Server;
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

/** A server of one large answer; how many milliseconds it has taken until the answer was over. */
async function answering(bytes: number, longestMs: number) {
  server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const over = new Promise<number>((resolve) =>
    server.once('request', (_request, response) => {
      const begun = performance.now();
      whenRead(response, () => resolve(performance.now() - begun), longestMs);
      response.end(Buffer.alloc(bytes));
    }),
  );
  return { port: (server.address() as AddressInfo).port, over };
}

test('who does not read the answer has so long, and is cut off', async () => {
  const { port, over } = await answering(64 * 1024 * 1024, 300);
  const socket = connect(port, '127.0.0.1').pause();
  socket.on('error', () => undefined);
  socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
  expect(await over).toBeGreaterThan(299);
  await once(socket.resume(), 'close');
  expect(socket.bytesRead).toBeLessThan(64 * 1024 * 1024);
}, 15_000);

test('who reads it has all of it', async () => {
  const { port, over } = await answering(8 * 1024 * 1024, 20_000);
  const response = await fetch(`http://127.0.0.1:${port}/`);
  expect((await response.arrayBuffer()).byteLength).toBe(8 * 1024 * 1024);
  expect(await over).toBeLessThan(20_000);
});

test('who is gone already takes no slot', async () => {
  server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const told = new Promise<boolean>((resolve) =>
    server.once('request', (_request, response) => {
      response.once('close', () => whenRead(response, () => resolve(true)));
    }),
  );
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
  setTimeout(() => socket.destroy(), 100);
  expect(await told).toBe(true);
});
