import { once } from 'node:events';
import { Readable } from 'node:stream';
import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { responseCapacity } from '../../src/queries/response-capacity.js';
import { organizationPath } from '../../src/fairness/fair-queue.js';
import { followReader } from '../../src/http/slow-readers.js';

let server: Server;
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const second = 100;
const part = Buffer.alloc(64 * 1024);

function* parts(bytes: number) {
  for (let sent = 0; sent < bytes; sent += part.length) yield part;
}

/** A server of large answers, each in a slot of the organization that the path names. */
async function answering(bytes: number) {
  server = createServer((request, response) => {
    const enter = responseCapacity.enter(organizationPath(request.url!.slice(1), 'parent'));
    void enter.then((slot) => {
      followReader(response, request.socket, slot, second);
      Readable.from(parts(bytes)).pipe(response);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

async function ask(port: number, organization: string): Promise<Socket> {
  const socket = connect(port, '127.0.0.1').on('error', () => undefined);
  await once(socket, 'connect');
  socket.pause().write(`GET /${organization} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  return socket;
}

const large = 64 * 1024 * 1024;

test('who does not read the answer is cut off', async () => {
  const port = await answering(large);
  const [[peer], socket] = (await Promise.all([once(server, 'connection'), ask(port, 'one')])) as [[Socket], Socket];
  const begun = performance.now();
  await new Promise((closed) => peer.once('close', closed));
  expect(performance.now() - begun).toBeGreaterThan(2 * second);
  await once(socket.resume(), 'close');
  expect(socket.bytesRead).toBeLessThan(large);
});

test('who reads it has all of it', async () => {
  const port = await answering(8 * 1024 * 1024);
  const response = await fetch(`http://127.0.0.1:${port}/one`);
  expect((await response.arrayBuffer()).byteLength).toBe(8 * 1024 * 1024);
});

test('two organizations that read nothing keep no other from its answer', async () => {
  const port = await answering(large);
  const idle = await Promise.all(Array.from({ length: 60 }, (_, at) => ask(port, `greedy ${at % 2}`)));
  const response = await fetch(`http://127.0.0.1:${port}/sibling`);
  expect((await response.arrayBuffer()).byteLength).toBe(large);
  for (const socket of idle) socket.destroy();
});

test('who is gone already takes no slot', async () => {
  server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const told = new Promise<boolean>((resolve) =>
    server.once('request', (request, response) => {
      const slot = { offer: () => undefined, leave: () => resolve(true) };
      response.once('close', () => followReader(response, request.socket, slot));
    }),
  );
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
  setTimeout(() => socket.destroy(), 100);
  expect(await told).toBe(true);
});
