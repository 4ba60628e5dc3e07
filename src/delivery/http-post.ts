import { codeOf, GuardedFetchError, type GuardedRequest } from '../http-client/guarded-request.js';
import type { OutboundHttp } from '../http-client/outbound-http.js';
import { DeliveryFailed } from './delivery.js';

/** Largest response that is read, in bytes. */
const maxBytes = 64 * 1024;
/** Longest wait that a server may request, in seconds. */
const maxRetryAfter = 3_600;
/** Longer than any attempt may take, which ends by its signal, in milliseconds. */
const timeoutMs = 60_000;

/**
 * Posts once, follows no redirect, and verifies certificates. Resolves once the response is a success.
 * @param options.detailOf finds a number worth reporting in an unsuccessful response; without it, only the status is read
 * @throws {DeliveryFailed} retryable for 429, 5xx and everything below HTTP
 */
export async function post(
  http: OutboundHttp,
  url: URL,
  {
    detailOf,
    ...message
  }: Required<Pick<GuardedRequest, 'headers' | 'body' | 'signal'>> & {
    readonly detailOf?: (answer: string) => string | undefined;
  },
): Promise<void> {
  const { status, headers, body } = await send(http, url, message, detailOf === undefined);
  if (status >= 200 && status < 300) return;
  // Never the response's text: a gateway may repeat the message that it was given.
  const detail = detailOf?.(Buffer.from(body).toString('utf8'));
  const retryAfter = headers['retry-after'] ?? '';
  throw new DeliveryFailed(`${url.host} answered ${status}${detail === undefined ? '' : ` (${detail})`}`, {
    retryable: status === 429 || status >= 500,
    retryAfterMs: /^\d{1,6}$/.test(retryAfter) ? Math.min(Number(retryAfter), maxRetryAfter) * 1_000 : undefined,
  });
}

async function send(http: OutboundHttp, url: URL, message: GuardedRequest, isStatusEnough: boolean) {
  const read = isStatusEnough ? ({ statusOnly: true } as const) : ({ statusOnly: 'on-success', maxBytes } as const);
  try {
    return await http.fetch(url.href, {
      ...message,
      ...read,
      method: 'POST',
      headers: { 'user-agent': 'countersign', ...message.headers },
      timeoutMs,
    });
  } catch (error) {
    if (!(error instanceof GuardedFetchError)) throw error;
    const { rule, cause } = error;
    const why = cause === undefined ? rule : codeOf(cause);
    // An unsuccessful response that is too large may be about an outage.
    throw new DeliveryFailed(`${url.host} could not be used (${why})`, { retryable: error.mayPass || rule === 'size' });
  }
}
