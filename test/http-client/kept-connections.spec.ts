import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { guardedFetch } from '../../src/http-client/guarded-fetch.js';
import type { GuardedRequest } from '../../src/http-client/guarded-request.js';
import { certificateFor } from '../oidc/certificate.js';
import { startWebServer, type WebServer } from '../oidc/web-server.js';
import { ok, serverByHand } from './server-by-hand.js';

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  await Promise.all(closing.splice(0).map((close) => close()));
});

async function serve(...args: Parameters<typeof startWebServer>): Promise<WebServer> {
  const server = await startWebServer(...args);
  closing.push(server.close);
  return server;
}

const answering = (): Promise<WebServer> => serve((_request, response) => response.end());
const told = (keepFor: string): GuardedRequest => ({ method: 'POST', body: '{}', statusOnly: true, keepFor });

test('the connection of a user to a host is used again, and those of others are not', async () => {
  const server = await answering();
  const fetch = guardedFetch({ allowPrivateNetwork: true });
  for (let count = 0; count < 3; count++) await fetch(`${server.url}/one`, told('one'));
  expect(server.connections()).toBe(1);
  await fetch(`${server.url}/two`, told('two'));
  expect(server.connections()).toBe(2);
  await fetch(server.url);
  await fetch(server.url);
  expect(server.connections()).toBe(4);
  await guardedFetch({ allowPrivateNetwork: true })(`${server.url}/one`, told('one'));
  expect(server.connections()).toBe(5);
  await fetch(`${server.url}/one`, told('one'));
  expect(server.connections()).toBe(5);
});

test('a connection over TLS is used again as well', async () => {
  const certificate = certificateFor('kept.example');
  const server = await serve((_request, response) => response.end(), certificate);
  const fetch = guardedFetch({
    allowPrivateNetwork: true,
    trustedCertificates: certificate.cert,
    resolve: () => Promise.resolve(['127.0.0.1']),
  });
  for (let count = 0; count < 3; count++) await fetch(`https://kept.example:${server.port}/`, told('one'));
  expect(server.connections()).toBe(1);
});

test('a host that has other addresses than before gets a new connection, to one of those', async () => {
  const server = await answering();
  let addresses = ['127.0.0.1', '127.0.0.2'];
  const fetch = guardedFetch({ allowPrivateNetwork: true, resolve: () => Promise.resolve(addresses) });
  const url = `http://moving.example:${server.port}/`;
  await fetch(url, told('one'));
  addresses = ['127.0.0.2', '127.0.0.1'];
  await fetch(url, told('one'));
  expect(server.connections()).toBe(1);
  // Nobody listens there.
  addresses = ['127.0.0.3'];
  await expect(fetch(url, told('one'))).rejects.toThrow('ECONNREFUSED');
  addresses = ['127.0.0.1'];
  await fetch(url, told('one'));
  expect(server.connections()).toBe(2);
});

async function byHand(...args: Parameters<typeof serverByHand>): Promise<string> {
  const server = await serverByHand(...args);
  closing.push(server.close);
  return server.url;
}

test('a request that finds its connection closed is sent once more on a new one', async () => {
  const seen: number[] = [];
  const url = await byHand((socket, connection) => {
    seen.push(connection);
    if (seen.length === 2) socket.resetAndDestroy();
    else socket.write(ok);
  });
  const fetch = guardedFetch({ allowPrivateNetwork: true });
  await fetch(url, told('one'));
  await expect(fetch(url, told('one'))).resolves.toMatchObject({ status: 200 });
  expect(seen).toEqual([1, 1, 2]);
});

test('a request that fails on a new connection is sent once', async () => {
  const seen: number[] = [];
  const url = await byHand((socket, connection) => {
    seen.push(connection);
    if (seen.length === 1) socket.write(ok);
    else socket.resetAndDestroy();
  });
  const fetch = guardedFetch({ allowPrivateNetwork: true });
  await fetch(url, told('one'));
  await expect(fetch(url, told('one'))).rejects.toThrow('cannot be reached');
  expect(seen).toEqual([1, 1, 2]);
  await expect(fetch(url, told('one'))).rejects.toThrow('cannot be reached');
  expect(seen).toEqual([1, 1, 2, 3]);
});

test('what comes on a connection that nobody uses is no answer to the next request', async () => {
  const seen: number[] = [];
  const url = await byHand((socket, connection) => {
    seen.push(connection);
    socket.write(seen.length === 1 ? `${ok}HTTP/1.1 500 Planted\r\ncontent-length: 0\r\n\r\n` : ok);
  });
  const fetch = guardedFetch({ allowPrivateNetwork: true });
  await fetch(url, told('one'));
  await expect(fetch(url, told('one'))).resolves.toMatchObject({ status: 200 });
});

test('eight connections of one user to a host are kept, 128 in all, for four seconds', async () => {
  const open = new Set<Socket>();
  let hasMoved: () => void = () => undefined;
  // One that never closes a connection by itself.
  const server = createHttpServer((_request, response) => response.end());
  server.keepAliveTimeout = 0;
  server.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.on('close', () => {
      open.delete(socket);
      hasMoved();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closing.push(() => new Promise((closed) => server.close(closed)));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  /** Resolves once no more are open, with how long that took in milliseconds. */
  const least = async (count: number): Promise<number> => {
    const begun = performance.now();
    while (open.size > count) await new Promise<void>((resolve) => (hasMoved = resolve));
    return performance.now() - begun;
  };
  // Closed as soon as there are too many, and not because four seconds are over.
  const atOnce = 2_000;
  const fetch = guardedFetch({ allowPrivateNetwork: true });
  await Promise.all(Array.from({ length: 16 }, () => fetch(url, told('one'))));
  expect(await least(8)).toBeLessThan(atOnce);
  await Promise.all(Array.from({ length: 140 }, (_, user) => fetch(url, told(`user ${user}`))));
  expect(await least(128)).toBeLessThan(atOnce);
  expect(open.size).toBe(128);
  expect(await least(0)).toBeLessThan(10_000);
});
