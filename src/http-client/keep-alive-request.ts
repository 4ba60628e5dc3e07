import { Agent as HttpAgent, request as httpRequest, type AgentOptions, type IncomingHttpHeaders } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';

/** A request to a server that the operator has named. */
interface KeepAliveRequest {
  readonly method: 'GET' | 'POST';
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
  /** Longest wait for the whole response, in milliseconds. */
  readonly withinMs: number;
}

/** A response with any status; redirects are not followed. */
export interface KeepAliveResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** How long an idle connection is kept, in milliseconds: less than the five seconds after which many servers close it. */
const keptMs = 4_000;
const options: AgentOptions = { keepAlive: true, timeout: keptMs };

/**
 * An HTTP client for one server that can be trusted, on connections that are kept: `fetch` takes several times as long for a request.
 * A request that finds its connection closed is sent once more, on a new one: the server may see it twice.
 */
export class KeepAliveConnection {
  private readonly http = new HttpAgent(options);
  private readonly https = new HttpsAgent(options);

  /** @throws {Error} without a whole response in time */
  send(url: string, request: KeepAliveRequest): Promise<KeepAliveResponse> {
    const isSecure = url.startsWith('https:');
    return exchange(url, request, isSecure ? this.https : this.http, performance.now() + request.withinMs);
  }
}

/** @param agent false for a connection of its own */
function exchange(
  url: string,
  sent: KeepAliveRequest,
  agent: HttpAgent | false,
  end: number,
): Promise<KeepAliveResponse> {
  const { method, headers, body, withinMs } = sent;
  return new Promise((resolve, reject) => {
    const open = url.startsWith('https:') ? httpsRequest : httpRequest;
    const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) };
    const request = open(url, { method, agent, headers: { 'accept-encoding': 'identity', ...headers, ...length } });
    let state: 'asked' | 'answered' | 'late' | 'failed' = 'asked';
    const tooLate = (): void => {
      state = 'late';
      request.destroy(new Error(`no response within ${withinMs} ms`));
    };
    const timer = setTimeout(tooLate, Math.max(0, end - performance.now()));
    const fail = (error: Error): void => {
      clearTimeout(timer);
      // The server had closed the connection, or was about to, and this request may not have reached it.
      if (request.reusedSocket && state === 'asked') resolve(exchange(url, sent, false, end));
      else reject(error);
      state = 'failed';
    };
    request.on('error', fail);
    // After an upgrade that nobody has asked for, no other event follows.
    request.on('close', () => state !== 'asked' || fail(new Error('closed before an answer')));
    request.on('response', (response) => {
      state = 'answered';
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (piece: string) => (text += piece));
      response.on('error', fail);
      response.on('end', () => {
        clearTimeout(timer);
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text });
      });
    });
    request.end(body);
  });
}
