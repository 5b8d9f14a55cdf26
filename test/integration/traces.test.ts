// The trace of a request through the running gateway: whose it is, what goes on to the upstream in header and message, and
// what stands in the records. Source: W3C Trace Context; MCP 2026-07-28, base protocol (`_meta`).

import { afterEach, describe, expect, it } from 'vitest';
import { decisionOf, linesOf, UPSTREAM } from '../support/gateway.js';
import type { HostileRequest } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import { tracingTo } from '../support/otlp-receiver.js';
import { callStateless, type Reply, requestInSession } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const FOREIGN = 'a1'.repeat(16);
const SPAN = 'b2'.repeat(8);
const OTHER = 'c3'.repeat(16);
const CALLERS = `00-${FOREIGN}-${SPAN}-01`;
const FORM = /^00-([0-9a-f]{32})-([0-9a-f]{16})-0[01]$/;
const CALL = { name: 'read_record', arguments: { id: 'one' } };
/** Nobody listens there: what is sent on is the same. */
const NOWHERE = tracingTo({ url: 'http://127.0.0.1:9/v1/traces' });
const ERAS = ['sessions', 'stateless'] as const;

function metaOf({ message }: HostileRequest): JsonObject {
  const params = message?.['params'] as JsonObject | undefined;
  return (params?.['_meta'] ?? {}) as JsonObject;
}

describe.each([
  ['continued', 'traceContext: continued'],
  ['replaced', 'traceContext: replaced'],
] as const)('the trace of a caller is %s', (how, setting) => {
  const isContinued = how === 'continued';
  describe.each(ERAS)('before an upstream of %s', (era) => {
    const rig = sharedGateway({
      more: NOWHERE,
      issuer: ['algorithms: [ES256, RS256]', setting],
      era,
    });
    afterEach(() => rig.upstream.forget());

    async function call(client: (typeof ERAS)[number], meta: JsonObject | undefined, headers = {}): Promise<Reply> {
      if (client === 'stateless') return callStateless(rig.access, CALL.name, CALL.arguments, meta ?? {}, { headers });
      const session = await rig.openSession();
      const params = meta === undefined ? CALL : { ...CALL, _meta: meta };
      return requestInSession(rig.access, session.id, 'tools/call', params, headers);
    }

    async function traceOf(reply: Reply): Promise<JsonObject> {
      const [line] = await linesOf(rig.gateway, decisionOf(reply).id, 2);
      return line?.['trace'];
    }

    it.each(ERAS)('[TRC-02] from the header of a client of %s', async (client) => {
      const reply = await call(client, undefined, { traceparent: CALLERS });
      expect(reply.status).toBe(200);
      const [sent] = rig.upstream.uses();
      const [, traceId, spanId] = FORM.exec(sent?.headers['traceparent'] ?? '') ?? [];
      expect(traceId === FOREIGN).toBe(isContinued);
      const recorded = await traceOf(reply);
      expect(recorded).toMatchObject({ trace_id: traceId });
      expect([SPAN, recorded['span_id']]).not.toContain(spanId);
    });

    it.each(ERAS)('[TRC-02] from the message of a client of %s, which counts more', async (client) => {
      const meta = { 'com.example/kept': 1, traceparent: CALLERS, tracestate: 'a=b', baggage: 'user=alice' };
      const reply = await call(client, meta, {
        traceparent: `00-${OTHER}-${SPAN}-01`,
        tracestate: 'a=b',
        baggage: 'c=d',
      });
      expect(reply.status).toBe(200);
      const [sent] = rig.upstream.uses();
      const named = sent?.headers['traceparent'] ?? '';
      const [, traceId] = FORM.exec(named) ?? [];
      expect(traceId === FOREIGN).toBe(isContinued);
      expect(traceId).not.toBe(OTHER);
      expect(sent && metaOf(sent)).toMatchObject({ 'com.example/kept': 1, traceparent: named });
      expect(sent && Object.keys(metaOf(sent))).not.toContain('tracestate');
      expect(sent && Object.keys(metaOf(sent))).not.toContain('baggage');
      expect(sent?.headers).not.toHaveProperty('tracestate');
      expect(sent?.headers).not.toHaveProperty('baggage');
      const [line] = await linesOf(rig.gateway, decisionOf(reply).id, 2);
      const cut = line?.['findings'].filter((finding: JsonObject) => finding['detector'] === 'trace-context');
      expect(cut.map(({ path, action }: JsonObject) => [path, action])).toEqual([
        ['/params/_meta/tracestate', 'strip'],
        ['/params/_meta/baggage', 'strip'],
      ]);
    });

    it.each(ERAS)('[TRC-03] and a client of %s that names none gets one', async (client) => {
      await call(client, undefined);
      const [sent] = rig.upstream.uses();
      expect(sent?.headers['traceparent']).toMatch(FORM);
      const own = sent && metaOf(sent)['traceparent'];
      // In a session nothing is added to a message that has no trace.
      expect(own).toBe(era === 'stateless' || client === 'stateless' ? sent?.headers['traceparent'] : undefined);
    });

    it('[TRC-03] and all else of the message stays as it was written', async () => {
      const session = await rig.openSession();
      await requestInSession(rig.access, session.id, 'tools/call', CALL);
      const plain = JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'tools/call', params: CALL });
      const [sent] = rig.upstream.uses();
      if (era === 'sessions') expect(sent?.body).toBe(plain);
      else expect(sent?.body).toContain(JSON.stringify(CALL).slice(1));
    });

    it('[TRC-02] and the stream and the end of a session are part of it', async () => {
      if (era !== 'sessions') return;
      const session = await rig.openSession();
      rig.upstream.forget();
      await session.end();
      const ended = rig.upstream.seen().find(({ httpMethod }) => httpMethod === 'DELETE');
      expect(ended?.headers['traceparent']).toMatch(FORM);
    });
  });
});

describe('[TRC-04] before an upstream where a flow ends', () => {
  const rig = sharedGateway({
    more: NOWHERE,
    issuer: ['algorithms: [ES256, RS256]', 'traceContext: continued'],
    policies: {
      open: `version: 1
policy: open
rules:
  - {id: all, effect: allow, who: {anyone: true}, what: {upstreams: ["*"], tools: ["*"], resources: ["**"]}}
labels: {${UPSTREAM}/write_record: [egress, trusted]}
flows: [{id: no-leak, from: untrusted, to: egress, within: 10m, effect: deny}]
`,
    },
  });

  it('the id is always ours', async () => {
    await callStateless(
      rig.access,
      'write_record',
      { id: 'one', text: 'two' },
      { traceparent: CALLERS },
      {
        headers: { traceparent: CALLERS },
      },
    );
    const [sent] = rig.upstream.uses();
    const named = sent?.headers['traceparent'] ?? '';
    expect(named).toMatch(FORM);
    expect(sent && metaOf(sent)['traceparent']).toBe(named);
    expect(JSON.stringify(rig.upstream.seen())).not.toContain(FOREIGN);
  });
});

describe('[TRC-05] without tracing', () => {
  const rig = sharedGateway({ issuer: ['algorithms: [ES256, RS256]', 'traceContext: continued'] });

  it('the header ends here, the message passes as it is, and no record has a trace', async () => {
    const meta = { traceparent: CALLERS, tracestate: 'a=b' };
    const reply = await callStateless(rig.access, CALL.name, CALL.arguments, meta, {
      headers: { traceparent: CALLERS },
    });
    const [sent] = rig.upstream.uses();
    expect(sent?.headers).not.toHaveProperty('traceparent');
    expect(sent && metaOf(sent)).toMatchObject(meta);
    const [line] = await linesOf(rig.gateway, decisionOf(reply).id, 2);
    expect(line?.['trace']).toBeNull();
  });
});
