import { channel } from 'node:diagnostics_channel';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Answer } from './documented.js';

// Runs before every spec file: whatever a coordinator in this process answers is held against its OpenAPI document, and the
// test that an undocumented answer comes up in fails. It listens where Node.js tells of requests, so nothing has to ask for
// it; what judges the answers is loaded by the first of them, and costs specs without a server nothing.

const answers: Answer[] = [];

interface Started {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

function listen(message: unknown): void {
  const { request, response } = message as Started;
  const path = request.url?.split('?', 1)[0] ?? '';
  if (!/^\/(?:public\/v1\/(?:submit|query)|v1)\//.test(path)) return;
  response.end = new Proxy(response.end, {
    apply(end, self, given: unknown[]) {
      const [body] = given;
      // Stand-ins of tests answer on such paths too, but without the security headers of a coordinator.
      if ((typeof body === 'string' || Buffer.isBuffer(body)) && response.hasHeader('content-security-policy')) {
        const { method = '' } = request;
        answers.push({ method, path, status: response.statusCode, body: JSON.parse(String(body)) as unknown });
      }
      return Reflect.apply(end, self, given) as ServerResponse;
    },
  });
}

async function judge(): Promise<void> {
  const seen = answers.splice(0);
  if (seen.length === 0) return;
  const { ownDocument } = await import('./own-document.js');
  const problems = seen.flatMap((answer) => {
    const problem = ownDocument.answerProblem(answer);
    return problem === undefined ? [] : [`${answer.method} ${answer.path} answered ${answer.status}: ${problem}`];
  });
  if (problems.length > 0) throw new Error(`answers that are not as documented:\n${[...new Set(problems)].join('\n')}`);
}

const requests = channel('http.server.request.start');
beforeAll(() => requests.subscribe(listen));
afterEach(judge);
afterAll(async () => {
  requests.unsubscribe(listen);
  await judge();
});
