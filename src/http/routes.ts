// The paths that exist, and the Host and Origin values that are accepted. Paths are compared exactly as they
// stand on the request line: any other spelling is an unknown path (docs/reference/attacks.md case 6).

import type { AddressOf } from './peer.js';

/** How many requests may run at once, in total and of one caller; the next one is `overloaded`. */
export type ConcurrencyLimit = {
  readonly concurrency: number;
  readonly concurrencyPerCaller: number;
};

/** The route of one upstream or aggregate. */
export type EdgeRoute = ConcurrencyLimit & {
  readonly upstream: string;
  /** For an aggregate, the concurrency limit of each backend, by upstream; its own are then 0. */
  readonly backends?: ReadonlyMap<string, ConcurrencyLimit>;
  /** A legacy SSE path below the upstream's own; each has a single method. */
  readonly legacySsePath?: 'events' | 'message';
  readonly maxRequestBytes: number;
};

/** One version of the routing tables, replaced as a whole by a reload. */
export type EdgeTables = {
  /** Routes by exact path. */
  readonly routes: ReadonlyMap<string, EdgeRoute>;
  /** Paths that do not exist although clients may try them, with a sentence that says what to use instead. */
  readonly absent?: ReadonlyMap<string, string>;
  /** Public documents by exact path (RFC 9728 metadata). */
  readonly documents: ReadonlyMap<string, string>;
  /** Accepted Host values, in lower case. */
  readonly hosts: ReadonlySet<string>;
  /** Accepted Origin values. A request without Origin does not come from a page. */
  readonly origins: ReadonlySet<string>;
  /** True if the upstream has no authentication: forwarding headers then show that the caller is not local. */
  readonly refusesForwarded: (upstream: string) => boolean;
  /** Determines the address to record; no decision depends on it. */
  readonly addressOf: AddressOf;
};

const LOOPBACK_HOSTS = ['localhost', '127.0.0.1', '[::1]'];
const LOOPBACK_NAMES: ReadonlySet<string> = new Set(LOOPBACK_HOSTS);

/** True if the URL's host is the local machine, by name or address. */
function isLoopbackUrl(url: URL): boolean {
  return LOOPBACK_NAMES.has(url.hostname) || url.hostname.startsWith('127.');
}

/**
 * The accepted Host values: that of the public URL and, if that is a loopback URL, the loopback names with the
 * listening port, since a local client may use any of them (DNS rebinding cannot use them).
 */
export function servedHosts(publicUrl: URL, listenPort: number): ReadonlySet<string> {
  const hosts = new Set([publicUrl.host.toLowerCase()]);
  if (!isLoopbackUrl(publicUrl)) return hosts;
  for (const host of LOOPBACK_HOSTS) {
    hosts.add(`${host}:${listenPort}`);
    hosts.add(publicUrl.port === '' ? host : `${host}:${publicUrl.port}`);
  }
  return hosts;
}

/** Headers in which proxies name the original client, besides all that begin with `x-forwarded`. */
const FORWARDING_HEADERS: ReadonlySet<string> = new Set([
  'forwarded',
  'via',
  'x-real-ip',
  'x-client-ip',
  'x-cluster-client-ip',
  'x-original-forwarded-for',
  'x-original-host',
  'x-original-url',
  'x-envoy-external-address',
  'x-azure-clientip',
  'true-client-ip',
  'cf-connecting-ip',
  'fastly-client-ip',
]);
const FORWARDING_PREFIX = 'x-forwarded';

/** True if a proxy added a forwarding header. */
export function hasForwardingHeader(headers: { readonly [name: string]: unknown }): boolean {
  for (const name in headers) {
    if (FORWARDING_HEADERS.has(name) || name.startsWith(FORWARDING_PREFIX)) return true;
  }
  return false;
}
