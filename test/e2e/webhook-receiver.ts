import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { until } from './until.js';

/** A request as it arrived. */
interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A status, which may take a while, in milliseconds, or never an answer. */
type Manner = number | { readonly status: number; readonly afterMs: number } | 'never';
/** How a path is answered: one after the other, with the last for good. */
type Manners = readonly Manner[];

/** A server that deliveries go to. Answers 204 unless a path was taught otherwise. */
export class WebhookReceiver {
  readonly received: Received[] = [];
  private readonly manners = new Map<string, { rest: Manners }>();

  private constructor(
    readonly url: string,
    readonly close: () => Promise<void>,
  ) {}

  static async start(): Promise<WebhookReceiver> {
    const server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const path = request.url ?? '';
        receiver.received.push({ path, headers: request.headers, body: Buffer.concat(chunks).toString() });
        const manner = receiver.next(path);
        if (manner === 'never') return;
        const { status, afterMs } = typeof manner === 'number' ? { status: manner, afterMs: 0 } : manner;
        const answer = (): void => {
          response.writeHead(status, status >= 300 && status < 400 ? { location: '/elsewhere' } : {});
          response.end('x'.repeat(status === 200 ? 200_000 : 0));
        };
        if (afterMs === 0) answer();
        else setTimeout(answer, afterMs);
      });
    });
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
    const close = () =>
      new Promise<void>((closed) => {
        server.close(() => closed());
        server.closeAllConnections();
      });
    const receiver = new WebhookReceiver(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, close);
    return receiver;
  }

  /** Teaches a path how to answer from now on. */
  teach(path: string, ...manners: Manners): void {
    this.manners.set(path, { rest: manners });
  }

  /** Everything that came to a path so far, the oldest first. */
  at(path: string): readonly Received[] {
    return this.received.filter((one) => one.path === path);
  }

  /** What came to a path, once it is so much. */
  async count(path: string, count: number): Promise<readonly Received[]> {
    await until(`${count} deliveries at ${path}`, () => this.at(path).length >= count);
    return this.at(path);
  }

  private next(path: string): Manner {
    const known = this.manners.get(path);
    if (!known) return 204;
    const [first = 204, ...others] = known.rest;
    if (others.length > 0) known.rest = others;
    return first;
  }
}
