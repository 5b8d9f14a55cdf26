// Counts the events of the gateway (docs/reference/metrics.md). Every label value is checked against the configuration,
// the method table and the reasons; anything else counts as `_OTHER`, so that no client or upstream can create a
// series. Never throws while a request is handled.

import { collectDefaultMetrics, Registry } from 'prom-client';
import { type AuditMeters, sinkNames } from '../audit/audit.js';
import type { Settings } from '../config/settings.js';
import { type ApprovalParty, openParties } from '../policy/approval.js';
import type { ControlState, GatewayEvents, Listeners } from '../policy/events.js';
import { isReason, REASONS } from '../policy/reasons.js';
import type { RequestRecord } from '../policy/record.js';
import type { ApprovalEvent } from '../policy/security-events.js';
import { LEGACY_SSE_VERSION, SESSION_VERSIONS } from '../protocol/versions/revisions.js';
import { errorType, methodName, toolName, upstreamErrorType } from './labels.js';
import { METRIC_NAMES, METRICS, type MetricName, type MetricRow, OTHER, TOOL_LABEL } from './metric-table.js';

/** Adds to a counter, sets a gauge, or observes in a histogram. */
type Write = (value: number) => void;

/** One value as the registry renders it. */
type Value = {
  readonly labels: { readonly [name: string]: string | number };
  readonly value: number;
  readonly metricName: string;
};

/** What was written to one set of label values, and how it is rendered. */
type Series = { readonly write: Write; values(): readonly Value[] };

/** The series of one metric. Label values are in the order of the table. */
type Family = {
  /** Writes to the series of these label values. */
  write(value: number, ...labels: readonly string[]): void;
  /**
   * Makes the series known at 0, so that its first increment is seen as one. Beyond half of the cap it is left out: room is
   * for what happens.
   */
  begin(...labels: readonly string[]): void;
  /** Removes all series, for gauges whose labels are facts that change. */
  clear(): void;
  /** Removes the series whose first label is not kept. */
  retain(isKept: (first: string) => boolean): void;
  /** What was written so far. */
  values(): readonly Value[];
};

/** Gauges among the process metrics whose names end as only those of counters may. */
const MISNAMED = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total'];

/** Separates label values in a key; no allowed value contains it. */
const SEPARATOR = '\u0000';

function createValue(metricName: string, kind: 'counter' | 'gauge', labels: Value['labels']): Series {
  let current = 0;
  return {
    write:
      kind === 'gauge'
        ? (value) => {
            current = value;
          }
        : (value) => {
            if (value > 0) current += value;
          },
    values: () => [{ labels, value: current, metricName }],
  };
}

/** `bounds` ascend; values above the last count in `+Inf`. Source: Prometheus text format 0.0.4, histograms. */
function createHistogram(name: string, bounds: readonly number[], labels: Value['labels']): Series {
  const limits = Float64Array.from(bounds);
  const counts = new Float64Array(limits.length);
  let sum = 0;
  let count = 0;
  return {
    write(value) {
      if (!Number.isFinite(value)) return;
      sum += value;
      count += 1;
      for (let at = 0; at < limits.length; at++) {
        if (value > (limits[at] ?? 0)) continue;
        counts[at] = (counts[at] ?? 0) + 1;
        return;
      }
    },
    values() {
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
    },
  };
}

/**
 * Creates and registers the family of a metric: one series for each set of label values, created once and found by one
 * joined key. Beyond `maxSeries` everything counts under `_OTHER`, unless the code bounds the labels. Values are not checked here. prom-client's own
 * metrics look up a series by its labels at every write (docs/reference/performance.md); these are read at each scrape.
 */
export function createFamily(name: string, row: MetricRow, registry: Registry, maxSeries: number): Family {
  const { kind: type, help, isBounded = false } = row;
  const series = new Map<string, Series>();
  const other = row.labels.map(() => OTHER);

  function find(values: readonly string[]): Series {
    const key = values.length === 1 ? (values[0] ?? '') : values.join(SEPARATOR);
    const known = series.get(key);
    if (known !== undefined) return known;
    // The last series below the cap is the one for all others.
    const isFull = !isBounded && series.size >= maxSeries - 1 && values.length > 0 && values !== other;
    if (isFull) return find(other);
    const labels = Object.fromEntries(row.labels.map((label, at) => [label, values[at] ?? '']));
    const made =
      type === 'histogram' ? createHistogram(name, row.buckets ?? [], labels) : createValue(name, type, labels);
    series.set(key, made);
    return made;
  }

  // A metric without labels has its only series from the start.
  if (row.labels.length === 0) find([]);
  const valuesOfAll = () => [...series.values()].flatMap((one) => one.values());
  const metric = {
    name,
    help,
    type,
    aggregator: 'sum',
    get: () => Promise.resolve({ name, help, type, values: valuesOfAll() }),
    reset: () => undefined,
  };
  // The registry calls only `get`; its type names only its own classes.
  registry.registerMetric(metric as unknown as Parameters<Registry['registerMetric']>[0]);
  return {
    write: (value, ...labels) => find(labels).write(value),
    begin(...labels) {
      if (series.size < maxSeries / 2) find(labels);
    },
    clear: () => series.clear(),
    retain(isKept) {
      for (const key of series.keys()) if (!isKept(key.split(SEPARATOR, 1)[0] ?? '')) series.delete(key);
    },
    values: valuesOfAll,
  };
}

/** The row of a metric, with the label for pinned tools where the configuration enables it. */
function rowOf(name: MetricName, hasToolLabel: boolean): MetricRow {
  const row: MetricRow = METRICS[name];
  if (!hasToolLabel || name !== 'mcp_server_operation_duration_seconds') return row;
  return { ...row, labels: [...row.labels, TOOL_LABEL] };
}

/** All families of the table, and the text of all metrics including those of the process. */
function createFamilies(
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

export const CONTROL_STATES: readonly ControlState[] = ['armed', 'degraded', 'off'];

const NO_TOOL: readonly string[] = [];

/** Version of the program and of Node. */
export type Build = { readonly version: string; readonly node: string };

export interface Metrics extends AuditMeters {
  /** Which event becomes which metric. */
  readonly listeners: Listeners;
  /** How an upstream has answered since the start. */
  loadOf(upstream: string): UpstreamLoad;
  /** The text of all metrics, Prometheus format 0.0.4. */
  render(): Promise<string>;
}

/** Requests that reached an upstream. */
export type UpstreamLoad = {
  readonly requests: number;
  /** Those that ended with an error of the upstream. */
  readonly errors: number;
  /** The bound of the bucket that holds the median and the 99th percentile, in seconds; `undefined` without a request. */
  readonly p50: number | undefined;
  readonly p99: number | undefined;
};

type Families = ReturnType<typeof createFamilies>['families'];

function createCounts(): (name: string, delta: number) => number {
  const counts = new Map<string, number>();
  return (name, delta) => {
    const count = Math.max(0, (counts.get(name) ?? 0) + delta);
    counts.set(name, count);
    return count;
  };
}

/**
 * Counts controls by kind and state: one that degrades is seen however many there are of its kind. The kind is the name
 * up to the colon; what follows is what the control protects.
 */
function createControlCounts({ sallyport_controls: family }: Families) {
  const states = new Map<string, ControlState>();
  const counts = new Map<string, { [state in ControlState]: number }>();
  return {
    /** `undefined` where the control is no longer configured. */
    note(control: string, state: ControlState | undefined): void {
      const kind = control.split(':', 1)[0] ?? control;
      const count = counts.get(kind) ?? { armed: 0, degraded: 0, off: 0 };
      counts.set(kind, count);
      const before = states.get(control);
      if (before !== undefined) count[before] -= 1;
      if (state === undefined) states.delete(control);
      else {
        states.set(control, state);
        count[state] += 1;
      }
      for (const one of CONTROL_STATES) family.write(count[one], kind, one);
    },
  };
}

type Labels = {
  readonly upstream: string;
  readonly method: string;
  /** Empty, or the tool's name where tools have a label. */
  readonly tool: readonly string[];
};

function recordDurations(families: Families, record: RequestRecord, labels: Labels, totalMs: number): void {
  const { upstream, method, tool } = labels;
  const version = record.client.version ?? '';
  const spentMs = record.latency.upstream;
  families.mcp_server_operation_duration_seconds.write(
    totalMs / 1000,
    upstream,
    method,
    errorType(record),
    version,
    ...tool,
  );
  if (spentMs > 0) {
    families.mcp_client_operation_duration_seconds.write(spentMs / 1000, upstream, method, upstreamErrorType(record));
  }
  families.sallyport_overhead_seconds.write(Math.max(0, totalMs - spentMs) / 1000, method);
}

/** The label `mode` of what would have been decided. */
const SHADOW = 'shadow';

function recordVerdict(families: Families, record: RequestRecord, labels: Labels): void {
  const { decision } = record;
  const { upstream, method } = labels;
  families.sallyport_decisions_total.write(1, upstream, method, decision.verdict, decision.mode);
  if (decision.verdict === 'deny' || decision.action !== 'forwarded') {
    const reason = decision.reasons[0] ?? 'internal';
    families.sallyport_denials_total.write(1, upstream, decision.stage, reason, decision.mode);
  }
  for (const { verdict, reason } of decision.shadow) {
    families.sallyport_decisions_total.write(1, upstream, method, verdict, SHADOW);
    if (reason === undefined) continue;
    const { stage } = REASONS[reason];
    families.sallyport_denials_total.write(1, upstream, stage, reason, SHADOW);
  }
}

function recordContent(families: Families, record: RequestRecord, upstream: string): void {
  for (const { direction, detector, action, count } of record.findings) {
    families.sallyport_findings_total.write(count, upstream, direction, detector, action);
  }
  const { list } = record.result;
  if (list === undefined || record.target.method !== 'tools/list') return;
  families.sallyport_tools_list_bytes.write(list.advertisedBytes, upstream, 'advertised');
  families.sallyport_tools_list_bytes.write(list.visibleBytes, upstream, 'visible');
}

const PARTIES: readonly ApprovalParty[] = ['caller', 'reviewer'];

function outcomeOfApproval({ change, isRemembered }: ApprovalEvent): string {
  if (change === 'void') return 'mismatch';
  return change === 'used' && isRemembered === true ? 'remembered' : change;
}

/** Whom a change of an approval concerns: who answered, who did not in time, or else everybody who is asked. */
function partiesOf({ change, approval, answer }: ApprovalEvent): readonly ApprovalParty[] {
  if (answer !== undefined) return [answer.party];
  const open = change === 'expired' ? openParties(approval) : [];
  if (open.length > 0) return open;
  return PARTIES.filter((party) => approval.demand[party] !== undefined);
}

function recordApproval(families: Families, event: ApprovalEvent): void {
  const { answer, approval } = event;
  const outcome = outcomeOfApproval(event);
  for (const party of partiesOf(event)) families.sallyport_approvals_total.write(1, party, outcome);
  if (answer === undefined) return;
  const waitedMs = Math.max(0, answer.atMs - approval.createdAtMs);
  families.sallyport_approval_answer_seconds.write(waitedMs / 1000, answer.party, outcome);
}

function loadOf({ mcp_client_operation_duration_seconds: family }: Families, upstream: string) {
  const values = family.values().filter(({ labels }) => labels['upstream'] === upstream);
  const buckets = new Map<number, number>();
  let [requests, errors] = [0, 0];
  for (const { metricName, labels, value } of values) {
    if (metricName.endsWith('_count')) {
      requests += value;
      if (labels['error_type'] !== '') errors += value;
    } else if (metricName.endsWith('_bucket')) {
      const bound = labels['le'] === '+Inf' ? Number.POSITIVE_INFINITY : Number(labels['le']);
      buckets.set(bound, (buckets.get(bound) ?? 0) + value);
    }
  }
  const boundOf = (share: number): number | undefined =>
    requests === 0 ? undefined : [...buckets].find(([, below]) => below >= share * requests)?.[0];
  return { requests, errors, p50: boundOf(0.5), p99: boundOf(0.99) };
}

/** What a failure of the gateway, or of something that it needs, refuses: alerts watch for the first one. */
const FAILURES = Object.entries(REASONS).filter(([, { level }]) => level === 'error');
const TOKEN_REASONS = Object.entries(REASONS).flatMap(([reason, { stage }]) => (stage === 'authn' ? [reason] : []));
const APPROVAL_OUTCOMES = ['requested', 'granted', 'denied', 'expired', 'used', 'remembered', 'mismatch', 'crowded'];

/** Begins a series for each combination of label values. */
function beginAll(family: Family, first: Iterable<string>, ...more: readonly (readonly string[])[]): void {
  const rest = more.reduce<readonly (readonly string[])[]>(
    (all, values) => all.flatMap((one) => values.map((value) => [...one, value])),
    [[]],
  );
  for (const one of first) for (const labels of rest) family.begin(one, ...labels);
}

/** Of each upstream and endpoint; no method, tool or caller is known before it comes. */
function beginOfUpstreams(families: Families, { upstreams, aggregates }: LabelNames): void {
  beginAll(families.sallyport_upstream_listings_total, upstreams.keys(), ['succeeded', 'failed']);
  beginAll(families.sallyport_lock_signature_failures_total, upstreams.keys());
  const served = [...upstreams.keys(), ...aggregates.keys()];
  for (const [reason, { stage }] of FAILURES)
    beginAll(families.sallyport_denials_total, served, [stage], [reason], ['enforce']);
}

/** What happens is counted from 0 where its labels are known at the start: `increase()` misses a first 1 otherwise. */
function beginCounters(families: Families, { sinks, deliveries }: Settings['audit']): void {
  const delivered = deliveries.map(({ name }) => name);
  beginAll(families.sallyport_auth_failures_total, TOKEN_REASONS);
  beginAll(families.sallyport_config_reloads_total, ['applied', 'rejected']);
  beginAll(families.sallyport_approvals_total, PARTIES, APPROVAL_OUTCOMES);
  beginAll(families.sallyport_approval_messages_total, ['delivered', 'failed', 'dropped']);
  beginAll(families.sallyport_trace_spans_total, ['exported', 'failed', 'dropped']);
  beginAll(families.sallyport_audit_events_total, sinkNames({ sinks }), ['written', 'refused', 'lost', 'suppressed']);
  beginAll(families.sallyport_audit_delivered_total, delivered, ['delivered', 'refused']);
}

/** Gauges of upstreams and of issuers, whose last value says nothing once they are gone. */
const OF_UPSTREAMS = [
  ...([
    'sallyport_tools',
    'sallyport_tools_list_bytes',
    'sallyport_upstream_up',
    'sallyport_upstream_hanging',
  ] as const),
  ...(['sallyport_inflight_requests', 'sallyport_open_streams'] as const),
] as const;
const OF_ISSUERS = [
  'sallyport_jwks_last_success_timestamp_seconds',
  'sallyport_jwks_expiry_timestamp_seconds',
] as const;

function forgetGone(families: Families, { upstreams, aggregates, issuers }: LabelNames): void {
  const isServed = (name: string): boolean => name === OTHER || upstreams.has(name) || aggregates.has(name);
  for (const name of OF_UPSTREAMS) families[name].retain(isServed);
  for (const name of OF_ISSUERS) families[name].retain((issuer) => issuers.has(issuer));
}

/** The names that labels may have. */
type LabelNames = Pick<GatewayEvents['configured'], 'upstreams' | 'aggregates' | 'issuers'>;

/** Creates the metrics, once for the life of the process; `maxSeries` is read at the start only. */
export function createMetrics(
  settings: Pick<Settings, 'metrics' | 'upstreams' | 'aggregates' | 'issuers' | 'audit'>,
  build: Build,
): Metrics {
  const { toolLabel } = settings.metrics;
  const { families, render } = createFamilies(settings.metrics.maxSeries, toolLabel);
  let { upstreams, aggregates, issuers }: LabelNames = settings;
  const countInflight = createCounts();
  const countStreams = createCounts();
  const controls = createControlCounts(families);
  families.sallyport_build_info.write(1, build.version, build.node);
  families.sallyport_store_degraded.write(0);
  families.sallyport_ready.write(0);
  families.sallyport_config_last_reload_successful.write(1);
  families.sallyport_audit_queue_length.write(0);
  beginCounters(families, settings.audit);
  beginOfUpstreams(families, settings);

  const upstreamLabel = (name: string): string => (upstreams.has(name) || aggregates.has(name) ? name : OTHER);

  const issuerLabel = (name: string): string => (issuers.has(name) ? name : OTHER);

  const listeners: Listeners = {
    inProgress: ({ upstream, delta }) =>
      families.sallyport_inflight_requests.write(countInflight(upstream, delta), upstreamLabel(upstream)),
    streaming: ({ upstream, delta }) =>
      families.sallyport_open_streams.write(countStreams(upstream, delta), upstreamLabel(upstream)),
    ended({ record, totalMs }) {
      const method = methodName(record);
      const tool = toolLabel ? [toolName(record)] : NO_TOOL;
      const labels = { upstream: upstreamLabel(record.upstream), method, tool };
      // A stream is open for as long as its client likes, so its duration means nothing.
      if (record.httpMethod !== 'GET') recordDurations(families, record, labels, totalMs);
      recordVerdict(families, record, labels);
      recordContent(families, record, labels.upstream);
    },
    clientLeft: ({ record }) =>
      families.sallyport_client_disconnects_total.write(1, upstreamLabel(record.upstream), methodName(record)),
    sessionsCounted({ counts }) {
      families.sallyport_sessions.clear();
      for (const version of [LEGACY_SSE_VERSION, ...SESSION_VERSIONS])
        families.sallyport_sessions.write(counts.get(version) ?? 0, version);
    },
    spans: ({ outcome, count }) => families.sallyport_trace_spans_total.write(count, outcome),
    reviewersNotified: ({ outcome }) => families.sallyport_approval_messages_total.write(1, outcome),
    unauthenticated: ({ reason }) => families.sallyport_auth_failures_total.write(1, isReason(reason) ? reason : OTHER),
    listed({ upstream }) {
      families.sallyport_upstream_listings_total.write(1, upstreamLabel(upstream), 'succeeded');
      families.sallyport_upstream_up.write(1, upstreamLabel(upstream));
      // What was listed answers.
      families.sallyport_upstream_hanging.write(0, upstreamLabel(upstream));
    },
    hanging: ({ upstream, isHanging }) =>
      families.sallyport_upstream_hanging.write(isHanging ? 1 : 0, upstreamLabel(upstream)),
    unlisted({ upstream }) {
      families.sallyport_upstream_listings_total.write(1, upstreamLabel(upstream), 'failed');
      families.sallyport_upstream_up.write(0, upstreamLabel(upstream));
    },
    keysFetched({ issuer, atSeconds, untilSeconds }) {
      families.sallyport_jwks_last_success_timestamp_seconds.write(atSeconds, issuerLabel(issuer));
      families.sallyport_jwks_expiry_timestamp_seconds.write(untilSeconds, issuerLabel(issuer));
    },
    introspected: ({ issuer, durationMs, error }) =>
      families.sallyport_introspection_duration_seconds.write(durationMs / 1000, issuerLabel(issuer), error),
    tokenRequested: ({ upstream, grant, durationMs, error }) =>
      families.sallyport_token_request_duration_seconds.write(durationMs / 1000, upstreamLabel(upstream), grant, error),
    certificatesRead({ certificates }) {
      const family = families.sallyport_certificate_expiry_timestamp_seconds;
      family.clear();
      for (const { use, name, expiresAtSeconds } of certificates) family.write(expiresAtSeconds, use, name);
    },
    pinsDated: ({ upstream, oldestSeconds }) =>
      families.sallyport_pins_oldest_approval_timestamp_seconds.write(oldestSeconds, upstreamLabel(upstream)),
    approval: (event) => recordApproval(families, event),
    approvalCrowded({ parties }) {
      for (const party of parties) families.sallyport_approvals_total.write(1, party, 'crowded');
    },
    approvalsCounted({ waiting }) {
      for (const party of PARTIES) {
        families.sallyport_approvals_waiting.write(waiting[party].count, party);
        families.sallyport_approvals_oldest_waiting_seconds.write(waiting[party].oldestMs / 1000, party);
      }
    },
    drifted: ({ upstream, change }) => families.sallyport_tool_drift_total.write(1, upstreamLabel(upstream), change),
    found({ upstream, found, action }) {
      const labels = [upstreamLabel(upstream), 'to-client', `definition-${found}`, action];
      families.sallyport_findings_total.write(1, ...labels);
    },
    toolsCounted({ upstream, states }) {
      for (const [state, count] of states) families.sallyport_tools.write(count, upstreamLabel(upstream), state);
    },
    reloaded: ({ why }) => families.sallyport_config_reloads_total.write(1, why === undefined ? 'applied' : 'rejected'),
    filesRead({ areValid, unsigned, hashes, isPending }) {
      for (const upstream of unsigned)
        families.sallyport_lock_signature_failures_total.write(1, upstreamLabel(upstream));
      families.sallyport_config_last_reload_successful.write(areValid ? 1 : 0);
      families.sallyport_config_restart_pending.write(isPending ? 1 : 0);
      const { config = '', policy = '', pins = '' } = hashes;
      families.sallyport_config_files_info.clear();
      families.sallyport_config_files_info.write(1, config, policy, pins);
    },
    configured({ hashes, ...names }) {
      ({ upstreams, aggregates, issuers } = names);
      forgetGone(families, names);
      beginOfUpstreams(families, names);
      families.sallyport_pins_oldest_approval_timestamp_seconds.clear();
      families.sallyport_config_info.clear();
      families.sallyport_config_info.write(1, hashes.config, hashes.policy, hashes.pins);
    },
    controlChanged: ({ control, state }) => controls.note(control, state),
    controlRemoved: ({ control }) => controls.note(control, undefined),
    auditDelivered: ({ sink, result, count }) => families.sallyport_audit_delivered_total.write(count, sink, result),
    auditSpaceChecked: ({ sink, freeBytes }) => families.sallyport_audit_free_bytes.write(freeBytes, sink),
    auditDeliveryChecked({ sink, waitingBytes, lagSeconds }) {
      families.sallyport_audit_delivery_waiting_bytes.write(waitingBytes, sink);
      families.sallyport_audit_delivery_lag_seconds.write(lagSeconds, sink);
    },
    storeUsed: ({ operation, durationMs, error }) =>
      families.sallyport_store_operation_duration_seconds.write(durationMs / 1000, operation, error),
    storeChecked: ({ isUnreachable }) => families.sallyport_store_degraded.write(isUnreachable ? 1 : 0),
    readinessChanged: ({ isReady }) => families.sallyport_ready.write(isReady ? 1 : 0),
    blocksCounted: ({ target, count }) => families.sallyport_blocks.write(count, target),
  };

  return {
    listeners,
    auditEvent: (sink, result, count) => families.sallyport_audit_events_total.write(count, sink, result),
    auditWrite: (sink, durationMs, error) =>
      families.sallyport_audit_write_duration_seconds.write(durationMs / 1000, sink, error),
    setAuditQueue: (length) => families.sallyport_audit_queue_length.write(length),
    setChainSeq: (seq) => families.sallyport_audit_chain_seq.write(seq),
    loadOf: (upstream) => loadOf(families, upstream),
    render,
  };
}
