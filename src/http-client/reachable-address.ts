import ipaddr from 'ipaddr.js';

/** Where clouds answer any process of a machine with its credentials, beside the link-local addresses. */
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
 * Whether a connection that a caller asked for may go to this address: global unicast (RFC 6890, RFC 4291) only, and
 * loopback and private ones where `allowPrivateNetwork`. Link-local, metadata, multicast and reserved ones never.
 */
export function isReachable(address: string, allowPrivateNetwork: boolean): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = embeddedIPv4(ipaddr.parse(address));
  if (metadataAddresses.has(parsed.toNormalizedString())) return false;
  const range = parsed.range();
  if (allowPrivateNetwork && privateRanges.includes(range)) return true;
  // For IPv6 `unicast` is whatever has no other name, also what nobody was given yet.
  return range === 'unicast' && (parsed instanceof ipaddr.IPv4 || parsed.match(globalUnicast));
}

/** The IPv4 address that an IPv4-mapped (RFC 4291) or NAT64 (RFC 6052) address leads to; any other stays itself. */
function embeddedIPv4(address: ipaddr.IPv4 | ipaddr.IPv6): ipaddr.IPv4 | ipaddr.IPv6 {
  if (address instanceof ipaddr.IPv4) return address;
  if (address.isIPv4MappedAddress()) return address.toIPv4Address();
  return address.match(nat64) ? new ipaddr.IPv4(address.toByteArray().slice(12)) : address;
}
