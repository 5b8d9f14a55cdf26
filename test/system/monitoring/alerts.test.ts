// The alerting rules of config/prometheus, by Prometheus' own test of rules: each alert fires on series that mean what it
// says, with its text, and does not on series that are close to that.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { stringify } from 'yaml';
import { must, run } from '../programs.js';
import { type AlertingRule, alertingRules, RULES } from './rules.js';

/** Values a minute apart, as promtool writes them, by series. */
type Series = Readonly<Record<string, string>>;

type Case = {
  readonly fires: Series;
  readonly silent: Series;
  /** Labels of the alert besides its severity, and its summary. */
  readonly labels: Readonly<Record<string, string>>;
  readonly summary: string;
  /** When to look, in minutes. */
  readonly at?: number;
};

const FAILURES = 'mode="enforce",reason="store-unavailable",stage="settle",upstream="desk"';
const UPSTREAM_ERRORS = 'mode="enforce",reason="upstream-timeout",stage="forward",upstream="desk"';
const DECISIONS = 'sallyport_decisions_total{job="gateway",upstream="desk",verdict="allow",mode="enforce"}';

const ONE = { job: 'gateway', instance: 'a:9464' };
const AT_DESK = { ...ONE, upstream: 'desk' };
const JOB = { job: 'gateway' };

function of(name: string, labels: string): string {
  return `${name}{job="gateway",instance="a:9464"${labels === '' ? '' : `,${labels}`}}`;
}

/** A gauge of one gateway that fires while it has one value and not with another. */
function gauge(name: string, labels: string, on: number, off: number): Pick<Case, 'fires' | 'silent'> {
  return { fires: { [of(name, labels)]: `${on}+0x60` }, silent: { [of(name, labels)]: `${off}+0x60` } };
}

/** A counter of failures: its first value is one, since it is not there before; it is silent once nothing is added. */
function failures(name: string, labels: string): Pick<Case, 'fires' | 'silent' | 'at'> {
  return { fires: { [of(name, labels)]: '_x25 1+0x35' }, silent: { [of(name, labels)]: '7+0x60' }, at: 30 };
}

/** A histogram in seconds: two requests a minute, all but the slow ones below the first bound. */
function histogram(name: string, labels: string, [below, above]: readonly [number, number], slow: number): Series {
  const bucket = (le: string): string => of(`${name}_bucket`, [labels, `le="${le}"`].filter(Boolean).join(','));
  const fast = 60 - slow;
  return {
    [bucket(String(below))]: `0+${fast}x60`,
    [bucket(String(above))]: '0+60x60',
    [bucket('+Inf')]: '0+60x60',
  };
}

const CASES: Readonly<Record<string, Case>> = {
  SallyportAbsent: {
    fires: { 'up{job="other",instance="b"}': '1+0x60' },
    silent: { [of('sallyport_build_info', '')]: '1+0x60' },
    labels: {},
    summary: 'Prometheus scrapes no gateway',
  },
  SallyportDown: {
    fires: { [of('up', '')]: '1+0x20 0+0x40', [of('sallyport_build_info', '')]: '1+0x20' },
    silent: { 'up{job="other",instance="b"}': '0+0x60', [of('sallyport_build_info', '')]: '1+0x60' },
    labels: ONE,
    summary: 'a:9464 of gateway cannot be scraped',
  },
  SallyportNoneReady: {
    fires: { [of('sallyport_ready', '')]: '0+0x60', 'sallyport_ready{job="gateway",instance="b"}': '0+0x60' },
    silent: { [of('sallyport_ready', '')]: '0+0x60', 'sallyport_ready{job="gateway",instance="b"}': '1+0x60' },
    labels: JOB,
    summary: 'No gateway of gateway is ready',
  },
  SallyportNotReady: { ...gauge('sallyport_ready', '', 0, 1), labels: ONE, summary: 'a:9464 is not ready' },
  SallyportRestarts: {
    fires: {
      [of('process_start_time_seconds', '')]: '0+0x5 400+0x5 800+0x5 1200+0x40',
      [of('sallyport_build_info', '')]: '1+0x60',
    },
    silent: {
      'process_start_time_seconds{job="other",instance="b"}': '0+100x60',
      [of('process_start_time_seconds', '')]: '0+0x5 400+0x50',
      [of('sallyport_build_info', '')]: '1+0x60',
    },
    labels: ONE,
    summary: 'a:9464 has restarted 3 times in half an hour',
    at: 20,
  },
  SallyportCallsFail: {
    fires: { [of('sallyport_denials_total', FAILURES)]: '0+6x60', [DECISIONS]: '0+60x60' },
    // A policy refuses everything; failures are few.
    silent: {
      [of('sallyport_denials_total', FAILURES)]: '0+1x60',
      [of('sallyport_denials_total', 'mode="enforce",reason="denied-by-rule",stage="decide"')]: '0+59x60',
      [DECISIONS]: '0+60x60',
    },
    labels: JOB,
    summary: 'gateway refuses 10% of all requests because of failures',
  },
  SallyportRefusalsByFailure: {
    fires: { [of('sallyport_denials_total', FAILURES)]: '0+1x60' },
    silent: {
      [of('sallyport_denials_total', FAILURES)]: '5+0x60',
      [of('sallyport_denials_total', 'mode="enforce",reason="token-expired",stage="authn"')]: '0+5x60',
      [of('sallyport_denials_total', 'mode="shadow",reason="policy-error",stage="decide"')]: '0+5x60',
    },
    labels: { ...JOB, reason: 'store-unavailable' },
    summary: 'gateway refuses requests: store-unavailable',
  },
  SallyportUpstreamErrors: {
    fires: { [of('sallyport_denials_total', UPSTREAM_ERRORS)]: '0+15x60', [DECISIONS]: '0+60x60' },
    silent: { [of('sallyport_denials_total', UPSTREAM_ERRORS)]: '0+1x60', [DECISIONS]: '0+60x60' },
    labels: { ...JOB, upstream: 'desk' },
    summary: '25% of the requests for desk fail at the MCP server',
  },
  SallyportUpstreamDown: {
    ...gauge('sallyport_upstream_up', 'upstream="desk"', 0, 1),
    labels: AT_DESK,
    summary: 'a:9464 cannot list the MCP server desk',
  },
  SallyportUpstreamHangs: {
    ...gauge('sallyport_upstream_hanging', 'upstream="desk"', 1, 0),
    labels: AT_DESK,
    summary: 'a:9464 refuses requests for desk, which does not answer',
  },
  SallyportSlow: {
    fires: histogram('sallyport_overhead_seconds', 'mcp_method_name="tools/call"', [0.05, 0.1], 30),
    silent: histogram('sallyport_overhead_seconds', 'mcp_method_name="tools/call"', [0.025, 0.05], 0),
    labels: JOB,
    summary: 'One in a hundred requests spends 99ms or more in gateway itself',
  },
  SallyportUpstreamSlow: {
    fires: histogram('mcp_client_operation_duration_seconds', 'upstream="desk"', [10, 30], 30),
    silent: histogram('mcp_client_operation_duration_seconds', 'upstream="desk"', [5, 10], 2),
    labels: { ...JOB, upstream: 'desk' },
    summary: 'One in twenty requests for desk takes 28s or more',
  },
  SallyportRateLimited: {
    fires: { [of('sallyport_denials_total', 'mode="enforce",reason="rate-limited",upstream="desk"')]: '0+120x60' },
    silent: { [of('sallyport_denials_total', 'mode="enforce",reason="rate-limited",upstream="desk"')]: '0+30x60' },
    labels: { ...JOB, upstream: 'desk' },
    summary: '2 requests per second for desk exceed their rate limit',
  },
  SallyportTokensUnverifiable: {
    fires: { [of('sallyport_auth_failures_total', 'reason="keys-unavailable"')]: '0+1x60' },
    silent: { [of('sallyport_auth_failures_total', 'reason="token-expired"')]: '0+60x60' },
    labels: { ...JOB, reason: 'keys-unavailable' },
    summary: 'gateway cannot verify tokens: keys-unavailable',
  },
  SallyportIssuerUnreachable: {
    ...gauge('sallyport_jwks_last_success_timestamp_seconds', 'issuer="corp"', 0, 1_000),
    labels: { ...ONE, issuer: 'corp' },
    summary: 'a:9464 has had no keys of the issuer corp for 45m 0s',
    at: 45,
  },
  SallyportIssuerKeysExpired: {
    ...gauge('sallyport_jwks_expiry_timestamp_seconds', 'issuer="corp"', 60, 9_999),
    labels: { ...ONE, issuer: 'corp' },
    summary: 'a:9464 refuses every token of the issuer corp, whose keys are too old',
  },
  SallyportIntrospectionFails: {
    fires: {
      [of('sallyport_introspection_duration_seconds_count', 'issuer="corp",error_type="unavailable"')]: '0+6x60',
      [of('sallyport_introspection_duration_seconds_count', 'issuer="corp",error_type=""')]: '0+18x60',
    },
    silent: {
      [of('sallyport_introspection_duration_seconds_count', 'issuer="corp",error_type="unavailable"')]: '0+1x60',
      [of('sallyport_introspection_duration_seconds_count', 'issuer="corp",error_type=""')]: '0+59x60',
    },
    labels: { ...JOB, issuer: 'corp' },
    summary: '25% of the introspections at corp fail',
  },
  SallyportUpstreamTokensFail: {
    fires: {
      [of('sallyport_token_request_duration_seconds_count', 'upstream="desk",error_type="unavailable"')]: '0+6x60',
    },
    silent: { [of('sallyport_token_request_duration_seconds_count', 'upstream="desk",error_type=""')]: '0+6x60' },
    labels: { ...JOB, upstream: 'desk' },
    summary: '100% of the requests for tokens for desk fail',
  },
  SallyportCertificateExpiresNow: {
    ...gauge('sallyport_certificate_expiry_timestamp_seconds', 'use="listener",name="data"', 100_000, 200_000),
    labels: { ...ONE, use: 'listener', name: 'data' },
    summary: 'The certificate of a:9464 for listener data expires within two days',
  },
  SallyportCertificateExpires: {
    fires: { [of('sallyport_certificate_expiry_timestamp_seconds', 'use="upstream",name="desk"')]: '800000+0x90' },
    silent: { [of('sallyport_certificate_expiry_timestamp_seconds', 'use="upstream",name="desk"')]: '1300000+0x90' },
    labels: { ...ONE, use: 'upstream', name: 'desk' },
    summary: 'The certificate of a:9464 for upstream desk expires within two weeks',
    at: 75,
  },
  SallyportTokensRefused: {
    fires: {
      [of('sallyport_auth_failures_total', 'reason="token-audience"')]: '0+45x60',
      [DECISIONS]: '0+60x60',
    },
    // A client that has no token yet asks without one, and is told where to get it.
    silent: {
      [of('sallyport_auth_failures_total', 'reason="token-missing"')]: '0+58x60',
      [of('sallyport_auth_failures_total', 'reason="token-expired"')]: '0+2x60',
      [DECISIONS]: '0+60x60',
    },
    labels: JOB,
    summary: 'gateway refuses the tokens of 75% of all requests',
  },
  SallyportStoreUnreachable: {
    ...gauge('sallyport_store_degraded', '', 1, 0),
    labels: ONE,
    summary: 'a:9464 cannot reach the shared store',
  },
  SallyportStoreSlow: {
    fires: histogram('sallyport_store_operation_duration_seconds', 'operation="poll"', [0.1, 0.25], 30),
    silent: histogram('sallyport_store_operation_duration_seconds', 'operation="poll"', [0.05, 0.1], 0),
    labels: JOB,
    summary: 'One in a hundred operations of the shared store takes 247ms or more in gateway',
  },
  SallyportAuditFails: {
    ...failures('sallyport_audit_events_total', 'sink="file",result="lost"'),
    labels: { ...ONE, sink: 'file', result: 'lost' },
    summary: 'a:9464 cannot write audit lines to file: lost',
  },
  SallyportAuditSlow: {
    fires: histogram('sallyport_audit_write_duration_seconds', 'sink="file"', [0.25, 0.5], 30),
    silent: histogram('sallyport_audit_write_duration_seconds', 'sink="file"', [0.1, 0.25], 0),
    labels: { ...ONE, sink: 'file' },
    summary: 'One in a hundred writes of a:9464 to the audit sink file takes 495ms or more',
  },
  SallyportAuditSpaceLow: {
    ...gauge('sallyport_controls', 'control="audit-space",state="degraded"', 1, 0),
    labels: { ...ONE, control: 'audit-space', state: 'degraded' },
    summary: 'The volume of the audit files of a:9464 is nearly full',
  },
  SallyportAuditSpaceEnds: {
    fires: { [of('sallyport_audit_free_bytes', 'sink="file"')]: '1000000-1000x480' },
    // Four days are left.
    silent: { [of('sallyport_audit_free_bytes', 'sink="file"')]: '6240000-1000x480' },
    labels: { ...ONE, sink: 'file' },
    summary: 'The volume of the audit sink file of a:9464 is full within three days',
    at: 480,
  },
  SallyportAuditDeliveryLags: {
    ...gauge('sallyport_audit_delivery_lag_seconds', 'sink="siem"', 600, 200),
    labels: { ...ONE, sink: 'siem' },
    summary: 'siem lacks audit lines of a:9464 that are 10m 0s old',
  },
  SallyportAuditLinesRefused: {
    ...failures('sallyport_audit_delivered_total', 'sink="siem",result="refused"'),
    labels: { ...ONE, sink: 'siem', result: 'refused' },
    summary: 'siem refuses audit lines of a:9464',
  },
  SallyportDefinitionsDrifted: {
    fires: { [of('sallyport_tools', 'upstream="desk",state="changed"')]: '2+0x60' },
    silent: {
      [of('sallyport_tools', 'upstream="desk",state="approved"')]: '5+0x60',
      [of('sallyport_tools', 'upstream="desk",state="pending"')]: '1+0x60',
      [of('sallyport_tools', 'upstream="desk",state="changed"')]: '0+0x60',
    },
    labels: { ...AT_DESK, state: 'changed' },
    summary: 'Hidden tools of desk: 2 changed',
  },
  SallyportDriftSeen: {
    ...failures('sallyport_tool_drift_total', 'upstream="desk",change="description"'),
    labels: { ...JOB, upstream: 'desk', change: 'description' },
    summary: 'desk changed definitions: description',
  },
  SallyportLockFileRefused: {
    ...failures('sallyport_lock_signature_failures_total', 'upstream="desk"'),
    labels: AT_DESK,
    summary: 'a:9464 refuses the lock file of desk because of its signatures or its counter',
  },
  SallyportConfigurationRejected: {
    ...gauge('sallyport_config_last_reload_successful', '', 0, 1),
    labels: ONE,
    summary: 'a:9464 has rejected its files and keeps the previous version',
  },
  SallyportRestartPending: {
    ...gauge('sallyport_config_restart_pending', '', 1, 0),
    labels: ONE,
    summary: 'Keys of the gateway file of a:9464 wait for a restart',
  },
  SallyportReplicasDiffer: {
    fires: {
      [of('sallyport_config_info', 'config_hash="1",policy_hash="1",pins_hash="1"')]: '1+0x60',
      'sallyport_config_info{job="gateway",instance="b",config_hash="1",policy_hash="2",pins_hash="1"}': '1+0x60',
    },
    silent: {
      [of('sallyport_config_info', 'config_hash="1",policy_hash="1",pins_hash="1"')]: '1+0x60',
      'sallyport_config_info{job="gateway",instance="b",config_hash="1",policy_hash="1",pins_hash="1"}': '1+0x60',
      'sallyport_config_info{job="other",instance="c",config_hash="2",policy_hash="1",pins_hash="1"}': '1+0x60',
    },
    labels: JOB,
    summary: 'The gateways of gateway run with 2 different configurations',
  },
  SallyportControlsDegraded: {
    ...gauge('sallyport_controls', 'control="pins",state="degraded"', 3, 0),
    labels: { ...ONE, control: 'pins' },
    summary: 'Degraded controls of a:9464: 3 of kind pins',
  },
  SallyportBlocksInForce: {
    ...gauge('sallyport_blocks', 'target="tool"', 1, 0),
    labels: { ...JOB, target: 'tool' },
    summary: 'Blocks in force in gateway: 1 of kind tool',
  },
  SallyportApprovalsWait: {
    fires: { [of('sallyport_approvals_oldest_waiting_seconds', 'party="reviewer"')]: '420+0x60' },
    silent: {
      [of('sallyport_approvals_oldest_waiting_seconds', 'party="reviewer"')]: '60+0x60',
      [of('sallyport_approvals_oldest_waiting_seconds', 'party="caller"')]: '900+0x60',
    },
    labels: { ...JOB, party: 'reviewer' },
    summary: 'A request has waited 7m 0s for a reviewer',
  },
  SallyportApprovalMessagesLost: {
    ...failures('sallyport_approval_messages_total', 'outcome="failed"'),
    labels: { ...ONE, outcome: 'failed' },
    summary: 'a:9464 cannot notify reviewers: failed',
  },
  SallyportEventLoopBlocked: {
    fires: {
      [of('nodejs_eventloop_lag_p99_seconds', '')]: '0.3+0x60',
      [of('sallyport_build_info', '')]: '1+0x60',
    },
    silent: {
      [of('nodejs_eventloop_lag_p99_seconds', '')]: '0.01+0x60',
      'nodejs_eventloop_lag_p99_seconds{job="other",instance="b"}': '3+0x60',
      [of('sallyport_build_info', '')]: '1+0x60',
    },
    labels: ONE,
    summary: 'The event loop of a:9464 is blocked for 300ms at times',
  },
  SallyportSpansLost: {
    fires: { [of('sallyport_trace_spans_total', 'outcome="dropped"')]: '0+5x60' },
    silent: { [of('sallyport_trace_spans_total', 'outcome="exported"')]: '0+5x60' },
    labels: ONE,
    summary: 'a:9464 loses spans',
  },
};

function testsOf({ alert, labels, annotations }: AlertingRule, given: Case): readonly object[] {
  const inputs = (series: Series) => Object.entries(series).map(([name, values]) => ({ series: name, values }));
  const at = `${given.at ?? 45}m`;
  const fired = {
    exp_labels: { ...labels, ...given.labels },
    exp_annotations: { ...annotations, summary: given.summary },
  };
  return [
    { name: `${alert} fires`, series: given.fires, expected: [fired] },
    { name: `${alert} is silent`, series: given.silent, expected: [] },
  ].map(({ name, series, expected }) => ({
    name,
    interval: '1m',
    input_series: inputs(series),
    alert_rule_test: [{ alertname: alert, eval_time: at, exp_alerts: expected }],
  }));
}

/** Rules of their own for each alert: promtool evaluates every rule that it has loaded in every minute. */
async function writeTest(folder: string, rule: AlertingRule, given: Case): Promise<string> {
  const [rules, test] = [join(folder, `${rule.alert}.rules.yaml`), join(folder, `${rule.alert}.test.yaml`)];
  await writeFile(rules, stringify({ groups: [{ name: 'one', rules: [rule] }] }));
  await writeFile(test, stringify({ rule_files: [rules], evaluation_interval: '1m', tests: testsOf(rule, given) }));
  return test;
}

it('[R-19] each alert fires on what it says, with its text, and on nothing close to it', async () => {
  const rules = await alertingRules();
  expect(Object.keys(CASES)).toEqual(rules.map(({ alert }) => alert));
  await must('promtool', ['check', 'rules', RULES]);
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-alerts-'));
  try {
    const tests = rules.map((rule) => writeTest(folder, rule, CASES[rule.alert] as Case));
    const tested = await run('promtool', ['test', 'rules', ...(await Promise.all(tests))]);
    expect(`${tested.stdout}${tested.stderr}`).not.toContain('FAILED');
    expect(tested.code).toBe(0);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
