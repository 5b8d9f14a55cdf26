// The paths that exist, the Host and Origin values that are accepted, and how many requests may run at each upstream at
// once, in total and of one caller, so that no caller takes all concurrency slots from the others. Paths are compared
// exactly as they stand on the request line: any other spelling is an unknown path (docs/reference/attacks.md case 6;
// docs/contract.md §3, `limits.concurrency` and `limits.concurrencyPerCaller`).

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

export const LOOPBACK_HOSTS: readonly string[] = ['localhost', '127.0.0.1', '[::1]'];

/** True if the URL's host is the local machine, by name or address. */
function isLoopbackUrl(url: URL): boolean {
  return LOOPBACK_HOSTS.includes(url.hostname) || url.hostname.startsWith('127.');
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

/** The concurrency slots that one request holds: at most one of each upstream it involves, all released together. */
type ConcurrencySlots = {
  /** Acquires a slot of the path's own upstream or of a backend; false if none is free for this caller. */
  acquire(caller: string, backend?: string): boolean;
  release(): void;
};

/** The requests that run at one upstream. No caller's count is zero. */
type Running = { total: number; readonly byCaller: Map<string, number> };

/** Counts running requests by upstream, whatever path they came on, and by caller within each upstream. */
export function createConcurrencyLimits(): { forOne(route: EdgeRoute): ConcurrencySlots } {
  const runningAt = new Map<string, Running>();

  function runningOf(upstream: string): Running {
    const known = runningAt.get(upstream);
    if (known !== undefined) return known;
    const running = { total: 0, byCaller: new Map<string, number>() };
    runningAt.set(upstream, running);
    return running;
  }

  return {
    forOne(route) {
      const held: { readonly running: Running; readonly caller: string }[] = [];
      return {
        acquire(caller, upstream = route.upstream) {
          const running = runningOf(upstream);
          for (const one of held) if (one.running === running) return true;
          if (!take(running, caller, route.backends?.get(upstream) ?? route)) return false;
          held.push({ running, caller });
          return true;
        },
        release() {
          for (const { running, caller } of held) giveBack(running, caller);
          held.length = 0;
        },
      };
    },
  };
}

function take(running: Running, caller: string, limit: ConcurrencyLimit): boolean {
  const own = running.byCaller.get(caller) ?? 0;
  if (running.total >= limit.concurrency || own >= limit.concurrencyPerCaller) return false;
  running.total += 1;
  running.byCaller.set(caller, own + 1);
  return true;
}

function giveBack(running: Running, caller: string): void {
  const own = (running.byCaller.get(caller) ?? 1) - 1;
  running.total -= 1;
  if (own === 0) running.byCaller.delete(caller);
  else running.byCaller.set(caller, own);
}
