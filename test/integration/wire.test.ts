// What clients, proxies and dashboards read of an exchange besides its messages: statuses with the
// headers that belong to them, framing of event streams, and the record of what happened.

import { createPublicKey, randomUUID, verify } from 'node:crypto';
import { afterEach, describe, expect, it } from 'vitest';
import { type AuditLine, decisionOf, expectWithheldLines, linesOf } from '../support/gateway.js';
import { onMethod, resultFor, sseEvent, textResult } from '../support/hostile-acts.js';
import { type Act, HONEST_TOOLS, type HostileRequest } from '../support/hostile-upstream.js';
import {
  bearer,
  callStateless,
  errorOf,
  readReply,
  requestStateless,
  resultOf,
  sessionHeaders,
  statelessParts,
} from '../support/wire-client.js';
import { sharedGateway, withGateway } from '../support/with-gateway.js';

const PAUSE_MS = 150;

function events(chunks: readonly string[], paceMs = 0, ending: 'end' | 'hold' = 'end'): Act {
  return { kind: 'chunks', contentType: 'text/event-stream', chunks, ending, paceMs };
}

function answerOf(request: HostileRequest, text = 'answered'): string {
  return sseEvent(resultFor(request, textResult(text)));
}

/** The seconds of calls in a histogram so far, over all its series. */
function secondsOfCalls(metrics: string, family: string): number {
  const lines = metrics.matchAll(
    new RegExp(`^${family}_sum\\{[^}]*mcp_method_name="tools/call"[^}]*\\} (\\S+)$`, 'gm'),
  );
  return [...lines].reduce((sum, line) => sum + Number(line[1]), 0);
}

describe('what stands around a message', () => {
  const rig = sharedGateway({ upstream: ['pinning: {maxAge: 10m}', 'limits: {concurrency: 1}'] });
  afterEach(() => rig.upstream.repent());

  it.each([
    ['GET', { 'mcp-protocol-version': '2025-11-25' }],
    ['DELETE', {}],
    ['GET', { 'mcp-protocol-version': '2026-07-28' }],
    ['DELETE', { 'mcp-protocol-version': '2026-07-28' }],
  ])('[W-01] %s with %j is 405 and names POST', async (method, more: Record<string, string>) => {
    const headers = { ...bearer(rig.access.token), accept: 'text/event-stream', ...more };
    const response = await fetch(rig.access.url, { method, headers });
    await response.text();
    expect(response.status).toBe(405);
    expect(response.headers.get('allow')).toBe('POST');
  });

  it.each(['Text/Event-Stream;charset=UTF-8', ' text/event-stream'])(
    '[E-06] a stream of a session is one in any spelling of its type: %s',
    async (contentType) => {
      const session = await rig.openSession();
      const note = { jsonrpc: '2.0', method: 'notifications/tools/list_changed' };
      rig.upstream.obey(({ httpMethod }) =>
        httpMethod === 'GET' ? { kind: 'chunks', contentType, chunks: [sseEvent(note)], ending: 'end' } : undefined,
      );
      const headers = { ...bearer(rig.access.token), ...sessionHeaders(session.id) };
      const response = await fetch(rig.access.url, {
        headers: { ...headers, accept: 'text/event-stream' },
      });
      expect(response.status).toBe(200);
      expect(await response.text()).toContain('list_changed');
    },
  );

  it.each([
    ['text/event-streams', 200, 'upstream-protocol'],
    ['application/json', 401, 'upstream-credentials'],
    ['application/json', 503, 'upstream-unavailable'],
  ] as const)(
    '[G-05] a stream of a session that comes as %s with %s is refused',
    async (contentType, status, reason) => {
      const session = await rig.openSession();
      rig.upstream.obey(({ httpMethod }) =>
        httpMethod === 'GET'
          ? { kind: 'http', status, headers: { 'content-type': contentType }, body: '{}' }
          : undefined,
      );
      const headers = { ...bearer(rig.access.token), ...sessionHeaders(session.id) };
      const reply = await readReply(
        await fetch(rig.access.url, { headers: { ...headers, accept: 'text/event-stream' } }),
      );
      expect(reply.status).toBe(502);
      await expectWithheldLines(rig, reply, reason);
    },
  );

  it('[W-02] DELETE is answered with 204 and no length', async () => {
    const session = await rig.openSession();
    const headers = { ...bearer(rig.access.token), ...sessionHeaders(session.id) };
    const response = await fetch(rig.access.url, { method: 'DELETE', headers });
    expect(response.status).toBe(204);
    expect(response.headers.get('content-length')).toBeNull();
    expect(await response.text()).toBe('');
  });

  it('[W-03] what comes past the concurrency of an upstream is 503 with a JSON-RPC error', async () => {
    rig.upstream.obey(onMethod('tools/call', () => ({ kind: 'hold' })));
    const first = new AbortController();
    const { headers, body } = statelessParts('tools/call', {
      name: 'read_record',
      arguments: { id: 'one' },
    });
    const held = fetch(rig.access.url, {
      method: 'POST',
      signal: first.signal,
      headers: { ...bearer(rig.access.token), 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    }).catch(() => undefined);
    await expect.poll(() => rig.upstream.uses().length).toBe(1);
    const reply = await requestStateless(rig.access, 'tools/list');
    first.abort();
    await held;
    expect(reply.status).toBe(503);
    expect(reply.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
    expect(reply.headers.get('content-type')).toBe('application/json');
    expect(errorOf(reply)).toMatchObject({
      code: 1503,
      data: {
        'dev.sallyport/decision': {
          id: reply.headers.get('sallyport-decision'),
          reason: 'overloaded',
        },
      },
    });
  });

  it('[W-04] an event of another name is dropped, and the call goes on', async () => {
    rig.upstream.obey(
      onMethod('tools/call', (request) =>
        events([
          'event: ping\ndata: 2026-11-20\n\n',
          `event: other\n${answerOf(request, 'not this').slice('event: message\n'.length)}`,
          answerOf(request),
        ]),
      ),
    );
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
    expect(resultOf(reply)).toMatchObject(textResult('answered'));
    expect(reply.text).not.toContain('2026-11-20');
    expect(reply.text).not.toContain('not this');
  });

  it('[W-04] nor does it break the listing of the gateway itself', () =>
    withGateway(
      {
        prepare: (upstream) =>
          upstream.obey(
            onMethod('tools/list', (request) =>
              events([
                'event: ping\ndata: 2026-11-20\n\n',
                sseEvent(resultFor(request, { tools: [...HONEST_TOOLS], ttlMs: 0, cacheScope: 'private' })),
              ]),
            ),
          ),
      },
      async (own) => {
        const reply = await callStateless(own.access, 'read_record', { id: 'one' });
        expect(reply.text).toContain('read_record one');
      },
    ));

  it('[W-05] a slow stream adds nothing to the overhead', async () => {
    const before = await rig.gateway.metrics();
    rig.upstream.obey(onMethod('tools/call', (request) => events([':\n\n', ':\n\n', answerOf(request)], PAUSE_MS)));
    await callStateless(rig.access, 'read_record', { id: 'one' });
    const after = await rig.gateway.metrics();
    const grown = (family: string) => secondsOfCalls(after, family) - secondsOfCalls(before, family);
    expect(grown('mcp_server_operation_duration_seconds')).toBeGreaterThan(PAUSE_MS / 1000);
    expect(grown('mcp_client_operation_duration_seconds')).toBeGreaterThan(PAUSE_MS / 1000);
    expect(grown('sallyport_overhead_seconds')).toBeLessThan(PAUSE_MS / 1000);
  });

  it('[W-07] members in our own name are recorded for a request without arguments', async () => {
    const reply = await requestStateless(rig.access, 'tools/list', {
      _meta: { 'dev.sallyport/decision': 'forged' },
    });
    expect(reply.status).toBe(200);
    expect(rig.upstream.seen().at(-1)?.body).not.toContain('forged');
    await expect
      .poll(async () =>
        (await rig.gateway.audit())
          .filter((line) => line['type'] === 'mcp.outcome')
          .flatMap((line) => line['findings'])
          .filter((finding) => finding.detector === 'reserved-meta'),
      )
      .toMatchObject([{ direction: 'to-upstream', action: 'strip' }]);
  });

  it('[P-33] members of params that the revision does not define are dropped and recorded', async () => {
    rig.upstream.forget();
    const params = { name: 'read_record', other: { id: 'two' }, arguments: { id: 'one' } };
    const reply = await requestStateless(rig.access, 'tools/call', params);
    expect(reply.text).toContain('read_record one');
    const sent = JSON.parse(String(rig.upstream.uses()[0]?.body)) as { params: object };
    expect(Object.keys(sent.params).sort()).toEqual(['_meta', 'arguments', 'name']);
    await expect
      .poll(async () =>
        (await rig.gateway.audit())
          .filter((line) => line['type'] === 'mcp.decision')
          .flatMap((line) => line['findings'] ?? [])
          .filter((finding) => finding.detector === 'undefined-params'),
      )
      .toMatchObject([{ direction: 'to-upstream', path: '/params/other', action: 'drop' }]);
  });

  it('[W-07, P-33] thousands of removed members are counted, and few are named', async () => {
    const named = (prefix: string) =>
      Object.fromEntries(Array.from({ length: 2_000 }, (_, index) => [`${prefix}${index}`, index]));
    const id = randomUUID();
    const params = {
      ...{ name: 'read_record', arguments: { id: 'one' }, ...named('other') },
      _meta: named('dev.sallyport/own'),
    };
    expect((await requestStateless(rig.access, 'tools/call', params, { id })).status).toBe(200);
    const findings = async () =>
      (await rig.gateway.audit()).flatMap(({ type, target, findings: all }) =>
        type === 'mcp.decision' && target.request_id === id ? (all as AuditLine[]) : [],
      );
    await expect.poll(findings).not.toEqual([]);
    for (const detector of ['reserved-meta', 'undefined-params']) {
      const own = (await findings()).filter((finding) => finding['detector'] === detector);
      expect(own.length).toBeLessThan(20);
      expect(own.reduce((sum, { count }) => sum + Number(count), 0)).toBe(2_000);
    }
  });

  it('[W-08] a stateless client that leaves is no failure of the upstream', async () => {
    rig.upstream.forget();
    rig.upstream.obey(onMethod('tools/call', () => events([':\n\n'], 0, 'hold')));
    const leave = new AbortController();
    const { headers, body } = statelessParts('tools/call', {
      name: 'read_record',
      arguments: { id: 'gone' },
    });
    const response = await fetch(rig.access.url, {
      method: 'POST',
      signal: leave.signal,
      headers: { ...bearer(rig.access.token), 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
    expect(response.status).toBe(200);
    const outcomes = async () => (await rig.gateway.audit()).filter((line) => line['type'] === 'mcp.outcome').length;
    const before = await outcomes();
    leave.abort();
    await expect.poll(outcomes).toBe(before + 1);
    const last = (await rig.gateway.audit()).filter((line) => line['type'] === 'mcp.outcome').at(-1);
    expect(last?.['decision']).toMatchObject({
      verdict: 'allow',
      action: 'forwarded',
      reasons: [],
    });
    expect(last?.['result']).toMatchObject({ status: 'none' });
    await expect.poll(() => rig.upstream.uses().at(-1)?.isAborted).toBe(true);
  });

  it('[W-09] the outcome has the keyed digest of the result', async () => {
    const outcomes = async () => (await rig.gateway.audit()).filter((line) => line['type'] === 'mcp.outcome');
    const before = (await outcomes()).length;
    for (const text of ['same', 'same', 'other']) {
      rig.upstream.answerCalls(() => textResult(text));
      await callStateless(rig.access, 'read_record', { id: 'one' });
    }
    // Nobody waits for an outcome; outcomes of the tests before may still come as well.
    const digests = async (): Promise<readonly string[]> =>
      (await outcomes()).slice(before).flatMap((line) => line['result'].digest ?? []);
    await expect.poll(async () => (await digests()).length).toBeGreaterThanOrEqual(3);
    const [first, second, third] = (await digests()).slice(-3);
    expect(first).toMatch(/^[\w-]{43}$/);
    expect(second).toBe(first);
    expect(third).not.toBe(first);
  });
});

describe('the key set of the gateway', () => {
  it('[W-10] is readable without a token and verifies a checkpoint', () =>
    withGateway(
      {
        audit: 'audit: {sinks: [{type: file, path: ./audit.jsonl}], checkpoint: {every: 1s}}',
      },
      async (rig) => {
        const response = await fetch(new URL('/.well-known/sallyport/jwks.json', rig.gateway.publicUrl));
        expect(response.status).toBe(200);
        const { keys } = (await response.json()) as { keys: readonly Record<string, string>[] };
        expect(keys.map(({ kid }) => kid)).toEqual([keys[0]?.['kid'], `${keys[0]?.['kid']}.assertion`]);
        expect(Object.keys(keys[0] ?? {}).sort()).toEqual(['alg', 'crv', 'kid', 'kty', 'use', 'x']);
        await callStateless(rig.access, 'read_record', { id: 'one' });
        const checkpoint = async () =>
          (await rig.gateway.audit()).find(({ type }) => type === 'checkpoint')?.['detail'];
        await expect.poll(checkpoint, { timeout: 5_000 }).toBeDefined();
        const { epoch, seq, hash, at, every_ms, every_lines, key_id, signature } = await checkpoint();
        expect(key_id).toBe(keys[0]?.['kid']);
        const signed = ['sallyport.checkpoint/2', epoch, seq, hash, at, every_ms, every_lines];
        const text = Buffer.from(
          signed
            .map(
              (line) => `${line}
`,
            )
            .join(''),
        );
        const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: keys[0]?.['x'] ?? '' }, format: 'jwk' });
        expect(verify(null, text, key, Buffer.from(signature, 'base64url'))).toBe(true);
      },
    ));
});

describe('an upstream of one era', () => {
  it.each([
    ['2026-07-28', ['2026-07-28']],
    ['2025-11-25', ['2026-07-28']],
  ])('[W-06] that speaks %s names what is served to a version that nobody speaks', (spoken, named) =>
    withGateway(
      {
        prepare: (upstream) =>
          upstream.obey((request) => {
            const isStateless = request.headers['mcp-protocol-version'] === '2026-07-28';
            if (isStateless === (spoken === '2026-07-28')) return undefined;
            const error = { code: -32000, message: 'Bad Request' };
            const message = { jsonrpc: '2.0', id: request.id ?? 0, error };
            return {
              kind: 'http',
              status: 400,
              headers: { 'content-type': 'application/json' },
              body: JSON.stringify(message),
            };
          }),
      },
      async (rig) => {
        const reply = await requestStateless(
          rig.access,
          'tools/list',
          { _meta: { 'io.modelcontextprotocol/protocolVersion': '2099-01-01' } },
          { headers: { 'mcp-protocol-version': '2099-01-01' } },
        );
        expect(reply.status).toBe(400);
        expect(errorOf(reply)).toMatchObject({
          code: -32022,
          data: { supported: named, requested: '2099-01-01' },
        });
        await linesOf(rig.gateway, decisionOf(reply).id, 2);
      },
    ),
  );
});
