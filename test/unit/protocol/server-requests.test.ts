// What of a client's capabilities stays, and which answers, arrays and event ids are admitted.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { admitPost, admitStreamOpen, MAX_ARRAY_ELEMENTS } from '../../../src/protocol/admission.js';
import type { ServerRequestFacts, SessionFacts } from '../../../src/protocol/admitted-request.js';
import { applyEdits } from '../../../src/protocol/json/json.js';
import type { JsonObject } from '../../../src/protocol/jsonrpc.js';
import type { ServerRequestGrants } from '../../../src/protocol/server-requests.js';
import type { AdmissionInput } from '../../../src/protocol/versions/admission-rules.js';
import { META, opener, SESSION } from './admission.js';

const encoder = new TextEncoder();
const ASKED: ServerRequestFacts = { id: 7, method: 'sampling/createMessage', name: 'sampling' };

function submit(
  body: unknown,
  {
    headers = { 'mcp-session-id': 's-1' },
    session = SESSION,
    grants,
  }: {
    readonly headers?: { readonly [name: string]: string };
    readonly session?: SessionFacts;
    readonly grants?: ServerRequestGrants;
  } = {},
) {
  const input: AdmissionInput = {
    headers,
    repeated: new Set(),
    body: encoder.encode(typeof body === 'string' ? body : JSON.stringify(body)),
    openSession: opener(session),
    openServerRequest: (id) => (id === 'q-1' ? ASKED : undefined),
    grants: grants === undefined ? undefined : () => grants,
  };
  return admitPost(input);
}

function leaving(outcome: ReturnType<typeof submit>): JsonObject {
  if (outcome.kind !== 'admitted') throw new Error(JSON.stringify(outcome));
  return JSON.parse(applyEdits(outcome.text, outcome.edits)) as JsonObject;
}

function initialize(capabilities: unknown, grants: ServerRequestGrants) {
  const params = { protocolVersion: '2025-11-25', capabilities, clientInfo: {} };
  const body = { jsonrpc: '2.0', id: 1, method: 'initialize', params };
  return submit(body, { headers: {}, grants });
}

const grantsOf = (sampling: boolean, form: boolean, url: boolean, roots: boolean): ServerRequestGrants => ({
  sampling,
  elicitation: { form, url },
  roots,
});

describe('[Q-02] capabilities', () => {
  const declared = {
    experimental: { x: 1 },
    sampling: { tools: {} },
    elicitation: { form: {}, url: {} },
    roots: { listChanged: true },
    tasks: {},
  };

  test.each([
    [grantsOf(false, false, false, false), { experimental: { x: 1 } }, []],
    [
      grantsOf(true, true, true, true),
      { ...declared, tasks: undefined },
      ['sampling', 'elicitation/form', 'elicitation/url', 'roots'],
    ],
    [grantsOf(false, false, true, false), { experimental: { x: 1 }, elicitation: { url: {} } }, ['elicitation/url']],
    [
      grantsOf(true, true, false, false),
      { experimental: { x: 1 }, sampling: { tools: {} }, elicitation: { form: {} } },
      ['sampling', 'elicitation/form'],
    ],
  ])('are cut where they are not granted: %j', (grants, left, allowedServerRequests) => {
    const outcome = initialize(declared, grants);
    expect(leaving(outcome)).toMatchObject({ params: { protocolVersion: '2025-11-25' } });
    expect((leaving(outcome)['params'] as JsonObject)['capabilities']).toEqual(JSON.parse(JSON.stringify(left)));
    expect(outcome).toMatchObject({ allowedServerRequests });
  });

  test('an elicitation that names no mode means forms, and goes whole where they are not granted', () => {
    const urls = initialize({ elicitation: {} }, grantsOf(false, false, true, false));
    expect(leaving(urls)).toMatchObject({ params: { capabilities: {} } });
    expect(JSON.stringify(leaving(urls))).not.toContain('elicitation');
    const forms = initialize({ elicitation: {} }, grantsOf(false, true, false, false));
    expect(forms).toMatchObject({ allowedServerRequests: ['elicitation/form'], edits: [] });
  });

  test('of stateless requests are cut alike', () => {
    const key = 'io.modelcontextprotocol/clientCapabilities';
    const _meta = { ...META, [key]: { sampling: {}, elicitation: { form: {}, url: {} } } };
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta } };
    const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/list' };
    const outcome = submit(body, { headers, grants: grantsOf(true, false, true, true) });
    expect(leaving(outcome)).toMatchObject({ params: { _meta: { [key]: { sampling: {} } } } });
    expect(outcome).toMatchObject({ allowedServerRequests: ['sampling', 'elicitation/url'] });
    expect(JSON.stringify(leaving(outcome))).not.toContain('form');
  });

  test('what is askable is exactly what is declared and granted, whatever the spelling', () => {
    const word = fc.constantFrom('sampling', 'Sampling', 'elicitation', 'roots', 'ROOTS', 'other');
    const capabilities = fc.dictionary(word, fc.constantFrom({}, { form: {} }, { url: {} }, 1));
    const grants = fc.tuple(fc.boolean(), fc.boolean(), fc.boolean(), fc.boolean()).map((flags) => grantsOf(...flags));
    fc.assert(
      fc.property(capabilities, grants, (written, given) => {
        const outcome = initialize(written, given);
        if (outcome.kind !== 'admitted') return;
        const left = (leaving(outcome)['params'] as JsonObject)['capabilities'] as JsonObject;
        const names = new Set(outcome.allowedServerRequests.map((name) => name.split('/')[0]));
        for (const name of ['sampling', 'elicitation', 'roots']) {
          if (names.has(name)) expect(left).toHaveProperty(name);
          else expect(typeof left[name]).not.toBe('object');
        }
        expect(Object.keys(left)).not.toContain('Sampling');
        expect(Object.keys(left)).not.toContain('ROOTS');
      }),
    );
  });
});

describe('[Q-07] answers of a client', () => {
  test('are admitted under a sealed id of the session, which is restored', () => {
    const text = '{ "result" : {"a":1.0,"_meta":{"dev.sallyport/x":1}}, "id":"q-1","jsonrpc":"2.0"}';
    const outcome = submit(text);
    expect(outcome).toMatchObject({
      kind: 'admitted',
      protocol: { era: '2025' },
      message: { kind: 'result', id: 7 },
      target: { kind: 'server-request', name: 'sampling' },
      rule: { method: 'sampling/createMessage' },
      removed: ['dev.sallyport/x'],
      undefinedParams: [],
    });
    if (outcome.kind !== 'admitted') return;
    expect(applyEdits(outcome.text, outcome.edits)).toBe('{ "result" : {"a":1.0,"_meta":{}}, "id":7,"jsonrpc":"2.0"}');
    const error = { jsonrpc: '2.0', id: 'q-1', error: { code: -1, message: 'no' } };
    expect(leaving(submit(error))).toEqual({ ...error, id: 7 });
  });

  test.each([
    ['another id', { id: 'q-2' }, {}, 400],
    ['a number', { id: 7 }, {}, 400],
    ['no session', { id: 'q-1' }, { headers: {} }, 400],
    ['an unknown session', { id: 'q-1' }, { headers: { 'mcp-session-id': 's-9' } }, 404],
    [
      'the stateless era',
      { id: 'q-1' },
      { headers: { 'mcp-session-id': 's-1', 'mcp-protocol-version': '2026-07-28' } },
      400,
    ],
  ])('are refused with %s', (_what, reply, posted, status) => {
    const outcome = submit({ jsonrpc: '2.0', result: {}, ...reply }, posted as object);
    expect(outcome).toMatchObject({ kind: 'error', status });
  });
});

describe('[Q-17] changed roots', () => {
  const changed = { jsonrpc: '2.0', method: 'notifications/roots/list_changed' };

  test('are told where roots were granted, and refused elsewhere', () => {
    expect(submit(changed, { session: { ...SESSION, allowedServerRequests: ['roots'] } }).kind).toBe('admitted');
    for (const allowedServerRequests of [undefined, [], ['sampling' as const]]) {
      const session = allowedServerRequests === undefined ? SESSION : { ...SESSION, allowedServerRequests };
      expect(submit(changed, { session })).toMatchObject({
        reason: 'method-forbidden',
        status: 202,
      });
    }
  });
});

describe('[Q-14] arrays', () => {
  const old: SessionFacts = { version: '2025-03-26', target: { kind: 'upstream', id: 'u-1' } };
  const ping = (id: number) => ({ jsonrpc: '2.0', id, method: 'ping' });

  test('of a 2025-03-26 session are taken apart, each element as it was written', () => {
    const outcome = submit('[ {"id":1.0,"jsonrpc":"2.0","method":"ping"} ,{"a":"]"}]', {
      session: old,
    });
    expect(outcome).toEqual({
      kind: 'array',
      session: old,
      elements: ['{"id":1.0,"jsonrpc":"2.0","method":"ping"}', '{"a":"]"}'],
      hasRequests: true,
    });
  });

  test.each([
    ['empty', []],
    ['with an array in it', [[ping(1)]]],
    ['with initialize in it', [ping(1), { ...ping(2), method: 'initialize' }]],
    ['with one id twice', [ping(1), ping(1)]],
    ['too long', Array.from({ length: MAX_ARRAY_ELEMENTS + 1 }, (_, id) => ping(id))],
    ['with a string in it', [ping(1), 'ping']],
  ])('that are %s are 400', (_what, body) => {
    expect(submit(body, { session: old })).toMatchObject({
      reason: 'batch-forbidden',
      status: 400,
    });
  });

  test('are 400 in every other version and without a session', () => {
    for (const version of ['2025-06-18', '2025-11-25']) {
      expect(submit([ping(1)], { session: { ...old, version } })).toMatchObject({ status: 400 });
    }
    expect(submit([ping(1)], { headers: {} })).toMatchObject({ status: 400 });
    const headers = { 'mcp-session-id': 's-9' };
    expect(submit([ping(1)], { headers })).toMatchObject({ status: 404 });
  });
});

describe('[Q-11] event ids', () => {
  const open = (headers: { readonly [name: string]: string }) =>
    admitStreamOpen({
      headers: { 'mcp-session-id': 's-1', ...headers },
      repeated: new Set(),
      openSession: opener(SESSION),
      openEvent: (id) => (id === 'e-1' ? { upstreamId: 'u', request: undefined } : undefined),
    });

  test('that open resume, every other is as unknown as a session', () => {
    expect(open({ 'last-event-id': 'e-1' })).toMatchObject({
      kind: 'session',
      resumed: { upstreamId: 'u' },
    });
    expect(open({})).not.toHaveProperty('resumed');
    const unknown = open({ 'last-event-id': 'e-2' });
    expect(unknown).toEqual(open({ 'mcp-session-id': 's-9' }));
    expect(unknown).toMatchObject({ status: 404, reason: 'unknown-session' });
  });
});
