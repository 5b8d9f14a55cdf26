// What an address written in the configuration is: loopback, private or public, and how a URL of ours
// must be written. Judges text only; where names resolve to is checked at connect, by upstream/.
// WHATWG URL; special-purpose ranges after RFC 6890, as ipaddr.js classes them.

import ipaddr from 'ipaddr.js';
import type { Network } from './settings.js';

/** True for localhost, names under it (RFC 6761 §6.3), 127.0.0.0/8 and ::1. */
export function isLoopbackHost(host: string): boolean {
  const bare = bareHost(host).toLowerCase();
  if (bare === 'localhost' || bare.endsWith('.localhost')) return true;
  return rangeOf(bare) === 'loopback';
}

/** True for an IP address or `localhost`: what a listener can be bound to without asking DNS. */
export function isListenHost(host: string): boolean {
  return host === 'localhost' || ipaddr.isValid(host);
}

/** True for addresses that stand for every interface. */
export function isWildcardHost(host: string): boolean {
  return rangeOf(host) === 'unspecified';
}

/** True for an IP address or a CIDR range. */
export function isAddressOrRange(value: string): boolean {
  return ipaddr.isValid(value) || ipaddr.isValidCIDR(value);
}

/**
 * The network that a host belongs to, where its text alone tells: IP addresses and localhost.
 * `none` is an address that no network setting admits (link-local, multicast and the like).
 */
export function networkOfHost(host: string): Network | 'none' | undefined {
  if (isLoopbackHost(host)) return 'loopback';
  const range = rangeOf(bareHost(host));
  if (range === undefined) return undefined;
  if (range === 'unicast') return 'public';
  return range === 'private' || range === 'uniqueLocal' ? 'private' : 'none';
}

/** A URL, or `undefined` where the text is none. */
export function parseUrl(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined;
}

/** What is wrong with a path of ours, or `undefined`: `/` and plain segments, no trailing slash. */
export function findPathError(path: string): string | undefined {
  if (!path.startsWith('/')) return 'a path starts with /';
  if (path === '/' || path.endsWith('/')) return 'a path has no trailing slash';
  if (path.includes('%')) return 'a path has no percent-encoding';
  if (path.includes('//')) return 'a path has no empty segment';
  const segments = path.slice(1).split('/');
  if (segments.some((segment) => segment === '.' || segment === '..')) {
    return 'a path has no dot segment';
  }
  if (segments[0]?.toLowerCase() === '.well-known') return 'paths below /.well-known are taken';
  if (!segments.every((segment) => /^[A-Za-z0-9._~-]+$/.test(segment))) {
    return 'a path is made of letters, digits and . _ ~ -';
  }
  return undefined;
}

/** The path that was perhaps meant, where stripping slashes and spelling it plainly helps. */
export function suggestPath(path: string): string | undefined {
  const segments = path.split('/').filter((segment) => segment !== '');
  const plain = `/${segments.join('/')}`;
  return plain !== path && findPathError(plain) === undefined ? plain : undefined;
}

function bareHost(host: string): string {
  return host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host;
}

function rangeOf(host: string): string | undefined {
  // `process` unwraps IPv4 in IPv6, so that ::ffff:127.0.0.1 is what it reaches.
  return ipaddr.isValid(host) ? ipaddr.process(host).range() : undefined;
}
