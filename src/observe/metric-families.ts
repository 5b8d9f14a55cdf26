// The series behind the metrics: one child for each set of label values, found by one joined key, made
// once, and never more than the cap for one metric: past it everything counts under `_OTHER`.
// Decides nothing about values; prom-client keeps the numbers and writes the text.

import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { createHistogram } from './histogram.js';
import {
  METRIC_NAMES,
  METRICS,
  type MetricName,
  type MetricRow,
  OTHER,
  TOOL_LABEL,
} from './metric-table.js';

/** Adds to a counter, sets a gauge, observes in a histogram. */
type Write = (value: number) => void;

/** Values that one metric has for its labels, in the order of the table. */
export type Family = {
  /** Writes to the series of these label values. */
  write(value: number, ...labels: readonly string[]): void;
  /** Removes all series: for gauges whose labels are facts that change. */
  clear(): void;
};

/** Gauges of the process metrics whose names end as only counters' may. */
const MISNAMED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
];

/** Separates label values in a key; no value that we allow contains it. */
const SEPARATOR = '\u0000';

/** What series are told when they are asked, because telling them costs a search each time. */
function createLate(): {
  /** Sums up what is written. */
  sum(publish: (sum: number) => void): Write;
  /** Keeps what was written last. */
  last(publish: (value: number) => void): Write;
  flush(): void;
  clear(): void;
} {
  const pending: (() => void)[] = [];
  return {
    sum(publish) {
      let sum = 0;
      pending.push(() => {
        publish(sum);
        sum = 0;
      });
      return (value) => {
        if (value > 0) sum += value;
      };
    },
    last(publish) {
      let last = 0;
      pending.push(() => publish(last));
      return (value) => {
        last = value;
      };
    },
    flush() {
      for (const publishNow of pending) publishNow();
    },
    clear() {
      pending.length = 0;
    },
  };
}

function childMaker(
  name: string,
  row: MetricRow,
  registry: Registry,
): { child: (labels: string[]) => Write; clear: () => void } {
  const options = { name, help: row.help, labelNames: row.labels, registers: [registry] };
  switch (row.kind) {
    case 'counter': {
      const late = createLate();
      const metric = new Counter({ ...options, collect: late.flush });
      return {
        child(labels) {
          const series = metric.labels(...labels);
          // Without labels or not, a series is there from its first count, even of nothing.
          series.inc(0);
          return late.sum((sum) => series.inc(sum));
        },
        clear() {
          late.clear();
          metric.reset();
        },
      };
    }
    case 'gauge': {
      const late = createLate();
      const metric = new Gauge({ ...options, collect: late.flush });
      return {
        child(labels) {
          const series = metric.labels(...labels);
          series.set(0);
          return late.last((value) => series.set(value));
        },
        clear() {
          late.clear();
          metric.reset();
        },
      };
    }
    case 'histogram': {
      const { series, clear } = createHistogram(options, row.buckets ?? [], registry);
      return { child: (labels) => series(labels).observe, clear };
    }
  }
}

function createFamily(name: string, row: MetricRow, registry: Registry, maxSeries: number): Family {
  const { child, clear } = childMaker(name, row, registry);
  const children = new Map<string, Write>();
  const other = row.labels.map(() => OTHER);

  function find(labels: readonly string[]): Write {
    const key = labels.length === 1 ? (labels[0] ?? '') : labels.join(SEPARATOR);
    const known = children.get(key);
    if (known !== undefined) return known;
    // The last place under the cap is the one of all others.
    const isFull = children.size >= maxSeries - 1 && labels.length > 0 && labels !== other;
    if (isFull) return find(other);
    const made = child([...labels]);
    children.set(key, made);
    return made;
  }

  return {
    write: (value, ...labels) => find(labels)(value),
    clear() {
      children.clear();
      clear();
    },
  };
}

/** The row of a metric, with the label for pinned tools where the configuration asks for it. */
function rowOf(name: MetricName, hasToolLabel: boolean): MetricRow {
  const row: MetricRow = METRICS[name];
  if (!hasToolLabel || name !== 'mcp_server_operation_duration_seconds') return row;
  return { ...row, labels: [...row.labels, TOOL_LABEL] };
}

/** All families of the table, and the text of them all with those of the process. */
export function createFamilies(
  maxSeries: number,
  hasToolLabel: boolean,
): {
  readonly families: { readonly [name in MetricName]: Family };
  render(): Promise<string>;
} {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of MISNAMED) registry.removeSingleMetric(name);
  const entries = METRIC_NAMES.map(
    (name) => [name, createFamily(name, rowOf(name, hasToolLabel), registry, maxSeries)] as const,
  );
  return {
    families: Object.fromEntries(entries) as { readonly [name in MetricName]: Family },
    render: () => registry.metrics(),
  };
}
