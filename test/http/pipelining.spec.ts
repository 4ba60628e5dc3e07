import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { limitPipelining } from '../../src/http/pipelining.js';
import { until } from '../e2e/until.js';

const get = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';

test('every response of a connection that breaks off is closed, those queued behind the first too, and once', async () => {
  const responses: ServerResponse[] = [];
  let closed = 0;
  const server = createServer(
    limitPipelining((_request, response) => {
      responses.push(response.on('close', () => (closed += 1)));
      if (responses.length > 1) response.end('done');
    }),
  ).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => undefined);
  socket.write(get.repeat(8));
  await until('all are under way', () => responses.length === 8);
  socket.destroy();
  await until('all are closed', () => closed >= 8);
  expect(closed).toBe(8);
  expect(responses.map(({ destroyed }) => destroyed)).toEqual(Array(8).fill(true));
  await new Promise((ended) => server.close(ended));
});
