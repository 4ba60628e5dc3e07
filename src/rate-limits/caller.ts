import { createHmac, timingSafeEqual } from 'node:crypto';

/** What an auth proxy tells the API with each request: the address of whoever calls the proxy, and a proof that it is the proxy. */
export const callerHeader = 'x-auth-proxy-caller';

/** What a request is bound to, so that the header is of no use with another one. */
interface Bound {
  readonly path: string;
  /** The value of the stamp's header; empty without one. */
  readonly stamp: string;
}

/** The value of `X-Auth-Proxy-Caller`. */
export function tellCaller(secret: string, address: string, bound: Bound): string {
  return `${address} ${proofOf(secret, address, bound)}`;
}

/** The address in `X-Auth-Proxy-Caller`; undefined unless whoever wrote it has the secret. */
export function toldCaller(
  secret: string | undefined,
  header: string | string[] | undefined,
  bound: Bound,
): string | undefined {
  if (secret === undefined || typeof header !== 'string' || header.length > 200) return undefined;
  const [address = '', proof = ''] = header.split(' ');
  const wanted = proofOf(secret, address, bound);
  if (proof.length !== wanted.length || !timingSafeEqual(Buffer.from(proof), Buffer.from(wanted))) return undefined;
  return address;
}

function proofOf(secret: string, address: string, { path, stamp }: Bound): string {
  return createHmac('sha256', secret).update(`caller\n${address}\n${path}\n${stamp}`).digest('base64url');
}

/** One caller has a whole /64 of IPv6 addresses (RFC 6177), so that is what counts as one address. */
export function networkOf(address: string): string {
  if (!address.includes(':') || address.includes('.')) return address;
  const [head = '', tail] = address.split('::');
  const groups = head.split(':');
  const missing = tail === undefined ? 0 : 8 - groups.length - (tail === '' ? 0 : tail.split(':').length);
  return [...groups, ...Array.from({ length: Math.max(missing, 0) }, () => '0'), ...(tail ?? '').split(':')]
    .slice(0, 4)
    .map((group) => group || '0')
    .join(':');
}

/**
 * A network (`networkOf`) and those around it that one holder may have, the narrowest first: an IPv4 address and its /24; of IPv6, the
 * /64, and the /56 and the /48 around it.
 */
export function networksOf(network: string): readonly string[] {
  if (network.includes('.')) return [network, `${network.slice(0, network.lastIndexOf('.'))}/24`];
  const [first, second, third, fourth = ''] = network.split(':');
  const site = `${first}:${second}:${third}`;
  return [network, `${site}:${fourth.padStart(4, '0').slice(0, 2)}/56`, `${site}/48`];
}
