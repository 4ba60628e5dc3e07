import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { codeOf, DeliveryFailed } from './delivery.js';

/** Largest response that is read, in bytes. */
const maxAnswer = 64 * 1024;
/** Longest wait that a server may request, in seconds. */
const maxRetryAfter = 3_600;

/**
 * Posts once, follows no redirect, and verifies certificates. Resolves with the text of a successful response.
 * @param options.ca additional certificate authorities, PEM
 * @param options.detailOf finds a number worth reporting in an unsuccessful response
 * @throws {DeliveryFailed} retryable for 429, 5xx and everything below HTTP
 */
export async function post(
  url: URL,
  headers: Readonly<Record<string, string>>,
  body: string,
  options: {
    readonly signal: AbortSignal;
    readonly ca?: string | undefined;
    readonly detailOf?: (answer: string) => string | undefined;
  },
): Promise<string> {
  const bytes = Buffer.from(body);
  const { status, retryAfter, answer } = await exchange(url, headers, bytes, options.signal, options.ca);
  if (status >= 200 && status < 300) return answer;
  // Never the response's text: a gateway may repeat the message that it was given.
  const detail = options.detailOf?.(answer);
  throw new DeliveryFailed(`${url.host} answered ${status}${detail === undefined ? '' : ` (${detail})`}`, {
    retryable: status === 429 || status >= 500,
    retryAfterMs: /^\d{1,6}$/.test(retryAfter) ? Math.min(Number(retryAfter), maxRetryAfter) * 1_000 : undefined,
  });
}

interface Exchange {
  readonly status: number;
  readonly retryAfter: string;
  readonly answer: string;
}

function exchange(
  url: URL,
  headers: Readonly<Record<string, string>>,
  body: Buffer,
  signal: AbortSignal,
  ca: string | undefined,
): Promise<Exchange> {
  return new Promise((resolve, reject) => {
    const fail = (error: Error): void =>
      reject(new DeliveryFailed(`${url.host} could not be used (${codeOf(error)})`, { retryable: true }));
    const request = (url.protocol === 'https:' ? requestHttps : requestHttp)(
      url,
      {
        method: 'POST',
        headers: { 'User-Agent': 'countersign', ...headers, 'Content-Length': body.length },
        signal,
        // A new connection each time: a kept one may close during the request, and then nobody knows what arrived.
        agent: false,
        ...(ca === undefined ? {} : { ca }),
      },
      (response) => {
        const pieces: Buffer[] = [];
        let size = 0;
        const done = (): void =>
          resolve({
            status: response.statusCode ?? 0,
            retryAfter: response.headers['retry-after'] ?? '',
            answer: Buffer.concat(pieces).toString('utf8'),
          });
        response.on('data', (piece: Buffer) => {
          size += piece.length;
          if (size <= maxAnswer) pieces.push(piece);
          else {
            // The status is known, and only that matters.
            done();
            request.destroy();
          }
        });
        response.on('end', done);
        response.on('error', fail);
      },
    );
    request.on('error', fail);
    request.end(body);
  });
}
