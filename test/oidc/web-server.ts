import { createServer as createPlainServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';

/** A server on loopback whose pages a test writes. */
export interface WebServer {
  readonly port: number;
  readonly url: string;
  /** `GET /path` of every request, in order. */
  readonly requests: readonly string[];
  /** Connections ever made to it. */
  connections(): number;
  close(): Promise<void>;
}

/** Starts one; with a certificate it speaks TLS. */
export async function startWebServer(
  listener: RequestListener,
  certificate?: { readonly key: string; readonly cert: string },
): Promise<WebServer> {
  const requests: string[] = [];
  let connections = 0;
  const noted: RequestListener = (request, response) => {
    requests.push(`${request.method} ${request.url}`);
    listener(request, response);
  };
  const server: Server = certificate ? createTlsServer(certificate, noted) : createPlainServer(noted);
  server.on('connection', () => connections++);
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    requests,
    connections: () => connections,
    close: () =>
      new Promise((closed) => {
        server.close(() => closed());
        server.closeAllConnections();
      }),
  };
}
