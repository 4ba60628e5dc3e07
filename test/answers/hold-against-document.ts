import { channel } from 'node:diagnostics_channel';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Answer } from './documented.js';

// Runs before every spec file: each JSON response of a coordinator in this process is checked against its OpenAPI document, and
// an undocumented response fails the test in which it was sent. Requests are observed through the diagnostics channel of
// node:http, so no spec has to ask for the check. What validates responses is imported with the first of them, so it costs
// specs without a server nothing. `test/answers/hold-against-document.spec.ts` shows that faults are found.

interface Sent extends Omit<Answer, 'body'> {
  readonly body: string;
}

const sent: Sent[] = [];

interface Started {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** Fake servers of tests respond on such paths too, but without the security headers of a coordinator. */
const marker = 'content-security-policy';

function listen(message: unknown): void {
  const { request, response } = message as Started;
  const path = request.url?.split('?', 1)[0] ?? '';
  if (!/^\/(?:public\/v1\/(?:submit|query)|v1)\//.test(path)) return;
  let isOurs = false;
  const parts: Uint8Array[] = [];
  const keep = ([part]: readonly unknown[]): void => {
    if (typeof part === 'string') parts.push(Buffer.from(part));
    else if (part instanceof Uint8Array) parts.push(part);
  };
  // Fastify passes its headers to `writeHead`, where `hasHeader` does not see them. Streamed responses have them set before.
  response.writeHead = new Proxy(response.writeHead, {
    apply(writeHead, self, args: unknown[]) {
      isOurs ||= Object.hasOwn(Object(args.at(-1)) as object, marker);
      return Reflect.apply(writeHead, self, args) as ServerResponse;
    },
  });
  response.write = new Proxy(response.write, {
    apply(write, self, args: unknown[]) {
      keep(args);
      return Reflect.apply(write, self, args) as boolean;
    },
  });
  response.end = new Proxy(response.end, {
    apply(end, self, args: unknown[]) {
      keep(args);
      const body = Buffer.concat(parts.splice(0)).toString();
      if (body !== '' && (isOurs || response.hasHeader(marker))) {
        sent.push({ method: request.method ?? '', path, status: response.statusCode, body });
      }
      return Reflect.apply(end, self, args) as ServerResponse;
    },
  });
}

async function judge(): Promise<void> {
  const seen = sent.splice(0);
  if (seen.length === 0) return;
  const { ownDocument } = await import('./own-document.js');
  const problems = seen.flatMap(({ body, ...response }) => {
    const problem = ownDocument.answerProblem({ ...response, body: JSON.parse(body) as unknown });
    return problem === undefined
      ? []
      : [`${response.method} ${response.path} responded ${response.status}: ${problem}`];
  });
  if (problems.length > 0)
    throw new Error(`responses that are not as documented:\n${[...new Set(problems)].join('\n')}`);
}

const requests = channel('http.server.request.start');
beforeAll(() => requests.subscribe(listen));
afterEach(judge);
afterAll(async () => {
  requests.unsubscribe(listen);
  await judge();
});
