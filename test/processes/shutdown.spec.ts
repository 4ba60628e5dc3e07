import { randomUUID } from 'node:crypto';
import { Agent, request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { stampBody } from '../../src/testing/index.js';
import { Installation } from '../e2e/installation.js';
import { linesIn } from '../e2e/log-lines.js';
import { until } from '../e2e/until.js';

const patience = 120_000;
const tagPath = '/public/v1/submit/create_user_tag';

let installation: Installation;

beforeEach(async () => {
  installation = await Installation.make();
});

afterEach(() => installation.remove());

interface Response {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
}

/** One request on a connection of this agent. */
function ask(
  agent: Agent,
  url: string,
  { body, headers = {} }: { readonly body?: string; readonly headers?: Readonly<Record<string, string>> } = {},
): Promise<Response> {
  return new Promise((resolve, reject) => {
    const method = body === undefined ? 'GET' : 'POST';
    httpRequest(url, { agent, method, headers }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (more: string) => (text += more));
      response.on('end', () => {
        resolve({ status: response.statusCode, headers: response.headers, body: JSON.parse(text) as unknown });
      });
    })
      .on('error', reject)
      .end(body);
  });
}

async function submit(agent: Agent, url: string): Promise<Response> {
  const client = await installation.client(url);
  const body = client.submitBody('ACTIVITY_TYPE_CREATE_USER_TAG', { userTagName: randomUUID(), userIds: [] });
  const { headerName, headerValue } = stampBody(body, client.key);
  return ask(agent, `${url}${tagPath}`, { body, headers: { [headerName]: headerValue } });
}

const connectionOf = () => new Agent({ keepAlive: true, maxSockets: 1 });

test(
  'SIGTERM turns readiness red and ends connections, while requests are served for SHUTDOWN_DELAY_SECONDS',
  async () => {
    const server = await installation.start({ SHUTDOWN_DELAY_SECONDS: '3', LOG_LEVEL: 'info' });
    const [agent, probing] = [connectionOf(), connectionOf()];
    expect(await submit(agent, server.url)).toMatchObject({ status: 200, headers: { connection: 'keep-alive' } });
    const toldAt = performance.now();
    server.child.kill('SIGTERM');
    await until('it is not ready', async () => (await ask(probing, `${server.url}/health/ready`)).status === 503);
    expect(await ask(probing, `${server.url}/health/ready`)).toMatchObject({
      status: 503,
      headers: { connection: 'close' },
      body: { status: 'stopping' },
    });
    expect(await ask(probing, `${server.url}/health/live`)).toMatchObject({ status: 200 });
    expect(await submit(agent, server.url)).toMatchObject({ status: 200, headers: { connection: 'close' } });
    expect(await server.exit).toEqual({ code: 0, signal: null });
    expect(performance.now() - toldAt).toBeGreaterThan(3_000);
    expect(linesIn(server.stderr()).at(-1)).toMatchObject({ msg: 'stopped' });
  },
  patience,
);

test(
  'a request that arrives after SIGTERM gets the documented error, and is not done',
  async () => {
    const server = await installation.start();
    const agents = Array.from({ length: 8 }, connectionOf);
    for (const agent of agents) expect((await submit(agent, server.url)).status).toBe(200);
    server.child.kill('SIGTERM');
    await until('it refuses', async () => (await submit(agents[0]!, server.url)).status === 503);
    for (const response of await Promise.all(agents.slice(1).map((agent) => submit(agent, server.url)))) {
      expect(response).toEqual({
        status: 503,
        headers: expect.objectContaining({ connection: 'close', 'retry-after': '2' }) as IncomingHttpHeaders,
        body: {
          code: 14,
          message: expect.stringContaining('send the same request again') as string,
          details: [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '2s' }],
          turnkeyErrorCode: '',
        },
      });
    }
    expect(await server.exit).toEqual({ code: 0, signal: null });
  },
  patience,
);

test(
  'connections without a whole request do not hold up a stop, and a slow upload is told to come again',
  async () => {
    const server = await installation.start({ LOG_LEVEL: 'warn' });
    const { port } = new URL(server.url);
    const heads = [
      '',
      'POST /public/v1/sub',
      `POST ${tagPath} HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{"typ`,
    ];
    const received = heads.map(() => '');
    const sockets = heads.map((head, index) => {
      const socket = connect(Number(port), '127.0.0.1');
      socket.setEncoding('utf8').on('data', (text: string) => (received[index] += text));
      socket.on('error', () => undefined);
      socket.write(head);
      return socket;
    });
    await pause(300);
    const toldAt = performance.now();
    server.child.kill('SIGTERM');
    expect(await server.exit).toEqual({ code: 0, signal: null });
    expect(performance.now() - toldAt).toBeLessThan(8_000);
    await until('the response is read', () => received[2] !== '');
    expect(received[2]).toMatch(/^HTTP\/1\.1 503 [^]*retry-after: 2\r\n[^]*"code":14,/i);
    for (const socket of sockets) socket.destroy();
    expect(server.stderr()).not.toContain('still in progress');
  },
  patience,
);

test(
  'a part that cannot be closed is named, the others are closed all the same, and the process exits with 1',
  async () => {
    const failing = new URL('failing-close.mjs', import.meta.url).href;
    const server = await installation.start({ LOG_LEVEL: 'error' }, ['--import', failing]);
    expect((await submit(connectionOf(), server.url)).status).toBe(200);
    server.child.kill('SIGTERM');
    expect(await server.exit).toEqual({ code: 1, signal: null });
    expect(server.stderr()).toBe(
      'the event store is closed\n' +
        'could not stop cleanly: the read models could not be closed: the rows are stuck; what was acknowledged is recorded, and the ' +
        'next start recovers the rest\n',
    );
  },
  patience,
);
