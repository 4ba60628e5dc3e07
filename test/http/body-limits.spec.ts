import { once } from 'node:events';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { getHeapStatistics } from 'node:v8';
import fastify, { type FastifyInstance } from 'fastify';
import { limitBodies } from '../../src/http/body-limits.js';
import { bytesInFlight } from '../../src/rate-limits/bodies-in-flight.js';

const most = bytesInFlight(getHeapStatistics().heap_size_limit);
const large = 2 ** 21;

let server: FastifyInstance;
let finish: () => void;
let begun: Promise<void>;
const sockets: Socket[] = [];

beforeEach(async () => {
  server = fastify({ bodyLimit: large });
  server.decorateRequest('caller');
  server.addHook('onRequest', (request, _reply, done) => {
    const network = String(request.headers['x-from']);
    request.caller = { network, isThroughProxy: false };
    done();
  });
  limitBodies(server);
  const worked = new Promise<void>((resolve) => (finish = resolve));
  begun = new Promise((resolve) => {
    server.post('/', async () => {
      resolve();
      await worked;
      return { done: true };
    });
  });
  await server.listen({ host: '127.0.0.1', port: 0 });
});
afterEach(async () => {
  finish();
  for (const socket of sockets) socket.destroy();
  await server.close();
});

/** A connection that announces a body of 2 MiB, and what it has received once it closes. */
async function announce(from: string): Promise<{ socket: Socket; answer: Promise<string> }> {
  const socket = connect((server.server.address() as AddressInfo).port, '127.0.0.1').on('error', () => undefined);
  sockets.push(socket);
  let text = '';
  socket.on('data', (data) => (text += data.toString()));
  const answer = once(socket, 'close').then(() => text);
  await once(socket, 'connect');
  socket.write(
    `POST / HTTP/1.1\r\nhost: x\r\nx-from: ${from}\r\nconnection: close\r\ncontent-type: text/plain\r\ncontent-length: ${large}\r\n\r\n`,
  );
  return { socket, answer };
}

test('a body that is worked on is not given up, and is answered', async () => {
  const workedOn = await announce('greedy');
  workedOn.socket.write('x'.repeat(large));
  await begun;
  const others = [];
  // The greedy one has half of all, and this body is its oldest.
  for (let one = 1; one < Math.floor(most / large); one += 1) others.push(await announce(one % 2 ? 'other' : 'greedy'));
  for (let one = 0; one < 4; one += 1) others.push(await announce('new'));
  const first = await Promise.race(others.map(({ answer }) => answer));
  expect(first).toContain('UNAVAILABLE');
  finish();
  expect(await workedOn.answer).toMatch(/^HTTP\/1\.1 200 /);
});
