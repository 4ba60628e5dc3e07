import type { IncomingHttpHeaders } from 'node:http';
import { maxHeaderBytes, type Connection, type Connections } from './connection.js';
import { codeOf, GuardedFetchError, type GuardedRequest, type GuardedResponse } from './guarded-request.js';

const defaultMaxBytes = 128 * 1_024;
/** Of a body of which only the status counts: enough for a short text, after which the connection can be used again. */
const mostPassedOver = 2_048;
/** Interim responses (1xx) before the response: a peer can send any number, and each takes as long to read as a response. */
const mostInterim = 8;
/** Each is a text of its own wherever the response goes. */
const mostHeaders = 128;
/** Bytes from the network beside those of the body: a handshake with its certificates, and headers. */
const mostBesideBody = 65_536;
/** Bytes from the network for one of the body: chunks and records have some size where nobody means harm. */
const mostForOne = 1.25;

type Head = Pick<GuardedResponse, 'status' | 'headers'>;

/**
 * One request on a connection, which `connections` keeps once it can be used again. Undefined if the peer had closed a kept
 * one, or was about to, and the request may not have reached it: never for a new one.
 * @throws {GuardedFetchError}
 */
export function exchange(
  connection: Connection,
  { pathname, search, hostname }: URL,
  { method = 'GET', headers = {}, body: sent, statusOnly, maxBytes = defaultMaxBytes }: GuardedRequest,
  { connections, signal }: { readonly connections: Connections; readonly signal: AbortSignal },
): Promise<GuardedResponse | undefined> {
  const most = statusOnly === true ? mostPassedOver : maxBytes;
  return new Promise((resolve, reject) => {
    // Copied into one buffer: each of many tiny chunks would keep alive the whole read that it came from.
    const body = new Uint8Array(statusOnly === true ? 0 : most);
    let [size, interim, isOver] = [0, 0, false];
    let head: Head | undefined;
    const isStatusEnough = (): boolean =>
      statusOnly === true || (statusOnly === 'on-success' && head !== undefined && head.status < 300);
    const end = (): void => {
      isOver = true;
      signal.removeEventListener('abort', abort);
    };
    const fail = (cause: unknown): void => {
      if (isOver) return;
      end();
      connection.close();
      const wasSilent = !head && interim === 0 && !(cause instanceof GuardedFetchError);
      if (head && isStatusEnough()) resolve({ ...head, body: body.subarray(0, 0) });
      else if (wasSilent && connection.requests > 1) resolve(undefined);
      else reject(failureOf(hostname, cause));
    };
    const abort = (): void => fail(signal.reason);
    const refuse = (what: string): void => fail(tooMuch(hostname, what));
    if (signal.aborted) return abort();
    signal.addEventListener('abort', abort);
    connection.allow(mostBesideBody + mostForOne * most);
    connection.client.dispatch(
      {
        method,
        path: pathname + search,
        headers: ownHeaders(headers),
        body: sent ?? null,
        reset: connection.key === undefined,
      },
      {
        onRequestStart: () => void (connection.requests += 1),
        // Whatever was read with what ended this comes here as well.
        onResponseStart(_controller, status, responseHeaders) {
          if (isOver) return;
          if (status < 200) {
            interim += 1;
            if (interim > mostInterim) refuse(`more than ${mostInterim} interim responses (1xx) before its response`);
            return;
          }
          head = { status, headers: joined(responseHeaders) };
          if (isStatusEnough()) return;
          if (Object.keys(head.headers).length > mostHeaders) refuse(`more than ${mostHeaders} headers`);
          const problem = problemOf(hostname, head);
          if (problem) fail(problem);
          if (Number(head.headers['content-length'] ?? 0) > most) refuse(`more than ${most} bytes`);
        },
        onResponseData(_controller, chunk) {
          if (isOver) return;
          if (size + chunk.length > most) return refuse(`more than ${most} bytes`);
          if (statusOnly !== true) body.set(chunk, size);
          size += chunk.length;
        },
        onResponseEnd() {
          if (isOver) return;
          end();
          connections.keep(connection);
          resolve({ ...head!, body: body.slice(0, size) });
        },
        onResponseError: (_controller, error) => fail(error),
      },
    );
  });
}

function ownHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  const own: Record<string, string> = { 'user-agent': 'countersign' };
  for (const [name, value] of Object.entries(headers)) own[name.toLowerCase()] = value;
  for (const name of ['host', 'content-length', 'transfer-encoding']) delete own[name];
  // Compressed content can expand to anything, so its size would mean nothing.
  own['accept-encoding'] = 'identity';
  return own;
}

function joined(headers: IncomingHttpHeaders): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
}

/** What makes a response useless where its body counts. */
function problemOf(host: string, { status, headers }: Head): GuardedFetchError | undefined {
  if (status < 400 && status >= 300) {
    return new GuardedFetchError('redirect', `host \`${host}\` redirects (${status}): use the URL it redirects to`);
  }
  if ((headers['content-encoding'] ?? 'identity') === 'identity') return undefined;
  return new GuardedFetchError('encoding', `host \`${host}\` sent a compressed body although asked not to`);
}

const tooMuch = (host: string, what: string): GuardedFetchError =>
  new GuardedFetchError('size', `host \`${host}\` sent ${what}`);

function failureOf(host: string, cause: unknown): GuardedFetchError {
  if (cause instanceof GuardedFetchError) return cause;
  const code = codeOf(cause);
  if (code === 'UND_ERR_HEADERS_OVERFLOW') return tooMuch(host, `headers of more than ${maxHeaderBytes} bytes`);
  // What the library says of a connection that has ended is nothing to the reader.
  const why = code.startsWith('UND_') ? 'no answer' : code;
  return new GuardedFetchError('connection', `host \`${host}\` cannot be reached (${why})`, { cause });
}
