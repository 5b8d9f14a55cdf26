// The dashboard that is looked at first: traffic, verdicts, latency and errors.

import { type DashboardSpec, DEGRADED_CONTROLS, quantiles } from './panels.js';

/** Refusals because the gateway, or something that it needs, fails: those of the alert SallyportCallsFail. */
const FAILURES = 'audit-unavailable|internal|keys-unavailable|overloaded|pins-stale|policy-error|store-unavailable';

export const OVERVIEW: DashboardSpec = {
  uid: 'sallyport-overview',
  title: 'Sallyport overview',
  description: 'Traffic, verdicts, latency and errors of the gateways.',
  rows: [
    {
      title: 'Now',
      panels: [
        {
          kind: 'stat',
          title: 'Gateways ready',
          unit: 'percentunit',
          expr: 'sum(sallyport_ready{own}) / count(sallyport_build_info{own})',
          colors: [
            [null, 'red'],
            [0.5, 'yellow'],
            [1, 'green'],
          ],
          decimals: 0,
        },
        {
          kind: 'stat',
          title: 'Requests',
          unit: 'reqps',
          expr: 'sum(rate(sallyport_decisions_total{at, mode!="shadow"}[$__rate_interval]))',
          colors: [[null, 'blue']],
        },
        {
          kind: 'stat',
          title: 'Refused by policy',
          description: 'Share of the requests that are refused for other reasons than failures.',
          unit: 'percentunit',
          expr: `sum(rate(sallyport_denials_total{at, mode!="shadow", reason!~"upstream-.*|${FAILURES}"}[$__rate_interval])) / sum(rate(sallyport_decisions_total{at, mode!="shadow"}[$__rate_interval]))`,
          colors: [
            [null, 'blue'],
            [0.5, 'yellow'],
          ],
          decimals: 1,
        },
        {
          kind: 'stat',
          title: 'Refused by failures',
          description: 'Share of the requests that are refused because the gateway or something that it needs fails.',
          unit: 'percentunit',
          expr: `(sum(rate(sallyport_denials_total{at, mode!="shadow", reason=~"${FAILURES}"}[$__rate_interval])) or vector(0)) / sum(rate(sallyport_decisions_total{at, mode!="shadow"}[$__rate_interval]))`,
          colors: [
            [null, 'green'],
            [0.001, 'yellow'],
            [0.05, 'red'],
          ],
          decimals: 1,
        },
        {
          kind: 'stat',
          title: 'Duration, p95',
          unit: 's',
          expr: 'histogram_quantile(0.95, sum by (le) (rate(mcp_server_operation_duration_seconds_bucket{at}[$__rate_interval])))',
          colors: [
            [null, 'green'],
            [2, 'yellow'],
            [10, 'red'],
          ],
        },
        DEGRADED_CONTROLS,
      ],
    },
    {
      title: 'Traffic',
      panels: [
        {
          kind: 'series',
          title: 'Requests by verdict',
          unit: 'reqps',
          isStacked: true,
          queries: [
            {
              expr: 'sum by (verdict) (rate(sallyport_decisions_total{at, mode!="shadow"}[$__rate_interval]))',
              legend: '{{verdict}}',
            },
          ],
        },
        {
          kind: 'series',
          title: 'Requests by method',
          unit: 'reqps',
          queries: [
            {
              expr: 'sum by (mcp_method_name) (rate(sallyport_decisions_total{at, mode!="shadow"}[$__rate_interval]))',
              legend: '{{mcp_method_name}}',
            },
          ],
        },
        {
          kind: 'series',
          title: 'Requests by MCP server',
          description: '_OTHER: refused before its path was known.',
          unit: 'reqps',
          queries: [
            {
              expr: 'sum by (upstream) (rate(sallyport_decisions_total{at, mode!="shadow"}[$__rate_interval]))',
              legend: '{{upstream}}',
            },
          ],
        },
        {
          kind: 'series',
          title: 'Requests by gateway',
          unit: 'reqps',
          queries: [
            {
              expr: 'sum by (instance) (rate(sallyport_decisions_total{at, mode!="shadow"}[$__rate_interval]))',
              legend: '{{instance}}',
            },
          ],
        },
        {
          kind: 'series',
          title: 'Requests by revision of MCP',
          unit: 'reqps',
          queries: [
            {
              expr: 'sum by (mcp_protocol_version) (rate(mcp_server_operation_duration_seconds_count{at, mcp_protocol_version!=""}[$__rate_interval]))',
              legend: '{{mcp_protocol_version}}',
            },
          ],
        },
        {
          kind: 'series',
          title: 'In progress',
          unit: 'short',
          queries: [
            { expr: 'sum(sallyport_inflight_requests{at})', legend: 'requests' },
            { expr: 'sum(sallyport_open_streams{at})', legend: 'streams of clients' },
          ],
        },
        {
          kind: 'series',
          title: 'Sessions by revision of MCP',
          description:
            'Those that the replica with the most has served within the last five minutes: a session that several replicas have served counts at each.',
          unit: 'short',
          width: 12,
          isStepped: true,
          queries: [
            {
              expr: 'max by (mcp_protocol_version) (sallyport_sessions{own})',
              legend: '{{mcp_protocol_version}}',
            },
          ],
        },
        {
          kind: 'series',
          title: 'Clients that left before the answer',
          description: 'A subscription ends like this.',
          unit: 'reqps',
          width: 12,
          queries: [
            {
              expr: 'sum by (upstream, mcp_method_name) (rate(sallyport_client_disconnects_total{at}[$__rate_interval]))',
              legend: '{{upstream}} {{mcp_method_name}}',
            },
          ],
        },
      ],
    },
    {
      title: 'Latency',
      panels: [
        {
          kind: 'series',
          title: 'Duration of requests',
          description: 'From the arrival of a request to the end of its response.',
          unit: 's',
          queries: quantiles('mcp_server_operation_duration_seconds', [0.5, 0.95, 0.99]),
        },
        {
          kind: 'series',
          title: 'Time in the gateway itself',
          description: 'The duration without the time of the MCP server.',
          unit: 's',
          queries: quantiles('sallyport_overhead_seconds', [0.5, 0.95, 0.99]),
        },
        {
          kind: 'series',
          title: 'Time in MCP servers, p95',
          unit: 's',
          queries: quantiles('mcp_client_operation_duration_seconds', [0.95], ['upstream']),
        },
      ],
    },
    {
      title: 'Errors',
      panels: [
        {
          kind: 'series',
          title: 'Errors and refusals by type',
          description: 'Reasons of refusals, JSON-RPC codes, and tool_error for results with isError.',
          unit: 'reqps',
          width: 12,
          queries: [
            {
              expr: 'sum by (error_type) (rate(mcp_server_operation_duration_seconds_count{at, error_type!=""}[$__rate_interval])) > 0',
              legend: '{{error_type}}',
            },
          ],
        },
        {
          kind: 'series',
          title: 'Errors of MCP servers',
          unit: 'reqps',
          width: 12,
          queries: [
            {
              expr: 'sum by (upstream, error_type) (rate(mcp_client_operation_duration_seconds_count{at, error_type!=""}[$__rate_interval])) > 0',
              legend: '{{upstream}} {{error_type}}',
            },
          ],
        },
      ],
    },
  ],
};
