// Which paths exist, and for which Host and Origin. Paths are compared as they stand on the request
// line: every other spelling of a path is another path, and unknown (docs/reference/attacks.md case 6).

import type { AddressOf } from './peer.js';

/** What the edge knows of one upstream, or of an endpoint of several. */
export type EdgeRoute = {
  readonly upstream: string;
  /** Of an endpoint, the members' exchanges that may run at once, by name; its own `concurrency` is then unused. */
  readonly backends?: ReadonlyMap<string, number>;
  /** A path of HTTP+SSE below the upstream's own, and the one method that it has. */
  readonly legacySsePath?: 'events' | 'message';
  readonly maxRequestBytes: number;
  /** Exchanges that may run at once; the next one is `overloaded`. */
  readonly concurrency: number;
};

/** One version of the edge's tables; swapped whole at a reload. */
export type EdgeTables = {
  /** By exact path. */
  readonly routes: ReadonlyMap<string, EdgeRoute>;
  /** Paths that do not exist although a client may look for them there, and what to use instead: a sentence. */
  readonly absent?: ReadonlyMap<string, string>;
  /** Bodies of documents that anyone may read, by exact path (RFC 9728 metadata). */
  readonly documents: ReadonlyMap<string, string>;
  /** Values of Host that are ours, lower-case. */
  readonly hosts: ReadonlySet<string>;
  /** Values of Origin that may call; a request without Origin is no browser's. */
  readonly origins: ReadonlySet<string>;
  /** True where nobody authenticates: forwarding headers then mean that the caller is not local. */
  readonly refusesForwarded: (upstream: string) => boolean;
  /** Whose address is recorded; decides nothing. */
  readonly addressOf: AddressOf;
};

const LOOPBACK_HOSTS = ['localhost', '127.0.0.1', '[::1]'];
const LOOPBACK_NAMES: ReadonlySet<string> = new Set(LOOPBACK_HOSTS);

/** True when the URL's host is this machine by name or literal. */
export function isLoopbackUrl(url: URL): boolean {
  return LOOPBACK_NAMES.has(url.hostname) || url.hostname.startsWith('127.');
}

/**
 * The Host values served: the public one, and on a loopback public URL the loopback names at the
 * listening port, since a local client may write any of them (DNS rebinding names none of them).
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

/** What proxies add to say for whom they ask, besides every name that begins with `x-forwarded`. */
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

/** True when a proxy says that it passed the request on. */
export function hasForwardingHeader(headers: { readonly [name: string]: unknown }): boolean {
  for (const name in headers) {
    if (FORWARDING_HEADERS.has(name) || name.startsWith(FORWARDING_PREFIX)) return true;
  }
  return false;
}
