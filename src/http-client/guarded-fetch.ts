import { isIP } from 'node:net';
import { Connections, withoutBrackets, type Connection } from './connection.js';
import { exchange } from './exchange.js';
import {
  codeOf,
  GuardedFetchError,
  type GuardedFetch,
  type GuardedRequest,
  type GuardRule,
} from './guarded-request.js';
import { hostAddresses, type ResolveHost } from './host-addresses.js';
import { isReachable } from './reachable-address.js';

const systemResolver = hostAddresses();

const maxUrlLength = 2_048;
const defaultTimeoutMs = 5_000;
/** Addresses of a host that are looked at: an answer of DNS has room for thousands, and each is checked, compared and copied for every request. */
const mostAddresses = 32;

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
  const connections = new Connections();
  return (text, request = {}) =>
    guarded(text, options, request, async (url, addresses, signal) => {
      const { keepFor } = request;
      const key = keepFor === undefined ? undefined : JSON.stringify([url.origin, keepFor, addresses.toSorted()]);
      const target = { url, addresses, trustedCertificates };
      const send = (connection: Connection) => exchange(connection, url, request, { connections, signal });
      return (await send(connections.take(target, key))) ?? (await send(connections.open(target, key)))!;
    });
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
