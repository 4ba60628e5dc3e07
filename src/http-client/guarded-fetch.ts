import { constants } from 'node:crypto';
import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { hostAddresses, type ResolveHost } from './host-addresses.js';
import { KeptConnections, type KeepableRequest } from './kept-connections.js';
import { isReachable } from './reachable-address.js';

/**
 * What stopped an outbound request; `connection`, `resolution` and `time` may be temporary, the others are up to the
 * target.
 */
export type GuardRule =
  'url' | 'scheme' | 'userinfo' | 'resolution' | 'address' | 'connection' | 'redirect' | 'encoding' | 'size' | 'time';

const passing: readonly GuardRule[] = ['connection', 'resolution', 'time'];

/**
 * An outbound request that was refused or failed. The message names the host and the rule, never path, query or body.
 */
export class GuardedFetchError extends Error {
  readonly rule: GuardRule;

  constructor(rule: GuardRule, message: string, options: { cause?: unknown } = {}) {
    super(message, options);
    this.name = 'GuardedFetchError';
    this.rule = rule;
  }

  /** True when the same request may succeed later. */
  get mayPass(): boolean {
    return passing.includes(this.rule);
  }
}

/** One outbound request. */
export interface GuardedRequest {
  readonly method?: 'GET' | 'POST';
  /** `host`, `content-length` and `accept-encoding` are set here, not by the caller. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** Largest body accepted, in bytes; 128 KiB if absent. */
  readonly maxBytes?: number;
  /** For everything, from resolving the host to the last byte, in milliseconds; 5 000 if absent. */
  readonly timeoutMs?: number;
  /**
   * Only the status counts: at most 64 KiB of the body are read and ignored, and the body may break off; a redirect is a
   * response like any other, and is not followed.
   */
  readonly statusOnly?: true;
  /** Ends the request, which then fails like a broken connection. */
  readonly signal?: AbortSignal;
  /**
   * Whose connection it is: kept for a few seconds, for the next request of the same user to the same host, if that has the
   * same addresses then. A request that finds it closed is sent once more: the peer may see it twice. Absent: the
   * connection is closed.
   */
  readonly keepFor?: string;
}

/** A response with any status, but 3xx only on request. The caller checks its content type. */
export interface GuardedResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Uint8Array;
}

/**
 * Makes one HTTP request to a URL that someone else chose.
 * @throws {GuardedFetchError}
 */
export type GuardedFetch = (url: string, request?: GuardedRequest) => Promise<GuardedResponse>;

const systemResolver = hostAddresses();

const maxUrlLength = 2_048;
const defaultMaxBytes = 128 * 1_024;
const defaultTimeoutMs = 5_000;
const mostPassedOver = 64 * 1_024;
/** Addresses of a host that are looked at: an answer of DNS has room for thousands, and each is checked, compared and copied for every request. */
const mostAddresses = 32;
/**
 * Of TLS, what costs about the same whatever the peer chooses. No Diffie-Hellman over finite fields: the peer chooses the group, and one of
 * 10,000 bits takes a second of the main thread. No second handshake on a connection.
 */
const boundedTls = {
  ciphers:
    'TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256:ECDHE+AESGCM:ECDHE+CHACHA20:ECDHE+AES',
  ecdhCurve: 'X25519:P-256:P-384',
  secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
} as const;
/** Interim responses (1xx) before the response: a peer can send any number, and each takes as long to read as a response. */
const mostInterim = 8;

/**
 * An HTTP client for URLs that an attacker may have chosen (OWASP ASVS 5.0, 1.3.6 and 13.2): https only, every address
 * of the host checked, the connection made to exactly those addresses, no redirects, no decompression, limited size and
 * time. `allowPrivateNetwork` also permits http, loopback and private addresses. `trustedCertificates` (PEM) replaces
 * the system's.
 */
export function guardedFetch({
  trustedCertificates,
  ...options
}: GuardOptions & { readonly trustedCertificates?: string }): GuardedFetch {
  const kept = new KeptConnections();
  return (text, request = {}) =>
    guarded(text, options, request, (url, addresses, signal) =>
      exchange({ url, addresses, request, trustedCertificates, signal }, request.keepFor === undefined ? false : kept),
    );
}

/**
 * Checks whether `guardedFetch` would make a request to a URL now, without making one: what it would refuse is refused
 * here. The host may resolve differently later.
 * @throws {GuardedFetchError}
 */
export function guardedTarget(options: GuardOptions): (url: string) => Promise<void> {
  return (text) => guarded(text, options, {}, () => Promise.resolve());
}

interface GuardOptions {
  readonly allowPrivateNetwork: boolean;
  readonly resolve?: ResolveHost;
}

/** Runs an action with a URL and the addresses of its host once both are checked, within the time limit. */
async function guarded<Value>(
  text: string,
  { allowPrivateNetwork, resolve = systemResolver }: GuardOptions,
  { timeoutMs = defaultTimeoutMs, signal }: Pick<GuardedRequest, 'timeoutMs' | 'signal'>,
  use: (url: URL, addresses: readonly string[], signal: AbortSignal) => Promise<Value>,
): Promise<Value> {
  const url = readUrl(text, allowPrivateNetwork);
  const host = withoutBrackets(url.hostname);
  const end = new AbortController();
  const abort = (rule: GuardRule, message: string): void => end.abort(new GuardedFetchError(rule, message));
  const tooLate = (): void => abort('time', `host \`${url.hostname}\` did not answer within ${timeoutMs} ms`);
  const timer = setTimeout(tooLate, timeoutMs);
  const stop = (): void => abort('connection', `the request to host \`${url.hostname}\` was cancelled`);
  signal?.addEventListener('abort', stop);
  if (signal?.aborted) stop();
  try {
    const addresses = await beforeAbort(reachableAddresses(host, allowPrivateNetwork, resolve), end.signal);
    return await use(url, addresses, end.signal);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', stop);
  }
}

async function reachableAddresses(
  host: string,
  allowPrivateNetwork: boolean,
  resolve: ResolveHost,
): Promise<readonly string[]> {
  const isName = isIP(host) === 0;
  const addresses = isName
    ? (await resolveOrRefuse(host, allowPrivateNetwork, resolve)).slice(0, mostAddresses)
    : [host];
  // One bad address is enough: once handed over, we do not control which of them is used.
  if (addresses.every((address) => isReachable(address, allowPrivateNetwork))) return addresses;
  if (isName && !allowPrivateNetwork) throw unresolved(host, allowPrivateNetwork);
  throw new GuardedFetchError(
    'address',
    `host \`${host}\` resolves to an address that this server does not call: use a public one${forDevelopment(allowPrivateNetwork)}`,
  );
}

/**
 * The same of a name that does not exist and of one that is known only inside: whoever guesses names learns nothing of them. Why is
 * said where callers may call everything.
 */
function unresolved(host: string, allowPrivateNetwork: boolean, why = '', cause?: unknown): GuardedFetchError {
  const isNot = `does not resolve to an address that this server calls: use a public one${forDevelopment(false)}`;
  return new GuardedFetchError('resolution', `host \`${host}\` ${allowPrivateNetwork ? why : isNot}`, { cause });
}

/** What its operator can do, said of every address alike: whether a host is private is not for the caller to know. */
function forDevelopment(isAllowed: boolean): string {
  return isAllowed
    ? ''
    : ' (for development, the setting ALLOW_PRIVATE_NETWORK=true allows http and private addresses)';
}

/** The URL, once everything that can be said without asking the network was said. */
function readUrl(text: string, allowPlain: boolean): URL {
  if (text.length > maxUrlLength) {
    throw new GuardedFetchError('url', `a URL of ${text.length} characters is longer than ${maxUrlLength}`);
  }
  if (!URL.canParse(text))
    throw new GuardedFetchError('url', 'not a URL: send an absolute one such as https://host/path');
  const url = new URL(text);
  if (url.protocol !== 'https:' && !(allowPlain && url.protocol === 'http:')) {
    const hint = url.protocol === 'http:' ? forDevelopment(allowPlain) : '';
    throw new GuardedFetchError('scheme', `\`${url.protocol}\` is not allowed: use https${hint}`);
  }
  if (url.username !== '' || url.password !== '') {
    throw new GuardedFetchError(
      'userinfo',
      `the URL of host \`${url.hostname}\` contains a user or password: leave them out`,
    );
  }
  return url;
}

const withoutBrackets = (hostname: string): string => hostname.replace(/^\[(.*)\]$/, '$1');

async function resolveOrRefuse(
  host: string,
  allowPrivateNetwork: boolean,
  resolve: ResolveHost,
): Promise<readonly string[]> {
  try {
    const addresses = await resolve(host);
    if (addresses.length > 0) return addresses;
  } catch (cause) {
    throw unresolved(host, allowPrivateNetwork, `cannot be resolved (${codeOf(cause)})`, cause);
  }
  throw unresolved(host, allowPrivateNetwork, 'has no address');
}

function beforeAbort<Value>(work: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error);
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
    work.then(resolve, reject);
  });
}

interface Exchange {
  readonly url: URL;
  readonly addresses: readonly string[];
  readonly request: GuardedRequest;
  readonly trustedCertificates: string | undefined;
  readonly signal: AbortSignal;
}

/** One request on a connection to one of `addresses`: a kept one, or its own. */
function exchange(exchanged: Exchange, kept: KeptConnections | false): Promise<GuardedResponse> {
  const { url, addresses, trustedCertificates, signal } = exchanged;
  const {
    method = 'GET',
    headers = {},
    body,
    maxBytes = defaultMaxBytes,
    statusOnly,
    keepFor = '',
  } = exchanged.request;
  const isSecure = url.protocol === 'https:';
  return new Promise((resolve, reject) => {
    const options: KeepableRequest & { readonly ca?: string; readonly rejectUnauthorized: true } = {
      method,
      headers: ownHeaders(headers, body),
      agent: kept && (isSecure ? kept.https : kept.http),
      keptFor: [keepFor, ...addresses.toSorted()],
      lookup: onlyTo(addresses),
      signal,
      maxHeaderSize: 16_384,
      // Set here so that no environment variable can turn it off.
      rejectUnauthorized: true,
      ...boundedTls,
      ...(trustedCertificates === undefined ? {} : { ca: trustedCertificates }),
    };
    const request = isSecure ? httpsRequest(url, options) : httpRequest(url, options);
    let answered = false;
    let failed = false;
    let interim = 0;
    const fail = (cause: unknown): void => {
      if (failed) return;
      failed = true;
      request.destroy();
      // The peer had closed it, or was about to, and this request may not have reached it.
      const wasSilent = !answered && interim === 0;
      if (request.reusedSocket && wasSilent && !signal.aborted) resolve(exchange(exchanged, false));
      else reject(failureOf(url.hostname, cause, signal));
    };
    request.on('information', () => {
      interim += 1;
      // Once: the rest of what was read with it comes here as well.
      if (interim === mostInterim + 1) fail(tooMuchInterim(url.hostname));
    });
    // If only the status counts, anything that breaks off afterwards shows in the body.
    request.on('error', (cause) => (answered && statusOnly) || fail(cause));
    request.on('response', (response) => {
      answered = true;
      const received = statusOnly ? passOver(response) : receive(response, url.hostname, maxBytes);
      received.then(resolve, fail);
    });
    // After an unrequested upgrade no other event follows; after a response, its body may still be unread.
    request.on('close', () => answered || fail(new Error('closed before an answer')));
    request.end(body);
  });
}

const tooMuchInterim = (host: string): GuardedFetchError =>
  new GuardedFetchError(
    'size',
    `host \`${host}\` sent more than ${mostInterim} interim responses (1xx) before its response`,
  );

function ownHeaders(
  headers: Readonly<Record<string, string>>,
  body: string | Uint8Array | undefined,
): Record<string, string | number> {
  const own: Record<string, string | number> = { 'user-agent': 'countersign' };
  for (const [name, value] of Object.entries(headers)) own[name.toLowerCase()] = value;
  delete own['host'];
  delete own['transfer-encoding'];
  // Compressed content can expand to anything, so its size would mean nothing.
  own['accept-encoding'] = 'identity';
  if (body === undefined) delete own['content-length'];
  else own['content-length'] = Buffer.byteLength(body);
  return own;
}

/** A look-up that returns what was checked: asking the name server again could give another result. */
function onlyTo(addresses: readonly string[]): LookupFunction {
  const all = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_host, options, done) => {
    if (options.all) done(null, all);
    else done(null, all[0]!.address, all[0]!.family);
  };
}

async function receive(response: IncomingMessage, host: string, maxBytes: number): Promise<GuardedResponse> {
  const { statusCode: status = 0, headers } = response;
  if (status >= 300 && status < 400) {
    throw new GuardedFetchError('redirect', `host \`${host}\` redirects (${status}): use the URL it redirects to`);
  }
  const encoding = headers['content-encoding'] ?? 'identity';
  if (encoding !== 'identity') {
    throw new GuardedFetchError('encoding', `host \`${host}\` sent a compressed body although asked not to`);
  }
  const tooLarge = new GuardedFetchError('size', `host \`${host}\` sent more than ${maxBytes} bytes`);
  if (Number(headers['content-length'] ?? 0) > maxBytes) throw tooLarge;
  // Copied into one buffer: each of many tiny chunks would keep alive the whole read that it came from.
  const body = Buffer.alloc(maxBytes);
  let size = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    if (size + chunk.length > maxBytes) throw tooLarge;
    size += chunk.copy(body, size);
  }
  if (!response.complete) throw new Error('closed before the end of the body');
  return { status, headers, body: new Uint8Array(body.subarray(0, size)) };
}

/** Takes the status, whatever becomes of the body, which is read so that the peer can finish normally. */
async function passOver(response: IncomingMessage): Promise<GuardedResponse> {
  const { statusCode: status = 0, headers } = response;
  let size = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > mostPassedOver) break;
    }
  } catch {
    // The status had already arrived.
  }
  return { status, headers, body: new Uint8Array() };
}

function failureOf(host: string, cause: unknown, signal: AbortSignal): GuardedFetchError {
  if (cause instanceof GuardedFetchError) return cause;
  if (signal.aborted) return signal.reason as GuardedFetchError;
  const code = codeOf(cause);
  if (code === 'HPE_HEADER_OVERFLOW') {
    return new GuardedFetchError('size', `host \`${host}\` sent headers of more than 16384 bytes`, { cause });
  }
  return new GuardedFetchError('connection', `host \`${host}\` cannot be reached (${code})`, { cause });
}

/** The system's name of a failure, such as ECONNREFUSED or CERT_HAS_EXPIRED; its text may quote what the peer sent. */
function codeOf(error: unknown): string {
  const code: unknown = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : 'no answer';
}
