// Decides whether an address may be connected to, given the network that the configuration allows.
// It judges addresses only: names are resolved elsewhere, and every answer comes here.
// Sources: IANA special-purpose address registries (RFC 6890), RFC 4291 §2.5.5, RFC 6052 §2.1.

import ipaddr from 'ipaddr.js';
import type { Network } from '../config/settings.js';

/** Addresses of cloud metadata services outside the link-local range, which holds the others. */
const METADATA_RANGES = ['fd00:ec2::/32', '168.63.129.16/32'].map((cidr) => ipaddr.parseCIDR(cidr));

/** The only part of IPv6 that IANA has assigned to global unicast (RFC 4291 §2.4). */
const GLOBAL_UNICAST = ipaddr.parseCIDR('2000::/3');

/** RFC 6052 §2.1: the last 32 bits are an IPv4 address. The local-use prefix is never unwrapped. */
const NAT64 = ipaddr.parseCIDR('64:ff9b::/96');

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** The IPv4 address inside a mapped or NAT64 address, or the address itself. */
function unwrap(address: Address): Address {
  if (!(address instanceof ipaddr.IPv6)) return address;
  if (address.isIPv4MappedAddress()) return address.toIPv4Address();
  if (address.match(NAT64)) return new ipaddr.IPv4(address.toByteArray().slice(12));
  return address;
}

function isMetadata(address: Address): boolean {
  return METADATA_RANGES.some(
    (range) => range[0].kind() === address.kind() && address.match(range),
  );
}

function isPublic(address: Address): boolean {
  if (address.range() !== 'unicast') return false;
  return address instanceof ipaddr.IPv4 || address.match(GLOBAL_UNICAST);
}

/**
 * True when `address` (an IP literal, IPv6 without brackets) may be connected to.
 * `loopback` holds loopback alone; `public` global unicast; `private` that and RFC 1918 and
 * unique-local addresses. Link-local and metadata addresses are in none, nor is what does not parse.
 */
export function isAddressAllowed(address: string, network: Network): boolean {
  if (!ipaddr.isValid(address)) return false;
  const actual = unwrap(ipaddr.parse(address));
  switch (network) {
    case 'loopback':
      return actual.range() === 'loopback';
    case 'public':
      return isPublic(actual) && !isMetadata(actual);
    case 'private': {
      const range = actual.range();
      const isInside = range === 'private' || range === 'uniqueLocal';
      return (isInside || isPublic(actual)) && !isMetadata(actual);
    }
  }
}
