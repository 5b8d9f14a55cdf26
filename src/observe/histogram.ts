// Counts durations in buckets, for the registry of prom-client, which asks for the values at each scrape.
// Its own histogram looks its series up by their labels at every observation; this one adds to arrays.
// Source: Prometheus text format 0.0.4, histograms.

import type { Registry } from 'prom-client';

export type HistogramSeries = { observe(value: number): void };

export type Histogram = {
  /** The series of these label values, in the order of the names; call it once for each set. */
  series(labels: readonly string[]): HistogramSeries;
  /** Removes all series. */
  clear(): void;
};

type State = {
  readonly labels: { readonly [name: string]: string };
  readonly counts: Float64Array;
  sum: number;
  count: number;
};

type Value = { labels: object; value: number; metricName: string };

/** Makes a histogram and enters it in the registry. `bounds` ascend; values past the last count in `+Inf`. */
export function createHistogram(
  about: { readonly name: string; readonly help: string; readonly labelNames: readonly string[] },
  bounds: readonly number[],
  registry: Registry,
): Histogram {
  const { name, help, labelNames } = about;
  const states: State[] = [];
  const limits = Float64Array.from(bounds);

  function valuesOf({ labels, counts, sum, count }: State): Value[] {
    let below = 0;
    const buckets = bounds.map((le, index) => {
      below += counts[index] ?? 0;
      return { labels: { le, ...labels }, value: below, metricName: `${name}_bucket` };
    });
    return [
      ...buckets,
      { labels: { le: '+Inf', ...labels }, value: count, metricName: `${name}_bucket` },
      { labels, value: sum, metricName: `${name}_sum` },
      { labels, value: count, metricName: `${name}_count` },
    ];
  }

  const metric = {
    name,
    help,
    type: 'histogram',
    aggregator: 'sum',
    get: () => Promise.resolve({ name, help, type: 'histogram', values: states.flatMap(valuesOf) }),
    reset: () => undefined,
  };
  // The registry calls `get` alone; its type names only its own classes.
  registry.registerMetric(metric as unknown as Parameters<Registry['registerMetric']>[0]);

  return {
    series(values) {
      const labels = Object.fromEntries(labelNames.map((label, at) => [label, values[at] ?? '']));
      const state = { labels, counts: new Float64Array(limits.length), sum: 0, count: 0 };
      states.push(state);
      return {
        observe(value) {
          if (!Number.isFinite(value)) return;
          state.sum += value;
          state.count += 1;
          for (let at = 0; at < limits.length; at++) {
            if (value > (limits[at] ?? 0)) continue;
            state.counts[at] = (state.counts[at] ?? 0) + 1;
            return;
          }
        },
      };
    },
    clear() {
      states.length = 0;
    },
  };
}
