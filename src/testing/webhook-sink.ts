import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A delivery as received, including signature headers. */
export interface DeliveredWebhook {
  readonly headers: IncomingHttpHeaders;
  /** The exact bytes as text, which the signature covers. */
  readonly text: string;
  readonly body: unknown;
}

/** An endpoint on loopback that accepts and keeps every delivery. Does not keep the process alive. */
export class WebhookSink {
  readonly delivered: DeliveredWebhook[] = [];

  private constructor(
    private readonly server: Server,
    readonly url: string,
  ) {}

  static async open(): Promise<WebhookSink> {
    const server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const text = Buffer.concat(chunks).toString();
        sink.delivered.push({ headers: request.headers, text, body: JSON.parse(text) as unknown });
        response.writeHead(204).end();
      });
    });
    server.unref();
    server.on('connection', (socket) => socket.unref());
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
    const sink = new WebhookSink(server, `http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    return sink;
  }

  close(): Promise<void> {
    return new Promise((closed) => {
      this.server.close(() => closed());
      this.server.closeAllConnections();
    });
  }
}
