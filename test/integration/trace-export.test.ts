// What of traces leaves the gateway: spans to a receiver of OTLP over HTTP, which say of a request what the record says and
// nothing that its parties wrote. Source: OpenTelemetry, semantic conventions for MCP; OpenTelemetry Protocol, OTLP/HTTP.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { connectTo, startMergedRig } from '../support/deployments.js';
import { type AttackRig, decisionOf, linesOf } from '../support/gateway.js';
import { onMethod, resultFor, sseEvent, textResult } from '../support/hostile-acts.js';
import type { JsonObject } from '../support/json.js';
import { type ReceivedSpan, startOtlpReceiver, tracingTo } from '../support/otlp-receiver.js';
import { openRawSession, postRaw } from '../support/raw-mcp.js';
import { connectSdkV1, connectSdkV2 } from '../support/sdk-clients.js';
import { PATIENT } from '../support/timing.js';
import { makeAuthority, startTlsFront } from '../support/tls.js';
import { callStateless, type Reply } from '../support/wire-client.js';
import { shared, sharedGateway, withGateway, withStarted } from '../support/with-gateway.js';

const SERVER = 2;
const CLIENT = 3;
const FAILED = 2;
const CALL = { name: 'read_record', arguments: { id: 'one' } };

const receiver = shared(startOtlpReceiver);
afterEach(() => receiver.forget());

/** The spans of the trace of a decision, once its root has come. */
async function spansOf(id: string): Promise<readonly ReceivedSpan[]> {
  const rootOf = (spans: readonly ReceivedSpan[]) =>
    spans.find(({ attributes }) => attributes['sallyport.decision.id'] === id);
  await expect.poll(() => rootOf(receiver.spans()), PATIENT).toBeDefined();
  const root = rootOf(receiver.spans());
  return receiver.trace(root?.traceId ?? '');
}

function only(spans: readonly ReceivedSpan[], kind: number): ReceivedSpan {
  const found = spans.filter((span) => span.kind === kind);
  expect(found).toHaveLength(1);
  return found[0] as ReceivedSpan;
}

const RECEIVER_KEY = `of-the-receiver-${'x'.repeat(8)}`;
const HEADERS = 'headers: {X-Receiver-Key: {env: OTLP}}, network:';

describe('[TRC-07] the spans of a request', () => {
  const rig = sharedGateway(() => ({
    more: tracingTo(receiver, ', callers: hashed').replace('network:', HEADERS),
    env: { OTLP: RECEIVER_KEY },
  }));
  const serverSpans = () => receiver.spans().filter(({ kind }) => kind === SERVER);
  const accessOf = ({ access: { token = '' } }: AttackRig) => ({ token });
  const calls = () => serverSpans().filter(({ name }) => name === 'tools/call read_record');

  it('go with the headers that are configured, and are counted', async () => {
    await callStateless(rig.access, CALL.name, CALL.arguments);
    await expect.poll(serverSpans, PATIENT).not.toHaveLength(0);
    const [request] = receiver.requests();
    expect(request).toMatchObject({ path: '/v1/traces' });
    expect(request?.headers).toMatchObject({ 'x-receiver-key': RECEIVER_KEY, 'content-type': 'application/json' });
    const exported = async () =>
      /^sallyport_trace_spans_total\{outcome="exported"\} [1-9]/m.test(await rig.gateway.metrics());
    await expect.poll(exported, PATIENT).toBe(true);
    expect(await rig.gateway.metrics()).toContain('sallyport_controls{control="tracing",state="armed"} 1');
  });

  it('tell callers apart by a keyed hash where that is chosen', async () => {
    await callStateless(rig.access, CALL.name, CALL.arguments);
    await callStateless(rig.as(await rig.gateway.token('target', { sub: 'bob' })), CALL.name, CALL.arguments);
    await expect.poll(serverSpans, PATIENT).toHaveLength(2);
    const [one, other] = serverSpans().map(({ attributes }) => attributes['user.hash']);
    expect(one).toMatch(/^[\w-]{20,}$/);
    expect(other).not.toBe(one);
    expect(JSON.stringify(receiver.requests())).not.toMatch(/alice|bob/);
  });

  it('are there for each request of a session of the official client', async () => {
    const { client, close } = await connectSdkV1(rig.access.url, accessOf(rig));
    await client.callTool(CALL);
    await close();
    await expect.poll(calls, PATIENT).toHaveLength(1);
    expect(receiver.spans().map(({ name }) => name)).toEqual(
      expect.arrayContaining(['initialize', 'notifications/initialized']),
    );
  });

  it('and of one without a session', async () => {
    const { client, close } = await connectSdkV2(rig.access.url, '2026', accessOf(rig));
    await client.callTool(CALL);
    await close();
    await expect.poll(calls, PATIENT).toHaveLength(1);
  });

  it('are sent to the receiver: the server, the upstream, and the stages between', async () => {
    const reply = await callStateless(rig.access, CALL.name, CALL.arguments);
    const { id } = decisionOf(reply);
    const spans = await spansOf(id);
    const server = only(spans, SERVER);
    const client = only(spans, CLIENT);
    expect(server).toMatchObject({ name: 'tools/call read_record', parentSpanId: undefined, links: [], status: 0 });
    expect(server.attributes).toMatchObject({
      'mcp.method.name': 'tools/call',
      'mcp.protocol.version': '2026-07-28',
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'read_record',
      'http.request.method': 'POST',
      'http.response.status_code': 200,
      'sallyport.upstream': 'target',
      'sallyport.decision.verdict': 'allow',
      'sallyport.arguments.size': 12,
      'sallyport.result.size': Buffer.byteLength(reply.text),
    });
    expect(server.resource).toMatchObject({ 'service.name': 'sallyport', 'service.version': '0.0.0-test' });
    expect(client).toMatchObject({ name: 'tools/call read_record', parentSpanId: server.spanId, status: 0 });
    const stages = spans.filter(({ kind }) => kind !== SERVER && kind !== CLIENT);
    expect(stages.map(({ name }) => name)).toEqual(expect.arrayContaining(['authn', 'decide', 'guard', 'inspect']));
    for (const span of [...stages, client]) {
      expect(span.parentSpanId).toBe(server.spanId);
      expect(span.start).toBeGreaterThanOrEqual(server.start);
      expect(span.end).toBeLessThanOrEqual(server.end + 1_000_000n);
    }
    const sent = rig.upstream.uses().at(-1);
    expect(sent?.headers['traceparent']).toBe(`00-${client.traceId}-${client.spanId}-01`);
    const [line] = await linesOf(rig.gateway, id, 2);
    expect(line?.['trace']).toEqual({ trace_id: server.traceId, span_id: server.spanId });
  });

  it('say why it was refused, and the process log names the trace', async () => {
    const reply = await callStateless(rig.access, CALL.name, { id: rig.access.token ?? '' });
    const server = only(await spansOf(decisionOf(reply).id), SERVER);
    expect(server).toMatchObject({ status: FAILED });
    expect(server.attributes).toMatchObject({
      'error.type': 'arguments-content',
      'sallyport.decision.verdict': 'deny',
      'sallyport.decision.reason': 'arguments-content',
      'sallyport.decision.stage': 'guard',
    });
    await expect.poll(() => rig.gateway.log(), PATIENT).toContain(`"trace":"${server.traceId}"`);
  });

  it('say that the tool failed, by what the upstream answered', async () => {
    rig.upstream.answerCalls(() => ({ content: [{ type: 'text', text: 'no' }], isError: true }));
    const spans = await spansOf(decisionOf(await callStateless(rig.access, CALL.name, CALL.arguments)).id);
    rig.upstream.repent();
    expect(only(spans, SERVER).attributes).toMatchObject({ 'error.type': 'tool_error' });
    expect(only(spans, CLIENT).attributes).toMatchObject({ 'error.type': 'tool_error' });
  });

  it('are one for a stream, and one for each message of an array below it', async () => {
    rig.upstream.obey(
      onMethod('tools/call', (request) => ({
        kind: 'chunks',
        contentType: 'text/event-stream',
        chunks: [sseEvent(resultFor(request, textResult('streamed')))],
        ending: 'end',
      })),
    );
    const streamed = await callStateless(rig.access, CALL.name, CALL.arguments);
    only(await spansOf(decisionOf(streamed).id), SERVER);
    const { url, token = '' } = rig.access;
    const session = await openRawSession(url, { token, version: '2025-03-26' });
    const call = (id: number) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: CALL });
    const answer = await postRaw(url, [call(1), call(2)], { headers: session.headers });
    rig.upstream.repent();
    const spans = await spansOf(answer.headers.get('sallyport-decision') ?? '');
    const servers = spans.filter(({ kind }) => kind === SERVER);
    expect(servers).toHaveLength(3);
    const [batch] = servers.filter(({ parentSpanId }) => parentSpanId === undefined);
    expect(servers.filter(({ parentSpanId }) => parentSpanId === batch?.spanId)).toHaveLength(2);
  });
});

describe('[TRC-07] an upstream of HTTP+SSE', () => {
  const rig = sharedGateway(() => ({ more: tracingTo(receiver), era: 'channels' as const }));

  it('is told the trace, and its exchange has a span', async () => {
    const reply = await callStateless(rig.access, CALL.name, CALL.arguments);
    const spans = await spansOf(decisionOf(reply).id);
    expect(only(spans, CLIENT).parentSpanId).toBe(only(spans, SERVER).spanId);
    expect(rig.upstream.uses()[0]?.message?.['params']).toMatchObject({
      _meta: { traceparent: `00-${only(spans, CLIENT).traceId}-${only(spans, CLIENT).spanId}-01` },
    });
  });
});

describe('[TRC-07] an endpoint', () => {
  const rig = shared(() => startMergedRig({ more: tracingTo(receiver) }));

  it('has one span above those of its backends', async () => {
    const caller = await connectTo('stateless', rig.access);
    const listed = await caller.request('tools/list');
    const spans = await spansOf(listed.headers.get('sallyport-decision') ?? '');
    const servers = spans.filter(({ kind }) => kind === SERVER);
    const [root] = servers.filter(({ parentSpanId }) => parentSpanId === undefined);
    expect(root?.attributes).toMatchObject({ 'mcp.method.name': 'tools/list', 'sallyport.upstream': 'all' });
    // Its parts were decided, and it was not.
    expect(root?.attributes).not.toHaveProperty('sallyport.decision.verdict');
    const parts = servers.filter(({ parentSpanId }) => parentSpanId === root?.spanId);
    expect(parts.map(({ attributes }) => attributes['sallyport.upstream']).sort()).toEqual(['left', 'right']);
    expect(spans.filter(({ kind }) => kind === CLIENT)).toHaveLength(2);
  });
});

describe('[TRC-06] what is exported', () => {
  const call = (rig: AttackRig, meta: JsonObject = {}): Promise<Reply> =>
    callStateless(rig.access, CALL.name, CALL.arguments, meta);
  const serverSpans = () => receiver.spans().filter(({ kind }) => kind === SERVER);
  it('reaches a receiver whose certificate another authority signed', async () => {
    const authority = makeAuthority();
    await withStarted(
      () => startTlsFront(receiver.url, authority.issue()),
      async ({ port }) => {
        const url = `https://127.0.0.1:${port}/v1/traces`;
        const more = tracingTo({ url }).replace('network:', 'ca: ./otlp-ca.crt, network:');
        await withGateway({ more, files: { 'otlp-ca.crt': authority.cert } }, async (rig: AttackRig) => {
          await call(rig);
          await expect.poll(serverSpans, PATIENT).not.toHaveLength(0);
        });
      },
    );
  });

  it('[TRC-10, X-97] is chosen for the share that is configured, or as a caller says whose issuer is trusted with it, within a bound', async () => {
    const more = tracingTo(receiver).replace('sampling: 1', 'sampling: 0, callerSampledPerSecond: 1');
    const issuer = ['algorithms: [ES256, RS256]', 'traceContext: continued-with-sampling'];
    await withGateway({ more, issuer }, async (rig: AttackRig) => {
      const own = await call(rig);
      const marked = `00-${'d4'.repeat(16)}-${'e5'.repeat(8)}-01`;
      const startedMs = performance.now();
      for (let count = 0; count < 8; count += 1) await call(rig, { traceparent: marked });
      const seconds = (performance.now() - startedMs) / 1_000;
      const flags = rig.upstream.uses().map(({ headers }) => headers['traceparent']?.slice(-2));
      expect(flags.slice(0, 2)).toEqual(['00', '01']);
      const exported = flags.filter((flag) => flag === '01').length;
      expect(exported).toBeLessThanOrEqual(1 + seconds);
      await expect.poll(serverSpans, PATIENT).toHaveLength(exported);
      expect(serverSpans()[0]).toMatchObject({ traceId: 'd4'.repeat(16), parentSpanId: 'e5'.repeat(8) });
      // What is not exported is in the records and goes on all the same.
      const [line] = await linesOf(rig.gateway, decisionOf(own).id, 2);
      const [, traceId] = (rig.upstream.uses()[0]?.headers['traceparent'] ?? '').split('-');
      expect(line?.['trace'].trace_id).toBe(traceId);
      expect(rig.upstream.uses()[0]?.headers['traceparent']).toMatch(/-00$/);
    });
  });

  it('follows a reload: from the next request on there are spans, or none', async () => {
    await withGateway({}, async (rig: AttackRig) => {
      const traceIdOf = async (reply: Reply) =>
        (await linesOf(rig.gateway, decisionOf(reply).id, 2))[0]?.['trace']?.trace_id;
      const file = join(rig.gateway.folder, 'gateway.yaml');
      const text = await readFile(file, 'utf8');
      expect(await traceIdOf(await call(rig))).toBeUndefined();
      expect(await rig.gateway.metrics()).toContain('sallyport_controls{control="tracing",state="off"} 1');
      await writeFile(file, text + tracingTo(receiver));
      await rig.gateway.reload();
      const traceId = await traceIdOf(await call(rig));
      await expect.poll(() => receiver.trace(traceId), PATIENT).not.toHaveLength(0);
      expect(serverSpans()[0]?.attributes).not.toHaveProperty('user.hash');
      await writeFile(file, text);
      await rig.gateway.reload();
      expect(await traceIdOf(await call(rig))).toBeUndefined();
    });
  });
});
