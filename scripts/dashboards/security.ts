// The dashboard of what the gateway refuses and finds: refusals by reason, definitions, content, approvals and controls.

import { type DashboardSpec, DEGRADED_CONTROLS } from './panels.js';

export const SECURITY: DashboardSpec = {
  uid: 'sallyport-security',
  title: 'Sallyport security',
  description: 'Refusals, definitions that differ, findings, approvals and the state of controls.',
  rows: [
    {
      title: 'Now',
      panels: [
        {
          kind: 'stat',
          title: 'Refusals',
          unit: 'reqps',
          expr: 'sum(rate(sallyport_denials_total{at, mode!="shadow"}[$__rate_interval]))',
          colors: [[null, 'blue']],
        },
        {
          kind: 'stat',
          title: 'Without a valid token',
          description: 'Requests that are refused because of their token, or because they have none.',
          unit: 'reqps',
          expr: 'sum(rate(sallyport_auth_failures_total{own}[$__rate_interval]))',
          colors: [[null, 'blue']],
        },
        {
          kind: 'stat',
          title: 'Hidden tools',
          description: 'Tools that differ from their pin or are withheld; the most at one gateway.',
          unit: 'short',
          expr: 'max(sum by (job, instance) (sallyport_tools{at, state=~"changed|invalid|poisoned|shadowed"}))',
          colors: [
            [null, 'green'],
            [1, 'orange'],
          ],
        },
        {
          kind: 'stat',
          title: 'Approvals waiting',
          unit: 'short',
          expr: 'max(sum by (job, instance) (sallyport_approvals_waiting{own}))',
          colors: [
            [null, 'green'],
            [1, 'yellow'],
          ],
        },
        {
          kind: 'stat',
          title: 'Blocks in force',
          unit: 'short',
          expr: 'max(sum by (job, instance) (sallyport_blocks{own}))',
          colors: [
            [null, 'green'],
            [1, 'yellow'],
          ],
        },
        DEGRADED_CONTROLS,
      ],
    },
    {
      title: 'Refusals',
      panels: [
        {
          kind: 'series',
          title: 'Refusals by reason',
          unit: 'reqps',
          width: 12,
          queries: [
            {
              expr: 'sum by (reason) (rate(sallyport_denials_total{at, mode!="shadow"}[$__rate_interval])) > 0',
              legend: '{{reason}}',
            },
          ],
        },
        {
          kind: 'series',
          title: 'Refusals by stage',
          unit: 'reqps',
          width: 12,
          isStacked: true,
          queries: [
            {
              expr: 'sum by (stage) (rate(sallyport_denials_total{at, mode!="shadow"}[$__rate_interval]))',
              legend: '{{stage}}',
            },
          ],
        },
        {
          kind: 'series',
          title: 'Refusals by MCP server',
          description: '_OTHER: refused before its path was known.',
          unit: 'reqps',
          queries: [
            {
              expr: 'sum by (upstream) (rate(sallyport_denials_total{at, mode!="shadow"}[$__rate_interval]))',
              legend: '{{upstream}}',
            },
          ],
        },
        {
          kind: 'series',
          title: 'Requests without a valid token, by reason',
          unit: 'reqps',
          queries: [
            {
              expr: 'sum by (reason) (rate(sallyport_auth_failures_total{own}[$__rate_interval])) > 0',
              legend: '{{reason}}',
            },
          ],
        },
        {
          kind: 'series',
          title: 'Would be refused by policies in shadow',
          description: 'What policies with mode: shadow would refuse, were they enforced.',
          unit: 'reqps',
          queries: [
            {
              expr: 'sum by (reason) (rate(sallyport_denials_total{at, mode="shadow"}[$__rate_interval]))',
              legend: '{{reason}}',
            },
          ],
        },
      ],
    },
    {
      title: 'Definitions',
      panels: [
        {
          kind: 'series',
          title: 'Tools by state of their pin',
          description: 'As the gateway sees it that has the most in a state.',
          unit: 'short',
          isStacked: true,
          isStepped: true,
          queries: [
            {
              expr: 'sum by (state) (max by (upstream, state) (sallyport_tools{at})) > 0',
              legend: '{{state}}',
            },
          ],
        },
        {
          kind: 'series',
          title: 'Definitions that came to differ',
          description: 'Since the start of the gateways, by type of change.',
          unit: 'short',
          isStepped: true,
          queries: [
            {
              expr: 'sum by (upstream, change) (sallyport_tool_drift_total{at})',
              legend: '{{upstream}} {{change}}',
            },
          ],
        },
        {
          kind: 'series',
          title: 'Size of tool lists',
          description: 'The last list of each MCP server: as it advertised it, and as a caller got it.',
          unit: 'bytes',
          isStepped: true,
          queries: [
            {
              expr: 'max by (upstream, side) (sallyport_tools_list_bytes{at})',
              legend: '{{upstream}} {{side}}',
            },
          ],
        },
      ],
    },
    {
      title: 'Content',
      panels: [
        {
          kind: 'series',
          title: 'Findings by detector',
          description: 'The prefix definition- is the scan of definitions.',
          unit: 'eps',
          queries: [
            {
              expr: 'sum by (detector) (rate(sallyport_findings_total{at}[$__rate_interval])) > 0',
              legend: '{{detector}}',
            },
          ],
        },
        {
          kind: 'series',
          title: 'Findings by action',
          unit: 'eps',
          queries: [
            {
              expr: 'sum by (direction, action) (rate(sallyport_findings_total{at}[$__rate_interval]))',
              legend: '{{direction}} {{action}}',
            },
          ],
        },
        {
          kind: 'series',
          title: 'Findings by MCP server',
          unit: 'eps',
          queries: [
            {
              expr: 'sum by (upstream) (rate(sallyport_findings_total{at}[$__rate_interval]))',
              legend: '{{upstream}}',
            },
          ],
        },
      ],
    },
    {
      title: 'Approvals',
      panels: [
        {
          kind: 'series',
          title: 'Waiting for an answer',
          unit: 'short',
          width: 6,
          isStepped: true,
          queries: [{ expr: 'max by (party) (sallyport_approvals_waiting{own})', legend: '{{party}}' }],
        },
        {
          kind: 'series',
          title: 'Longest wait',
          unit: 's',
          width: 6,
          queries: [{ expr: 'max by (party) (sallyport_approvals_oldest_waiting_seconds{own})', legend: '{{party}}' }],
        },
        {
          kind: 'series',
          title: 'What became of them',
          description: 'Since the start of the gateways.',
          unit: 'short',
          width: 6,
          isStepped: true,
          queries: [{ expr: 'sum by (outcome) (sallyport_approvals_total{own})', legend: '{{outcome}}' }],
        },
        {
          kind: 'series',
          title: 'Time to an answer',
          unit: 's',
          width: 6,
          description: 'Of all answers since the start of the gateways.',
          queries: [0.5, 0.95].map((share) => ({
            expr: `histogram_quantile(${share}, sum by (party, le) (sallyport_approval_answer_seconds_bucket{own})) > 0`,
            legend: `{{party}} p${share * 100}`,
          })),
        },
      ],
    },
    {
      title: 'Controls',
      panels: [
        {
          kind: 'series',
          title: 'Controls by state',
          unit: 'short',
          isStacked: true,
          isStepped: true,
          queries: [{ expr: 'sum by (state) (sallyport_controls{own})', legend: '{{state}}' }],
        },
        {
          kind: 'series',
          title: 'Degraded controls by kind',
          description: 'The console and /api/controls name each and say why.',
          unit: 'short',
          isStepped: true,
          queries: [
            { expr: 'sum by (control) (sallyport_controls{own, state="degraded"}) > 0', legend: '{{control}}' },
          ],
        },
        {
          kind: 'table',
          title: 'Degraded now',
          width: 8,
          expr: 'sum by (instance, control) (sallyport_controls{own, state="degraded"}) > 0',
          columns: { instance: 'Gateway', control: 'Kind of control', Value: 'Number' },
        },
      ],
    },
  ],
};
