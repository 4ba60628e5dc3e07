import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';

/** An empty response, in one packet. */
export const ok = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n';

/** A server below HTTP; `answer` gets each request with the number of its connection. */
export async function serverByHand(answer: (socket: Socket, connection: number) => void) {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket.on('error', () => undefined));
    const connection = sockets.length;
    socket.on('data', () => answer(socket, connection));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
