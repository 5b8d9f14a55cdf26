// The running upstreams: started and ended as versions come and go. One whose settings a new version
// leaves alone keeps its connections and what it has seen.

import type { Settings, UpstreamSettings } from '../config/settings.js';
import type { Log } from '../observe/log.js';
import type { Metrics } from '../observe/metrics.js';
import { startUpstream, type UpstreamRuntime } from './upstream-runtime.js';

export type Runtimes = {
  get(upstream: string): UpstreamRuntime | undefined;
  all(): Iterable<UpstreamRuntime>;
  /** Makes the running upstreams those of the settings. */
  replace(settings: Settings): void;
  close(): Promise<void>;
};

export type RuntimesPorts = {
  readonly gatewayVersion: string;
  readonly now: () => number;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly onSight: (runtime: UpstreamRuntime) => void;
};

/** An empty set of upstreams. */
export function createRuntimes(ports: RuntimesPorts): Runtimes {
  const { metrics, log } = ports;
  let running = new Map<string, UpstreamRuntime>();

  function start(settings: UpstreamSettings): UpstreamRuntime {
    return startUpstream(settings, {
      gatewayVersion: ports.gatewayVersion,
      now: ports.now,
      onSight: ports.onSight,
      onListed: () => metrics.setUpstreamUp(settings.name, true),
      onFailure(_runtime, why) {
        metrics.setUpstreamUp(settings.name, false);
        log.write('warn', 'upstream could not be listed', { upstream: settings.name, detail: why });
      },
    });
  }

  return {
    get: (upstream) => running.get(upstream),
    all: () => running.values(),
    replace({ upstreams }) {
      const next = new Map<string, UpstreamRuntime>();
      for (const settings of upstreams.values()) {
        const known = running.get(settings.name);
        next.set(
          settings.name,
          known !== undefined && isSame(known.settings, settings) ? known : start(settings),
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

function isSame(one: UpstreamSettings, other: UpstreamSettings): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
