// The one table of metrics (docs/reference/metrics.md): names, labels, buckets and descriptions, from which the
// registry and the reference page are made. Label values come from the configuration, the method table and pins, never
// from the wire. Names follow Prometheus; the first two are OpenTelemetry's for MCP.

/** Used where a label's value is not a known one, or the series cap is reached. */
export const OTHER = '_OTHER';

/** Added to `mcp_server_operation_duration_seconds` with `metrics.toolLabel: true`: pinned names only. */
export const TOOL_LABEL = 'gen_ai_tool_name';

export type MetricRow = {
  readonly kind: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly labels: readonly string[];
  /** Upper bounds in seconds. */
  readonly buckets?: readonly number[];
  /** The code alone says which values its labels have, so that the cap of series is not for it. */
  readonly isBounded?: true;
};

/** Buckets that OpenTelemetry recommends for the duration of MCP operations, in seconds. */
const OPERATION_BUCKETS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300];

/** For the time of the gateway itself: 50 µs to 100 ms. */
const OVERHEAD_BUCKETS = [0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1];

/** For the time that a person takes: a second to a day. */
const ANSWER_BUCKETS = [1, 5, 15, 30, 60, 120, 300, 600, 1_800, 3_600, 14_400, 86_400];

/** For what the gateway waits for besides upstreams: half a millisecond to ten seconds. */
const WAIT_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export const METRICS = {
  mcp_server_operation_duration_seconds: {
    kind: 'histogram',
    help: 'Time from the arrival of a request to the end of its response.',
    labels: ['upstream', 'mcp_method_name', 'error_type', 'mcp_protocol_version'],
    buckets: OPERATION_BUCKETS,
  },
  mcp_client_operation_duration_seconds: {
    kind: 'histogram',
    help: 'Time taken by the upstream, for requests that reached it.',
    labels: ['upstream', 'mcp_method_name', 'error_type'],
    buckets: OPERATION_BUCKETS,
  },
  sallyport_client_disconnects_total: {
    kind: 'counter',
    help: 'Requests whose client closed its connection before it had the whole answer. A subscription ends like this.',
    labels: ['upstream', 'mcp_method_name'],
  },
  sallyport_sessions: {
    kind: 'gauge',
    help: 'Sessions of clients that this replica has served within the last five minutes, by their revision; that of HTTP+SSE is 2024-11-05. The session of an endpoint counts once. Where replicas share their state, one session counts at each that has served it: take `max` or `avg` over them, since a sum counts it twice.',
    labels: ['mcp_protocol_version'],
  },
  sallyport_overhead_seconds: {
    kind: 'histogram',
    help: 'Time taken by the gateway itself: total minus upstream.',
    labels: ['mcp_method_name'],
    buckets: OVERHEAD_BUCKETS,
  },
  sallyport_decisions_total: {
    kind: 'counter',
    help: 'Decisions by verdict; with mode `shadow`, what policies that are not enforced would have decided.',
    labels: ['upstream', 'mcp_method_name', 'verdict', 'mode'],
  },
  sallyport_denials_total: {
    kind: 'counter',
    help: 'Refusals and withheld results by stage and reason.',
    labels: ['upstream', 'stage', 'reason', 'mode'],
  },
  sallyport_auth_failures_total: {
    kind: 'counter',
    help: 'Requests without a valid token by reason.',
    labels: ['reason'],
  },
  sallyport_tools: {
    kind: 'gauge',
    help: 'Tools of an upstream by the state of their pin.',
    labels: ['upstream', 'state'],
  },
  sallyport_pins_oldest_approval_timestamp_seconds: {
    kind: 'gauge',
    help: 'Time at which the oldest definition of an upstream that may be used was approved, or trusted on first use.',
    labels: ['upstream'],
  },
  sallyport_tool_drift_total: {
    kind: 'counter',
    help: 'Definitions that no longer match their pin by type of change.',
    labels: ['upstream', 'change'],
  },
  sallyport_lock_signature_failures_total: {
    kind: 'counter',
    help: 'Lock files that were refused at a reload because of their signatures or their counter.',
    labels: ['upstream'],
  },
  sallyport_tools_list_bytes: {
    kind: 'gauge',
    help: 'Size of the last tool list in bytes: as advertised by the upstream, and as returned to a caller.',
    labels: ['upstream', 'side'],
  },
  sallyport_findings_total: {
    kind: 'counter',
    help: 'Findings of the content detectors and, with the prefix `definition-`, of the scan of definitions, by action taken.',
    labels: ['upstream', 'direction', 'detector', 'action'],
  },
  sallyport_inflight_requests: {
    kind: 'gauge',
    help: 'Requests in flight.',
    labels: ['upstream'],
  },
  sallyport_open_streams: {
    kind: 'gauge',
    help: 'Open event streams of clients.',
    labels: ['upstream'],
  },
  sallyport_upstream_up: {
    kind: 'gauge',
    help: '1 if the last listing of the upstream succeeded, otherwise 0.',
    labels: ['upstream'],
  },
  sallyport_upstream_listings_total: {
    kind: 'counter',
    help: "The gateway's own listings of the upstream by result: succeeded, or failed. Neither they nor its pings count as requests of clients.",
    labels: ['upstream', 'result'],
  },
  sallyport_upstream_hanging: {
    kind: 'gauge',
    help: '1 while requests to the upstream are refused at once because it answers neither them nor pings of the gateway.',
    labels: ['upstream'],
  },
  sallyport_jwks_last_success_timestamp_seconds: {
    kind: 'gauge',
    help: 'Time of the last successful fetch of the key set of an issuer.',
    labels: ['issuer'],
  },
  sallyport_jwks_expiry_timestamp_seconds: {
    kind: 'gauge',
    help: 'Time from which the keys of an issuer are too old, unless they are fetched again before (`keysMaxAge`).',
    labels: ['issuer'],
  },
  sallyport_introspection_duration_seconds: {
    kind: 'histogram',
    help: 'Time taken by token introspection, by error: `unavailable` if the endpoint is, `invalid` if its response is.',
    labels: ['issuer', 'error_type'],
    buckets: WAIT_BUCKETS,
  },
  sallyport_token_request_duration_seconds: {
    kind: 'histogram',
    help: 'Time taken by requests for tokens for an upstream, by grant (`client_credentials`, `token_exchange`) and error: a code of RFC 6749, `unavailable` if the server is, `invalid` if its response is.',
    labels: ['upstream', 'grant', 'error_type'],
    buckets: WAIT_BUCKETS,
  },
  sallyport_certificate_expiry_timestamp_seconds: {
    kind: 'gauge',
    help: 'Time at which the first certificate of a file expires, by use (`listener`, `upstream` and `audit-delivery` for what the gateway presents; with `-ca` for the authorities that it trusts there, also `webhook-ca` and `tracing-ca`) and by the name of the listener, upstream, sink or webhook.',
    labels: ['use', 'name'],
  },
  sallyport_config_reloads_total: {
    kind: 'counter',
    help: 'Changes of configuration, policies or pins by result: applied or rejected.',
    labels: ['result'],
  },
  sallyport_config_last_reload_successful: {
    kind: 'gauge',
    help: '1 if the last reload of configuration, policies and pins was applied or changed nothing, 0 if it was rejected.',
    labels: [],
  },
  sallyport_config_info: {
    kind: 'gauge',
    help: 'Always 1; the labels are the hashes of what is in force. While keys wait for a restart, `config_hash` is that of no file.',
    labels: ['config_hash', 'policy_hash', 'pins_hash'],
  },
  sallyport_config_files_info: {
    kind: 'gauge',
    help: 'Always 1; the labels are the hashes of the files as they were read last, valid or not, and are empty where a file could not be read. A process that starts now starts with these.',
    labels: ['config_hash', 'policy_hash', 'pins_hash'],
  },
  sallyport_config_restart_pending: {
    kind: 'gauge',
    help: '1 while keys of the gateway file wait for a restart, otherwise 0; the control `configuration` names them.',
    labels: [],
  },
  sallyport_approvals_waiting: {
    kind: 'gauge',
    help: 'Approvals that wait for an answer of a party, in the state that replicas share: every replica says the same.',
    labels: ['party'],
  },
  sallyport_approvals_oldest_waiting_seconds: {
    kind: 'gauge',
    help: 'How long the oldest approval has waited for an answer of a party; 0 if none waits.',
    labels: ['party'],
  },
  sallyport_approvals_total: {
    kind: 'counter',
    help: 'What became of approvals: requested, granted, denied, expired, used, remembered (used again), mismatch (void), or crowded (nobody was asked). One that needs both parties counts for each.',
    labels: ['party', 'outcome'],
  },
  sallyport_approval_answer_seconds: {
    kind: 'histogram',
    help: 'Time from a question to its answer, granted or denied.',
    labels: ['party', 'outcome'],
    buckets: ANSWER_BUCKETS,
  },
  sallyport_audit_events_total: {
    kind: 'counter',
    help: 'Audit events by sink and result: written, refused, lost, or suppressed (counted only).',
    labels: ['sink', 'result'],
  },
  sallyport_audit_write_duration_seconds: {
    kind: 'histogram',
    help: 'Time taken by a write of audit lines, each for all that came together, by sink and error: the code of a system error.',
    labels: ['sink', 'error_type'],
    buckets: WAIT_BUCKETS,
  },
  sallyport_audit_queue_length: {
    kind: 'gauge',
    help: 'Audit events waiting to be written.',
    labels: [],
  },
  sallyport_audit_chain_seq: {
    kind: 'gauge',
    help: 'Sequence number of the last durable line of the first audit sink.',
    labels: [],
  },
  sallyport_audit_free_bytes: {
    kind: 'gauge',
    help: 'Free space of the volume of the audit files, by file sink.',
    labels: ['sink'],
  },
  sallyport_audit_delivered_total: {
    kind: 'counter',
    help: 'Audit lines by receiver and result: delivered, or refused by it.',
    labels: ['sink', 'result'],
  },
  sallyport_audit_delivery_waiting_bytes: {
    kind: 'gauge',
    help: 'Bytes of audit files that a receiver does not have yet.',
    labels: ['sink'],
  },
  sallyport_audit_delivery_lag_seconds: {
    kind: 'gauge',
    help: 'Age of the oldest audit line that a receiver does not have yet; 0 if it has all.',
    labels: ['sink'],
  },
  sallyport_blocks: {
    kind: 'gauge',
    help: 'Blocks in force, by kind of target.',
    labels: ['target'],
  },
  sallyport_store_operation_duration_seconds: {
    kind: 'histogram',
    help: 'Time taken by an operation of the shared store, by error: `timeout`, `unavailable` without a connection, `refused` if the store answered with an error.',
    labels: ['operation', 'error_type'],
    buckets: WAIT_BUCKETS,
    isBounded: true,
  },
  sallyport_store_degraded: {
    kind: 'gauge',
    help: '1 while the shared store is unreachable.',
    labels: [],
  },
  sallyport_ready: {
    kind: 'gauge',
    help: '1 while `/readyz` says ready, 0 while it does not.',
    labels: [],
  },
  sallyport_approval_messages_total: {
    kind: 'counter',
    help: 'Messages to the webhooks of reviewers by outcome: `delivered`, `failed`, or `dropped` because too many waited.',
    labels: ['outcome'],
  },
  sallyport_trace_spans_total: {
    kind: 'counter',
    help: 'Spans by outcome: `exported`, `failed`, or `dropped` because too many waited.',
    labels: ['outcome'],
  },
  sallyport_controls: {
    kind: 'gauge',
    help: 'Number of controls of a kind by state: armed, degraded (weaker than configured), or off. `/api/controls` and the log name each and say why.',
    labels: ['control', 'state'],
    isBounded: true,
  },
  sallyport_build_info: {
    kind: 'gauge',
    help: 'Always 1; the labels are the versions of the program and of Node.',
    labels: ['version', 'node'],
  },
} as const satisfies { readonly [name: string]: MetricRow };

export type MetricName = keyof typeof METRICS;

/** All names, in the order of the table. */
export const METRIC_NAMES = Object.keys(METRICS) as readonly MetricName[];
