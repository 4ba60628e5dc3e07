import { Resolver } from 'node:dns/promises';
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';

/** All addresses of a host name, as text. Rejects with an error whose `code` says why there are none. */
export type ResolveHost = (host: string) => Promise<readonly string[]>;

interface Options {
  /** Name servers, as `address:port`; the system's if absent. */
  readonly servers?: readonly string[];
  readonly hostsFile?: string;
}

/** What the system's files say, for so many milliseconds. */
const keptMs = 60_000;
/** For a first answer of a name server, in milliseconds; it is asked twice. */
const timeoutMs = 1_500;

/**
 * Looks up hosts that anybody may have chosen: in the hosts file, then by DNS, without search domains; IPv4 first. Never by
 * `dns.lookup`, which holds one of two threads until the name server answers, and that may be the chooser's own
 * (docs/adr/0025).
 */
export function hostAddresses({ servers, hostsFile = '/etc/hosts' }: Options = {}): ResolveHost {
  let known: { readonly resolver: Resolver; readonly hosts: Hosts; readonly until: number } | undefined;
  const current = () => {
    if (known && performance.now() < known.until) return known;
    const resolver = new Resolver({ timeout: timeoutMs, tries: 2 });
    if (servers) resolver.setServers(servers);
    return (known = { resolver, hosts: hostsIn(hostsFile), until: performance.now() + keptMs });
  };
  return async (host) => {
    const { resolver, hosts } = current();
    const name = host.toLowerCase().replace(/\.$/, '');
    const listed = hosts.get(name);
    if (listed) return listed;
    // RFC 6761, section 6.3.
    if (name === 'localhost' || name.endsWith('.localhost')) return ['127.0.0.1', '::1'];
    const [ofIPv4, ofIPv6] = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
    const addresses = [ofIPv4, ofIPv6].flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
    if (addresses.length === 0 && ofIPv4.status === 'rejected') throw ofIPv4.reason;
    return addresses;
  };
}

type Hosts = ReadonlyMap<string, readonly string[]>;

/** Names of a hosts file, in lower case: an address and its names in each line (hosts(5)). A system may have none. */
function hostsIn(file: string): Hosts {
  const hosts = new Map<string, string[]>();
  for (const line of readOrNothing(file).split('\n')) {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/);
    // One with a zone is of a link of this machine.
    if (!isIP(address) || address.includes('%')) continue;
    for (const name of names) {
      const listed = hosts.get(name.toLowerCase());
      if (listed) listed.push(address);
      else hosts.set(name.toLowerCase(), [address]);
    }
  }
  return hosts;
}

function readOrNothing(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
