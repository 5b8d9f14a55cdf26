// The dashboard of those who run the gateways: readiness, store, audit, MCP servers, issuers and the process.

import { type DashboardSpec, quantiles } from './panels.js';

const YES_NO = { 0: ['no', 'red'], 1: ['yes', 'green'] } as const;
const GOOD_BAD = { 0: ['reachable', 'green'], 1: ['unreachable', 'red'] } as const;

export const OPERATION: DashboardSpec = {
  uid: 'sallyport-operation',
  title: 'Sallyport operation',
  description: 'Readiness, configuration, store, audit log, MCP servers, issuers and processes.',
  rows: [
    {
      title: 'Gateways',
      panels: [
        {
          kind: 'states',
          title: 'Ready',
          width: 8,
          queries: [{ expr: 'sallyport_ready{own}', legend: '{{instance}}' }],
          states: YES_NO,
        },
        {
          kind: 'states',
          title: 'Files in force',
          description:
            'Whether the files of configuration, policies and pins were accepted, and whether a restart is due.',
          width: 8,
          queries: [
            {
              expr: 'clamp_max(2 * (1 - sallyport_config_last_reload_successful{own}) + sallyport_config_restart_pending{own}, 2)',
              legend: '{{instance}}',
            },
          ],
          states: { 0: ['in force', 'green'], 1: ['restart due', 'yellow'], 2: ['rejected', 'red'] },
        },
        {
          kind: 'table',
          title: 'Versions',
          width: 8,
          expr: 'sallyport_build_info{own} * on (job, instance) group_left (config_hash) sallyport_config_info{own}',
          columns: { instance: 'Gateway', version: 'Version', node: 'Node', config_hash: 'Configuration' },
        },
      ],
    },
    {
      title: 'Store',
      panels: [
        {
          kind: 'states',
          title: 'Shared store',
          width: 6,
          queries: [{ expr: 'sallyport_store_degraded{own}', legend: '{{instance}}' }],
          states: GOOD_BAD,
        },
        {
          kind: 'series',
          title: 'Refused because of the store',
          unit: 'reqps',
          width: 6,
          queries: [
            {
              expr: 'sum by (instance) (rate(sallyport_denials_total{own, mode!="shadow", reason="store-unavailable"}[$__rate_interval]))',
              legend: '{{instance}}',
            },
          ],
        },
        {
          kind: 'series',
          title: 'Duration of operations, p95',
          unit: 's',
          width: 6,
          queries: [
            {
              expr: 'histogram_quantile(0.95, sum by (operation, le) (rate(sallyport_store_operation_duration_seconds_bucket{own}[$__rate_interval])))',
              legend: '{{operation}}',
            },
          ],
        },
        {
          kind: 'series',
          title: 'Operations that fail',
          unit: 'ops',
          width: 6,
          queries: [
            {
              expr: 'sum by (error_type) (rate(sallyport_store_operation_duration_seconds_count{own, error_type!=""}[$__rate_interval]))',
              legend: '{{error_type}}',
            },
          ],
        },
      ],
    },
    {
      title: 'Audit',
      panels: [
        {
          kind: 'series',
          title: 'Audit lines by result',
          unit: 'eps',
          width: 6,
          queries: [
            {
              expr: 'sum by (sink, result) (rate(sallyport_audit_events_total{own}[$__rate_interval]))',
              legend: '{{sink}} {{result}}',
            },
          ],
        },
        {
          kind: 'series',
          title: 'Lines waiting to be written',
          unit: 'short',
          width: 6,
          queries: [{ expr: 'sallyport_audit_queue_length{own}', legend: '{{instance}}' }],
        },
        {
          kind: 'series',
          title: 'Duration of writes',
          description: 'No call is forwarded before its line is written.',
          unit: 's',
          width: 6,
          queries: quantiles('sallyport_audit_write_duration_seconds', [0.5, 0.99]),
        },
        {
          kind: 'series',
          title: 'Free space of the audit volume',
          unit: 'bytes',
          width: 6,
          queries: [{ expr: 'sallyport_audit_free_bytes{own}', legend: '{{instance}} {{sink}}' }],
        },
        {
          kind: 'series',
          title: 'Age of what receivers lack',
          unit: 's',
          queries: [{ expr: 'sallyport_audit_delivery_lag_seconds{own}', legend: '{{instance}} {{sink}}' }],
        },
        {
          kind: 'series',
          title: 'Bytes that receivers lack',
          unit: 'bytes',
          queries: [{ expr: 'sallyport_audit_delivery_waiting_bytes{own}', legend: '{{instance}} {{sink}}' }],
        },
        {
          kind: 'series',
          title: 'Lines at receivers',
          unit: 'eps',
          queries: [
            {
              expr: 'sum by (sink, result) (rate(sallyport_audit_delivered_total{own}[$__rate_interval]))',
              legend: '{{sink}} {{result}}',
            },
          ],
        },
      ],
    },
    {
      title: 'MCP servers',
      panels: [
        {
          kind: 'states',
          title: 'State',
          width: 8,
          queries: [
            {
              expr: '2 * max by (upstream) (sallyport_upstream_hanging{at}) > 0 or max by (upstream) (1 - sallyport_upstream_up{at})',
              legend: '{{upstream}}',
            },
          ],
          states: { 0: ['up', 'green'], 1: ['down', 'red'], 2: ['hangs', 'orange'] },
        },
        {
          kind: 'series',
          title: 'Duration by MCP server, p50 and p95',
          unit: 's',
          queries: quantiles('mcp_client_operation_duration_seconds', [0.5, 0.95], ['upstream']),
        },
        {
          kind: 'series',
          title: 'Share of requests that fail at the MCP server',
          unit: 'percentunit',
          queries: [
            {
              expr: 'sum by (upstream) (rate(sallyport_denials_total{at, mode!="shadow", reason=~"upstream-.*"}[$__rate_interval])) / sum by (upstream) (rate(sallyport_decisions_total{at, mode!="shadow"}[$__rate_interval]))',
              legend: '{{upstream}}',
            },
          ],
        },
      ],
    },
    {
      title: 'Issuers, tokens and certificates',
      panels: [
        {
          kind: 'series',
          title: 'Age of the keys of issuers',
          unit: 's',
          queries: [
            {
              expr: 'max by (issuer) (time() - sallyport_jwks_last_success_timestamp_seconds{own})',
              legend: '{{issuer}}',
            },
          ],
        },
        {
          kind: 'series',
          title: 'Introspection and token requests, p95',
          description: 'Requests for tokens are rare: of all since the start of the gateways.',
          unit: 's',
          queries: [
            {
              expr: 'histogram_quantile(0.95, sum by (issuer, le) (rate(sallyport_introspection_duration_seconds_bucket{own}[$__rate_interval])))',
              legend: 'introspection at {{issuer}}',
            },
            {
              expr: 'histogram_quantile(0.95, sum by (upstream, grant, le) (sallyport_token_request_duration_seconds_bucket{at}))',
              legend: '{{grant}} for {{upstream}}',
            },
          ],
        },
        {
          kind: 'series',
          title: 'Introspection and token requests that fail',
          unit: 'ops',
          queries: [
            {
              expr: 'sum by (issuer, error_type) (rate(sallyport_introspection_duration_seconds_count{own, error_type!=""}[$__rate_interval]))',
              legend: '{{issuer}} {{error_type}}',
            },
            {
              expr: 'sum by (upstream) (rate(sallyport_token_request_duration_seconds_count{at, error_type!=""}[$__rate_interval])) or 0 * sum by (upstream) (rate(sallyport_token_request_duration_seconds_count{at}[$__rate_interval]))',
              legend: 'tokens for {{upstream}}',
            },
          ],
        },
        {
          kind: 'series',
          title: 'Time until certificates expire',
          unit: 's',
          width: 12,
          queries: [
            {
              expr: 'min by (use, name) (sallyport_certificate_expiry_timestamp_seconds{own} - time())',
              legend: '{{use}} {{name}}',
            },
          ],
        },
        {
          kind: 'series',
          title: 'Age of the oldest approval of a definition',
          unit: 's',
          width: 12,
          queries: [
            {
              expr: 'max by (upstream) (time() - sallyport_pins_oldest_approval_timestamp_seconds{at})',
              legend: '{{upstream}}',
            },
          ],
        },
      ],
    },
    {
      title: 'Other receivers',
      panels: [
        {
          kind: 'series',
          title: 'Spans by outcome',
          unit: 'eps',
          width: 12,
          queries: [
            {
              expr: 'sum by (outcome) (rate(sallyport_trace_spans_total{own}[$__rate_interval]))',
              legend: '{{outcome}}',
            },
          ],
        },
        {
          kind: 'series',
          title: 'Messages to reviewers by outcome',
          description: 'Since the start of the gateways.',
          unit: 'short',
          width: 12,
          isStepped: true,
          queries: [{ expr: 'sum by (outcome) (sallyport_approval_messages_total{own})', legend: '{{outcome}}' }],
        },
      ],
    },
    {
      title: 'Process',
      panels: [
        {
          kind: 'series',
          title: 'Processor time',
          description: 'In processors: 1 is one processor, fully used.',
          unit: 'short',
          width: 6,
          queries: [
            {
              expr: 'rate(process_cpu_seconds_total{own}[$__rate_interval]) and on (job, instance) sallyport_build_info',
              legend: '{{instance}}',
            },
          ],
        },
        {
          kind: 'series',
          title: 'Memory',
          unit: 'bytes',
          width: 6,
          queries: [
            {
              expr: 'process_resident_memory_bytes{own} and on (job, instance) sallyport_build_info',
              legend: '{{instance}} resident',
            },
            {
              expr: 'nodejs_heap_size_used_bytes{own} and on (job, instance) sallyport_build_info',
              legend: '{{instance}} heap',
            },
          ],
        },
        {
          kind: 'series',
          title: 'Lag of the event loop, p99',
          unit: 's',
          width: 6,
          queries: [
            {
              expr: 'nodejs_eventloop_lag_p99_seconds{own} and on (job, instance) sallyport_build_info',
              legend: '{{instance}}',
            },
          ],
        },
        {
          kind: 'series',
          title: 'Running for',
          unit: 's',
          width: 6,
          queries: [
            {
              expr: 'time() - process_start_time_seconds{own} and on (job, instance) sallyport_build_info',
              legend: '{{instance}}',
            },
          ],
        },
      ],
    },
  ],
};
