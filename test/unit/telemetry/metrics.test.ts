import { Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import type { Settings } from '../../../src/config/settings.js';
import { createEvents, type EventName, type GatewayEvents } from '../../../src/policy/events.js';
import type { Reason } from '../../../src/policy/reasons.js';
import { createControls } from '../../../src/telemetry/controls.js';
import { METRIC_NAMES, METRICS } from '../../../src/telemetry/metric-table.js';
import { createFamily, createMetrics, type Metrics } from '../../../src/telemetry/metrics.js';
import { NOW, sampleAnswer, sampleApproval, sampleRecord } from '../audit/samples.js';

const names = {
  upstreams: new Map([['github', {}]]),
  aggregates: new Map([['all', {}]]),
  issuers: new Map([['corp', {}]]),
} as unknown as Pick<Settings, 'upstreams' | 'aggregates' | 'issuers'>;

const AUDIT = {
  sinks: [{ type: 'file' }, { type: 'stdout' }],
  deliveries: [{ name: 'siem' }],
} as unknown as Settings['audit'];

function make(change: Partial<Settings['metrics']> = {}): Metrics {
  const metrics = { toolLabel: false, maxSeries: 5000, ...change };
  return createMetrics({ ...names, metrics, audit: AUDIT }, { version: '0.1.0', node: 'v20' });
}

const HASHES = { config: 'a', policy: 'b', pins: 'c' };

function emitTo<Name extends EventName>({ listeners }: Metrics, name: Name, event: GatewayEvents[Name]): void {
  listeners[name]?.(event);
}

function driftOf(upstream: string, change: string): GatewayEvents['drifted'] {
  return { upstream, kind: 'tool', name: 'get_issue', change, isPinned: true, suppressed: 0 };
}

/** Every series of our own, as `name{labels} value`. */
async function series(metrics: Metrics): Promise<string[]> {
  const text = await metrics.render();
  return text.split('\n').filter((line) => /^(mcp_|sallyport_)/.test(line));
}

async function valueIn(metrics: Metrics, name: string): Promise<number | undefined> {
  const line = (await series(metrics)).find((one) => one.startsWith(`${name} `));
  return line === undefined ? undefined : Number(line.slice(name.length + 1));
}

function refused(reason: Reason) {
  const { decision, result } = sampleRecord();
  return sampleRecord({
    decision: {
      ...decision,
      verdict: 'deny',
      action: 'refused',
      stage: 'decide',
      reasons: [reason],
    },
    result: { ...result, status: 'none' },
    latency: { auth: 0, policy: 0, inspect: 0, upstream: 0 },
  });
}

const CALL = 'upstream="github",mcp_method_name="tools/call"';

describe('createMetrics', () => {
  it('[O-79] says how an upstream answers', () => {
    const metrics = make();
    expect(metrics.loadOf('github')).toEqual({
      requests: 0,
      errors: 0,
      p50: undefined,
      p99: undefined,
    });
    const took = (upstream: number, status: 'ok' | 'error' = 'ok') => {
      const { latency, result } = sampleRecord();
      const record = { latency: { ...latency, upstream }, result: { ...result, status } };
      emitTo(metrics, 'ended', { record: sampleRecord(record), totalMs: upstream, suppressed: undefined });
    };
    for (let count = 0; count < 97; count += 1) took(15);
    took(400);
    took(400, 'error');
    took(900_000, 'error');
    expect(metrics.loadOf('github')).toEqual({ requests: 100, errors: 2, p50: 0.02, p99: 0.5 });
    expect(metrics.loadOf('other').requests).toBe(0);
  });

  it('[O-40] counts a call that was forwarded, and the time of each side', async () => {
    const metrics = make();
    emitTo(metrics, 'ended', { record: sampleRecord(), totalMs: 20, suppressed: undefined });
    const server = `{${CALL},error_type="",mcp_protocol_version="2025-11-25"}`;
    expect(await valueIn(metrics, `mcp_server_operation_duration_seconds_count${server}`)).toBe(1);
    expect(await valueIn(metrics, `mcp_server_operation_duration_seconds_sum${server}`)).toBe(0.02);
    const client = `{${CALL},error_type=""}`;
    expect(await valueIn(metrics, `mcp_client_operation_duration_seconds_sum${client}`)).toBe(0.012);
    const overhead = 'sallyport_overhead_seconds_sum{mcp_method_name="tools/call"}';
    expect(await valueIn(metrics, overhead)).toBeCloseTo(0.008, 9);
    const decisions = `sallyport_decisions_total{${CALL},verdict="allow",mode="enforce"}`;
    expect(await valueIn(metrics, decisions)).toBe(1);
    expect((await series(metrics)).join('\n')).not.toMatch(/^sallyport_denials_total\{.*\} [1-9]/m);
  });

  it('[O-40] counts a refusal by station and reason, and no time of an upstream', async () => {
    const metrics = make();
    emitTo(metrics, 'ended', { record: refused('no-matching-allow'), totalMs: 1, suppressed: undefined });
    emitTo(metrics, 'ended', { record: refused('no-matching-allow'), totalMs: 1, suppressed: undefined });
    const denials =
      'sallyport_denials_total{upstream="github",stage="decide",reason="no-matching-allow",mode="enforce"}';
    expect(await valueIn(metrics, denials)).toBe(2);
    const text = (await series(metrics)).join('\n');
    expect(text).toContain('error_type="no-matching-allow"');
    expect(text).not.toContain('mcp_client_operation_duration_seconds_count');
  });

  it('[O-40] counts a withheld result as allowed, refused to the reader', async () => {
    const metrics = make();
    const { decision } = sampleRecord();
    const withheld = {
      ...decision,
      action: 'withheld',
      stage: 'inspect',
      reasons: ['result-content'],
    };
    emitTo(metrics, 'ended', {
      record: sampleRecord({ decision: withheld as typeof decision }),
      totalMs: 20,
      suppressed: undefined,
    });
    expect(
      await valueIn(
        metrics,
        'sallyport_denials_total{upstream="github",stage="inspect",reason="result-content",mode="enforce"}',
      ),
    ).toBe(1);
    expect(await valueIn(metrics, `mcp_client_operation_duration_seconds_count{${CALL},error_type=""}`)).toBe(1);
  });

  it('counts what becomes of approvals, by the party that it concerns, and how long an answer takes', async () => {
    const metrics = make();
    const login = { proof: 'login', remember: undefined } as const;
    const both = sampleApproval({ demand: { ...sampleApproval().demand, caller: login } });
    const answer = sampleAnswer();
    const answered = { ...both, answers: [answer] };
    const change = (event: GatewayEvents['approval']) => emitTo(metrics, 'approval', event);
    change({ change: 'requested', approval: both });
    change({ change: 'granted', approval: answered, answer });
    change({ change: 'denied', approval: both, answer: sampleAnswer({ party: 'caller', verdict: 'denied' }) });
    // The reviewer has answered, the caller has not.
    change({ change: 'expired', approval: answered });
    change({ change: 'used', approval: { ...sampleApproval(), state: 'used' } });
    change({ change: 'used', approval: { ...sampleApproval(), state: 'used' }, isRemembered: true });
    change({ change: 'void', approval: { ...sampleApproval(), state: 'void' } });
    emitTo(metrics, 'approvalCrowded', { parties: ['reviewer'] });
    const text = (await series(metrics)).filter((line) => line.startsWith('sallyport_approval'));
    const counted = text.flatMap(
      (line) => /^sallyport_approvals_total\{(.*)\} ([1-9]\d*)$/.exec(line)?.slice(1).join(' ') ?? [],
    );
    expect(counted.sort()).toEqual(
      [
        'party="caller",outcome="requested" 1',
        'party="reviewer",outcome="requested" 1',
        'party="reviewer",outcome="granted" 1',
        'party="caller",outcome="denied" 1',
        'party="caller",outcome="expired" 1',
        'party="reviewer",outcome="used" 1',
        'party="reviewer",outcome="remembered" 1',
        'party="reviewer",outcome="mismatch" 1',
        'party="reviewer",outcome="crowded" 1',
      ].sort(),
    );
    const took = 'sallyport_approval_answer_seconds_sum{party="reviewer",outcome="granted"}';
    expect(await valueIn(metrics, took)).toBe((answer.atMs - NOW) / 1000);
  });

  it('says how many approvals wait, and for how long the oldest has', async () => {
    const metrics = make();
    const waiting = { caller: { count: 2, oldestMs: 90_000 }, reviewer: { count: 0, oldestMs: 0 } };
    emitTo(metrics, 'approvalsCounted', { waiting });
    expect(await valueIn(metrics, 'sallyport_approvals_waiting{party="caller"}')).toBe(2);
    expect(await valueIn(metrics, 'sallyport_approvals_waiting{party="reviewer"}')).toBe(0);
    expect(await valueIn(metrics, 'sallyport_approvals_oldest_waiting_seconds{party="caller"}')).toBe(90);
  });

  it('[O-40] knows the buckets that the contract states', async () => {
    const metrics = make();
    emitTo(metrics, 'ended', { record: sampleRecord(), totalMs: 20, suppressed: undefined });
    const text = await metrics.render();
    const bounds = (name: string) =>
      [...text.matchAll(new RegExp(`^${name}_bucket\\{le="([^"]+)"`, 'gm'))].map((found) => found[1]);
    const operation = bounds('mcp_server_operation_duration_seconds');
    expect([operation[0], operation.at(-2), operation.at(-1)]).toEqual(['0.01', '300', '+Inf']);
    const overhead = bounds('sallyport_overhead_seconds');
    expect([overhead[0], overhead.at(-2)]).toEqual(['0.00005', '0.1']);
  });

  it('[O-41] every metric of the table moves, with its labels', async () => {
    const metrics = make();
    const { result } = sampleRecord();
    const list = { advertised: 9, visible: 3, advertisedBytes: 900, visibleBytes: 300 };
    const { target } = sampleRecord();
    emitTo(metrics, 'ended', { record: sampleRecord(), totalMs: 20, suppressed: undefined });
    emitTo(metrics, 'ended', { record: refused('denied-by-rule'), totalMs: 20, suppressed: undefined });
    emitTo(metrics, 'ended', {
      record: sampleRecord({
        target: { ...target, method: 'tools/list', kind: undefined },
        result: { ...result, list },
        findings: [{ detector: 'card', direction: 'to-client', path: '/a', count: 4, action: 'redact' }],
      }),
      totalMs: 20,
      suppressed: undefined,
    });
    emitTo(metrics, 'unauthenticated', { reason: 'token-expired' });
    emitTo(metrics, 'controlChanged', {
      control: 'policy',
      state: 'armed',
      reason: '',
      isExpected: false,
      isRoutine: false,
    });
    emitTo(metrics, 'toolsCounted', { upstream: 'github', states: new Map([['approved', 12]]) });
    emitTo(metrics, 'drifted', driftOf('github', 'description'));
    emitTo(metrics, 'filesRead', { areValid: false, unsigned: ['github'], hashes: { config: 'c2' }, isPending: true });
    emitTo(metrics, 'listed', { upstream: 'github' });
    emitTo(metrics, 'hanging', { upstream: 'github', isHanging: true });
    emitTo(metrics, 'readinessChanged', { isReady: true, detail: '', isExpected: false });
    emitTo(metrics, 'keysFetched', { issuer: 'corp', atSeconds: 1_800_000_000, untilSeconds: 1_800_003_600 });
    emitTo(metrics, 'introspected', { issuer: 'corp', durationMs: 3, error: 'invalid' });
    emitTo(metrics, 'tokenRequested', { upstream: 'github', grant: 'token_exchange', durationMs: 3, error: '' });
    emitTo(metrics, 'certificatesRead', {
      certificates: [{ use: 'listener', name: 'data', expiresAtSeconds: 1_900_000_000 }],
    });
    emitTo(metrics, 'sessionsCounted', { counts: new Map([['2025-11-25', 6]]) });
    emitTo(metrics, 'clientLeft', { record: sampleRecord() });
    emitTo(metrics, 'storeUsed', { operation: 'poll', durationMs: 3, error: 'timeout' });
    metrics.auditWrite('file', 3, 'ENOSPC');
    emitTo(metrics, 'reloaded', { why: 'the files have errors', diagnostics: [], waiting: undefined });
    emitTo(metrics, 'configured', { ...names, hashes: HASHES });
    emitTo(metrics, 'pinsDated', { upstream: 'github', oldestSeconds: 1_700_000_000 });
    metrics.auditEvent('file', 'written', 3);
    metrics.setAuditQueue(5);
    metrics.setChainSeq(41);
    emitTo(metrics, 'blocksCounted', { target: 'tool', count: 2 });
    emitTo(metrics, 'storeChecked', { isUnreachable: true });
    emitTo(metrics, 'auditDelivered', { sink: 'siem', result: 'delivered', count: 2 });
    emitTo(metrics, 'auditSpaceChecked', { sink: 'file', freeBytes: 3 });
    emitTo(metrics, 'auditDeliveryChecked', { sink: 'siem', waitingBytes: 3, lagSeconds: 4 });
    emitTo(metrics, 'approval', { change: 'granted', approval: sampleApproval(), answer: sampleAnswer() });
    emitTo(metrics, 'spans', { outcome: 'dropped', count: 7 });
    emitTo(metrics, 'reviewersNotified', {
      webhook: 'team',
      outcome: 'delivered',
    } as GatewayEvents['reviewersNotified']);
    emitTo(metrics, 'approvalsCounted', {
      waiting: { caller: { count: 0, oldestMs: 0 }, reviewer: { count: 3, oldestMs: 1_500 } },
    });
    emitTo(metrics, 'inProgress', { upstream: 'github', delta: 1 });
    emitTo(metrics, 'inProgress', { upstream: 'github', delta: 1 });
    emitTo(metrics, 'inProgress', { upstream: 'github', delta: -1 });
    emitTo(metrics, 'streaming', { upstream: 'github', delta: 1 });
    const expected: Record<string, number> = {
      'sallyport_auth_failures_total{reason="token-expired"}': 1,
      'sallyport_controls{control="policy",state="armed"}': 1,
      'sallyport_controls{control="policy",state="degraded"}': 0,
      'sallyport_controls{control="policy",state="off"}': 0,
      'sallyport_tools{upstream="github",state="approved"}': 12,
      'sallyport_tool_drift_total{upstream="github",change="description"}': 1,
      'sallyport_tools_list_bytes{upstream="github",side="advertised"}': 900,
      'sallyport_tools_list_bytes{upstream="github",side="visible"}': 300,
      'sallyport_findings_total{upstream="github",direction="to-client",detector="card",action="redact"}': 4,
      'sallyport_inflight_requests{upstream="github"}': 1,
      'sallyport_open_streams{upstream="github"}': 1,
      'sallyport_upstream_up{upstream="github"}': 1,
      'sallyport_upstream_hanging{upstream="github"}': 1,
      sallyport_ready: 1,
      'sallyport_jwks_last_success_timestamp_seconds{issuer="corp"}': 1_800_000_000,
      'sallyport_jwks_expiry_timestamp_seconds{issuer="corp"}': 1_800_003_600,
      'sallyport_introspection_duration_seconds_count{issuer="corp",error_type="invalid"}': 1,
      'sallyport_token_request_duration_seconds_sum{upstream="github",grant="token_exchange",error_type=""}': 0.003,
      'sallyport_certificate_expiry_timestamp_seconds{use="listener",name="data"}': 1_900_000_000,
      'sallyport_pins_oldest_approval_timestamp_seconds{upstream="github"}': 1_700_000_000,
      'sallyport_sessions{mcp_protocol_version="2025-11-25"}': 6,
      'sallyport_sessions{mcp_protocol_version="2024-11-05"}': 0,
      'sallyport_client_disconnects_total{upstream="github",mcp_method_name="tools/call"}': 1,
      'sallyport_store_operation_duration_seconds_count{operation="poll",error_type="timeout"}': 1,
      'sallyport_audit_write_duration_seconds_count{sink="file",error_type="ENOSPC"}': 1,
      'sallyport_config_reloads_total{result="rejected"}': 1,
      'sallyport_config_info{config_hash="a",policy_hash="b",pins_hash="c"}': 1,
      'sallyport_audit_events_total{sink="file",result="written"}': 3,
      sallyport_audit_queue_length: 5,
      sallyport_audit_chain_seq: 41,
      sallyport_store_degraded: 1,
      'sallyport_approvals_waiting{party="reviewer"}': 3,
      'sallyport_approvals_oldest_waiting_seconds{party="reviewer"}': 1.5,
      'sallyport_approvals_total{party="reviewer",outcome="granted"}': 1,
      'sallyport_trace_spans_total{outcome="dropped"}': 7,
      'sallyport_build_info{version="0.1.0",node="v20"}': 1,
    };
    for (const [name, value] of Object.entries(expected)) {
      expect([name, await valueIn(metrics, name)]).toEqual([name, value]);
    }
    const lines = await series(metrics);
    for (const name of METRIC_NAMES) {
      const found = lines.find(
        (line) =>
          line.replace(/_(bucket|sum|count)?[{ ].*/, '') === name ||
          line.startsWith(`${name}{`) ||
          line.startsWith(`${name} `) ||
          line.startsWith(`${name}_count`),
      );
      expect([name, found === undefined]).toEqual([name, false]);
      const labels = [...(found ?? '').matchAll(/[{,]([a-z_]+)=/g)]
        .map((match) => match[1])
        .filter((label) => label !== 'le');
      expect(labels).toEqual(METRICS[name].labels);
    }
    expect(await metrics.render()).toContain('process_cpu_seconds_total');
  });

  it('[O-42] a hundred thousand names from the wire make no series', async () => {
    const metrics = make({ toolLabel: true });
    const { target, client, decision, result } = sampleRecord();
    const countSeries = async (): Promise<number> => (await series(metrics)).length;
    const send = (name: string): void => {
      emitTo(metrics, 'ended', {
        record: sampleRecord({
          upstream: name,
          target: { ...target, name, method: name, pin: undefined },
          client: { ...client, version: '2025-11-25' },
          decision: { ...decision, verdict: 'deny', reasons: ['method-unknown'] },
          result: { ...result, status: 'error', rpcCode: Number(name.slice(5)) },
        }),
        totalMs: 1,
        suppressed: undefined,
      });
      emitTo(metrics, 'unauthenticated', { reason: name });
      emitTo(metrics, 'unlisted', { upstream: name, url: '', detail: '' });
      emitTo(metrics, 'keysFetched', { issuer: name, atSeconds: 1, untilSeconds: 2 });
      emitTo(metrics, 'drifted', driftOf(name, 'output'));
    };
    send('name-0');
    const count = await countSeries();
    for (let index = 1; index < 100_000; index += 1) send(`name-${index}`);
    expect(await countSeries()).toBe(count);
    expect(await metrics.render()).not.toContain('name-');
  });

  it('[O-42] error codes that an upstream invents are one series', async () => {
    const metrics = make();
    const { result } = sampleRecord();
    for (let code = 1; code <= 500; code += 1) {
      emitTo(metrics, 'ended', {
        record: sampleRecord({ result: { ...result, status: 'error', rpcCode: code } }),
        totalMs: 1,
        suppressed: undefined,
      });
    }
    const server = `{${CALL},error_type="_OTHER",mcp_protocol_version="2025-11-25"}`;
    expect(await valueIn(metrics, `mcp_server_operation_duration_seconds_count${server}`)).toBe(500);
  });

  it('[O-42] counts what exceeds the series cap as _OTHER', async () => {
    const metrics = make({ maxSeries: 5 });
    for (let index = 0; index < 20; index += 1) emitTo(metrics, 'drifted', driftOf('github', `change-${index}`));
    const found = (await series(metrics)).filter((line) => line.startsWith('sallyport_tool_drift'));
    expect(found).toHaveLength(5);
    expect(found.at(-1)).toBe('sallyport_tool_drift_total{upstream="_OTHER",change="_OTHER"} 16');
  });

  it('[O-43] labels tools only where asked for, and only by pinned names', async () => {
    const metrics = make({ toolLabel: true });
    const { target } = sampleRecord();
    emitTo(metrics, 'ended', { record: sampleRecord(), totalMs: 1, suppressed: undefined });
    emitTo(metrics, 'ended', {
      record: sampleRecord({ target: { ...target, name: 'evil', pin: undefined } }),
      totalMs: 1,
      suppressed: undefined,
    });
    const text = (await series(metrics)).join('\n');
    expect(text).toContain('gen_ai_tool_name="get_issue"');
    expect(text).toContain('gen_ai_tool_name="_OTHER"');
    expect(text).not.toContain('evil');
    const plain = make();
    emitTo(plain, 'ended', { record: sampleRecord(), totalMs: 1, suppressed: undefined });
    expect(await plain.render()).not.toContain('gen_ai_tool_name');
  });

  it('[O-44] forgets controls and hashes that are no longer so', async () => {
    const metrics = make();
    emitTo(metrics, 'controlChanged', {
      control: 'authn:corp',
      state: 'armed',
      reason: '',
      isExpected: false,
      isRoutine: false,
    });
    emitTo(metrics, 'controlChanged', {
      control: 'policy',
      state: 'degraded',
      reason: '',
      isExpected: false,
      isRoutine: false,
    });
    emitTo(metrics, 'controlRemoved', { control: 'authn:corp' });
    emitTo(metrics, 'configured', { ...names, hashes: { ...HASHES, config: 'old' } });
    emitTo(metrics, 'configured', { ...names, hashes: { ...HASHES, config: 'new' } });
    const text = (await series(metrics)).join('\n');
    expect(text).toContain('sallyport_controls{control="authn",state="armed"} 0');
    expect(text).not.toContain('old');
    expect(text).toContain('sallyport_controls{control="policy",state="degraded"} 1');
  });

  it('[O-42] hides no state of a control, however many there are', async () => {
    const metrics = make({ maxSeries: 100 });
    const controls = createControls({ now: () => 0, emit: createEvents([metrics.listeners], () => undefined).emit });
    const kinds = ['pins', 'audience', 'binding', 'upstream-connection', 'upstream-identity'] as const;
    for (let index = 0; index < 500; index += 1) for (const kind of kinds) controls.set(`${kind}:u${index}`, 'armed');
    const countOf = (state: string) => valueIn(metrics, `sallyport_controls{control="pins",state="${state}"}`);
    expect([await countOf('armed'), await countOf('degraded')]).toEqual([500, 0]);
    controls.set('pins:u499', 'degraded', 'drifted');
    controls.set('pins:u499', 'degraded', 'drifted again');
    expect([await countOf('armed'), await countOf('degraded')]).toEqual([499, 1]);
    controls.remove('pins:u499');
    expect([await countOf('armed'), await countOf('degraded')]).toEqual([499, 0]);
    expect((await series(metrics)).filter((line) => line.startsWith('sallyport_controls{'))).toHaveLength(15);
  });

  it('[O-44] takes new names from a reload', async () => {
    const metrics = make();
    emitTo(metrics, 'configured', { ...names, upstreams: new Map([['jira', {}]]), hashes: HASHES });
    emitTo(metrics, 'listed', { upstream: 'jira' });
    emitTo(metrics, 'listed', { upstream: 'github' });
    expect(await valueIn(metrics, 'sallyport_upstream_up{upstream="jira"}')).toBe(1);
    expect(await valueIn(metrics, 'sallyport_upstream_up{upstream="_OTHER"}')).toBe(1);
  });

  it('[O-40] does not take the length of a stream for a duration', async () => {
    const metrics = make();
    emitTo(metrics, 'ended', { record: sampleRecord({ httpMethod: 'GET' }), totalMs: 300_000, suppressed: undefined });
    expect((await series(metrics)).join('\n')).not.toContain('duration_seconds_count');
  });
});

describe('histogram', () => {
  const ROW = { kind: 'histogram', help: 'How long.', labels: ['who'], buckets: [0.1, 1] } as const;

  describe('a histogram', () => {
    it('renders cumulative buckets, the sum and the count of each series', async () => {
      const registry = new Registry();
      const { write, clear } = createFamily('wait_seconds', ROW, registry, 10);
      for (const value of [0.1, 0.05, 0.5, 7, Number.NaN]) write(value, 'a "quoted" name');
      write(Number.NaN, 'idle');
      expect(await registry.metrics()).toBe(
        [
          '# HELP wait_seconds How long.',
          '# TYPE wait_seconds histogram',
          'wait_seconds_bucket{le="0.1",who="a \\"quoted\\" name"} 2',
          'wait_seconds_bucket{le="1",who="a \\"quoted\\" name"} 3',
          'wait_seconds_bucket{le="+Inf",who="a \\"quoted\\" name"} 4',
          'wait_seconds_sum{who="a \\"quoted\\" name"} 7.65',
          'wait_seconds_count{who="a \\"quoted\\" name"} 4',
          'wait_seconds_bucket{le="0.1",who="idle"} 0',
          'wait_seconds_bucket{le="1",who="idle"} 0',
          'wait_seconds_bucket{le="+Inf",who="idle"} 0',
          'wait_seconds_sum{who="idle"} 0',
          'wait_seconds_count{who="idle"} 0',
          '',
        ].join('\n'),
      );
      clear();
      expect(await registry.metrics()).not.toContain('_bucket');
    });
  });
});

describe('[G-01] series that are known before anything happens', () => {
  const upstreamsOf = (count: number) =>
    new Map(Array.from({ length: count }, (_, index) => [`s${index}`, {}])) as unknown as Settings['upstreams'];

  it('begin at 0, so that their first event is seen as one', async () => {
    const metrics = make();
    for (const name of [
      'sallyport_audit_events_total{sink="stdout",result="lost"}',
      'sallyport_audit_delivered_total{sink="siem",result="refused"}',
      'sallyport_config_reloads_total{result="rejected"}',
      'sallyport_auth_failures_total{reason="keys-unavailable"}',
      'sallyport_upstream_listings_total{upstream="github",result="failed"}',
      'sallyport_lock_signature_failures_total{upstream="github"}',
      'sallyport_denials_total{upstream="all",stage="settle",reason="store-unavailable",mode="enforce"}',
      'sallyport_approval_messages_total{outcome="dropped"}',
      'sallyport_trace_spans_total{outcome="failed"}',
    ])
      expect([name, await valueIn(metrics, name)]).toEqual([name, 0]);
    emitTo(metrics, 'reloaded', { why: 'invalid' } as GatewayEvents['reloaded']);
    expect(await valueIn(metrics, 'sallyport_config_reloads_total{result="rejected"}')).toBe(1);
    expect((await series(metrics)).filter((line) => line.includes('mcp_method_name="'))).toEqual([]);
    emitTo(metrics, 'configured', { ...names, upstreams: upstreamsOf(1), hashes: HASHES });
    expect(await valueIn(metrics, 'sallyport_lock_signature_failures_total{upstream="s0"}')).toBe(0);
  });

  it('leave half of the cap to what happens', async () => {
    const metrics = make({ maxSeries: 100 });
    emitTo(metrics, 'configured', { ...names, upstreams: upstreamsOf(500), hashes: HASHES });
    const count = async (name: string) => (await series(metrics)).filter((line) => line.startsWith(`${name}{`)).length;
    expect(await count('sallyport_denials_total')).toBe(50);
    expect(await count('sallyport_upstream_listings_total')).toBe(50);
  });

  it('of gauges go with the upstream or issuer that a reload removed', async () => {
    const metrics = make();
    emitTo(metrics, 'listed', { upstream: 'github' } as GatewayEvents['listed']);
    emitTo(metrics, 'toolsCounted', { upstream: 'github', states: new Map([['approved', 3]]) } as never);
    emitTo(metrics, 'inProgress', { upstream: 'github', delta: 1 });
    emitTo(metrics, 'keysFetched', { issuer: 'corp', atSeconds: 1, untilSeconds: 2 });
    const gauges = async () =>
      (await series(metrics)).filter((line) => /_(tools|up|hanging|inflight_requests|seconds)\{/.test(line));
    expect(await gauges()).toHaveLength(6);
    emitTo(metrics, 'configured', { ...names, hashes: HASHES });
    expect(await gauges()).toHaveLength(6);
    emitTo(metrics, 'configured', { ...names, upstreams: upstreamsOf(1), issuers: new Map(), hashes: HASHES });
    expect(await gauges()).toEqual([]);
  });
});
