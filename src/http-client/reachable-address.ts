import ipaddr from 'ipaddr.js';

/** Addresses at which clouds give a machine's credentials to any of its processes, besides the link-local ones. */
const metadataAddresses = new Set(
  [
    '168.63.129.16', // Azure: a public address, routed to the host
    '100.100.100.200', // Alibaba Cloud
    'fd00:ec2::254', // AWS
    'fd20:ce::254', // Google Cloud
    'fd00:c1::a9fe:a9fe', // Oracle Cloud
    'fd00:42::42', // Scaleway
  ].map((address) => ipaddr.parse(address).toNormalizedString()),
);

const privateRanges: readonly string[] = ['private', 'loopback', 'carrierGradeNat', 'uniqueLocal'];

const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3');
const nat64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96');

/**
 * Whether a connection requested by a caller may go to this address: only global unicast (RFC 6890, RFC 4291), and
 * loopback and private ones with `allowPrivateNetwork`. Never link-local, metadata, multicast and reserved addresses.
 */
export function isReachable(address: string, allowPrivateNetwork: boolean): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = embeddedIPv4(ipaddr.parse(address));
  if (metadataAddresses.has(parsed.toNormalizedString())) return false;
  const range = parsed.range();
  if (allowPrivateNetwork && privateRanges.includes(range)) return true;
  // For IPv6, `unicast` is everything without another name, including what is unassigned.
  return range === 'unicast' && (parsed instanceof ipaddr.IPv4 || parsed.match(globalUnicast));
}

/** The IPv4 address behind an IPv4-mapped (RFC 4291) or NAT64 (RFC 6052) address; any other is returned unchanged. */
function embeddedIPv4(address: ipaddr.IPv4 | ipaddr.IPv6): ipaddr.IPv4 | ipaddr.IPv6 {
  if (address instanceof ipaddr.IPv4) return address;
  if (address.isIPv4MappedAddress()) return address.toIPv4Address();
  return address.match(nat64) ? new ipaddr.IPv4(address.toByteArray().slice(12)) : address;
}
