// Which IP addresses a `network` of the configuration admits. It reads the text of an address and resolves no names:
// config/ asks it about addresses that are written in a file, upstream/ about every address that is connected to.
// docs/reference/network.md. Sources: IANA special-purpose address registries (RFC 6890), RFC 4291 §2.5.5, RFC 6052
// §2.1.

import ipaddr from 'ipaddr.js';

/**
 * Sets of addresses: `loopback` has loopback addresses alone, `public` global unicast, `private` also RFC 1918 and
 * unique-local addresses, and `private-only` those without the public ones, which is where plain http may go. None has
 * link-local or metadata addresses.
 */
export type AddressClass = 'public' | 'private' | 'loopback' | 'private-only';

/**
 * Cloud metadata addresses outside the link-local and shared ranges, which no class has: AWS, Google, OCI, Scaleway,
 * Linode, Azure.
 */
const METADATA_RANGES = [
  ...['fd00:ec2::/32', 'fd20:ce::/32', 'fd00:c1::a9fe:a9fe/128', 'fd00:42::42/128'],
  ...['fd00:a9fe:a9fe::1/128', '168.63.129.16/32'],
].map((cidr) => ipaddr.parseCIDR(cidr));

/** The only IPv6 block that IANA has allocated for global unicast (RFC 4291 §2.4). */
const GLOBAL_UNICAST = ipaddr.parseCIDR('2000::/3');

/** RFC 6052 §2.1: the last 32 bits are an IPv4 address. The local-use prefix is never unwrapped. */
const NAT64 = ipaddr.parseCIDR('64:ff9b::/96');

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** A host without the brackets in which URLs put an IPv6 address. */
export function bareHost(host: string): string {
  return host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host;
}

function isTranslated(address: Address): boolean {
  return address instanceof ipaddr.IPv6 && address.match(NAT64);
}

/** The IPv4 address embedded in an IPv4-mapped or NAT64 address, otherwise the address itself. */
function unwrap(address: Address): Address {
  if (!(address instanceof ipaddr.IPv6)) return address;
  if (address.isIPv4MappedAddress()) return address.toIPv4Address();
  if (isTranslated(address)) return new ipaddr.IPv4(address.toByteArray().slice(12));
  return address;
}

function isMetadata(address: Address): boolean {
  return METADATA_RANGES.some((range) => range[0].kind() === address.kind() && address.match(range));
}

function isPublic(address: Address): boolean {
  if (address.range() !== 'unicast') return false;
  return address instanceof ipaddr.IPv4 || address.match(GLOBAL_UNICAST);
}

/**
 * True if `address` (an IP literal, IPv6 without brackets) is one of the class. Nothing that does not parse is in any
 * class.
 */
export function isAddressAllowed(address: string, addresses: AddressClass): boolean {
  if (!ipaddr.isValid(address)) return false;
  const actual = unwrap(ipaddr.parse(address));
  if (isMetadata(actual)) return false;
  const range = actual.range();
  const isInside = range === 'private' || range === 'uniqueLocal';
  switch (addresses) {
    case 'loopback':
      // An address of NAT64 is reached through the network, whatever it embeds.
      return range === 'loopback' && !isTranslated(ipaddr.parse(address));
    case 'public':
      return isPublic(actual);
    case 'private':
      return isInside || isPublic(actual);
    case 'private-only':
      return isInside;
  }
}

/** An address that a listener of the gateway is bound to: an IP address or `localhost`. */
type BoundAddress = { readonly host: string; readonly port: number };

/**
 * True if a connection to `address` and `port` arrives at the listener. `isOwn` says that the address is known to be one
 * of this machine, which matters for a listener on all interfaces; loopback addresses always are.
 */
export function arrivesAt(
  { host, port: bound }: BoundAddress,
  { address, port, isOwn }: { readonly address: string; readonly port: number; readonly isOwn: boolean },
): boolean {
  if (port !== bound || !ipaddr.isValid(address)) return false;
  const reached = ipaddr.process(address);
  const isLoopback = reached.range() === 'loopback';
  if (host === 'localhost') return isLoopback;
  if (!ipaddr.isValid(host)) return false;
  const listening = ipaddr.process(host);
  if (listening.range() !== 'unspecified') return listening.toString() === reached.toString();
  // The IPv6 wildcard takes IPv4 connections too.
  const isServed = listening.kind() === 'ipv6' || reached.kind() === 'ipv4';
  return isServed && (isLoopback || isOwn);
}
