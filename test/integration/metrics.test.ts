// Each metric of docs/reference/metrics.md, seen to move by what it counts, through the running gateway.

import { describe, expect, it } from 'vitest';
import { jsonBody, onMethod, resultFor, textResult } from '../support/hostile-acts.js';
import { HONEST_TOOLS, startHostileUpstream } from '../support/hostile-upstream.js';
import { makeGithubToken } from '../support/secrets.js';
import {
  bearer,
  callStateless,
  post,
  requestStateless,
  sessionHeaders,
  statelessParts,
} from '../support/wire-client.js';
import { sharedGateway, untilTestEnds, withGateway } from '../support/with-gateway.js';

type Labels = { readonly [name: string]: string };

/** The sum of the samples of one name whose labels include these; NaN where there is none. */
function sumOf(text: string, name: string, labels: Labels = {}): number {
  const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
  const values = text
    .split('\n')
    .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
    .filter((line) => wanted.every((label) => line.includes(label)))
    .map((line) => Number(line.slice(line.lastIndexOf(' ') + 1)));
  return values.length === 0 ? Number.NaN : values.reduce((sum, value) => sum + value, 0);
}

describe('the metrics of a running gateway', () => {
  const rig = sharedGateway();

  const call = (): Promise<unknown> => callStateless(rig.access, 'read_record', { id: 'one' });
  const upstream = 'target';

  async function expectMore(name: string, labels: Labels, act: () => unknown): Promise<void> {
    const before = sumOf(await rig.gateway.metrics(), name, labels);
    await act();
    await expect
      .poll(async () => sumOf(await rig.gateway.metrics(), name, labels), { timeout: 5_000 })
      .toBeGreaterThan(Number.isNaN(before) ? 0 : before);
  }

  const tools = { upstream, mcp_method_name: 'tools/call' };

  it.each([
    ['mcp_server_operation_duration_seconds_count', { ...tools, error_type: '', mcp_protocol_version: '2026-07-28' }],
    ['mcp_server_operation_duration_seconds_sum', tools],
    ['mcp_client_operation_duration_seconds_count', { ...tools, error_type: '' }],
    ['sallyport_overhead_seconds_count', { mcp_method_name: 'tools/call' }],
    ['sallyport_decisions_total', { ...tools, verdict: 'allow', mode: 'enforce' }],
    ['sallyport_audit_events_total', { sink: 'file', result: 'written' }],
    ['sallyport_audit_write_duration_seconds_count', { sink: 'file', error_type: '' }],
    ['sallyport_audit_chain_seq', {}],
  ] as const)('[G-01] a call moves %s', (name, labels) => expectMore(name, labels, call));

  it('[G-01] a refusal moves decisions, denials and the error type of durations', async () => {
    const refuse = (): Promise<unknown> => callStateless(rig.access, 'no_such_tool');
    await expectMore(
      'sallyport_denials_total',
      { upstream, stage: 'decide', reason: 'no-matching-allow', mode: 'enforce' },
      async () => {
        await rig.gateway.writePolicy('open', READ_ONLY);
        await rig.gateway.reload();
        await refuse();
      },
    );
    await expectMore('sallyport_decisions_total', { ...tools, verdict: 'deny' }, refuse);
    await expectMore(
      'mcp_server_operation_duration_seconds_count',
      { ...tools, error_type: 'no-matching-allow' },
      refuse,
    );
  });

  it('[G-01] an error of the upstream is told apart from ours', async () => {
    rig.upstream.obeyOnce(
      onMethod('tools/call', (request) =>
        jsonBody({ jsonrpc: '2.0', id: request.id ?? 0, error: { code: -32603, message: 'no' } }),
      ),
    );
    await expectMore('mcp_client_operation_duration_seconds_count', { error_type: '-32603' }, call);
    rig.upstream.obeyOnce(onMethod('tools/call', () => ({ kind: 'destroy' })));
    await expectMore('mcp_client_operation_duration_seconds_count', { error_type: 'upstream-unavailable' }, call);
  });

  it('[G-01] a bad token moves the failures of authentication', () =>
    expectMore('sallyport_auth_failures_total', { reason: 'token-malformed' }, () =>
      callStateless(rig.as('x.y'), 'read_record'),
    ));

  it('[G-01] a list moves the bytes of lists, on both sides', async () => {
    await rig.gateway.writePolicy('open', READ_ONLY.replace('"write_*"', '"none_*"'));
    await rig.gateway.reload();
    const bytes = async (side: string): Promise<number> =>
      sumOf(await rig.gateway.metrics(), 'sallyport_tools_list_bytes', { upstream, side });
    expect(await bytes('visible')).toBeNaN();
    await requestStateless(rig.access, 'tools/list');
    const visible = await bytes('visible');
    expect(visible).toBeGreaterThan(100);
    expect(await bytes('advertised')).toBeGreaterThan(visible);
  });

  it('[G-01] a finding moves the findings', () =>
    expectMore('sallyport_findings_total', { upstream, direction: 'to-client', action: 'redact' }, async () => {
      rig.upstream.obeyOnce(
        onMethod('tools/call', (request) => jsonBody(resultFor(request, textResult(makeGithubToken())))),
      );
      await call();
    }));

  it('[G-01] a drift moves the tools and their drifts', async () => {
    const counted = async (state: string): Promise<number> =>
      sumOf(await rig.gateway.metrics(), 'sallyport_tools', { upstream, state });
    expect(await counted('approved')).toBe(2);
    await expectMore('sallyport_tool_drift_total', { upstream, change: 'description' }, async () => {
      rig.upstream.offer(() => HONEST_TOOLS.map((tool) => ({ ...tool, description: 'New.' })));
      await requestStateless(rig.access, 'tools/list');
    });
    expect(await counted('changed')).toBe(2);
    expect(await counted('approved')).toBe(0);
  });

  it('[G-01] what runs and what is open goes up, and down again', async () => {
    const read = async (name: string): Promise<number> => sumOf(await rig.gateway.metrics(), name, { upstream });
    const held = new AbortController();
    rig.upstream.obey(onMethod('tools/list', () => ({ kind: 'hold' })));
    const parts = statelessParts('tools/list');
    const waiting = fetch(rig.access.url, {
      method: 'POST',
      headers: {
        ...parts.headers,
        ...bearer(rig.access.token),
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify(parts.body),
      signal: held.signal,
    }).catch(() => undefined);
    await expect.poll(() => read('sallyport_inflight_requests')).toBe(1);
    const broken = { upstream, mcp_method_name: 'tools/list' };
    await expectMore('sallyport_client_disconnects_total', broken, async () => {
      held.abort();
      await waiting;
    });
    await expect.poll(() => read('sallyport_inflight_requests')).toBe(0);
    rig.upstream.obey(() => undefined);

    const session = await rig.openSession();
    const left = new AbortController();
    const headers = {
      ...bearer(rig.access.token),
      ...sessionHeaders(session.id),
      accept: 'text/event-stream',
    };
    const stream = await fetch(rig.access.url, { headers, signal: left.signal });
    expect(stream.status).toBe(200);
    await expect.poll(() => read('sallyport_open_streams')).toBe(1);
    const sessions = { mcp_protocol_version: '2025-11-25' };
    await expect
      .poll(async () => sumOf(await rig.gateway.metrics(), 'sallyport_sessions', sessions), { timeout: 5_000 })
      .toBe(1);
    left.abort();
    await expect.poll(() => read('sallyport_open_streams')).toBe(0);
  });

  it('[G-01] a reload moves the reloads and the hashes of the configuration', async () => {
    const hashes = async (): Promise<string | undefined> =>
      (await rig.gateway.metrics()).split('\n').find((line) => /^sallyport_config_info\{/.test(line));
    const before = await hashes();
    expect(before).toMatch(/^sallyport_config_info\{config_hash="[^"]+",policy_hash="[^"]+",pins_hash="[^"]+"\} 1$/);
    await expectMore('sallyport_config_reloads_total', { result: 'applied' }, async () => {
      await rig.gateway.writePolicy('open', `${READ_ONLY}# changed\n`);
      await rig.gateway.reload();
    });
    expect(await hashes()).not.toBe(before);
    await expectMore('sallyport_config_reloads_total', { result: 'rejected' }, async () => {
      await rig.gateway.writePolicy('open', 'version: 2\n');
      await rig.gateway.reload();
    });
    const last = async (): Promise<number> =>
      sumOf(await rig.gateway.metrics(), 'sallyport_config_last_reload_successful');
    expect(await last()).toBe(0);
    await rig.gateway.writePolicy('open', `${READ_ONLY}# changed\n`);
    await rig.gateway.reload();
    expect(await last()).toBe(1);
  });

  it('[G-01] the gauges of the gateway itself say what is', async () => {
    const text = await rig.gateway.metrics();
    expect(sumOf(text, 'sallyport_upstream_up', { upstream })).toBe(1);
    expect(sumOf(text, 'sallyport_jwks_last_success_timestamp_seconds', { issuer: 'test' })).toBeGreaterThan(
      1_600_000_000,
    );
    expect(sumOf(text, 'sallyport_controls', { control: 'policy', state: 'armed' })).toBe(1);
    expect(sumOf(text, 'sallyport_controls', { control: 'admin', state: 'off' })).toBe(1);
    expect(sumOf(text, 'sallyport_jwks_expiry_timestamp_seconds', { issuer: 'test' })).toBeGreaterThan(
      sumOf(text, 'sallyport_jwks_last_success_timestamp_seconds', { issuer: 'test' }),
    );
    expect(sumOf(text, 'sallyport_pins_oldest_approval_timestamp_seconds', { upstream })).toBeGreaterThan(
      1_600_000_000,
    );
    expect(sumOf(text, 'sallyport_upstream_listings_total', { upstream, result: 'succeeded' })).toBeGreaterThan(0);
    expect(sumOf(text, 'sallyport_build_info')).toBe(1);
    expect(sumOf(text, 'sallyport_store_degraded')).toBe(0);
    expect(sumOf(text, 'sallyport_audit_queue_length')).toBeGreaterThanOrEqual(0);
    expect(sumOf(text, 'process_cpu_seconds_total')).toBeGreaterThan(0);
  });

  it('[G-02] no name from the wire becomes a label', async () => {
    const before = (await rig.gateway.metrics()).split('\n').length;
    for (let i = 0; i < 200; i += 1) {
      const name = `wire_${i}`;
      const body = {
        jsonrpc: '2.0',
        id: i,
        method: name,
        params: statelessParts('x').body['params'],
      };
      await callStateless(rig.access, name);
      await post(rig.access, JSON.stringify(body as never), {
        ...statelessParts('x').headers,
        'mcp-method': name,
      });
    }
    const text = await rig.gateway.metrics();
    expect(text).not.toContain('wire_');
    expect(text.split('\n').length - before).toBeLessThan(60);
  });
});

describe('the metrics of more upstreams than the cap of series has room for', () => {
  it('[G-02] show that the last of them drifts', async () => {
    const [honest, last] = await Promise.all([
      untilTestEnds(startHostileUpstream()),
      untilTestEnds(startHostileUpstream()),
    ]);
    const upstreams = Array.from({ length: 7 }, (_, index) => ({ name: `u${index}`, url: honest.url }));
    upstreams.push({ name: 'z', url: last.url });
    const many = { upstreams, more: 'metrics: {toolLabel: false, maxSeries: 100}\n' };
    await withGateway(many, async (gateway) => {
      const pins = async (state: string): Promise<number> =>
        sumOf(await gateway.metrics(), 'sallyport_controls', { control: 'pins', state });
      await expect.poll(() => pins('armed'), { timeout: 5_000 }).toBe(8);
      last.offer(() => HONEST_TOOLS.map((tool) => ({ ...tool, description: 'New.' })));
      await requestStateless({ url: gateway.url('z'), token: await gateway.token('z') }, 'tools/list');
      await expect.poll(() => pins('degraded'), { timeout: 5_000 }).toBe(1);
      expect(await pins('armed')).toBe(7);
      expect(gateway.log()).toContain('"control":"pins:z","state":"degraded"');
    });
  });
});

const READ_ONLY = `version: 1
policy: open
rules:
  - id: all
    effect: allow
    who: {anyone: true}
    what: {upstreams: ["*"], tools: ["read_*", "write_*"], prompts: ["*"], resources: ["**"]}
`;
