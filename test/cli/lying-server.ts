import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The name of a query or of a submit, such as `get_activity`. */
type Lie = (name: string, answer: never) => unknown;

interface LyingServer {
  readonly url: string;
  /** From now on, responses are what this makes of those of the coordinator. */
  lies(lie: Lie): void;
  /** From now on, it responds by itself. */
  responds(respond: (request: IncomingMessage, response: ServerResponse) => void): void;
  /** Paths of all requests so far, with their bodies. */
  readonly requests: readonly { readonly name: string; readonly body: string }[];
  close(): Promise<void>;
}

/** A server between a command line and a coordinator: it passes requests on, and changes responses as told. */
export async function lyingServer(coordinatorUrl: string): Promise<LyingServer> {
  let lie: Lie = (_name, answer) => answer;
  let own: ((request: IncomingMessage, response: ServerResponse) => void) | undefined;
  const requests: { name: string; body: string }[] = [];
  const passOn = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const name = request.url!.split('/').at(-1)!;
    requests.push({ name, body: body.toString() });
    if (own) return own(request, response);
    const headers = Object.entries(request.headers).filter(([header]) => /^(?:x-|content-type|accept$)/.test(header));
    const real = await fetch(`${coordinatorUrl}${request.url}`, {
      method: 'POST',
      body,
      headers: Object.fromEntries(headers) as Record<string, string>,
    });
    const answer = lie(name, (await real.json()) as never);
    response.writeHead(real.status, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
  };
  const server = createServer((request, response) => {
    passOn(request, response).catch((error: unknown) => response.destroy(error as Error));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    lies: (next) => {
      own = undefined;
      lie = next;
    },
    responds: (respond) => (own = respond),
    requests,
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => void server.close(() => resolve()));
    },
  };
}
