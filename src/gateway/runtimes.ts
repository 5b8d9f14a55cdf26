// The running upstreams: started and ended as versions come and go. One whose settings a new version
// leaves alone keeps its connections and what it has seen.

import type { Settings, UpstreamSettings } from '../config/settings.js';
import {
  createOwnCredentialStore,
  type OwnCredentialStore,
  type OwnCredentials,
} from '../inspect/sanitize/own-credentials.js';
import type { Log } from '../observe/log.js';
import type { Metrics } from '../observe/metrics.js';
import type { SessionBusOf } from './replicas.js';
import type { ConnectionPorts } from './upstream-connection.js';
import { startUpstream, type UpstreamRuntime } from './upstream-runtime.js';

export type Runtimes = {
  get(upstream: string): UpstreamRuntime | undefined;
  /** The credentials that the upstream got from us and may send back, those of earlier settings too. */
  ownCredentials(upstream: string): OwnCredentials | undefined;
  all(): Iterable<UpstreamRuntime>;
  /** Makes the running upstreams those of the settings. */
  replace(settings: Settings): void;
  close(): Promise<void>;
};

export type RuntimesPorts = Omit<ConnectionPorts, 'issuer' | 'onCredential' | 'onTrouble'> & {
  readonly gatewayVersion: string;
  readonly sessionBusOf: SessionBusOf;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly onObserved: (runtime: UpstreamRuntime) => void;
};

/** An empty set of upstreams. */
export function createRuntimes(ports: RuntimesPorts): Runtimes {
  const { metrics, log } = ports;
  let running = new Map<string, UpstreamRuntime>();
  // By name: what an upstream got outlives the connections over which it got it.
  const stores = new Map<string, OwnCredentialStore>();

  function start(settings: UpstreamSettings, issuer: string): UpstreamRuntime {
    const reportTrouble = createTroubleReport(settings.name, ports);
    const store = stores.get(settings.name) ?? createOwnCredentialStore(ports.now);
    stores.set(settings.name, store);
    return startUpstream(settings, {
      ...ports,
      issuer,
      onCredential: store.note,
      onTrouble: reportTrouble,
      onListed: () => metrics.setUpstreamUp(settings.name, true),
      onFailure(_runtime, why) {
        metrics.setUpstreamUp(settings.name, false);
        log.write('warn', 'upstream could not be listed', { upstream: settings.name, detail: why });
      },
    });
  }

  return {
    get: (upstream) => running.get(upstream),
    ownCredentials: (upstream) => stores.get(upstream)?.current(),
    all: () => running.values(),
    replace({ upstreams, publicBase }) {
      const next = new Map<string, UpstreamRuntime>();
      for (const settings of upstreams.values()) {
        const known = running.get(settings.name);
        next.set(
          settings.name,
          known !== undefined && isSame(known.settings, settings)
            ? known
            : start(settings, publicBase),
        );
      }
      const gone = [...running.values()].filter(
        (runtime) => next.get(runtime.settings.name) !== runtime,
      );
      running = next;
      // Exchanges that run on the old connections end there; nothing new begins on them.
      for (const runtime of gone) void runtime.close();
    },
    async close() {
      await Promise.all([...running.values()].map((runtime) => runtime.close()));
    },
  };
}

const TROUBLE = {
  credentials: 'upstream credentials could not be had',
  connection: 'upstream connection failed',
} as const;
/** The same trouble of one upstream is logged once in this time: calls that fail for it come by themselves. */
const TROUBLE_EVERY_MS = 10_000;
const MAX_TROUBLES = 64;

function createTroubleReport(
  upstream: string,
  { log, now }: Pick<RuntimesPorts, 'log' | 'now'>,
): ConnectionPorts['onTrouble'] {
  const reportedAtMs = new Map<string, number>();
  return (what, detail) => {
    const last = reportedAtMs.get(detail) ?? Number.NEGATIVE_INFINITY;
    if (now() - last < TROUBLE_EVERY_MS) return;
    if (reportedAtMs.size >= MAX_TROUBLES) reportedAtMs.clear();
    reportedAtMs.set(detail, now());
    log.write('error', TROUBLE[what], { upstream, detail });
  };
}

function isSame(one: UpstreamSettings, other: UpstreamSettings): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
